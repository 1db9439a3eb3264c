/* SPDX-License-Identifier: Apache-2.0 */
/* Leaves that kernels/cpu computes: from a step to the function of its element type. */
#include "runtime/cpu/leaf.h"

#include "base/integer.h"
#include "base/line.h"
#include "ir/ops/leaf.h"
#include "ir/ops/op_id.h"

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
  case DT_BF16: return f->bf16;
  case DT_F16: return f->f16;
  case DT_COUNT: break;
  }
  return NULL;
}

struct kernel_call {
  const struct leaf_functions *all;
  leaf_fn *function;
  int begins, result; /* the result begins as this operand; */
  size_t bytes;       /* 0: it does not */
  size_t room;        /* of the memory that a piece works in */
  char *scratch;
  int64_t size, units;
  int64_t block[MAX_LEAF_INPUTS +
                1];     /* bytes of each operand, then the result, that belong to one unit; 0: all do */
  struct pieces pieces; /* the last stage does the work */
  int64_t numbers[MAX_LEAF_NUMBERS];
};

static void begin(void *const *args, const struct kernel_call *c) {
  if (args[c->result] != args[c->begins]) memcpy(args[c->result], args[c->begins], c->bytes);
}

/* Operands and numbers of the units first..end. */
static void take_units(const struct kernel_call *c, int64_t *numbers, char **args, int64_t first,
                       int64_t end) {
  if (c->all->narrow) {
    c->all->narrow(numbers, args, c->size, first, end);
    return;
  }
  for (int i = 0; i <= c->result; i++) args[i] += first * c->block[i];
  numbers[0] = end - first;
}

static void run(void *const *args, const void *state, int stage, int first, int end) {
  const struct kernel_call *c = state;
  char *all[MAX_LEAF_INPUTS + 2] = {0};
  int64_t numbers[MAX_LEAF_NUMBERS];
  if (c->bytes && stage == 0) {
    begin(args, c);
    return;
  }
  memcpy(all, args, (size_t)(c->result + 1) * sizeof *all);
  memcpy(numbers, c->numbers, sizeof numbers);
  if (c->scratch) all[c->result + 1] = c->scratch + (size_t)first * c->room;
  int count = c->pieces.count[stage];
  if (count > 1)
    take_units(c, numbers, all, piece_begin(c->units, count, first), piece_begin(c->units, count, end));
  c->function((void **)all, numbers);
}

/* Roughly: what is done with a byte, and with a number. */
static int64_t cost_of(const struct step *s) {
  return (int64_t)(0.06 * (double)s->traffic + 0.05 * (double)s->flops);
}

static void count_units(struct kernel_call *c, const struct node *n) {
  if (c->all->units) c->units = c->all->units(c->numbers);
  if (!c->all->blocks) return;
  c->units = c->numbers[0];
  for (int i = 0; i <= n->ninputs && c->units > 0; i++)
    if (c->all->blocks >> i & 1)
      c->block[i] = type_bytes(i < n->ninputs ? &n->inputs[i]->type : &n->type) / c->units;
}

void cpu_call(struct arena *a, const struct step *step, const struct leaf_functions *f, struct command *c) {
  const struct node *n = step->node;
  enum dtype type = (enum dtype)n->inputs[0]->type.dtype;
  int in_place = op_of(n)->in_place, count = 1;
  struct kernel_call *call = arena_new(a, struct kernel_call);
  *call = (struct kernel_call){.all = f,
                               .function = function_of(f, type),
                               .begins = in_place - 1,
                               .result = n->ninputs,
                               .bytes = in_place ? (size_t)type_bytes(&n->type) : 0,
                               .size = dtype_size(type),
                               .units = 1};
  op_of(n)->numbers(n, call->numbers);
  count_units(call, n);
  count = pieces_for(cost_of(step), call->units);
  if (f->scratch) { /* a piece runs once at a time */
    call->room = size_round_up(f->scratch(call->numbers), CACHE_LINE);
    call->scratch = arena_alloc(a, (size_t)count * call->room);
  }
  call->pieces =
      (struct pieces){.run = run, .state = call, .nstages = 1, .count = {count}, .cost = cost_of(step)};
  if (call->bytes) call->pieces.nstages = 2, call->pieces.count[0] = 1, call->pieces.count[1] = count;
  c->kind = COMMAND_PIECES;
  c->pieces = &call->pieces;
}

bool cpu_leaf_kernel(struct cpu *cpu, struct arena *a, const struct step *step, struct command *c,
                     struct diags *d) {
  (void)cpu, (void)d;
  cpu_call(a, step, functions[step->node->op], c);
  return true;
}
