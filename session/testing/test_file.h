/* SPDX-License-Identifier: Apache-2.0 */
/* What a file says that it wants to be tested for. */
#ifndef DGC_SESSION_TESTING_TEST_FILE_H
#define DGC_SESSION_TESTING_TEST_FILE_H

#include "base/diag.h"
#include "session/testing/pattern.h"

/* `# EXPECT loss 0.05 within 1e-3 after 100 steps with --batch 32` */
struct expected_number {
  struct loc loc;
  const char *name;
  enum { NUMBER_WITHIN, NUMBER_AT_LEAST, NUMBER_AT_MOST } how;
  double value, tolerance;
  const char *count, *unit; /* "100", "steps" or "epochs" */
  const char *options;      /* behind `with`; "" without */
};

/* `# error: text`, beside the line that it is about, or @-1 lines from it */
struct expected_message {
  const char *severity;
  int line; /* 0: wherever */
  struct pattern pattern;
};

struct run_text {
  struct loc loc;
  const char *text; /* continued lines are one */
};

struct test_file {
  const struct source *source;
  bool graph; /* and no model */
  struct run_text *runs;
  struct expected_number *numbers;
  struct expected_message *messages;
  int nruns, nnumbers, nmessages;
  const char *fails;    /* XFAIL: why, "" where it does not say; NULL: it should not */
  const char *requires; /* "llvm, shell"; NULL: nothing */
};

/* False: a line is wrong, which is an error in `d`. */
bool test_file_read(struct arena *a, const struct source *source, struct test_file *out, struct diags *d);
/* Whether there is anything to test. */
bool test_file_tests(const struct test_file *t);

#endif
