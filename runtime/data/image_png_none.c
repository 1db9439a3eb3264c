/* SPDX-License-Identifier: Apache-2.0 */
/* Where libpng is missing. */
#include "runtime/data/image.h"

#include <stdio.h>

bool png_decode(const struct content *b, const struct image *expected, uint8_t *out,
                char cause[IMAGE_CAUSE]) {
  (void)b, (void)expected, (void)out;
  snprintf(
      cause, IMAGE_CAUSE,
      "this dgc was built without libpng; build it with -Dpng=enabled where libpng's header is installed");
  return false;
}
