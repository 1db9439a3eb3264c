/* SPDX-License-Identifier: Apache-2.0 */
/* Equal kernels are stored once: towers share them all, and so do batch sizes. */
#include "planner/loop_nest.h"

#include <string.h>

static uint64_t kernel_hash(const struct kernel *k) {
  int shape[] = {(int)k->kind, (int)k->reduce, k->rank,     k->nreduce,
                 k->vector,    k->nargs,       k->noutputs, k->nparams};
  uint64_t h = str_hash(STR_HASH_SEED, shape, sizeof shape);
  for (int i = 0; i < k->nargs; i++) {
    uint8_t arg[] = {k->args[i].dtype, k->args[i].vector, k->args[i].output};
    h = str_hash(h, arg, sizeof arg);
  }
  h = sprog_hash(&k->body, h);
  h = sprog_hash(&k->epilogue, h);
  h = str_hash(h, k->result, (size_t)kernel_results(k) * sizeof *k->result);
  return str_hash(h, k->epilogue_result, (size_t)kernel_reduced(k) * sizeof *k->epilogue_result);
}

static void insert(struct lowerer *l, const struct kernel *k) {
  uint32_t i = (uint32_t)k->hash;
  while (l->table[i & (l->table_size - 1)]) i++;
  l->table[i & (l->table_size - 1)] = k;
}

static void grow(struct lowerer *l) {
  if (l->nkernels == l->cap) {
    l->cap = l->cap ? 2 * l->cap : 32;
    const struct kernel **more = arena_new_array(l->arena, (size_t)l->cap, const struct kernel *);
    if (l->nkernels) memcpy(more, l->kernels, (size_t)l->nkernels * sizeof *more);
    l->kernels = more;
    l->table_size = 4 * (uint32_t)l->cap;
    l->table = arena_new_array(l->scratch, l->table_size, const struct kernel *);
    for (int i = 0; i < l->nkernels; i++) insert(l, l->kernels[i]);
  }
}

/* The finished program, in an arena that lasts. */
static struct sprog keep(struct arena *a, const struct sprog *p) {
  struct sinst *inst = arena_copy(a, p->inst, (size_t)p->count * sizeof *inst);
  return (struct sprog){.arena = a, .inst = inst, .count = p->count, .cap = p->count};
}

const struct kernel *lower_intern(struct lowerer *l, struct kernel *k) {
  grow(l);
  k->hash = kernel_hash(k);
  for (uint32_t i = (uint32_t)k->hash;; i++) {
    const struct kernel *have = l->table[i & (l->table_size - 1)];
    if (!have) break;
    if (have->hash == k->hash && kernel_equal(have, k)) return have;
  }
  k->body = keep(l->arena, &k->body);
  k->epilogue = keep(l->arena, &k->epilogue);
  const struct kernel *kept = arena_copy(l->arena, k, sizeof *k);
  l->kernels[l->nkernels++] = kept;
  insert(l, kept);
  return kept;
}
