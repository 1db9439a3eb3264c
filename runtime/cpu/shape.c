/* SPDX-License-Identifier: Apache-2.0 */
/* Bits do not change: a float is the same number whether it stands in the code or is handed over. */
#include "runtime/cpu/shape.h"

/* Of fewer instructions the code is made faster than it is worth while to look. */
enum { LEAST_BODY = 64 };

static bool is_float(const struct sinst *i) {
  return i->op == S_CONST && (i->dtype == DT_F32 || i->dtype == DT_F64);
}

static void clear_floats(struct sprog *p) {
  for (int v = 0; v < p->count; v++)
    if (is_float(&p->inst[v])) p->inst[v].bits = 0;
}

struct str shape_of(struct arena *a, const struct kernel *k) {
  struct str bytes = str_make(a);
  if (k->body.count < LEAST_BODY) return bytes;
  struct kernel copy = kernel_copy(a, k);
  clear_floats(&copy.body);
  if (copy.kind == KERNEL_REDUCE) clear_floats(&copy.epilogue);
  kernel_bytes(&bytes, &copy);
  return bytes;
}

static const struct sprog *program_of(const struct kernel *k, bool epilogue) {
  return epilogue ? &k->epilogue : &k->body;
}

static bool differs(const struct kernel *const *kernels, int n, bool epilogue, int v) {
  uint64_t first = program_of(kernels[0], epilogue)->inst[v].bits;
  for (int i = 1; i < n; i++)
    if (program_of(kernels[i], epilogue)->inst[v].bits != first) return true;
  return false;
}

static bool give(struct kernel_shape *s, const struct kernel *const *kernels, int n, bool epilogue) {
  const struct sprog *p = program_of(&s->kernel, epilogue);
  for (int v = 0; v < p->count; v++) {
    if (!is_float(&p->inst[v]) || !differs(kernels, n, epilogue, v)) continue;
    if (s->count == MAX_GIVEN) return false;
    p->inst[v] = (struct sinst){
        .op = S_PARAM, .dtype = p->inst[v].dtype, .a = (uint16_t)(s->kernel.nparams + s->count)};
    s->given[s->count].epilogue = epilogue;
    s->given[s->count++].value = v;
  }
  return true;
}

bool shape_make(struct arena *a, const struct kernel *const *kernels, int n, struct kernel_shape *out) {
  *out = (struct kernel_shape){.kernel = kernel_copy(a, kernels[0])};
  return give(out, kernels, n, false) && (kernels[0]->kind != KERNEL_REDUCE || give(out, kernels, n, true));
}

void shape_given(const struct kernel_shape *s, const struct kernel *k, uint64_t *out) {
  for (int i = 0; i < s->count; i++)
    out[i] = program_of(k, s->given[i].epilogue)->inst[s->given[i].value].bits;
}
