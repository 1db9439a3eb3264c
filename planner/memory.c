/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers: how long each lives, and which values take over the storage of another.
 *
 * A buffer is free again after its last reader. A reader on another device keeps it until a wait proves that it has
 * finished, or to the end of the plan; so does a message. A kernel's result takes over the buffer of an operand that
 * dies with that kernel if each element is read by the iteration that writes it; scatter_add's that of what it adds to;
 * what devices sum together that of the device's own share. A concatenation lives from the first of its parts that is
 * written there. */
#include "planner/schedule.h"

#include <limits.h>
#include <string.h>

static int new_buffer(struct schedule *s, int value, int first, int last) {
  struct plan *p = s->plan;
  struct planned_value *v = &s->values[value];
  v->buffer = p->nbuffers++;
  p->buffers[v->buffer] = (struct plan_buffer){.name = v->node->name,
                                               .device = v->device,
                                               .region = v->region,
                                               .bytes = v->bytes,
                                               .first = first,
                                               .last = last};
  return v->buffer;
}

/* The place of the unit's first step, and of its last. */
static int begins_at(const struct schedule *s, const struct plan_unit *t) {
  return s->lines[t->device].at[t->begin];
}

static int ends_at(const struct schedule *s, const struct plan_unit *t) {
  return s->lines[t->device].at[t->begin + t->nlaunches - 1];
}

/* The last place of its own device at which the value is in use. */
static int last_use(const struct schedule *s, const struct planned_value *v) {
  if (v->is_output) return INT_MAX;
  int last = 0;
  if (v->producer != NONE) last = ends_at(s, &s->units[v->producer]);
  for (int l = v->readers; l != NONE && last < INT_MAX; l = s->links[l].next) {
    const struct plan_unit *t = &s->units[s->links[l].unit];
    if (t->kind == STEP_SEND) return INT_MAX; /* until it is gone, which is waited for at the end */
    if (t->nlaunches == 0) continue;
    int use;
    if (t->device == v->device) {
      use = ends_at(s, t);
    } else if (t->message != NONE) {
      use = INT_MAX; /* until it is gone, which is waited for at the end */
    } else {
      use = sync_last_unknowing(s, v->device, t->device, t->begin + t->nlaunches);
    }
    if (use > last) last = use;
  }
  return last;
}

/* Whether result `r` of the unit may lie in `buffer`, which dies with the unit. */
static bool may_take_over(const struct schedule *s, const struct plan_unit *t, int r, int buffer) {
  for (int i = 0; i < r; i++)
    if (s->values[t->result + i].buffer == buffer) return false;
  for (int i = 0; i < t->nreads; i++) {
    if (t->reads[i].value == NONE || s->values[t->reads[i].value].buffer != buffer) continue;
    if (t->reads[i].offset != 0 || !lower_in_place(t->node, t->launches, t->nlaunches, r, i)) return false;
  }
  return true;
}

/* Whether a processor would wait for itself in place: it goes through short rows, each of which ends in a store of some
 * lanes of a vector, and the next one is loaded from right behind: see docs/plan.md. */
static bool has_short_rows(const struct schedule *s, const struct plan_unit *t) {
  const struct launch *l = t->launches;
  if (t->kind != STEP_KERNEL || strcmp(s->g->config.target.devices[t->device].name.kind, "cpu") != 0)
    return false;
  const struct kernel *k = l->kernel;
  int64_t row = l->sizes[k->vector];
  return (k->kind == KERNEL_MAP || k->nmapped) && k->rank > 1 && row < 2 * KERNEL_LANES &&
         row % KERNEL_LANES != 0;
}

static int take_over(const struct schedule *s, const struct plan_unit *t, int r) {
  const struct planned_value *v = &s->values[t->result + r];
  if (t->kind == STEP_COPY || t->kind == STEP_SCAN || t->nlaunches != 1 || has_short_rows(s, t)) return NONE;
  int now = ends_at(s, t);
  for (int i = 0; i < t->nreads; i++) {
    if (t->reads[i].value == NONE) continue;
    int buffer = s->values[t->reads[i].value].buffer;
    const struct plan_buffer *b = &s->plan->buffers[buffer];
    if (b->region != REGION_ARENA || b->device != t->device || b->last != now || b->bytes != v->bytes)
      continue;
    if (may_take_over(s, t, r, buffer)) return buffer;
  }
  return NONE;
}

static void place_result(struct schedule *s, const struct plan_unit *t, int r) {
  struct planned_value *v = &s->values[t->result + r];
  if (v->bound != NONE) {
    v->buffer = s->values[v->bound].buffer;
    return;
  }
  if (v->whole != NONE) {
    struct planned_value *whole = &s->values[v->whole];
    if (whole->buffer == NONE) new_buffer(s, v->whole, begins_at(s, t), last_use(s, whole));
    v->buffer = whole->buffer;
    return;
  }
  if (v->buffer != NONE) return; /* a concatenation of which others have written parts */
  int last = last_use(s, v);
  v->buffer = take_over(s, t, r);
  if (v->buffer != NONE)
    s->plan->buffers[v->buffer].last = last;
  else
    new_buffer(s, t->result + r, begins_at(s, t), last);
}

/* Inputs, variables and constants are there before the first step. */
static void place_given(struct schedule *s, int value) {
  struct planned_value *v = &s->values[value];
  bool used = v->is_output || v->readers != NONE;
  if (v->producer != NONE || (!used && v->region == REGION_CONSTANT)) return;
  int last = v->region == REGION_ARENA ? last_use(s, v) : INT_MAX;
  struct plan_buffer *b = &s->plan->buffers[new_buffer(s, value, 0, last)];
  if (v->region == REGION_CONSTANT) b->data = node_attr(v->node, ATTR_value)->data;
  if (v->region == REGION_VARIABLE) b->type = v->node->type;
  if (v->region == REGION_VARIABLE) b->identity = variable_identity(v->node);
  b->identity.everywhere = s->everywhere;
}

static void place_fixed_regions(struct plan *p) {
  for (int i = 0; i < p->nbuffers; i++) {
    struct plan_buffer *b = &p->buffers[i];
    if (b->region == REGION_ARENA) continue;
    int64_t *bytes = &p->devices[b->device].bytes[b->region];
    b->offset = *bytes;
    *bytes += plan_room(b->bytes);
  }
}

void schedule_memory(struct schedule *s) {
  s->plan->buffers = arena_new_array(s->arena, (size_t)s->nvalues, struct plan_buffer);
  for (int i = 0; i < s->nvalues; i++) place_given(s, i);
  for (int i = 0; i < s->norder; i++) {
    const struct plan_unit *t = &s->units[s->order[i]];
    for (int r = 0; r < t->nresults; r++) place_result(s, t, r);
  }
  place_fixed_regions(s->plan);
  memory_offsets(s);
}
