/* SPDX-License-Identifier: Apache-2.0 */
/* Writes npz files: npy arrays in a zip archive, not compressed, as numpy.savez does */
#ifndef DGC_RUNTIME_DATA_NPZ_WRITER_H
#define DGC_RUNTIME_DATA_NPZ_WRITER_H

#include "base/diag.h"
#include "ir/type.h"

struct npz_array {
  const char *name; /* of the member, without ".npy" */
  struct type type; /* concrete */
  const void *data; /* dense */
};

/* The file is replaced whole or not at all: false after an error in `d`. */
bool npz_write(struct arena *a, const char *path, const struct npz_array *arrays, int count, struct diags *d);

#endif
