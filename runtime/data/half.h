/* SPDX-License-Identifier: Apache-2.0 */
/* Floating point numbers of the narrow types, IEEE's binary16 and bfloat16, as files hold them. */
#ifndef DGC_RUNTIME_DATA_HALF_H
#define DGC_RUNTIME_DATA_HALF_H

#include "ir/type.h"

#include <stdint.h>

/* Exact. */
float half_to_float(enum dtype narrow, uint16_t bits);
/* Rounded to the nearest, of two equally near to the even one; what is too large becomes infinite, a NaN stays one. */
uint16_t half_from_float(enum dtype narrow, float value);

#endif
