/* What processes do together beside the messages of plans. */
#include "base/clock.h"
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

/* Asks often at first, then leaves the processor to others. */
static bool wait_for(const struct transport *t, void *channel, const struct whereabouts *mine) {
  enum { OFTEN = 2000, YIELDING = 20000 };
  static const struct timespec nap = {.tv_nsec = 50000};
  uint64_t begin = 0, answered = 0, limit = (uint64_t)t->watch->limit * 1000000000u;
  for (int asked = 0; !t->done(channel); asked += asked < YIELDING) {
    if (asked == 0) begin = transport_now(t);
    if (asked < OFTEN) continue;
    uint64_t now = transport_now(t);
    if (now - answered >= WATCH_EVERY) {
      watch_answer(t, where_i_wait, (void *)(uintptr_t)mine);
      answered = now;
      if (watch_bereft(t, mine)) return false;
    }
    if (limit && now - begin > limit) {
      watch_inquire(t, mine);
      return false;
    }
    if (asked < YIELDING || t->now)
      sched_yield();
    else
      nanosleep(&nap, NULL);
  }
  if (begin) t->tally->waiting[mine->waits_for] += transport_now(t) - begin;
  return true;
}

static bool move(const struct transport *t, void *channel, int peer, const char *what) {
  if (transport_failed(t)) return false;
  t->watch->no_memory = !channel;
  if (!channel) return false;
  struct whereabouts mine = {.process = t->rank, .waits_for = peer, .device = -1, .step = t->watch->step};
  strncpy(mine.what, what, sizeof mine.what - 1);
  t->start(channel);
  bool good = wait_for(t, channel, &mine);
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
