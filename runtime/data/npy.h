/* The npy format: a one-line Python dict, then the numbers. */
#ifndef DGC_RUNTIME_DATA_NPY_H
#define DGC_RUNTIME_DATA_NPY_H

#include "runtime/data/reader.h"

/* Sets the reader's column from an npy file in memory. */
bool npy_parse(struct reader *r, const uint8_t *bytes, int64_t len);

#endif
