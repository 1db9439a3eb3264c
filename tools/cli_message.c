/* SPDX-License-Identifier: Apache-2.0 */
/* What is said on standard error: by the session, and of words of the command line. */
#include "cli.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* Of several processes the first one tells what goes on; the others say who they are, and why they end. */
static void put_message(const struct cli *c, const char *message) {
  for (const char *line = message, *end; c->process > 0 && *line; line = end) {
    end = strchrnul(line, '\n');
    end += *end != 0;
    if (c->evaluator)
      fprintf(stderr, "evaluator: %.*s", (int)(end - line), line);
    else
      fprintf(stderr, "process %d: %.*s", c->process, (int)(end - line), line);
  }
  if (!c->process) fputs(message, stderr);
}

void cli_message(void *user, const char *text) {
  cli_clear_bar();
  put_message(user, text);
}

void cli_set_look(struct cli *c) {
  char columns[16];
  snprintf(columns, sizeof columns, "%d", c->json ? 0 : cli_columns());
  dgc_set(c->session, "color", c->color && !c->json ? "true" : "false");
  dgc_set(c->session, "columns", columns);
}

int cli_status(struct cli *c, enum dgc_status status) {
  const char *message = dgc_message(c->session);
  bool fails = status && status != DGC_STOPPED;
  if (c->json) cli_keep_diagnostics(c);
  if (status) {
    free(c->message);
    c->message = strdup(message);
  }
  if (*message && (fails || !c->process)) {
    cli_clear_bar();
    put_message(c, message);
  }
  return status == DGC_OK && c->failed ? DGC_RUNTIME : (int)status;
}

int cli_usage(struct cli *c, const char *fmt, ...) {
  char message[1024];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(message, sizeof message, fmt, ap);
  va_end(ap);
  fprintf(stderr, "dgc %s: error: %s\n", c->verb->name, message);
  cli_keep_usage(c, message);
  return DGC_USAGE;
}
