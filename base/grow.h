/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays that grow, in the scratch arena of whoever fills them. */
#ifndef DGC_BASE_GROW_H
#define DGC_BASE_GROW_H

#include "base/arena.h"

#include <string.h>

/* Makes `array` larger if it is full: it holds `count` of them and has room for `cap`. What is added is not cleared. */
#define GROW(owner, array, count, cap)                                             \
  do {                                                                             \
    if ((count) == (cap)) {                                                        \
      (cap) = (cap) ? 2 * (cap) : 256;                                             \
      void *more_ = arena_room((owner)->scratch, (size_t)(cap) * sizeof *(array)); \
      if (count) memcpy(more_, (array), (size_t)(count) * sizeof *(array));        \
      (array) = more_;                                                             \
    }                                                                              \
  } while (0)

#endif
