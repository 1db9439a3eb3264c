/* SPDX-License-Identifier: Apache-2.0 */
/* Images without their libraries: headers, channels, sizes. */
#include "runtime/data/image.h"

#include "runtime/data/reader.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MARKERS = 1000 /* in front of the one that has the size */, APP1 = 0xe1 };

static const uint8_t png_magic[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};

static bool is_jpeg(const uint8_t *head, int64_t len) {
  return len >= 3 && head[0] == 0xff && head[1] == 0xd8 && head[2] == 0xff;
}

bool is_image(const uint8_t *head, int64_t len) {
  return is_jpeg(head, len) || (len >= (int64_t)sizeof png_magic && memcmp(head, png_magic, 8) == 0);
}

static bool fail(char *cause, const char *why) {
  snprintf(cause, IMAGE_CAUSE, "%s", why);
  return false;
}

static bool take(const struct content *b, int64_t at, uint8_t *out, int64_t len, char *cause) {
  if (at > b->len - len) return fail(cause, "its header is truncated");
  return content_read(b, at, out, len) || fail(cause, content_why(errno));
}

static uint32_t big_endian(const uint8_t *p, int bytes) {
  uint32_t v = 0;
  for (int i = 0; i < bytes; i++) v = v << 8 | p[i];
  return v;
}

/* 8 bytes of magic, then the chunk IHDR: its length, its name, width, height, bits, colour. */
static bool png_header(const struct content *b, struct image *out, char *cause) {
  uint8_t p[26];
  if (!take(b, 0, p, sizeof p, cause)) return false;
  if (memcmp(p + 12, "IHDR", 4) != 0) return fail(cause, "its header is damaged");
  out->width = big_endian(p + 16, 4);
  out->height = big_endian(p + 20, 4);
  out->channels = p[25] == 0 ? 1 : p[25] & 4 ? 4 : 3;
  return true;
}

static bool is_frame(uint8_t marker) {
  return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
}

/* A chain of markers, ff and another byte, most with a length behind them, up to the one of a frame: bits, height,
 * width, colours. */
static bool jpeg_header(const struct content *b, struct image *out, char *cause) {
  uint8_t p[10];
  int64_t at = 2;
  for (int i = 0; i < MARKERS; i++) {
    if (!take(b, at, p, 4, cause)) return false;
    if (p[0] != 0xff) break;
    if (p[1] == 0xff) { /* any number of them may stand before a marker */
      at++;
      continue;
    }
    if (p[1] == 0xd9 || p[1] == 0xda) break;
    if (is_frame(p[1])) {
      if (!take(b, at, p, sizeof p, cause)) return false;
      out->height = big_endian(p + 5, 2);
      out->width = big_endian(p + 7, 2);
      out->channels = p[9];
      if (p[4] != 8) return fail(cause, "its colours do not have 8 bits; convert it");
      if (p[9] == 1 || p[9] == 3) return true;
      return fail(cause, "it has neither one colour nor three, as of CMYK; convert it to RGB");
    }
    int64_t len = big_endian(p + 2, 2);
    if (p[1] == APP1 && !out->turn) out->turn = exif_orientation(b, at + 4, len - 2);
    at += 2 + len;
  }
  return fail(cause, "its header is damaged");
}

static bool refuse(const uint8_t *head, int64_t len, struct image *out, char *cause) {
  out->other = image_other(head, len);
  if (!out->other) return fail(cause, "its first bytes are neither PNG's nor JPEG's");
  snprintf(cause, IMAGE_CAUSE, "it is %s, which is not read", out->other->name);
  return false;
}

/* From 5 on, rows become columns. */
static void turn_size(struct image *m) {
  int64_t height = m->height;
  if (!m->turn) m->turn = 1;
  if (m->turn < 5) return;
  m->height = m->width;
  m->width = height;
}

bool image_header(const struct content *b, struct image *out, char cause[IMAGE_CAUSE]) {
  uint8_t head[16] = {0};
  int64_t len = b->len < (int64_t)sizeof head ? b->len : (int64_t)sizeof head;
  *out = (struct image){0};
  if (!take(b, 0, head, len, cause)) return false;
  if (!is_image(head, len)) return refuse(head, len, out, cause);
  out->jpeg = is_jpeg(head, len);
  if (!(out->jpeg ? jpeg_header(b, out, cause) : png_header(b, out, cause))) return false;
  turn_size(out);
  if (out->height < 1 || out->width < 1) return fail(cause, "it has no pixels");
  if (out->height <= IMAGE_PIXELS / out->width && b->len <= IMAGE_BYTES) return true;
  snprintf(cause, IMAGE_CAUSE, "it has %lld x %lld pixels and %lld bytes; at most %lld and %lld are read",
           (long long)out->height, (long long)out->width, (long long)b->len, (long long)IMAGE_PIXELS,
           (long long)IMAGE_BYTES);
  return false;
}

void image_channels(uint8_t *pixels, int64_t count, int channels) {
  const uint8_t *in = pixels;
  if (channels == 1)
    for (int64_t i = 0; i < count; i++, in += 4)
      pixels[i] = (uint8_t)((in[0] * 19595 + in[1] * 38470 + in[2] * 7471 + 0x8000) >> 16);
  if (channels == 3)
    for (int64_t i = 0; i < count; i++, in += 4) memmove(pixels + 3 * i, in, 3);
}

/* Where place `i` of the scaled axis lies between two pixels of `from`; `scale`: pixels in one of its places. */
struct between {
  int64_t low, high;
  float part;
};

static inline struct between between(int64_t i, float scale, int64_t from) {
  float at = ((float)i + 0.5f) * scale - 0.5f;
  int64_t low = at < 0 ? -1 : (int64_t)at; /* it is -0.5 at least */
  float part = at - (float)low;
  int64_t high = low + (part > 0);
  return (struct between){low > 0 ? low : 0, high < from ? high : from - 1, part};
}

static inline float mix(float a, float b, float part) { return a + (b - a) * part; }

static void store(enum dtype to, uint8_t *place, float value) {
  uint8_t whole = (uint8_t)lrintf(value);
  if (dtype_is_float(to))
    convert_numbers(to, place, DT_F32, &value, 1);
  else
    convert_numbers(to, place, DT_U8, &whole, 1);
}

void image_resize(enum dtype to, void *out, int64_t height, int64_t width, const uint8_t *pixels,
                  const struct image *from, int channels) {
  uint8_t *place = out;
  float down = (float)from->height / (float)height, right = (float)from->width / (float)width;
  for (int64_t y = 0; y < height; y++) {
    struct between v = between(y, down, from->height);
    const uint8_t *top = pixels + v.low * from->width * channels;
    const uint8_t *bottom = pixels + v.high * from->width * channels;
    for (int64_t x = 0; x < width; x++) {
      struct between h = between(x, right, from->width);
      for (int c = 0; c < channels; c++, place += dtype_size(to)) {
        int64_t low = h.low * channels + c, high = h.high * channels + c;
        float value = mix(mix(top[low], top[high], h.part), mix(bottom[low], bottom[high], h.part), v.part);
        if (to == DT_F32)
          memcpy(place, &value, sizeof value);
        else
          store(to, place, value);
      }
    }
  }
}
