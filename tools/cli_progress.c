/* SPDX-License-Identifier: Apache-2.0 */
/* How a training is going: a bar, or a line for each epoch and evaluation. */
#include "cli.h"

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

static void print_figures(const struct dgc_metric *m, int count) {
  for (int i = 0; i < count; i++) fprintf(stderr, "  %s %.4g", m[i].name, m[i].value);
}

/* Seconds of the epoch, of all, and of what is left. */
static void print_times(const struct dgc_progress *p) {
  char to_go[32];
  fprintf(stderr, "  %.0f examples/s  %.1f s", p->examples_per_second, p->epoch_seconds);
  if (p->seconds - p->epoch_seconds >= 0.05) fprintf(stderr, ", %.1f s in all", p->seconds);
  if (!p->end && p->seconds_to_go >= 1)
    fprintf(stderr, ", %s to go", cli_clock_text(p->seconds_to_go, to_go, sizeof to_go));
  fputc('\n', stderr);
}

static void print_line(const struct dgc_progress *p) {
  fprintf(stderr, "epoch %lld", (long long)p->epoch + 1);
  if (p->epochs) fprintf(stderr, "/%lld", (long long)p->epochs);
  if (!p->epoch_end) fprintf(stderr, "  step %lld/%lld", (long long)p->step, (long long)p->steps);
  fprintf(stderr, "  loss %.4g", p->loss);
  if (p->nlosses > 1) print_figures(p->losses, p->nlosses);
  print_figures(p->metrics, p->nmetrics);
  if (p->evaluated) print_figures(p->validation, p->nvalidation);
  if (p->improved) fputs("  (best)", stderr);
  print_times(p);
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
