/* SPDX-License-Identifier: Apache-2.0 */
/* Floating point numbers of 16 bits, as files hold them: IEEE's binary16 and bfloat16 */
#ifndef DGC_RUNTIME_DATA_HALF_H
#define DGC_RUNTIME_DATA_HALF_H

#include <stdint.h>

enum half_kind { HALF_NONE, HALF_F16, HALF_BF16 };

/* Exact. `kind` is not HALF_NONE. */
float half_to_float(enum half_kind kind, uint16_t bits);
/* Rounded to the nearest, of two equally near to the even one; what is too large becomes infinite, a NaN stays one. */
uint16_t half_from_float(enum half_kind kind, float value);

#endif
