/* SPDX-License-Identifier: Apache-2.0 */
/* Draws the digits that the samples learn: IDX files of 28x28 grey images with labels.
 *
 *   make_digits FOLDER [OTHER]    OTHER gets the same files if it can be written
 *
 * A digit is a few pen strokes with shaken control points, made round, stretched, slanted, turned and moved, drawn with
 * a pen of random width and softness, and speckled. Integers only, so every machine draws the same bytes. */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  SIDE = 28,
  PIXELS = SIDE * SIDE,
  TRAIN = 8000,
  TEST = 2000,
  MAX_POINTS = 128,
  ONE = 256 /* a pixel */
};

struct stroke_point {
  int x, y;
};

/* In hundredths of the digit's box, y downwards. A closed stroke returns to its first point. */
struct stroke {
  enum { END, SHARP, ROUND, CLOSED } kind;
  int count;
  struct stroke_point points[12];
};

static const struct stroke shapes[10][3][3] = {
    {{{CLOSED, 8, {{50, 4}, {22, 14}, {10, 50}, {22, 86}, {50, 96}, {78, 86}, {90, 50}, {78, 14}}}},
     {{CLOSED, 6, {{58, 4}, {30, 22}, {20, 68}, {42, 97}, {70, 78}, {80, 30}}}},
     {{ROUND, 9, {{60, 8}, {30, 8}, {12, 45}, {22, 88}, {50, 97}, {82, 82}, {90, 45}, {72, 10}, {50, 4}}}}},
    {{{SHARP, 2, {{50, 4}, {50, 96}}}},
     {{SHARP, 3, {{28, 28}, {54, 4}, {54, 96}}}},
     {{SHARP, 3, {{32, 24}, {52, 4}, {52, 96}}}, {SHARP, 2, {{28, 96}, {78, 96}}}}},
    {{{ROUND, 6, {{14, 28}, {28, 2}, {74, 2}, {86, 32}, {58, 62}, {14, 95}}},
      {SHARP, 2, {{14, 95}, {88, 95}}}},
     {{ROUND, 8, {{16, 22}, {40, 0}, {80, 8}, {78, 42}, {40, 78}, {8, 94}, {22, 76}, {50, 90}}},
      {ROUND, 3, {{50, 90}, {66, 99}, {90, 90}}}},
     {{ROUND, 5, {{20, 18}, {50, 0}, {82, 22}, {66, 56}, {18, 92}}},
      {ROUND, 3, {{18, 92}, {50, 84}, {86, 96}}}}},
    {{{ROUND, 5, {{15, 16}, {50, -2}, {88, 20}, {72, 46}, {42, 47}}},
      {ROUND, 5, {{42, 47}, {80, 50}, {94, 76}, {60, 100}, {12, 88}}}},
     {{SHARP, 3, {{18, 7}, {82, 7}, {46, 42}}},
      {ROUND, 5, {{46, 42}, {84, 46}, {92, 78}, {58, 102}, {14, 88}}}},
     {{ROUND,
       9,
       {{22, 10}, {60, -2}, {84, 22}, {60, 44}, {36, 47}, {72, 50}, {90, 76}, {54, 102}, {18, 92}}}}},
    {{{SHARP, 3, {{60, 4}, {12, 66}, {92, 66}}}, {SHARP, 2, {{66, 36}, {66, 97}}}},
     {{SHARP, 3, {{24, 4}, {16, 56}, {88, 54}}}, {SHARP, 2, {{76, 6}, {70, 97}}}},
     {{SHARP, 4, {{66, 97}, {66, 4}, {10, 62}, {90, 62}}}}},
    {{{SHARP, 3, {{82, 6}, {28, 6}, {22, 45}}},
      {ROUND, 6, {{22, 45}, {50, 32}, {88, 46}, {88, 84}, {54, 101}, {14, 88}}}},
     {{SHARP, 2, {{34, 6}, {86, 6}}},
      {ROUND, 7, {{34, 6}, {26, 42}, {54, 38}, {86, 52}, {84, 84}, {50, 100}, {16, 90}}}},
     {{ROUND, 8, {{84, 8}, {36, 4}, {26, 26}, {40, 46}, {80, 52}, {82, 86}, {48, 100}, {16, 86}}}}},
    {{{ROUND, 9, {{70, 4}, {34, 22}, {12, 66}, {28, 98}, {68, 98}, {86, 72}, {62, 50}, {28, 56}, {16, 76}}}},
     {{ROUND, 4, {{56, 2}, {26, 34}, {16, 64}, {18, 76}}},
      {CLOSED, 5, {{18, 76}, {34, 54}, {72, 54}, {76, 90}, {36, 100}}}},
     {{ROUND, 8, {{82, 12}, {48, 2}, {16, 40}, {18, 92}, {62, 102}, {80, 70}, {50, 52}, {22, 70}}}}},
    {{{SHARP, 3, {{12, 7}, {88, 7}, {40, 97}}}},
     {{SHARP, 3, {{14, 8}, {86, 8}, {46, 97}}}, {SHARP, 2, {{34, 50}, {80, 50}}}},
     {{SHARP, 2, {{14, 22}, {16, 8}}}, {ROUND, 5, {{16, 8}, {60, 8}, {92, 6}, {60, 46}, {44, 97}}}}},
    {{{CLOSED, 6, {{50, 4}, {24, 12}, {24, 40}, {50, 48}, {76, 40}, {76, 12}}},
      {CLOSED, 6, {{50, 48}, {18, 58}, {16, 90}, {50, 97}, {84, 90}, {82, 58}}}},
     {{CLOSED,
       10,
       {{76, 16},
        {50, -2},
        {22, 18},
        {46, 44},
        {82, 68},
        {78, 96},
        {40, 102},
        {16, 82},
        {40, 54},
        {66, 36}}}},
     {{CLOSED, 5, {{46, 2}, {22, 24}, {48, 50}, {76, 30}, {70, 8}}},
      {CLOSED, 5, {{50, 46}, {20, 68}, {34, 100}, {74, 96}, {80, 64}}}}},
    {{{CLOSED, 6, {{50, 4}, {20, 12}, {18, 42}, {46, 54}, {78, 42}, {80, 14}}},
      {ROUND, 3, {{80, 20}, {80, 56}, {68, 97}}}},
     {{ROUND,
       10,
       {{80, 18},
        {52, -2},
        {16, 18},
        {22, 52},
        {60, 54},
        {82, 22},
        {84, 50},
        {74, 88},
        {50, 100},
        {22, 92}}}},
     {{CLOSED, 5, {{56, 4}, {22, 22}, {28, 52}, {70, 46}, {80, 14}}}, {SHARP, 2, {{78, 18}, {74, 97}}}}},
};

/* --- random numbers: splitmix64 --- */

static uint64_t state;

static uint64_t next_random(void) {
  uint64_t x = state += UINT64_C(0x9e3779b97f4a7c15);
  x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
  return x ^ x >> 31;
}

/* A number in [low, high]. */
static int between(int low, int high) { return low + (int)(next_random() % (uint64_t)(high - low + 1)); }

/* Mostly near 0, at most `limit` away from it. */
static int shake(int limit) { return (between(-limit, limit) + between(-limit, limit)) / 2; }

/* --- drawing; coordinates in 1/256 of a pixel --- */

struct pen {
  int xx, xy, yx, yy; /* a linear map, 1024 = 1 */
  int dx, dy;
  int radius, softness;
  int wobble; /* of control points, in hundredths of the box */
};

static struct pen random_pen(void) {
  struct pen p;
  int width = 1024 * between(62, 108) / 100, height = 1024 * between(84, 110) / 100;
  int slant = shake(380), turn = shake(220);
  p.xx = width;
  p.xy = slant - turn;
  p.yx = turn * width / 1024;
  p.yy = height;
  p.dx = shake(7 * ONE / 4);
  p.dy = shake(7 * ONE / 4);
  p.radius = between(ONE * 6 / 10, ONE * 17 / 10);
  p.softness = between(ONE * 6 / 10, ONE * 15 / 10);
  p.wobble = 8;
  return p;
}

/* The box is 20 pixels high, in the middle of the image. */
static struct stroke_point place(const struct pen *p, struct stroke_point at) {
  int x = (at.x - 50) * (16 * ONE) / 100, y = (at.y - 50) * (20 * ONE) / 100;
  return (struct stroke_point){SIDE * ONE / 2 + p->dx + (x * p->xx + y * p->xy) / 1024,
                               SIDE * ONE / 2 + p->dy + (x * p->yx + y * p->yy) / 1024};
}

/* Chaikin's rule: every corner is cut at a quarter of its sides; the ends of an open line stay. */
static int cut_corners(struct stroke_point *points, int count, bool closed) {
  struct stroke_point out[MAX_POINTS];
  int n = 0;
  if (!closed) out[n++] = points[0];
  for (int i = 0; i + 1 < count + closed && n + 3 < MAX_POINTS; i++) {
    struct stroke_point a = points[i], b = points[(i + 1) % count];
    out[n++] = (struct stroke_point){(3 * a.x + b.x) / 4, (3 * a.y + b.y) / 4};
    out[n++] = (struct stroke_point){(a.x + 3 * b.x) / 4, (a.y + 3 * b.y) / 4};
  }
  if (!closed) out[n++] = points[count - 1];
  memcpy(points, out, (size_t)n * sizeof *out);
  return n;
}

/* Lowers each pixel's squared distance to the pen's line. */
static void draw_line(int64_t *distance, struct stroke_point a, struct stroke_point b) {
  const int reach = 4 * ONE;
  int left = (a.x < b.x ? a.x : b.x) - reach, right = (a.x > b.x ? a.x : b.x) + reach;
  int top = (a.y < b.y ? a.y : b.y) - reach, bottom = (a.y > b.y ? a.y : b.y) + reach;
  int64_t vx = b.x - a.x, vy = b.y - a.y, length = vx * vx + vy * vy;
  for (int row = 0; row < SIDE; row++) {
    int y = row * ONE + ONE / 2;
    if (y < top || y > bottom) continue;
    for (int column = 0; column < SIDE; column++) {
      int x = column * ONE + ONE / 2;
      if (x < left || x > right) continue;
      int64_t px = x - a.x, py = y - a.y, along = px * vx + py * vy;
      if (along < 0 || length == 0) along = 0;
      if (along > length) along = length;
      int64_t t = length ? along * 4096 / length : 0;
      int64_t ex = px - vx * t / 4096, ey = py - vy * t / 4096, d = ex * ex + ey * ey;
      if (d < distance[row * SIDE + column]) distance[row * SIDE + column] = d;
    }
  }
}

static int square_root(int64_t n) {
  int64_t root = 0;
  for (int64_t bit = 1 << 20; bit > 0; bit >>= 1)
    if ((root + bit) * (root + bit) <= n) root += bit;
  return (int)root;
}

static void draw_digit(int digit, uint8_t *image) {
  int64_t distance[PIXELS];
  for (int i = 0; i < PIXELS; i++) distance[i] = INT32_MAX;
  struct pen pen = random_pen();
  const struct stroke *strokes = shapes[digit][between(0, 2)];
  struct stroke_point last = {0, 0}, moved = {0, 0}; /* strokes that join stay joined */
  for (int s = 0; s < 3 && strokes[s].kind != END; s++) {
    struct stroke_point points[MAX_POINTS];
    int n = strokes[s].count;
    bool closed = strokes[s].kind == CLOSED;
    for (int i = 0; i < n; i++) {
      struct stroke_point at = strokes[s].points[i];
      bool joined = s > 0 && i == 0 && at.x == last.x && at.y == last.y;
      struct stroke_point shaken = {at.x + shake(pen.wobble), at.y + shake(pen.wobble)};
      points[i] = joined ? moved : place(&pen, shaken);
    }
    last = strokes[s].points[n - 1];
    moved = points[n - 1];
    for (int round = 0; round < 3 && strokes[s].kind != SHARP; round++) n = cut_corners(points, n, closed);
    for (int i = 0; i + 1 < n + closed; i++) draw_line(distance, points[i], points[(i + 1) % n]);
  }
  int ink = between(150, 255), noise = between(4, 40);
  for (int i = 0; i < PIXELS; i++) {
    int depth = (pen.radius - square_root(distance[i])) * 255 / pen.softness + 128;
    int grey = (depth < 0 ? 0 : depth > 255 ? 255 : depth) * ink / 255;
    if (grey > 0 || between(0, 15) == 0) grey += shake(noise);
    image[i] = (uint8_t)(grey < 0 ? 0 : grey > 255 ? 255 : grey);
  }
}

/* --- files --- */

static void put_size(uint8_t *p, uint32_t n) {
  for (int i = 0; i < 4; i++) p[i] = (uint8_t)(n >> (24 - 8 * i));
}

static bool write_idx(const char *folder, const char *name, const uint8_t *data, int rows, bool images) {
  char path[4096];
  uint8_t header[16] = {0, 0, 8, images ? 3 : 1};
  put_size(header + 4, (uint32_t)rows);
  put_size(header + 8, SIDE);
  put_size(header + 12, SIDE);
  size_t header_len = images ? 16 : 8, len = (size_t)rows * (images ? PIXELS : 1);
  if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
    return errno = ENAMETOOLONG, false;
  FILE *f = fopen(path, "wb");
  if (!f) return false;
  bool ok = fwrite(header, 1, header_len, f) == header_len && fwrite(data, 1, len, f) == len;
  if (fclose(f) != 0) ok = false;
  if (!ok) remove(path);
  return ok;
}

static bool write_all(const char *folder, const uint8_t *images, const uint8_t *labels) {
  return write_idx(folder, "train-images.idx", images, TRAIN, true) &&
         write_idx(folder, "train-labels.idx", labels, TRAIN, false) &&
         write_idx(folder, "test-images.idx", images + (size_t)TRAIN * PIXELS, TEST, true) &&
         write_idx(folder, "test-labels.idx", labels + TRAIN, TEST, false);
}

int main(int argc, char **argv) {
  static uint8_t images[(TRAIN + TEST) * PIXELS], labels[TRAIN + TEST];
  if (argc < 2 || argc > 3) {
    fputs("usage: make_digits FOLDER [OTHER]\n", stderr);
    return 2;
  }
  for (int i = 0; i < TRAIN + TEST; i++) {
    state = (uint64_t)i << 32;
    labels[i] = (uint8_t)between(0, 9);
    draw_digit(labels[i], images + (size_t)i * PIXELS);
  }
  if (!write_all(argv[1], images, labels)) {
    fprintf(stderr, "make_digits: cannot write the digits into %s: %s\n", argv[1], strerror(errno));
    return 1;
  }
  if (argc == 3 && !write_all(argv[2], images, labels))
    fprintf(stderr, "make_digits: note: %s has no copy of the digits: %s\n", argv[2], strerror(errno));
  return 0;
}
