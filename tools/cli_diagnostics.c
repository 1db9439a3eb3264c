/* SPDX-License-Identifier: Apache-2.0 */
/* Messages as JSON: of each error and warning where it is, what it says, its notes, and what to write instead. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

static void put_one(FILE *f, const struct dgc_diagnostic *d) {
  fprintf(f, "{\"severity\":\"%s\"", d->severity);
  if (d->file) {
    fputs(",\"file\":", f);
    cli_json_string(f, d->file);
    fprintf(f, ",\"line\":%d,\"column\":%d,\"end_column\":%d", d->line, d->column, d->end_column);
  }
  fputs(",\"message\":", f);
  cli_json_string(f, d->message);
  if (!d->fix) return;
  fputs(",\"fix\":{\"replace\":", f);
  cli_json_string(f, d->wrong);
  fputs(",\"with\":", f);
  cli_json_string(f, d->fix);
  fputc('}', f);
}

/* Notes and helps stand in the message before them, but a note behind a note is one of its own. */
static void put_all(FILE *f, const struct dgc_session *s) {
  struct dgc_diagnostic d = {.size = sizeof d};
  bool noted = false, of_note = false;
  int i = 0;
  for (; dgc_diagnostic(s, i, &d); i++) {
    bool note = strcmp(d.severity, "note") == 0;
    bool is_note = i && ((note && !of_note) || strcmp(d.severity, "help") == 0);
    if (!is_note) of_note = note;
    if (is_note)
      fputs(noted ? "," : ",\"notes\":[", f);
    else if (i)
      fputs(noted ? "]}," : "},", f);
    put_one(f, &d);
    if (is_note) fputc('}', f);
    noted = is_note;
  }
  if (i) fputs(noted ? "]}" : "}", f);
}

static void append(struct cli *c, const char *text) {
  size_t had = c->diagnostics ? strlen(c->diagnostics) : 0;
  char *more = *text ? realloc(c->diagnostics, had + strlen(text) + 2) : NULL;
  if (!more) return;
  c->diagnostics = more;
  if (had) more[had++] = ',';
  strcpy(more + had, text);
}

void cli_keep_diagnostics(struct cli *c) {
  char *text = NULL;
  size_t size;
  FILE *f = open_memstream(&text, &size);
  if (!f) return;
  put_all(f, c->session);
  if (fclose(f) == 0) append(c, text);
  free(text);
}

void cli_take_diagnostics(struct cli *c, struct cli *from) {
  if (from->diagnostics) append(c, from->diagnostics);
  free(from->diagnostics);
  from->diagnostics = NULL;
}

void cli_keep_usage(struct cli *c, const char *message) {
  char *text = NULL;
  size_t size;
  FILE *f = open_memstream(&text, &size);
  if (!f) return;
  put_one(f, &(struct dgc_diagnostic){.severity = "error", .message = message});
  fputc('}', f);
  if (fclose(f) == 0) append(c, text);
  free(text);
}

void cli_print_diagnostics(const struct cli *c) {
  if (c->diagnostics) printf(",\"diagnostics\":[%s]", c->diagnostics);
}

void cli_tell(struct cli *c, int code) {
  if (c->told || (!code && strcmp(c->verb->name, "check") != 0)) return;
  printf("{\"ok\":%s,\"diagnostics\":[%s]}\n", code ? "false" : "true", c->diagnostics ? c->diagnostics : "");
}
