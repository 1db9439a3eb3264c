/* The library is looked for at $DGC_LLVM alone, or else where it was when dgc was built, then where the system
 * looks. */
#include "runtime/cpu/llvm.h"

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

static void *open_library(void) {
  const char *path = getenv("DGC_LLVM"), *built = DGC_LLVM_LIBRARY;
  if (path != NULL && path[0] != 0) return dlopen(path, RTLD_LAZY | RTLD_LOCAL);
  void *library = dlopen(built, RTLD_LAZY | RTLD_LOCAL);
  return library ? library : dlopen(strrchr(built, '/') + 1, RTLD_LAZY | RTLD_LOCAL);
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

static bool find_functions(void *library) {
  for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
    void *f = dlsym(library, functions[i].name);
    if (f == NULL) return false;
    memcpy((char *)&llvm + functions[i].offset, &f, sizeof f);
  }
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

static void load(void) {
  void *library = open_library();
  bool found = library != NULL && find_functions(library);
  if (found && !right_version()) return;
  loaded = found && initialize(library);
  if (!loaded) keep_error();
}

bool llvm_load(struct diags *d) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, load);
  if (!loaded)
    diag_error(d, LOC_NONE, "cpu: LLVM cannot be loaded: %s; --backend interp does without it", message);
  return loaded;
}
