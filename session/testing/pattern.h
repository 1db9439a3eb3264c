/* SPDX-License-Identifier: Apache-2.0 */
/* What stands behind `CHECK:`: text, {{regular expressions}} and [[VARIABLES]], as LLVM's FileCheck reads it. */
#ifndef DGC_SESSION_TESTING_PATTERN_H
#define DGC_SESSION_TESTING_PATTERN_H

#include "base/diag.h"
#include "base/map.h"

/* One part of a pattern. */
struct pattern_part {
  enum { PART_TEXT, PART_REGEX, PART_DEFINES, PART_USES } kind;
  const char *text; /* the text, the regular expression or, of PART_USES, the variable */
  const char *name; /* of PART_DEFINES */
};

struct pattern {
  struct loc loc;
  struct pattern_part *parts;
  int nparts;
};

/* Where a pattern was found. */
struct match {
  size_t at, len;
};

/* Reads what stands at `loc`; its line is the value of @LINE. False: it is none, which is an error in `d`. */
bool pattern_parse(struct arena *a, struct loc loc, struct pattern *out, struct diags *d);
/* The first place in `text` from `from` to before `end` where the pattern is, and of several there the longest.
 * Variables (name -> text) are read and, if it is found, set. -1: an error in `d`, for a variable that has no value;
 * else whether it was found. */
int pattern_find(struct arena *a, const struct pattern *p, const char *text, size_t from, size_t end,
                 struct map *variables, struct match *out, struct diags *d);
/* The pattern with the values of its variables, for messages. */
const char *pattern_shown(struct arena *a, const struct pattern *p, const struct map *variables);

#endif
