/* SPDX-License-Identifier: Apache-2.0 */
/* Offsets in the arenas: static memory planning by two heuristics, of which the better result is taken. Greedy by size:
 * the largest buffer first, each at the lowest place that is free during its whole life (for graphs that are small
 * enough to look at all pairs). Best fit: in the order of time, each in the smallest gap that holds it. */
#include "planner/schedule.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BY_SIZE = 768 };

/* The buffers of one arena, in the order in which they come to life. */
struct arena_buffers {
  struct plan_buffer **buffers;
  int count;
};

/* Large ones first. */

struct sized_buffer {
  const struct plan_buffer *b;
  int index;
};

static int larger(const void *x, const void *y) {
  const struct sized_buffer *a = x, *b = y;
  if (a->b->bytes != b->b->bytes) return a->b->bytes > b->b->bytes ? -1 : 1;
  if (a->b->first != b->b->first) return a->b->first < b->b->first ? -1 : 1;
  return a->index - b->index;
}

static int64_t place_by_size(struct arena *scratch, const struct arena_buffers *p, int64_t *offsets) {
  struct sized_buffer *entries = arena_new_array(scratch, (size_t)p->count, struct sized_buffer);
  int *placed = arena_new_array(scratch, (size_t)p->count, int); /* ascending by offset */
  for (int i = 0; i < p->count; i++) entries[i] = (struct sized_buffer){p->buffers[i], i};
  qsort(entries, (size_t)p->count, sizeof *entries, larger);
  int64_t high = 0;
  for (int i = 0; i < p->count; i++) {
    const struct plan_buffer *b = entries[i].b;
    int64_t at = 0, size = plan_room(b->bytes);
    int k = 0;
    for (; k < i; k++) {
      const struct plan_buffer *other = p->buffers[placed[k]];
      if (other->last < b->first || other->first > b->last) continue;
      if (offsets[placed[k]] - at >= size) break;
      int64_t end = offsets[placed[k]] + plan_room(other->bytes);
      if (end > at) at = end;
    }
    offsets[entries[i].index] = at;
    if (at + size > high) high = at + size;
    for (k = i; k > 0 && offsets[placed[k - 1]] > at; k--) placed[k] = placed[k - 1];
    placed[k] = entries[i].index;
  }
  return high;
}

/* In the order of time. */

struct gap {
  int64_t begin, end;
};

struct heap_state {
  struct gap *gaps; /* ascending, never touching */
  int count;
  int64_t high;
};

static void give(struct heap_state *h, int64_t begin, int64_t end) {
  int lo = 0, hi = h->count;
  while (lo < hi) {
    int mid = (lo + hi) / 2;
    if (h->gaps[mid].begin < begin)
      lo = mid + 1;
    else
      hi = mid;
  }
  bool left = lo > 0 && h->gaps[lo - 1].end == begin, right = lo < h->count && h->gaps[lo].begin == end;
  if (left && right) {
    h->gaps[lo - 1].end = h->gaps[lo].end;
    memmove(&h->gaps[lo], &h->gaps[lo + 1], (size_t)(--h->count - lo) * sizeof *h->gaps);
  } else if (left) {
    h->gaps[lo - 1].end = end;
  } else if (right) {
    h->gaps[lo].begin = begin;
  } else {
    memmove(&h->gaps[lo + 1], &h->gaps[lo], (size_t)(h->count++ - lo) * sizeof *h->gaps);
    h->gaps[lo] = (struct gap){begin, end};
  }
}

static int64_t take(struct heap_state *h, int64_t size) {
  int best = -1;
  for (int i = 0; i < h->count; i++) {
    int64_t length = h->gaps[i].end - h->gaps[i].begin;
    if (length >= size && (best < 0 || length < h->gaps[best].end - h->gaps[best].begin)) best = i;
    if (best >= 0 && length == size) break;
  }
  if (best < 0) { /* the arena grows; a gap at its end is part of the place */
    bool tail = h->count > 0 && h->gaps[h->count - 1].end == h->high;
    int64_t at = tail ? h->gaps[--h->count].begin : h->high;
    h->high = at + size;
    return at;
  }
  int64_t at = h->gaps[best].begin;
  h->gaps[best].begin += size;
  if (h->gaps[best].begin == h->gaps[best].end)
    memmove(&h->gaps[best], &h->gaps[best + 1], (size_t)(--h->count - best) * sizeof *h->gaps);
  return at;
}

static int64_t place_by_time(struct arena *scratch, const struct arena_buffers *p, int places,
                             int64_t *offsets) {
  struct heap_state h = {.gaps = arena_new_array(scratch, (size_t)p->count + 1, struct gap)};
  int *dies =
      arena_new_array(scratch, (size_t)places + 1, int); /* by place: the first that dies there, + 1 */
  int *next = arena_new_array(scratch, (size_t)p->count, int);
  int now = 0;
  for (int i = 0; i < p->count; i++) {
    const struct plan_buffer *b = p->buffers[i];
    for (; now < b->first; now++)
      for (int k = dies[now]; k; k = next[k - 1])
        give(&h, offsets[k - 1], offsets[k - 1] + plan_room(p->buffers[k - 1]->bytes));
    offsets[i] = take(&h, plan_room(b->bytes));
    if (b->last >= places) continue;
    next[i] = dies[b->last];
    dies[b->last] = i + 1;
  }
  return h.high;
}

static void place_device(struct schedule *s, int device, struct arena_buffers *p) {
  int64_t *by_time = arena_new_array(s->scratch, (size_t)p->count, int64_t), *best = by_time;
  struct timeline *line = &s->lines[device];
  int64_t high = place_by_time(s->scratch, p, line->at[line->nsteps], by_time);
  if (p->count <= MAX_BY_SIZE) {
    int64_t *by_size = arena_new_array(s->scratch, (size_t)p->count, int64_t);
    int64_t other = place_by_size(s->scratch, p, by_size);
    if (other < high) high = other, best = by_size;
  }
  for (int i = 0; i < p->count; i++) p->buffers[i]->offset = best[i];
  s->plan->devices[device].bytes[REGION_ARENA] = high;
}

void memory_offsets(struct schedule *s) {
  struct plan *plan = s->plan;
  struct arena_buffers *arenas = arena_new_array(s->scratch, (size_t)plan->ndevices, struct arena_buffers);
  for (int i = 0; i < plan->nbuffers; i++)
    if (plan->buffers[i].region == REGION_ARENA) arenas[plan->buffers[i].device].count++;
  for (int d = 0; d < plan->ndevices; d++) {
    arenas[d].buffers = arena_new_array(s->scratch, (size_t)arenas[d].count, struct plan_buffer *);
    arenas[d].count = 0;
  }
  for (int i = 0; i < plan->nbuffers; i++) {
    struct plan_buffer *b = &plan->buffers[i];
    if (b->region == REGION_ARENA && b->bytes > 0) arenas[b->device].buffers[arenas[b->device].count++] = b;
  }
  for (int d = 0; d < plan->ndevices; d++) place_device(s, d, &arenas[d]);
}
