/* SPDX-License-Identifier: Apache-2.0 */
/* How a training is going: a bar, or a line for each epoch and evaluation. */
#include "cli.h"

#include <stdarg.h>
#include <string.h>

/* "12.3 MB" */
static void print_bytes(double bytes) {
  static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB"};
  size_t unit = 0;
  for (; bytes >= 1000 && unit + 1 < sizeof units / sizeof *units; unit++) bytes /= 1000;
  fprintf(stderr, "%.*f %s", unit > 0, bytes, units[unit]);
}

/* Of many tasks those that compute longest. */
static void print_tasks(struct dgc_session *s) {
  enum { SHOWN = 16 };
  int count, slowest = 0, shown = 0;
  const struct dgc_task *tasks = dgc_tasks(s, &count);
  for (int i = 0; i < count; i++) {
    const struct dgc_task *t = &tasks[i];
    double all = t->computing + t->waiting + t->other, percent = all > 0 ? 100 / all : 0;
    if (t->slower > tasks[slowest].slower) slowest = i;
    if (count > SHOWN && (t->slower < 1.25 || shown == SHOWN)) continue;
    shown++;
    fprintf(stderr, "  %s computes %.0f %%, waits %.0f %%", t->name, t->computing * percent,
            t->waiting * percent);
    if (t->waits_for >= 0 && t->longest * percent >= 1)
      fprintf(stderr, " (%.0f %% for %s)", t->longest * percent, tasks[t->waits_for].name);
    fputs(", sent ", stderr);
    print_bytes((double)t->sent);
    fputc('\n', stderr);
  }
  if (count < 2) return;
  const struct dgc_task *t = &tasks[slowest];
  if (t->slower < 1.25 || t->followers == 0) return;
  fprintf(stderr, "  %s is %.1f times slower than the others; ", t->name, t->slower);
  if (t->followers == count - 1)
    fputs("all wait for it\n", stderr);
  else
    fprintf(stderr, "%d of %d wait for it\n", t->followers, count - 1);
}

/* A line of parts. In a terminal that is too narrow for all of them, the rest goes to further lines. */
struct wrapped_line {
  int at, limit; /* 0: no limit */
};

__attribute__((format(printf, 2, 3))) static void put(struct wrapped_line *l, const char *fmt, ...) {
  char part[256];
  va_list ap;
  va_start(ap, fmt);
  int n = vsnprintf(part, sizeof part, fmt, ap);
  va_end(ap);
  if (l->limit && l->at && l->at + n > l->limit) {
    l->at = fprintf(stderr, "\n   %s", part + strspn(part, " ")) - 1;
    return;
  }
  fputs(part, stderr);
  l->at += n;
}

static void put_figures(struct wrapped_line *l, const struct dgc_metric *m, int count) {
  for (int i = 0; i < count; i++) put(l, "  %.200s %.4g", m[i].name, cli_unsigned_nan(m[i].value));
}

/* Seconds of the epoch, of all, and of what is left. */
static void put_times(struct wrapped_line *l, const struct dgc_progress *p) {
  char to_go[32];
  bool more = p->seconds - p->epoch_seconds >= 0.05, goes_on = !p->end && p->seconds_to_go >= 1;
  put(l, "  %.0f examples/s", p->examples_per_second);
  put(l, "  %.1f s%s", p->epoch_seconds, more || goes_on ? "," : "");
  if (more) put(l, " %.1f s in all%s", p->seconds, goes_on ? "," : "");
  if (goes_on) put(l, " %s to go", cli_clock_text(p->seconds_to_go, to_go, sizeof to_go));
}

static void print_line(const struct dgc_progress *p) {
  struct wrapped_line l = {.limit = cli_columns()};
  put(&l, "epoch %lld", (long long)p->epoch + 1);
  if (p->epochs) put(&l, "/%lld", (long long)p->epochs);
  if (p->goal_steps)
    put(&l, "  step %lld/%lld", (long long)p->total_steps, (long long)p->goal_steps);
  else if (!p->epoch_end)
    put(&l, "  step %lld/%lld", (long long)p->step, (long long)p->steps);
  put(&l, "  loss %.4g", cli_unsigned_nan(p->loss));
  if (p->nlosses > 1) put_figures(&l, p->losses, p->nlosses);
  put_figures(&l, p->metrics, p->nmetrics);
  if (p->evaluated) put_figures(&l, p->validation, p->nvalidation);
  if (p->improved) put(&l, "  (best)");
  put_times(&l, p);
  fputc('\n', stderr);
}

bool cli_progress(void *user, const struct dgc_progress *p) {
  struct cli *c = user;
  cli_training(c->session);
  cli_keep_result(p);
  cli_events_report(c, p);
  if (c->process > 0) return true;
  if (!cli_log_report(c, p)) {
    c->refused = true;
    return false;
  }
  if (c->quiet) return true;
  if (!p->log_due) {
    cli_draw_bar(p);
    return true;
  }
  cli_clear_bar();
  print_line(p);
  if (p->epoch_end || p->end) print_tasks(c->session);
  return true;
}
