/* SPDX-License-Identifier: Apache-2.0 */
/* Formats of images that are not read, known by their first bytes: a message says what makes a PNG of them. */
#include "runtime/data/image.h"

#include <string.h>

#define PILLOW                                                          \
  "images are read as PNG or JPEG: python3 -c 'import PIL.Image, sys; " \
  "PIL.Image.open(sys.argv[1]).convert(\"RGB\").save(sys.argv[2])' "

/* The bytes that a file begins with, and those from `at` on. */
static const struct {
  const char *first;
  int at;
  const char *second;
  struct other_image is;
} others[] = {
    {"GIF8", 0, "", {"a GIF image", PILLOW "x.gif x.png"}},
    {"RIFF", 8, "WEBP", {"a WebP image", PILLOW "x.webp x.png"}},
    {"BM", 14, "(", {"a BMP image", PILLOW "x.bmp x.png"}},
    {"BM", 14, "l", {"a BMP image", PILLOW "x.bmp x.png"}},
    {"BM", 14, "|", {"a BMP image", PILLOW "x.bmp x.png"}},
    {"II*", 0, "", {"a TIFF image", PILLOW "x.tiff x.png"}},
    {"MM", 3, "*", {"a TIFF image", PILLOW "x.tiff x.png"}},
    {"", 4, "jP  ", {"a JPEG 2000 image", PILLOW "x.jp2 x.png"}},
    {"", 4, "ftypavif", {"an AVIF image", PILLOW "x.avif x.png"}},
    {"", 4, "ftyphei", {"a HEIC image", "heif-convert x.heic x.png, of Debian's libheif-examples"}},
    {"", 4, "ftypmif1", {"a HEIF image", "heif-convert x.heif x.png, of Debian's libheif-examples"}},
    {"", 4, "JXL ", {"a JPEG XL image", "djxl x.jxl x.png, of Debian's libjxl-tools"}},
    {"\xff\x0a", 0, "", {"a JPEG XL image", "djxl x.jxl x.png, of Debian's libjxl-tools"}},
};

static bool has(const uint8_t *head, int64_t len, int at, const char *text) {
  int64_t n = (int64_t)strlen(text);
  return len >= at + n && memcmp(head + at, text, (size_t)n) == 0;
}

const struct other_image *image_other(const uint8_t *head, int64_t len) {
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (has(head, len, 0, others[i].first) && has(head, len, others[i].at, others[i].second))
      return &others[i].is;
  return NULL;
}
