/* Leaves that kernels/cpu computes: from a step to the function of its element type. */
#include "runtime/cpu/leaf.h"

#include "ir/ops/leaf.h"

#include <string.h>

#define OP(name, spread)
#define LEAF(name, spread)
#define KERNEL(name, spread) extern const struct leaf_functions cpu_##name;
#include "ir/ops/ops.def"
#undef OP

static const struct leaf_functions *const functions[OP_COUNT] = {
#define OP(name, spread)
#define LEAF(name, spread)
#define KERNEL(name, spread) [OP_##name] = &cpu_##name,
#include "ir/ops/ops.def"
#undef OP
};

static leaf_fn *function_of(const struct leaf_functions *f, enum dtype d) {
  switch (d) {
  case DT_F32: return f->f32;
  case DT_F64: return f->f64;
  case DT_I32: return f->i32;
  case DT_I64: return f->i64;
  case DT_U8: return f->u8;
  case DT_BOOL: return f->boolean;
  case DT_COUNT: break;
  }
  return NULL;
}

struct kernel_call {
  leaf_fn *function;
  int begins, result; /* the result begins as this operand; */
  size_t bytes;       /* 0: it does not */
  void *scratch;
  int64_t numbers[MAX_LEAF_NUMBERS];
};

static void run(void *const *args, const void *state) {
  const struct kernel_call *c = state;
  void *all[MAX_LEAF_INPUTS + 2] = {0};
  if (c->bytes && args[c->result] != args[c->begins]) memcpy(args[c->result], args[c->begins], c->bytes);
  memcpy(all, args, (size_t)(c->result + 1) * sizeof *all);
  all[c->result + 1] = c->scratch;
  c->function(all, c->numbers);
}

void cpu_call(struct arena *a, const struct step *step, const struct leaf_functions *f, struct command *c) {
  const struct node *n = step->node;
  int in_place = op_of(n)->in_place;
  struct kernel_call *call = arena_new(a, struct kernel_call);
  *call = (struct kernel_call){.function = function_of(f, (enum dtype)n->inputs[0]->type.dtype),
                               .begins = in_place - 1,
                               .result = n->ninputs,
                               .bytes = in_place ? (size_t)type_bytes(&n->type) : 0};
  op_of(n)->numbers(n, call->numbers);
  if (f->scratch) call->scratch = arena_alloc(a, f->scratch(call->numbers)); /* a step runs once at a time */
  c->call = run;
  c->state = call;
}

bool cpu_leaf_kernel(struct cpu *cpu, struct arena *a, const struct step *step, struct command *c,
                     struct diags *d) {
  (void)cpu, (void)d;
  cpu_call(a, step, functions[step->node->op], c);
  return true;
}
