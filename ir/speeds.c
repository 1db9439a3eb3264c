/* SPDX-License-Identifier: Apache-2.0 */
/* Speeds, sizes and times as text. */
#include "ir/speeds.h"

#include <math.h>
#include <string.h>

const struct speeds speeds_default = {.flops = 100e9, .memory = 20e9, .link = 1.25e9, .delay = 50e-6};

struct unit {
  const char *name;
  double factor;
};

static const struct unit rates[] = {{"B/s", 1},    {"kB/s", 1e3},  {"MB/s", 1e6},
                                    {"GB/s", 1e9}, {"TB/s", 1e12}, {0}};
static const struct unit works[] = {
    {"FLOP/s", 1}, {"MFLOP/s", 1e6}, {"GFLOP/s", 1e9}, {"TFLOP/s", 1e12}, {0}};
static const struct unit times[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {0}};
static const struct unit sizes[] = {{"B", 1}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {0}};

/* ---- printing ---- */

/* Three digits and the unit in which it is 1 to 999; `space`: between them, and zeros behind the point stay. */
static void print_quantity(struct str *s, double value, const struct unit *units, const char *space) {
  const struct unit *u = units;
  while (u[1].name && value >= 999.5 * u->factor) u++;
  double scaled = value / u->factor;
  int decimals = scaled >= 99.95 ? 0 : scaled >= 9.995 ? 1 : 2;
  if (u == units && u->factor == 1 && scaled == floor(scaled)) decimals = 0; /* whole bytes */
  long long power = decimals == 2 ? 100 : decimals == 1 ? 10 : 1;
  long long fixed = llround(scaled * (double)power);
  if (!*space)
    while (decimals && fixed % 10 == 0) fixed /= 10, power /= 10, decimals--;
  str_printf(s, "%lld", fixed / power);
  if (decimals) str_printf(s, ".%0*lld", decimals, fixed % power);
  str_printf(s, "%s%s", space, u->name);
}

/* ---- reading ---- */

/* A decimal of digits; the characters it takes, 0: it is none. */
static size_t read_decimal(const char *text, double *out) {
  size_t len = strspn(text, "0123456789.");
  const char *end = text;
  if (len) *out = str_to_double(text, &end);
  return end == text + len ? len : 0;
}

static const char *unit_list(struct arena *a, const struct unit *units) {
  struct str s = str_make(a);
  for (const struct unit *u = units; u->name; u++)
    str_printf(&s, "%s%s", u == units ? "" : u[1].name ? ", " : " or ", u->name);
  return s.data;
}

/* What is predicted from more, or from less, is a number no longer. */
static const char *check_range(struct arena *a, const char *text, const char *what, const struct unit *units,
                               double value) {
  double least = units == times ? 0 : 1, most = units == times ? 1e6 : 1e18;
  struct str s = str_make(a);
  if (value >= least && value <= most) return NULL;
  str_printf(&s, "%s is from ", what);
  print_quantity(&s, least, units, "");
  str_put(&s, " to ");
  print_quantity(&s, most, units, "");
  str_printf(&s, ", not '%s'", text);
  return s.data;
}

/* A number with its unit; what is wrong with it, or NULL. */
static const char *read_quantity(struct arena *a, const char *text, const char *what, const char *example,
                                 const struct unit *units, double *out) {
  double value = 0;
  size_t len = read_decimal(text, &value);
  if (!len) return arena_printf(a, "%s is a number with its unit, as %s, not '%s'", what, example, text);
  for (const struct unit *u = units; u->name; u++) {
    if (strcmp(u->name, text + len) != 0) continue;
    *out = value * u->factor;
    return check_range(a, text, what, units, *out);
  }
  return arena_printf(a, "%s has the unit %s, as in %s, not '%s'", what, unit_list(a, units), example,
                      text + len);
}

/* The text is cut at its comma. */
static const char *read_pair(struct arena *a, const char *text, char **first, const char **second) {
  const char *comma = strchr(text, ',');
  *first = arena_strndup(a, text, comma ? (size_t)(comma - text) : strlen(text));
  return *second = comma ? comma + 1 : NULL;
}

const char *speeds_read_link(struct arena *a, const char *text, struct speeds *out) {
  char *first;
  const char *second, *wrong;
  if (!read_pair(a, text, &first, &second))
    return arena_printf(a, "write its bytes a second and its delay, as 25GB/s,5us, not '%s'", text);
  if ((wrong = read_quantity(a, first, "bandwidth", "25GB/s", rates, &out->link))) return wrong;
  return read_quantity(a, second, "the delay", "5us", times, &out->delay);
}

const char *speeds_read_speed(struct arena *a, const char *text, struct speeds *out) {
  char *first;
  const char *second, *wrong;
  if (!read_pair(a, text, &first, &second))
    return arena_printf(a, "write operations and bytes a second, as 100GFLOP/s,20GB/s, not '%s'", text);
  if ((wrong = read_quantity(a, first, "computing", "100GFLOP/s", works, &out->flops))) return wrong;
  return read_quantity(a, second, "memory", "20GB/s", rates, &out->memory);
}

void speeds_print_link(struct str *s, const struct speeds *m) {
  print_quantity(s, m->link, rates, "");
  str_putc(s, ',');
  print_quantity(s, m->delay, times, "");
}

void speeds_print_speed(struct str *s, const struct speeds *m) {
  print_quantity(s, m->flops, works, "");
  str_putc(s, ',');
  print_quantity(s, m->memory, rates, "");
}

void print_bytes(struct str *s, double bytes) { print_quantity(s, bytes, sizes, " "); }
void print_seconds(struct str *s, double seconds) { print_quantity(s, seconds, times, " "); }
