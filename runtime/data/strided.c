/* SPDX-License-Identifier: Apache-2.0 */
/* The places of the result one by one, and where each was. */
#include "runtime/data/strided.h"

#include "ir/type.h"

#include <string.h>

void copy_strided(void *out, const void *in, size_t size, int rank, const int64_t *dims,
                  const int64_t *stride) {
  int64_t index[MAX_RANK] = {0}, count = 1, from = 0;
  for (int i = 0; i < rank; i++) count *= dims[i];
  for (int64_t n = 0; n < count; n++) {
    memcpy((char *)out + (size_t)n * size, (const char *)in + (size_t)from * size, size);
    int axis = rank - 1;
    for (; axis >= 0 && ++index[axis] == dims[axis]; axis--) {
      from -= (dims[axis] - 1) * stride[axis];
      index[axis] = 0;
    }
    if (axis >= 0) from += stride[axis];
  }
}
