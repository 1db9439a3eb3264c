/* SPDX-License-Identifier: Apache-2.0 */
/* What each step of a run took, and what it waited for: for those who look. Each device writes its own events. */
#include "base/clock.h"
#include "runtime/exec.h"
#include "runtime/exec_internal.h"

struct exec_trace *exec_trace_make(struct arena *a, const struct exec *e) {
  struct exec_trace *t = arena_new(a, struct exec_trace);
  t->rows = e->nlanes;
  t->events = arena_new_array(a, (size_t)e->nlanes + 1, struct exec_event *);
  t->counts = arena_new_array(a, (size_t)e->nlanes + 1, int);
  for (int i = 0; i < e->nlanes; i++) {
    size_t n = 0;
    while (e->lanes[i].commands[n].kind != COMMAND_END) n++;
    t->events[i] = arena_new_array(a, 2 * n + 1, struct exec_event); /* each may work, and be waited for */
  }
  return t;
}

void exec_trace(struct exec *e, struct exec_trace *t) {
  e->observers += (t != NULL) - (e->trace != NULL);
  e->trace = t;
  for (int i = 0; t && i < t->rows; i++) t->counts[i] = 0;
  for (int i = 0; i < e->nlanes; i++) e->lanes[i].traced_wait = NULL;
}

void exec_trace_stand(struct lane *lane, const struct command *c) {
  if (c->kind == COMMAND_END || lane->traced_wait == c) return;
  lane->traced_wait = c;
  lane->traced_since = clock_ns();
}

void exec_trace_command(struct exec *e, struct lane *lane, const struct command *c, uint64_t begin,
                        bool works) {
  struct exec_trace *t = e->trace;
  int row = (int)(lane - e->lanes);
  if (lane->traced_wait)
    t->events[row][t->counts[row]++] =
        (struct exec_event){lane->traced_since, begin, lane->device, (int)lane->traced_wait->step, true};
  lane->traced_wait = NULL;
  if (works)
    t->events[row][t->counts[row]++] =
        (struct exec_event){begin, clock_ns(), lane->device, (int)c->step, false};
}
