/* SPDX-License-Identifier: Apache-2.0 */
/* Images: what the header of a PNG or JPEG file says, its pixels, and what a row of a model is made of them. */
#ifndef DGC_RUNTIME_DATA_IMAGE_H
#define DGC_RUNTIME_DATA_IMAGE_H

#include "ir/type.h"
#include "runtime/data/content.h"

/* Pixels of one image: 256 MiB of them when they are decoded. */
#define IMAGE_PIXELS (INT64_C(1) << 26)
/* Bytes of one file. */
#define IMAGE_BYTES (INT64_C(1) << 28)

enum { IMAGE_CAUSE = 160 };

/* A format that is not read. */
struct other_image {
  const char *name, *help; /* "a WebP image"; what makes another of it */
};

struct image {
  int64_t height, width;           /* as it is looked at: turned */
  int channels;                    /* 1 grey, 3 RGB, 4 RGBA: what the file has, as far as its header tells */
  bool jpeg;                       /* and not PNG */
  int turn;                        /* EXIF's orientation, 1 to 8: how a row of pixels of the file lies */
  const struct other_image *other; /* where image_header is false because it is one; else NULL */
};

/* By the first bytes of a file. */
bool is_image(const uint8_t *head, int64_t len);
/* What the header says. False, with the cause in words, if it is none or asks for too much. */
bool image_header(const struct content *b, struct image *out, char cause[IMAGE_CAUSE]);
const struct other_image *image_other(const uint8_t *head, int64_t len);
/* Of the `len` bytes at `begin` of a JPEG, a segment APP1: EXIF's orientation, 1 where it says none that there is; 0:
 * the segment is not EXIF's. */
int exif_orientation(const struct content *b, int64_t begin, int64_t len);
/* The pixels of a file in memory, as RGBA of 8 bits, to `out`, which has room for height * width * 4 bytes: those of
 * `expected`, which the file must have, before they are turned. Of 16 bits the upper 8 are taken; what has no alpha has
 * 255; grey is R, G and B. False, with the cause in words. */
bool png_decode(const struct content *b, const struct image *expected, uint8_t *out, char cause[IMAGE_CAUSE]);
bool jpeg_decode(const struct content *b, const struct image *expected, uint8_t *out,
                 char cause[IMAGE_CAUSE]);

/* RGBA as `channels` values each, in place. 1 is grey, (299 R + 587 G + 114 B) / 1000 of ITU-R 601-2 in 16 bits, as
 * Pillow's convert("L") has it; 3 leaves alpha out. */
void image_channels(uint8_t *pixels, int64_t count, int channels);
/* Pixels of `channels` bytes as the file has them, to `to`, as they are looked at: what Pillow's exif_transpose
 * gives. */
void image_turn(const uint8_t *from, uint8_t *to, const struct image *as, int channels);
/* Scales an image to `height` x `width` of type `to`: bilinear between the centres of pixels, without smoothing, in
 * f32, which are the numbers of tf.image.resize. Integers are rounded to the nearest, of two to the even one. */
void image_resize(enum dtype to, void *out, int64_t height, int64_t width, const uint8_t *pixels,
                  const struct image *from, int channels);

#endif
