/* SPDX-License-Identifier: Apache-2.0 */
/* The words of a column of categories. */
#ifndef DGC_RUNTIME_DATA_VOCABULARY_H
#define DGC_RUNTIME_DATA_VOCABULARY_H

#include "base/map.h"

#include <stdint.h>

/* Each word has a number, from 1 on, in the order of the words' bytes. 0 is the empty word, and one that is not
 * among them. So numbers depend on which words there are, and not on the order of the rows. */
struct vocabulary {
  struct map numbers; /* values are numbers */
  const char **words; /* of number i + 1; set when it is closed */
  int count;
  bool closed;     /* no further words come in */
  int64_t unknown; /* how often a word was asked for that is not in the closed one */
};

struct vocabulary *vocabulary_make(struct arena *a);
/* Closed, with words in their order: copies. False if two are equal, one is empty, or they are not in order. */
bool vocabulary_set(struct vocabulary *v, const char *const *words, int count);
/* The number of a word, which comes in if the vocabulary is open: then numbers are in the order of coming, until
 * it is closed. */
int vocabulary_number(struct vocabulary *v, const char *word, int len);
/* Closes it. `*places`, in the vocabulary's arena: the final number of what was number i, count + 1 of them. */
void vocabulary_close(struct vocabulary *v, int **places);

#endif
