/* SPDX-License-Identifier: Apache-2.0 */
/* The interpreter: the slow and obvious backend that the others are compared with. */
#include "runtime/backend.h"
#include "ir/graph/graph.h"
#include "ir/ops/leaf.h"
#include "ir/ops/op.h"
#include "ir/ops/op_id.h"
#include "kernels/cpu/leaf.h"
#include "runtime/host_memory.h"

#include <stdlib.h>

struct interp {
  bool portable;
};

static void *interp_open(const struct target *target, struct diags *d) {
  (void)target;
  struct interp *in = calloc(1, sizeof *in);
  if (!in) diag_error(d, LOC_NONE, "interp: out of memory");
  return in;
}

static void interp_close(void *self) { free(self); }

static void run_kernel(void *const *args, const void *state) {
  const struct step *s = state;
  if (s->segments.count > 1)
    kernel_eval_split(s->kernel, args, s->sizes, s->segments);
  else
    kernel_eval(s->kernel, args, s->sizes);
}

static void run_leaf(void *const *args, const void *state) {
  leaf_eval(((const struct step *)state)->node, args);
}

/* Attention has an order of its own, which is that of the kernel: it has the same bits on every machine. */
extern const struct leaf_functions cpu_attention, cpu_attention_gradient;

static const struct leaf_functions *kernel_of(const struct node *n) {
  if (n->op == OP_attention) return &cpu_attention;
  return n->op == OP_attention_gradient ? &cpu_attention_gradient : NULL;
}

struct attention_call {
  leaf_fn *function;
  int args;
  void *scratch;
  int64_t numbers[MAX_LEAF_NUMBERS];
};

static void run_call(void *const *args, const void *state) {
  const struct attention_call *c = state;
  void *all[MAX_LEAF_INPUTS + 2];
  for (int i = 0; i < c->args; i++) all[i] = args[i];
  all[c->args] = c->scratch;
  c->function(all, c->numbers);
}

static void prepare_kernel(struct arena *a, const struct node *n, const struct leaf_functions *f,
                           struct command *c) {
  struct attention_call *call = arena_new(a, struct attention_call);
  *call =
      (struct attention_call){.function = n->type.dtype == DT_F64 ? f->f64 : f->f32, .args = n->ninputs + 1};
  op_of(n)->numbers(n, call->numbers);
  call->scratch = arena_alloc(a, f->scratch(call->numbers));
  c->call = run_call;
  c->state = call;
}

static bool interp_prepare(void *self, struct arena *a, const struct step *step, int device,
                           struct command *c, struct diags *d) {
  const struct interp *in = self;
  const struct leaf_functions *f = in->portable && step->kind != STEP_KERNEL ? kernel_of(step->node) : NULL;
  (void)device, (void)d;
  c->kind = COMMAND_CALL;
  c->call = step->kind == STEP_KERNEL ? run_kernel : run_leaf;
  c->state = step;
  if (f) prepare_kernel(a, step->node, f, c);
  return true;
}

static void interp_portable_bits(void *self, bool wanted) { ((struct interp *)self)->portable = wanted; }

const struct backend backend_interp = {
    .name = "interp",
    .help = "kernels and matrix products element by element: slow, for comparison",
    .kind = "cpu",
    .host = true,
    .open = interp_open,
    .close = interp_close,
    .alloc = host_device_alloc,
    .free = host_device_free,
    .copy = host_device_copy,
    .portable_bits = interp_portable_bits,
    .prepare = interp_prepare,
};
