/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of the part of one process: numbered in the one order that all of the cluster have. */
#include "planner/schedule.h"

#include "ir/ops/op.h"

#include <stdlib.h>

static int compare(int64_t a, int64_t b) { return a < b ? -1 : a > b; }

static int by_order(const void *x, const void *y, void *schedule) {
  const struct schedule *s = schedule;
  const struct task *a = &s->tasks[*(const int *)x], *b = &s->tasks[*(const int *)y];
  int order = message_compare(a->node, b->node);
  return order ? order : compare(*(const int *)x, *(const int *)y);
}

/* Messages from one process to another are told apart by how many came before: both count alike. */
static int next_tag(struct schedule *s, int *tags, bool sends, int peer) {
  return tags[2 * s->plan->processes[peer] + sends]++;
}

void schedule_messages(struct schedule *s) {
  struct plan *p = s->plan;
  s->by_message = arena_new_array(s->scratch, (size_t)s->ntasks, int);
  for (int i = 0; i < s->ntasks; i++)
    if (s->tasks[i].kind == STEP_SEND || s->tasks[i].kind == STEP_RECEIVE) s->by_message[p->nmessages++] = i;
  qsort_r(s->by_message, (size_t)p->nmessages, sizeof *s->by_message, by_order, s);
  p->messages = arena_new_array(s->arena, (size_t)p->nmessages, struct message);
  int *tags = arena_new_array(s->scratch, 2 * (size_t)p->nprocesses, int);
  for (int i = 0; i < p->nmessages; i++) {
    struct task *t = &s->tasks[s->by_message[i]];
    bool sends = t->kind == STEP_SEND;
    int peer = (int)node_int(t->node, ATTR_peer);
    t->message = i;
    p->messages[i] = (struct message){.number = i,
                                      .tag = next_tag(s, tags, sends, peer),
                                      .from = sends ? t->device : peer,
                                      .to = sends ? peer : t->device,
                                      .node = t->node,
                                      .bytes = type_bytes(&t->node->type)};
  }
}
