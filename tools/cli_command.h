/* SPDX-License-Identifier: Apache-2.0 */
/* What a test's RUN line runs: a copy of this process that becomes the tool with other words. No program is started, no
 * shell; what may be run, read and written docs/security.md says. */
#ifndef DGC_TOOLS_CLI_COMMAND_H
#define DGC_TOOLS_CLI_COMMAND_H

#include "cli.h"

/* One file's run. */
struct command_runner {
  struct cli *c;
  const char *scratch;
  double seconds; /* a command may take */
  char *output, *errors;
  char why[256];
};

/* Carries out a command of dgc_test; `user` is the runner. False: it may not be run, and out->errors says why. What
 * `out` points to is the runner's, until its next command. */
bool command_run(void *user, const struct dgc_command *what, struct dgc_outcome *out);

/* A file in memory that holds `size` bytes, at its beginning; -1, with errno. */
int memory_file(const char *name, const void *data, size_t size);
/* What was written to such a file, with a NUL behind it, to be freed; NULL: it cannot be had. */
char *memory_contents(int fd, size_t *size);
/* Of a clock that never goes back. */
double seconds_now(void);

#endif
