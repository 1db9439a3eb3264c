/* SPDX-License-Identifier: Apache-2.0 */
/* Runs each case in a process that has loaded nothing yet, and looks at how it ends. */
#include "tests/simulated_cuda/harness.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct entry_points cu;

/* --- in the child --- */

void check_at(const char *file, int line, bool ok, const char *what) {
  if (ok) return;
  fprintf(stderr, "%s:%d: not so: %s\n", file, line, what);
  _exit(3);
}

void ok_at(const char *file, int line, int result, int expected, const char *what) {
  if (result == expected) return;
  fprintf(stderr, "%s:%d: %d, not %d: %s\n", file, line, result, expected, what);
  _exit(3);
}

static void *library(const char *folder, const char *name) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  void *l = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!l) {
    fprintf(stderr, "%s\n", dlerror());
    _exit(3);
  }
  return l;
}

typedef CUresult ask_fn(const char *, void **, int, uint64_t, int *);

static void set(size_t offset, void *address) { memcpy((char *)&cu + offset, &address, sizeof address); }

static void load(const char *folder) {
  void *driver = library(folder, "libcuda.so.1"), *nvrtc = library(folder, "libnvrtc.so.12");
  void *blas = library(folder, "libcublas.so.12"), *nccl = library(folder, "libnccl.so.2");
  void *address = dlsym(driver, "cuGetProcAddress_v2");
  check(dlsym(driver, "dgc_simulated_cuda") != NULL);
  ask_fn *ask;
  memcpy(&ask, &address, sizeof ask);
#define DRIVER(result, name, version, arguments) \
  if (ask(#name, &address, version, 0, NULL) == 0) set(offsetof(struct entry_points, name), address);
#define NVRTC(result, name, arguments) set(offsetof(struct entry_points, name), dlsym(nvrtc, #name));
#define BLAS(result, name, arguments)  set(offsetof(struct entry_points, name), dlsym(blas, #name));
#define NCCL(result, name, arguments)  set(offsetof(struct entry_points, name), dlsym(nccl, #name));
#include "runtime/cuda/syms.def"
}

struct gpu gpu_open(int device) {
  struct gpu g = {.device = device};
  ok(cu.cuInit(0));
  ok(cu.cuDevicePrimaryCtxRetain(&g.context, device));
  ok(cu.cuCtxSetCurrent(g.context));
  ok(cu.cuStreamCreate(&g.stream, CU_STREAM_NON_BLOCKING));
  return g;
}

void gpu_close(struct gpu *g) {
  ok(cu.cuStreamDestroy(g->stream));
  ok(cu.cuDevicePrimaryCtxRelease(g->device));
}

int gpu_compile(const char *text, const char *arch, const char *option, CUmodule *module, char *log) {
  nvrtcProgram program;
  size_t bytes;
  const char *const options[] = {arch, option};
  ok(cu.nvrtcCreateProgram(&program, text, "test.cu", 0, NULL, NULL));
  int r = cu.nvrtcCompileProgram(program, 2, options);
  ok(cu.nvrtcGetProgramLogSize(program, &bytes));
  if (log && bytes <= 4096) ok(cu.nvrtcGetProgramLog(program, log));
  if (r == 0 && module) {
    ok(cu.nvrtcGetCUBINSize(program, &bytes));
    char *code = malloc(bytes);
    ok(cu.nvrtcGetCUBIN(program, code));
    ok(cu.cuModuleLoadData(module, code));
    free(code);
  }
  ok(cu.nvrtcDestroyProgram(&program));
  return r;
}

CUmodule gpu_module(const char *text) {
  CUmodule module;
  char log[4096] = "";
  int r = gpu_compile(text, "--gpu-architecture=sm_90", "--fmad=false", &module, log);
  if (r) fprintf(stderr, "%s\n", log);
  ok(r);
  return module;
}

CUfunction gpu_function(CUmodule module, const char *name) {
  CUfunction f;
  ok(cu.cuModuleGetFunction(&f, module, name));
  return f;
}

CUdeviceptr gpu_alloc(size_t bytes) {
  CUdeviceptr p;
  ok(cu.cuMemAlloc(&p, bytes));
  return p;
}

void *gpu_host(size_t bytes) {
  void *p;
  ok(cu.cuMemHostAlloc(&p, bytes, CU_MEMHOSTALLOC_PORTABLE));
  return p;
}

/* --- in the parent --- */

static void set_environment(const char *settings) {
  char copy[256], name[300], *rest = copy;
  snprintf(copy, sizeof copy, "%s", settings ? settings : "");
  for (char *word; (word = strtok_r(rest, " ", &rest));) {
    char *value = strchr(word, '=');
    *value++ = 0;
    snprintf(name, sizeof name, "DGC_SIMULATED_%s", word);
    setenv(name, value, 1);
  }
}

static bool run_case(const char *folder, const struct test_case *c) {
  FILE *err = tmpfile();
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    dup2(fileno(err), 2);
    set_environment(c->settings);
    load(folder);
    c->run();
    exit(0);
  }
  int status;
  waitpid(child, &status, 0);
  static char said[1 << 16];
  rewind(err);
  said[fread(said, 1, sizeof said - 1, err)] = 0;
  fclose(err);
  int code = WIFEXITED(status) ? WEXITSTATUS(status) : DIES;
  bool good = c->status == DIES ? code != 0 && code != 3 : code == c->status;
  if (c->says && !strstr(said, c->says)) good = false;
  if (!good)
    printf("FAILED: %s (%s): exit status %d, not %d%s%s\n%s", c->name, c->settings ? c->settings : "", code,
           c->status, c->says ? "; expected: " : "", c->says ? c->says : "", said);
  return good;
}

int run_cases(int argc, char **argv, const struct test_case *cases, size_t count) {
  int passed = 0, failed = 0;
  for (size_t i = 0; i < count; i++) {
    if (argc > 2 && strcmp(argv[2], cases[i].name) != 0) continue;
    *(run_case(argv[1], &cases[i]) ? &passed : &failed) += 1;
  }
  printf("%d passed, %d failed\n", passed, failed);
  return failed > 0 || passed == 0;
}
