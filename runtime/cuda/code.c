/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels: compiled once for each architecture, loaded once on each card, and launched with the addresses that
 * stand in the command's arguments at that time. */
#include "runtime/cuda/engine.h"

#include <string.h>

enum { BUCKETS = 256, ENTRIES = 3 };

/* A kernel that has been compiled. */
struct compiled_kernel {
  struct kernel kernel;             /* in the engine's arena */
  CUfunction (*functions)[ENTRIES]; /* by card, then enum cuda_entry; NULL: not yet */
  struct compiled_kernel *next;
};

struct loaded_module {
  CUmodule module;
  const struct cuda_card *card;
  struct loaded_module *next;
};

struct cuda_code {
  struct compiled_kernel *bucket[BUCKETS];
  struct loaded_module *modules;
};

static struct cuda_code *table(struct cuda_engine *e) {
  if (!e->code) e->code = arena_new(e->arena, struct cuda_code);
  return e->code;
}

void cuda_close_code(struct cuda_engine *e) {
  for (struct loaded_module *m = e->code ? e->code->modules : NULL; m; m = m->next) {
    cuda.cuCtxSetCurrent(m->card->context);
    cuda.cuModuleUnload(m->module);
  }
}

/* --- modules --- */

static bool load_module(struct cuda_engine *e, int device, const void *image, CUmodule *out) {
  struct loaded_module *m = arena_new(e->arena, struct loaded_module);
  struct cuda_code *t = table(e);
  if (!cuda_use(e, device) || !CUDA(e, device, cuModuleLoadData, out, image)) return false;
  *m = (struct loaded_module){*out, e->devices[device].card, t->modules};
  t->modules = m;
  return true;
}

bool cuda_load_program(struct cuda_engine *e, const struct cuda_program *p, CUmodule *out, struct diags *d) {
  struct arena_guard guard;
  struct arena *scratch = arena_create_guarded(&guard);
  struct cuda_image image = {0};
  bool good = true;
  cuda_come_in();
  for (int i = 0; good && i < e->ncards; i++) {
    bool same = i > 0 && e->cards[i].arch == e->cards[i - 1].arch;
    good =
        same || cuda_program_compile(scratch, p, arena_printf(scratch, "sm_%d", e->cards[i].arch), &image, d);
    if (!good) break;
    good = load_module(e, cuda_device_on(e, &e->cards[i]), image.data, &out[i]);
    if (!good) cuda_status(e, d);
  }
  arena_destroy_guarded(scratch, &guard);
  return good;
}

bool cuda_find_function(struct cuda_engine *e, int card, CUmodule module, const char *name, CUfunction *out,
                        struct diags *d) {
  int device = cuda_device_on(e, &e->cards[card]);
  if (cuda_use(e, device) && CUDA(e, device, cuModuleGetFunction, out, module, name)) return true;
  cuda_status(e, d);
  return false;
}

/* --- the table of kernels --- */

static struct compiled_kernel *find_code(struct cuda_engine *e, const struct kernel *k) {
  struct compiled_kernel *c = table(e)->bucket[k->hash % BUCKETS];
  while (c && !(c->kernel.hash == k->hash && kernel_equal(&c->kernel, k))) c = c->next;
  return c;
}

static struct compiled_kernel *add_code(struct cuda_engine *e, const struct kernel *k) {
  struct compiled_kernel *c = arena_new(e->arena, struct compiled_kernel);
  struct compiled_kernel **bucket = &table(e)->bucket[k->hash % BUCKETS];
  c->kernel = kernel_copy(e->arena, k);
  c->kernel.name = k->name ? arena_strdup(e->arena, k->name) : NULL;
  c->next = *bucket;
  return *bucket = c;
}

static bool find_entries(struct cuda_engine *e, struct arena *a, struct compiled_kernel *c, const char *name,
                         const CUmodule *modules, struct diags *d) {
  CUfunction(*functions)[ENTRIES] = arena_alloc(e->arena, (size_t)e->ncards * sizeof *functions);
  bool reduce = c->kernel.kind == KERNEL_REDUCE;
  const bool has[ENTRIES] = {[CUDA_MAIN] = true, [CUDA_JOIN] = reduce, [CUDA_MANY] = !reduce};
  for (int card = 0; card < e->ncards; card++)
    for (int i = 0; i < ENTRIES; i++)
      if (has[i] && !cuda_find_function(e, card, modules[card], cuda_entry_name(a, name, (enum cuda_entry)i),
                                        &functions[card][i], d))
        return false;
  c->functions = functions;
  return true;
}

static bool compile_fresh(struct cuda_engine *e, struct arena *a, struct compiled_kernel **fresh, int count,
                          struct diags *d) {
  const struct kernel **kernels = arena_new_array(a, (size_t)count, const struct kernel *);
  CUmodule *modules = arena_new_array(a, (size_t)e->ncards, CUmodule);
  for (int i = 0; i < count; i++) kernels[i] = &fresh[i]->kernel;
  bool *many = arena_new_array(a, (size_t)count, bool);
  for (int i = 0; i < count; i++) many[i] = kernels[i]->kind == KERNEL_MAP;
  struct cuda_program p = cuda_program_text(a, kernels, count, many);
  bool good = cuda_load_program(e, &p, modules, d);
  for (int i = 0; good && i < count; i++) good = find_entries(e, a, fresh[i], p.names[i], modules, d);
  return good;
}

/* Pass fuse makes no other kernels for GPUs. */
static bool can_compile(const struct kernel *k, struct diags *d) {
  if (k->nsums <= 1 && k->nmapped == 0) return true;
  diag_error(d, LOC_NONE,
             "kernel %s has %d sums and maps %d values beside them, which kernels of GPUs cannot: fuse for "
             "this device",
             k->name, k->nsums, k->nmapped);
  return false;
}

bool cuda_compile(void *self, const struct kernel *const *kernels, int count, kernel_fn **out,
                  struct diags *d) {
  struct cuda_engine *e = self;
  struct arena_guard guard;
  struct arena *a = arena_create_guarded(&guard);
  struct compiled_kernel **fresh = arena_new_array(a, (size_t)count, struct compiled_kernel *);
  int nfresh = 0;
  for (int i = 0; i < e->ndevices; i++) e->devices[i].last = (struct cuda_last){0}; /* of another plan */
  bool good = true;
  for (int i = 0; i < count && good; i++) good = can_compile(kernels[i], d);
  for (int i = 0; i < count && good; i++) {
    struct compiled_kernel *c = find_code(e, kernels[i]);
    if (!c) c = add_code(e, kernels[i]);
    bool known = c->functions != NULL;
    for (int f = 0; f < nfresh && !known; f++) known = fresh[f] == c;
    if (!known) fresh[nfresh++] = c;
    out[i] = NULL;
  }
  good = good && (nfresh == 0 || compile_fresh(e, a, fresh, nfresh, d));
  arena_destroy_guarded(a, &guard);
  return good;
}

/* --- launches --- */

struct kernel_launch {
  struct cuda_engine *engine;
  int device, count;
  CUfunction functions[2];
  struct cuda_launch launches[2];
  void **params;
};

static void run_launch(void *const *args, const void *state) {
  const struct kernel_launch *l = state;
  (void)args; /* params point to them */
  bool good = cuda_use(l->engine, l->device);
  for (int i = 0; good && i < l->count; i++)
    good = cuda_launch(l->engine, l->device, l->functions[i], &l->launches[i], l->params);
}

/* Goes into one group with the step before it if that runs the same map; not in a loop: a group has a table of where
 * everything is, which each turn would write anew. */
static bool join_last(struct cuda_engine *e, struct arena *a, const struct step *step, int device,
                      struct command *c, const struct compiled_kernel *code, struct diags *d) {
  struct cuda_last *last = &e->devices[device].last;
  const struct kernel_launch *l = c->state;
  bool joins = code->kernel.kind == KERNEL_MAP && !step->in_loop && l->count > 0 && last->code == code &&
               last->arena == a && last->step + 1 == step && !(last->group && cuda_group_full(last->group));
  if (!joins) {
    *last = (struct cuda_last){step, l->count > 0 ? code : NULL, a, c, NULL};
    return true;
  }
  if (!last->group) {
    const struct kernel_launch *first = last->command->state;
    CUfunction many = code->functions[e->devices[device].card - e->cards][CUDA_MANY];
    last->group = cuda_group_create(e, a, device, &code->kernel, first->functions[0], many);
    if (!cuda_group_join(last->group, last->command->args, last->step->sizes, &first->launches[0],
                         first->params, d))
      return false;
    last->command->call = cuda_run_group;
    last->command->state = last->group;
  }
  last->step = step;
  c->call = cuda_run_nothing;
  return cuda_group_join(last->group, c->args, step->sizes, &l->launches[0], l->params, d);
}

bool cuda_prepare_kernel(struct cuda_engine *e, struct arena *a, const struct step *step, int device,
                         struct command *c, struct diags *d) {
  const struct kernel *k = step->kernel;
  const struct compiled_kernel *code = find_code(e, k);
  struct cuda_device *dev = &e->devices[device];
  struct kernel_launch *l = arena_new(a, struct kernel_launch);
  size_t scratch = 0;
  *l = (struct kernel_launch){.engine = e, .device = device};
  l->count = cuda_launches(k, step->sizes, l->launches, &scratch);
  c->kind = COMMAND_CALL;
  c->call = l->count ? run_launch : cuda_run_nothing;
  c->state = l;
  if (!code || !code->functions) {
    diag_error(d, LOC_NONE, "kernel %s was not compiled", k->name ? k->name : "?");
    return false;
  }
  if (!cuda_scratch(e, device, SCRATCH_REDUCE, scratch, d)) return false;
  for (int i = 0; i < l->count; i++)
    l->functions[i] = code->functions[dev->card - e->cards][l->launches[i].entry];
  l->params = arena_new_array(a, (size_t)k->nargs + 2, void *);
  void **next = l->params;
  for (int i = 0; i < k->nargs; i++) *next++ = (void *)&c->args[i];
  if (k->kind == KERNEL_REDUCE) *next++ = &dev->scratch[SCRATCH_REDUCE].data;
  *next = (void *)step->sizes;
  return join_last(e, a, step, device, c, code, d);
}
