/* SPDX-License-Identifier: Apache-2.0 */
/* Where receives may be posted, from the lives of buffers.
 *
 * A buffer's life ends when all of its readers are known to be done, on other devices too, and when it is sent no
 * longer: plan_verify holds it to that. So the place of a buffer that begins with the message is free behind the last
 * life there before it. Of one that is in use before, as variables are, the accesses count. */
#include "ir/plan/posts.h"

/* The device that touches a buffer; SEVERAL if there is more than one. */
enum { NOBODY = -1, SEVERAL = -2 };

struct places {
  const struct plan *p;
  int device;
  const struct plan_buffer **arena; /* buffers of the device in its arena */
  int narena;
  int *toucher; /* by buffer */
  int *source;  /* by message that the device sends: the buffer */
};

static bool overlap(const struct plan_buffer *a, const struct plan_buffer *b) {
  return a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
}

/* As long as it is sent, too. */
static bool touches(const struct places *at, const struct step *s, int buffer) {
  if (s->kind == STEP_SENT) return at->source[s->message->number] == buffer;
  for (int i = 0; i < s->noperands; i++)
    if (s->operands[i].buffer == buffer) return true;
  return false;
}

static void find_touchers(struct places *at) {
  const struct plan *p = at->p;
  for (int i = 0; i < p->nbuffers; i++) at->toucher[i] = NOBODY;
  for (int d = 0; d < p->ndevices; d++) {
    if (plan_process(p, d) != plan_process(p, at->device)) continue;
    for (int i = 0; i < p->devices[d].nsteps; i++) {
      const struct step *s = &p->devices[d].steps[i];
      for (int k = 0; k < s->noperands; k++) {
        int *who = &at->toucher[s->operands[k].buffer];
        *who = *who == NOBODY || *who == d ? d : SEVERAL;
      }
    }
  }
}

/* Behind the last use of the buffer before step `before`. That other devices have done with it, the message itself may
 * be the first to tell. */
static int behind_own(const struct places *at, int buffer, int before) {
  const struct step *steps = at->p->devices[at->device].steps;
  int i = before;
  if (at->toucher[buffer] == SEVERAL) return before;
  while (i > 0 && !touches(at, &steps[i - 1], buffer)) i--;
  return i;
}

static int behind_others(const struct places *at, const struct plan_buffer *b) {
  int from = 0;
  for (int i = 0; i < at->narena; i++) {
    const struct plan_buffer *o = at->arena[i];
    if (o != b && o->last < b->first && o->last >= from && overlap(o, b)) from = o->last + 1;
  }
  return from;
}

int *plan_posts(struct arena *a, const struct plan *p, int device) {
  struct arena_guard guard;
  struct arena *scratch = arena_create_guarded(&guard);
  const struct device_plan *dp = &p->devices[device];
  struct places at = {.p = p, .device = device};
  int *posts = arena_new_array(a, (size_t)dp->nsteps, int);
  at.arena = arena_new_array(scratch, (size_t)p->nbuffers, const struct plan_buffer *);
  at.toucher = arena_new_array(scratch, (size_t)p->nbuffers, int);
  for (int i = 0; i < p->nbuffers; i++)
    if (p->buffers[i].device == device && p->buffers[i].region == REGION_ARENA && p->buffers[i].bytes > 0)
      at.arena[at.narena++] = &p->buffers[i];
  find_touchers(&at);
  at.source = arena_new_array(scratch, (size_t)p->nmessages, int);
  for (int i = 0; i < dp->nsteps; i++)
    if (dp->steps[i].kind == STEP_SEND)
      at.source[dp->steps[i].message->number] = dp->steps[i].operands[0].buffer;
  for (int i = 0; i < dp->nsteps; i++) {
    posts[i] = i;
    if (dp->steps[i].kind != STEP_RECEIVE) continue;
    int buffer = dp->steps[i].operands[0].buffer;
    bool born = p->buffers[buffer].region == REGION_ARENA && p->buffers[buffer].first == i;
    posts[i] = born ? behind_others(&at, &p->buffers[buffer]) : behind_own(&at, buffer, i);
  }
  arena_destroy_guarded(scratch, &guard);
  return posts;
}
