/* SPDX-License-Identifier: Apache-2.0 */
/* Where libjpeg is missing. */
#include "runtime/data/image.h"

#include <stdio.h>

bool jpeg_decode(const struct content *b, const struct image *expected, uint8_t *out,
                 char cause[IMAGE_CAUSE]) {
  (void)b, (void)expected, (void)out;
  snprintf(cause, IMAGE_CAUSE,
           "this dgc was built without libjpeg; build it with -Djpeg=enabled where libjpeg-turbo's header is "
           "installed");
  return false;
}
