/* SPDX-License-Identifier: Apache-2.0 */
/* Cells as numbers: see cell.h. */
#include "runtime/data/cell.h"

#include "base/str.h"

#include <string.h>
#include <strings.h>

enum { CELL_LIMIT = 1100, PLAIN_DIGITS = 18, EXACT_POWER = 22 };

bool cell_whole(const char *p, int len, int64_t *out) {
  const char *end = p + len;
  bool negative = len && *p == '-';
  if (len && (*p == '-' || *p == '+')) p++;
  if (p == end) return false;
  int64_t n = 0;
  for (; p < end; p++) {
    if (*p < '0' || *p > '9' || __builtin_mul_overflow(n, 10, &n)) return false;
    int digit = *p - '0';
    if (__builtin_sub_overflow(n, digit, &n)) return false; /* negative numbers reach one further */
  }
  return *out = n, negative || !__builtin_sub_overflow(0, n, out);
}

/* What C takes beside it are no numbers of a table: "0x1p3", "nan(abc)". */
static bool is_written_as_number(const char *p, int len) {
  static const char *const words[] = {"inf", "infinity", "nan"};
  int sign = *p == '-' || *p == '+';
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strlen(words[i]) == (size_t)(len - sign) && strncasecmp(p + sign, words[i], strlen(words[i])) == 0)
      return true;
  for (int i = 0; i < len; i++)
    if (!p[i] || !strchr("0123456789+-.eE", p[i])) return false;
  return true;
}

bool cell_number(const char *p, int len, double *out) {
  char text[CELL_LIMIT + 1];
  if (len < 1 || len > CELL_LIMIT || !is_written_as_number(p, len)) return false;
  memcpy(text, p, (size_t)len);
  text[len] = 0;
  const char *end;
  *out = str_to_double(text, &end);
  return end == text + len;
}

static const char *take_digits(const char *p, const char *end, int64_t *n) {
  for (; p < end && *p >= '0' && *p <= '9'; p++) *n = *n * 10 + (*p - '0');
  return p;
}

static bool take_sign(const char **p, const char *end) {
  bool negative = *p < end && **p == '-';
  if (*p < end && (**p == '-' || **p == '+')) ++*p;
  return negative;
}

/* Where mantissa and power of ten are floats without rounding, their product or quotient is rounded once, so it is the
 * nearest: Clinger, How to Read Floating Point Numbers Accurately, 1990. */
bool cell_plain(const char **at, const char *end, char separator, bool *whole, int64_t *n, double *x) {
  static const double powers[EXACT_POWER + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                 1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                                 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
  const char *p = *at, *limit = end - p > PLAIN_DIGITS ? p + PLAIN_DIGITS : end;
  bool negative = take_sign(&p, limit);
  int64_t mantissa = 0, exponent = 0, written = 0;
  const char *first = p;
  p = take_digits(p, limit, &mantissa);
  bool digits = p > first;
  *whole = true;
  if (p < limit && *p == '.') {
    const char *point = ++p;
    p = take_digits(p, limit, &mantissa);
    exponent = point - p;
    digits |= p > point;
    *whole = false;
  }
  if (digits && p < limit && (*p == 'e' || *p == 'E')) {
    p++;
    bool down = take_sign(&p, limit);
    const char *power = p;
    p = take_digits(p, limit, &written);
    if (p == power || p - power > 3) return false;
    exponent += down ? -written : written;
    *whole = false;
  }
  if (!digits || (p < end && *p != separator) || (p == limit && p < end)) return false;
  bool exact = mantissa <= INT64_C(1) << 53 && exponent >= -EXACT_POWER && exponent <= EXACT_POWER;
  if (!*whole && !exact) return false;
  double value = exponent < 0 ? (double)mantissa / powers[-exponent] : (double)mantissa * powers[exponent];
  *n = negative ? -mantissa : mantissa;
  *x = negative ? -value : value;
  *at = p;
  return true;
}

bool cell_missing(const char *p, int len) {
  static const char *const words[] = {"", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "?"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strlen(words[i]) == (size_t)len && memcmp(words[i], p, (size_t)len) == 0) return true;
  return false;
}

/* Exactly `digits` of them, from `low` to `high`. */
static bool take_number(const char **p, const char *end, int digits, int low, int high, int *out) {
  if (end - *p < digits) return false;
  int n = 0;
  for (int i = 0; i < digits; i++, ++*p) {
    if (**p < '0' || **p > '9') return false;
    n = n * 10 + (**p - '0');
  }
  return *out = n, n >= low && n <= high;
}

static bool take_letter(const char **p, const char *end, const char *letters) {
  if (*p == end || !strchr(letters, **p) || !**p) return false;
  ++*p;
  return true;
}

/* Years begin in March, so that the day that some have is their last: days_from_civil of Howard Hinnant,
 * chrono-Compatible Low-Level Date Algorithms. */
static int64_t days_since_1970(int year, int month, int day) {
  if (month <= 2) year--;
  int era = year / 400, of_era = year - era * 400, of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
  int days = of_era * 365 + of_era / 4 - of_era / 100 + of_year;
  return (int64_t)era * 146097 + days - 719468;
}

/* "2026-11-23" or "23.11.2026" */
static bool take_date(const char **p, const char *end, int64_t *days) {
  static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  int year = 0, month = 0, day = 0;
  bool points = end - *p > 2 && (*p)[2] == '.';
  const char *between = points ? "." : "-";
  bool ok = points ? take_number(p, end, 2, 1, 31, &day) : take_number(p, end, 4, 1, 9999, &year);
  ok = ok && take_letter(p, end, between) && take_number(p, end, 2, 1, 12, &month) &&
       take_letter(p, end, between);
  if (!ok) return false;
  if (!(points ? take_number(p, end, 4, 1, 9999, &year) : take_number(p, end, 2, 1, 31, &day))) return false;
  bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
  if (day > lengths[month - 1] + (leap && month == 2)) return false;
  *days = days_since_1970(year, month, day);
  return true;
}

bool cell_date(const char *p, int len, int64_t *days) {
  const char *end = p + len;
  return take_date(&p, end, days) && p == end;
}

/* ".25" */
static bool take_fraction(const char **p, const char *end, double *out) {
  const char *point = *p;
  if (!take_letter(p, end, ".")) return true;
  while (*p < end && **p >= '0' && **p <= '9') ++*p;
  return *p - point > 1 && cell_number(point, (int)(*p - point), out) && *out < 1;
}

/* Nothing, "Z", "+02:00", "+0200" or "+02": minutes. */
static bool take_zone(const char **p, const char *end, int *minutes) {
  int hours, rest = 0;
  *minutes = 0;
  if (*p == end || take_letter(p, end, "Zz")) return true;
  bool west = **p == '-';
  if (!take_letter(p, end, "+-") || !take_number(p, end, 2, 0, 23, &hours)) return false;
  bool colon = take_letter(p, end, ":");
  if ((colon || *p < end) && !take_number(p, end, 2, 0, 59, &rest)) return false;
  *minutes = (west ? -1 : 1) * (hours * 60 + rest);
  return true;
}

bool cell_time(const char *p, int len, int64_t *seconds, double *fraction) {
  const char *end = p + len;
  int64_t days;
  int hour, minute, second = 0, zone;
  *fraction = 0;
  if (!take_date(&p, end, &days)) return false;
  *seconds = days * 86400;
  if (p == end) return true;
  if (!take_letter(&p, end, "Tt ") || !take_number(&p, end, 2, 0, 23, &hour) || !take_letter(&p, end, ":") ||
      !take_number(&p, end, 2, 0, 59, &minute))
    return false;
  if (take_letter(&p, end, ":") &&
      (!take_number(&p, end, 2, 0, 59, &second) || !take_fraction(&p, end, fraction)))
    return false;
  if (!take_zone(&p, end, &zone) || p < end) return false;
  *seconds += hour * 3600 + minute * 60 + second - zone * 60;
  return true;
}
