/* SPDX-License-Identifier: Apache-2.0 */
/* How a training is going: a bar that fits the terminal, or a line for each epoch and evaluation. */
#include "cli.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* --- the bar --- */

static int bar_columns; /* columns of the bar on the screen; 0: there is none */

/* Of the terminal behind standard error; 0: it is none that a bar can be drawn on. */
static int columns(void) {
  const char *term = getenv("TERM"), *given = getenv("COLUMNS");
  struct winsize size = {0};
  if (!isatty(STDERR_FILENO) || (term && strcmp(term, "dumb") == 0)) return 0;
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  long n = given ? strtol(given, NULL, 10) : 0;
  return n > 0 && n < 10000 ? (int)n : 80;
}

/* Where the terminal has become narrower than the bar, it has wrapped it: all its rows go. */
static void begin_line(int width) {
  int rows = width > 0 && bar_columns > width ? (bar_columns - 1) / width : 0;
  fputc('\r', stderr);
  if (rows) fprintf(stderr, "\033[%dA\033[J", rows);
}

void cli_clear_progress(void) {
  if (!bar_columns) return;
  begin_line(columns());
  fputs("\033[K", stderr);
  bar_columns = 0;
}

/* A line that is put together from parts that fit. */
struct bar_text {
  char text[512];
  int len, limit;
};

/* Adds the part if there is room for all of it. */
__attribute__((format(printf, 2, 3))) static bool add(struct bar_text *l, const char *fmt, ...) {
  char part[256];
  va_list ap;
  va_start(ap, fmt);
  int n = vsnprintf(part, sizeof part, fmt, ap);
  va_end(ap);
  if (n < 0 || n >= (int)sizeof part || l->len + n > l->limit) return false;
  memcpy(l->text + l->len, part, (size_t)n + 1);
  l->len += n;
  return true;
}

/* "0:07", "12:07", "3:12:07" */
static const char *clock_text(double seconds, char *text, size_t size) {
  long long s = seconds < 1e12 ? (long long)(seconds + 0.5) : 0;
  if (s >= 3600)
    snprintf(text, size, "%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
  else
    snprintf(text, size, "%lld:%02lld", s / 60, s % 60);
  return text;
}

/* What matters least is left out first: the other figures, the bar itself, the rate, the time. */
static void print_bar(const struct dgc_progress *p, int width) {
  enum { LEAST = 6, MOST = 24 };
  char to_go[32], bar[MOST + 1];
  struct bar_text head = {.limit = width - 1}, tail = {.limit = width - 1};
  if (head.limit >= (int)sizeof head.text) head.limit = tail.limit = sizeof head.text - 1;
  add(&head, "epoch %lld", (long long)p->epoch + 1);
  if (p->epochs) add(&head, "/%lld", (long long)p->epochs);
  tail.limit -= head.len;
  add(&tail, "  step %lld/%lld", (long long)p->step, (long long)p->steps);
  add(&tail, "  loss %.4g", p->loss);
  if (isfinite(p->seconds_to_go)) add(&tail, "  %s to go", clock_text(p->seconds_to_go, to_go, sizeof to_go));
  add(&tail, "  %.0f examples/s", p->examples_per_second);
  int room = tail.limit - tail.len - 2;
  int size = room > MOST ? MOST : room;
  if (size >= LEAST) {
    int full = p->steps > 0 ? (int)(p->step * size / p->steps) : 0;
    for (int i = 0; i < size; i++) bar[i] = i < full ? '#' : '.';
    bar[size] = 0;
    add(&head, "  %s", bar);
    tail.limit -= size + 2;
  }
  for (int i = 0; p->nlosses > 1 && i < p->nlosses; i++)
    add(&tail, "  %s %.4g", p->losses[i].name, p->losses[i].value);
  for (int i = 0; i < p->nmetrics; i++) add(&tail, "  %s %.4g", p->metrics[i].name, p->metrics[i].value);
  begin_line(width);
  fprintf(stderr, "%s%s\033[K", head.text, tail.text);
  fflush(stderr);
  bar_columns = head.len + tail.len;
}

/* --- lines --- */

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
    fprintf(stderr, ", %s to go", clock_text(p->seconds_to_go, to_go, sizeof to_go));
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
  bool line = p->log_due;
  int width = line ? 0 : columns();
  if (!line && width) print_bar(p, width);
  if (!line) return true;
  cli_clear_progress();
  print_line(p);
  if (p->epoch_end || p->end) print_tasks(c->session);
  return true;
}
