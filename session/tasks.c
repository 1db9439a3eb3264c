/* SPDX-License-Identifier: Apache-2.0 */
/* What the tasks of a cluster of processes have done with their time: each tells the first one, which compares them. */
#include "session/tasks.h"

#include "session/state/settlement.h"
#include "session/state/tasks.h"

#include "ir/target.h"
#include "runtime/mpi/transport.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- comparing --- */

static bool same_job(struct arena *scratch, const struct dgc_task *a, const struct dgc_task *b) {
  struct device_name x, y;
  return device_name_parse(scratch, a->name, &x) && device_name_parse(scratch, b->name, &y) && x.job &&
         y.job && strcmp(x.job, y.job) == 0;
}

static int by_computing(const void *x, const void *y) {
  double a = (*(struct dgc_task *const *)x)->computing, b = (*(struct dgc_task *const *)y)->computing;
  return a < b ? -1 : a > b;
}

/* Each against the median of the others: the lower one of an even number. */
static void compare_job(struct dgc_task **job, int count) {
  qsort(job, (size_t)count, sizeof *job, by_computing);
  for (int i = 0; i < count; i++) {
    int middle = (count - 2) / 2;
    double others = count > 1 ? job[middle < i ? middle : middle + 1]->computing : 0;
    job[i]->slower = others > 0 ? job[i]->computing / others : 0;
  }
}

/* Whether a task waits for `whom`, or for one that does, and so on: that of which it waits longest, if it waits for a
 * tenth of its time. */
static bool follows(const struct dgc_task *tasks, int count, int task, int whom) {
  for (int hops = 0; hops < count && task != whom; hops++) {
    const struct dgc_task *t = &tasks[task];
    if (t->waits_for < 0 || t->longest < 0.1 * (t->computing + t->waiting + t->other)) return false;
    task = t->waits_for;
  }
  return task == whom;
}

void tasks_judge(struct arena *scratch, struct dgc_task *tasks, int count) {
  struct dgc_task **job = arena_new_array(scratch, (size_t)count, struct dgc_task *);
  int slowest = 0;
  for (int i = 0, n; i < count; i += n) {
    for (n = 0; i + n < count && (n == 0 || same_job(scratch, &tasks[i], &tasks[i + n])); n++)
      job[n] = &tasks[i + n];
    compare_job(job, n);
  }
  for (int i = 0; i < count; i++) {
    tasks[i].followers = 0;
    if (tasks[i].slower > tasks[slowest].slower) slowest = i;
  }
  for (int i = 0; i < count; i++)
    tasks[slowest].followers += i != slowest && follows(tasks, count, i, slowest);
}

/* --- collecting --- */

void tasks_begin(struct dgc_session *s) {
  struct tally *t = s->transport ? s->transport->tally : NULL;
  s->tasks->count = 0;
  if (!t) return;
  t->computing = 0;
  t->sent = 0;
  memset(t->waiting, 0, (size_t)s->transport->size * sizeof *t->waiting);
}

/* "computing waiting waits_for longest sent", and how long all of it took: times in nanoseconds. */
static const char *tally_text(struct arena *a, const struct transport *t, double seconds) {
  const struct tally *own = t->tally;
  uint64_t waiting = 0, longest = 0;
  int waits_for = -1;
  for (int i = 0; i < t->size; i++) {
    if (i == t->rank) continue;
    waiting += own->waiting[i];
    if (own->waiting[i] <= longest) continue;
    longest = own->waiting[i];
    waits_for = i;
  }
  return arena_printf(a, "%llu %llu %d %llu %lld %llu", (unsigned long long)own->computing,
                      (unsigned long long)waiting, waits_for, (unsigned long long)longest,
                      (long long)own->sent, (unsigned long long)(seconds * 1e9));
}

static void read_tally(struct dgc_task *t, const char *text) {
  unsigned long long computing, waiting, longest, all;
  long long sent;
  if (sscanf(text, "%llu %llu %d %llu %lld %llu", &computing, &waiting, &t->waits_for, &longest, &sent,
             &all) != 6)
    return;
  t->computing = 1e-9 * (double)computing;
  t->waiting = 1e-9 * (double)waiting;
  t->longest = 1e-9 * (double)longest;
  t->other = all > computing + waiting ? 1e-9 * (double)(all - computing - waiting) : 0;
  t->sent = sent;
}

/* The first process's list, with the names of tasks. */
static void make_list(struct dgc_session *s) {
  const struct target *t = &s->settlement->target;
  int size = s->transport->size, *of = arena_new_array(s->call, (size_t)t->ndevices, int);
  s->tasks->items = arena_new_array(s->arena, (size_t)size, struct dgc_task);
  target_processes(t, of);
  for (int i = 0; i < size; i++) s->tasks->items[i].name = arena_printf(s->arena, "process %d", i);
  for (int i = 0; i < t->ndevices; i++) {
    const struct device_name *n = &t->devices[i].name;
    if (n->job) s->tasks->items[of[i]].name = arena_printf(s->arena, "/job:%s/task:%d", n->job, n->task);
  }
}

enum dgc_status tasks_collect(struct dgc_session *s, double seconds) {
  const struct transport *t = s->transport;
  const char **all;
  if (!t) return DGC_OK;
  if (!transport_collect(t, s->call, tally_text(s->call, t, seconds), &all)) return session_unreached(s);
  tasks_begin(s);
  if (!all) return DGC_OK;
  if (!s->tasks->items) make_list(s);
  s->tasks->count = t->size;
  for (int i = 0; i < t->size; i++) read_tally(&s->tasks->items[i], all[i]);
  tasks_judge(s->call, s->tasks->items, s->tasks->count);
  return DGC_OK;
}

const struct dgc_task *dgc_tasks(struct dgc_session *s, int *count) {
  *count = s->tasks->count;
  return s->tasks->items;
}
