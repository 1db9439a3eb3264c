/* A transport of mailboxes. One lock for all of them: what is sent is a list, in the order of sending. */
#include "tests/support/processes.h"

#include "tests/support/random.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PATIENCE = 200 }; /* seconds */

/* Bytes on their way. It is gone when the receiver has them and the sender knows that it is done. */
struct letter {
  struct letter *next; /* in the order of sending */
  int from, to, tag;
  size_t bytes;
  const void *at; /* the sender's memory */
  void *taken;    /* copied from there */
  int late;       /* how often the receiver finds nothing yet */
  bool rendezvous, received, done;
  bool early; /* it comes to lie in its place as soon as that is posted */
  bool there;
};

struct office {
  pthread_mutex_t lock;
  struct letter *first;
  struct channel *posted; /* receivers under way */
  struct rng random;
  enum delivery delivery;
  uint64_t count; /* of what has been sent and received */
  char wrong[200];
};

struct process {
  struct office *office;
  struct transport transport;
  process_fn *fn;
  void *arg;
  pthread_t thread;
};

/* A way from a process to another: a channel is asked by any thread of its process. */
struct channel {
  struct office *office;
  int from, to, tag;
  void *data;
  size_t bytes;
  bool sends, under_way;
  struct letter *letter; /* of a sender under way */
  struct channel *next;  /* that is posted */
};

static _Thread_local const struct process *here;

static void enter(struct office *o) {
  pthread_mutex_lock(&o->lock);
  if (o->delivery != DELIVER_ANY || !rng_chance(&o->random, 25)) return;
  pthread_mutex_unlock(&o->lock);
  sched_yield();
  pthread_mutex_lock(&o->lock);
}

static void leave(struct office *o) { pthread_mutex_unlock(&o->lock); }

static void complain(struct office *o, const char *what, const struct channel *c) {
  if (!o->wrong[0])
    snprintf(o->wrong, sizeof o->wrong, "%s: %zu bytes from %d to %d, tag %d", what, c->bytes, c->from, c->to,
             c->tag);
}

static void *memory(size_t bytes) {
  void *p = calloc(1, bytes ? bytes : 1);
  if (!p) abort();
  return p;
}

static void take(struct letter *l) {
  if (l->taken) return;
  l->taken = memory(l->bytes);
  if (l->bytes) memcpy(l->taken, l->at, l->bytes);
}

static void forget(struct office *o, struct letter *l) {
  if (!l->received || !l->done) return;
  struct letter **p = &o->first;
  while (*p != l) p = &(*p)->next;
  *p = l->next;
  free(l->taken);
  free(l);
}

static struct letter *letter_for(const struct office *o, const struct channel *c) {
  struct letter *l = o->first;
  while (l && (l->received || l->from != c->from || l->to != c->to || l->tag != c->tag)) l = l->next;
  return l;
}

/* What is sent may be written into the receiver's memory at any time from when it is posted. */
static void arrive(const struct office *o, const struct channel *c) {
  struct letter *l = letter_for(o, c);
  if (!l || !l->early || l->there || l->bytes != c->bytes) return;
  if (l->bytes) memcpy(c->data, l->taken ? l->taken : l->at, l->bytes);
  l->there = true;
}

static void post_receiver(struct office *o, struct channel *c) {
  c->next = o->posted;
  o->posted = c;
  arrive(o, c);
}

static void unpost_receiver(struct office *o, const struct channel *c) {
  struct channel **p = &o->posted;
  while (*p != c) p = &(*p)->next;
  *p = c->next;
}

static struct letter *post(struct office *o, const struct channel *c) {
  struct letter *l = memory(sizeof *l), **end = &o->first;
  bool any = o->delivery == DELIVER_ANY;
  *l = (struct letter){.from = c->from, .to = c->to, .tag = c->tag, .bytes = c->bytes, .at = c->data};
  l->rendezvous = o->delivery == DELIVER_RENDEZVOUS || (any && rng_chance(&o->random, 40));
  if (any && rng_chance(&o->random, 50)) l->late = rng_below(&o->random, 20);
  if (o->delivery == DELIVER_AT_ONCE || (any && rng_chance(&o->random, 30))) take(l);
  l->early = o->delivery == DELIVER_AT_ONCE || (any && rng_chance(&o->random, 50));
  while (*end) end = &(*end)->next;
  *end = l;
  for (const struct channel *r = o->posted; r; r = r->next) arrive(o, r);
  o->count++;
  return l;
}

static bool is_done(struct office *o, struct letter *l) {
  if (!l->received && l->rendezvous) return false;
  if (o->delivery == DELIVER_ANY && rng_chance(&o->random, 30)) return false;
  if (!l->received) take(l);
  l->done = true;
  forget(o, l);
  o->count++;
  return true;
}

static bool is_received(struct office *o, const struct channel *c) {
  struct letter *l = letter_for(o, c);
  if (!l || l->late-- > 0) return false;
  if (l->bytes != c->bytes) complain(o, "of another size", c);
  size_t bytes = l->bytes < c->bytes ? l->bytes : c->bytes;
  if (bytes && !l->there) memcpy(c->data, l->taken ? l->taken : l->at, bytes);
  l->received = true;
  forget(o, l);
  o->count++;
  return true;
}

/* Whether this office's messages have not moved for long: `count` and `since` are the caller's memory of it. */
static void have_patience(const struct office *o, const struct channel *c, uint64_t *count, time_t *since) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  if (*count != o->count || !*since) *count = o->count, *since = now.tv_sec;
  if (now.tv_sec - *since < PATIENCE) return;
  fprintf(stderr, "nothing moves: process %d waits for %d, tag %d\n", c->sends ? c->from : c->to,
          c->sends ? c->to : c->from, c->tag);
  for (const struct letter *l = o->first; l; l = l->next)
    fprintf(stderr, "  %zu bytes from %d to %d, tag %d%s%s\n", l->bytes, l->from, l->to, l->tag,
            l->received ? ", received" : "", l->rendezvous ? ", rendezvous" : "");
  abort();
}

/* ---- the transport ---- */

static void *channel(void *data, size_t bytes, int from, int to, int tag, bool sends) {
  struct channel *c = memory(sizeof *c);
  *c = (struct channel){here->office, from, to, tag, data, bytes, sends, false, NULL, NULL};
  return c;
}

static void *sender(const void *data, size_t bytes, int to, int tag) {
  return channel((void *)(uintptr_t)data, bytes, here->transport.rank, to, tag, true);
}

static void *receiver(void *data, size_t bytes, int from, int tag) {
  return channel(data, bytes, from, here->transport.rank, tag, false);
}

static void drop(void *which) {
  struct channel *c = which;
  enter(c->office);
  if (c->under_way) complain(c->office, "dropped under way", c);
  leave(c->office);
  free(c);
}

static void start(void *which) {
  struct channel *c = which;
  enter(c->office);
  if (c->under_way) complain(c->office, "started again under way", c);
  c->under_way = true;
  if (c->sends)
    c->letter = post(c->office, c);
  else
    post_receiver(c->office, c);
  leave(c->office);
}

static bool done(void *which) {
  struct channel *c = which;
  struct office *o = c->office;
  static _Thread_local uint64_t count;
  static _Thread_local time_t since;
  enter(o);
  if (!c->under_way) complain(o, "asked for, and not under way", c);
  bool ended = c->sends ? is_done(o, c->letter) : is_received(o, c);
  if (ended) {
    c->under_way = false;
    if (!c->sends) unpost_receiver(o, c);
  } else
    have_patience(o, c, &count, &since);
  leave(o);
  return ended;
}

static void stop(void) {}

/* ---- processes ---- */

static void *run(void *process) {
  here = process;
  here->fn(here->arg, &here->transport);
  return NULL;
}

const char *processes_run(struct arena *a, int count, enum delivery delivery, uint64_t seed, process_fn *fn,
                          void *arg) {
  struct office o = {.delivery = delivery, .random = {seed}};
  struct process *all = arena_new_array(a, (size_t)count, struct process);
  pthread_mutex_init(&o.lock, NULL);
  for (int i = 0; i < count; i++) {
    const struct transport t = {.rank = i,
                                .size = count,
                                .library = "mailboxes",
                                .sender = sender,
                                .receiver = receiver,
                                .drop = drop,
                                .start = start,
                                .done = done,
                                .stop = stop};
    all[i] = (struct process){.office = &o, .transport = t, .fn = fn, .arg = arg};
    if (pthread_create(&all[i].thread, NULL, run, &all[i])) abort();
  }
  for (int i = 0; i < count; i++) pthread_join(all[i].thread, NULL);
  while (o.first) {
    struct letter *l = o.first;
    const struct channel c = {.from = l->from, .to = l->to, .tag = l->tag, .bytes = l->bytes};
    complain(&o, l->received ? "never asked whether it is sent" : "never received", &c);
    l->received = l->done = true;
    forget(&o, l);
  }
  pthread_mutex_destroy(&o.lock);
  return o.wrong[0] ? arena_strdup(a, o.wrong) : NULL;
}
