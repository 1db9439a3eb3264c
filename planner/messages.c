/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of the part of one process: numbered in the one order that all of the cluster have. */
#include "planner/schedule.h"

#include "ir/ops/op.h"

#include <stdlib.h>

/* A message and its unit. */
struct sorted {
  struct message_key key;
  int unit;
};

static int by_order(const void *x, const void *y) {
  const struct sorted *a = x, *b = y;
  int order = message_key_compare(&a->key, &b->key);
  return order ? order : a->unit - b->unit;
}

/* Messages from one process to another are told apart by how many came before: both count alike. */
static int next_tag(struct schedule *s, int *tags, bool sends, int peer) {
  return tags[2 * s->plan->processes[peer] + sends]++;
}

void schedule_messages(struct schedule *s) {
  struct plan *p = s->plan;
  s->by_message = arena_new_array(s->scratch, (size_t)s->nunits, int);
  struct sorted *sorted = arena_room(s->scratch, (size_t)s->nunits * sizeof *sorted);
  for (int i = 0; i < s->nunits; i++)
    if (s->units[i].kind == STEP_SEND || s->units[i].kind == STEP_RECEIVE)
      sorted[p->nmessages++] = (struct sorted){message_key(s->units[i].node), i};
  if (p->nmessages) qsort(sorted, (size_t)p->nmessages, sizeof *sorted, by_order);
  for (int i = 0; i < p->nmessages; i++) s->by_message[i] = sorted[i].unit;
  p->messages = arena_new_array(s->arena, (size_t)p->nmessages, struct message);
  int *tags = arena_new_array(s->scratch, 2 * (size_t)p->nprocesses, int);
  for (int i = 0; i < p->nmessages; i++) {
    struct plan_unit *t = &s->units[s->by_message[i]];
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
