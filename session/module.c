/* SPDX-License-Identifier: Apache-2.0 */
/* Plans for other compilers: the replicated graph of an entry as StableHLO, with a place for each of its inputs,
 * variables and outputs. */
#include "session/module.h"

#include "ir/ops/op_id.h"
#include "session/settle.h"
#include "session/state/settlement.h"

#include "hlo/hlo.h"
#include "ir/ops/op.h"
#include "ir/strategies.h"
#include "runtime/backend.h"

#include <limits.h>
#include <string.h>

static bool runs_modules(const struct device *d) { return backend_runs_modules(d->name.kind); }

const char module_pass[] = "pack";

int module_devices(const struct graph *g) {
  int count = 0;
  for (int i = 0; i < g->config.target.ndevices; i++) count += !g->config.target.devices[i].no_towers;
  return count;
}

bool session_runs_modules(const struct dgc_session *s) {
  return s->settlement->target.ndevices > 0 && runs_modules(&s->settlement->target.devices[0]);
}

/* A device that cannot run beside the first; NULL: all can. */
static const struct device *other_kind(const struct target *t) {
  for (int i = 1; i < t->ndevices; i++)
    if (!t->devices[i].no_towers && strcmp(t->devices[i].name.kind, t->devices[0].name.kind) != 0)
      return &t->devices[i];
  return NULL;
}

static enum dgc_status check_strategy(struct dgc_session *s) {
  const struct target *t = &s->settlement->target;
  const struct strategy_info *strategy = strategy_find(s->settlement->config.strategy);
  const char *sums = s->settlement->config.cross_device;
  bool stored = false;
  for (int i = 0; i < t->ndevices; i++) stored |= t->devices[i].no_towers;
  bool alone = t->ndevices == 1 && strategy->storage == STORAGE_PARAMETER;
  if (stored || (!alone && strategy->storage != STORAGE_EACH)) {
    session_fail(s, DGC_USAGE, "strategy %s has no form for devices of a PJRT plugin", strategy->name);
    diag_help(&s->diags, LOC_NONE, "--strategy tpu or mirrored: each device has a copy of the variables");
    return DGC_USAGE;
  }
  if (sums && strcmp(sums, "reduce_to_one") != 0)
    return session_fail(s, DGC_USAGE,
                        "cross-device: a PJRT plugin chooses how sums travel, and cannot be told %s", sums);
  return DGC_OK;
}

enum dgc_status session_check_modules(struct dgc_session *s) {
  const struct target *t = &s->settlement->target;
  bool some = false;
  for (int i = 0; i < t->ndevices; i++) some |= runs_modules(&t->devices[i]);
  if (!some) return DGC_OK;
  const struct device *other = other_kind(t);
  if (other)
    return session_fail(s, DGC_USAGE,
                        "devices: those of a PJRT plugin run with no others, and there are %s and %s",
                        t->devices[0].text, other->text);
  if (s->transport || t->devices[0].name.job) {
    session_fail(s, DGC_USAGE, "cluster: the devices of a PJRT plugin are run by one process alone");
    diag_help(&s->diags, LOC_NONE,
              "without a cluster multi_worker_mirrored is over all devices that this process has");
    return DGC_USAGE;
  }
  return s->model ? check_strategy(s) : DGC_OK;
}

/* A plan that is being made. */
struct module_plan {
  struct dgc_session *s;
  struct arena *arena;
  const struct graph *g;
  struct plan *p;
  int *buffers;       /* by node: of variables and inputs */
  const int *devices; /* that carry towers */
  struct operand *operands;
  int noperands;
};

static int add_buffer(struct module_plan *m, const char *name, int device, enum region region,
                      int64_t bytes) {
  struct plan *p = m->p;
  int64_t *size = &p->devices[device].bytes[region];
  /* A device keeps a cell at each address, which needs one even where there are no bytes. */
  int64_t room = bytes ? plan_room(bytes) : plan_room(1);
  p->buffers[p->nbuffers] = (struct plan_buffer){
      .name = name, .device = device, .region = region, .offset = *size, .bytes = room, .last = INT_MAX};
  *size += room;
  return p->nbuffers++;
}

/* A copy is on its device, what is a tower's on the tower's. */
static int device_of(const struct module_plan *m, const struct node *n) {
  int devices = module_devices(m->g), towers = m->g->config.towers ? m->g->config.towers : 1;
  int at = n->tower >= 0 ? tower_device(n->tower, towers, devices) : n->replica > 0 ? n->replica : 0;
  return m->devices[at];
}

static void add_variables(struct module_plan *m) {
  for (uint32_t i = 0; i < m->g->count; i++) {
    const struct node *n = m->g->nodes[i];
    if (n->op != OP_variable) continue;
    m->buffers[i] = add_buffer(m, n->name, device_of(m, n), REGION_VARIABLE, type_bytes(&n->type));
    struct plan_buffer *b = &m->p->buffers[m->buffers[i]];
    b->type = n->type;
    b->bytes = type_bytes(&n->type);
    b->identity = variable_identity(n);
  }
}

static struct module_plan begin(struct dgc_session *s, struct arena *a, const struct graph *g) {
  struct module_plan m = {.s = s, .arena = a, .g = g, .p = arena_new(a, struct plan)};
  const struct target *t = &g->config.target;
  int *devices = arena_new_array(a, (size_t)t->ndevices, int), count = 0;
  for (int i = 0; i < t->ndevices; i++)
    if (!t->devices[i].no_towers) devices[count++] = i;
  m.devices = devices;
  *m.p = (struct plan){.arena = a, .graph = g, .ndevices = t->ndevices, .nprocesses = 1};
  m.p->devices = arena_new_array(a, (size_t)t->ndevices, struct device_plan);
  m.p->buffers = arena_new_array(a, g->count + (size_t)g->noutputs + 1, struct plan_buffer);
  m.buffers = arena_new_array(a, g->count + 1, int);
  add_variables(&m);
  return m;
}

struct plan *module_variables(struct dgc_session *s, struct arena *a, const struct graph *g) {
  return begin(s, a, g).p;
}

/* The whole batch, which the host writes before each run. */
static void add_inputs(struct module_plan *m) {
  struct plan *p = m->p;
  p->inputs = arena_new_array(m->arena, m->g->count + 1, struct plan_value);
  for (uint32_t i = 0; i < m->g->count; i++) {
    const struct node *n = m->g->nodes[i];
    if (n->op != OP_input) continue;
    m->buffers[i] = add_buffer(m, n->name, m->devices[0], REGION_ARENA, type_bytes(&n->type));
    p->inputs[p->ninputs++] = (struct plan_value){
        .role = OUTPUT_VALUE, .name = n->name, .type = n->type, .operand = {m->buffers[i], 0}};
  }
}

static int add_operand(struct module_plan *m, int buffer) {
  m->operands[m->noperands] = (struct operand){buffer, 0};
  return m->noperands++;
}

static struct module_value *add_arguments(struct module_plan *m, const struct hlo_ports *ports, int devices) {
  struct module_value *out = arena_new_array(m->arena, (size_t)ports->narguments + 1, struct module_value);
  for (int i = 0; i < ports->narguments; i++) {
    const struct hlo_port *port = &ports->arguments[i];
    int count = port->node->op == OP_variable ? devices : 1;
    out[i] = (struct module_value){port->type, m->noperands, count, port->split};
    for (int k = 0; k < count; k++) add_operand(m, m->buffers[ports->copies[i * devices + k]->id]);
  }
  return out;
}

static int argument_of(const struct hlo_ports *ports, const struct node *variable) {
  int i = 0;
  while (ports->arguments[i].node != variable) i++;
  return i;
}

static struct module_value *add_results(struct module_plan *m, const struct hlo_ports *ports,
                                        const struct module_value *arguments, int *noutputs) {
  struct module_value *out = arena_new_array(m->arena, (size_t)ports->nresults + 1, struct module_value);
  struct plan *p = m->p;
  p->outputs = arena_new_array(m->arena, (size_t)ports->nresults + 1, struct plan_value);
  for (int i = 0; i < ports->nresults; i++) {
    const struct hlo_port *port = &ports->results[i];
    if (!port->output) {
      out[i] = arguments[argument_of(ports, port->node)];
      continue;
    }
    const struct output *o = port->output;
    int buffer = add_buffer(m, o->name, m->devices[0], REGION_ARENA, type_bytes(&o->node->type));
    out[i] = (struct module_value){port->type, add_operand(m, buffer), 1, port->split};
    p->outputs[p->noutputs++] = (struct plan_value){
        .role = o->role, .name = o->name, .type = o->node->type, .operand = {buffer, 0}, .count = o->count};
  }
  *noutputs = p->noutputs;
  return out;
}

static int64_t flops_of(const struct graph *g) {
  int64_t flops = 0;
  for (uint32_t i = 0; i < g->count; i++) flops += node_flops(g->nodes[i]);
  return flops;
}

static void add_step(struct module_plan *m, const struct plan_module *module) {
  struct device_plan *first = &m->p->devices[m->devices[0]];
  first->nsteps = 1;
  first->steps = arena_new(m->arena, struct step);
  *first->steps = (struct step){.kind = STEP_MODULE,
                                .node = m->g->outputs[0].node,
                                .operands = m->operands,
                                .noperands = m->noperands,
                                .flops = flops_of(m->g),
                                .module = module};
}

/* Writes the module, for all devices or for the first alone. */
static bool write_module(struct module_plan *m, int devices, struct str *text, struct hlo_ports *ports) {
  const struct hlo_function f = {.graph = m->g, .name = "main", .devices = devices, .ports = ports};
  return hlo_print(text, m->g->name, &f, 1, &m->s->diags);
}

struct plan *module_plan(struct dgc_session *s, struct arena *a, const struct graph *g, int64_t few) {
  struct module_plan m = begin(s, a, g);
  struct hlo_ports ports;
  struct str text = str_make(a);
  int devices = module_devices(g);
  int towers = g->config.towers ? g->config.towers : 1;
  if (g->config.batch <= few && g->config.batch % towers != 0) devices = 1;
  if (devices > MAX_MODULE_DEVICES) {
    session_fail(s, DGC_USAGE, "devices: %d at most", MAX_MODULE_DEVICES);
    return NULL;
  }
  if (!write_module(&m, devices, &text, &ports)) return NULL;
  add_inputs(&m);
  size_t most = ((size_t)ports.narguments * (size_t)devices) + (size_t)ports.nresults + 1;
  m.operands = arena_new_array(a, most, struct operand);
  struct plan_module *module = arena_new(a, struct plan_module);
  *module =
      (struct plan_module){.text = text.data, .length = text.len, .devices = m.devices, .ndevices = devices};
  struct module_value *arguments = add_arguments(&m, &ports, devices);
  module->results = add_results(&m, &ports, arguments, &module->noutputs);
  module->arguments = arguments;
  module->narguments = ports.narguments;
  module->nresults = ports.nresults;
  add_step(&m, module);
  return m.p;
}
