/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of a plan for processes. Each has a channel of the transport, made where its bytes lie when addresses are
 * computed. A receive is posted as soon as its place is free (ir/plan/posts.h), so that the message comes while its
 * device computes. Workers take turns in talking, and none waits for its turn: a command that does not get it is tried
 * again, as one is whose message is not there yet.
 *
 * What a device sends or receives whose memory is not the host's goes through memory of the host. The thread that gives
 * the device its work waits until what is sent has been computed. */
#include "ir/graph/graph.h"
#include "runtime/exec_internal.h"
#include "runtime/host_memory.h"
#include "runtime/mpi/watch.h"

struct outlet {
  struct exec *e;
  const struct message *message;
  void *channel;
  void *data;    /* that the channel was made for */
  void *staging; /* memory of the host, for a device that has its own; else NULL */
  bool under_way;
};

static bool take_turn(struct exec *e) {
  return !atomic_exchange_explicit(&e->talking, true, memory_order_acquire);
}

static void end_turn(struct exec *e) { atomic_store_explicit(&e->talking, false, memory_order_release); }

static bool begin_to_send(void *outlet) {
  struct outlet *o = outlet;
  if (!take_turn(o->e)) return false;
  o->e->transport->start(o->channel);
  end_turn(o->e);
  return true;
}

static bool is_sent(void *outlet) {
  struct outlet *o = outlet;
  if (!take_turn(o->e)) return false;
  bool done = o->e->transport->done(o->channel);
  end_turn(o->e);
  return done;
}

static bool begin_to_receive(void *outlet) {
  struct outlet *o = outlet;
  if (!take_turn(o->e)) return false;
  o->e->transport->start(o->channel);
  o->under_way = true;
  end_turn(o->e);
  return true;
}

static bool is_received(void *outlet) {
  struct outlet *o = outlet;
  if (!take_turn(o->e)) return false;
  if (!o->under_way) o->e->transport->start(o->channel);
  o->under_way = true;
  bool done = o->e->transport->done(o->channel);
  if (done) o->under_way = false;
  end_turn(o->e);
  return done;
}

void exec_make_outlets(struct exec *e) {
  const struct plan *p = e->plan;
  size_t waits = (size_t)workers_count(e->workers) * (size_t)e->transport->size;
  e->waited = arena_new_array(e->arena, waits, uint64_t);
  for (int d = 0; d < p->ndevices; d++)
    for (int i = 0; p->processes[d] == e->transport->rank && i < p->devices[d].nsteps; i++)
      if (p->devices[d].steps[i].kind == STEP_SEND) e->sent += p->devices[d].steps[i].bytes;
  e->outlets = arena_new_array(e->arena, (size_t)e->plan->nmessages, struct outlet);
}

static bool (*reached_by(const struct step *s))(void *) {
  return s->kind == STEP_SEND ? begin_to_send : s->kind == STEP_SENT ? is_sent : is_received;
}

static void add_poll(struct command **next, int step, bool (*reached)(void *event), void *event) {
  *(*next)++ =
      (struct command){.kind = COMMAND_POLL, .step = (uint32_t)step, .reached = reached, .event = event};
}

/* Between the device and its staging memory. */
static bool add_copy(struct exec *e, int device, int step, bool sends, size_t bytes, struct command **next,
                     struct diags *d) {
  const struct opened *on = e->engines->devices[device];
  struct command *c = (*next)++;
  *c = (struct command){.step = (uint32_t)step, .args = arena_new_array(e->arena, 2, void *)};
  return on->backend->prepare_copy(on->self, e->arena, sends ? -1 : device, sends ? device : -1, bytes, c, d);
}

/* When all that the device was given so far is done. */
static bool add_mark(struct exec *e, int device, int step, struct command **next, struct diags *d) {
  const struct opened *on = e->engines->devices[device];
  void *event = NULL;
  if (!on->backend->mark) return true;
  struct command *c = (*next)++;
  if (!on->backend->mark(on->self, e->arena, device, QUEUE_WORK, c, &event, d)) return false;
  c->step = (uint32_t)step;
  add_poll(next, step, on->backend->reached, event);
  return true;
}

static bool load_staged(struct exec *e, int device, int step, struct outlet *o, struct command **next,
                        struct diags *d) {
  const struct step *s = &e->plan->devices[device].steps[step];
  size_t bytes = (size_t)o->message->bytes;
  bool sends = s->kind == STEP_SEND;
  o->staging = host_alloc(bytes);
  if (!o->staging) {
    diag_failure(d, LOC_NONE, "out of memory: %zu bytes for message %d", bytes, o->message->number);
    return false;
  }
  if (!sends) add_poll(next, step, is_received, o);
  if ((sends && !add_mark(e, device, step, next, d)) || !add_copy(e, device, step, sends, bytes, next, d))
    return false;
  if (sends) add_poll(next, step, begin_to_send, o);
  return true;
}

bool exec_load_message(struct exec *e, int device, int step, struct command **next, struct diags *d) {
  const struct step *s = &e->plan->devices[device].steps[step];
  struct outlet *o = &e->outlets[s->message->number];
  if (s->kind != STEP_SENT) *o = (struct outlet){.e = e, .message = s->message};
  if (s->kind != STEP_SENT && !engines_on_host(e->engines, device))
    return load_staged(e, device, step, o, next, d);
  add_poll(next, step, reached_by(s), o);
  if (s->noperands) (*next)[-1].args = arena_new_array(e->arena, (size_t)s->noperands, void *);
  return true;
}

void exec_load_post(struct exec *e, const struct step *s, struct command *c) {
  c->kind = COMMAND_POLL;
  c->event = &e->outlets[s->message->number];
  c->reached = begin_to_receive;
}

bool exec_bind_message(struct exec *e, const struct step *s, void **args, struct diags *d) {
  struct outlet *o = &e->outlets[s->message->number];
  const struct message *m = s->message;
  const struct transport *t = e->transport;
  bool sends = s->kind == STEP_SEND;
  void *operand = operand_address(e, &s->operands[0]), *data = o->staging ? o->staging : operand;
  if (o->staging) args[0] = sends ? operand : data, args[1] = sends ? data : operand;
  if (o->channel && o->data == data) return true;
  if (o->channel) t->drop(o->channel);
  o->data = data;
  o->channel =
      sends ? t->sender(t, data, (size_t)m->bytes, e->plan->processes[m->to], TAG_MESSAGES + m->tag)
            : t->receiver(t, data, (size_t)m->bytes, e->plan->processes[m->from], TAG_MESSAGES + m->tag);
  if (!o->channel && d)
    diag_error(d, LOC_NONE, "%s %s message %d, of %lld bytes", t->library,
               transport_carries((size_t)m->bytes) ? "has no memory for" : "cannot carry", m->number,
               (long long)m->bytes);
  return o->channel != NULL;
}

/* --- what time goes into --- */

int exec_awaited(const struct exec *e, int device, const struct command *c) {
  const struct device_plan *dp = &e->plan->devices[device];
  const struct message *m = c->step < (uint32_t)dp->nsteps ? dp->steps[c->step].message : NULL;
  if (c->kind != COMMAND_POLL || !m) return e->transport->rank;
  return e->plan->processes[m->to == device ? m->from : m->to];
}

void exec_tally(struct exec *e, uint64_t time) {
  struct tally *t = e->transport->tally;
  uint64_t all = 0;
  int workers = 0, size = e->transport->size;
  for (int i = 0; i < workers_count(e->workers); i++) workers += e->first_lane[i + 1] > e->first_lane[i];
  for (int i = 0; i < workers_count(e->workers) * size; i++) {
    uint64_t waited = e->waited[i] / (uint64_t)(workers ? workers : 1);
    t->waiting[i % size] += waited;
    all += waited;
    e->waited[i] = 0;
  }
  t->computing += time > all ? time - all : 0;
  t->sent += e->sent;
}

/* --- who waits for whom --- */

/* The device that is asked for; for none, the first that goes on, as far as is known, else one that waits. */
static const struct lane *lane_in_question(struct exec *e, int device) {
  const struct lane *waits = e->lanes;
  for (struct lane *l = e->lanes; l < e->lanes + e->nlanes; l++) {
    const struct command *long_wait = atomic_load(&l->long_wait);
    if (l->device == device) return l;
    if (device < 0 && !long_wait) return l;
    if (long_wait && long_wait->kind != COMMAND_END) waits = l;
  }
  return waits;
}

static struct lane *lane_of_giver(struct exec *e, int signal) {
  int step, device = exec_giver(e, signal, &step);
  for (struct lane *l = e->lanes; l < e->lanes + e->nlanes; l++)
    if (l->device == device) return l;
  return NULL;
}

/* "sent h.kernel.grad": what the other process has not done with the message. */
static void say_wait(const struct exec *e, const struct message *m, int device, struct whereabouts *out) {
  bool comes = m->to == device;
  const char *value = m->node->ninputs ? m->node->inputs[0]->name : m->node->name;
  out->waits_for = e->plan->processes[comes ? m->from : m->to];
  out->device = comes ? m->from : m->to;
  snprintf(out->what, sizeof out->what, "%s %s", comes ? "sent" : "taken", value);
}

/* Where this process stands, as runtime/mpi/watch.h has it; `exec` is the struct exec. */
static void exec_whereabouts(void *exec, int device, struct whereabouts *out) {
  struct exec *e = exec;
  const struct lane *l = lane_in_question(e, device);
  for (int hops = 0; l && hops < e->nlanes; hops++) {
    const struct device_plan *dp = &e->plan->devices[l->device];
    const struct command *c = atomic_load(&l->long_wait);
    const struct step *s = c && c->step < (uint32_t)dp->nsteps ? &dp->steps[c->step] : NULL;
    snprintf(out->what, sizeof out->what, "%s", e->engines->target.devices[l->device].text);
    if (!s || c->kind == COMMAND_END) return;
    if (s->message) {
      say_wait(e, s->message, l->device, out);
      return;
    }
    l = c->kind == COMMAND_WAIT ? lane_of_giver(e, s->signal) : NULL;
  }
}

bool exec_answer(struct exec *e) {
  struct whereabouts mine = {.waits_for = -1, .device = -1};
  uint64_t now = transport_now(e->transport);
  if (now - atomic_load(&e->answered) < WATCH_EVERY || !take_turn(e)) return true;
  atomic_store(&e->answered, now);
  watch_answer(e->transport, exec_whereabouts, e);
  exec_whereabouts(e, -1, &mine);
  bool bereft = watch_bereft(e->transport, &mine);
  end_turn(e);
  return !bereft;
}

void exec_inquire(struct exec *e) {
  struct whereabouts mine = {.waits_for = -1, .device = -1};
  while (!take_turn(e)) {}
  exec_whereabouts(e, -1, &mine);
  if (mine.waits_for >= 0) watch_inquire(e->transport, &mine);
  end_turn(e);
}

void exec_drop_messages(struct exec *e) {
  for (int i = 0; e->outlets && i < e->plan->nmessages; i++) {
    if (e->outlets[i].channel) e->transport->drop(e->outlets[i].channel);
    host_free(e->outlets[i].staging);
  }
}
