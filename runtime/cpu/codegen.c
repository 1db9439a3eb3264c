/* SPDX-License-Identifier: Apache-2.0 */
/* Requests are cut into groups, one module each: long kernels of one shape, which share their code, and of the others
 * as many as their number says, so that neither the objects nor their names in the cache depend on the number of
 * cores. The key of an object is the kernels themselves, with everything else that shapes the code: host, LLVM and the
 * text of the emitter, so that a changed one finds no old code. What is in the cache needs no LLVM.
 *
 * Threads take groups of all that is asked for until none is left, those of what was asked for first before others, and
 * of these the heaviest: what is made does not depend on who makes it when. The first to need LLVM loads it. */
#include "runtime/cpu/codegen.h"

#include "base/thread.h"
#include "runtime/cache.h"
#include "runtime/cpu/emit.h"
#include "runtime/cpu/emitter_stamp.h"
#include "runtime/cpu/foreign.h"
#include "runtime/cpu/host.h"
#include "runtime/cpu/shape.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* The emitter hoists and merges already; what is left is in single instructions. */
#define PASSES       "early-cse,instcombine<no-verify-fixpoint>"
#define MOST_GROUPED 8
#define GROUPS       8 /* at least, where there are so many requests: as many threads have something to do */
#define MAX_WORKERS  8

/* What was asked for at once. */
struct codegen_part {
  struct made made;
  int n;            /* requests */
  bool *shared;     /* by group: whether its kernels are of one shape */
  struct str *keys; /* one per group; NULL for no cache */
  int *missing;     /* groups to compile */
  int nmissing, next;
  struct codegen_part *following;
};

/* What the threads share. */
struct codegen {
  struct arena *arena; /* of the thread that it belongs to */
  struct host *host;
  _Atomic(char *) error; /* the first one stays */
  pthread_t helper[MAX_WORKERS];
  int helpers; /* that were started; of them have not ended: */
  pthread_mutex_t lock;
  int running;
  struct codegen_part *parts, **last; /* with what each has next */
};

static void dispose(struct code *c) {
  if (c->owner) llvm.DisposeMemoryBuffer(c->owner);
  *c = (struct code){0};
}

static const char *take_text(struct arena *a, char *message) {
  const char *copy = arena_strdup(a, message);
  llvm.DisposeMessage(message);
  return copy;
}

static LLVMTargetMachineRef create_machine(const struct host *host, char **message) {
  LLVMTargetRef target;
  if (llvm.GetTargetFromTriple(host->triple, &target, message)) return NULL;
  return llvm.CreateTargetMachine(target, host->triple, host->cpu, host->features, LLVMCodeGenLevelLess,
                                  LLVMRelocPIC, LLVMCodeModelSmall);
}

static bool has_generator(const struct host *host, struct diags *d) {
  char *message = NULL;
  LLVMTargetMachineRef machine = create_machine(host, &message);
  if (machine == NULL) {
    diag_error(d, LOC_NONE, "cpu: no code generator for %s (%s)%s%s", host->triple, host->cpu,
               message ? ": " : "", message ? message : "");
    llvm.DisposeMessage(message);
    return false;
  }
  llvm.DisposeTargetMachine(machine);
  return true;
}

/* What it takes to load LLVM, to generate code on one thread, and on each further one with its stack and heap. */
#define MB              ((size_t)1 << 20)
#define LIBRARY_SPACE   (256 * MB)
#define GENERATOR       (64 * MB)
#define GENERATOR_SPACE (96 * MB)

static bool has_room(size_t space, size_t memory, struct diags *d) {
  if (foreign_memory(space, memory)) return true;
  diag_failure(d, LOC_NONE, "cpu: no memory to generate code: LLVM needs %zu MB",
               (space > memory ? space : memory) / MB);
  return false;
}

bool codegen_load(struct diags *d) { return has_room(LIBRARY_SPACE, 0, d) && llvm_load(d); }

/* Whoever comes first does it, the others wait. */
static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER;

static void undo_starting(void *lock) { pthread_mutex_unlock(lock); }

static bool start(struct host *host, struct diags *d) {
  if (host->features != NULL) return true;
  if (!codegen_load(d)) return false;
  struct host h = *host;
  const char *processor;
  if (!host_processor(&processor, d)) return false;
  h.triple = take_text(h.arena, llvm.GetDefaultTargetTriple());
  h.cpu = processor ? processor : take_text(h.arena, llvm.GetHostCPUName());
  h.features = processor ? "" : take_text(h.arena, llvm.GetHostCPUFeatures());
  if (!has_generator(&h, d)) return false;
  /* The rest others read meanwhile. */
  host->triple = h.triple, host->cpu = h.cpu, host->features = h.features;
  return true;
}

bool codegen_start(struct host *host, struct diags *d) {
  struct arena_guard locked;
  pthread_mutex_lock(&starting);
  arena_guard(&locked, undo_starting, &starting);
  bool ok = start(host, d);
  arena_unguard(&locked);
  pthread_mutex_unlock(&starting);
  return ok;
}

bool codegen_host(struct arena *a, struct host *host, struct diags *d) {
  *host = (struct host){.arena = a, .cores = thread_cores(), .cache = cache_folder(a)};
  const char *processor;
  if (!host_processor(&processor, d)) return false;
  host->identity = host_identity(a);
  if (host->identity != NULL) return true;
  if (!codegen_start(host, d)) return false;
  host->identity =
      arena_printf(a, "LLVM %s\n%s\n%s\n%s\n", LLVM_VERSION_STRING, host->triple, host->cpu, host->features);
  return true;
}

/* ---- one module ---- */

static void set_error(struct codegen *w, const char *what, const char *why) {
  size_t size = strlen(what) + strlen(why) + 3;
  char *text = malloc(size), *none = NULL;
  if (text == NULL) abort();
  memcpy(text, what, strlen(what) + 1);
  strcat(strcat(text, ": "), why);
  if (!atomic_compare_exchange_strong(&w->error, &none, text)) free(text);
}

static bool verify(struct codegen *w, LLVMModuleRef module) {
#ifdef DGC_DEBUG
  char *message = NULL;
  bool broken = llvm.VerifyModule(module, LLVMReturnStatusAction, &message);
  if (broken) set_error(w, "invalid code", message);
  llvm.DisposeMessage(message);
  return !broken;
#else
  (void)w, (void)module;
  return true;
#endif
}

static bool optimize(struct codegen *w, LLVMModuleRef module, LLVMTargetMachineRef machine) {
  LLVMPassBuilderOptionsRef options = llvm.CreatePassBuilderOptions();
  LLVMErrorRef error = llvm.RunPasses(module, PASSES, machine, options);
  llvm.DisposePassBuilderOptions(options);
  if (error == NULL) return true;
  char *message = llvm.GetErrorMessage(error);
  set_error(w, "optimizing failed", message);
  llvm.DisposeErrorMessage(message);
  return false;
}

/* On AArch64 LLVM makes `x < c ? x : c` FMINNM, whose zeros and NaN are others: of -0 and 0 it gives -0. It does not
 * where the condition is frozen, which costs nothing; what is frozen earlier, PASSES undo. */
static void keep_selects(const struct codegen *w, LLVMModuleRef module, LLVMBuilderRef builder) {
  if (strncmp(w->host->triple, "aarch64", strlen("aarch64")) != 0) return;
  for (LLVMValueRef f = llvm.GetFirstFunction(module); f; f = llvm.GetNextFunction(f))
    for (LLVMBasicBlockRef b = llvm.GetFirstBasicBlock(f); b; b = llvm.GetNextBasicBlock(b))
      for (LLVMValueRef i = llvm.GetFirstInstruction(b); i; i = llvm.GetNextInstruction(i)) {
        if (llvm.GetInstructionOpcode(i) != LLVMSelect) continue;
        llvm.PositionBuilderBefore(builder, i);
        llvm.SetOperand(i, 0, llvm.BuildFreeze(builder, llvm.GetOperand(i, 0), ""));
      }
}

static LLVMMemoryBufferRef compile(struct codegen *w, const struct emit *e, LLVMTargetMachineRef machine) {
  LLVMModuleRef module = e->module;
  LLVMMemoryBufferRef object = NULL;
  char *message = NULL;
  if (!verify(w, module) || !optimize(w, module, machine)) return NULL;
  keep_selects(w, module, e->builder);
  if (llvm.TargetMachineEmitToMemoryBuffer(machine, module, LLVMObjectFile, &message, &object)) {
    set_error(w, "generating code failed", message);
    llvm.DisposeMessage(message);
    return NULL;
  }
  return object;
}

static const struct request *request(const struct codegen_part *p, int group, int number) {
  return &p->made.requests[p->made.code[group].requests[number]];
}

/* False if they differ in too much. */
static bool emit_shared(struct emit *e, const struct codegen_part *p, int group, struct arena *scratch) {
  int n = p->made.code[group].count;
  const struct kernel **kernels = arena_new_array(scratch, (size_t)n, const struct kernel *);
  struct kernel_shape *s = arena_new(scratch, struct kernel_shape);
  for (int i = 0; i < n; i++) kernels[i] = request(p, group, i)->kernel;
  if (!shape_make(scratch, kernels, n, s)) return false;
  const char *symbol = arena_printf(scratch, "%s_shape", request(p, group, 0)->symbol);
  LLVMValueRef shape = emit_shape(e, &s->kernel, s->count, symbol, scratch);
  for (int i = 0; i < n; i++) {
    uint64_t given[MAX_GIVEN];
    shape_given(s, kernels[i], given);
    emit_of_shape(e, shape, given, s->count, request(p, group, i)->symbol);
  }
  return true;
}

static void make_group(struct codegen *w, const struct codegen_part *p, int group,
                       LLVMTargetMachineRef machine, struct arena *scratch) {
  struct emit e = {.context = llvm.ContextCreate()};
  LLVMTargetDataRef layout = llvm.CreateTargetDataLayout(machine);
  llvm.ContextSetDiscardValueNames(e.context, 1);
  e.module = llvm.ModuleCreateWithNameInContext("kernels", e.context);
  e.builder = llvm.CreateBuilderInContext(e.context);
  llvm.SetTarget(e.module, w->host->triple);
  llvm.SetModuleDataLayout(e.module, layout);
  if (!p->shared[group] || !emit_shared(&e, p, group, scratch))
    for (int i = 0; i < p->made.code[group].count; i++) {
      const struct request *r = request(p, group, i);
      emit_kernel(&e, r->kernel, r->symbol, scratch);
    }
  LLVMMemoryBufferRef object = compile(w, &e, machine);
  if (object) {
    struct code *c = &p->made.code[group];
    c->data = llvm.GetBufferStart(object), c->size = llvm.GetBufferSize(object), c->owner = object;
    if (p->keys) cache_write(w->host->cache, &p->keys[group], c->data, c->size);
  }
  llvm.DisposeBuilder(e.builder);
  llvm.DisposeModule(e.module);
  llvm.ContextDispose(e.context);
  llvm.DisposeTargetData(layout);
}

/* ---- threads ---- */

/* Makes the next group; false: all are taken, or are not wanted. */
static bool make_next(struct codegen *w, LLVMTargetMachineRef machine, struct arena *scratch) {
  pthread_mutex_lock(&w->lock);
  struct codegen_part *p = w->parts;
  while (p && p->next == p->nmissing) p = p->following;
  int group = p ? p->missing[p->next++] : -1;
  pthread_mutex_unlock(&w->lock);
  if (p == NULL || w->error) return false;
  make_group(w, p, group, machine, scratch);
  arena_reset(scratch);
  return true;
}

static void make_groups(struct codegen *w, struct arena *scratch) {
  char *message = NULL;
  foreign_enter();
  LLVMTargetMachineRef machine = create_machine(w->host, &message);
  if (machine == NULL) {
    set_error(w, "no code generator", message ? message : w->host->triple);
    llvm.DisposeMessage(message);
    return;
  }
  while (make_next(w, machine, scratch)) continue;
  llvm.DisposeTargetMachine(machine);
}

/* Why LLVM cannot be started, codegen_end says. */
static void start_and_make(struct codegen *w) {
  struct arena_guard guard;
  struct arena *scratch = arena_create_guarded(&guard);
  struct diags unsaid;
  diags_init(&unsaid, scratch);
  if (codegen_start(w->host, &unsaid)) make_groups(w, scratch);
  arena_destroy_guarded(scratch, &guard);
}

/* Memory that runs out is an error like others: the threads must all have ended before their caller goes on. */
static void work(struct codegen *w) {
  jmp_buf point, *outer = arena_on_failure(&point);
  if (setjmp(point))
    set_error(w, "generating code failed", "out of memory");
  else
    start_and_make(w);
  foreign_leave();
  arena_on_failure(outer);
}

static void *helper(void *argument) {
  struct codegen *w = argument;
  work(w);
  pthread_mutex_lock(&w->lock);
  w->running--;
  pthread_mutex_unlock(&w->lock);
  return NULL;
}

static void join_helpers(struct codegen *w) {
  while (w->helpers > 0) pthread_join(w->helper[--w->helpers], NULL);
}

/* The part's groups are there for all, and as many threads as have something to do, on cores beside the caller's. */
static void share_part(struct codegen *w, struct codegen_part *p) {
  int most = w->host->cores < MAX_WORKERS ? w->host->cores - 1 : MAX_WORKERS - 1;
  pthread_mutex_lock(&w->lock);
  *w->last = p;
  w->last = &p->following;
  if (w->running == 0) join_helpers(w);
  int wanted = p->nmissing < most - w->helpers ? p->nmissing : most - w->helpers;
  while (wanted > 0 && !foreign_memory((size_t)wanted * GENERATOR_SPACE + GENERATOR, GENERATOR)) wanted--;
  if (wanted > 0) foreign_prepare();
  for (int i = 0; i < wanted && thread_start(&w->helper[w->helpers], helper, w) == 0; i++)
    w->helpers++, w->running++;
  pthread_mutex_unlock(&w->lock);
}

/* ---- groups ---- */

static void add_group(struct codegen_part *p, const int *requests, int count, bool shared) {
  p->made.code[p->made.count].requests = requests;
  p->made.code[p->made.count].count = count;
  p->shared[p->made.count++] = shared;
}

/* Those from `i` on that are of its shape and in no group yet, into `out`; they are in one then, unless it is alone. */
static int find_alike(const struct codegen_part *p, const struct str *shapes, int i, bool *grouped,
                      int *out) {
  int count = 0;
  for (int k = i; k < p->n && shapes[i].len; k++)
    if (shapes[k].len == shapes[i].len && memcmp(shapes[k].data, shapes[i].data, shapes[i].len) == 0)
      out[count++] = k;
  for (int k = 0; k < count && count > 1; k++) grouped[out[k]] = true;
  return count;
}

static void make_all_groups(struct arena *a, struct codegen_part *p) {
  size_t n = (size_t)p->n;
  struct str *shapes = arena_new_array(a, n, struct str);
  bool *grouped = arena_new_array(a, n, bool);
  int *all = arena_new_array(a, n, int), *next = all, *others = arena_new_array(a, n, int), nothers = 0;
  p->shared = arena_new_array(a, n, bool);
  for (int i = 0; i < p->n; i++) shapes[i] = shape_of(a, p->made.requests[i].kernel);
  for (int i = 0; i < p->n; i++) {
    if (grouped[i]) continue;
    int count = find_alike(p, shapes, i, grouped, next);
    if (count > 1)
      add_group(p, next, count, true), next += count;
    else
      others[nothers++] = i;
  }
  int size = (nothers + GROUPS - 1) / GROUPS;
  if (size > MOST_GROUPED) size = MOST_GROUPED;
  for (int i = 0; i < nothers; i += size)
    add_group(p, others + i, size < nothers - i ? size : nothers - i, false);
}

/* ---- the cache ---- */

/* Everything that the code of a group depends on, as bytes. */
static struct str key_of(struct arena *a, const struct host *host, const struct codegen_part *p, int group) {
  struct str key = str_make(a);
  str_printf(&key, "%s\n%s\n%s", EMITTER_STAMP, PASSES, host->identity);
  for (int i = 0; i < p->made.code[group].count; i++) {
    const struct request *r = request(p, group, i);
    str_printf(&key, "%s\n", r->symbol);
    kernel_bytes(&key, r->kernel);
  }
  return key;
}

static void read_cached(struct arena *a, const struct host *host, struct codegen_part *p) {
  if (host->cache == NULL) return;
  p->keys = arena_new_array(a, (size_t)p->made.count, struct str);
  for (int i = 0; i < p->made.count; i++) {
    struct code *c = &p->made.code[i];
    p->keys[i] = key_of(a, host, p, i);
    c->data = cache_read(a, host->cache, &p->keys[i], &c->size);
    if (c->data) p->made.cached += c->count;
  }
}

/* ---- all of it ---- */

/* About what LLVM's time for a group grows with. */
static int weight_of(const struct codegen_part *p, int group) {
  int weight = 0, kernels = p->shared[group] ? 1 : p->made.code[group].count;
  for (int i = 0; i < kernels; i++) {
    const struct kernel *k = request(p, group, i)->kernel;
    weight += k->body.count + k->epilogue.count + k->rank + k->nargs;
  }
  return weight;
}

/* The heaviest first, so that no thread is left with one when the others have none. */
static void add_missing(struct codegen_part *p, int group) {
  int at = p->nmissing++, weight = weight_of(p, group);
  for (; at > 0 && weight_of(p, p->missing[at - 1]) < weight; at--) p->missing[at] = p->missing[at - 1];
  p->missing[at] = group;
}

struct codegen *codegen_create(struct host *host) {
  struct arena_guard guard;
  struct arena *a = arena_create_guarded(&guard);
  struct codegen *w = arena_new(a, struct codegen);
  *w = (struct codegen){.arena = a, .host = host, .last = &w->parts};
  arena_unguard(&guard);
  pthread_mutex_init(&w->lock, NULL);
  return w;
}

void codegen_add(struct codegen *w, const struct request *requests, int n) {
  struct codegen_part *p = arena_new(w->arena, struct codegen_part);
  p->n = n;
  p->made.requests = requests;
  p->made.code = arena_new_array(w->arena, (size_t)n, struct code);
  make_all_groups(w->arena, p);
  p->missing = arena_new_array(w->arena, (size_t)p->made.count, int);
  read_cached(w->arena, w->host, p);
  for (int i = 0; i < p->made.count; i++)
    if (p->made.code[i].data == NULL) add_missing(p, i);
  share_part(w, p);
}

/* Compiles what is still missing. */
static bool make_missing(struct codegen *w, struct diags *d) {
  if (!codegen_start(w->host, d) || !has_room(0, GENERATOR, d)) return false;
  foreign_prepare();
  work(w);
  join_helpers(w);
  if (w->error) {
    diag_error(d, LOC_NONE, "cpu: %s", w->error);
    return false;
  }
  if (w->host->cache) cache_trim(w->host->cache);
  return true;
}

bool codegen_end(struct codegen *w, struct diags *d) {
  const struct codegen_part *p = w->parts;
  while (p && p->nmissing == 0) p = p->following;
  return p == NULL || make_missing(w, d);
}

const struct made *codegen_made(const struct codegen *w, int number) {
  const struct codegen_part *p = w->parts;
  while (p && number-- > 0) p = p->following;
  return p ? &p->made : NULL;
}

void codegen_dispose(struct codegen *w) {
  if (w == NULL) return;
  pthread_mutex_lock(&w->lock);
  for (struct codegen_part *p = w->parts; p != NULL; p = p->following) p->next = p->nmissing;
  pthread_mutex_unlock(&w->lock);
  join_helpers(w);
  for (const struct codegen_part *p = w->parts; p != NULL; p = p->following)
    for (int i = 0; i < p->made.count; i++) dispose(&p->made.code[i]);
  free(w->error);
  pthread_mutex_destroy(&w->lock);
  arena_destroy(w->arena);
}
