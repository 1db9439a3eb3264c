/* SPDX-License-Identifier: Apache-2.0 */
/* The library is looked for at $DGC_LLVM alone, or else where it was when dgc was built, then where the system
 * looks.
 *
 * Another LLVM may be in the process: TensorFlow has one, and loads it so that all libraries see it. libLLVM's
 * functions call each other directly, but its vtables and variables are looked for by name, among what all see first:
 * half of ours would be theirs. So ours is bound at once, before another may come; hidden from others; and bound to
 * itself first where another is there already. Only there, as then it has libc's malloc, whatever was preloaded. */
#include "runtime/cpu/llvm.h"

#include "runtime/cpu/foreign.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define TEXT(x)  #x
#define VALUE(x) TEXT(x)

struct llvm llvm;
static bool loaded;
static char message[512]; /* why not */

static const struct {
  const char *name;
  size_t offset; /* in struct llvm */
} functions[] = {
#define LLVM(name) {"LLVM" #name, offsetof(struct llvm, name)},
#include "runtime/cpu/llvm.def"
#undef LLVM
};

/* Of this machine, in the order in which they are called. */
static const char *const initializers[] = {VALUE(LLVM_NATIVE_TARGETINFO), VALUE(LLVM_NATIVE_TARGET),
                                           VALUE(LLVM_NATIVE_TARGETMC), VALUE(LLVM_NATIVE_ASMPRINTER)};

static void keep_error(void) {
  const char *text = dlerror();
  snprintf(message, sizeof message, "%s", text ? text : "unknown error");
}

/* Whether all libraries see an LLVM, or a part of one: something of each of its layers is looked for. */
static bool another_is_seen(void) {
  static const char *const names[] = {
      "_ZTVN4llvm11raw_ostreamE",   "_ZTVN4llvm2cl6OptionE",     "_ZN4llvm13ErrorInfoBase2IDE",
      "_ZTVN4llvm13ErrorInfoBaseE", "_ZTVN4llvm12MemoryBufferE", "_ZN4llvm11LLVMContextC1Ev",
      "_ZTVN4llvm4PassE",           "_ZTVN4llvm12FunctionPassE", "_ZTVN4llvm13TargetMachineE",
      "_ZTVN4llvm10MCStreamerE",    "_ZTVN4llvm9MCAsmInfoE",     "LLVMContextCreate",
  };
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (dlsym(RTLD_DEFAULT, names[i]) != NULL) return true;
  return false;
}

/* Whether somebody else had it in this process before: then its options are not ours to set. */
static bool is_shared;

static void *open_path(const char *path, int flags) {
  void *library = dlopen(path, flags | RTLD_NOLOAD);
  is_shared = library != NULL;
  return library ? library : dlopen(path, flags);
}

static void *open_library(void) {
  const char *path = getenv("DGC_LLVM"), *built = DGC_LLVM_LIBRARY;
  int flags = RTLD_NOW | RTLD_LOCAL;
#ifdef RTLD_DEEPBIND
  if (another_is_seen()) flags |= RTLD_DEEPBIND;
#endif
  if (path != NULL && path[0] != 0) return open_path(path, flags);
  void *library = open_path(built, flags);
  return library ? library : open_path(strrchr(built, '/') + 1, flags);
}

static bool right_version(void) {
  unsigned major = 0, minor = 0, patch = 0;
  Dl_info where = {0};
  void *f;
  memcpy(&f, &llvm.GetVersion, sizeof f);
  llvm.GetVersion(&major, &minor, &patch);
  if (major == LLVM_VERSION_MAJOR) return true;
  snprintf(message, sizeof message, "%s: version %u.%u, not %d", dladdr(f, &where) ? where.dli_fname : "it",
           major, minor, LLVM_VERSION_MAJOR);
  return false;
}

/* What LLVM does, by the free that fits the malloc in libc's strdup, which LLVM's own may not. */
static void dispose_message(char *text) { free(text); }

static bool find_functions(void *library) {
  for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
    void *f = dlsym(library, functions[i].name);
    if (f == NULL) return false;
    memcpy((char *)&llvm + functions[i].offset, &f, sizeof f);
  }
  llvm.DisposeMessage = dispose_message;
  return true;
}

static bool initialize(void *library) {
  for (size_t i = 0; i < sizeof initializers / sizeof initializers[0]; i++) {
    void *f = dlsym(library, initializers[i]);
    void (*call)(void);
    if (f == NULL) return false;
    memcpy(&call, &f, sizeof call);
    call();
  }
  return true;
}

static void no_memory(void *unused, const char *reason, bool crash) {
  (void)unused, (void)reason, (void)crash;
  foreign_no_memory();
}

/* llvm::install_bad_alloc_error_handler, which LLVM's C interface lacks; without it, LLVM ends the process. */
static void handle_no_memory(void *library) {
  void *f = dlsym(library, "_ZN4llvm31install_bad_alloc_error_handlerEPFvPvPKcbES0_");
  void (*install)(void (*)(void *, const char *, bool), void *);
  if (f == NULL) return;
  memcpy(&install, &f, sizeof f);
  install(no_memory, NULL);
}

/* Passes that take a seventh of the time of generating code, and make no loop of a kernel on x86-64 shorter. */
static const char *const options[] = {"dgc",
#ifdef __x86_64__
                                      "-disable-lsr",
                                      "-enable-misched=false",
                                      "-disable-x86-domain-reassignment",
                                      "-disable-constant-hoisting",
                                      "-disable-early-ifcvt",
                                      "-disable-early-taildup",
                                      "-disable-tail-duplicate"
#endif
};

/* llvm::cl::ParseCommandLineOptions, as that of LLVM's C interface ends the process where an option is unknown; where
 * it is not to be had, code takes longer to make. It must be called once: it undoes what it was told before. */
static void set_options(void *library) {
  struct string_ref {
    const char *data;
    size_t length;
  };
  typedef bool parse_fn(int, const char *const *, struct string_ref, void *errors, const char *, bool);
  typedef void *nulls_fn(void);
  const char *name = "_ZN4llvm2cl23ParseCommandLineOptionsEiPKPKcNS_9StringRefEPNS_11raw_ostreamES2_b";
  void *found_parse = dlsym(library, name), *found_nulls = dlsym(library, "_ZN4llvm5nullsEv");
  parse_fn *parse;
  nulls_fn *nulls;
  if (found_parse == NULL || found_nulls == NULL) return;
  memcpy(&parse, &found_parse, sizeof parse);
  memcpy(&nulls, &found_nulls, sizeof nulls);
  parse(sizeof options / sizeof *options, options, (struct string_ref){"", 0}, nulls(), "DGC_LLVM_OPTIONS",
        false);
}

static void load(void) {
  foreign_load(true);
  void *library = open_library();
  foreign_load(false);
  bool found = library != NULL && find_functions(library);
  if (found && !right_version()) return;
  loaded = found && initialize(library);
  if (loaded) {
    handle_no_memory(library);
    if (!is_shared) set_options(library);
  } else {
    keep_error();
  }
}

bool llvm_load(struct diags *d) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, load);
  if (!loaded)
    diag_error(d, LOC_NONE, "cpu: LLVM cannot be loaded: %s; --backend interp does without it", message);
  return loaded;
}
