/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes PNG by means of libpng: nothing else uses it. */
#include "runtime/data/image.h"

#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

struct png_source {
  const struct content *in;
  int64_t at;
  char *cause;
};

/* Of libpng's errors. */
static void stop(png_structp png, const char *message) {
  struct png_source *s = png_get_error_ptr(png);
  snprintf(s->cause, IMAGE_CAUSE, "%s", message);
  longjmp(png_jmpbuf(png), 1);
}

static void ignore(png_structp png, const char *message) { (void)png, (void)message; }

static void give(png_structp png, png_bytep out, size_t len) {
  struct png_source *s = png_get_io_ptr(png);
  if ((int64_t)len > s->in->len - s->at) png_error(png, "the file is truncated");
  memcpy(out, s->in->bytes + s->at, len);
  s->at += (int64_t)len;
}

/* Whatever there is becomes RGBA of 8 bits; gamma and profiles are left alone. */
static void ask_for_rgba(png_structp png, png_infop info) {
  png_set_expand(png);
  png_set_strip_16(png);
  png_set_gray_to_rgb(png);
  if (!(png_get_color_type(png, info) & PNG_COLOR_MASK_ALPHA) && !png_get_valid(png, info, PNG_INFO_tRNS))
    png_set_add_alpha(png, 0xff, PNG_FILLER_AFTER);
}

static void read_rows(png_structp png, png_infop info, const struct image *expected, uint8_t *out) {
  png_read_info(png, info);
  if (png_get_image_height(png, info) != expected->height ||
      png_get_image_width(png, info) != expected->width)
    png_error(png, "its header is damaged");
  ask_for_rgba(png, info);
  int passes = png_set_interlace_handling(png);
  png_read_update_info(png, info);
  if ((int64_t)png_get_rowbytes(png, info) != expected->width * 4)
    png_error(png, "its colours are not understood");
  for (int pass = 0; pass < passes; pass++)
    for (int64_t y = 0; y < expected->height; y++) png_read_row(png, out + y * expected->width * 4, NULL);
  png_read_end(png, NULL);
}

bool png_decode(const struct content *b, const struct image *expected, uint8_t *out,
                char cause[IMAGE_CAUSE]) {
  struct png_source s = {.in = b, .cause = cause};
  snprintf(cause, IMAGE_CAUSE, "no memory for libpng");
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &s, stop, ignore);
  png_infop info = png ? png_create_info_struct(png) : NULL;
  volatile bool good = false;
  if (info && setjmp(png_jmpbuf(png)) == 0) {
    png_set_read_fn(png, &s, give);
    png_set_user_limits(png, (png_uint_32)expected->width, (png_uint_32)expected->height);
    read_rows(png, info, expected, out);
    good = true;
  }
  if (png) png_destroy_read_struct(&png, &info, NULL);
  return good;
}
