/* SPDX-License-Identifier: Apache-2.0 */
/* Many launches as one: maps of one kernel that follow each other on a device, such as the parts of a
 * convolution, the first values of variables or their updates, become one launch over a table of their
 * arguments.
 *
 * The commands of a group do nothing but for the first, which does the work of all. Their addresses are known
 * when it runs: then the table is made, and cut where a member writes what another one reads or writes. It is
 * made again only when addresses have changed. */
#include "runtime/cuda/engine.h"

#include <string.h>

enum { SLAB = 1 << 16, MAX_MEMBERS = 65535 };

struct launch_member {
  void *const *args;
  const int64_t *sizes;
  const struct cuda_launch *launch;
  void **params;
};

/* Members that run at once. */
struct launch_part {
  int first, count;
  struct cuda_launch launch;
  CUdeviceptr sets;
};

struct cuda_group {
  struct cuda_engine *engine;
  struct arena *arena;
  int device;
  const struct kernel *kernel;
  CUfunction one, many;
  struct launch_member *members;
  int count, cap;
  CUdeviceptr sets; /* in memory of the device, cuda_set_words of 8 bytes for each member */
  int64_t *table;   /* the same on the host, as it was last written */
  struct launch_part *parts;
  int nparts; /* 0: not arranged yet */
};

/* --- the table's place --- */

/* Room for one more set behind those of the group. Slabs stay until the end, as recordings hold their
 * addresses. */
static bool place_set(struct cuda_group *g, struct diags *d) {
  struct cuda_device *dev = &g->engine->devices[g->device];
  size_t set = 8 * (size_t)cuda_set_words(g->kernel), before = set * (size_t)g->count;
  bool behind = g->count > 0 && g->sets + before == dev->sets + dev->sets_used;
  if (!behind || dev->sets_used + set > dev->sets_bytes) {
    size_t need = before + set;
    if (dev->sets_used + need > dev->sets_bytes) {
      struct cuda_outgrown *slab = arena_new(g->engine->arena, struct cuda_outgrown);
      size_t bytes = 2 * need > SLAB ? 2 * need : SLAB;
      void *data = cuda_alloc(g->engine, g->device, bytes);
      if (!data) {
        cuda_no_work_space(g->engine, g->device, bytes, d);
        return false;
      }
      *slab = (struct cuda_outgrown){cuda_address(data), dev->outgrown};
      dev->outgrown = slab;
      dev->sets = cuda_address(data);
      dev->sets_bytes = bytes;
      dev->sets_used = 0;
    }
    g->sets = dev->sets + dev->sets_used;
    dev->sets_used += before;
  }
  dev->sets_used += set;
  return true;
}

/* --- who may run at once --- */

struct byte_range {
  uintptr_t begin, end; /* bytes */
};

static struct byte_range touched(const struct cuda_group *g, const struct launch_member *m, int arg) {
  const struct kernel *k = g->kernel;
  const int64_t *strides = m->sizes + k->rank + (int64_t)arg * k->rank;
  int64_t low = 0, high = 0;
  for (int i = 0; i < k->rank; i++) {
    int64_t reach = (m->sizes[i] - 1) * strides[i];
    if (reach < 0)
      low += reach;
    else
      high += reach;
  }
  int size = dtype_size(k->args[arg].dtype);
  uintptr_t at = (uintptr_t)m->args[arg];
  return (struct byte_range){at + (uintptr_t)(low * size), at + (uintptr_t)((high + 1) * size)};
}

static bool conflict(const struct cuda_group *g, const struct launch_member *a,
                     const struct launch_member *b) {
  const struct kernel *k = g->kernel;
  for (int i = 0; i < k->nargs; i++)
    for (int j = 0; j < k->nargs; j++) {
      if (!k->args[i].output && !k->args[j].output) continue;
      struct byte_range x = touched(g, a, i), y = touched(g, b, j);
      if (x.begin < y.end && y.begin < x.end) return true;
    }
  return false;
}

static bool fits(const struct cuda_group *g, const struct launch_part *p, int member) {
  for (int i = p->first; i < p->first + p->count; i++)
    if (conflict(g, &g->members[i], &g->members[member])) return false;
  return true;
}

static void begin_part(struct cuda_group *g, int first) {
  CUdeviceptr sets = g->sets + 8 * (CUdeviceptr)(first * cuda_set_words(g->kernel));
  g->parts[g->nparts++] = (struct launch_part){.first = first, .sets = sets};
}

/* In their order, each part as long as it can be. */
static void arrange(struct cuda_group *g) {
  g->nparts = 0;
  for (int i = 0; i < g->count; i++) {
    if (i == 0 || !fits(g, &g->parts[g->nparts - 1], i)) begin_part(g, i);
    struct launch_part *p = &g->parts[g->nparts - 1];
    p->count++;
    cuda_add_set(&p->launch, g->members[i].launch);
  }
}

/* --- runs --- */

static bool moved(const struct cuda_group *g) {
  int words = cuda_set_words(g->kernel), nargs = g->kernel->nargs;
  for (int i = 0; i < g->count; i++)
    if (memcmp(g->members[i].args, g->table + (ptrdiff_t)i * words, (size_t)nargs * sizeof(void *)) != 0)
      return true;
  return false;
}

/* Not in a recording: an earlier run has done it. */
static bool update(struct cuda_group *g) {
  int words = cuda_set_words(g->kernel), nargs = g->kernel->nargs;
  if (g->nparts && !moved(g)) return true;
  for (int i = 0; i < g->count; i++) {
    int64_t *set = g->table + (ptrdiff_t)i * words;
    memcpy(set, g->members[i].args, (size_t)nargs * sizeof(void *));
    memcpy(set + nargs, g->members[i].sizes, (size_t)(words - nargs) * 8);
  }
  arrange(g);
  bool written = cuda_write(g->engine, g->device, (void *)(uintptr_t)g->sets, g->table,
                            8 * (size_t)words * (size_t)g->count);
  if (!written) g->nparts = 0;
  return written;
}

void cuda_run_group(void *const *args, const void *state) {
  struct cuda_group *g = (struct cuda_group *)state;
  (void)args;
  bool good = cuda_use(g->engine, g->device) && update(g);
  for (int i = 0; good && i < g->nparts; i++) {
    struct launch_part *p = &g->parts[i];
    const struct launch_member *m = &g->members[p->first];
    void *sets[] = {&p->sets};
    good = p->count == 1 ? cuda_launch(g->engine, g->device, g->one, m->launch, m->params)
                         : cuda_launch(g->engine, g->device, g->many, &p->launch, sets);
  }
}

/* --- joining --- */

struct cuda_group *cuda_group_create(struct cuda_engine *e, struct arena *a, int device,
                                     const struct kernel *k, CUfunction one, CUfunction many) {
  struct cuda_group *g = arena_new(a, struct cuda_group);
  *g = (struct cuda_group){.engine = e, .arena = a, .device = device, .kernel = k, .one = one, .many = many};
  return g;
}

static void grow(struct cuda_group *g) {
  int cap = g->cap ? 2 * g->cap : 4, words = cuda_set_words(g->kernel);
  struct launch_member *members = arena_new_array(g->arena, (size_t)cap, struct launch_member);
  if (g->count) memcpy(members, g->members, (size_t)g->count * sizeof *members);
  g->members = members;
  g->parts = arena_new_array(g->arena, (size_t)cap, struct launch_part);
  g->table = arena_new_array(g->arena, (size_t)cap * (size_t)words, int64_t);
  g->cap = cap;
}

bool cuda_group_full(const struct cuda_group *g) { return g->count == MAX_MEMBERS; }

bool cuda_group_join(struct cuda_group *g, void *const *args, const int64_t *sizes,
                     const struct cuda_launch *launch, void **params, struct diags *d) {
  if (g->count == g->cap) grow(g);
  if (!place_set(g, d)) return false;
  g->members[g->count++] = (struct launch_member){args, sizes, launch, params};
  return true;
}
