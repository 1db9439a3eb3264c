/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels as CUDA C: what the text computes, on a simulated GPU, against the interpreter, bit for bit. A
 * reduction has an order of its own there, which is written down here once more: tests/support/gpu_order.c. The
 * simulation runs blocks and the threads of a block in another order each time, and every kernel runs twice,
 * with another grid. */
#include "runtime/cuda/library.h"
#include "runtime/cuda/program.h"
#include "tests/support/gpu_order.h"
#include "tests/support/kernels.h"
#include "tests/support/scratch.h"

#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct fixture {
  CUcontext context;
  CUstream stream;
  char arch[16];
  void *stage;               /* pinned, STAGE bytes */
  struct sigaction on_fault; /* the simulation's */
};
enum { STAGE = 4 << 20 };

static struct fixture gpu;

static void ok(CUresult r, const char *what) {
  const char *text = "?";
  if (r == CUDA_SUCCESS) return;
  cuda.cuGetErrorString(r, &text);
  fail_msg("%s: %d %s", what, r, text);
}
#define OK(call) ok(call, #call)

static int open_gpu(void **state) {
  const char *why = cuda_load_driver();
  CUdevice device;
  int major, minor;
  (void)state;
  if (why) fail_msg("%s", why);
  assert_true(cuda.simulated);
  assert_int_equal(sigaction(SIGSEGV, NULL, &gpu.on_fault), 0);
  OK(cuda.cuDeviceGet(&device, 0));
  OK(cuda.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
  OK(cuda.cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device));
  snprintf(gpu.arch, sizeof gpu.arch, "sm_%d%d", major, minor);
  OK(cuda.cuDevicePrimaryCtxRetain(&gpu.context, device));
  OK(cuda.cuCtxSetCurrent(gpu.context));
  OK(cuda.cuStreamCreate(&gpu.stream, CU_STREAM_NON_BLOCKING));
  OK(cuda.cuMemHostAlloc(&gpu.stage, STAGE, CU_MEMHOSTALLOC_PORTABLE));
  return 0;
}

static int close_gpu(void **state) {
  (void)state;
  OK(cuda.cuMemFreeHost(gpu.stage));
  OK(cuda.cuStreamDestroy(gpu.stream));
  OK(cuda.cuDevicePrimaryCtxRelease(0));
  return 0;
}

/* ---- running on the device ---- */

/* The simulation is told of memory that is touched by way of SIGSEGV, which cmocka takes for itself in each
 * test. */
static void give_signal_back(void) { assert_int_equal(sigaction(SIGSEGV, &gpu.on_fault, NULL), 0); }

static CUmodule load(struct arena *a, const struct cuda_program *p) {
  struct diags d;
  struct cuda_image image;
  CUmodule module;
  give_signal_back();
  diags_init(&d, a);
  if (!cuda_program_compile(a, p, gpu.arch, &image, &d)) fail_msg("%s", diags_text(&d, false));
  OK(cuda.cuModuleLoadData(&module, image.data));
  return module;
}

/* Copies go by way of pinned memory: the simulation takes no other. */
static void copy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  OK(cuda.cuMemcpyAsync(to, from, bytes, gpu.stream));
  OK(cuda.cuStreamSynchronize(gpu.stream));
}

static CUdeviceptr put(const void *data, size_t bytes) {
  CUdeviceptr p;
  assert_true(bytes <= STAGE);
  OK(cuda.cuMemAlloc(&p, bytes));
  memcpy(gpu.stage, data, bytes);
  copy(p, (CUdeviceptr)(uintptr_t)gpu.stage, bytes);
  return p;
}

static void take_back(void *data, CUdeviceptr p, size_t bytes) {
  copy((CUdeviceptr)(uintptr_t)gpu.stage, p, bytes);
  memcpy(data, gpu.stage, bytes);
}

static void start(CUmodule module, const char *name, const struct cuda_launch *l, void **params) {
  CUfunction f;
  OK(cuda.cuModuleGetFunction(&f, module, name));
  OK(cuda.cuLaunchKernel(f, l->grid[0], l->grid[1], l->grid[2], l->block[0], l->block[1], l->block[2], 0,
                         gpu.stream, params, NULL));
}

static size_t buffer_bytes(const struct kernel_sample *s, int a) {
  return (size_t)(s->buffer[a].elements + 4) * (size_t)dtype_size((enum dtype)s->kernel.args[a].dtype);
}

/* `blocks`: at most so many along x, 0 for as many as the launch says. */
static void run(struct arena *a, struct kernel_sample *s, CUmodule module, const char *name,
                unsigned blocks) {
  const struct kernel *k = &s->kernel;
  CUdeviceptr buffer[MAX_KERNEL_ARGS], arg[MAX_KERNEL_ARGS], scratch = 0;
  void *params[MAX_KERNEL_ARGS + 2];
  struct cuda_launch launch[2];
  size_t bytes;
  int n = cuda_launches(k, s->sizes, launch, &bytes), nparams = k->nargs;
  for (int i = 0; i < k->nargs; i++) {
    if (s->alias[i] == i) buffer[i] = put(s->buffer[i].data, buffer_bytes(s, i));
    arg[i] = buffer[s->alias[i]] + (CUdeviceptr)(s->origin[i] * dtype_size((enum dtype)k->args[i].dtype));
    params[i] = &arg[i];
  }
  if (bytes) OK(cuda.cuMemAlloc(&scratch, bytes));
  if (k->kind == KERNEL_REDUCE) params[nparams++] = &scratch;
  params[nparams] = s->sizes;
  for (int i = 0; i < n; i++) {
    if (blocks && launch[i].grid[0] > blocks) launch[i].grid[0] = blocks;
    start(module, cuda_entry_name(a, name, launch[i].entry), &launch[i], params);
  }
  for (int i = 0; i < k->nargs; i++) {
    if (s->alias[i] != i) continue;
    take_back(s->buffer[i].data, buffer[i], buffer_bytes(s, i));
    OK(cuda.cuMemFree(buffer[i]));
  }
  if (bytes) OK(cuda.cuMemFree(scratch));
}

/* ---- comparing ---- */

static void check_samples(struct arena *a, struct kernel_sample *s, int n) {
  const struct kernel **kernels = arena_new_array(a, (size_t)n, const struct kernel *);
  for (int i = 0; i < n; i++) kernels[i] = &s[i].kernel;
  struct cuda_program p = cuda_program_text(a, kernels, n, NULL);
  CUmodule module = load(a, &p);
  for (int i = 0; i < n; i++) {
    const struct kernel *k = &s[i].kernel;
    void *args[MAX_KERNEL_ARGS];
    unsigned char *before[MAX_KERNEL_ARGS];
    for (int b = 0; b < k->nargs; b++) before[b] = arena_copy(a, s[i].buffer[b].data, buffer_bytes(&s[i], b));
    sample_args(&s[i], true, args);
    if (k->kind == KERNEL_MAP)
      kernel_eval(k, args, s[i].sizes);
    else
      kernel_in_gpu_order(a, k, args, s[i].sizes);
    for (unsigned blocks = 0; blocks < 2; blocks++) {
      for (int b = 0; b < k->nargs; b++) memcpy(s[i].buffer[b].data, before[b], buffer_bytes(&s[i], b));
      run(a, &s[i], module, p.names[i], blocks);
      const char *difference = sample_difference(a, &s[i]);
      if (difference) fail_msg("kernel %d, %s", i, difference);
    }
  }
  OK(cuda.cuModuleUnload(module));
}

#define BATCH 60

static void random_kernels(enum kernel_kind kind, int batches, uint64_t seed) {
  struct rng r = {seed};
  for (int b = 0; b < batches; b++) {
    struct arena *a = arena_create();
    struct kernel_sample *s = arena_new_array(a, BATCH, struct kernel_sample);
    for (int i = 0; i < BATCH; i++) random_sample(&r, a, &s[i], kind, 1);
    check_samples(a, s, BATCH);
    arena_destroy(a);
  }
}

static void random_maps(void **state) {
  (void)state;
  random_kernels(KERNEL_MAP, 4, 1);
}

static void random_reductions(void **state) {
  (void)state;
  random_kernels(KERNEL_REDUCE, 4, 2);
}

static void every_instruction(void **state) {
  (void)state;
  struct arena *a = arena_create();
  struct kernel_sample *all = NULL;
  int count = 0;
  for (enum sop op = S_ADD; op <= S_BITCAST; op++) { /* each type; not each kind of operands: text is slow */
    struct kernel_sample *s;
    int n = special_samples(a, op, &s);
    struct kernel_sample *more = arena_new_array(a, (size_t)(count + n), struct kernel_sample);
    if (count) memcpy(more, all, (size_t)count * sizeof *all);
    all = more;
    for (int i = 0; i < n; i += 3) all[count++] = s[i];
  }
  check_samples(a, all, count);
  arena_destroy(a);
}

static void functions_agree(void **state) {
  (void)state;
  struct arena *a = arena_create();
  struct rng r = {4};
  struct kernel_sample *s;
  int n = function_samples(a, &r, &s);
  check_samples(a, s, n);
  arena_destroy(a);
}

/* ---- large reductions ---- */

/* `results` rows or columns of `reduced` elements each, with a body of so many instructions. */
static void large_sample(struct arena *a, struct rng *r, struct kernel_sample *s, enum reduce_op op,
                         enum dtype d, bool rows, int64_t results, int64_t reduced, int body) {
  struct kernel *k = &s->kernel;
  enum dtype out = op >= REDUCE_ARGMAX ? DT_I32 : d;
  *k = (struct kernel){.kind = KERNEL_REDUCE,
                       .reduce = op,
                       .rank = 2,
                       .nreduce = 1,
                       .nsums = 1,
                       .vector = rows,
                       .nargs = 2,
                       .noutputs = 1,
                       .name = rows ? "rows" : "columns"};
  k->args[0] = (struct kernel_arg){(uint8_t)d, STRIDE_ONE, false};
  k->args[1] = (struct kernel_arg){(uint8_t)out, rows ? STRIDE_ZERO : STRIDE_ONE, true};
  k->body = sprog_make(a);
  k->epilogue = sprog_make(a);
  sval x = s_arg(&k->body, 0, d);
  k->result[0] = x;
  while (body-- > 0) k->result[0] = s_binary(&k->body, S_ADD, k->result[0], x);
  k->epilogue_result[0] = s_arg(&k->epilogue, 2, out);
  memcpy(s->sizes, (int64_t[]){results, reduced, rows ? reduced : 1, rows ? 1 : results, 1, 0}, 48);
  s->alias[1] = 1;
  for (int i = 0; i < 2; i++) {
    s->buffer[i].elements = i ? results : results * reduced;
    s->buffer[i].data = arena_alloc(a, buffer_bytes(s, i));
    s->buffer[i].expected = arena_alloc(a, buffer_bytes(s, i));
  }
  struct tensor t = {type_make(d, 1, (int64_t[]){results * reduced}), s->buffer[0].data};
  sample_fill(r, d == DT_F32 || d == DT_F64 ? DOMAIN_UNIT : DOMAIN_SMALL_INT, 0, &t);
  memcpy(s->buffer[0].expected, s->buffer[0].data, buffer_bytes(s, 0));
}

static bool longer;

/* All of them, or, unless it takes longer, one of three: each shape and type with another third of the operations. */
static void large_reductions(void **state) {
  static const struct {
    bool rows;
    int64_t results, reduced;
  } shapes[] = {{true, 1, 16384}, {true, 3, 16387}, {true, 2, 40000}, {false, 33, 256},
                {false, 33, 257}, {false, 5, 3000}, {false, 300, 40}, {true, 300, 10}};
  enum { SHAPES = sizeof shapes / sizeof *shapes, EACH = REDUCE_ARGMIN + 1 };
  struct rng r = {7};
  (void)state;
  static const enum dtype dtypes[] = {DT_F32, DT_I64, DT_U8};
  for (int t = 0; t < 3; t++) {
    enum dtype d = dtypes[t];
    struct arena *a = arena_create();
    struct kernel_sample *s = arena_new_array(a, SHAPES * EACH, struct kernel_sample);
    int n = 0;
    for (int i = 0; i < SHAPES * EACH; i++)
      if (longer || (i % EACH + i / EACH + t) % 3 == 0)
        large_sample(a, &r, &s[n++], (enum reduce_op)(i % EACH), d, shapes[i / EACH].rows,
                     shapes[i / EACH].results, shapes[i / EACH].reduced,
                     i % 5 == 1 && shapes[i / EACH].results * shapes[i / EACH].reduced < 20000 ? 80 : 0);
    check_samples(a, s, n);
    arena_destroy(a);
  }
}

/* Not far from the interpreter's sum, in another order: n terms are off by n u sum |term| at most. */
static void sums_are_near(void **state) {
  static const int64_t sizes[] = {1, 7, 100, 5000, 50000};
  struct rng r = {8};
  (void)state;
  for (int i = 0; i < 10; i++) {
    struct arena *a = arena_create();
    struct kernel_sample s = {.alias = {0}};
    int64_t n = sizes[i / 2];
    void *args[MAX_KERNEL_ARGS];
    large_sample(a, &r, &s, REDUCE_SUM, DT_F32, i % 2, 1, n, 0);
    sample_args(&s, true, args);
    kernel_eval(&s.kernel, args, s.sizes);
    const struct kernel *kernels[] = {&s.kernel};
    struct cuda_program p = cuda_program_text(a, kernels, 1, NULL);
    CUmodule module = load(a, &p);
    run(a, &s, module, p.names[0], 0);
    OK(cuda.cuModuleUnload(module));
    double sum = 0, got = *(float *)s.buffer[1].data, want = *(float *)s.buffer[1].expected;
    for (int64_t at = 0; at < n; at++) sum += fabs(((float *)s.buffer[0].data)[at]);
    assert_true(fabs(got - want) <= 2 * (double)n * 0x1p-24 * sum);
    arena_destroy(a);
  }
}

/* ---- many sets in one launch ---- */

static struct kernel scale_kernel(struct arena *a) {
  struct kernel k = {
      .kind = KERNEL_MAP, .rank = 1, .nargs = 2, .noutputs = 1, .nparams = 1, .name = "w.step"};
  k.args[0] = (struct kernel_arg){DT_F32, STRIDE_ONE, false};
  k.args[1] = (struct kernel_arg){DT_F32, STRIDE_ONE, true};
  k.body = sprog_make(a);
  k.epilogue = sprog_make(a);
  sval by = s_convert(&k.body, DT_F32, s_param(&k.body, 0));
  k.result[0] = s_binary(&k.body, S_MUL, s_arg(&k.body, 0, DT_F32), by);
  return k;
}

static void many_sets(void **state) {
  enum { SETS = 5 };
  static const int64_t counts[SETS] = {3, 0, 5000, 129, 512};
  struct arena *a = arena_create();
  struct kernel k = scale_kernel(a);
  const struct kernel *kernels[] = {&k};
  (void)state;
  struct cuda_program p = cuda_program_text(a, kernels, 1, (bool[]){true});
  CUmodule module = load(a, &p);
  CUdeviceptr data[SETS];
  uint64_t table[SETS][6];
  int64_t sizes[SETS][4];
  struct cuda_launch launch = {0};
  size_t scratch;
  static float x[5000];
  assert_int_equal(cuda_set_words(&k), 6);
  for (int i = 0; i < 5000; i++) x[i] = (float)i;
  for (int i = 0; i < SETS; i++) {
    memcpy(sizes[i], (int64_t[]){counts[i], 1, 1, i + 2}, sizeof sizes[i]);
    struct cuda_launch one[2] = {0};
    assert_int_equal(cuda_launches(&k, sizes[i], one, &scratch), counts[i] > 0);
    cuda_add_set(&launch, one);
    data[i] = put(x, sizeof x);
    table[i][0] = table[i][1] = data[i]; /* in place */
    memcpy(&table[i][2], sizes[i], sizeof sizes[i]);
  }
  CUdeviceptr sets = put(table, sizeof table);
  start(module, cuda_entry_name(a, p.names[0], CUDA_MANY), &launch, (void *[]){&sets});
  for (int i = 0; i < SETS; i++) {
    static float got[5000];
    take_back(got, data[i], sizeof got);
    for (int j = 0; j < 5000; j++) assert_true(got[j] == (float)(j < counts[i] ? j * (i + 2) : j));
    OK(cuda.cuMemFree(data[i]));
  }
  OK(cuda.cuMemFree(sets));
  OK(cuda.cuModuleUnload(module));
  arena_destroy(a);
}

/* ---- launches ---- */

static void launches_fit(void **state) {
  struct arena *a = arena_create();
  struct kernel map = scale_kernel(a);
  struct kernel_sample s;
  struct rng r = {9};
  struct cuda_launch l[2];
  size_t bytes;
  (void)state;
  for (int rows = 0; rows < 2; rows++) {
    large_sample(a, &r, &s, REDUCE_SUM, DT_F32, rows, 1, 1, 0);
    for (int kept = 0; kept <= 36; kept++)
      for (int reduced = 0; reduced <= 36; reduced++) {
        int64_t sizes[] = {(INT64_C(1) << kept) - 1, (INT64_C(1) << reduced) - 1, 0, 0, 0, 0};
        int n = cuda_launches(&s.kernel, sizes, l, &bytes);
        assert_int_equal(n > 0, kept > 0);
        assert_int_equal(n == 2, bytes > 0);
        for (int i = 0; i < n; i++) {
          unsigned threads = l[i].block[0] * l[i].block[1] * l[i].block[2];
          assert_true(l[i].grid[0] > 0 && l[i].grid[1] > 0 && l[i].grid[1] <= 65535 && l[i].grid[2] == 1);
          assert_true(threads >= 32 && threads <= 256);
        }
      }
  }
  for (int n = 0; n <= 40; n++) {
    int64_t sizes[] = {(INT64_C(1) << n) - 1, 1, 1, 2};
    assert_int_equal(cuda_launches(&map, sizes, l, &bytes), n > 0);
    if (n) assert_true(l[0].grid[0] > 0 && l[0].grid[0] < UINT32_C(1) << 31 && bytes == 0);
  }
  arena_destroy(a);
}

/* ---- compiling ---- */

static void compiled_once(void **state) {
  struct arena *a = arena_create();
  struct kernel k = scale_kernel(a);
  const struct kernel *kernels[] = {&k};
  const char *before = getenv("XDG_CACHE_HOME");
  struct cuda_image image[2];
  struct diags d;
  (void)state;
  diags_init(&d, a);
  assert_true(scratch_make());
  before = before ? arena_strdup(a, before) : NULL;
  setenv("XDG_CACHE_HOME", scratch_path, 1);
  struct cuda_program p = cuda_program_text(a, kernels, 1, NULL);
  for (int i = 0; i < 2; i++) {
    assert_true(cuda_program_compile(a, &p, gpu.arch, &image[i], &d));
    assert_int_equal(image[i].cached, i);
    assert_int_equal(image[i].compile_ns == 0, i);
  }
  assert_int_equal(image[0].size, image[1].size);
  assert_memory_equal(image[0].data, image[1].data, image[0].size);
  assert_true(cuda_program_compile(a, &p, "sm_80", &image[0], &d)); /* other code */
  assert_false(image[0].cached);
  if (before)
    setenv("XDG_CACHE_HOME", before, 1);
  else
    unsetenv("XDG_CACHE_HOME");
  arena_destroy(a);
}

static void errors_are_told(void **state) {
  struct arena *a = arena_create();
  struct cuda_image image;
  struct diags d;
  (void)state;
  diags_init(&d, a);
  struct kernel k = scale_kernel(a);
  const struct kernel *kernels[] = {&k};
  struct cuda_program p = cuda_program_text(a, kernels, 1, NULL);
  assert_false(cuda_program_compile(a, &p, "sm_12", &image, &d));
  assert_non_null(strstr(diags_text(&d, false), "no architecture 'sm_12': it knows"));
  assert_non_null(strstr(diags_text(&d, false), "sm_80"));
  assert_null(cuda_program_ptx(a, &p, "hopper", &d));
  assert_true(cuda_program_compile(a, &p, "sm_999", &image, &d)); /* the driver translates PTX */
  assert_non_null(cuda_program_ptx(a, &p, "sm_80", &d));
  assert_null(cuda_program_ptx(a, &p, "sm_999", &d));
  diags_init(&d, a);
  p.text = "extern \"C\" __global__ void k0_good(float *a) {\n}\n"
           "extern \"C\" __global__ void k1_bad(float *a) {\n  a[0] = missing;\n}\n";
  assert_false(cuda_program_compile(a, &p, "sm_80", &image, &d));
  assert_non_null(strstr(diags_text(&d, false), "kernel k1_bad"));
  assert_non_null(strstr(diags_text(&d, false), "missing"));
  arena_destroy(a);
}

static void text_is_stable(void **state) {
  struct arena *a = arena_create();
  struct kernel k = scale_kernel(a);
  const struct kernel *kernels[] = {&k, &k};
  (void)state;
  struct cuda_program one = cuda_program_text(a, kernels, 2, NULL),
                      two = cuda_program_text(a, kernels, 2, NULL);
  assert_string_equal(one.text, two.text);
  assert_string_equal(one.names[0], "k0_w_step");
  assert_string_equal(one.names[1], "k1_w_step");
  arena_destroy(a);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_instruction), cmocka_unit_test(functions_agree),
                                     cmocka_unit_test(random_maps),       cmocka_unit_test(random_reductions),
                                     cmocka_unit_test(large_reductions),  cmocka_unit_test(sums_are_near),
                                     cmocka_unit_test(many_sets),         cmocka_unit_test(launches_fit),
                                     cmocka_unit_test(compiled_once),     cmocka_unit_test(errors_are_told),
                                     cmocka_unit_test(text_is_stable)};
  if (argc < 2) {
    fputs("which folder has the simulated libraries?\n", stderr);
    return 2;
  }
  setenv("DGC_CUDA_PATH", argv[1], 1);
  longer = argc > 2 && strcmp(argv[2], "longer") == 0;
  if (argc > 2) cmocka_set_test_filter(longer ? "large_*" : argv[2]);
  return cmocka_run_group_tests_name("cuda_text", tests, open_gpu, close_gpu);
}
