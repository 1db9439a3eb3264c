/* SPDX-License-Identifier: Apache-2.0 */
/* A transport of mailboxes. One lock for all of them: what is sent is a list, in the order of sending. */
#include "tests/support/processes.h"

#include "runtime/mpi/watch.h"
#include "tests/support/random.h"

#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PATIENCE = 200, TICK = 50000000 }; /* seconds; nanoseconds of the clock of processes in trouble */

/* Bytes on their way. It is gone when the receiver has them and the sender knows that it is done. */
struct letter {
  struct letter *next; /* in the order of sending */
  int from, to, tag;
  size_t bytes;
  const void *at; /* the sender's memory */
  void *taken;    /* copied from there */
  int late;       /* how often the receiver finds nothing yet */
  uint64_t time;  /* when it was sent */
  bool rendezvous, received, done;
  bool early; /* it comes to lie in its place as soon as that is posted */
  bool there;
};

struct office {
  pthread_mutex_t lock;
  pthread_cond_t change; /* of count */
  const struct trouble *trouble;
  struct process *all;
  int nprocesses;
  struct letter *first;
  struct channel *channels; /* all that have not been dropped */
  struct channel *posted;   /* receivers under way */
  struct rng random;
  enum delivery delivery;
  uint64_t count; /* of what has been sent and received, and of what else has changed */
  char wrong[200];
};

struct process {
  struct office *office;
  struct watch watch;
  struct tally tally;
  uint64_t clock;
  int sent; /* messages of plans */
  bool idle, ended, stuck;
  struct transport transport;
  process_fn *fn;
  void *arg;
  pthread_t thread;
};

/* A way from a process to another: a channel is asked by any thread of its process. */
struct channel {
  struct office *office;
  struct process *process;
  int from, to, tag;
  void *data;
  size_t bytes;
  bool sends, under_way;
  struct letter *letter; /* of a sender under way */
  int waited;            /* how often it has found what was sent later than it is here */
  struct channel *next;  /* that is posted */
  struct channel *other; /* that has not been dropped */
};

static struct process *process_of(const struct transport *t) {
  return (struct process *)((uintptr_t)t - offsetof(struct process, transport));
}

static void enter(struct office *o) {
  pthread_mutex_lock(&o->lock);
  if (o->delivery != DELIVER_ANY || !rng_chance(&o->random, 25)) return;
  pthread_mutex_unlock(&o->lock);
  sched_yield();
  pthread_mutex_lock(&o->lock);
}

static void leave(struct office *o) { pthread_mutex_unlock(&o->lock); }

/* Something has changed for others. */
static void move(struct office *o) {
  o->count++;
  if (o->trouble) pthread_cond_broadcast(&o->change);
}

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
  l->time = c->process->clock;
  l->early = o->delivery == DELIVER_AT_ONCE || (any && rng_chance(&o->random, 50));
  while (*end) end = &(*end)->next;
  *end = l;
  for (const struct channel *r = o->posted; r; r = r->next) arrive(o, r);
  move(o);
  return l;
}

static bool is_done(struct office *o, struct letter *l) {
  if (!l->received && l->rendezvous) return false;
  if (o->delivery == DELIVER_ANY && rng_chance(&o->random, 30)) return false;
  if (!l->received) take(l);
  l->done = true;
  forget(o, l);
  move(o);
  return true;
}

/* Whoever receives what was sent later than it is here waits until then: it has come to where it waits when it asks the
 * first time, and has nothing else to do when it asks again. */
static bool is_late(struct channel *c, const struct letter *l) {
  struct process *p = c->process;
  if (!p->office->trouble || l->time <= p->clock) return false;
  if (c->waited++ < 2) return true;
  p->clock = l->time;
  c->waited = 0;
  return false;
}

static bool is_received(struct office *o, struct channel *c) {
  struct letter *l = letter_for(o, c);
  if (!l || l->late-- > 0 || is_late(c, l)) return false;
  if (l->bytes != c->bytes) complain(o, "of another size", c);
  size_t bytes = l->bytes < c->bytes ? l->bytes : c->bytes;
  if (bytes && !l->there) memcpy(c->data, l->taken ? l->taken : l->at, bytes);
  l->received = true;
  forget(o, l);
  move(o);
  return true;
}

/* A caller's memory of how long this office's messages have not moved. A machine that stood still for a while, as
 * virtual ones do, has waited a second at most. */
struct patience {
  uint64_t count;
  time_t looked, waited; /* seconds */
  unsigned looks;
};

static void have_patience(const struct office *o, const struct channel *c, struct patience *p) {
  enum { SELDOM = 64 }; /* the clock costs more than a look at the mail */
  struct timespec now;
  if (p->count != o->count) p->looks = 0;
  if (p->looks++ % SELDOM) return;
  clock_gettime(CLOCK_MONOTONIC, &now);
  if (p->count != o->count || !p->looked) *p = (struct patience){o->count, now.tv_sec, 0, 1};
  p->waited += now.tv_sec > p->looked;
  p->looked = now.tv_sec;
  if (p->waited < PATIENCE) return;
  fprintf(stderr, "nothing moves: process %d waits for %d, tag %d\n", c->sends ? c->from : c->to,
          c->sends ? c->to : c->from, c->tag);
  for (const struct letter *l = o->first; l; l = l->next)
    fprintf(stderr, "  %zu bytes from %d to %d, tag %d%s%s\n", l->bytes, l->from, l->to, l->tag,
            l->received ? ", received" : "", l->rendezvous ? ", rendezvous" : "");
  abort();
}

/* ---- time, and who is stuck ---- */

static uint64_t now(const struct transport *t) {
  struct process *p = process_of(t);
  enter(p->office);
  uint64_t time = p->clock;
  leave(p->office);
  return time;
}

/* Time goes on when all that are well have found nothing to do since it did so last. */
static void tick(struct office *o) {
  for (int i = 0; i < o->nprocesses; i++)
    if (!o->all[i].idle && !o->all[i].ended && !o->all[i].stuck) return;
  for (int i = 0; i < o->nprocesses; i++) {
    o->all[i].idle = false;
    o->all[i].clock += TICK;
  }
  move(o);
}

/* The process has looked for something to do, and found nothing: it sleeps until there may be something. */
static void pass_time(struct process *p) {
  struct office *o = p->office;
  uint64_t count = o->count;
  if (o->trouble->stuck < 0) return;
  p->idle = true;
  tick(o);
  while (o->count == count) pthread_cond_wait(&o->change, &o->lock);
}

/* As if it had been stopped; when all others have ended, it goes on. */
static void be_stuck(struct process *p) {
  struct office *o = p->office;
  p->stuck = true;
  tick(o);
  for (bool alone = false; !alone;) {
    alone = true;
    for (int i = 0; i < o->nprocesses; i++) alone = alone && (&o->all[i] == p || o->all[i].ended);
    if (!alone) pthread_cond_wait(&o->change, &o->lock);
  }
  p->stuck = false;
}

/* Before a process sends a message of a plan. */
static void compute(struct process *p) {
  const struct trouble *t = p->office->trouble;
  if (t->pace) p->clock += t->pace[p->transport.rank];
  if (t->stuck == p->transport.rank && p->sent == t->after) be_stuck(p);
  p->sent++;
}

/* ---- the transport ---- */

static void *channel(const struct transport *t, void *data, size_t bytes, int peer, int tag, bool sends) {
  struct channel *c = memory(sizeof *c);
  struct process *p = process_of(t);
  int from = sends ? t->rank : peer, to = sends ? peer : t->rank;
  *c = (struct channel){p->office, p, from, to, tag, data, bytes, sends, false, NULL, 0, NULL, NULL};
  enter(p->office);
  c->other = p->office->channels;
  p->office->channels = c;
  leave(p->office);
  return c;
}

static void *sender(const struct transport *t, const void *data, size_t bytes, int to, int tag) {
  return channel(t, (void *)(uintptr_t)data, bytes, to, tag, true);
}

static void *receiver(const struct transport *t, void *data, size_t bytes, int from, int tag) {
  return channel(t, data, bytes, from, tag, false);
}

static bool take_any(const struct transport *t, void *data, size_t bytes, int tag) {
  struct process *p = process_of(t);
  struct office *o = p->office;
  enter(o);
  struct letter *l = o->first;
  while (l && (l->received || l->to != t->rank || l->tag != tag)) l = l->next;
  if (l) {
    memcpy(data, l->taken ? l->taken : l->at, bytes);
    l->received = true;
    forget(o, l);
    move(o);
  } else if (o->trouble) {
    pass_time(p);
  }
  leave(o);
  if (!l) sched_yield();
  return l != NULL;
}

static int ended(const struct transport *t) {
  struct process *p = process_of(t);
  int dead = -1;
  enter(p->office);
  for (int i = 0; i < p->office->nprocesses; i++)
    if (p->office->all[i].stuck && p->office->trouble->dead) dead = i;
  leave(p->office);
  return dead;
}

static const char *host(const struct transport *t, int process) {
  static const char *const names[] = {"north", "east", "south", "west"};
  (void)t;
  return names[process % 4];
}

static void forget_channel(struct office *o, struct channel *c) {
  struct channel **p = &o->channels;
  while (*p != c) p = &(*p)->other;
  *p = c->other;
  free(c);
}

static void drop(void *which) {
  struct channel *c = which;
  struct office *o = c->office;
  enter(o);
  if (c->under_way) complain(o, "dropped under way", c);
  if (c->under_way && !c->sends) unpost_receiver(o, c);
  forget_channel(o, c);
  leave(o);
}

static void start(void *which) {
  struct channel *c = which;
  enter(c->office);
  if (c->under_way) complain(c->office, "started again under way", c);
  c->under_way = true;
  if (c->sends && c->office->trouble && c->tag >= TAG_MESSAGES) compute(c->process);
  if (c->sends)
    c->letter = post(c->office, c);
  else
    post_receiver(c->office, c);
  leave(c->office);
}

static bool done(void *which) {
  struct channel *c = which;
  struct office *o = c->office;
  static _Thread_local struct patience patience;
  enter(o);
  if (!c->under_way) complain(o, "asked for, and not under way", c);
  bool ended = c->sends ? is_done(o, c->letter) : is_received(o, c);
  if (ended) {
    c->under_way = false;
    if (!c->sends) unpost_receiver(o, c);
  } else
    have_patience(o, c, &patience);
  leave(o);
  return ended;
}

static void stop(void) {}

/* ---- processes ---- */

static void *run(void *process) {
  struct process *p = process;
  p->fn(p->arg, &p->transport);
  watch_end(&p->transport);
  pthread_mutex_lock(&p->office->lock);
  p->ended = true;
  move(p->office);
  if (p->office->trouble) tick(p->office);
  pthread_mutex_unlock(&p->office->lock);
  return NULL;
}

static void run_all(struct arena *a, struct office *o, int count, process_fn *fn, void *arg) {
  o->all = arena_new_array(a, (size_t)count, struct process);
  o->nprocesses = count;
  pthread_mutex_init(&o->lock, NULL);
  pthread_cond_init(&o->change, NULL);
  for (int i = 0; i < count; i++) {
    const struct transport t = {.rank = i,
                                .size = count,
                                .library = "mailboxes",
                                .sender = sender,
                                .receiver = receiver,
                                .drop = drop,
                                .start = start,
                                .done = done,
                                .take = take_any,
                                .host = host,
                                .ended = o->trouble ? ended : NULL,
                                .now = o->trouble ? now : NULL,
                                .watch = &o->all[i].watch,
                                .tally = &o->all[i].tally,
                                .stop = stop};
    o->all[i] = (struct process){.office = o, .transport = t, .fn = fn, .arg = arg, .clock = 1000000000};
    o->all[i].tally.waiting = arena_new_array(a, (size_t)count, uint64_t);
  }
  for (int i = 0; i < count; i++)
    if (pthread_create(&o->all[i].thread, NULL, run, &o->all[i])) abort();
  for (int i = 0; i < count; i++) pthread_join(o->all[i].thread, NULL);
  while (o->first) {
    struct letter *l = o->first;
    const struct channel c = {.from = l->from, .to = l->to, .tag = l->tag, .bytes = l->bytes};
    complain(o, l->received ? "never asked whether it is sent" : "never received", &c);
    l->received = l->done = true;
    forget(o, l);
  }
  while (o->channels) { /* who is in trouble leaves what is under way */
    complain(o, "never dropped", o->channels);
    forget_channel(o, o->channels);
  }
  pthread_cond_destroy(&o->change);
  pthread_mutex_destroy(&o->lock);
}

const char *processes_run(struct arena *a, int count, enum delivery delivery, uint64_t seed, process_fn *fn,
                          void *arg) {
  struct office o = {.delivery = delivery, .random = {seed}};
  run_all(a, &o, count, fn, arg);
  return o.wrong[0] ? arena_strdup(a, o.wrong) : NULL;
}

void processes_run_in_trouble(struct arena *a, int count, const struct trouble *trouble, process_fn *fn,
                              void *arg) {
  struct office o = {.delivery = DELIVER_AT_ONCE, .trouble = trouble};
  run_all(a, &o, count, fn, arg);
}
