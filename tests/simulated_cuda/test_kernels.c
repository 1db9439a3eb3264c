/* SPDX-License-Identifier: Apache-2.0 */
/* NVRTC, launches and barriers of the simulation; what of a kernel no test has the memory to run. */
#include "kernels/cpu/conv.h"
#include "kernels/cuda/texts.h"
#include "tests/simulated_cuda/harness.h"

#include <dirent.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- NVRTC --- */

#define ARCH "--gpu-architecture=sm_90"

static const char small[] = "extern \"C\" __global__ void one(float *x) { x[0] = 1; }\n";

static void test_errors(void) {
  char log[4096];
  fails_with(NVRTC_ERROR_COMPILATION,
             gpu_compile("extern \"C\"\n__global__ void k(float *x)\n{\n  x[0] = nonsense;\n}\n", ARCH,
                         "--fmad=false", NULL, log));
  check(strstr(log, "test.cu(4): error:") != NULL);
  fails_with(NVRTC_ERROR_COMPILATION, gpu_compile("__global__ int;", ARCH, "--fmad=false", NULL, log));
  fails_with(NVRTC_ERROR_INVALID_OPTION, gpu_compile(small, ARCH, "--fast", NULL, log));
  check(strstr(log, "--fast") != NULL);
  fails_with(NVRTC_ERROR_INVALID_OPTION, gpu_compile(small, "--gpu-architecture=sm_91", "-w", NULL, log));
  fails_with(NVRTC_ERROR_INVALID_OPTION,
             gpu_compile(small, "--gpu-architecture=sm_120", "-w", NULL, log)); /* of 12.8 */
  ok(gpu_compile(small, "-arch=compute_80", "--std=c++17", NULL, log));
}

static void test_version(void) {
  int major, minor, count, archs[64];
  ok(cu.nvrtcGetNumSupportedArchs(&count));
  ok(cu.nvrtcGetSupportedArchs(archs));
  check(count > 0 && count < 64 && archs[0] == 50 && archs[count - 1] == 120);
  ok(cu.nvrtcVersion(&major, &minor));
  check(major == 12 && minor == 8);
  ok(gpu_compile(small, "--gpu-architecture=sm_120", "-w", NULL, NULL));
}

static void test_wrong_arch(void) {
  struct gpu g = gpu_open(0);
  CUmodule m;
  _Alignas(16) static const char junk[] = "what is this? not a cubin";
  _Alignas(16) static char cubin[1 << 16];
  nvrtcProgram p;
  ok(cu.nvrtcCreateProgram(&p, small, "test.cu", 0, NULL, NULL));
  ok(cu.nvrtcCompileProgram(p, 1, (const char *[]){"--gpu-architecture=sm_90"}));
  ok(cu.nvrtcGetCUBIN(p, cubin));
  fails_with(209, cu.cuModuleLoadData(&m, cubin));
  fails_with(CUDA_ERROR_INVALID_IMAGE, cu.cuModuleLoadData(&m, junk));
  ok(cu.nvrtcDestroyProgram(&p));
  gpu_close(&g);
}

static void test_ptx(void) {
  struct gpu g = gpu_open(0);
  CUmodule m;
  CUdeviceptr x = gpu_alloc(4);
  float *host = gpu_host(4);
  nvrtcProgram p;
  size_t bytes;
  ok(cu.nvrtcCreateProgram(&p, small, "test.cu", 0, NULL, NULL));
  ok(cu.nvrtcCompileProgram(p, 1, (const char *[]){"--gpu-architecture=compute_80"}));
  ok(cu.nvrtcGetCUBINSize(p, &bytes));
  check(bytes == 0);
  ok(cu.nvrtcGetPTXSize(p, &bytes));
  char *ptx = malloc(bytes);
  ok(cu.nvrtcGetPTX(p, ptx));
  check(strlen(ptx) + 1 == bytes && strstr(ptx, "simulated"));
  ok(cu.cuModuleLoadData(&m, ptx));
  ok(cu.cuLaunchKernel(gpu_function(m, "one"), 1, 1, 1, 1, 1, 1, 0, g.stream, (void *[]){&x}, NULL));
  ok(cu.cuMemcpyAsync((CUdeviceptr)(uintptr_t)host, x, 4, g.stream));
  ok(cu.cuStreamSynchronize(g.stream));
  check(*host == 1);
  free(ptx);
  ok(cu.nvrtcDestroyProgram(&p));
  ok(cu.cuModuleUnload(m));
  ok(cu.cuMemFree(x));
  ok(cu.cuMemFreeHost(host));
  gpu_close(&g);
}

static void test_fail_compile(void) {
  fails_with(NVRTC_ERROR_COMPILATION, gpu_compile(small, ARCH, "-w", NULL, NULL));
  ok(gpu_compile(small, ARCH, "-w", NULL, NULL));
}

/* What is in the folder needs no compiler; what is damaged is compiled anew. */
static void test_kept(void) {
  static const char one[] = "extern \"C\" __global__ void one(int *p) { *p = 1; }";
  static const char two[] = "extern \"C\" __global__ void two(int *p) { *p = 2; }";
  char folder[] = "/tmp/simulated_kept.XXXXXX", path[512];
  struct gpu g = gpu_open(0);
  CUmodule module;
  check(mkdtemp(folder) != NULL);
  setenv("DGC_SIMULATED_CACHE", folder, 1);
  ok(gpu_compile(one, ARCH, "--fmad=false", NULL, NULL));
  setenv("PATH", "/nowhere", 1);
  ok(gpu_compile(one, ARCH, "--fmad=false", &module, NULL));
  gpu_function(module, "one");
  ok(cu.cuModuleUnload(module));
  fails_with(NVRTC_ERROR_COMPILATION, gpu_compile(one, ARCH, "--fmad=true", NULL, NULL));
  fails_with(NVRTC_ERROR_COMPILATION, gpu_compile(two, ARCH, "--fmad=false", NULL, NULL));
  DIR *files = opendir(folder);
  for (struct dirent *f; files && (f = readdir(files));) {
    if (f->d_name[0] == '.') continue;
    snprintf(path, sizeof path, "%s/%s", folder, f->d_name);
    check(truncate(path, 1000) == 0);
    fails_with(NVRTC_ERROR_COMPILATION, gpu_compile(one, ARCH, "--fmad=false", NULL, NULL));
    unlink(path);
  }
  if (files) closedir(files);
  check(rmdir(folder) == 0); /* there was one file, and no other name is left */
  gpu_close(&g);
}

/* a*b+c is one operation unless --fmad=false, as on hardware; the intrinsics are exact. */
static void contraction(const char *option, bool contracted) {
  struct gpu g = gpu_open(0);
  CUmodule m;
  float a = 1 + 0x1p-12f, c = -1 - 0x1p-11f, *host = gpu_host(64);
  ok(gpu_compile("extern \"C\" __global__ void k(float *x, float a, float b, float c) {\n"
                 "  x[0] = a * b + c;\n"
                 "  x[1] = __fmaf_rn(a, b, c);\n"
                 "  x[2] = __fsqrt_rn(2.0f);\n"
                 "  x[3] = __fdiv_rn(1.0f, 3.0f);\n"
                 "  x[4] = __int_as_float(__float_as_int(-1.5f));\n"
                 "  x[5] = (float)__umulhi(0x80000000u, 6u);\n"
                 "  x[6] = rintf(2.5f) + floorf(-1.5f) + fmodf(-7.0f, 4.0f);\n"
                 "  x[7] = (float)__longlong_as_double(__double_as_longlong(0.25));\n"
                 "}\n",
                 ARCH, option, &m, NULL));
  CUdeviceptr x = gpu_alloc(32);
  ok(cu.cuLaunchKernel(gpu_function(m, "k"), 1, 1, 1, 1, 1, 1, 0, g.stream, (void *[]){&x, &a, &a, &c},
                       NULL));
  ok(cu.cuMemcpyAsync((CUdeviceptr)(uintptr_t)host, x, 32, g.stream));
  ok(cu.cuStreamSynchronize(g.stream));
  check(host[0] == (contracted ? 0x1p-24f : 0));
  check(host[1] == 0x1p-24f && host[2] == sqrtf(2) && host[3] == 1.0f / 3 && host[4] == -1.5f &&
        host[5] == 3);
  check(host[6] == 2 - 2 - 3 && host[7] == 0.25f);
}

static void test_exact(void) { contraction("--fmad=false", false); }
static void test_contracted(void) {
#if defined(__x86_64__)
  if (!__builtin_cpu_supports("fma")) return; /* then the host has no such operation to contract to */
#endif
  contraction("-w", true);
}

/* --- launches --- */

static const char shapes[] =
    "// __global__ void not_one(\n"
    "struct pair { long long a; int b[3]; };\n"
    "#define WIDTH 4\n"
    "extern \"C\" __global__ void __launch_bounds__(64) where(int *out, const struct pair p, char c, double "
    "d) {\n"
    "  int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;\n"
    "  int thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;\n"
    "  out[block * blockDim.x * blockDim.y * blockDim.z + thread] =\n"
    "      block * 1000 + thread + (p.a == 5 && p.b[2] == 7 && c == 3 && d == 0.5 ? 0 : -1000000);\n"
    "}\n";

static void test_shapes(void) {
  struct gpu g = gpu_open(0);
  CUmodule m = gpu_module(shapes);
  CUfunction f = gpu_function(m, "where"), none;
  CUdeviceptr out = gpu_alloc(24 * 24 * sizeof(int));
  int *host = gpu_host(24 * 24 * sizeof(int));
  struct {
    long long a;
    int b[3];
  } pair = {5, {0, 0, 7}};
  char c = 3;
  double d = 0.5;
  void *params[] = {&out, &pair, &c, &d};
  fails_with(CUDA_ERROR_NOT_FOUND, cu.cuModuleGetFunction(&none, m, "not_one"));
  ok(cu.cuLaunchKernel(f, 2, 3, 4, 4, 3, 2, 0, g.stream, params, NULL));
  ok(cu.cuMemcpyAsync((CUdeviceptr)(uintptr_t)host, out, 24 * 24 * sizeof(int), g.stream));
  ok(cu.cuStreamSynchronize(g.stream));
  for (int i = 0; i < 24; i++)
    for (int k = 0; k < 24; k++) check(host[24 * i + k] == 1000 * i + k);
  fails_with(CUDA_ERROR_INVALID_VALUE, cu.cuLaunchKernel(f, 1, 1, 1, 65, 1, 1, 0, g.stream, params, NULL));
  fails_with(CUDA_ERROR_INVALID_VALUE, cu.cuLaunchKernel(f, 1, 65536, 1, 1, 1, 1, 0, g.stream, params, NULL));
  fails_with(CUDA_ERROR_INVALID_VALUE, cu.cuLaunchKernel(f, 0, 1, 1, 1, 1, 1, 0, g.stream, params, NULL));
  fails_with(CUDA_ERROR_INVALID_VALUE, cu.cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 50000, g.stream, params, NULL));
  fails_with(CUDA_ERROR_INVALID_VALUE, cu.cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, g.stream, NULL, NULL));
  ok(cu.cuModuleUnload(m));
  fails_with(CUDA_ERROR_INVALID_HANDLE, cu.cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, g.stream, params, NULL));
  ok(cu.cuMemFree(out));
  ok(cu.cuMemFreeHost(host));
  gpu_close(&g);
}

static const char barriers[] = "static __device__ float half(float x) { return x / 2; }\n"
                               "extern \"C\" __global__ void sum(const float *x, float *out) {\n"
                               "  __shared__ float part[256];\n"
                               "  unsigned t = threadIdx.x;\n"
                               "  part[t] = half(x[blockIdx.x * 256 + t]);\n"
                               "  __syncthreads();\n"
                               "  for (unsigned n = 128; n > 0; n /= 2) {\n"
                               "    if (t < n) part[t] += part[t + n];\n"
                               "    __syncthreads();\n"
                               "  }\n"
                               "  if (t == 0) out[blockIdx.x] = part[0];\n"
                               "}\n"
                               "extern \"C\" __global__ void forgetful(float *out) {\n"
                               "  __shared__ float part[256];\n"
                               "  part[threadIdx.x] = 1;\n"
                               "  out[threadIdx.x] = part[255 - threadIdx.x];\n"
                               "}\n"
                               "extern \"C\" __global__ void leaves(float *out) {\n"
                               "  if (threadIdx.x < 3) return;\n"
                               "  __syncthreads();\n"
                               "  out[threadIdx.x] = 1;\n"
                               "}\n"
                               "extern \"C\" __global__ void diverges(float *out) {\n"
                               "  if (threadIdx.x < 3)\n"
                               "    __syncthreads();\n"
                               "  else\n"
                               "    __syncthreads();\n"
                               "  out[threadIdx.x] = 1;\n"
                               "}\n"
                               "extern \"C\" __global__ void stray(float *out) {\n"
                               "  __syncthreads();\n"
                               "  out[threadIdx.x + 100000000] = 1;\n"
                               "}\n";

struct barrier_fixture {
  struct gpu gpu;
  CUmodule module;
  CUdeviceptr x, out;
  float *host;
};

static struct barrier_fixture open_barriers(void) {
  struct barrier_fixture f = {.gpu = gpu_open(0), .module = gpu_module(barriers)};
  f.x = gpu_alloc(10 * 256 * sizeof(float));
  f.out = gpu_alloc(256 * sizeof(float));
  f.host = gpu_host(10 * 256 * sizeof(float));
  return f;
}

static int run(struct barrier_fixture *f, const char *kernel) {
  int r = cu.cuLaunchKernel(gpu_function(f->module, kernel), 1, 1, 1, 256, 1, 1, 0, f->gpu.stream,
                            (void *[]){&f->out}, NULL);
  return r ? r : cu.cuStreamSynchronize(f->gpu.stream);
}

static void test_barriers(void) {
  struct barrier_fixture f = open_barriers();
  for (int i = 0; i < 2560; i++) f.host[i] = (float)(2 * i);
  ok(cu.cuMemcpyAsync(f.x, (CUdeviceptr)(uintptr_t)f.host, 2560 * sizeof(float), f.gpu.stream));
  ok(cu.cuLaunchKernel(gpu_function(f.module, "sum"), 10, 1, 1, 256, 1, 1, 0, f.gpu.stream,
                       (void *[]){&f.x, &f.out}, NULL));
  ok(cu.cuMemcpyAsync((CUdeviceptr)(uintptr_t)f.host, f.out, 10 * sizeof(float), f.gpu.stream));
  ok(cu.cuStreamSynchronize(f.gpu.stream));
  for (int i = 0; i < 10; i++) check(f.host[i] == (float)(256 * 256 * i + 255 * 128));
  ok(cu.cuMemFree(f.x));
  ok(cu.cuMemFree(f.out));
  ok(cu.cuMemFreeHost(f.host));
  ok(cu.cuModuleUnload(f.module));
  gpu_close(&f.gpu);
}

/* Without a barrier a thread reads what another one has not written: poison. */
static void test_missing_barrier(void) {
  struct barrier_fixture f = open_barriers();
  ok(run(&f, "forgetful"));
  ok(cu.cuMemcpyAsync((CUdeviceptr)(uintptr_t)f.host, f.out, 256 * sizeof(float), f.gpu.stream));
  ok(cu.cuStreamSynchronize(f.gpu.stream));
  int missing = 0;
  for (int i = 0; i < 256; i++) missing += isnan(f.host[i]);
  check(missing == 128);
}

static void test_leaves(void) {
  struct barrier_fixture f = open_barriers();
  fails_with(CUDA_ERROR_LAUNCH_FAILED, run(&f, "leaves"));
}

static void test_diverges(void) {
  struct barrier_fixture f = open_barriers();
  fails_with(CUDA_ERROR_LAUNCH_FAILED, run(&f, "diverges"));
}

static void test_stray(void) {
  struct barrier_fixture f = open_barriers();
  fails_with(CUDA_ERROR_ILLEGAL_ADDRESS, run(&f, "stray"));
}

/* --- conv's tiles --- */

static const char types[] = "#define TYPE float\n#define SUM float\n";
static const char seen[] =
    "extern \"C\" __global__ void seen(long long *out, struct conv_numbers s, int forward, long long pixel, "
    "long long k) {\n"
    "  int begin[3];\n"
    "  row_begin(&s, forward, pixel, begin);\n"
    "  out[0] = conv_is_small(&s);\n"
    "  out[1] = out[0] ? seen_pixel(&s, forward, begin, (int)k) : -2;\n"
    "  out[2] = forward ? input_under(&s, pixel, k) : output_over(&s, pixel, k);\n"
    "}\n";

/* Tiles count in int what the rest counts in long long: of sizes that are too large for that there are none. */
static void test_conv(void) {
  static const struct {
    long long high, wide, step;
    bool small;
  } images[] = {{7, 5, 1, true},          {30000, 30000, 1, true},  {30000, 30000, 100, true},
                {46341, 46341, 1, false}, {50000, 50000, 9, false}, {1 << 20, 1, 1 << 9, true}};
  struct gpu g = gpu_open(0);
  const struct embedded *file = kernels_cuda;
  while (strcmp(file->name, "conv.cuh") != 0) file++;
  char *text = malloc(sizeof types + strlen(file->text) + sizeof seen);
  sprintf(text, "%s%s%s", types, file->text, seen);
  CUmodule m = gpu_module(text);
  CUdeviceptr out = gpu_alloc(3 * sizeof(long long));
  long long *host = gpu_host(3 * sizeof(long long));
  for (size_t i = 0; i < sizeof images / sizeof *images; i++)
    for (int forward = 0; forward < 2; forward++) {
      long long step = images[i].step, high = images[i].high, wide = images[i].wide;
      struct conv_numbers s = {.result = 2,
                               .batch = 1,
                               .groups = 1,
                               .channels = 4,
                               .filters = 4,
                               .input = {1, high, wide},
                               .kernel = {1, 1, 1},
                               .output = {1, 1 + (high - 1) / step, 1 + (wide - 1) / step},
                               .stride = {1, step, step},
                               .input_dilation = {1, 1, 1},
                               .kernel_dilation = {1, 1, 1}};
      const int64_t *size = forward ? s.output : s.input;
      long long pixel = size[1] * size[2] - 1, k = 0;
      if (!forward) pixel = (s.output[1] - 1) * step * wide + (s.output[2] - 1) * step;
      ok(cu.cuLaunchKernel(gpu_function(m, "seen"), 1, 1, 1, 1, 1, 1, 0, g.stream,
                           (void *[]){&out, &s, &forward, &pixel, &k}, NULL));
      ok(cu.cuMemcpyAsync((CUdeviceptr)(uintptr_t)host, out, 3 * sizeof(long long), g.stream));
      ok(cu.cuStreamSynchronize(g.stream));
      check(!host[0] || host[1] == host[2]);
      check(host[0] == images[i].small);
      check(host[2] == (forward ? (s.output[1] - 1) * step * wide + (s.output[2] - 1) * step
                                : s.output[1] * s.output[2] - 1));
    }
  free(text);
  ok(cu.cuModuleUnload(m));
  ok(cu.cuMemFree(out));
  ok(cu.cuMemFreeHost(host));
  gpu_close(&g);
}

static const struct test_case cases[] = {
    {"errors", test_errors, "LEAKS=1", 0, NULL},
    {"version", test_version, "NVRTC=12.8", 0, NULL},
    {"wrong arch", test_wrong_arch, "ARCH=80 LEAKS=1", 0, "does not run on sm_80"},
    {"ptx", test_ptx, "LEAKS=1", 0, NULL},
    {"fail compile", test_fail_compile, "FAIL=nvrtcCompileProgram:1", 0, NULL},
    {"kept", test_kept, "LEAKS=1", 0, NULL},
    {"exact", test_exact, NULL, 0, NULL},
    {"contracted", test_contracted, NULL, 0, NULL},
    {"shapes", test_shapes, "LEAKS=1", 0, "block (65,1,1)"},
    {"barriers", test_barriers, "LEAKS=1", 0, NULL},
    {"barriers, seed 2", test_barriers, "SEED=2", 0, NULL},
    {"missing barrier", test_missing_barrier, NULL, 0, NULL},
    {"leaves", test_leaves, NULL, 0, "3 of 256 threads have ended"},
    {"diverges", test_diverges, NULL, 0, "different barriers, lines"},
    {"stray", test_stray, NULL, 0, "kernel stray, block (0,0,0): access to"},
    {"conv", test_conv, "LEAKS=1", 0, NULL},
};

int main(int argc, char **argv) { return run_cases(argc, argv, cases, sizeof cases / sizeof *cases); }
