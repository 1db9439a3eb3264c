/* SPDX-License-Identifier: Apache-2.0 */
/* oneDNN, on the calling thread alone: what products and convolutions share. */
#ifndef DGC_RUNTIME_CPU_ONEDNN_H
#define DGC_RUNTIME_CPU_ONEDNN_H

#include <oneapi/dnnl/dnnl.h>
#include <stdbool.h>

/* Once per thread that runs what the library has made: keeps it from starting threads of its own. */
void cpu_thread_init(void);
/* Calls make(plan), which makes primitives, with one thread and a library that has started; `products` are to be among
 * what it is for. False if make gives that, or there is no memory to start. Where the call is left for want of memory,
 * `plan` is freed, and what the library has made of it is not touched. */
bool onednn_make(void *plan, bool products, bool (*make)(void *plan));
/* Starts the library for products beside the caller, once, where another processor may do it. */
void onednn_expect_products(void);
/* Behind all that was made, and before any of it runs: if there are products among it, the library has started for them
 * then. Primitives are made while that goes on. False if there is no memory. */
bool onednn_finish(void);
/* Until no thread of expect_products is left. */
void onednn_wait(void);
/* The name of the way in which it is computed; "ref" where there is none to know. */
const char *onednn_way(dnnl_primitive_desc_t desc);
/* Whether the CPU has units for bfloat16 that are worth it: AMX. Those of AVX512_BF16 took 1.5 times as long as f32
 * does, with oneDNN 2.6 on an Intel Xeon. Not with DGC_BF16_UNITS=off in the environment. */
bool onednn_has_units(void);
/* Whether this way to compute takes them. */
bool onednn_takes_units(const char *way);
/* Sets where the elements of `memory` lie. The library takes operands as pointers to non-const, and does not write to
 * what it only reads. */
bool onednn_data(dnnl_memory_t memory, const void *data);

#endif
