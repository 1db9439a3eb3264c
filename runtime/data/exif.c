/* SPDX-License-Identifier: Apache-2.0 */
/* How the camera of a JPEG was held: the tag Orientation of EXIF, a TIFF directory in a segment APP1; and pixels turned
 * by it. */
#include "runtime/data/image.h"

#include <string.h>

enum { ORIENTATION = 0x112, SHORT = 3, LONG = 4 };

/* The TIFF file in the segment: where it begins and ends in the whole, and its byte order. */
struct tiff {
  const struct content *content;
  int64_t begin, end;
  bool big;
};

static bool take(const struct tiff *t, int64_t at, uint8_t *out, int64_t len) {
  return at >= 0 && len <= t->end - t->begin && at <= t->end - t->begin - len &&
         content_read(t->content, t->begin + at, out, len);
}

static uint32_t number(const struct tiff *t, const uint8_t *p, int bytes) {
  uint32_t v = 0;
  for (int i = 0; i < bytes; i++) v = v << 8 | p[t->big ? i : bytes - 1 - i];
  return v;
}

/* In a directory: how many entries, then twelve bytes for each: tag, type, how many numbers, and the numbers if they
 * have room in four bytes. */
static int orientation(const struct tiff *t, int64_t directory) {
  uint8_t p[12];
  if (!take(t, directory, p, 2)) return 1;
  int entries = (int)number(t, p, 2);
  for (int i = 0; i < entries && take(t, directory + 2 + 12 * (int64_t)i, p, sizeof p); i++) {
    uint32_t type = number(t, p + 2, 2);
    if (number(t, p, 2) != ORIENTATION) continue;
    if ((type != SHORT && type != LONG) || number(t, p + 4, 4) != 1) return 1;
    uint32_t value = number(t, p + 8, type == SHORT ? 2 : 4);
    return value >= 1 && value <= 8 ? (int)value : 1;
  }
  return 1;
}

int exif_orientation(const struct content *b, int64_t begin, int64_t len) {
  static const uint8_t name[6] = {'E', 'x', 'i', 'f', 0, 0};
  struct tiff t = {b, begin, begin + len < b->len ? begin + len : b->len, false};
  uint8_t p[14];
  if (!take(&t, 0, p, sizeof p) || memcmp(p, name, sizeof name) != 0) return 0;
  t.begin += (int64_t)sizeof name;
  t.big = p[6] == 'M';
  bool good = (memcmp(p + 6, "II*", 4) == 0 || memcmp(p + 6, "MM\0*", 4) == 0);
  return good ? orientation(&t, number(&t, p + 10, 4)) : 1;
}

void image_turn(const uint8_t *from, uint8_t *to, const struct image *as, int channels) {
  int turn = as->turn;
  bool across = turn >= 5, bottom = turn == 3 || turn == 4 || turn == 6 || turn == 7;
  bool right = turn == 2 || turn == 3 || turn == 7 || turn == 8;
  int64_t height = across ? as->width : as->height, width = across ? as->height : as->width;
  for (int64_t y = 0; y < as->height; y++)
    for (int64_t x = 0; x < as->width; x++, to += channels) {
      int64_t row = across ? x : y, column = across ? y : x;
      if (bottom) row = height - 1 - row;
      if (right) column = width - 1 - column;
      memcpy(to, from + (row * width + column) * channels, (size_t)channels);
    }
}
