/* SPDX-License-Identifier: Apache-2.0 */
/* Conversion of stored numbers to the type a model wants. */
#include "runtime/data/reader.h"

#include <math.h>
#include <string.h>

bool convert_allowed(enum dtype to, enum dtype from) {
  if (to == from) return true;
  if (dtype_is_float(to)) return true;
  return !dtype_is_float(from);
}

#define EACH(FROM, v)                                                                                      \
  FROM v;                                                                                                  \
  for (int64_t i = 0; i < count && (memcpy(&v, (const char *)in + i * (int64_t)sizeof v, sizeof v), true); \
       i++)

/* To a type that takes all: a float, rounded to nearest; i64. */
#define TO_WIDE(TO, FROM)                \
  do {                                   \
    EACH(FROM, v)((TO *)out)[i] = (TO)v; \
    return -1;                           \
  } while (0)

/* A whole number to another whole type, if it is in [min, max]. */
#define TO_NARROW(TO, FROM, min, max)             \
  do {                                            \
    EACH(FROM, v) {                               \
      int64_t wide = (int64_t)v;                  \
      if (wide < (min) || wide > (max)) return i; \
      ((TO *)out)[i] = (TO)wide;                  \
    }                                             \
    return -1;                                    \
  } while (0)

#define CONVERT_WHOLE(FROM)                                    \
  switch (to) {                                                \
  case DT_F32: TO_WIDE(float, FROM);                           \
  case DT_F64: TO_WIDE(double, FROM);                          \
  case DT_I64: TO_WIDE(int64_t, FROM);                         \
  case DT_I32: TO_NARROW(int32_t, FROM, INT32_MIN, INT32_MAX); \
  case DT_U8: TO_NARROW(uint8_t, FROM, 0, UINT8_MAX);          \
  case DT_BOOL: TO_NARROW(uint8_t, FROM, 0, 1);                \
  case DT_BF16:                                                \
  case DT_F16:                                                 \
  case DT_COUNT: break;                                        \
  }                                                            \
  return 0

/* What is finite, and would not be as a f32, does not fit. */
static int64_t to_single(float *out, const void *in, int64_t count) {
  int misfits = 0;
  EACH(double, v) {
    out[i] = (float)v;
    misfits |= (isinf(out[i]) != 0) & (isinf(v) == 0);
  }
  if (!misfits) return -1; /* so that vectors do it, else the first is looked for */
  EACH(double, w) if (isinf(out[i]) && !isinf(w)) return i;
  return -1;
}

int64_t convert_numbers(enum dtype to, void *out, enum dtype from, const void *in, int64_t count) {
  if (to == from) {
    memcpy(out, in, (size_t)(count * dtype_size(to)));
    return -1;
  }
  switch (from) {
  case DT_U8:
  case DT_BOOL: CONVERT_WHOLE(uint8_t);
  case DT_I32: CONVERT_WHOLE(int32_t);
  case DT_I64: CONVERT_WHOLE(int64_t);
  case DT_F32:
    if (to == DT_F64) TO_WIDE(double, float);
    return 0;
  case DT_F64:
    if (to == DT_F32) return to_single(out, in, count);
    return 0;
  case DT_BF16:
  case DT_F16:
  case DT_COUNT: break;
  }
  return 0;
}
