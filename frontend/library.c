/* SPDX-License-Identifier: Apache-2.0 */
/* Where the library's definitions stand, without parsing them: a compilation parses those whose names it looks up. */
#include "frontend/library.h"

#include <string.h>

const char *library_word(const char *line) {
  static const char *const words[] = {"function", "layer", "initializer", "optimizer"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    size_t n = strlen(words[i]);
    if (strncmp(line, words[i], n) == 0 && line[n] == ' ') return words[i];
  }
  return NULL;
}

size_t library_definitions(const struct embedded *file, struct definition *out, size_t cap) {
  size_t count = 0;
  for (const char *line = file->text, *end; line; line = end ? end + 1 : NULL) {
    end = strchr(line, '\n');
    const char *word = library_word(line);
    if (!word) continue;
    const char *name = line + strlen(word) + 1;
    uint32_t begin = (uint32_t)(line - file->text), at = (uint32_t)(name - file->text);
    if (count && count <= cap) out[count - 1].end = begin;
    if (count < cap)
      out[count] = (struct definition){begin, (uint32_t)file->len, at, at + (uint32_t)strcspn(name, "( ")};
    count++;
  }
  return count;
}
