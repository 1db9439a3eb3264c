/* SPDX-License-Identifier: Apache-2.0 */
/* Planning a gradient of conv_amx_sums.c: the line of places, the copies of x along it, who reads them, and where sums
 * lie. */
#include "kernels/cpu/conv_amx_plan.h"

#include "base/arena.h"
#include "kernels/cpu/piece_sums.h"

#if defined(__x86_64__) && defined(__linux__)

#include "kernels/cpu/conv_amx_line.h"

/* On one axis, copies and which of them a place of the kernel reads. */
struct axis_copy {
  int64_t begin, low, high, last; /* last: how far behind it is read */
};
struct axis_place {
  int64_t copy, behind;
};
struct axis {
  struct axis_copy *copies;
  struct axis_place *places;
  int64_t ncopies, rows;
};

/* Rows are as long as the output's, and so that a row that is read, to its end, meets nothing of its neighbours. */
static struct axis make_axis(struct arena *a, const struct conv_numbers *s, int i, bool own) {
  int64_t stride = s->stride[i];
  struct axis x = {.copies = arena_new_array(a, (size_t)s->kernel[i], struct axis_copy),
                   .places = arena_new_array(a, (size_t)s->kernel[i], struct axis_place),
                   .rows = s->output[i]};
  for (int64_t k = 0; k < s->kernel[i]; k++) {
    int64_t meets = k * s->kernel_dilation[i] - s->low[i], n = 0;
    while (n < x.ncopies && (own || (meets - x.copies[n].begin) % stride != 0)) n++;
    if (n == x.ncopies) x.copies[x.ncopies++].begin = meets;
    int64_t behind = (meets - x.copies[n].begin) / stride;
    x.copies[n].last = behind;
    x.places[k] = (struct axis_place){n, behind};
  }
  for (int64_t n = 0; n < x.ncopies; n++) {
    struct axis_copy *c = &x.copies[n];
    int64_t end = s->output[i] + c->last;
    c->low = greatest(-floor_quotient(c->begin, stride), 0);
    c->high = least(-floor_quotient(c->begin - s->input[i], stride), end);
    if (c->low >= c->high)
      c->low = c->high = 0;
    else
      x.rows = greatest(x.rows, greatest(c->high, end - c->low));
  }
  return x;
}

/* How far behind place k of the kernel reads this combination of copies; -1: it reads another one. */
static int64_t behind_of(const struct conv_amx_sums *s, const struct axis *x, const int64_t *of, int64_t k) {
  const int64_t *kernel = s->size.kernel;
  const struct axis_place p[AXES] = {x[0].places[k / kernel[2] / kernel[1]],
                                     x[1].places[k / kernel[2] % kernel[1]], x[2].places[k % kernel[2]]};
  if (p[0].copy != of[0] || p[1].copy != of[1] || p[2].copy != of[2]) return -1;
  return (p[0].behind * s->rows[1] + p[1].behind) * s->rows[2] + p[2].behind;
}

/* Copies are the combinations of those of the axes, and so are their readers. */
static void combine(struct conv_amx_sums *s, const struct axis *x) {
  const int64_t *kernel = s->size.kernel;
  for (int64_t n = 0; n < s->ncopies; n++) {
    struct copy *c = &s->copies[n];
    const int64_t of[AXES] = {n / x[2].ncopies / x[1].ncopies, n / x[2].ncopies % x[1].ncopies,
                              n % x[2].ncopies};
    c->first = s->nreaders;
    for (int i = 0; i < AXES; i++) {
      const struct axis_copy *one = &x[i].copies[of[i]];
      c->lain.begin[i] = one->begin, c->lain.low[i] = one->low, c->lain.high[i] = one->high;
      if (one->low > 0 || one->high < s->size.output[i] + one->last) s->gaps = true;
    }
    for (int odd = 0; odd < 2; odd++)
      for (int64_t k = 0; k < count_of(kernel); k++) {
        int64_t behind = behind_of(s, x, of, k);
        if (behind < 0 || behind % 2 != odd) continue;
        s->readers[s->nreaders++] = (struct copy_reader){k, behind};
        c->halo = greatest(c->halo, round_up(behind, DEPTH));
        c->odd = odd;
      }
    c->count = s->nreaders - c->first;
  }
}

/* How much is packed at a time. */
static void choose_places(struct conv_amx_sums *s) {
  enum { LEAST = 512, MOST = 4096, PIECE = 8192, MOST_KEPT = 1 << 20 };
  int64_t halo = 0, each = s->ncopies * s->channels * BLOCK * (int64_t)sizeof(uint16_t);
  for (int64_t n = 0; n < s->ncopies; n++) halo = greatest(halo, s->copies[n].halo);
  s->keeps = halo > 0 && each * (LEAST + halo) <= MOST_KEPT;
  s->at_once = s->keeps ? LEAST : least(greatest(LEAST, halo), MOST);
  s->piece = PIECE / s->at_once * s->at_once;
  s->side = (s->at_once + halo) * LANES + DEPTH;
}

/* Each place of the kernel has `own` copies, or they share them. NULL: the line would be too long. */
static struct conv_amx_sums *make(struct arena *a, const struct conv_numbers *size, bool own) {
  enum { MOST_PLACES = 1 << 30 };
  struct conv_amx_sums *s = arena_new(a, struct conv_amx_sums);
  struct axis x[AXES];
  double all = 1;
  *s = (struct conv_amx_sums){.size = *size,
                              .channels = blocks_of(size->channels, LANES),
                              .filters = blocks_of(size->filters, LANES),
                              .ncopies = 1};
  for (int i = 0; i < AXES; i++) {
    x[i] = make_axis(a, size, i, own);
    s->rows[i] = x[i].rows;
    s->ncopies *= x[i].ncopies;
    all *= (double)s->rows[i];
  }
  if (all > MOST_PLACES) return NULL;
  s->pitch = s->rows[0] * s->rows[1] * s->rows[2];
  s->gaps = s->pitch != count_of(size->output);
  s->copies = arena_new_array(a, (size_t)s->ncopies, struct copy);
  s->readers = arena_new_array(a, (size_t)count_of(size->kernel), struct copy_reader);
  combine(s, x);
  choose_places(s);
  return s;
}

/* In products of tiles, of which packing 16 channels of 32 places takes as long as some. */
static double cost_of(const struct conv_amx_sums *s) {
  enum { PACKING = 6 };
  double copies = PACKING * (double)s->ncopies, again = (double)(s->side / LANES) / (double)s->at_once;
  return (double)s->pitch * ((s->keeps ? copies : copies * again) + (double)s->nreaders * (double)s->filters);
}

static void number_sums(struct conv_amx_sums *s, struct arena *a) {
  s->sums_of = arena_new_array(a, (size_t)s->nreaders, int64_t);
  s->sums_step = arena_new_array(a, (size_t)s->nreaders, int64_t);
  for (int64_t n = 0; n < s->ncopies; n++)
    for (int64_t i = 0; i < s->copies[n].count; i++) {
      int64_t place = s->readers[s->copies[n].first + i].place;
      s->sums_of[place] = (s->copies[n].first * s->channels + i) * s->filters;
      s->sums_step[place] = s->copies[n].count * s->filters;
    }
}

/* Left to others are kernels of very many places, and those whose sums are many more as tiles than they are. */
const struct conv_amx_sums *conv_amx_sums_create(struct arena *a, const struct conv_numbers *size,
                                                 bool stored) {
  enum { MOST_PLACES = 4096, MOST_SUMS = 1 << 24 };
  int64_t places = count_of(size->kernel);
  if (places > MOST_PLACES ||
      blocks_of(size->channels, LANES) * blocks_of(size->filters, LANES) > MOST_SUMS / SUMS / places)
    return NULL;
  struct conv_amx_sums *s = make(a, size, false), *own = make(a, size, true);
  if (!s || (own && cost_of(own) < cost_of(s))) s = own;
  if (!s) return NULL;
  s->stored = stored;
  number_sums(s, a);
  return s;
}

bool conv_amx_sums_have_gaps(const struct conv_amx_sums *s) { return s->gaps; }

int64_t conv_amx_sums_count(const struct conv_amx_sums *s) {
  return s->nreaders * s->channels * s->filters * SUMS;
}

int64_t conv_amx_sums_levels(const struct conv_amx_sums *s, int64_t images) {
  return piece_sums_levels(blocks_of(images * s->pitch, s->piece));
}

int64_t conv_amx_sums_units(const struct conv_amx_sums *s) { return s->nreaders * s->channels; }

int64_t conv_amx_sums_row(const struct conv_amx_sums *s, int64_t unit) {
  return unit / s->channels * s->size.channels + unit % s->channels * LANES;
}

#endif
