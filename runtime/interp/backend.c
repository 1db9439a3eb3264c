/* The interpreter: the slow and obvious backend that the others are compared with. */
#include "runtime/backend.h"
#include "ir/ops/op.h"

#include <string.h>

static int nothing;

static void *interp_open(const struct target *target, struct diags *d) {
  (void)target, (void)d;
  return &nothing;
}

static void interp_close(void *self) { (void)self; }

static void *interp_alloc(void *self, int device, size_t bytes) {
  (void)self, (void)device;
  return host_alloc(bytes);
}

static void interp_free(void *self, int device, void *data, size_t bytes) {
  (void)self, (void)device, (void)bytes;
  host_free(data);
}

static bool interp_copy(void *self, void *to, int to_device, const void *from, int from_device,
                        size_t bytes) {
  (void)self, (void)to_device, (void)from_device;
  if (bytes) memcpy(to, from, bytes);
  return true;
}

static void run_kernel(void *const *args, const void *state) {
  const struct step *s = state;
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

const struct backend backend_interp = {
    .name = "interp",
    .help = "kernels and matrix products element by element: slow, for comparison",
    .kind = "cpu",
    .host = true,
    .open = interp_open,
    .close = interp_close,
    .alloc = interp_alloc,
    .free = interp_free,
    .copy = interp_copy,
    .prepare = interp_prepare,
};
