/* SPDX-License-Identifier: Apache-2.0 */
/* Requests are cut into groups, one module each: long kernels of one shape, which share their code, and of the others
 * as many as their number says, so that neither the objects nor their names in the cache depend on the number of
 * cores. The key of an object is the kernels themselves, with everything else that shapes the code: host, LLVM and the
 * text of the emitter, so that a changed one finds no old code. What is in the cache needs no LLVM. */
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

/* What the workers share. */
struct work {
  const struct host *host;
  const struct request *requests;
  int n;
  int ngroups;
  bool *shared;      /* by group: whether its kernels are of one shape */
  struct str *keys;  /* one per group; NULL for no cache */
  struct code *code; /* one per group */
  int *missing;      /* groups to compile */
  int nmissing;
  atomic_int next;       /* of `missing` */
  _Atomic(char *) error; /* the first one stays */
};

void code_dispose(struct code *c) {
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

bool codegen_start(struct host *host, struct diags *d) {
  if (host->features != NULL) return true;
  if (!codegen_load(d)) return false;
  struct host h = *host;
  const char *processor;
  if (!host_processor(&processor, d)) return false;
  h.triple = take_text(h.arena, llvm.GetDefaultTargetTriple());
  h.cpu = processor ? processor : take_text(h.arena, llvm.GetHostCPUName());
  h.features = processor ? "" : take_text(h.arena, llvm.GetHostCPUFeatures());
  if (!has_generator(&h, d)) return false;
  *host = h;
  return true;
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

static void set_error(struct work *w, const char *what, const char *why) {
  size_t size = strlen(what) + strlen(why) + 3;
  char *text = malloc(size), *none = NULL;
  if (text == NULL) abort();
  memcpy(text, what, strlen(what) + 1);
  strcat(strcat(text, ": "), why);
  if (!atomic_compare_exchange_strong(&w->error, &none, text)) free(text);
}

static bool verify(struct work *w, LLVMModuleRef module) {
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

static bool optimize(struct work *w, LLVMModuleRef module, LLVMTargetMachineRef machine) {
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
static void keep_selects(const struct work *w, LLVMModuleRef module, LLVMBuilderRef builder) {
  if (strncmp(w->host->triple, "aarch64", strlen("aarch64")) != 0) return;
  for (LLVMValueRef f = llvm.GetFirstFunction(module); f; f = llvm.GetNextFunction(f))
    for (LLVMBasicBlockRef b = llvm.GetFirstBasicBlock(f); b; b = llvm.GetNextBasicBlock(b))
      for (LLVMValueRef i = llvm.GetFirstInstruction(b); i; i = llvm.GetNextInstruction(i)) {
        if (llvm.GetInstructionOpcode(i) != LLVMSelect) continue;
        llvm.PositionBuilderBefore(builder, i);
        llvm.SetOperand(i, 0, llvm.BuildFreeze(builder, llvm.GetOperand(i, 0), ""));
      }
}

static LLVMMemoryBufferRef compile(struct work *w, const struct emit *e, LLVMTargetMachineRef machine) {
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

static const struct request *request(const struct work *w, int group, int number) {
  return &w->requests[w->code[group].requests[number]];
}

/* False if they differ in too much. */
static bool emit_shared(struct emit *e, const struct work *w, int group, struct arena *scratch) {
  int n = w->code[group].count;
  const struct kernel **kernels = arena_new_array(scratch, (size_t)n, const struct kernel *);
  struct kernel_shape *s = arena_new(scratch, struct kernel_shape);
  for (int i = 0; i < n; i++) kernels[i] = request(w, group, i)->kernel;
  if (!shape_make(scratch, kernels, n, s)) return false;
  const char *symbol = arena_printf(scratch, "%s_shape", request(w, group, 0)->symbol);
  LLVMValueRef shape = emit_shape(e, &s->kernel, s->count, symbol, scratch);
  for (int i = 0; i < n; i++) {
    uint64_t given[MAX_GIVEN];
    shape_given(s, kernels[i], given);
    emit_of_shape(e, shape, given, s->count, request(w, group, i)->symbol);
  }
  return true;
}

static void make_group(struct work *w, int group, LLVMTargetMachineRef machine, struct arena *scratch) {
  struct emit e = {.context = llvm.ContextCreate()};
  LLVMTargetDataRef layout = llvm.CreateTargetDataLayout(machine);
  llvm.ContextSetDiscardValueNames(e.context, 1);
  e.module = llvm.ModuleCreateWithNameInContext("kernels", e.context);
  e.builder = llvm.CreateBuilderInContext(e.context);
  llvm.SetTarget(e.module, w->host->triple);
  llvm.SetModuleDataLayout(e.module, layout);
  if (!w->shared[group] || !emit_shared(&e, w, group, scratch))
    for (int i = 0; i < w->code[group].count; i++) {
      const struct request *r = request(w, group, i);
      emit_kernel(&e, r->kernel, r->symbol, scratch);
    }
  LLVMMemoryBufferRef object = compile(w, &e, machine);
  if (object) {
    struct code *c = &w->code[group];
    c->data = llvm.GetBufferStart(object), c->size = llvm.GetBufferSize(object), c->owner = object;
    if (w->keys) cache_write(w->host->cache, &w->keys[group], c->data, c->size);
  }
  llvm.DisposeBuilder(e.builder);
  llvm.DisposeModule(e.module);
  llvm.ContextDispose(e.context);
  llvm.DisposeTargetData(layout);
}

static void make_groups(struct work *w) {
  struct arena_guard guard;
  struct arena *scratch = arena_create_guarded(&guard);
  char *message = NULL;
  foreign_enter();
  LLVMTargetMachineRef machine = create_machine(w->host, &message);
  if (machine == NULL) {
    set_error(w, "no code generator", message ? message : w->host->triple);
    llvm.DisposeMessage(message);
  }
  int i;
  while (machine != NULL && w->error == NULL && (i = w->next++) < w->nmissing) {
    make_group(w, w->missing[i], machine, scratch);
    arena_reset(scratch);
  }
  if (machine) llvm.DisposeTargetMachine(machine);
  arena_destroy_guarded(scratch, &guard);
}

/* Memory that runs out is an error like others: the threads must all have ended before their caller goes on. */
static void *worker(void *argument) {
  struct work *w = argument;
  jmp_buf point, *outer = arena_on_failure(&point);
  if (setjmp(point))
    set_error(w, "generating code failed", "out of memory");
  else
    make_groups(w);
  foreign_leave();
  arena_on_failure(outer);
  return NULL;
}

/* Compiles what is missing. */
static bool make_missing(struct work *w, struct diags *d) {
  int helpers = (w->host->cores < w->nmissing ? w->host->cores : w->nmissing) - 1;
  if (helpers > MAX_WORKERS - 1) helpers = MAX_WORKERS - 1;
  while (helpers > 0 && !foreign_memory((size_t)helpers * GENERATOR_SPACE + GENERATOR, GENERATOR)) helpers--;
  if (!has_room(0, GENERATOR, d)) return false;
  foreign_prepare();
  pthread_t thread[MAX_WORKERS];
  int started = 0;
  while (started < helpers && thread_start(&thread[started], worker, w) == 0) started++;
  worker(w);
  for (int i = 0; i < started; i++) pthread_join(thread[i], NULL);
  if (w->error == NULL) return true;
  diag_error(d, LOC_NONE, "cpu: %s", w->error);
  free(w->error);
  return false;
}

/* ---- groups ---- */

static void add_group(struct work *w, const int *requests, int count, bool shared) {
  w->code[w->ngroups].requests = requests;
  w->code[w->ngroups].count = count;
  w->shared[w->ngroups++] = shared;
}

/* Those from `i` on that are of its shape and in no group yet, into `out`; they are in one then, unless it is alone. */
static int find_alike(const struct work *w, const struct str *shapes, int i, bool *grouped, int *out) {
  int count = 0;
  for (int k = i; k < w->n && shapes[i].len; k++)
    if (shapes[k].len == shapes[i].len && memcmp(shapes[k].data, shapes[i].data, shapes[i].len) == 0)
      out[count++] = k;
  for (int k = 0; k < count && count > 1; k++) grouped[out[k]] = true;
  return count;
}

static void make_all_groups(struct arena *a, struct work *w) {
  size_t n = (size_t)w->n;
  struct str *shapes = arena_new_array(a, n, struct str);
  bool *grouped = arena_new_array(a, n, bool);
  int *all = arena_new_array(a, n, int), *next = all, *others = arena_new_array(a, n, int), nothers = 0;
  w->shared = arena_new_array(a, n, bool);
  for (int i = 0; i < w->n; i++) shapes[i] = shape_of(a, w->requests[i].kernel);
  for (int i = 0; i < w->n; i++) {
    if (grouped[i]) continue;
    int count = find_alike(w, shapes, i, grouped, next);
    if (count > 1)
      add_group(w, next, count, true), next += count;
    else
      others[nothers++] = i;
  }
  int size = (nothers + GROUPS - 1) / GROUPS;
  if (size > MOST_GROUPED) size = MOST_GROUPED;
  for (int i = 0; i < nothers; i += size)
    add_group(w, others + i, size < nothers - i ? size : nothers - i, false);
}

/* ---- the cache ---- */

/* Everything that the code of a group depends on, as bytes. */
static struct str key_of(struct arena *a, const struct work *w, int group) {
  struct str key = str_make(a);
  str_printf(&key, "%s\n%s\n%s", EMITTER_STAMP, PASSES, w->host->identity);
  for (int i = 0; i < w->code[group].count; i++) {
    const struct request *r = request(w, group, i);
    str_printf(&key, "%s\n", r->symbol);
    kernel_bytes(&key, r->kernel);
  }
  return key;
}

static void read_cached(struct arena *a, struct work *w) {
  if (w->host->cache == NULL) return;
  w->keys = arena_new_array(a, (size_t)w->ngroups, struct str);
  for (int i = 0; i < w->ngroups; i++) {
    w->keys[i] = key_of(a, w, i);
    w->code[i].data = cache_read(a, w->host->cache, &w->keys[i], &w->code[i].size);
  }
}

int codegen(struct arena *a, struct host *host, const struct request *requests, int n, struct code *out,
            int *cached, struct diags *d) {
  struct work w = {.host = host, .requests = requests, .n = n, .code = out};
  make_all_groups(a, &w);
  w.missing = arena_new_array(a, (size_t)w.ngroups, int);
  *cached = 0;
  read_cached(a, &w);
  for (int i = 0; i < w.ngroups; i++) {
    if (out[i].data == NULL)
      w.missing[w.nmissing++] = i;
    else
      *cached += out[i].count;
  }
  return w.nmissing == 0 || (codegen_start(host, d) && make_missing(&w, d)) ? w.ngroups : -1;
}
