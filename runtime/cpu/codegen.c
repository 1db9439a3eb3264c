/* Requests are cut into groups of a fixed size, one module each, so that neither the objects nor their names in the
 * cache depend on the number of cores. The key of an object is the module itself before any pass, with everything
 * else that shapes the code: a changed emitter finds no old code. */
#include "runtime/cpu/codegen.h"

#include "runtime/cpu/cache.h"
#include "runtime/cpu/emit.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* The emitter hoists and merges already; what is left is in single instructions. */
#define PASSES      "early-cse,instcombine<no-verify-fixpoint>"
#define GROUP       8
#define MAX_WORKERS 8

/* What the workers share. */
struct work {
  const struct host *host;
  const struct request *requests;
  int n;
  LLVMMemoryBufferRef *objects; /* one per group */
  atomic_int next, cached;
  _Atomic(char *) error; /* the first one stays */
};

static int count_cores(void) {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
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

bool codegen_host(struct arena *a, struct host *host, struct diags *d) {
  if (!llvm_load(d)) return false;
  host->triple = take_text(a, llvm.GetDefaultTargetTriple());
  host->cpu = take_text(a, llvm.GetHostCPUName());
  host->features = take_text(a, llvm.GetHostCPUFeatures());
  host->cache = cache_folder(a);
  host->cores = count_cores();
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

static LLVMMemoryBufferRef compile(struct work *w, LLVMModuleRef module, LLVMTargetMachineRef machine) {
  LLVMMemoryBufferRef object = NULL;
  char *message = NULL;
  if (!verify(w, module) || !optimize(w, module, machine)) return NULL;
  if (llvm.TargetMachineEmitToMemoryBuffer(machine, module, LLVMObjectFile, &message, &object)) {
    set_error(w, "generating code failed", message);
    llvm.DisposeMessage(message);
    return NULL;
  }
  return object;
}

/* Everything that the code depends on, as bytes. */
static struct str key_of(struct arena *a, const struct host *host, LLVMModuleRef module) {
  unsigned major, minor, patch;
  llvm.GetVersion(&major, &minor, &patch);
  struct str key = str_make(a);
  str_printf(&key, "LLVM %u.%u.%u %s\n%s\n%s\n%s\n", major, minor, patch, PASSES, host->triple, host->cpu,
             host->features);
  LLVMMemoryBufferRef bitcode = llvm.WriteBitcodeToMemoryBuffer(module);
  str_putn(&key, llvm.GetBufferStart(bitcode), llvm.GetBufferSize(bitcode));
  llvm.DisposeMemoryBuffer(bitcode);
  return key;
}

static void make_group(struct work *w, int group, LLVMTargetMachineRef machine, struct arena *scratch) {
  int first = group * GROUP, end = first + GROUP < w->n ? first + GROUP : w->n;
  struct emit e = {.context = llvm.ContextCreate()};
  LLVMTargetDataRef layout = llvm.CreateTargetDataLayout(machine);
  llvm.ContextSetDiscardValueNames(e.context, 1);
  e.module = llvm.ModuleCreateWithNameInContext("kernels", e.context);
  e.builder = llvm.CreateBuilderInContext(e.context);
  llvm.SetTarget(e.module, w->host->triple);
  llvm.SetModuleDataLayout(e.module, layout);
  for (int i = first; i < end; i++) emit_kernel(&e, w->requests[i].kernel, w->requests[i].symbol, scratch);
  struct str key = {0};
  if (w->host->cache) {
    key = key_of(scratch, w->host, e.module);
    w->objects[group] = cache_read(w->host->cache, &key);
  }
  if (w->objects[group]) {
    w->cached += end - first;
  } else {
    w->objects[group] = compile(w, e.module, machine);
    if (w->objects[group] && w->host->cache) cache_write(w->host->cache, &key, w->objects[group]);
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
  LLVMTargetMachineRef machine = create_machine(w->host, &message);
  if (machine == NULL) {
    set_error(w, "no code generator", message ? message : w->host->triple);
    llvm.DisposeMessage(message);
  }
  int groups = (w->n + GROUP - 1) / GROUP, group;
  while (machine != NULL && w->error == NULL && (group = w->next++) < groups) {
    make_group(w, group, machine, scratch);
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
  arena_on_failure(outer);
  return NULL;
}

int codegen(const struct host *host, const struct request *requests, int n, LLVMMemoryBufferRef *objects,
            int *cached, struct diags *d) {
  struct work w = {.host = host, .requests = requests, .n = n, .objects = objects};
  int groups = (n + GROUP - 1) / GROUP;
  int helpers = (host->cores < groups ? host->cores : groups) - 1;
  if (helpers > MAX_WORKERS - 1) helpers = MAX_WORKERS - 1;
  pthread_t thread[MAX_WORKERS];
  int started = 0;
  for (int i = 0; i < groups; i++) objects[i] = NULL;
  while (started < helpers && pthread_create(&thread[started], NULL, worker, &w) == 0) started++;
  worker(&w);
  for (int i = 0; i < started; i++) pthread_join(thread[i], NULL);
  *cached = w.cached;
  if (w.error == NULL) return groups;
  diag_error(d, LOC_NONE, "cpu: %s", w.error);
  free(w.error);
  for (int i = 0; i < groups; i++)
    if (objects[i]) llvm.DisposeMemoryBuffer(objects[i]);
  return -1;
}
