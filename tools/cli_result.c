/* SPDX-License-Identifier: Apache-2.0 */
/* What a training has come to, as JSON: printed whichever way it ended. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

/* The last report. The library's arrays live as long as a report. */
static struct {
  bool any;
  struct dgc_progress p;
  struct dgc_metric *losses, *metrics;
} last;

static void keep(struct dgc_metric **to, const struct dgc_metric *from, int count) {
  struct dgc_metric *room = count ? realloc(*to, (size_t)count * sizeof *room) : NULL;
  if (!room) return;
  memcpy(room, from, (size_t)count * sizeof *room);
  *to = room;
}

void cli_keep_result(const struct dgc_progress *p) {
  last.any = true;
  last.p = *p;
  keep(&last.losses, p->losses, p->nlosses);
  keep(&last.metrics, p->metrics, p->nmetrics);
}

static void put_figures(const char *name, const struct dgc_metric *m, int count) {
  printf(",\"%s\":{", name);
  for (int i = 0; m && i < count; i++) {
    if (i) putchar(',');
    cli_json_string(stdout, m[i].name);
    putchar(':');
    cli_json_number(stdout, m[i].value);
  }
  putchar('}');
}

static void put_training(struct cli *c) {
  const struct dgc_progress *p = &last.p;
  struct dgc_metric best;
  int64_t step;
  printf(",\"training\":{\"step\":%lld,\"epoch\":%lld,\"loss\":", (long long)p->total_steps,
         (long long)p->epoch + p->epoch_end);
  cli_json_number(stdout, p->loss);
  put_figures("losses", last.losses, p->nlosses);
  put_figures("metrics", last.metrics, p->nmetrics);
  fputs(",\"seconds\":", stdout);
  cli_json_number(stdout, p->seconds);
  fputs(",\"examples_per_second\":", stdout);
  cli_json_number(stdout, p->examples_per_second);
  if (dgc_best(c->session, &best, &step)) {
    fputs(",\"best\":{\"metric\":", stdout);
    cli_json_string(stdout, best.name);
    fputs(",\"value\":", stdout);
    cli_json_number(stdout, best.value);
    printf(",\"step\":%lld}", (long long)step);
  }
  putchar('}');
}

void cli_print_result(struct cli *c, int code, const struct dgc_metric *metrics, int count, int64_t rows) {
  static const char *const ends[] = {"done", "input", "usage", "runtime", "mismatch", "stopped"};
  bool known = code >= 0 && code < (int)(sizeof ends / sizeof *ends);
  printf("{\"end\":\"%s\"", known ? ends[code] : "failed");
  if (metrics) printf(",\"rows\":%lld", (long long)rows);
  for (int i = 0; metrics && i < count; i++) {
    putchar(',');
    cli_json_string(stdout, metrics[i].name);
    putchar(':');
    cli_json_number(stdout, metrics[i].value);
  }
  if (last.any) put_training(c);
  if (code) {
    fputs(",\"message\":", stdout);
    cli_json_string(stdout, c->message ? c->message : "");
  }
  cli_print_tasks_json(c->session);
  cli_print_diagnostics(c);
  c->told = true;
  fputs("}\n", stdout);
}
