/* SPDX-License-Identifier: Apache-2.0 */
/* The fused graph as units that read and write values. */
#include "ir/ops/op_id.h"
#include "planner/schedule.h"

#include <string.h>

static int new_value(struct schedule *s, const struct node *n, enum region region, int64_t bytes) {
  GROW(s, s->values, s->nvalues, s->values_cap);
  s->values[s->nvalues] = (struct planned_value){.node = n,
                                                 .region = region,
                                                 .device = n->device > 0 ? n->device : 0,
                                                 .bytes = bytes,
                                                 .producer = NONE,
                                                 .readers = NONE,
                                                 .bound = NONE,
                                                 .writer = NONE,
                                                 .whole = NONE,
                                                 .buffer = NONE};
  return s->nvalues++;
}

void schedule_read(struct schedule *s, int unit, int value) {
  for (int l = s->values[value].readers; l != NONE && s->links[l].unit == unit; l = s->links[l].next) return;
  GROW(s, s->links, s->nlinks, s->links_cap);
  s->links[s->nlinks] = (struct link){unit, s->values[value].readers};
  s->values[value].readers = s->nlinks++;
  s->units[unit].unmet += s->values[value].producer != NONE;
}

static struct plan_unit *new_unit(struct schedule *s, const struct node *n, enum step_kind kind, int nreads) {
  GROW(s, s->units, s->nunits, s->units_cap);
  struct plan_unit *t = &s->units[s->nunits++];
  struct ref *reads = arena_new_array(s->scratch, (size_t)nreads, struct ref);
  for (int i = 0; i < nreads; i++) reads[i].value = NONE;
  *t = (struct plan_unit){.node = n,
                          .kind = kind,
                          .device = n->device > 0 ? n->device : 0,
                          .nlaunches = 1,
                          .reads = reads,
                          .nreads = nreads,
                          .variable = NONE,
                          .group = NONE,
                          .message = NONE};
  return t;
}

/* Of a concat: there may be a value, which others write, before there is a unit. */
static int value_of_concat(struct schedule *s, const struct node *n) {
  struct concat_part *p = &s->parts[n->id];
  if (!p->whole) p->whole = 1 + new_value(s, n, REGION_ARENA, type_bytes(&n->type));
  return p->whole - 1;
}

/* What result `i` of n is written into. */
static const struct concat_part *part_of(const struct schedule *s, const struct node *n, int i) {
  static const struct concat_part none = {0};
  if (i == 0) return &s->parts[n->id];
  for (uint32_t k = s->users.first[n->id]; k < s->users.first[n->id + 1]; k++) {
    const struct node *u = s->users.users[k];
    if (u->op == OP_output && node_int(u, ATTR_index) == i) return &s->parts[u->id];
  }
  return &none;
}

static void produce(struct schedule *s, int unit, const struct node *n, int nresults) {
  struct plan_unit *t = &s->units[unit];
  bool joined = n->op == OP_concat && s->parts[n->id].whole;
  t->result = joined ? s->parts[n->id].whole - 1 : s->nvalues;
  t->nresults = nresults;
  if (joined) s->values[t->result].producer = unit;
  for (int i = 0; i < nresults && !joined; i++) {
    struct type type = node_result_type(n, i);
    int v = new_value(s, n, REGION_ARENA, type_bytes(&type));
    s->values[v].producer = unit;
  }
  for (int i = 0; i < nresults && !joined; i++) {
    const struct concat_part *p = part_of(s, n, i);
    if (!p->concat) continue;
    int whole = value_of_concat(s, p->concat), v = t->result + i;
    s->values[whole].joined = true;
    s->values[v].whole = whole;
    s->values[v].base = p->dense ? concat_part_begin(p) : 0;
  }
}

static void reads_input(struct schedule *s, int unit, int input) {
  struct plan_unit *t = &s->units[unit];
  struct ref *reads = t->reads;
  if (reads[input].value != NONE) return;
  reads[input] = s->refs[t->node->inputs[input]->id];
  schedule_read(s, unit, reads[input].value);
}

/* The part that an input of a concat is, or NULL. */
static const struct concat_part *part_at(const struct schedule *s, const struct node *concat, int input) {
  const struct concat_part *p = &s->parts[concat_source(concat, input)->id];
  return p->concat == concat && p->input == input ? p : NULL;
}

/* As lower_node asks. */
static const struct lower_into *written_into(struct schedule *s, const struct node *n) {
  int count = n->op == OP_concat ? n->ninputs : node_results(n);
  struct lower_into *into = arena_new_array(s->scratch, (size_t)count, struct lower_into);
  for (int i = 0; i < count; i++) {
    const struct concat_part *p = n->op == OP_concat ? part_at(s, n, i) : part_of(s, n, i);
    if (p && p->concat && (n->op == OP_concat || !p->dense))
      into[i] = (struct lower_into){p->concat, p->begin};
  }
  return into;
}

static void kernel_unit(struct schedule *s, const struct node *n) {
  int unit = s->nunits;
  struct plan_unit *t = new_unit(s, n, STEP_KERNEL, n->ninputs);
  t->nlaunches = lower_node(s->lower, n, written_into(s, n), &t->launches);
  for (int i = 0; i < n->ninputs && n->op == OP_concat; i++) reads_input(s, unit, i);
  for (int k = 0; k < t->nlaunches; k++)
    for (int i = 0; i < t->launches[k].kernel->nargs; i++)
      if (t->launches[k].args[i].input >= 0) reads_input(s, unit, t->launches[k].args[i].input);
  produce(s, unit, n, node_results(n));
}

static void plain_unit(struct schedule *s, const struct node *n, enum step_kind kind) {
  int unit = s->nunits;
  new_unit(s, n, kind, n->ninputs);
  for (int i = 0; i < n->ninputs; i++) reads_input(s, unit, i);
  produce(s, unit, n, 1);
}

/* Its results, and room for what its body works in. */
static void loop_unit(struct schedule *s, const struct node *n) {
  int unit = s->nunits, results = node_results(n);
  const struct plan_loop *loop = plan_loop(s, n);
  struct plan_unit *t = new_unit(s, n, STEP_SCAN, n->ninputs);
  t->loop = loop;
  for (int i = 0; i < n->ninputs; i++) reads_input(s, unit, i);
  produce(s, unit, n, results);
  t = &s->units[unit];
  int v = new_value(s, n, REGION_ARENA, loop->body->devices[t->device].bytes[REGION_ARENA]);
  s->values[v].producer = unit;
  t->nresults++;
}

/* The collective that n is a device's part of. */
static int find_group(struct schedule *s, const struct node *n) {
  for (int i = s->ngroups; i-- > 0;) {
    const struct node *m = s->groups[i].node;
    if (m->ninputs == n->ninputs && memcmp(m->inputs, n->inputs, sizeof *n->inputs * (size_t)n->ninputs) == 0)
      return i;
  }
  GROW(s, s->groups, s->ngroups, s->groups_cap);
  s->groups[s->ngroups] =
      (struct unit_group){.node = n, .units = arena_new_array(s->scratch, (size_t)n->ninputs, int)};
  return s->ngroups++;
}

/* Of its operands a device's part reads the device's own. */
static void collective_unit(struct schedule *s, const struct node *n) {
  int unit = s->nunits, number = find_group(s, n);
  struct unit_group *m = &s->groups[number];
  new_unit(s, n, STEP_ALL_REDUCE, n->ninputs)->group = number;
  reads_input(s, unit, collective_rank(n));
  produce(s, unit, n, 1);
  if (m->count < n->ninputs) m->units[m->count++] = unit;
}

int schedule_copy(struct schedule *s, const struct node *node, struct ref from, int device, int64_t bytes) {
  int unit = s->nunits;
  struct plan_unit *t = new_unit(s, node, STEP_COPY, 1);
  *t->reads = from;
  t->device = device;
  t->nresults = 1;
  t->result = new_value(s, node, REGION_ARENA, bytes);
  s->values[t->result].device = device;
  s->values[t->result].producer = unit;
  schedule_read(s, unit, from.value);
  return unit;
}

/* An update: a copy step of its own until bind_update finds something better. */
static void update_unit(struct schedule *s, const struct node *n) {
  struct ref variable = s->refs[n->inputs[0]->id], from = s->refs[n->inputs[1]->id];
  if (from.value == variable.value) return; /* keeps what it has */
  int unit = s->nunits;
  struct plan_unit *t = new_unit(s, n, STEP_COPY, 1);
  *t->reads = from;
  t->variable = variable.value;
  t->sink = true;
  schedule_read(s, unit, from.value);
  s->values[variable.value].writer = unit;
}

/* A result of a fused node. */
static struct ref visit_output(struct schedule *s, const struct node *n) {
  struct ref r = s->refs[n->inputs[0]->id];
  r.value += (int)node_int(n, ATTR_index);
  if (node_int(n, ATTR_index)) s->values[r.value].node = n;
  return r;
}

/* The value of what no unit computes. */
static struct ref visit_given(struct schedule *s, const struct node *n) {
  bool given = n->op == OP_variable || (s->inside && n->op == OP_input);
  enum region region = given ? REGION_VARIABLE : n->op == OP_constant ? REGION_CONSTANT : REGION_ARENA;
  int v = new_value(s, n, region, type_bytes(&n->type));
  s->values[v].is_input = n->op == OP_input;
  return (struct ref){v, 0};
}

/* What is sent has no value of its own. */
static struct ref visit_send(struct schedule *s, const struct node *n) {
  int unit = s->nunits;
  new_unit(s, n, STEP_SEND, 1)->nlaunches = 0;
  reads_input(s, unit, 0);
  return s->refs[n->inputs[0]->id];
}

/* What is only known of is nowhere here. */
static struct ref visit_remote(struct schedule *s, const struct node *n) {
  if (!node_attr(n, ATTR_order)) return (struct ref){NONE, 0};
  int unit = s->nunits;
  new_unit(s, n, STEP_RECEIVE, 0);
  produce(s, unit, n, 1);
  return (struct ref){s->units[unit].result, 0};
}

/* The value a node has or looks into; makes the unit that computes it. */
static struct ref visit(struct schedule *s, const struct node *n) {
  int64_t offset;
  if (node_is_view(n, &offset)) {
    struct ref r = s->refs[n->inputs[0]->id];
    r.offset += offset;
    return r;
  }
  if (n->op == OP_output) return visit_output(s, n);
  if (n->op == OP_send) return visit_send(s, n);
  if (n->op == OP_remote) return visit_remote(s, n);
  if (node_is_external(n) || n->op == OP_constant) return visit_given(s, n);
  if (n->op == OP_copy)
    plain_unit(s, n, STEP_COPY);
  else if (n->op == OP_all_reduce)
    collective_unit(s, n);
  else if (n->op == OP_scan)
    loop_unit(s, n);
  else if (node_is_leaf(n))
    plain_unit(s, n, STEP_LEAF);
  else
    kernel_unit(s, n);
  return (struct ref){s->units[s->nunits - 1].result, 0};
}

bool unit_receives(const struct schedule *s, const struct plan_unit *t) {
  if (t->kind == STEP_RECEIVE) return true;
  return t->kind == STEP_COPY &&
         plan_process(s->plan, s->values[t->reads[0].value].device) != plan_process(s->plan, t->device);
}

/* By process. */
static const int *first_devices(const struct schedule *s) {
  int *first = arena_new_array(s->scratch, (size_t)s->plan->nprocesses, int);
  for (int d = s->plan->ndevices; d-- > 0;) first[s->plan->processes[d]] = d;
  return first;
}

/* Links of units that read something else by now. */
static void drop_readers(struct schedule *s, int value) {
  int *link = &s->values[value].readers;
  while (*link != NONE) {
    const struct plan_unit *t = &s->units[s->links[*link].unit];
    if (t->kind == STEP_COPY && t->reads[0].value != value)
      *link = s->links[*link].next;
    else
      link = &s->links[*link].next;
  }
}

/* Every process is given the inputs that it reads: nothing is sent of them. */
static void spread_inputs(struct schedule *s, const int *first) {
  int n = s->plan->nprocesses, nvalues = s->nvalues;
  int **given = arena_new_array(s->scratch, (size_t)nvalues, int *); /* by input and process; 0: not yet */
  for (int i = 0; i < s->nunits; i++) {
    struct ref *read = s->units[i].reads;
    if (!unit_receives(s, &s->units[i]) || !s->values[read->value].is_input) continue;
    int input = read->value, process = plan_process(s->plan, s->units[i].device);
    if (!given[input]) given[input] = arena_new_array(s->scratch, (size_t)n, int);
    int *here = &given[input][process];
    if (!*here) {
      *here = new_value(s, s->values[input].node, REGION_ARENA, s->values[input].bytes);
      s->values[*here].is_input = true;
      s->values[*here].device = first[process];
    }
    read->value = *here;
    schedule_read(s, i, *here);
  }
  for (int i = 0; i < nvalues; i++)
    if (given[i]) drop_readers(s, i);
}

/* Losses and metrics are for all processes, values and predictions for the first. */
static void spread_output(struct schedule *s, int output, const int *first) {
  const struct output *o = &s->g->outputs[output];
  int n = s->plan->nprocesses, from = plan_process(s->plan, s->values[s->outputs[output].value].device);
  struct ref *copies = s->copies[output] = arena_new_array(s->scratch, (size_t)n, struct ref);
  for (int i = 0; i < n; i++) {
    copies[i] = (struct ref){NONE, 0};
    if (i == from) copies[i] = s->outputs[output];
    if (i == from || ((o->role == OUTPUT_VALUE || o->role == OUTPUT_PREDICT) && i > 0)) continue;
    int unit = schedule_copy(s, o->node, s->outputs[output], first[i], type_bytes(&o->node->type));
    copies[i] = (struct ref){s->units[unit].result, 0};
    s->values[copies[i].value].is_output = true;
  }
}

static struct ref *no_copies(struct schedule *s, int output) {
  struct ref *copies = s->copies[output] =
      arena_new_array(s->scratch, (size_t)s->plan->nprocesses, struct ref);
  for (int i = 0; i < s->plan->nprocesses; i++) copies[i] = (struct ref){NONE, 0};
  return copies;
}

/* A result that is asked for as it was before the step must not lie where the update goes; nor one of a loop's step
 * where the next one finds what it is given. */
static void keep_outputs(struct schedule *s, const int *first) {
  for (int i = 0; i < s->g->noutputs; i++) {
    const struct output *o = &s->g->outputs[i];
    if (o->role >= OUTPUT_UPDATE) continue;
    struct ref r = s->refs[o->node->id];
    if (r.value == NONE) { /* another process has it */
      s->outputs[i] = r;
      if (s->copies) no_copies(s, i);
      continue;
    }
    bool given = s->inside && s->values[r.value].region == REGION_VARIABLE;
    if (s->values[r.value].writer != NONE || given) {
      int unit = schedule_copy(s, o->node, r, s->values[r.value].device, type_bytes(&o->node->type));
      r = (struct ref){s->units[unit].result, 0};
    }
    s->values[r.value].is_output = true;
    s->outputs[i] = r;
    if (s->copies && s->process == NONE)
      spread_output(s, i, first);
    else if (s->copies)
      no_copies(s, i)[s->process] = r;
  }
}

/* Whether the unit may write `result` over `variable`: it reads the variable, if at all, element by element. */
static bool may_overwrite(const struct plan_unit *t, int result, int variable) {
  for (int i = 0; i < t->nreads; i++) {
    if (t->reads[i].value != variable) continue;
    if ((t->kind != STEP_KERNEL && t->kind != STEP_LEAF) || t->reads[i].offset != 0) return false;
    if (!lower_in_place(t->node, t->launches, t->nlaunches, result, i)) return false;
  }
  return true;
}

/* Whether a unit may write the value that `from` is where the variable is. */
static bool may_bind(const struct schedule *s, struct ref from, int variable) {
  const struct planned_value *v = &s->values[from.value], *to = &s->values[variable];
  if (v->producer == NONE || v->bound != NONE || v->joined || v->whole != NONE || from.offset != 0)
    return false;
  if (v->bytes != to->bytes || v->device != to->device) return false;
  const struct plan_unit *t = &s->units[v->producer];
  return t->variable == NONE && t->kind != STEP_ALL_REDUCE &&
         may_overwrite(t, from.value - t->result, variable);
}

static bool reads_value(const struct plan_unit *t, int value) {
  for (int i = 0; i < t->nreads; i++)
    if (t->reads[i].value == value) return true;
  return false;
}

int unit_in_place(const struct plan_unit *t) {
  return t->kind == STEP_LEAF ? op_of(t->node)->in_place - 1 : NONE;
}

/* Whether another operand than this one is that value. */
static bool reads_again(const struct plan_unit *t, int operand) {
  for (int i = 0; i < t->nreads; i++)
    if (i != operand && t->reads[i].value == t->reads[operand].value) return true;
  return false;
}

/* Lets the unit that computes an update write it where it belongs. What a scatter_add adds to is written there
 * too, if nothing else reads it, so that no row is copied that is not added to. */
static void bind_update(struct schedule *s, int update) {
  struct plan_unit *u = &s->units[update];
  struct ref from = u->reads[0];
  if (!may_bind(s, from, u->variable)) return;
  u->nlaunches = 0;
  for (;;) {
    struct planned_value *v = &s->values[from.value];
    const struct plan_unit *t = &s->units[v->producer];
    v->bound = u->variable;
    s->values[u->variable].writer = v->producer;
    int operand = unit_in_place(t);
    if (operand == NONE || reads_value(t, u->variable)) return;
    from = t->reads[operand];
    const struct planned_value *x = &s->values[from.value];
    bool alone = x->readers != NONE && s->links[x->readers].next == NONE && !x->is_output;
    if (!alone || reads_again(t, operand) || !may_bind(s, from, u->variable)) return;
  }
}

/* Nothing reads the results but updates. */
static bool is_sink(const struct schedule *s, const struct plan_unit *t) {
  for (int r = t->result; r < t->result + t->nresults; r++) {
    if (s->values[r].is_output || s->values[r].readers == NONE) return false;
    for (int l = s->values[r].readers; l != NONE; l = s->links[l].next)
      if (s->units[s->links[l].unit].variable == NONE) return false;
  }
  return true;
}

/* In a loop's body, what is stacked as it was before the step: at once, so that the place is free for what follows. */
static bool keeps_given(const struct schedule *s, const struct plan_unit *t) {
  return s->inside && t->kind == STEP_COPY && s->values[t->result].is_output;
}

static void count_readers(struct schedule *s, int variable) {
  struct planned_value *v = &s->values[variable];
  if (v->writer == NONE) return;
  for (int l = v->readers; l != NONE; l = s->links[l].next) v->unread += s->links[l].unit != v->writer;
  s->units[v->writer].blocked += v->unread;
}

void schedule_units(struct schedule *s) {
  uint8_t *live = graph_live(s->scratch, s->g);
  s->refs = arena_new_array(s->scratch, s->g->count + 1, struct ref);
  schedule_parts(s, live);
  s->outputs = arena_new_array(s->scratch, (size_t)s->g->noutputs, struct ref);
  for (uint32_t i = 0; i < s->g->count; i++) {
    const struct node *n = s->g->nodes[i];
    if (!live[i]) continue;
    if (n->op == OP_assign) {
      update_unit(s, n);
      s->refs[i] = s->refs[n->inputs[1]->id];
    } else {
      s->refs[i] = visit(s, n);
    }
  }
  const int *first = s->plan->processes ? first_devices(s) : NULL;
  if (s->plan->processes) {
    if (s->process == NONE) spread_inputs(s, first);
    if (s->spreads) s->copies = arena_new_array(s->scratch, (size_t)s->g->noutputs, struct ref *);
  }
  keep_outputs(s, first);
  if (s->process != NONE) schedule_messages(s);
  for (int i = 0; i < s->nunits; i++)
    if (s->units[i].variable != NONE)
      bind_update(s, i);
    else
      s->units[i].sink = is_sink(s, &s->units[i]) || keeps_given(s, &s->units[i]);
  for (int i = 0; i < s->nvalues; i++)
    if (s->values[i].region == REGION_VARIABLE) count_readers(s, i);
}
