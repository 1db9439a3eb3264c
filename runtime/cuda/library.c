/* SPDX-License-Identifier: Apache-2.0 */
/* Entry points of the driver are asked for at the versions of syms.def, whose signatures a newer driver
 * keeps. */
#include "runtime/cuda/library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIN_NVRTC 11020 /* the first that makes code for the processor itself, not only PTX */
#define MIN_NCCL  21300 /* 2.13, the first that says what went wrong (ncclGetLastError) */
enum { MAX_MESSAGE = 512 };

struct cuda_library cuda;

struct library_entry {
  const char *name;
  int version; /* 0: found by its name */
  size_t offset;
};

static const struct library_entry driver_entries[] = {
#define DRIVER(result, name, version, arguments) {#name, version, offsetof(struct cuda_library, name)},
#include "runtime/cuda/syms.def"
};
static const struct library_entry nvrtc_entries[] = {
#define NVRTC(result, name, arguments) {#name, 0, offsetof(struct cuda_library, name)},
#include "runtime/cuda/syms.def"
};
static const struct library_entry blas_entries[] = {
#define BLAS(result, name, arguments) {#name, 0, offsetof(struct cuda_library, name)},
#include "runtime/cuda/syms.def"
};
static const struct library_entry nccl_entries[] = {
#define NCCL(result, name, arguments) {#name, 0, offsetof(struct cuda_library, name)},
#include "runtime/cuda/syms.def"
};
#define COUNT(array) (sizeof(array) / sizeof *(array))

static const char *const driver_names[] = {"libcuda.so.1", NULL};
static const char *const nvrtc_names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", NULL};
static const char *const blas_names[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11", NULL};
static const char *const nccl_names[] = {"libnccl.so.2", NULL};

static void set_entry(const struct library_entry *e, void *address) {
  memcpy((char *)&cuda + e->offset, &address, sizeof address);
}

/* Of the driver, once that is loaded; else 0. */
static _Atomic int driver_major;

/* Libraries need a driver that is as new as they are, but for the second number of the version. NCCL counts on its
 * own. */
static bool too_new(const char *name) {
  if (strncmp(name, "libnccl", 7) == 0) return false;
  int major = atoi(strstr(name, ".so.") + 4), driver = atomic_load(&driver_major);
  return driver && major > driver;
}

/* NULL, and why not, unless an earlier file was there but did not load: that says more than those that are not
 * there. */
static void *open_named(const char *name, const char **why_of, char *why) {
  const char *only = getenv("DGC_CUDA_PATH");
  bool given = only && *only;
  const char *const folders[] = {given ? only : "", given ? NULL : "/usr/local/cuda/lib64", NULL};
  char path[4096];
  for (int f = 0; folders[f]; f++) {
    snprintf(path, sizeof path, "%s%s%s", folders[f], folders[f][0] ? "/" : "", name);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library) return library;
    const char *text = dlerror();
    bool missing = !text || strstr(text, "No such file");
    if (why[0] == 0 || !missing) {
      snprintf(why, MAX_MESSAGE, "%s", text ? text : "unknown error");
      *why_of = name;
    }
    if (!missing) break;
  }
  return NULL;
}

/* The first that loads; those that are too new for the driver come last. "no WHAT: NAME cannot be loaded (why)". */
static void *open_library(const char *what, const char *const *names, char *why_not) {
  char why[MAX_MESSAGE] = "";
  const char *why_of = names[0];
  for (int newer = 0; newer < 2; newer++)
    for (int n = 0; names[n]; n++) {
      void *library = too_new(names[n]) == newer ? open_named(names[n], &why_of, why) : NULL;
      if (library) return library;
    }
  snprintf(why_not, MAX_MESSAGE, "no %s: %s cannot be loaded (%.300s)", what, why_of, why);
  return NULL;
}

static bool find_by_name(void *library, const char *what, const struct library_entry *entries, size_t count,
                         char *why_not) {
  for (size_t i = 0; i < count; i++) {
    void *address = dlsym(library, entries[i].name);
    set_entry(&entries[i], address);
    if (address) continue;
    snprintf(why_not, MAX_MESSAGE, "%s has no %s", what, entries[i].name);
    return false;
  }
  return true;
}

/* --- driver --- */

typedef CUresult ask_fn(const char *name, void **address, int version, uint64_t flags);
typedef CUresult ask_status_fn(const char *name, void **address, int version, uint64_t flags, int *status);

/* One of cuGetProcAddress's two forms: since CUDA 11.3, since 12.0. */
struct ask {
  ask_fn *old;
  ask_status_fn *new;
};

static bool find_entry(const struct ask *ask, const struct library_entry *e) {
  void *address = NULL;
  int status = 0;
  CUresult r = ask->new ? ask->new (e->name, &address, e->version, CU_GET_PROC_ADDRESS_DEFAULT, &status)
                        : ask->old(e->name, &address, e->version, CU_GET_PROC_ADDRESS_DEFAULT);
  if (r != CUDA_SUCCESS) address = NULL;
  set_entry(e, address);
  return address != NULL;
}

static bool find_driver_entries(void *library, char *why_not) {
  struct ask ask;
  void *new = dlsym(library, "cuGetProcAddress_v2"), *old = dlsym(library, "cuGetProcAddress");
  memcpy(&ask.new, &new, sizeof new);
  memcpy(&ask.old, &old, sizeof old);
  void *version = dlsym(library, "cuDriverGetVersion");
  memcpy(&cuda.cuDriverGetVersion, &version, sizeof version);
  if (!cuda.cuDriverGetVersion || cuda.cuDriverGetVersion(&cuda.driver_version) != CUDA_SUCCESS)
    cuda.driver_version = 0;
  atomic_store(&driver_major, cuda.driver_version / 1000);
  int major = cuda.driver_version / 1000, minor = cuda.driver_version % 1000 / 10;
  const char *missing = old || new ? NULL : "cuGetProcAddress";
  for (size_t i = 0; i < COUNT(driver_entries) && !missing; i++)
    if (!find_entry(&ask, &driver_entries[i])) missing = driver_entries[i].name;
  if (!missing) return true;
  snprintf(why_not, MAX_MESSAGE, "the CUDA driver is too old: it has no %s; it is one for CUDA %d.%d",
           missing, major, minor);
  return false;
}

static bool start_driver(char *why_not) {
  const char *call = "cuInit", *name = NULL, *text = NULL;
  int count = 0;
  CUresult r = cuda.cuInit(0);
  if (r == CUDA_SUCCESS) {
    call = "cuDeviceGetCount";
    r = cuda.cuDeviceGetCount(&count);
  }
  if (r == CUDA_SUCCESS && count > 0) return true;
  if (r == CUDA_SUCCESS) {
    snprintf(why_not, MAX_MESSAGE, "no CUDA device: the driver has none");
    return false;
  }
  if (cuda.cuGetErrorName(r, &name) != CUDA_SUCCESS) name = NULL;
  if (cuda.cuGetErrorString(r, &text) != CUDA_SUCCESS) text = NULL;
  snprintf(why_not, MAX_MESSAGE, "no CUDA device: %s: %s: %s", call, name ? name : "unknown error",
           text ? text : "?");
  return false;
}

static char no_driver[MAX_MESSAGE], no_nvrtc[MAX_MESSAGE], no_blas[MAX_MESSAGE],
    no_nccl[MAX_MESSAGE]; /* empty: loaded */

static void load_driver(void) {
  void *library = open_library("CUDA driver", driver_names, no_driver);
  if (!library || !find_driver_entries(library, no_driver)) return;
  cuda.simulated = dlsym(library, "dgc_simulated_cuda") != NULL;
  start_driver(no_driver);
}

const char *cuda_load_driver(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, load_driver);
  return no_driver[0] ? no_driver : NULL;
}

/* --- NVRTC --- */

static void load_nvrtc(void) {
  void *library = open_library("CUDA compiler", nvrtc_names, no_nvrtc);
  if (!library) return;
  void *address = dlsym(library, "nvrtcVersion");
  memcpy(&cuda.nvrtcVersion, &address, sizeof address);
  int major = 0, minor = 0;
  if (cuda.nvrtcVersion) cuda.nvrtcVersion(&major, &minor);
  cuda.nvrtc_version = 1000 * major + 10 * minor;
  if (cuda.nvrtc_version < MIN_NVRTC)
    snprintf(no_nvrtc, sizeof no_nvrtc, "NVRTC is too old: it is of CUDA %d.%d, and dgc needs %d.%d or newer",
             major, minor, MIN_NVRTC / 1000, MIN_NVRTC % 1000 / 10);
  else
    find_by_name(library, "NVRTC", nvrtc_entries, COUNT(nvrtc_entries), no_nvrtc);
}

const char *cuda_load_nvrtc(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, load_nvrtc);
  return no_nvrtc[0] ? no_nvrtc : NULL;
}

/* --- cuBLAS --- */

static void load_blas(void) {
  void *library = open_library("cuBLAS", blas_names, no_blas);
  if (library) find_by_name(library, "cuBLAS", blas_entries, COUNT(blas_entries), no_blas);
}

const char *cuda_load_blas(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, load_blas);
  return no_blas[0] ? no_blas : NULL;
}

/* --- NCCL --- */

/* 22809 is 2.28.9; up to 2.8 it was counted by thousands, 2805. */
static void load_nccl(void) {
  void *library = open_library("NCCL", nccl_names, no_nccl);
  if (!library || !find_by_name(library, "NCCL", nccl_entries, COUNT(nccl_entries), no_nccl)) return;
  int version = 0;
  if (cuda.ncclGetVersion(&version) != ncclSuccess) version = 0;
  int major = version < 10000 ? version / 1000 : version / 10000;
  int minor = version < 10000 ? version % 1000 / 100 : version % 10000 / 100;
  if (version < MIN_NCCL)
    snprintf(no_nccl, sizeof no_nccl, "NCCL is too old: it is %d.%d, and dgc needs %d.%d or newer", major,
             minor, MIN_NCCL / 10000, MIN_NCCL % 10000 / 100);
}

const char *cuda_load_nccl(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, load_nccl);
  return no_nccl[0] ? no_nccl : NULL;
}
