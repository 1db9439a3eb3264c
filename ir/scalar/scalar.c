/* SPDX-License-Identifier: Apache-2.0 */
/* Recording of scalar programs.
 *
 * Every instruction passes through `record`, which returns the value number of an equal instruction if there
 * is one, and computes instructions whose operands are all constants. A value number fits 16 bits. */
#include "ir/scalar/scalar.h"

#include "base/bits.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define MAX_VALUES 65536

static const struct {
  const char *name;
  int operands;
} sops[] = {
#define SOP(constant, name, operands, on) {name, operands},
#include "ir/scalar/scalar.def"
#undef SOP
};

const char *sop_name(enum sop op) { return sops[op].name; }

int sop_operands(enum sop op) { return sops[op].operands; }

int sinst_operands(const struct sinst *i, sval out[3]) {
  out[0] = i->a, out[1] = i->b, out[2] = i->c;
  return sop_operands((enum sop)i->op);
}

const bool *sprog_live(struct arena *a, const struct sprog *p, const sval *results, int nresults) {
  bool *live = arena_new_array(a, (size_t)p->count, bool);
  sval use[3];
  for (int r = 0; r < nresults; r++) live[results[r]] = true;
  for (sval v = p->count - 1; v >= 0; v--) {
    int n = live[v] ? sinst_operands(&p->inst[v], use) : 0;
    for (int u = 0; u < n; u++) live[use[u]] = true;
  }
  return live;
}

struct sprog sprog_make(struct arena *a) {
  return (struct sprog){.arena = a};
}

enum dtype s_dtype(const struct sprog *p, sval v) { return p->inst[v].dtype; }

static bool same(const struct sinst *x, const struct sinst *y) {
  return x->op == y->op && x->dtype == y->dtype && x->a == y->a && x->b == y->b && x->c == y->c &&
         x->bits == y->bits;
}

static uint64_t hash_inst(uint64_t h, const struct sinst *i) {
  uint64_t words[2] = {(uint64_t)i->op << 56 | (uint64_t)i->dtype << 48 | (uint64_t)i->a << 32 |
                           (uint64_t)i->b << 16 | i->c,
                       i->bits};
  for (int k = 0; k < 2; k++) {
    h = (h ^ words[k]) * UINT64_C(0x9e3779b97f4a7c15);
    h ^= h >> 29;
  }
  return h;
}

/* The slot that holds `i`, or the empty one where it belongs. */
static uint32_t *find(const struct sprog *p, const struct sinst *i) {
  uint64_t h = hash_inst(0, i);
  for (uint32_t k = (uint32_t)(h >> 32);; k++) {
    uint32_t *slot = &p->slots[k & (uint32_t)(2 * p->cap - 1)];
    if (!*slot || same(&p->inst[*slot - 1], i)) return slot;
  }
}

static void grow(struct sprog *p) {
  struct sinst *old = p->inst;
  p->cap = p->cap ? 2 * p->cap : 32;
  p->inst = arena_new_array(p->arena, (size_t)p->cap, struct sinst);
  p->slots = arena_new_array(p->arena, 2 * (size_t)p->cap, uint32_t);
  if (p->count) memcpy(p->inst, old, (size_t)p->count * sizeof *old);
  for (int v = 0; v < p->count; v++) *find(p, &p->inst[v]) = (uint32_t)v + 1;
}

static sval append(struct sprog *p, struct sinst i) {
  if (p->count == p->cap) grow(p);
  uint32_t *slot = find(p, &i);
  if (*slot) return (sval)*slot - 1;
  assert(p->count < MAX_VALUES);
  p->inst[p->count] = i;
  *slot = (uint32_t)++p->count;
  return p->count - 1;
}

static bool is_nan(enum dtype d, uint64_t bits) {
  if (d == DT_F32) return (bits & 0x7fffffff) > 0x7f800000;
  return d == DT_F64 && (bits & INT64_MAX) > UINT64_C(0x7ff0000000000000);
}

/* A computed instruction: its value if all operands are constants, unless that is NaN, whose bits are not fixed. */
static sval record(struct sprog *p, enum sop op, enum dtype d, sval a, sval b, sval c) {
  int n = sop_operands(op);
  const sval v[3] = {a, b, c};
  uint64_t x[3] = {0};
  bool fold = true;
  for (int i = 0; i < n; i++) {
    assert(v[i] >= 0 && v[i] < p->count);
    fold = fold && p->inst[v[i]].op == S_CONST;
    x[i] = p->inst[v[i]].bits;
  }
  struct sinst inst = {
      .op = (uint8_t)op, .dtype = (uint8_t)d, .a = (uint16_t)a, .b = (uint16_t)b, .c = (uint16_t)c};
  if (fold) {
    uint64_t bits = scalar_eval(&inst, s_dtype(p, a), x[0], x[1], x[2]);
    if (!is_nan(d, bits)) return s_bits(p, d, bits);
  }
  return append(p, inst);
}

sval s_bits(struct sprog *p, enum dtype d, uint64_t bits) {
  return append(p, (struct sinst){.op = S_CONST, .dtype = (uint8_t)d, .bits = bits});
}

sval s_const(struct sprog *p, enum dtype d, double value) {
  return s_bits(p, d, scalar_convert(d, DT_F64, f64_bits(value)));
}

sval s_int(struct sprog *p, enum dtype d, int64_t value) {
  return s_bits(p, d, scalar_convert(d, DT_I64, (uint64_t)value));
}

sval s_arg(struct sprog *p, int arg, enum dtype d) {
  return append(p, (struct sinst){.op = S_ARG, .dtype = (uint8_t)d, .a = (uint16_t)arg});
}

sval s_index(struct sprog *p, int loop) {
  return append(p, (struct sinst){.op = S_INDEX, .dtype = DT_I64, .a = (uint16_t)loop});
}

sval s_param(struct sprog *p, int param) {
  return append(p, (struct sinst){.op = S_PARAM, .dtype = DT_I64, .a = (uint16_t)param});
}

sval s_unary(struct sprog *p, enum sop op, sval a) {
  assert(sop_operands(op) == 1 && op != S_CONVERT && op != S_BITCAST);
  return record(p, op, s_dtype(p, a), a, 0, 0);
}

sval s_binary(struct sprog *p, enum sop op, sval a, sval b) {
  assert(sop_operands(op) == 2 && s_dtype(p, a) == s_dtype(p, b));
  bool compare = op == S_EQ || op == S_NE || op == S_LT || op == S_LE;
  return record(p, op, compare ? DT_BOOL : s_dtype(p, a), a, b, 0);
}

sval s_fma(struct sprog *p, sval a, sval b, sval c) {
  assert(dtype_is_float(s_dtype(p, a)) && s_dtype(p, a) == s_dtype(p, b) && s_dtype(p, a) == s_dtype(p, c));
  return record(p, S_FMA, s_dtype(p, a), a, b, c);
}

sval s_select(struct sprog *p, sval cond, sval a, sval b) {
  assert(s_dtype(p, cond) == DT_BOOL && s_dtype(p, a) == s_dtype(p, b));
  if (a == b) return a;
  return record(p, S_SELECT, s_dtype(p, a), cond, a, b);
}

sval s_convert(struct sprog *p, enum dtype d, sval a) {
  return s_dtype(p, a) == d ? a : record(p, S_CONVERT, d, a, 0, 0);
}

sval s_bitcast(struct sprog *p, enum dtype d, sval a) {
  assert(dtype_size(d) == dtype_size(s_dtype(p, a)));
  return s_dtype(p, a) == d ? a : record(p, S_BITCAST, d, a, 0, 0);
}

/* The first operand of `i` that has no number in `map` yet, or -1. */
static sval missing(const struct sinst *i, const sval *map) {
  sval use[3];
  int n = sinst_operands(i, use);
  for (int u = 0; u < n; u++)
    if (map[use[u]] < 0) return use[u];
  return -1;
}

void sprog_order(struct sprog *p, sval *results, int nresults) {
  struct sprog out = sprog_make(p->arena);
  sval *map = arena_new_array(p->arena, (size_t)p->count, sval);
  sval *stack = arena_new_array(p->arena, (size_t)p->count, sval);
  for (int v = 0; v < p->count; v++) map[v] = -1;
  for (int r = 0; r < nresults; r++) {
    int depth = 0;
    if (map[results[r]] < 0) stack[depth++] = results[r];
    while (depth > 0) { /* operands first: a path is never longer than the program */
      sval v = stack[depth - 1], next = missing(&p->inst[v], map);
      if (next >= 0) {
        stack[depth++] = next;
        continue;
      }
      struct sinst i = p->inst[v];
      int n = sop_operands(i.op);
      if (n > 0) i.a = (uint16_t)map[i.a];
      if (n > 1) i.b = (uint16_t)map[i.b];
      if (n > 2) i.c = (uint16_t)map[i.c];
      map[v] = append(&out, i);
      depth--;
    }
    results[r] = map[results[r]];
  }
  *p = out;
}

uint64_t sprog_hash(const struct sprog *p, uint64_t seed) {
  uint64_t h = seed;
  for (int v = 0; v < p->count; v++) h = hash_inst(h, &p->inst[v]);
  return h;
}
