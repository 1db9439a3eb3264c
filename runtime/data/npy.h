/* SPDX-License-Identifier: Apache-2.0 */
/* The npy format: a one-line Python dict, then the numbers. */
#ifndef DGC_RUNTIME_DATA_NPY_H
#define DGC_RUNTIME_DATA_NPY_H

#include "runtime/data/reader.h"

/* Sets the reader's piece from an npy file: the `len` bytes of `b` from `at` on. */
bool npy_parse(struct reader *r, const struct content *b, int64_t at, int64_t len);
/* The reader's member of an npz file, or its only one, as an array. */
bool npz_array(struct reader *r);
/* Whether all of the file is one sparse matrix. */
bool npz_is_sparse(struct reader *r);
/* Where the bytes of the reader's member of an npz file are: in its own memory if they were compressed. */
bool npz_member(struct reader *r, const struct content **b, int64_t *at, int64_t *len);

#endif
