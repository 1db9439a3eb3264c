/* SPDX-License-Identifier: Apache-2.0 */
/* How a training is going, as a bar that fits the terminal. */
#include "cli.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static int bar_columns; /* columns of the bar on the screen; 0: there is none */

int cli_columns(void) {
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

void cli_clear_bar(void) {
  if (!bar_columns) return;
  begin_line(cli_columns());
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

double cli_unsigned_nan(double value) { return isnan(value) ? NAN : value; }

const char *cli_clock_text(double seconds, char *text, size_t size) {
  long long s = seconds < 1e12 ? (long long)(seconds + 0.5) : 0;
  if (s >= 3600)
    snprintf(text, size, "%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
  else
    snprintf(text, size, "%lld:%02lld", s / 60, s % 60);
  return text;
}

/* What matters least is left out first: the other figures, the bar itself, the rate, the time. */
void cli_draw_bar(const struct dgc_progress *p) {
  enum { LEAST = 6, MOST = 24 };
  int width = cli_columns();
  if (!width) return;
  int64_t done = p->goal_steps ? p->total_steps : p->step, all = p->goal_steps ? p->goal_steps : p->steps;
  char to_go[32], bar[MOST + 1];
  struct bar_text head = {.limit = width - 1}, tail = {.limit = width - 1};
  if (head.limit >= (int)sizeof head.text) head.limit = tail.limit = sizeof head.text - 1;
  add(&head, "epoch %lld", (long long)p->epoch + 1);
  if (p->epochs) add(&head, "/%lld", (long long)p->epochs);
  tail.limit -= head.len;
  add(&tail, "  step %lld/%lld", (long long)done, (long long)all);
  add(&tail, "  loss %.4g", cli_unsigned_nan(p->loss));
  if (isfinite(p->seconds_to_go))
    add(&tail, "  %s to go", cli_clock_text(p->seconds_to_go, to_go, sizeof to_go));
  add(&tail, "  %.0f examples/s", p->examples_per_second);
  int room = tail.limit - tail.len - 2;
  int size = room > MOST ? MOST : room;
  if (size >= LEAST) {
    int full = all > 0 ? (int)((double)done / (double)all * size) : 0;
    for (int i = 0; i < size; i++) bar[i] = i < full ? '#' : '.';
    bar[size] = 0;
    add(&head, "  %s", bar);
    tail.limit -= size + 2;
  }
  for (int i = 0; p->nlosses > 1 && i < p->nlosses; i++)
    add(&tail, "  %s %.4g", p->losses[i].name, cli_unsigned_nan(p->losses[i].value));
  for (int i = 0; i < p->nmetrics; i++)
    add(&tail, "  %s %.4g", p->metrics[i].name, cli_unsigned_nan(p->metrics[i].value));
  begin_line(width);
  fprintf(stderr, "%s%s\033[K", head.text, tail.text);
  fflush(stderr);
  bar_columns = head.len + tail.len;
}
