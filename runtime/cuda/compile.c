/* SPDX-License-Identifier: Apache-2.0 */
/* Programs into code, by NVRTC or from the cache on disk.
 *
 * The key of an image is all that shapes it: the compiler, which is its version and what its file is, the
 * options and the text. */
#include "base/clock.h"
#include "runtime/cache.h"
#include "runtime/cuda/library.h"
#include "runtime/cuda/program.h"

#include <stdlib.h>
#include <string.h>

#define FILE_NAME "kernels.cu"
enum { MAX_LOG = 2000 };

/* Rounding is IEEE's, subnormal numbers are numbers, nothing is contracted. */
static const char *const fixed_options[] = {"--fmad=false", "--ftz=false", "--prec-div=true",
                                            "--prec-sqrt=true", "--std=c++17"};
enum { FIXED_OPTIONS = sizeof fixed_options / sizeof *fixed_options };

/* ---- architectures ---- */

static bool read_arch(const char *arch, int *number) {
  *number = 0;
  if (strncmp(arch, "sm_", 3) != 0 || arch[3] == 0) return false;
  for (const char *c = arch + 3; *c; c++) {
    if (*c < '0' || *c > '9' || *number > 9999) return false;
    *number = *number * 10 + *c - '0';
  }
  return true;
}

static bool nvrtc_check(const char *call, nvrtcResult r, struct diags *d) {
  if (r != NVRTC_SUCCESS) diag_error(d, LOC_NONE, "%s: %s", call, cuda.nvrtcGetErrorString(r));
  return r == NVRTC_SUCCESS;
}

/* The numbers of the architectures that it knows; NULL after an error. */
static const int *supported(struct arena *a, int *count, struct diags *d) {
  if (!nvrtc_check("nvrtcGetNumSupportedArchs", cuda.nvrtcGetNumSupportedArchs(count), d)) return NULL;
  int *archs = arena_new_array(a, (size_t)*count + 1, int);
  return nvrtc_check("nvrtcGetSupportedArchs", cuda.nvrtcGetSupportedArchs(archs), d) ? archs : NULL;
}

static void unknown_arch(struct arena *a, const char *arch, const int *archs, int count, struct diags *d) {
  struct str all = str_make(a);
  for (int i = 0; i < count; i++) str_printf(&all, "%ssm_%d", i ? ", " : "", archs[i]);
  diag_error(d, LOC_NONE, "NVRTC %d.%d compiles for no architecture '%s': it knows %s",
             cuda.nvrtc_version / 1000, cuda.nvrtc_version % 1000 / 10, arch, all.data);
}

/* The option for exactly `arch`, or, if NVRTC is older than it and `or_older`, for the newest that it knows,
 * as PTX. NULL after an error. */
static const char *arch_option(struct arena *a, const char *arch, bool ptx, bool or_older, struct diags *d) {
  int number, count, newest = 0;
  const int *archs = supported(a, &count, d);
  if (!archs) return NULL;
  bool good = read_arch(arch, &number), known = false;
  for (int i = 0; i < count; i++) {
    known |= archs[i] == number;
    if (archs[i] > newest) newest = archs[i];
  }
  if (good && known) return arena_printf(a, "--gpu-architecture=%s_%d", ptx ? "compute" : "sm", number);
  if (good && or_older && number > newest && newest > 0)
    return arena_printf(a, "--gpu-architecture=compute_%d", newest);
  unknown_arch(a, arch, archs, count, d);
  return NULL;
}

static bool is_ptx(const char *option) { return strstr(option, "=compute_") != NULL; }

/* ---- NVRTC ---- */

/* The kernel that line `line` of the text, from 1, belongs to. */
static const char *kernel_at(struct arena *a, const char *text, long line) {
  const char *name = NULL;
  for (long n = 1; text && n <= line; n++) {
    static const char *const heads[] = {"extern \"C\" __global__ void ", "static __device__ void "};
    for (int h = 0; h < 2; h++)
      if (strncmp(text, heads[h], strlen(heads[h])) == 0) name = text + strlen(heads[h]);
    text = strchr(text, '\n');
    if (text) text++;
  }
  return name ? arena_strndup(a, name, strcspn(name, "(")) : NULL;
}

static void report_log(struct arena *a, nvrtcProgram p, const char *text, const char *option, nvrtcResult r,
                       struct diags *d) {
  size_t size = 0;
  if (cuda.nvrtcGetProgramLogSize(p, &size) != NVRTC_SUCCESS) size = 0;
  char *log = arena_alloc(a, size + 1);
  if (size && cuda.nvrtcGetProgramLog(p, log) != NVRTC_SUCCESS) log[0] = 0;
  const char *kernel = NULL; /* "kernels.cu(7): error" it says, and a C compiler "kernels.cu:7:2: error" */
  for (const char *at = log; !kernel && (at = strstr(at, FILE_NAME)) != NULL;) {
    at += strlen(FILE_NAME);
    if (*at == '(' || *at == ':') kernel = kernel_at(a, text, strtol(at + 1, NULL, 10));
  }
  diag_error(d, LOC_NONE, "NVRTC cannot compile %s%s (%s): nvrtcCompileProgram: %s",
             kernel ? "kernel " : "the kernels", kernel ? kernel : "", option, cuda.nvrtcGetErrorString(r));
  if (log[0]) diag_note(d, LOC_NONE, "%.*s%s", MAX_LOG, log, strlen(log) > MAX_LOG ? " ..." : "");
}

static void destroy(void *program) { cuda.nvrtcDestroyProgram(program); }

/* What was made, copied to `a`. NULL after an error. */
static char *take(struct arena *a, nvrtcProgram p, bool ptx, size_t *size, struct diags *d) {
  bool good = ptx ? nvrtc_check("nvrtcGetPTXSize", cuda.nvrtcGetPTXSize(p, size), d)
                  : nvrtc_check("nvrtcGetCUBINSize", cuda.nvrtcGetCUBINSize(p, size), d);
  char *code = good ? arena_alloc(a, *size + 1) : NULL;
  if (!code) return NULL;
  good = ptx ? nvrtc_check("nvrtcGetPTX", cuda.nvrtcGetPTX(p, code), d)
             : nvrtc_check("nvrtcGetCUBIN", cuda.nvrtcGetCUBIN(p, code), d);
  return good ? code : NULL;
}

static char *translate(struct arena *a, const char *text, const char *option, size_t *size, struct diags *d) {
  const char *options[FIXED_OPTIONS + 1] = {option};
  struct arena_guard guard;
  nvrtcProgram p;
  memcpy(options + 1, fixed_options, sizeof fixed_options);
  nvrtcResult r = cuda.nvrtcCreateProgram(&p, text, FILE_NAME, 0, NULL, NULL);
  if (!nvrtc_check("nvrtcCreateProgram", r, d)) return NULL;
  char *code = NULL;
  arena_guard(&guard, destroy, &p);
  r = cuda.nvrtcCompileProgram(p, FIXED_OPTIONS + 1, options);
  if (r == NVRTC_SUCCESS)
    code = take(a, p, is_ptx(option), size, d);
  else
    report_log(a, p, text, option, r, d);
  arena_unguard(&guard);
  destroy(&p);
  return code;
}

static bool load(struct diags *d) {
  const char *why_not = cuda_load_nvrtc();
  if (why_not) diag_error(d, LOC_NONE, "%s", why_not);
  return why_not == NULL;
}

/* ---- the cache ---- */

/* A stand-in for NVRTC has a version too: so the file itself counts. */
static void put_compiler(struct str *key) {
  void *address;
  memcpy(&address, &cuda.nvrtcVersion, sizeof address);
  str_printf(key, "NVRTC %d%s", cuda.nvrtc_version, cuda.simulated ? " simulated" : "");
  cache_put_library(key, address);
  str_putc(key, '\n');
}

static struct str key_of(struct arena *a, const char *text, const char *option) {
  struct str key = str_make(a);
  put_compiler(&key);
  str_printf(&key, "%s\n", option);
  for (int i = 0; i < FIXED_OPTIONS; i++) str_printf(&key, "%s\n", fixed_options[i]);
  str_put(&key, text);
  return key;
}

bool cuda_program_compile(struct arena *a, const struct cuda_program *p, const char *arch,
                          struct cuda_image *out, struct diags *d) {
  *out = (struct cuda_image){NULL, 0, false, 0};
  const char *option = load(d) ? arch_option(a, arch, false, true, d) : NULL;
  if (!option) return false;
  const char *folder = cache_folder(a);
  struct str key = key_of(a, p->text, option);
  if (folder) out->data = cache_read(a, folder, &key, &out->size);
  if (out->data) {
    out->cached = true;
    return true;
  }
  uint64_t begin = clock_ns();
  out->data = translate(a, p->text, option, &out->size, d);
  out->compile_ns = clock_ns() - begin;
  if (out->data && folder) {
    cache_write(folder, &key, out->data, out->size);
    cache_trim(folder);
  }
  return out->data != NULL;
}

const char *cuda_program_ptx(struct arena *a, const struct cuda_program *p, const char *arch,
                             struct diags *d) {
  size_t size;
  const char *option = load(d) ? arch_option(a, arch, true, false, d) : NULL;
  return option ? translate(a, p->text, option, &size, d) : NULL;
}

const char *cuda_emit(struct arena *a, const struct kernel *const *kernels, int count, const char *form,
                      const char *arch, struct diags *d) {
  struct cuda_program p = cuda_program_text(a, kernels, count, NULL);
  if (strcmp(form, "cuda") == 0) return p.text;
  if (strcmp(form, "ptx") == 0) return cuda_program_ptx(a, &p, arch ? arch : "sm_90", d);
  diag_error(d, LOC_NONE, "the cuda backend shows its kernels as cuda or ptx, not as %s", form);
  return NULL;
}
