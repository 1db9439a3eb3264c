/* SPDX-License-Identifier: Apache-2.0 */
/* What processes do together beside the messages of plans. */
#include "base/clock.h"
#include "base/thread.h"
#include "runtime/mpi/watch.h"

#include <sched.h>
#include <string.h>

uint64_t transport_now(const struct transport *t) { return t->now ? t->now(t) : clock_ns(); }

void transport_limit(const struct transport *t, int seconds) { t->watch->limit = seconds; }

void transport_step(const struct transport *t, int64_t step) { t->watch->step = step; }

bool transport_failed(const struct transport *t) { return t->watch->no_memory || t->watch->length > 0; }

void transport_report(const struct transport *t, const struct target *target, struct diags *d) {
  if (t->watch->no_memory)
    diag_error(d, LOC_NONE, "%s has no memory for a message", t->library);
  else
    watch_report(t, target, d);
}

static void where_i_wait(void *of, int device, struct whereabouts *out) {
  (void)device;
  *out = *(const struct whereabouts *)of;
}

static struct whereabouts waiting_for(const struct transport *t, int peer, const char *what) {
  struct whereabouts mine = {.process = t->rank, .waits_for = peer, .device = -1, .step = t->watch->step};
  strncpy(mine.what, what, sizeof mine.what - 1);
  return mine;
}

/* Often at first, then it leaves the processor to others. */
bool transport_pause(const struct transport *t, struct pause *p, int peer, const char *what) {
  enum { OFTEN = 2000, YIELDING = 20000, SELDOM = 100 };
  uint64_t limit = (uint64_t)t->watch->limit * 1000000000u;
  if (p->asked == 0) {
    p->begin = p->looked = transport_now(t);
    p->naps = !thread_may_spin();
  }
  p->asked += p->asked <= YIELDING;
  if (p->asked <= OFTEN / (p->naps ? SELDOM : 1)) return true;
  struct whereabouts mine = waiting_for(t, peer, what);
  uint64_t now = transport_now(t);
  p->begin += clock_stopped(p->looked, now);
  p->looked = now;
  if (now - p->answered >= WATCH_EVERY) {
    watch_answer(t, where_i_wait, &mine);
    p->answered = now;
    if (watch_bereft(t, &mine)) return false;
  }
  if (limit && now - p->begin > limit) {
    watch_inquire(t, &mine);
    return false;
  }
  if (p->asked <= YIELDING / (p->naps ? SELDOM : 1) || t->now)
    sched_yield();
  else
    thread_nap();
  return true;
}

bool transport_wait(const struct transport *t, void *channel, int peer, const char *what) {
  struct pause p = {0};
  while (!t->done(channel))
    if (!transport_pause(t, &p, peer, what)) return false;
  if (p.begin) t->tally->waiting[peer] += transport_now(t) - p.begin;
  return true;
}

static bool move(const struct transport *t, void *channel, int peer, const char *what) {
  if (transport_failed(t)) return false;
  t->watch->no_memory = !channel;
  if (!channel) return false;
  t->start(channel);
  bool good = transport_wait(t, channel, peer, what);
  if (good) t->drop(channel);
  return good;
}

bool transport_send(const struct transport *t, const void *data, size_t bytes, int to, int tag) {
  static const char *const what[] = {"taken a variable", "heard what it is told", "come to the end"};
  return move(t, transport_failed(t) ? NULL : t->sender(t, data, bytes, to, tag), to, what[tag]);
}

bool transport_receive(const struct transport *t, void *data, size_t bytes, int from, int tag) {
  static const char *const what[] = {"sent a variable", "told what it knows", "come to the end"};
  return move(t, transport_failed(t) ? NULL : t->receiver(t, data, bytes, from, tag), from, what[tag]);
}

/* --- all together --- */

/* Up a binary tree, and down again. */
bool transport_any(const struct transport *t, unsigned char *flags) {
  unsigned char below = 0;
  int parent = (t->rank - 1) / 2, first = 2 * t->rank + 1;
  bool good = true;
  for (int child = first; good && child < first + 2 && child < t->size; child++) {
    good = transport_receive(t, &below, 1, child, TAG_STOP);
    *flags |= below;
  }
  if (t->rank > 0)
    good = good && transport_send(t, flags, 1, parent, TAG_STOP) &&
           transport_receive(t, flags, 1, parent, TAG_STOP);
  for (int child = first; good && child < first + 2 && child < t->size; child++)
    good = transport_send(t, flags, 1, child, TAG_STOP);
  return good;
}

bool transport_part(const struct transport *t) {
  unsigned char none = 0;
  t->watch->parting = true;
  bool good = transport_any(t, &none);
  t->watch->parting = false;
  return good;
}

static bool send_text(const struct transport *t, const char *text, int to) {
  size_t len = strlen(text);
  return transport_send(t, &len, sizeof len, to, TAG_TEXT) && transport_send(t, text, len, to, TAG_TEXT);
}

static bool receive_text(const struct transport *t, struct arena *a, int from, const char **text) {
  size_t len;
  if (!transport_receive(t, &len, sizeof len, from, TAG_TEXT)) return false;
  char *bytes = arena_alloc(a, len + 1);
  bytes[len] = 0;
  *text = bytes;
  return transport_receive(t, bytes, len, from, TAG_TEXT);
}

bool transport_collect(const struct transport *t, struct arena *a, const char *text, const char ***all) {
  *all = NULL;
  if (t->rank > 0) return send_text(t, text, 0);
  *all = arena_new_array(a, (size_t)t->size, const char *);
  (*all)[0] = text;
  for (int i = 1; i < t->size; i++)
    if (!receive_text(t, a, i, &(*all)[i])) return false;
  return true;
}

bool transport_tell(const struct transport *t, struct arena *a, const char **text) {
  if (t->rank > 0) return receive_text(t, a, 0, text);
  for (int i = 1; i < t->size; i++)
    if (!send_text(t, *text, i)) return false;
  return true;
}
