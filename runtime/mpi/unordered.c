/* SPDX-License-Identifier: Apache-2.0 */
/* The roles of unordered.h. */
#include "runtime/mpi/unordered.h"

#include "runtime/mpi/watch.h"

#include <assert.h>
#include <string.h>

enum order_kind { ORDER_BEGIN, ORDER_APPLY, ORDER_MEET };

struct unordered_order {
  uint32_t stretch;
  enum order_kind kind;
  int worker;
  int64_t step;
  struct unordered_sum sum;
};

struct unordered_ask {
  uint32_t stretch;
  bool ended; /* a step, of which it reports */
  struct unordered_report report;
};

struct unordered_ack {
  uint32_t stretch;
  unsigned wants;
};

/* One end of a channel. */
struct unordered_line {
  void *channel;
  int peer;
  bool under_way;
};

/* What the coordinator knows of a worker. */
struct runner {
  struct unordered_line asks, orders;
  struct unordered_ask ask;
  struct unordered_order order;
  bool idle;       /* it has asked, and has no order yet */
  int64_t asked;   /* how many had asked before it, when it was idle last */
  int64_t step;    /* the last that it began */
  int64_t *beside; /* by worker: how many steps that one has begun since then */
};

/* And of another server. */
struct helper {
  struct unordered_line orders, acks;
  struct unordered_order order;
  struct unordered_ack ack;
};

struct unordered {
  const struct transport *t;
  struct unordered_roles roles;
  struct unordered_acts acts;
  void *user;
  int64_t bound;
  uint32_t stretch;
  struct runner *runners; /* of the coordinator */
  struct helper *helpers; /* of its: one for each server but itself */
  int64_t asked;
  struct unordered_line out, in; /* of all others, with the coordinator */
  struct unordered_ask ask;
  struct unordered_ack ack;
  struct unordered_order order;
};

static bool is_coordinator(const struct unordered *f) { return f->roles.servers[0] == f->t->rank; }

static bool is_worker(const struct unordered *f) {
  for (int i = 0; i < f->roles.nworkers; i++)
    if (f->roles.workers[i] == f->t->rank) return true;
  return false;
}

/* --- channels --- */

static bool open_line(const struct unordered *f, struct unordered_line *l, int peer, void *data, size_t bytes,
                      bool sends) {
  const struct transport *t = f->t;
  l->peer = peer;
  l->channel = sends ? t->sender(t, data, bytes, peer, TAG_UNORDERED)
                     : t->receiver(t, data, bytes, peer, TAG_UNORDERED);
  t->watch->no_memory |= !l->channel;
  return l->channel != NULL;
}

static void start(const struct unordered *f, struct unordered_line *l) {
  l->under_way = true;
  f->t->start(l->channel);
}

static bool is_finished(const struct unordered *f, struct unordered_line *l) {
  l->under_way = l->under_way && !f->t->done(l->channel);
  return !l->under_way;
}

/* One pause: others may need that what comes is taken. */
static bool rest(const struct unordered *f, struct pause *p, int peer, const char *what) {
  if (!is_worker(f) && !f->acts.poll(f->user)) return false;
  return transport_pause(f->t, p, peer, what);
}

static bool finish(const struct unordered *f, struct unordered_line *l, const char *what) {
  struct pause p = {0};
  while (!is_finished(f, l))
    if (!rest(f, &p, l->peer, what)) return false;
  if (p.begin) f->t->tally->waiting[l->peer] += transport_now(f->t) - p.begin;
  return true;
}

static const char heard[] = "heard what it is told";

/* --- the coordinator --- */

static bool order_runner(struct unordered *f, struct runner *r, const struct unordered_order *o) {
  if (!finish(f, &r->orders, heard)) return false;
  r->order = *o;
  start(f, &r->orders);
  return true;
}

/* To all servers; what this one has of it, it does. */
static bool order_servers(struct unordered *f, const struct unordered_order *o, struct unordered_sum *sum) {
  for (int i = 0; i + 1 < f->roles.nservers; i++) {
    struct helper *h = &f->helpers[i];
    if (!finish(f, &h->acks, "done what it was told") || !finish(f, &h->orders, heard)) return false;
    sum->wants |= h->ack.wants;
    h->order = *o;
    start(f, &h->acks);
    start(f, &h->orders);
  }
  switch (o->kind) {
  case ORDER_BEGIN: return f->acts.begin(f->user, o->worker, o->step);
  case ORDER_APPLY: return f->acts.apply(f->user, o->worker, o->step);
  case ORDER_MEET: break;
  }
  return true;
}

static void add_report(struct unordered_sum *sum, const struct unordered_report *report, int64_t step) {
  sum->applied++;
  sum->loss += report->loss;
  sum->weight += report->weight;
  if (!report->odd || (sum->odd && sum->odd_step < step)) return;
  sum->odd = report->odd;
  sum->odd_step = step;
  sum->odd_value = report->odd_value;
}

/* The worker has asked: what it did is applied. */
static bool hear(struct unordered *f, int worker, struct unordered_sum *sum) {
  struct runner *r = &f->runners[worker];
  assert(r->ask.stretch == f->stretch && !r->idle);
  r->idle = true;
  r->asked = f->asked++;
  sum->wants |= r->ask.report.wants;
  if (!r->ask.ended) return true;
  add_report(sum, &r->ask.report, r->step);
  const struct unordered_order o = {f->stretch, ORDER_APPLY, worker, r->step, *sum};
  return order_servers(f, &o, sum);
}

static bool may_begin(const struct unordered *f, int worker) {
  for (int i = 0; i < f->roles.nworkers; i++)
    if (!f->runners[i].idle && f->runners[i].beside[worker] >= f->bound) return false;
  return true;
}

/* Who has waited longest of those that may begin; -1: none may. */
static int next_runner(const struct unordered *f) {
  int next = -1;
  for (int i = 0; i < f->roles.nworkers; i++)
    if (f->runners[i].idle && (next < 0 || f->runners[i].asked < f->runners[next].asked) && may_begin(f, i))
      next = i;
  return next;
}

static bool begin_step(struct unordered *f, int worker, struct unordered_sum *sum) {
  struct runner *r = &f->runners[worker];
  for (int i = 0; i < f->roles.nworkers; i++) f->runners[i].beside[worker]++;
  memset(r->beside, 0, (size_t)f->roles.nworkers * sizeof *r->beside);
  r->idle = false;
  r->step = sum->begun++;
  const struct unordered_order o = {f->stretch, ORDER_BEGIN, worker, r->step, *sum};
  start(f, &r->asks);
  return order_runner(f, r, &o) && order_servers(f, &o, sum);
}

/* The process whose step began first; there is one. */
static int slowest(const struct unordered *f) {
  int slowest = -1;
  for (int i = 0; i < f->roles.nworkers; i++)
    if (!f->runners[i].idle && (slowest < 0 || f->runners[i].step < f->runners[slowest].step)) slowest = i;
  return f->roles.workers[slowest];
}

static bool all_idle(const struct unordered *f) {
  for (int i = 0; i < f->roles.nworkers; i++)
    if (!f->runners[i].idle) return false;
  return true;
}

static bool meet(struct unordered *f, struct unordered_sum *sum) {
  for (int i = 0; i + 1 < f->roles.nservers; i++) { /* what they want may not come behind the sum */
    if (!finish(f, &f->helpers[i].acks, "done what it was told")) return false;
    sum->wants |= f->helpers[i].ack.wants;
  }
  const struct unordered_order o = {f->stretch, ORDER_MEET, -1, sum->begun, *sum};
  struct unordered_sum unused = *sum;
  bool good = order_servers(f, &o, &unused);
  for (int i = 0; good && i < f->roles.nworkers; i++) good = order_runner(f, &f->runners[i], &o);
  for (int i = 0; good && i < f->roles.nworkers; i++) good = finish(f, &f->runners[i].orders, heard);
  for (int i = 0; good && i + 1 < f->roles.nservers; i++)
    good = finish(f, &f->helpers[i].orders, heard) && finish(f, &f->helpers[i].acks, "come together");
  return good;
}

static bool coordinate(struct unordered *f, int64_t steps, struct unordered_sum *sum) {
  struct pause pause = {0};
  for (int i = 0; i < f->roles.nworkers; i++) {
    f->runners[i].idle = false;
    f->runners[i].step = -1;
    memset(f->runners[i].beside, 0, (size_t)f->roles.nworkers * sizeof *f->runners[i].beside);
    start(f, &f->runners[i].asks);
  }
  for (int i = 0; i + 1 < f->roles.nservers; i++)
    f->helpers[i].ack = (struct unordered_ack){0}; /* what was wanted too late */
  for (;;) {
    bool moved = false;
    for (int i = 0; i < f->roles.nworkers; i++) {
      if (f->runners[i].idle || !is_finished(f, &f->runners[i].asks)) continue;
      moved = true;
      if (!hear(f, i, sum)) return false;
    }
    sum->wants |= f->acts.wants(f->user);
    bool ends = sum->wants || sum->begun == steps;
    if (ends && all_idle(f)) return meet(f, sum);
    int next = ends ? -1 : next_runner(f);
    if (next >= 0 && !begin_step(f, next, sum)) return false;
    if (moved || next >= 0)
      pause = (struct pause){0};
    else if (!rest(f, &pause, slowest(f), "ended its step"))
      return false;
  }
}

/* --- the others --- */

static bool work(struct unordered *f, struct unordered_sum *sum) {
  f->ask = (struct unordered_ask){.stretch = f->stretch, .report = {.wants = f->acts.wants(f->user)}};
  for (;;) {
    start(f, &f->in);
    start(f, &f->out);
    if (!finish(f, &f->out, heard) || !finish(f, &f->in, "let it begin a step")) return false;
    assert(f->order.stretch == f->stretch);
    *sum = f->order.sum;
    if (f->order.kind == ORDER_MEET) return true;
    f->ask = (struct unordered_ask){.stretch = f->stretch, .ended = true};
    if (!f->acts.step(f->user, f->order.step, sum, &f->ask.report)) return false;
    f->ask.report.wants |= f->acts.wants(f->user);
  }
}

static bool serve(struct unordered *f, struct unordered_sum *sum) {
  for (;;) {
    start(f, &f->in);
    if (!finish(f, &f->in, "said what comes next")) return false;
    const struct unordered_order o = f->order;
    assert(o.stretch == f->stretch);
    if (o.kind == ORDER_BEGIN && !f->acts.begin(f->user, o.worker, o.step)) return false;
    if (o.kind == ORDER_APPLY && !f->acts.apply(f->user, o.worker, o.step)) return false;
    f->ack = (struct unordered_ack){f->stretch, f->acts.wants(f->user)};
    start(f, &f->out);
    if (!finish(f, &f->out, heard)) return false;
    if (o.kind != ORDER_MEET) continue;
    *sum = o.sum;
    return true;
  }
}

/* --- all --- */

static bool open_coordinator(struct unordered *f, struct arena *a) {
  int nworkers = f->roles.nworkers, nhelpers = f->roles.nservers - 1;
  bool good = true;
  f->runners = arena_new_array(a, (size_t)nworkers, struct runner);
  f->helpers = arena_new_array(a, (size_t)nhelpers, struct helper);
  for (int i = 0; i < nworkers; i++) {
    struct runner *r = &f->runners[i];
    r->beside = arena_new_array(a, (size_t)nworkers, int64_t);
    good = good && open_line(f, &r->asks, f->roles.workers[i], &r->ask, sizeof r->ask, false) &&
           open_line(f, &r->orders, f->roles.workers[i], &r->order, sizeof r->order, true);
  }
  for (int i = 0; i < nhelpers; i++) {
    struct helper *h = &f->helpers[i];
    good = good && open_line(f, &h->orders, f->roles.servers[i + 1], &h->order, sizeof h->order, true) &&
           open_line(f, &h->acks, f->roles.servers[i + 1], &h->ack, sizeof h->ack, false);
  }
  return good;
}

static bool open_other(struct unordered *f) {
  bool works = is_worker(f);
  void *data = works ? (void *)&f->ask : (void *)&f->ack;
  size_t bytes = works ? sizeof f->ask : sizeof f->ack;
  return open_line(f, &f->out, f->roles.servers[0], data, bytes, true) &&
         open_line(f, &f->in, f->roles.servers[0], &f->order, sizeof f->order, false);
}

struct unordered *unordered_create(struct arena *a, const struct transport *t,
                                   const struct unordered_roles *roles, int64_t bound,
                                   const struct unordered_acts *acts, void *user) {
  struct unordered *f = arena_new(a, struct unordered);
  *f = (struct unordered){.t = t, .roles = *roles, .acts = *acts, .user = user, .bound = bound};
  if (is_coordinator(f) ? open_coordinator(f, a) : open_other(f)) return f;
  unordered_destroy(f);
  return NULL;
}

static void close_line(const struct unordered *f, const struct unordered_line *l) {
  if (l->channel) f->t->drop(l->channel);
}

void unordered_destroy(struct unordered *f) {
  if (!f) return;
  for (int i = 0; f->runners && i < f->roles.nworkers; i++) {
    close_line(f, &f->runners[i].asks);
    close_line(f, &f->runners[i].orders);
  }
  for (int i = 0; f->helpers && i + 1 < f->roles.nservers; i++) {
    close_line(f, &f->helpers[i].orders);
    close_line(f, &f->helpers[i].acks);
  }
  close_line(f, &f->out);
  close_line(f, &f->in);
}

bool unordered_stretch(struct unordered *f, int64_t steps, struct unordered_sum *sum) {
  *sum = (struct unordered_sum){0};
  f->stretch++;
  if (is_coordinator(f)) return coordinate(f, steps, sum);
  return is_worker(f) ? work(f, sum) : serve(f, sum);
}
