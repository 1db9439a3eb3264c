/* cumsum: from a step to kernels/cpu/cumsum.c. */
#include "kernels/cpu/cumsum.h"

#include "ir/ops/leaf.h"
#include "runtime/cpu/leaf.h"

static void run_cumsum(void *const *args, const void *state) {
  const struct lines *l = state;
  switch (l->dtype) {
  case DT_F32: cumsum_f32(l->outer, l->length, l->inner, l->reverse, l->exclusive, args[0], args[1]); break;
  case DT_F64: cumsum_f64(l->outer, l->length, l->inner, l->reverse, l->exclusive, args[0], args[1]); break;
  case DT_I64: cumsum_u64(l->outer, l->length, l->inner, l->reverse, l->exclusive, args[0], args[1]); break;
  case DT_I32: cumsum_u32(l->outer, l->length, l->inner, l->reverse, l->exclusive, args[0], args[1]); break;
  case DT_U8: cumsum_u8(l->outer, l->length, l->inner, l->reverse, l->exclusive, args[0], args[1]); break;
  case DT_BOOL:
  case DT_COUNT: break;
  }
}

bool cpu_leaf_cumsum(struct cpu *cpu, struct arena *a, const struct step *step, struct command *c,
                     struct diags *d) {
  (void)cpu, (void)d;
  struct lines l = lines_of(step->node);
  c->call = run_cumsum;
  c->state = arena_copy(a, &l, sizeof l);
  return true;
}
