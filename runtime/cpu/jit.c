/* Modules of kernels, a cheap pass pipeline, ORC. */
#include "runtime/cpu/jit.h"

#include "runtime/cpu/emit.h"

#include <inttypes.h>
#include <llvm-c/Analysis.h>
#include <llvm-c/Error.h>
#include <llvm-c/LLJIT.h>
#include <llvm-c/Orc.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The emitter hoists and merges already; what is left is in single instructions. */
#define PASSES "early-cse,instcombine<no-verify-fixpoint>"

struct entry {
  struct kernel kernel; /* a copy that lives as long as the JIT */
  const char *symbol;
  kernel_fn *fn;
  struct entry *next; /* of its bucket */
};

#define BUCKETS 1024

struct cpu_jit {
  struct arena *arena;
  pthread_mutex_t lock;
  LLVMTargetMachineRef machine;
  LLVMOrcLLJITRef orc;
  struct entry *bucket[BUCKETS];
  int64_t compiled, reused;
  double seconds;
};

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool llvm_failed(struct diags *d, const char *what, LLVMErrorRef error) {
  if (error == NULL) return false;
  char *message = LLVMGetErrorMessage(error);
  diag_error(d, LOC_NONE, "cpu: %s failed: %s", what, message);
  LLVMDisposeErrorMessage(message);
  return true;
}

static void initialize_target(void) {
  LLVMInitializeNativeTarget();
  LLVMInitializeNativeAsmPrinter();
}

static LLVMTargetMachineRef host_machine(struct diags *d) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, initialize_target);
  char *triple = LLVMGetDefaultTargetTriple(), *cpu = LLVMGetHostCPUName();
  char *features = LLVMGetHostCPUFeatures(), *message = NULL;
  LLVMTargetRef target = NULL;
  LLVMTargetMachineRef machine = NULL;
  if (LLVMGetTargetFromTriple(triple, &target, &message)) {
    diag_error(d, LOC_NONE, "cpu: no code generator for %s: %s", triple, message);
    LLVMDisposeMessage(message);
  } else {
    machine = LLVMCreateTargetMachine(target, triple, cpu, features, LLVMCodeGenLevelDefault, LLVMRelocPIC,
                                      LLVMCodeModelSmall);
    if (machine == NULL) diag_error(d, LOC_NONE, "cpu: no code generator for %s (%s)", triple, cpu);
  }
  LLVMDisposeMessage(triple);
  LLVMDisposeMessage(cpu);
  LLVMDisposeMessage(features);
  return machine;
}

struct cpu_jit *cpu_jit_create(struct diags *d) {
  LLVMTargetMachineRef machine = host_machine(d);
  if (machine == NULL) return NULL;
  LLVMOrcLLJITRef orc;
  if (llvm_failed(d, "starting the JIT", LLVMOrcCreateLLJIT(&orc, NULL))) {
    LLVMDisposeTargetMachine(machine);
    return NULL;
  }
  struct arena *a = arena_create();
  struct cpu_jit *jit = arena_new(a, struct cpu_jit);
  jit->arena = a;
  jit->machine = machine;
  jit->orc = orc;
  pthread_mutex_init(&jit->lock, NULL);
  return jit;
}

void cpu_jit_destroy(struct cpu_jit *jit) {
  if (jit == NULL) return;
  LLVMConsumeError(LLVMOrcDisposeLLJIT(jit->orc));
  LLVMDisposeTargetMachine(jit->machine);
  pthread_mutex_destroy(&jit->lock);
  arena_destroy(jit->arena);
}

/* ---- one module ---- */

static void emit_open(struct emit *e, const char *name, bool discard_names) {
  e->context = LLVMContextCreate();
  LLVMContextSetDiscardValueNames(e->context, discard_names);
  e->module = LLVMModuleCreateWithNameInContext(name, e->context);
  e->builder = LLVMCreateBuilderInContext(e->context);
}

static void emit_close(struct emit *e) {
  LLVMDisposeBuilder(e->builder);
  LLVMDisposeModule(e->module);
  LLVMContextDispose(e->context);
}

static bool optimize(struct cpu_jit *jit, struct emit *e, struct diags *d) {
  LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
  LLVMErrorRef error = LLVMRunPasses(e->module, PASSES, jit->machine, options);
  LLVMDisposePassBuilderOptions(options);
  return !llvm_failed(d, "optimizing", error);
}

static bool verify(struct emit *e, struct diags *d) {
#ifdef DGC_DEBUG
  char *message = NULL;
  bool broken = LLVMVerifyModule(e->module, LLVMReturnStatusAction, &message);
  if (broken) diag_error(d, LOC_NONE, "cpu: invalid code: %s", message);
  LLVMDisposeMessage(message);
  return !broken;
#else
  (void)e, (void)d;
  return true;
#endif
}

/* The object code of all entries in `fresh`, or NULL. */
static LLVMMemoryBufferRef compile_object(struct cpu_jit *jit, struct entry *const *fresh, int n,
                                          struct diags *d) {
  struct emit e;
  struct arena *scratch = arena_create();
  LLVMMemoryBufferRef object = NULL;
  char *triple = LLVMGetTargetMachineTriple(jit->machine), *message = NULL;
  LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(jit->machine);
  emit_open(&e, "kernels", true);
  LLVMSetTarget(e.module, triple);
  LLVMSetModuleDataLayout(e.module, layout);
  for (int i = 0; i < n; i++) {
    emit_kernel(&e, &fresh[i]->kernel, fresh[i]->symbol, scratch);
    arena_reset(scratch);
  }
  if (verify(&e, d) && optimize(jit, &e, d) &&
      LLVMTargetMachineEmitToMemoryBuffer(jit->machine, e.module, LLVMObjectFile, &message, &object)) {
    diag_error(d, LOC_NONE, "cpu: generating code failed: %s", message);
    LLVMDisposeMessage(message);
    object = NULL;
  }
  emit_close(&e);
  LLVMDisposeTargetData(layout);
  LLVMDisposeMessage(triple);
  arena_destroy(scratch);
  return object;
}

static bool link_object(struct cpu_jit *jit, LLVMMemoryBufferRef object, struct entry **fresh, int n,
                        struct diags *d) {
  LLVMOrcJITDylibRef library = LLVMOrcLLJITGetMainJITDylib(jit->orc);
  if (llvm_failed(d, "loading code", LLVMOrcLLJITAddObjectFile(jit->orc, library, object))) return false;
  for (int i = 0; i < n; i++) {
    LLVMOrcExecutorAddress address = 0;
    if (llvm_failed(d, "linking code", LLVMOrcLLJITLookup(jit->orc, &address, fresh[i]->symbol))) return false;
    fresh[i]->fn = (kernel_fn *)(uintptr_t)address;
  }
  return true;
}

/* ---- the table of kernels ---- */

static struct sprog sprog_copy(struct arena *a, const struct sprog *p) {
  struct sprog copy = {.arena = a, .count = p->count, .cap = p->count};
  copy.inst = arena_copy(a, p->inst, (size_t)p->count * sizeof *p->inst);
  return copy;
}

/* The entry of a kernel, made if need be; `*collisions` counts others with the same hash. */
static struct entry *entry_of(struct cpu_jit *jit, const struct kernel *k) {
  struct entry **slot = &jit->bucket[k->hash % BUCKETS];
  int same_hash = 0;
  for (; *slot != NULL; slot = &(*slot)->next) {
    if ((*slot)->kernel.hash != k->hash) continue;
    if (kernel_equal(&(*slot)->kernel, k)) return *slot;
    same_hash++;
  }
  struct entry *e = *slot = arena_new(jit->arena, struct entry);
  e->kernel = *k;
  e->kernel.body = sprog_copy(jit->arena, &k->body);
  if (k->kind == KERNEL_REDUCE) e->kernel.epilogue = sprog_copy(jit->arena, &k->epilogue);
  e->kernel.name = NULL;
  e->symbol = arena_printf(jit->arena, "kernel_%016" PRIx64 "_%d", k->hash, same_hash);
  return e;
}

/* A failed compilation leaves entries without a function: they are tried again by the next call, under a new
 * symbol, as the linker may know the old one. */
static bool compile_fresh(struct cpu_jit *jit, struct entry **fresh, int n, struct diags *d) {
  double start = now();
  LLVMMemoryBufferRef object = compile_object(jit, fresh, n, d);
  bool ok = object != NULL && link_object(jit, object, fresh, n, d);
  for (int i = 0; !ok && i < n; i++) {
    fresh[i]->fn = NULL;
    fresh[i]->symbol = arena_printf(jit->arena, "%s_again", fresh[i]->symbol);
  }
  jit->seconds += now() - start;
  if (ok) jit->compiled += n;
  return ok;
}

bool cpu_jit_compile(struct cpu_jit *jit, const struct kernel *const *kernels, int n, kernel_fn **out,
                     struct diags *d) {
  struct arena *scratch = arena_create();
  struct entry **entry = arena_new_array(scratch, (size_t)n, struct entry *);
  struct entry **fresh = arena_new_array(scratch, (size_t)n, struct entry *);
  int nfresh = 0;
  pthread_mutex_lock(&jit->lock);
  for (int i = 0; i < n; i++) {
    entry[i] = entry_of(jit, kernels[i]);
    bool known = entry[i]->fn != NULL;
    for (int f = 0; f < nfresh && !known; f++) known = fresh[f] == entry[i];
    if (known) jit->reused++;
    else fresh[nfresh++] = entry[i];
  }
  bool ok = nfresh == 0 || compile_fresh(jit, fresh, nfresh, d);
  for (int i = 0; i < n; i++) out[i] = entry[i]->fn;
  pthread_mutex_unlock(&jit->lock);
  arena_destroy(scratch);
  return ok;
}

void cpu_jit_stats(struct cpu_jit *jit, int64_t *compiled, int64_t *reused, double *seconds) {
  pthread_mutex_lock(&jit->lock);
  if (compiled) *compiled = jit->compiled;
  if (reused) *reused = jit->reused;
  if (seconds) *seconds = jit->seconds;
  pthread_mutex_unlock(&jit->lock);
}

const char *cpu_kernel_llvm(struct arena *a, const struct kernel *k, const char *triple) {
  struct emit e;
  struct arena *scratch = arena_create();
  const char *name = k->name != NULL && k->name[0] != 0 ? k->name : "kernel";
  emit_open(&e, name, false);
  if (triple != NULL) LLVMSetTarget(e.module, triple);
  emit_kernel(&e, k, name, scratch);
  char *text = LLVMPrintModuleToString(e.module);
  const char *copy = arena_strdup(a, text);
  LLVMDisposeMessage(text);
  emit_close(&e);
  arena_destroy(scratch);
  return copy;
}
