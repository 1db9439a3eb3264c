/* SPDX-License-Identifier: Apache-2.0 */
/* Object files of kernels brought to life without LLVM: sections laid out, references among them filled in.
 * Only the simple ones that kernels compile to; ORC links the others. */
#ifndef DGC_RUNTIME_CPU_OBJECT_H
#define DGC_RUNTIME_CPU_OBJECT_H

#include <stddef.h>

struct object;

/* `data` may be anything. NULL if it is no object for this machine, refers to something outside, has data that
 * can be written, or if there is no memory. */
struct object *object_load(const char *data, size_t size);
/* The same of code that refers to nothing: `*base` is where it lies, on a multiple of 64. NULL if there is no
 * memory. */
struct object *object_of_code(const char *code, size_t size, const char **base);
/* The address of a function, NULL if there is none of this name. */
void *object_find(const struct object *o, const char *name);
/* Ends all its functions. NULL is allowed. */
void object_unload(struct object *o);

#endif
