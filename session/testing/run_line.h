/* SPDX-License-Identifier: Apache-2.0 */
/* A line `RUN:` of a test: commands that hand on what they print, without a shell. docs/testing.md has the grammar. */
#ifndef DGC_SESSION_TESTING_RUN_LINE_H
#define DGC_SESSION_TESTING_RUN_LINE_H

#include "base/diag.h"

/* What %NAME stands for. */
struct substitution {
  const char *name, *value;
};

struct run_command {
  enum { RUN_VERB, RUN_CHECK, RUN_GOLDEN } kind;
  const char **words; /* of RUN_VERB: the verb and what follows; else what follows */
  int nwords;
  bool fails;        /* behind `not`: it must */
  bool joined;       /* 2>&1 */
  const char *input; /* a file, or NULL: what the command before prints */
  const char *output;
};

struct run_line {
  struct loc loc;
  struct run_command *commands;
  int ncommands;
};

/* Reads a line. False: it is none that may be run, which is an error in `d`. */
bool run_line_parse(struct arena *a, struct loc loc, const char *text, const struct substitution *all,
                    int count, struct run_line *out, struct diags *d);

#endif
