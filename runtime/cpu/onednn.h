/* SPDX-License-Identifier: Apache-2.0 */
/* oneDNN, on the calling thread alone: what convolutions and products of bfloat16 share. */
#ifndef DGC_RUNTIME_CPU_ONEDNN_H
#define DGC_RUNTIME_CPU_ONEDNN_H

#include <oneapi/dnnl/dnnl.h>
#include <stdbool.h>

/* As struct pieces names it. */
#define ONEDNN "oneDNN"
/* Once per thread that runs what the library has made: keeps it from starting threads of its own. */
void onednn_use_one_thread(void);
/* Calls make(plan), which makes primitives, with one thread and a library that has started. False if make gives that,
 * or there is no memory to start. Where the call is left for want of memory, `plan` is freed, and what the library has
 * made of it is not touched. */
bool onednn_make(void *plan, bool (*make)(void *plan));
/* The name of the way in which it is computed; "ref" where there is none to know. */
const char *onednn_way(dnnl_primitive_desc_t desc);
/* The name of the CPU's units for bfloat16 that are worth it, NULL: it has none. AMX; and AVX512_BF16 of AMD's: with
 * oneDNN 2.6 a training step takes half of what it does in f32 on a Zen 5, where an Intel Xeon's took 1.5 times as
 * long. Not with DGC_BF16_UNITS=off in the environment. */
const char *onednn_units(void);
/* Whether they are AMX, which code of our own takes. */
bool onednn_units_are_amx(void);
/* Whether this way to compute takes them. */
bool onednn_takes_units(const char *way);
/* Sets where the elements of `memory` lie. The library takes operands as pointers to non-const, and does not write to
 * what it only reads. */
bool onednn_data(dnnl_memory_t memory, const void *data);

#endif
