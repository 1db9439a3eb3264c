/* The npy format: a one-line Python dict, then the numbers. */
#ifndef DGC_RUNTIME_DATA_NPY_H
#define DGC_RUNTIME_DATA_NPY_H

#include "runtime/data/reader.h"

/* Sets the reader's piece from an npy file in memory. */
bool npy_parse(struct reader *r, const uint8_t *bytes, int64_t len);
/* The bytes of the reader's member of an npz file; in its own memory where they were packed. */
bool npz_member(struct reader *r, const uint8_t **bytes, int64_t *len);

#endif
