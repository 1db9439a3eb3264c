/* SPDX-License-Identifier: Apache-2.0 */
/* The standard library's files, which are compiled into the binary, and where their definitions stand. */
#ifndef DGC_FRONTEND_LIBRARY_H
#define DGC_FRONTEND_LIBRARY_H

#include "base/embed.h"

#include <stdint.h>

extern const struct embedded frontend_library[];

/* Bytes of a file: from the word that begins a definition to where the next one begins, and its name. */
struct definition {
  uint32_t begin, end, name_begin, name_end;
};

/* "layer" of a line "layer dense(x) {", NULL where no definition begins: it begins at the start of a line. */
const char *library_word(const char *line);

/* All definitions of a file, in its order; returns how many it has, of which the first `cap` are in `out`. */
size_t library_definitions(const struct embedded *file, struct definition *out, size_t cap);

#endif
