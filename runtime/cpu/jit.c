/* SPDX-License-Identifier: Apache-2.0 */
/* The table of kernels, and the linking of their code: by object.c where it can, else by ORC. */
#include "runtime/cpu/jit.h"

#include "base/clock.h"
#include "runtime/cpu/codegen.h"
#include "runtime/cpu/emit.h"
#include "runtime/cpu/object.h"

#include <inttypes.h>
#include <pthread.h>
#include <string.h>

struct jit_kernel {
  struct kernel kernel; /* a copy that lives as long as the JIT */
  const char *symbol;
  kernel_fn *fn;
  bool begun; /* its code is being made: */
  struct jit_kernel *next_begun;
  struct jit_kernel *next; /* of its bucket */
};

struct jit_tile {
  struct tile tile;
  struct tile_code code;
  struct jit_tile *next;
};

#define BUCKETS 1024

struct jit_object {
  struct object *object;
  struct jit_object *next;
};

struct cpu_jit {
  struct arena *arena;
  pthread_mutex_t lock;
  struct host host;
  struct jit_object *loaded;
  struct codegen *work; /* NULL: nothing is begun */
  struct jit_kernel *begun;
  LLVMOrcLLJITRef orc; /* NULL before it is needed */
  struct jit_kernel *bucket[BUCKETS];
  struct jit_tile *tiles;
  int64_t compiled, cached, reused;
  double seconds;
};

static bool llvm_failed(struct diags *d, const char *what, LLVMErrorRef error) {
  if (error == NULL) return false;
  char *message = llvm.GetErrorMessage(error);
  diag_error(d, LOC_NONE, "cpu: %s failed: %s", what, message);
  llvm.DisposeErrorMessage(message);
  return true;
}

struct cpu_jit *cpu_jit_create(struct diags *d) {
  struct arena_guard guard;
  struct arena *a = arena_create_guarded(&guard);
  struct cpu_jit *jit = arena_new(a, struct cpu_jit);
  jit->arena = a;
  struct arena *host = arena_create();
  arena_keep(a, host);
  bool ok = codegen_host(host, &jit->host, d);
  arena_unguard(&guard);
  if (!ok) {
    arena_destroy(a);
    return NULL;
  }
  pthread_mutex_init(&jit->lock, NULL);
  return jit;
}

void cpu_jit_destroy(struct cpu_jit *jit) {
  if (jit == NULL) return;
  codegen_dispose(jit->work);
  for (struct jit_object *l = jit->loaded; l != NULL; l = l->next) object_unload(l->object);
  if (jit->orc) llvm.ConsumeError(llvm.OrcDisposeLLJIT(jit->orc));
  pthread_mutex_destroy(&jit->lock);
  arena_destroy(jit->arena);
}

/* ---- linking ---- */

/* Takes over what `c` owns. */
static bool add_to_orc(struct cpu_jit *jit, struct code *c, struct diags *d) {
  if (!codegen_start(&jit->host, d)) return false;
  if (jit->orc == NULL && llvm_failed(d, "starting the JIT", llvm.OrcCreateLLJIT(&jit->orc, NULL)))
    return false;
  LLVMMemoryBufferRef buffer = c->owner;
  if (buffer == NULL) buffer = llvm.CreateMemoryBufferWithMemoryRangeCopy(c->data, c->size, "cached");
  c->owner = NULL;
  LLVMOrcJITDylibRef library = llvm.OrcLLJITGetMainJITDylib(jit->orc);
  return !llvm_failed(d, "loading code", llvm.OrcLLJITAddObjectFile(jit->orc, library, buffer));
}

static bool look_up(struct cpu_jit *jit, struct jit_kernel *e, struct diags *d) {
  LLVMOrcExecutorAddress address = 0;
  if (llvm_failed(d, "linking code", llvm.OrcLLJITLookup(jit->orc, &address, e->symbol))) return false;
  e->fn = (kernel_fn *)(uintptr_t)address;
  return true;
}

static bool keep_object(struct cpu_jit *jit, struct jit_object *l, struct object *object) {
  if (object == NULL) return false;
  l->object = object;
  l->next = jit->loaded;
  jit->loaded = l;
  return true;
}

/* False if this is for ORC to do. */
static bool load_object(struct cpu_jit *jit, const struct code *c, struct jit_kernel **entries, int n) {
  struct jit_object *l = arena_new(jit->arena, struct jit_object);
  if (!keep_object(jit, l, object_load(c->data, c->size))) return false;
  for (int i = 0; i < n; i++) {
    void *address = object_find(l->object, entries[i]->symbol);
    if (address == NULL) return false;
    memcpy(&entries[i]->fn, &address, sizeof address);
  }
  return true;
}

static bool link_code(struct cpu_jit *jit, struct code *c, struct jit_kernel **entries, int n,
                      struct diags *d) {
  if (load_object(jit, c, entries, n)) return true;
  bool ok = add_to_orc(jit, c, d);
  for (int i = 0; ok && i < n; i++) ok = look_up(jit, entries[i], d);
  return ok;
}

/* ---- the table of kernels ---- */

/* The entry of a kernel, made if need be; `*collisions` counts others with the same hash. */
static struct jit_kernel *entry_of(struct cpu_jit *jit, const struct kernel *k) {
  struct jit_kernel **slot = &jit->bucket[k->hash % BUCKETS];
  int same_hash = 0;
  for (; *slot != NULL; slot = &(*slot)->next) {
    if ((*slot)->kernel.hash != k->hash) continue;
    if (kernel_equal(&(*slot)->kernel, k)) return *slot;
    same_hash++;
  }
  struct jit_kernel *e = arena_new(jit->arena, struct jit_kernel);
  e->kernel = kernel_copy(jit->arena, k);
  e->kernel.name = NULL;
  e->symbol = arena_printf(jit->arena, "kernel_%016" PRIx64 "_%d", k->hash, same_hash);
  return *slot = e; /* at last: memory may run out before */
}

/* Notes the entries of the kernels in `entry`; `fresh` are those that nobody has begun to compile. */
static int note_entries(struct cpu_jit *jit, const struct kernel *const *kernels, int n,
                        struct jit_kernel **entry, struct jit_kernel **fresh, int64_t *known) {
  int nfresh = 0;
  for (int i = 0; i < n; i++) {
    struct jit_kernel *e = entry[i] = entry_of(jit, kernels[i]);
    bool here = e->fn != NULL;
    for (int f = 0; f < nfresh && !here; f++) here = fresh[f] == e;
    *known += here;
    if (!here && !e->begun) fresh[nfresh++] = e;
  }
  return nfresh;
}

static void begin(struct cpu_jit *jit, struct jit_kernel *const *fresh, int n) {
  if (n == 0) return;
  struct request *requests = arena_new_array(jit->arena, (size_t)n, struct request);
  for (int i = 0; i < n; i++) requests[i] = (struct request){&fresh[i]->kernel, fresh[i]->symbol};
  if (jit->work == NULL) jit->work = codegen_create(&jit->host);
  codegen_add(jit->work, requests, n);
  for (int i = 0; i < n; i++) {
    fresh[i]->begun = true;
    fresh[i]->next_begun = jit->begun;
    jit->begun = fresh[i];
  }
}

/* The entries of an object get their functions. */
static bool link_object(struct cpu_jit *jit, const struct made *m, struct code *c, struct arena *scratch,
                        struct diags *d) {
  struct jit_kernel **held = arena_new_array(scratch, (size_t)c->count, struct jit_kernel *);
  for (int i = 0; i < c->count; i++) held[i] = entry_of(jit, m->requests[c->requests[i]].kernel);
  return link_code(jit, c, held, c->count, d);
}

static bool link_all(struct cpu_jit *jit, struct codegen *work, struct arena *scratch, struct diags *d) {
  const struct made *m;
  bool ok = codegen_end(work, d);
  for (int part = 0; ok && (m = codegen_made(work, part)) != NULL; part++) {
    for (int i = 0; ok && i < m->count; i++) {
      ok = link_object(jit, m, &m->code[i], scratch, d);
      jit->compiled += m->code[i].count;
    }
    jit->compiled -= m->cached;
    jit->cached += m->cached;
  }
  return ok;
}

static void undo_work(void *work) { codegen_dispose(work); }

/* Whatever comes, nothing is begun then. A failed compilation leaves entries without a function: they are tried again
 * by the next call, under a new symbol, as the linker may know the old one. */
static bool end(struct cpu_jit *jit, struct arena *scratch, struct diags *d) {
  struct arena_guard guard;
  struct codegen *work = jit->work;
  struct jit_kernel *all = jit->begun;
  jit->work = NULL;
  jit->begun = NULL;
  for (struct jit_kernel *e = all; e; e = e->next_begun) e->begun = false;
  arena_guard(&guard, undo_work, work);
  bool ok = link_all(jit, work, scratch, d);
  arena_unguard(&guard);
  codegen_dispose(work);
  for (struct jit_kernel *e = all; e && !ok; e = e->next_begun) {
    e->fn = NULL;
    e->symbol = arena_printf(jit->arena, "%s_again", e->symbol);
  }
  return ok;
}

static void undo_lock(void *lock) { pthread_mutex_unlock(lock); }

/* Begins what nobody has begun; if `out` is there, ends all that is. */
static bool compile(struct cpu_jit *jit, const struct kernel *const *kernels, int n, kernel_fn **out,
                    struct diags *d) {
  struct arena_guard guard;
  struct arena *scratch = arena_create_guarded(&guard);
  struct jit_kernel **entry = arena_new_array(scratch, (size_t)n, struct jit_kernel *);
  struct jit_kernel **fresh = arena_new_array(scratch, (size_t)n, struct jit_kernel *);
  double start = clock_seconds();
  int64_t known = 0;
  bool ok = true;
  begin(jit, fresh, note_entries(jit, kernels, n, entry, fresh, &known));
  if (out && jit->work) ok = end(jit, scratch, d);
  for (int i = 0; i < n && out; i++) out[i] = entry[i]->fn;
  if (out) jit->reused += known;
  jit->seconds += clock_seconds() - start;
  arena_destroy_guarded(scratch, &guard);
  return ok;
}

bool cpu_jit_compile(struct cpu_jit *jit, const struct kernel *const *kernels, int n, kernel_fn **out,
                     struct diags *d) {
  struct arena_guard locked;
  pthread_mutex_lock(&jit->lock);
  arena_guard(&locked, undo_lock, &jit->lock);
  bool ok = compile(jit, kernels, n, out, d);
  arena_unguard(&locked);
  pthread_mutex_unlock(&jit->lock);
  return ok;
}

void cpu_jit_foresee(struct cpu_jit *jit, const struct kernel *const *kernels, int n) {
  cpu_jit_compile(jit, kernels, n, NULL, NULL);
}

static bool same_tile(const struct tile *a, const struct tile *b) {
  return a->dtype == b->dtype && a->rows == b->rows && a->vectors == b->vectors && a->lanes == b->lanes &&
         a->columns == b->columns && a->asks == b->asks && a->positive == b->positive && a->last == b->last;
}

static struct jit_tile *tile_entry(struct cpu_jit *jit, const struct tile *t) {
  struct jit_tile *e = jit->tiles;
  while (e && !same_tile(&e->tile, t)) e = e->next;
  if (e) return e;
  e = arena_new(jit->arena, struct jit_tile);
  e->tile = *t;
  e->next = jit->tiles;
  return jit->tiles = e;
}

const struct tile_code *cpu_jit_tile(struct cpu_jit *jit, const struct tile *tile) {
  struct arena_guard locked;
  pthread_mutex_lock(&jit->lock);
  arena_guard(&locked, undo_lock, &jit->lock);
  const struct tile_code *code = &tile_entry(jit, tile)->code;
  arena_unguard(&locked);
  pthread_mutex_unlock(&jit->lock);
  return code;
}

/* The code of all tiles that have none yet, one behind the other. */
static bool make_tiles(struct cpu_jit *jit, struct arena *scratch, struct diags *d) {
  struct str all = str_make(scratch);
  size_t n = 0;
  for (const struct jit_tile *e = jit->tiles; e; e = e->next) n++;
  size_t *at = arena_new_array(scratch, n, size_t);
  n = 0;
  for (const struct jit_tile *e = jit->tiles; e; e = e->next) {
    if (e->code.fn) continue;
    struct str code = tile_assemble(scratch, &e->tile);
    while (all.len % TILE_ALIGNMENT) str_putc(&all, 0);
    at[n++] = all.len;
    str_putn(&all, code.data, code.len);
  }
  if (n == 0) return true;
  struct jit_object *l = arena_new(jit->arena, struct jit_object);
  const char *base;
  if (!keep_object(jit, l, object_of_code(all.data, all.len, &base))) {
    diag_failure(d, LOC_NONE, "cpu: no memory for code");
    return false;
  }
  n = 0;
  for (struct jit_tile *e = jit->tiles; e; e = e->next) {
    if (e->code.fn) continue;
    const char *address = base + at[n++];
    memcpy(&e->code.fn, &address, sizeof address);
  }
  return true;
}

bool cpu_jit_finish(struct cpu_jit *jit, struct diags *d) {
  struct arena_guard guard, locked;
  struct arena *scratch = arena_create_guarded(&guard);
  pthread_mutex_lock(&jit->lock);
  arena_guard(&locked, undo_lock, &jit->lock);
  bool ok = make_tiles(jit, scratch, d);
  arena_unguard(&locked);
  pthread_mutex_unlock(&jit->lock);
  arena_destroy_guarded(scratch, &guard);
  return ok;
}

void cpu_jit_stats(struct cpu_jit *jit, struct cpu_jit_stats *out) {
  pthread_mutex_lock(&jit->lock);
  *out = (struct cpu_jit_stats){jit->compiled, jit->cached, jit->reused, jit->seconds};
  pthread_mutex_unlock(&jit->lock);
}

const char *cpu_kernel_llvm(struct arena *a, const struct kernel *k, const char *triple, struct diags *d) {
  if (!codegen_load(d)) return NULL;
  struct emit e = {.context = llvm.ContextCreate()};
  struct arena *scratch = arena_create();
  const char *name = k->name != NULL && k->name[0] != 0 ? k->name : "kernel";
  e.module = llvm.ModuleCreateWithNameInContext(name, e.context);
  e.builder = llvm.CreateBuilderInContext(e.context);
  if (triple != NULL) llvm.SetTarget(e.module, triple);
  emit_kernel(&e, k, name, scratch);
  char *text = llvm.PrintModuleToString(e.module);
  const char *copy = arena_strdup(a, text);
  llvm.DisposeMessage(text);
  llvm.DisposeBuilder(e.builder);
  llvm.DisposeModule(e.module);
  llvm.ContextDispose(e.context);
  arena_destroy(scratch);
  return copy;
}
