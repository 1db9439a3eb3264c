/* SPDX-License-Identifier: Apache-2.0 */
/* Something to be told, as lines for people and as JSON: one tree, two printers. */
#ifndef DGC_SESSION_FACTS_H
#define DGC_SESSION_FACTS_H

#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

enum fact_kind { FACT_TEXT, FACT_NUMBER, FACT_FLAG, FACT_LIST, FACT_OBJECT };

struct fact {
  enum fact_kind kind;
  const char *key;  /* in an object; NULL in a list */
  const char *line; /* for people; what has none shows only what is inside of it */
  const char *text;
  int64_t number;
  struct fact *first, **last, *next; /* of a list or object */
};

struct fact *fact_root(struct arena *a);
/* Each appends to a list or object. Texts are kept as they are; NULL leaves the fact out. */
void fact_text(struct arena *a, struct fact *in, const char *key, const char *text);
void fact_number(struct arena *a, struct fact *in, const char *key, int64_t number);
void fact_flag(struct arena *a, struct fact *in, const char *key, bool flag);
struct fact *fact_list(struct arena *a, struct fact *in, const char *key, const char *line);
struct fact *fact_object(struct arena *a, struct fact *in, const char *key, const char *line);

void facts_print(struct str *s, const struct fact *root);
void facts_print_json(struct str *s, const struct fact *root);

#endif
