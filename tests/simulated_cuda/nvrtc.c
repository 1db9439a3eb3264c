/* SPDX-License-Identifier: Apache-2.0 */
/* libnvrtc: programs are rewritten into C and compiled by the host's compiler. The shared object is the cubin.
 * Options are checked like NVRTC does; those whose effect is not simulated are refused. */
#include "runtime/cuda/abi.h"
#include "tests/simulated_cuda/common.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NVRTC_ERROR_OUT_OF_MEMORY = 1, NVRTC_ERROR_INVALID_INPUT = 3, NVRTC_ERROR_INVALID_PROGRAM = 4 };

#define NVRTC(result, name, arguments) EXPORT result name arguments;
#include "runtime/cuda/syms.def"

struct _nvrtcProgram {
  struct object object;
  char *source, *name, *log, *ptx;
  char *cubin;
  size_t cubin_bytes;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static nvrtcResult enter(const char *name) {
  pthread_mutex_lock(&lock);
  if (!sim_fails(name)) return NVRTC_SUCCESS;
  pthread_mutex_unlock(&lock);
  return strcmp(name, "nvrtcCompileProgram") == 0 ? NVRTC_ERROR_COMPILATION : NVRTC_ERROR_OUT_OF_MEMORY;
}

static nvrtcResult leave(nvrtcResult r) {
  pthread_mutex_unlock(&lock);
  return r;
}

nvrtcResult nvrtcVersion(int *major, int *minor) {
  int version = sim_version("NVRTC", "12.4");
  *major = version / 1000;
  *minor = version % 1000 / 10;
  return NVRTC_SUCCESS;
}

const char *nvrtcGetErrorString(nvrtcResult result) {
  switch (result) {
  case NVRTC_SUCCESS: return "NVRTC_SUCCESS";
  case NVRTC_ERROR_OUT_OF_MEMORY: return "NVRTC_ERROR_OUT_OF_MEMORY";
  case NVRTC_ERROR_INVALID_INPUT: return "NVRTC_ERROR_INVALID_INPUT";
  case NVRTC_ERROR_INVALID_PROGRAM: return "NVRTC_ERROR_INVALID_PROGRAM";
  case NVRTC_ERROR_INVALID_OPTION: return "NVRTC_ERROR_INVALID_OPTION";
  case NVRTC_ERROR_COMPILATION: return "NVRTC_ERROR_COMPILATION";
  default: return "NVRTC_ERROR unknown";
  }
}

nvrtcResult nvrtcCreateProgram(nvrtcProgram *program, const char *source, const char *name, int nheaders,
                               const char *const *headers, const char *const *include_names) {
  nvrtcResult r = enter(__func__);
  if (r) return r;
  if (!program || !source || nheaders || headers || include_names) return leave(NVRTC_ERROR_INVALID_INPUT);
  struct _nvrtcProgram *p = calloc(1, sizeof *p);
  p->source = strdup(source);
  p->name = strdup(name ? name : "default_program");
  object_begin(&p->object, kind_program, -1);
  *program = p;
  return leave(NVRTC_SUCCESS);
}

static void clear(struct _nvrtcProgram *p) {
  free(p->log);
  free(p->ptx);
  free(p->cubin);
  p->log = p->ptx = p->cubin = NULL;
  p->cubin_bytes = 0;
}

nvrtcResult nvrtcDestroyProgram(nvrtcProgram *program) {
  nvrtcResult r = enter(__func__);
  if (r) return r;
  struct _nvrtcProgram *p = program ? *program : NULL;
  if (!object_is(&p->object, kind_program)) return leave(NVRTC_ERROR_INVALID_PROGRAM);
  clear(p);
  free(p->source);
  free(p->name);
  object_end(&p->object);
  object_bury(&p->object);
  *program = NULL;
  return leave(NVRTC_SUCCESS);
}

/* --- options --- */

struct options {
  int arch;
  bool contract, code; /* code: sm_, not compute_ */
};

static const struct {
  int arch, since, until; /* NVRTC's versions */
} architectures[] = {
    {50, 0, 13000},      {52, 0, 13000},      {53, 0, 13000},      {60, 0, 13000},      {61, 0, 13000},
    {62, 0, 13000},      {70, 0, 13000},      {72, 0, 13000},      {75, 0, 99999},      {80, 11000, 99999},
    {86, 11010, 99999},  {87, 11040, 99999},  {89, 11080, 99999},  {90, 11080, 99999},  {100, 12080, 99999},
    {101, 12080, 13000}, {103, 12090, 99999}, {110, 13000, 99999}, {120, 12080, 99999}, {121, 12090, 99999},
};

/* Those of this version, ascending. */
static int list_architectures(int *out) {
  int version = sim_version("NVRTC", "12.4"), count = 0;
  for (size_t i = 0; i < sizeof architectures / sizeof *architectures; i++) {
    if (version < architectures[i].since || version >= architectures[i].until) continue;
    if (out) out[count] = architectures[i].arch;
    count++;
  }
  return count;
}

static bool known_arch(int arch) {
  int known[sizeof architectures / sizeof *architectures], count = list_architectures(known);
  for (int i = 0; i < count; i++)
    if (known[i] == arch) return true;
  return false;
}

nvrtcResult nvrtcGetNumSupportedArchs(int *count) {
  nvrtcResult r = enter(__func__);
  if (r) return r;
  *count = list_architectures(NULL);
  return leave(NVRTC_SUCCESS);
}

nvrtcResult nvrtcGetSupportedArchs(int *archs) {
  nvrtcResult r = enter(__func__);
  if (r) return r;
  list_architectures(archs);
  return leave(NVRTC_SUCCESS);
}

static bool read_option(struct options *o, const char *option) {
  static const char without_effect[] =
      "--ftz=false,-ftz=false,--prec-div=true,-prec-div=true,--prec-sqrt=true,-prec-sqrt=true,"
      "--std=c++14,-std=c++14,--std=c++17,-std=c++17,--std=c++20,-std=c++20,"
      "-lineinfo,--generate-line-info,--restrict,-restrict,-w,--disable-warnings";
  if (sim_listed(without_effect, option)) return true;
  char rest[16];
  if (sscanf(option, "--fmad=%15s", rest) == 1 || sscanf(option, "-fmad=%15s", rest) == 1) {
    o->contract = strcmp(rest, "true") == 0;
    return o->contract || strcmp(rest, "false") == 0;
  }
  char kind[16];
  int end = 0;
  if (sscanf(option, "--gpu-architecture=%15[a-z]_%d%n", kind, &o->arch, &end) == 2 ||
      sscanf(option, "-arch=%15[a-z]_%d%n", kind, &o->arch, &end) == 2) {
    o->code = strcmp(kind, "sm") == 0;
    return option[end] == 0 && (o->code || strcmp(kind, "compute") == 0) && known_arch(o->arch);
  }
  return false;
}

/* "NAME:4:12: error" as NVRTC says it: "NAME(4): error". */
static char *translate_log(const char *name, char *log) {
  size_t n = strlen(name);
  char *out = malloc(strlen(log) + 1), *to = out;
  for (const char *p = log; *p;) {
    int line, end = 0;
    if ((p == log || p[-1] == '\n') && strncmp(p, name, n) == 0 &&
        sscanf(p + n, ":%d:%*d:%n", &line, &end) == 1 && end)
      to += sprintf(to, "%s(%d):", name, line), p += n + (size_t)end;
    else
      *to++ = *p++;
  }
  *to = 0;
  free(log);
  return out;
}

static nvrtcResult compile(struct _nvrtcProgram *p, int noptions, const char *const *options) {
  struct options o = {.arch = 52, .contract = true};
  clear(p);
  for (int i = 0; i < noptions; i++)
    if (!read_option(&o, options[i])) {
      if (asprintf(&p->log, "nvrtc: error: invalid option, or one that is not simulated: %s\n", options[i]) <
          0)
        p->log = NULL;
      return NVRTC_ERROR_INVALID_OPTION;
    }
  char *text = sim_rewrite(p->source, p->name, &p->log);
  if (!text) return NVRTC_ERROR_COMPILATION;
  size_t bytes;
  void *object = sim_compile(text, o.contract, &bytes, &p->log);
  p->log = translate_log(p->name, p->log);
  if (object) {
    if (asprintf(&p->ptx, SIM_PTX "%d\n%s", o.arch, text) < 0) p->ptx = NULL;
    if (o.code) {
      struct cubin head = {SIM_CUBIN, (uint32_t)o.arch, (uint32_t)bytes};
      p->cubin_bytes = sizeof head + bytes;
      p->cubin = malloc(p->cubin_bytes);
      memcpy(p->cubin, &head, sizeof head);
      memcpy(p->cubin + sizeof head, object, bytes);
    }
  }
  free(text);
  free(object);
  return object ? NVRTC_SUCCESS : NVRTC_ERROR_COMPILATION;
}

nvrtcResult nvrtcCompileProgram(nvrtcProgram p, int noptions, const char *const *options) {
  nvrtcResult r = enter(__func__);
  if (r) return r;
  if (!object_is(&p->object, kind_program)) return leave(NVRTC_ERROR_INVALID_PROGRAM);
  return leave(compile(p, noptions, options));
}

/* --- results --- */

static nvrtcResult give(const char *name, nvrtcProgram p, size_t *size, char *out, bool cubin, bool log) {
  nvrtcResult r = enter(name);
  if (r) return r;
  if (!object_is(&p->object, kind_program)) return leave(NVRTC_ERROR_INVALID_PROGRAM);
  const char *data = cubin ? p->cubin : log ? (p->log ? p->log : "") : p->ptx;
  size_t bytes = cubin ? p->cubin_bytes : data ? strlen(data) + 1 : 0;
  if (!cubin && !data) return leave(NVRTC_ERROR_INVALID_PROGRAM);
  if (size) *size = bytes;
  if (out && bytes) memcpy(out, data, bytes);
  return leave(NVRTC_SUCCESS);
}

nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram p, size_t *size) {
  return give(__func__, p, size, NULL, false, true);
}
nvrtcResult nvrtcGetProgramLog(nvrtcProgram p, char *log) {
  return give(__func__, p, NULL, log, false, true);
}
nvrtcResult nvrtcGetCUBINSize(nvrtcProgram p, size_t *size) {
  return give(__func__, p, size, NULL, true, false);
}
nvrtcResult nvrtcGetCUBIN(nvrtcProgram p, char *code) { return give(__func__, p, NULL, code, true, false); }
nvrtcResult nvrtcGetPTXSize(nvrtcProgram p, size_t *size) {
  return give(__func__, p, size, NULL, false, false);
}
nvrtcResult nvrtcGetPTX(nvrtcProgram p, char *code) { return give(__func__, p, NULL, code, false, false); }
