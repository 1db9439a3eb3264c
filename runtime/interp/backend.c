/* SPDX-License-Identifier: Apache-2.0 */
/* The interpreter: the slow and obvious backend that the others are compared with. */
#include "runtime/backend.h"
#include "ir/graph/graph.h"
#include "ir/ops/op.h"
#include "runtime/host_memory.h"

static int nothing;

static void *interp_open(const struct target *target, struct diags *d) {
  (void)target, (void)d;
  return &nothing;
}

static void interp_close(void *self) { (void)self; }

static void run_kernel(void *const *args, const void *state) {
  const struct step *s = state;
  if (s->segments.count > 1)
    kernel_eval_split(s->kernel, args, s->sizes, s->segments);
  else
    kernel_eval(s->kernel, args, s->sizes);
}

static void run_leaf(void *const *args, const void *state) {
  const struct node *n = ((const struct step *)state)->node;
  struct tensor in[MAX_LEAF_INPUTS], out = {n->type, args[n->ninputs]};
  for (int i = 0; i < n->ninputs; i++) in[i] = (struct tensor){n->inputs[i]->type, args[i]};
  op_of(n)->eval(n, in, &out);
}

static bool interp_prepare(void *self, struct arena *a, const struct step *step, int device,
                           struct command *c, struct diags *d) {
  (void)self, (void)a, (void)device, (void)d;
  c->kind = COMMAND_CALL;
  c->call = step->kind == STEP_KERNEL ? run_kernel : run_leaf;
  c->state = step;
  return true;
}

/* They are its own. */
static void interp_portable_bits(void *self, bool wanted) { (void)self, (void)wanted; }

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
