/* Gather and scatter_add: from a step to kernels/cpu/rows.c. */
#include "kernels/cpu/rows.h"

#include "ir/ops/leaf.h"
#include "runtime/cpu/leaf.h"

#include <string.h>

static struct row_numbers numbers_of(const struct table_rows *r, const void *index) {
  return (struct row_numbers){index, dtype_size(r->index), r->count};
}

static void run_gather(void *const *args, const void *state) {
  const struct table_rows *r = state;
  struct row_numbers n = numbers_of(r, args[1]);
  rows_gather(&n, r->rows, (size_t)(r->width * dtype_size(r->dtype)), args[0], args[2]);
}

static void run_scatter_add(void *const *args, const void *state) {
  const struct table_rows *r = state;
  struct row_numbers n = numbers_of(r, args[1]);
  size_t bytes = (size_t)(r->rows * r->width * dtype_size(r->dtype));
  const void *values = args[2];
  void *x = args[3];
  if (x != args[0] && bytes) memcpy(x, args[0], bytes);
  switch (r->dtype) {
  case DT_F32: rows_scatter_f32(&n, r->rows, r->width, values, x); break;
  case DT_F64: rows_scatter_f64(&n, r->rows, r->width, values, x); break;
  case DT_I64: rows_scatter_u64(&n, r->rows, r->width, values, x); break;
  case DT_I32: rows_scatter_u32(&n, r->rows, r->width, values, x); break;
  case DT_U8: rows_scatter_u8(&n, r->rows, r->width, values, x); break;
  case DT_BOOL:
  case DT_COUNT: break;
  }
}

static bool prepare(struct arena *a, const struct step *step, call_fn *call, struct command *c) {
  struct table_rows r = rows_of(step->node);
  c->call = call;
  c->state = arena_copy(a, &r, sizeof r);
  return true;
}

bool cpu_leaf_gather(struct cpu *cpu, struct arena *a, const struct step *step, struct command *c,
                     struct diags *d) {
  (void)cpu, (void)d;
  return prepare(a, step, run_gather, c);
}

bool cpu_leaf_scatter_add(struct cpu *cpu, struct arena *a, const struct step *step, struct command *c,
                          struct diags *d) {
  (void)cpu, (void)d;
  return prepare(a, step, run_scatter_add, c);
}
