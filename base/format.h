/* SPDX-License-Identifier: Apache-2.0 */
/* printf's text, without its machinery where only words and whole numbers are printed: names of nodes are made so. */
#ifndef DGC_BASE_FORMAT_H
#define DGC_BASE_FORMAT_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* As vsnprintf: at most `size` bytes, the NUL among them. Returns how many bytes all of the text has, 0 after an
 * error. */
size_t format_text(char *out, size_t size, const char *fmt, va_list ap) __attribute__((format(printf, 3, 0)));

/* A number in decimals, without a NUL. Returns how many there are. */
enum { FORMAT_DIGITS = 20 };
size_t format_int(char out[FORMAT_DIGITS], int64_t value);

#endif
