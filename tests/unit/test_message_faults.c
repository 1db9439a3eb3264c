/* SPDX-License-Identifier: Apache-2.0 */
/* Plans for processes with faults planted in their messages: plan_verify finds each. */
#include "message_case.h"

/* A plan that a fault is planted in: a copy, but for what never changes. */
static struct plan *plan_copy(struct arena *a, const struct plan *from) {
  struct plan *p = arena_copy(a, from, sizeof *from);
  p->buffers = arena_copy(a, from->buffers, (size_t)p->nbuffers * sizeof *p->buffers);
  p->messages = arena_copy(a, from->messages, (size_t)p->nmessages * sizeof *p->messages);
  p->outputs = arena_copy(a, from->outputs, (size_t)p->noutputs * sizeof *p->outputs);
  p->devices = arena_copy(a, from->devices, (size_t)p->ndevices * sizeof *p->devices);
  for (int d = 0; d < p->ndevices; d++) {
    struct device_plan *dp = &p->devices[d];
    dp->steps = arena_copy(a, dp->steps, (size_t)dp->nsteps * sizeof *dp->steps);
    for (int i = 0; i < dp->nsteps; i++) {
      struct step *s = &dp->steps[i];
      s->operands = arena_copy(a, s->operands, (size_t)s->noperands * sizeof *s->operands);
      if (s->message) s->message = &p->messages[s->message->number];
    }
  }
  return p;
}

struct place {
  int device, at;
};

/* Where a message has its step of this kind. */
static struct place place_of(const struct plan *p, enum step_kind kind, int message) {
  int d = kind == STEP_RECEIVE ? p->messages[message].to : p->messages[message].from;
  const struct device_plan *dp = &p->devices[d];
  for (int i = 0; i < dp->nsteps; i++)
    if (dp->steps[i].kind == kind && dp->steps[i].message->number == message) return (struct place){d, i};
  fail_msg("message %d lacks a step", message);
  return (struct place){-1, -1};
}

static struct step *step_at(const struct plan *p, struct place at) {
  return &p->devices[at.device].steps[at.at];
}

static struct operand *operands_of(const struct step *s) { return (struct operand *)(uintptr_t)s->operands; }

/* Step `from` of the device comes to stand at `to`; those between move, and with them when buffers begin and end. */
static void move_step(struct plan *p, int device, int from, int to) {
  struct step *steps = p->devices[device].steps, moved = steps[from];
  int by = from < to ? 1 : -1;
  for (int i = from; i != to; i += by) steps[i] = steps[i + by];
  steps[to] = moved;
  for (int i = 0; i < p->nbuffers; i++) {
    struct plan_buffer *b = &p->buffers[i];
    if (b->device != device) continue;
    int *ends[] = {&b->first, &b->last};
    for (int k = 0; k < 2; k++)
      if (*ends[k] == from)
        *ends[k] = to;
      else if (by > 0 ? *ends[k] > from && *ends[k] <= to : *ends[k] < from && *ends[k] >= to)
        *ends[k] -= by;
  }
}

static void insert_step(struct arena *a, struct plan *p, int device, int at, struct step s) {
  struct device_plan *dp = &p->devices[device];
  struct step *more = arena_new_array(a, (size_t)dp->nsteps + 1, struct step);
  memcpy(more, dp->steps, (size_t)dp->nsteps * sizeof *more);
  more[dp->nsteps] = s;
  dp->steps = more;
  move_step(p, device, dp->nsteps++, at);
}

static void remove_step(struct plan *p, struct place at) {
  move_step(p, at.device, at.at, p->devices[at.device].nsteps - 1);
  p->devices[at.device].nsteps--;
}

/* ---- what is planted: `which` is a message, or a pair of them; false where there is no such place ---- */

static bool one_message(const struct plan *p, int which) { return which < p->nmessages; }

/* Pair number `which`. */
static bool two_messages(const struct plan *p, int which, int *first, int *second) {
  int n = p->nmessages;
  *first = *second = 0;
  if (n < 2 || which >= n * (n - 1) / 2) return false;
  for (*second = 1; which >= *second; ++*second) which -= *second;
  *first = which;
  return true;
}

enum planting { PLANTED, NOT_HERE, NO_MORE };

static enum planting dropped(struct plan *p, int which, enum step_kind kind) {
  if (!one_message(p, which)) return NO_MORE;
  remove_step(p, place_of(p, kind, which));
  return PLANTED;
}

static enum planting dropped_send(struct arena *a, struct plan *p, int which) {
  (void)a;
  return dropped(p, which, STEP_SEND);
}

static enum planting dropped_receive(struct arena *a, struct plan *p, int which) {
  (void)a;
  return dropped(p, which, STEP_RECEIVE);
}

static enum planting dropped_sent(struct arena *a, struct plan *p, int which) {
  (void)a;
  return dropped(p, which, STEP_SENT);
}

static enum planting repeated(struct arena *a, struct plan *p, int which, enum step_kind kind) {
  if (!one_message(p, which)) return NO_MORE;
  struct place at = place_of(p, kind, which);
  insert_step(a, p, at.device, at.at + 1, *step_at(p, at));
  return PLANTED;
}

static enum planting repeated_send(struct arena *a, struct plan *p, int which) {
  return repeated(a, p, which, STEP_SEND);
}

static enum planting repeated_receive(struct arena *a, struct plan *p, int which) {
  return repeated(a, p, which, STEP_RECEIVE);
}

static enum planting repeated_sent(struct arena *a, struct plan *p, int which) {
  return repeated(a, p, which, STEP_SENT);
}

/* Those of one copy to several processes are sent from one place: which of them goes first is all the same. */
static enum planting exchanged(struct plan *p, int which, enum step_kind kind) {
  int one, two;
  if (!two_messages(p, which, &one, &two)) return NO_MORE;
  const struct message *m = &p->messages[one], *n = &p->messages[two];
  if (m->node == n->node || m->from != n->from || (kind != STEP_SENT && m->bytes != n->bytes))
    return NOT_HERE;
  if (kind == STEP_RECEIVE && m->to != n->to) return NOT_HERE;
  struct step *s = step_at(p, place_of(p, kind, one)), *t = step_at(p, place_of(p, kind, two));
  s->message = n;
  t->message = m;
  return PLANTED;
}

static enum planting exchanged_sends(struct arena *a, struct plan *p, int which) {
  (void)a;
  return exchanged(p, which, STEP_SEND);
}

static enum planting exchanged_receives(struct arena *a, struct plan *p, int which) {
  (void)a;
  return exchanged(p, which, STEP_RECEIVE);
}

static enum planting exchanged_sents(struct arena *a, struct plan *p, int which) {
  (void)a;
  return exchanged(p, which, STEP_SENT);
}

/* The first step of the device behind `at` that reads the buffer, or writes it; the last one before it that writes
 * it. */
static int next_use(const struct plan *p, struct place at, int buffer, bool writes) {
  const struct device_plan *dp = &p->devices[at.device];
  for (int i = at.at + 1; i < dp->nsteps; i++) {
    const struct step *s = &dp->steps[i];
    int reads = s->noperands - step_results(s);
    for (int k = writes ? reads : 0; k < (writes ? s->noperands : reads); k++)
      if (s->operands[k].buffer == buffer) return i;
  }
  return -1;
}

static int last_write(const struct plan *p, struct place at, int buffer) {
  int last = -1;
  for (struct place i = {at.device, -1}; (i.at = next_use(p, i, buffer, true)) >= 0 && i.at < at.at;)
    last = i.at;
  return last;
}

static enum planting late_sent(struct arena *a, struct plan *p, int which) {
  (void)a;
  if (!one_message(p, which)) return NO_MORE;
  int buffer = step_at(p, place_of(p, STEP_SEND, which))->operands[0].buffer;
  struct place at = place_of(p, STEP_SENT, which);
  int writer = next_use(p, at, buffer, true);
  if (writer < 0) return NOT_HERE;
  move_step(p, at.device, at.at, writer);
  return PLANTED;
}

static enum planting early_send(struct arena *a, struct plan *p, int which) {
  (void)a;
  if (!one_message(p, which)) return NO_MORE;
  struct place at = place_of(p, STEP_SEND, which);
  int writer = last_write(p, at, step_at(p, at)->operands[0].buffer);
  if (writer < 0) return NOT_HERE;
  move_step(p, at.device, at.at, writer);
  return PLANTED;
}

/* Both the value before and the one behind are read, and a plan does not say which of them a step is to read. */
static bool receives_variable(const struct plan *p, struct place at) {
  return p->buffers[step_at(p, at)->operands[0].buffer].region == REGION_VARIABLE;
}

static enum planting late_receive(struct arena *a, struct plan *p, int which) {
  (void)a;
  if (!one_message(p, which)) return NO_MORE;
  struct place at = place_of(p, STEP_RECEIVE, which);
  int reader = next_use(p, at, step_at(p, at)->operands[0].buffer, false);
  if (reader < 0 || receives_variable(p, at)) return NOT_HERE;
  move_step(p, at.device, at.at, reader);
  return PLANTED;
}

/* Behind the SENT of the same message, which waits for itself then. */
static enum planting send_behind_sent(struct arena *a, struct plan *p, int which) {
  (void)a;
  if (!one_message(p, which)) return NO_MORE;
  struct place send = place_of(p, STEP_SEND, which), sent = place_of(p, STEP_SENT, which);
  move_step(p, send.device, send.at, sent.at);
  return PLANTED;
}

/* Not always a fault: processes may come to wait for each other. */
static enum planting reversed_receives(struct arena *a, struct plan *p, int which) {
  (void)a;
  int one, two;
  if (!two_messages(p, which, &one, &two)) return NO_MORE;
  struct place first = place_of(p, STEP_RECEIVE, one), second = place_of(p, STEP_RECEIVE, two);
  if (first.device != second.device || receives_variable(p, first) || receives_variable(p, second))
    return NOT_HERE;
  int early = first.at < second.at ? first.at : second.at, late = first.at + second.at - early;
  move_step(p, first.device, late, early);
  if (early + 1 < late) move_step(p, first.device, early + 1, late);
  return PLANTED;
}

static enum planting early_sent(struct arena *a, struct plan *p, int which) {
  (void)a;
  if (!one_message(p, which)) return NO_MORE;
  struct place send = place_of(p, STEP_SEND, which), sent = place_of(p, STEP_SENT, which);
  if (sent.at == send.at + 1) return NOT_HERE;
  move_step(p, sent.device, sent.at, send.at + 1);
  return PLANTED;
}

/* A buffer of another process that has as many bytes. */
static enum planting others_buffer(struct plan *p, int which, enum step_kind kind) {
  if (!one_message(p, which)) return NO_MORE;
  struct place at = place_of(p, kind, which);
  for (int i = 0; i < p->nbuffers; i++) {
    const struct plan_buffer *b = &p->buffers[i];
    if (plan_process(p, b->device) == plan_process(p, at.device) || b->bytes != p->messages[which].bytes)
      continue;
    operands_of(step_at(p, at))[0] = (struct operand){i, 0};
    return PLANTED;
  }
  return NOT_HERE;
}

static enum planting received_elsewhere(struct arena *a, struct plan *p, int which) {
  (void)a;
  return others_buffer(p, which, STEP_RECEIVE);
}

static enum planting sent_from_elsewhere(struct arena *a, struct plan *p, int which) {
  (void)a;
  return others_buffer(p, which, STEP_SEND);
}

/* The receiver copies from the sender's memory itself. */
static enum planting copied_across(struct arena *a, struct plan *p, int which) {
  if (!one_message(p, which)) return NO_MORE;
  struct place from = place_of(p, STEP_SEND, which), to = place_of(p, STEP_RECEIVE, which);
  struct step *s = step_at(p, to);
  struct operand *operands = arena_new_array(a, 2, struct operand);
  operands[0] = step_at(p, from)->operands[0];
  operands[1] = s->operands[0];
  *s = (struct step){
      .kind = STEP_COPY, .node = s->node, .bytes = s->bytes, .operands = operands, .noperands = 2};
  remove_step(p, from);
  remove_step(p, place_of(p, STEP_SENT, which));
  p->nmessages--;
  struct message *gone = &p->messages[which], *last = &p->messages[p->nmessages];
  for (int d = 0; d < p->ndevices; d++)
    for (int i = 0; i < p->devices[d].nsteps; i++)
      if (p->devices[d].steps[i].message == last) p->devices[d].steps[i].message = gone;
  *gone = *last;
  gone->number = which;
  return PLANTED;
}

/* The receiver is told by a signal, too, that its message has been sent. */
static enum planting signal_across(struct arena *a, struct plan *p, int which) {
  if (!one_message(p, which)) return NO_MORE;
  struct place from = place_of(p, STEP_SEND, which), to = place_of(p, STEP_RECEIVE, which);
  const struct node *n = step_at(p, from)->node;
  insert_step(a, p, from.device, from.at + 1,
              (struct step){.kind = STEP_SIGNAL, .node = n, .signal = p->nsignals});
  insert_step(a, p, to.device, to.at, (struct step){.kind = STEP_WAIT, .node = n, .signal = p->nsignals});
  p->nsignals++;
  return PLANTED;
}

static enum planting fewer_bytes(struct plan *p, int which, bool send, bool receive, bool message) {
  if (!one_message(p, which)) return NO_MORE;
  int64_t bytes = p->messages[which].bytes - 4;
  if (bytes < 0) return NOT_HERE;
  if (send) step_at(p, place_of(p, STEP_SEND, which))->bytes = bytes;
  if (receive) step_at(p, place_of(p, STEP_RECEIVE, which))->bytes = bytes;
  if (message) p->messages[which].bytes = bytes;
  return PLANTED;
}

static enum planting fewer_are_sent(struct arena *a, struct plan *p, int which) {
  (void)a;
  return fewer_bytes(p, which, true, false, false);
}

static enum planting fewer_are_received(struct arena *a, struct plan *p, int which) {
  (void)a;
  return fewer_bytes(p, which, false, true, false);
}

static enum planting fewer_everywhere(struct arena *a, struct plan *p, int which) {
  (void)a;
  return fewer_bytes(p, which, true, true, true);
}

/* To another device that has a process of its own: the steps stay where they are. */
static enum planting another_receiver(struct arena *a, struct plan *p, int which) {
  (void)a;
  if (!one_message(p, which)) return NO_MORE;
  struct message *m = &p->messages[which];
  for (int d = 0; d < p->ndevices; d++) {
    if (d == m->to || plan_process(p, d) == plan_process(p, m->from)) continue;
    m->to = d;
    return PLANTED;
  }
  return NOT_HERE;
}

/* The copy of an output that one process has is another one's, or none, or dies, or nobody writes it. */
static struct operand *copy_of_output(struct arena *a, struct plan *p, int which, int *process) {
  struct plan_value *v = &p->outputs[which / p->nprocesses];
  *process = which % p->nprocesses;
  struct operand *copies = arena_copy(a, v->copies, (size_t)p->nprocesses * sizeof *copies);
  v->copies = copies;
  return copies;
}

static enum planting output_of_another(struct arena *a, struct plan *p, int which) {
  if (which >= p->noutputs * p->nprocesses) return NO_MORE;
  int process;
  struct operand *copies = copy_of_output(a, p, which, &process);
  for (int i = 0; i < p->nprocesses; i++)
    if (i != process && copies[i].buffer >= 0) {
      copies[process] = copies[i];
      return PLANTED;
    }
  return NOT_HERE;
}

static enum planting no_output(struct arena *a, struct plan *p, int which) {
  if (which >= p->noutputs * p->nprocesses) return NO_MORE;
  int process;
  struct operand *copies = copy_of_output(a, p, which, &process);
  if (copies[process].buffer < 0) return NOT_HERE;
  if (process > 0 && p->outputs[which / p->nprocesses].role == OUTPUT_VALUE)
    return NOT_HERE; /* it need not */
  copies[process].buffer = -1;
  return PLANTED;
}

static enum planting output_that_dies(struct arena *a, struct plan *p, int which) {
  if (which >= p->noutputs * p->nprocesses) return NO_MORE;
  int process;
  const struct operand *copy = &copy_of_output(a, p, which, &process)[process];
  if (copy->buffer < 0 || p->buffers[copy->buffer].region != REGION_ARENA) return NOT_HERE;
  p->buffers[copy->buffer].last = p->devices[p->buffers[copy->buffer].device].nsteps - 1;
  return PLANTED;
}

static enum planting output_outside(struct arena *a, struct plan *p, int which) {
  if (which >= p->noutputs * p->nprocesses) return NO_MORE;
  int process;
  struct operand *copy = &copy_of_output(a, p, which, &process)[process];
  if (copy->buffer < 0 || type_bytes(&p->outputs[which / p->nprocesses].type) == 0) return NOT_HERE;
  copy->offset = p->buffers[copy->buffer].bytes;
  return PLANTED;
}

static const struct fault {
  const char *name;
  enum planting (*plant)(struct arena *a, struct plan *p, int which);
  bool may_be_right; /* then it is a fault if the processes wait for each other */
  bool of_order;     /* the certificate of the plan's order has to find it, too */
} faults[] = {
    {"a SEND is missing", dropped_send, false, true},
    {"a RECEIVE is missing", dropped_receive, false, true},
    {"a SENT is missing", dropped_sent, false, true},
    {"a SEND twice", repeated_send, false, true},
    {"a RECEIVE twice", repeated_receive, false, true},
    {"a SENT twice", repeated_sent, false, true},
    {"two SENDs with each other's numbers", exchanged_sends, false, false},
    {"two RECEIVEs with each other's numbers", exchanged_receives, false, false},
    {"two SENTs with each other's numbers", exchanged_sents, false, false},
    {"a SENT behind what overwrites", late_sent, false, false},
    {"a SEND before its value", early_send, false, false},
    {"a SEND behind its SENT", send_behind_sent, false, true},
    {"a RECEIVE behind what reads", late_receive, false, false},
    {"two RECEIVEs in the other order", reversed_receives, true, true},
    {"a SENT right behind its SEND", early_sent, true, true},
    {"a RECEIVE to another process's buffer", received_elsewhere, false, false},
    {"a SEND from another process's buffer", sent_from_elsewhere, false, false},
    {"a copy from another process's buffer", copied_across, false, false},
    {"a signal to another process", signal_across, false, false},
    {"fewer bytes are sent", fewer_are_sent, false, false},
    {"fewer bytes are received", fewer_are_received, false, false},
    {"fewer bytes than the value has", fewer_everywhere, false, false},
    {"a message to another device", another_receiver, false, true},
    {"an output that another process has", output_of_another, false, false},
    {"an output that a process lacks", no_output, false, false},
    {"an output that dies", output_that_dies, false, false},
    {"an output outside its buffer", output_outside, false, false},
};
enum { NFAULTS = sizeof faults / sizeof *faults };

struct count {
  int planted, found, right, seen;
};

/* Whether a run shows the fault. */
static bool shows(struct subject *s, const struct plan *p) {
  for (uint64_t i = 0; i < 4; i++)
    if (run_and_compare(&s->f, s->g, s->want, p, i)) return true;
  return false;
}

static bool is_deadlock(struct subject *s, const struct plan *p) {
  struct machine m = machine_make(s->f.scratch, p);
  m.random = s->seed;
  m.rendezvous = true;
  start(&m, s->g);
  return !machine_run(&m);
}

/* What may be right is so if plan_verify says it: the values are the same, and nobody waits for ever. */
static bool try_fault(struct subject *s, const struct plan *sound, const struct fault *f, int which,
                      struct count *c) {
  struct plan *p = plan_copy(s->f.scratch, sound);
  enum planting planting = f->plant(s->f.scratch, p, which);
  if (planting == PLANTED) {
    struct diags diags;
    diags_init(&diags, s->f.scratch);
    bool found = !plan_verify(p, &diags);
    bool waits = found && strstr(diags_text(&diags, false), "wait for each other");
    bool uncertified = !f->of_order || !plan_certify(s->f.scratch, p, &diags, NULL);
    if (!f->may_be_right) {
      c->planted++;
      c->found += found && uncertified;
      if (f->plant == late_sent) c->seen += shows(s, p);
    } else if (is_deadlock(s, p)) {
      c->planted++;
      c->found += waits && uncertified;
    } else if (!found) {
      if (f->of_order && uncertified) fail_msg("%s", diags_text(&diags, false));
      must_be_right(s, p, f->name);
      c->right++;
    } else if (waits) {
      fail_msg("seed %llu, %s: nobody waits for ever, but\n%s", (unsigned long long)s->seed, f->name,
               diags_text(&diags, false));
    }
    if (number("PLAN_SHOW", 0) && !f->may_be_right && !found) {
      print_message("seed %llu, %s, at %d\n", (unsigned long long)s->seed, f->name, which);
      show(&s->f, NULL, p);
    }
  }
  arena_reset(s->f.scratch);
  return planting != NO_MORE;
}

static int usual_rounds = 30; /* or as the first argument says */

static void faults_of_messages_are_found(void **state) {
  (void)state;
  struct count counts[NFAULTS] = {{0}};
  int first = number("PLAN_FIRST", 0), rounds = number("PLAN_ROUNDS", usual_rounds), missed = 0, planted = 0;
  for (int i = first; i < first + rounds; i++) {
    struct subject s;
    struct plan *p = begin_random(&s, (uint64_t)i, NULL);
    for (int k = 0; k < NFAULTS; k++)
      for (int which = 0; try_fault(&s, p, &faults[k], which, &counts[k]); which += 1 + which / 8) {}
    end(&s.f);
  }
  for (int k = 0; k < NFAULTS; k++) {
    const struct count *c = &counts[k];
    print_message("%-40s found %5d of %5d", faults[k].name, c->found, c->planted);
    print_message(faults[k].may_be_right ? ", %d are none\n" : "\n", c->right);
    planted += c->planted;
    missed += c->planted - c->found;
    if (faults[k].plant == late_sent && rounds >= 60) assert_true(c->seen > 0);
    if (!c->planted && rounds >= 60) fail_msg("%s can nowhere be planted", faults[k].name);
  }
  print_message("%d faults of %d kinds, %d missed\n", planted, NFAULTS, missed);
  assert_int_equal(missed, 0);
}

int main(int argc, char **argv) {
  if (argc > 1) usual_rounds = atoi(argv[1]);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(faults_of_messages_are_found),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
