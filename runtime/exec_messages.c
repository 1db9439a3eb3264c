/* Messages of a plan for processes. Each has a channel of the transport, made where its bytes lie when addresses are
 * computed. A receive is posted as soon as its place is free (ir/plan/posts.h), so that the message comes while its
 * device computes. Workers take turns in talking, and none waits for its turn: a command that does not get it is tried
 * again, as one is whose message is not there yet. */
#include "runtime/exec_internal.h"
#include "runtime/mpi/transport.h"

struct outlet {
  struct exec *e;
  const struct message *message;
  void *channel;
  void *data; /* that the channel was made for */
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
  e->outlets = arena_new_array(e->arena, (size_t)e->plan->nmessages, struct outlet);
}

void exec_load_message(struct exec *e, const struct step *s, struct command *c) {
  struct outlet *o = &e->outlets[s->message->number];
  *o = (struct outlet){.e = e, .message = s->message};
  c->kind = COMMAND_POLL;
  c->event = o;
  c->reached = s->kind == STEP_SEND ? begin_to_send : s->kind == STEP_SENT ? is_sent : is_received;
}

void exec_load_post(struct exec *e, const struct step *s, struct command *c) {
  c->kind = COMMAND_POLL;
  c->event = &e->outlets[s->message->number];
  c->reached = begin_to_receive;
}

bool exec_bind_message(struct exec *e, const struct step *s, struct diags *d) {
  struct outlet *o = &e->outlets[s->message->number];
  const struct message *m = s->message;
  const struct transport *t = e->transport;
  void *data = operand_address(e, &s->operands[0]);
  if (o->channel && o->data == data) return true;
  if (o->channel) t->drop(o->channel);
  o->data = data;
  bool sends = s->kind == STEP_SEND;
  o->channel =
      sends ? t->sender(data, (size_t)m->bytes, e->plan->processes[m->to], TAG_MESSAGES + m->number)
            : t->receiver(data, (size_t)m->bytes, e->plan->processes[m->from], TAG_MESSAGES + m->number);
  if (!o->channel && d)
    diag_error(d, LOC_NONE, "%s cannot carry message %d, of %lld bytes", t->library, m->number,
               (long long)m->bytes);
  return o->channel != NULL;
}

void exec_drop_messages(struct exec *e) {
  for (int i = 0; e->outlets && i < e->plan->nmessages; i++)
    if (e->outlets[i].channel) e->transport->drop(e->outlets[i].channel);
}
