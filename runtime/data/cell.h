/* SPDX-License-Identifier: Apache-2.0 */
/* The cells of a table: what one says, as a number. Cells are bytes without an end; blanks around them are gone. */
#ifndef DGC_RUNTIME_DATA_CELL_H
#define DGC_RUNTIME_DATA_CELL_H

#include <stdbool.h>
#include <stdint.h>

/* A whole number that i64 holds. */
bool cell_whole(const char *p, int len, int64_t *out);
/* A decimal number with a point, and with a power of ten or none, rounded to the nearest f64; also inf, infinity and
 * nan, in letters of either case. */
bool cell_number(const char *p, int len, double *out);
/* The number that begins at `*p` and ends before `separator` or at `end`, if it has at most 18 digits and an
 * exponent that rounds once; then `*p` is where it ends. It is in `*x`, and in `*n` if it is written as a whole
 * one, `*whole`. */
bool cell_plain(const char **p, const char *end, char separator, bool *whole, int64_t *n, double *x);
/* Nothing, or what stands for it: NA, N/A, NaN, nan, null, NULL, None, ? */
bool cell_missing(const char *p, int len);
/* "2026-11-23": days since 1970-01-01, of the Gregorian calendar. Years 0001 to 9999. */
bool cell_date(const char *p, int len, int64_t *days);
/* A date, a T or a blank, "14:05", "14:05:30" or "14:05:30.25", then nothing, Z, or the distance from UTC, "+02:00" or
 * "-0530": seconds since 1970-01-01T00:00Z. Without a distance it is UTC. Also a date alone, as it begins. The
 * fraction is 0 <= *fraction < 1. */
bool cell_time(const char *p, int len, int64_t *seconds, double *fraction);

#endif
