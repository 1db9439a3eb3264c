/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU backend against the interpreter: random kernels, bit for bit. Code comes from the build's cache, which keeps
 * none that another code generator has made; under sanitizers it is made anew. */
#include "runtime/cpu/jit.h"

#include "ir/scalar/split.h"
#include "runtime/cpu/codegen.h"
#include "runtime/cpu/host.h"
#include "runtime/cpu/object.h"
#include "runtime/cut.h"
#include "tests/support/kernels.h"
#include "tests/support/scratch.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static struct rng rng;

struct fixture {
  struct arena *arena;
  struct diags diags;
  struct cpu_jit *jit;
};

static int setup(void **state) {
  struct arena *a = arena_create();
  struct fixture *f = arena_new(a, struct fixture);
  f->arena = a;
  diags_init(&f->diags, a);
  f->jit = cpu_jit_create(&f->diags);
  if (f->jit == NULL) fputs(diags_text(&f->diags, false), stderr);
  *state = f;
  return f->jit == NULL;
}

static int teardown(void **state) {
  struct fixture *f = *state;
  cpu_jit_destroy(f->jit);
  arena_destroy(f->arena);
  return 0;
}

/* ---- kernels ---- */

KERNEL_CALLER static void check_sample(struct arena *a, struct kernel_sample *s, kernel_fn *fn, int number) {
  void *args[MAX_KERNEL_ARGS];
  sample_args(s, true, args);
  kernel_eval(&s->kernel, args, s->sizes);
  sample_args(s, false, args);
  fn(args, s->sizes);
  const char *difference = sample_difference(a, s);
  if (difference) fail_msg("kernel %d, %s", number, difference);
}

static void check_samples(struct fixture *f, struct arena *a, struct kernel_sample *s, int n) {
  const struct kernel **kernels = arena_new_array(a, (size_t)n, const struct kernel *);
  kernel_fn **fn = arena_new_array(a, (size_t)n, kernel_fn *);
  for (int i = 0; i < n; i++) kernels[i] = &s[i].kernel;
  if (!cpu_jit_compile(f->jit, kernels, n, fn, &f->diags)) fail_msg("%s", diags_text(&f->diags, false));
  for (int i = 0; i < n; i++) check_sample(a, &s[i], fn[i], i);
}

#define BATCH 50

static void random_kernels(struct fixture *f, enum kernel_kind kind, int count, uint64_t seed) {
  struct rng r = {seed};
  for (int b = 0; b < count; b++) {
    struct arena *a = arena_create();
    struct kernel_sample *s = arena_new_array(a, BATCH, struct kernel_sample);
    for (int i = 0; i < BATCH; i++) random_sample(&r, a, &s[i], kind, MAX_KERNEL_SUMS);
    check_samples(f, a, s, BATCH);
    arena_destroy(a);
  }
}

static int batches = 3; /* or as the first argument says */

static void random_maps(void **state) { random_kernels(*state, KERNEL_MAP, batches, 1); }
static void random_reductions(void **state) { random_kernels(*state, KERNEL_REDUCE, batches, 2); }

static size_t buffer_bytes(const struct kernel_sample *s, int i) {
  return (size_t)(s->buffer[i].elements + 4) * (size_t)dtype_size((enum dtype)s->kernel.args[i].dtype);
}

/* A loop that is reduced over is cut, and all before are gone through row by row; a count of 0: there is nothing. */
static struct segments some_segments(struct rng *r, const struct kernel *k, const int64_t *sizes) {
  int first = k->rank - k->nreduce, cut = first + (int)rng_below(r, k->nreduce);
  struct segments s = {1, 1};
  for (int d = first; d < k->rank; d++)
    if (sizes[d] == 0) return (struct segments){0};
  for (int d = first; d < cut; d++) s.count *= (int)sizes[d];
  s.rows = s.count * sizes[cut];
  s.count *= 1 + (int)rng_below(r, sizes[cut] < 4 ? sizes[cut] : 4);
  return s;
}

/* A reduction in segments: the interpreter against the compiled code in as many pieces as can be, some at once, the
 * last first; and against the whole where the order changes nothing. Outputs may lie over inputs, which the whole
 * needs as they were. */
KERNEL_CALLER static void check_segments(struct fixture *f, struct arena *a, struct kernel_sample *s,
                                         struct segments segments, int *checked) {
  const struct kernel *k = &s->kernel;
  int count = segments.count;
  struct split split;
  void *args[MAX_KERNEL_ARGS];
  kernel_fn *fn[2];
  if (count < 2 || !kernel_split(a, k, &split)) return;
  void *before[MAX_KERNEL_ARGS];
  for (int i = 0; i < k->nargs; i++) before[i] = arena_copy(a, s->buffer[i].data, buffer_bytes(s, i));
  const struct kernel *both[] = {&split.segment, &split.join};
  if (!cpu_jit_compile(f->jit, both, 2, fn, &f->diags)) fail_msg("%s", diags_text(&f->diags, false));
  sample_args(s, true, args);
  kernel_eval_split(k, args, s->sizes, segments);
  sample_args(s, false, args);
  struct step step = {.kernel = k, .sizes = s->sizes, .segments = segments, .traffic = 1 << 20};
  const struct pieces *pieces = cut_segments(a, &step, &split, fn);
  for (int stage = 0; stage < pieces->nstages; stage++)
    for (int end = pieces->count[stage], first; end > 0; end = first) {
      first = end - 1 - (int)rng_below(&rng, end);
      pieces->run(args, pieces->state, stage, first, end);
    }
  const char *difference = sample_difference(a, s);
  if (difference) fail_msg("%d segments, %s", count, difference);
  checked[0]++;
  checked[2] += pieces->count[0] > count || pieces->count[1] > 1;
  if (k->nmapped || dtype_is_float(kernel_acc_dtype(k))) return;
  for (int i = 0; i < k->nargs; i++) memcpy(s->buffer[i].data, before[i], buffer_bytes(s, i));
  sample_args(s, false, args);
  kernel_eval(k, args, s->sizes);
  difference = sample_difference(a, s);
  if (difference) fail_msg("%d segments and one, %s", count, difference);
  ++checked[1];
}

static void random_segments(void **state) {
  struct rng r = {7};
  int checked[3] = {0};
  setenv("DGC_PIECE_COST", "1", 1);
  for (int b = 0; b < 300; b++) {
    struct arena *a = arena_create();
    struct kernel_sample s = {0};
    random_sample(&r, a, &s, KERNEL_REDUCE, MAX_KERNEL_SUMS);
    check_segments(*state, a, &s, some_segments(&r, &s.kernel, s.sizes), checked);
    arena_destroy(a);
  }
  unsetenv("DGC_PIECE_COST");
  print_message("%d in segments, %d of them beside the whole, %d in parts as well\n", checked[0], checked[1],
                checked[2]);
  assert_true(checked[0] >= 50 && checked[1] >= 10 && checked[2] >= 20);
}

static void every_instruction(void **state) {
  for (enum sop op = S_ADD; op <= S_BITCAST; op++) {
    struct arena *a = arena_create();
    struct kernel_sample *s;
    int n = special_samples(a, op, &s);
    check_samples(*state, a, s, n);
    arena_destroy(a);
  }
}

static void functions_agree(void **state) {
  struct arena *a = arena_create();
  struct rng r = {4};
  struct kernel_sample *s;
  int n = function_samples(a, &r, &s);
  check_samples(*state, a, s, n);
  arena_destroy(a);
}

/* ---- compiled once ---- */

static void relu_kernel(struct arena *a, struct kernel *k, double floor_value) {
  *k = (struct kernel){.kind = KERNEL_MAP, .rank = 1, .nargs = 2, .noutputs = 1, .name = "h.relu"};
  k->args[0] = (struct kernel_arg){.dtype = DT_F32, .vector = STRIDE_ONE};
  k->args[1] = (struct kernel_arg){.dtype = DT_F32, .vector = STRIDE_ONE, .output = true};
  k->body = sprog_make(a);
  k->epilogue = sprog_make(a);
  k->result[0] =
      s_binary(&k->body, S_MAX, s_arg(&k->body, 0, DT_F32), s_const(&k->body, DT_F32, floor_value));
  k->hash = sprog_hash(&k->body, STR_HASH_SEED);
}

static void compiled_once(void **state) {
  struct fixture *f = *state;
  struct kernel k[3];
  relu_kernel(f->arena, &k[0], 0);
  relu_kernel(f->arena, &k[1], 0.25);
  relu_kernel(f->arena, &k[2], 0);
  k[1].hash = k[0].hash; /* a collision is no equality */
  const struct kernel *list[] = {&k[0], &k[1], &k[2]};
  kernel_fn *fn[3], *again[3];
  struct cpu_jit_stats stats;
  assert_true(cpu_jit_compile(f->jit, list, 3, fn, &f->diags));
  cpu_jit_stats(f->jit, &stats);
  assert_int_equal(stats.compiled + stats.cached, 2);
  assert_int_equal(stats.reused, 1);
  assert_ptr_equal(fn[0], fn[2]);
  assert_ptr_not_equal(fn[0], fn[1]);
  assert_true(cpu_jit_compile(f->jit, list, 3, again, &f->diags));
  cpu_jit_stats(f->jit, &stats);
  assert_int_equal(stats.compiled + stats.cached, 2);
  assert_int_equal(stats.reused, 4);
  assert_ptr_equal(fn[1], again[1]);

  float in[40], out[41];
  for (int i = 0; i < 40; i++) in[i] = (float)(i - 20);
  out[40] = 7;
  int64_t sizes[] = {40, 1, 1, 0};
  fn[1]((void *[]){in, out}, sizes);
  for (int i = 0; i < 40; i++) assert_true(out[i] == (i > 20 ? in[i] : 0.25f));
  assert_true(out[40] == 7);
}

/* What was foreseen in two calls is compiled together: when the first is there, so is the second. */
KERNEL_CALLER static void foreseen(void **state) {
  enum { COUNT = 12, HALF = COUNT / 2 };
  struct fixture *f = *state;
  struct kernel k[COUNT];
  const struct kernel *list[COUNT];
  kernel_fn *fn[COUNT];
  struct cpu_jit_stats stats;
  for (int i = 0; i < COUNT; i++) {
    relu_kernel(f->arena, &k[i], i + 0.5);
    list[i] = &k[i];
  }
  cpu_jit_foresee(f->jit, list, HALF + 1);
  cpu_jit_foresee(f->jit, list + HALF, HALF); /* one of them again */
  assert_true(cpu_jit_compile(f->jit, list, HALF, fn, &f->diags));
  cpu_jit_stats(f->jit, &stats);
  assert_int_equal(stats.compiled + stats.cached, COUNT);
  assert_int_equal(stats.reused, 0);
  assert_true(cpu_jit_compile(f->jit, list + HALF, HALF, fn + HALF, &f->diags));
  cpu_jit_stats(f->jit, &stats);
  assert_int_equal(stats.compiled + stats.cached, COUNT);
  assert_int_equal(stats.reused, HALF);
  for (int i = 0; i < COUNT; i++) {
    float in[] = {-1, 100}, out[2];
    fn[i]((void *[]){in, out}, (int64_t[]){2, 1, 1, 0});
    assert_true(out[0] == (float)i + 0.5F && out[1] == 100);
  }
}

/* Nobody asks for it: it ends with the JIT. */
static void foreseen_in_vain(void **state) {
  enum { COUNT = 40 };
  struct fixture *f = *state;
  const struct kernel *list[COUNT];
  struct cpu_jit *jit = cpu_jit_create(&f->diags);
  for (int i = 0; i < COUNT; i++) {
    struct kernel *k = arena_new(f->arena, struct kernel);
    relu_kernel(f->arena, k, i + 0.125);
    list[i] = k;
  }
  cpu_jit_foresee(jit, list, COUNT);
  cpu_jit_destroy(jit);
}

/* ---- kernels of one shape ---- */

/* y = x (..(x + 1)..) scale + shift, of many instructions. */
static void long_kernel(struct arena *a, struct kernel *k, float scale, float shift) {
  enum { TIMES = 40 };
  relu_kernel(a, k, 0);
  struct sprog *p = &k->body;
  *p = sprog_make(a);
  sval x = s_arg(p, 0, DT_F32), y = x, one = s_const(p, DT_F32, 1);
  for (int i = 0; i < TIMES; i++) y = s_binary(p, S_MUL, s_binary(p, S_ADD, y, one), x);
  y = s_binary(p, S_MUL, y, s_const(p, DT_F32, (double)scale));
  k->result[0] = s_binary(p, S_ADD, y, s_const(p, DT_F32, (double)shift));
  kernel_settle(k);
  k->hash = sprog_hash(&k->body, STR_HASH_SEED);
}

/* How many objects, and bytes of them, the kernels are; each can be linked without LLVM. */
static int objects_of(struct fixture *f, const struct kernel *kernels, int n, size_t *bytes) {
  struct host host;
  struct request *requests = arena_new_array(f->arena, (size_t)n, struct request);
  assert_true(codegen_host(f->arena, &host, &f->diags));
  host.cache = NULL;
  for (int i = 0; i < n; i++)
    requests[i] = (struct request){&kernels[i], arena_printf(f->arena, "kernel_%d", i)};
  struct codegen *work = codegen_create(&host);
  codegen_add(work, requests, n);
  assert_true(codegen_end(work, &f->diags));
  const struct made *made = codegen_made(work, 0);
  int count = made->count;
  *bytes = 0;
  for (int i = 0; i < count; i++) {
    *bytes += made->code[i].size;
#if defined(__x86_64__) || defined(__aarch64__)
    struct object *o = object_load(made->code[i].data, made->code[i].size);
    assert_non_null(o);
    object_unload(o);
#endif
  }
  codegen_dispose(work);
  return count;
}

KERNEL_CALLER static void one_shape(void **state) {
  enum { SAME = 6, SIZE = 37 };
  struct fixture *f = *state;
  struct kernel k[SAME];
  const struct kernel *list[SAME];
  kernel_fn *fn[SAME];
  float in[SIZE], out[SIZE], expected[SIZE];
  int64_t sizes[] = {SIZE, 1, 1, 0};
  static const float scales[SAME] = {0.5f, 2, -1, INFINITY, NAN, 0x1p-149f};
  for (int i = 0; i < SIZE; i++) in[i] = (float)(i - 18) / 16;
  for (int i = 0; i < SAME; i++) {
    long_kernel(f->arena, &k[i], scales[i], i == 1 ? -0.0f : (float)(10 + i));
    list[i] = &k[i];
  }
  assert_true(cpu_jit_compile(f->jit, list, SAME, fn, &f->diags));
  for (int i = 0; i < SAME; i++) {
    kernel_eval(list[i], (void *[]){in, expected}, sizes);
    fn[i]((void *[]){in, out}, sizes);
    for (int e = 0; e < SIZE; e++)
      assert_true(memcmp(&out[e], &expected[e], sizeof *out) == 0 || (isnan(out[e]) && isnan(expected[e])));
  }
  size_t one, all;
  assert_int_equal(objects_of(f, k, 1, &one), 1);
  assert_int_equal(objects_of(f, k, SAME, &all), 1);
  assert_true(all < 2 * one);
  k[0].args[1].vector = STRIDE_ANY; /* another shape, though its floats are */
  assert_int_equal(objects_of(f, k, SAME, &all), 2);
}

static void tiles_together(void **state) {
  struct fixture *f = *state;
  struct tile t = {.dtype = DT_F32, .rows = 2, .vectors = 1, .lanes = host_vectors().bytes / 4}, u = t;
  u.rows = 3;
  const struct tile_code *two = cpu_jit_tile(f->jit, &t), *three = cpu_jit_tile(f->jit, &u);
  assert_ptr_equal(cpu_jit_tile(f->jit, &t), two);
  assert_ptr_not_equal(two, three);
  assert_null(two->fn);
  assert_true(cpu_jit_finish(f->jit, &f->diags));
  assert_true(two->fn && three->fn && two->fn != three->fn);
  assert_true(cpu_jit_finish(f->jit, &f->diags)); /* nothing is left */
}

/* ---- the cache ---- */

static struct cpu_jit_stats compile_in_new_jit(struct fixture *f, kernel_fn **fn) {
  struct kernel k;
  struct cpu_jit_stats stats;
  relu_kernel(f->arena, &k, 0.5);
  const struct kernel *list[] = {&k};
  struct cpu_jit *jit = cpu_jit_create(&f->diags);
  assert_non_null(jit);
  assert_true(cpu_jit_compile(jit, list, 1, fn, &f->diags));
  float in[] = {1, 0.25f}, out[2];
  (*fn)((void *[]){in, out}, (int64_t[]){2, 1, 1});
  assert_true(out[0] == 1 && out[1] == 0.5f);
  cpu_jit_stats(jit, &stats);
  cpu_jit_destroy(jit);
  return stats;
}

static void set(const char *name, const char *value) {
  if (value)
    setenv(name, value, 1);
  else
    unsetenv(name);
}

/* A cache of its own, until it is left. */
struct own_cache {
  char folder[220];
  const char *before, *off;
};

static void enter_cache(struct fixture *f, struct own_cache *c) {
  const char *before = getenv("XDG_CACHE_HOME"), *off = getenv("DGC_CACHE");
  *c = (struct own_cache){.before = before ? arena_strdup(f->arena, before) : NULL,
                          .off = off ? arena_strdup(f->arena, off) : NULL};
  assert_true(scratch_make());
  snprintf(c->folder, sizeof c->folder, "%s/cache-XXXXXX", scratch_path);
  assert_non_null(mkdtemp(c->folder));
  set("XDG_CACHE_HOME", c->folder);
  set("DGC_CACHE", NULL);
}

static void leave_cache(const struct own_cache *c) {
  set("XDG_CACHE_HOME", c->before);
  set("DGC_CACHE", c->off);
}

/* The one file in the cache below `folder`. */
static void cached_file(const char *folder, char *path, size_t size) {
  char command[600];
  snprintf(command, sizeof command, "ls -d %s/dgc/*", folder);
  FILE *list = popen(command, "r");
  assert_non_null(list);
  assert_non_null(fgets(path, (int)size, list));
  path[strcspn(path, "\n")] = 0;
  pclose(list);
}

static void damage(const char *path, long at) {
  FILE *file = fopen(path, "r+b");
  assert_non_null(file);
  fseek(file, at, at < 0 ? SEEK_END : SEEK_SET);
  int c = getc(file);
  fseek(file, at, at < 0 ? SEEK_END : SEEK_SET);
  putc(c ^ 0x40, file);
  fclose(file);
}

static void cache_on_disk(void **state) {
  struct fixture *f = *state;
  struct own_cache c;
  char path[500], folder[240];
  kernel_fn *fn;
  enter_cache(f, &c);
  assert_int_equal(compile_in_new_jit(f, &fn).compiled, 1);
  assert_int_equal(compile_in_new_jit(f, &fn).cached, 1);
  cached_file(c.folder, path, sizeof path);
  static const long places[] = {0, 9, 17, 25, 40, -1};
  for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) { /* found out, replaced, good again */
    damage(path, places[i]);
    assert_int_equal(compile_in_new_jit(f, &fn).compiled, 1);
    assert_int_equal(compile_in_new_jit(f, &fn).cached, 1);
  }
  assert_int_equal(truncate(path, 100), 0);
  assert_int_equal(compile_in_new_jit(f, &fn).compiled, 1);
  assert_int_equal(chmod(path, 0666), 0); /* anybody could have written it */
  assert_int_equal(compile_in_new_jit(f, &fn).compiled, 1);
  assert_int_equal(compile_in_new_jit(f, &fn).cached, 1);
  snprintf(folder, sizeof folder, "%s/dgc", c.folder);
  assert_int_equal(chmod(folder, 0777), 0);
  assert_int_equal(compile_in_new_jit(f, &fn).compiled, 1);
  assert_int_equal(chmod(folder, 0700), 0);
  set("DGC_CACHE", "off");
  assert_int_equal(compile_in_new_jit(f, &fn).compiled, 1);
  leave_cache(&c);
}

/* ---- objects ---- */

/* The code in a file of the cache: behind a header of four words and the key, whose length is the second one. */
static char *code_of(struct arena *a, const char *path, size_t *size) {
  uint64_t header[4];
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  assert_int_equal(fread(header, 1, sizeof header, file), sizeof header);
  char *code = arena_alloc(a, header[2]);
  fseek(file, (long)header[1], SEEK_CUR);
  assert_int_equal(fread(code, 1, header[2], file), header[2]);
  fclose(file);
  *size = header[2];
  return code;
}

/* A copy with nothing behind it. */
static void load_copy(const char *code, size_t size) {
  char *copy = malloc(size ? size : 1);
  assert_non_null(copy);
  memcpy(copy, code, size);
  object_unload(object_load(copy, size));
  free(copy);
}

/* A kernel from its file in the cache, by object.c alone: most are linked so. */
static void linked_without_llvm(void **state) {
  struct fixture *f = *state;
  struct own_cache c;
  char path[500];
  size_t size;
#if !defined(__x86_64__) && !defined(__aarch64__)
  skip();
#endif
  enter_cache(f, &c);
  struct kernel_sample s = {0};
  struct rng r = {11};
  struct cpu_jit *jit = cpu_jit_create(&f->diags);
  random_sample(&r, f->arena, &s, KERNEL_MAP, MAX_KERNEL_SUMS);
  const struct kernel *list[] = {&s.kernel};
  kernel_fn *fn;
  assert_true(cpu_jit_compile(jit, list, 1, &fn, &f->diags));
  cached_file(c.folder, path, sizeof path);
  char *code = code_of(f->arena, path, &size), name[64];
  struct object *o = object_load(code, size);
  assert_non_null(o);
  snprintf(name, sizeof name, "kernel_%016" PRIx64 "_0", s.kernel.hash);
  void *address = object_find(o, name);
  assert_non_null(address);
  assert_null(object_find(o, "kernel"));
  memcpy(&fn, &address, sizeof fn);
  check_sample(f->arena, &s, fn, 0);
  object_unload(o);
  cpu_jit_destroy(jit);
  leave_cache(&c);
}

static void damaged_objects(void **state) {
  struct fixture *f = *state;
  struct own_cache c;
  char path[500];
  kernel_fn *fn;
  size_t size;
  enter_cache(f, &c);
  compile_in_new_jit(f, &fn);
  cached_file(c.folder, path, sizeof path);
  char *code = code_of(f->arena, path, &size);
  for (size_t cut = 0; cut <= size; cut += 7) load_copy(code, cut);
  for (int i = 0; i < 5000; i++) {
    char *copy = arena_copy(f->arena, code, size);
    for (int n = rng_below(&rng, 4); n >= 0; n--)
      copy[rng_below(&rng, (int)size)] ^= (char)(1 << rng_below(&rng, 8));
    if (rng_chance(&rng, 20)) memset(copy + rng_below(&rng, (int)size - 8), -1, 8);
    load_copy(copy, size);
  }
  leave_cache(&c);
}

/* What calls fmod is linked by LLVM, also when it comes from the cache. */
KERNEL_CALLER static void calls_of_the_library(void **state) {
  struct fixture *f = *state;
  struct kernel k = {.kind = KERNEL_MAP, .rank = 1, .nargs = 3, .noutputs = 1, .name = "rem"};
  for (int i = 0; i < 3; i++) k.args[i] = (struct kernel_arg){DT_F64, STRIDE_ONE, i == 2};
  k.body = sprog_make(f->arena);
  k.result[0] = s_binary(&k.body, S_REM, s_arg(&k.body, 0, DT_F64), s_arg(&k.body, 1, DT_F64));
  kernel_settle(&k);
  const struct kernel *list[] = {&k};
  for (int i = 0; i < 2; i++) {
    double x[] = {5.5, -7}, y[] = {2, 4}, out[2];
    kernel_fn *fn;
    struct cpu_jit *jit = cpu_jit_create(&f->diags);
    assert_true(cpu_jit_compile(jit, list, 1, &fn, &f->diags));
    fn((void *[]){x, y, out}, (int64_t[]){2, 1, 1, 1});
    assert_true(out[0] == 1.5 && out[1] == -3);
    cpu_jit_destroy(jit);
  }
}

static void text_is_stable(void **state) {
  struct fixture *f = *state;
  struct kernel k;
  relu_kernel(f->arena, &k, 0);
  const char *one = cpu_kernel_llvm(f->arena, &k, NULL, &f->diags),
             *two = cpu_kernel_llvm(f->arena, &k, NULL, &f->diags);
  assert_string_equal(one, two);
  assert_non_null(strstr(one, "define void @h.relu(ptr %args, ptr %sizes)"));
  assert_null(strstr(one, "target triple"));
  assert_non_null(
      strstr(cpu_kernel_llvm(f->arena, &k, "x86_64-pc-linux-gnu", &f->diags), "x86_64-pc-linux-gnu"));
}

int main(int argc, char **argv) {
  if (argc > 1) batches = atoi(argv[1]);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(random_maps, setup, teardown),
      cmocka_unit_test_setup_teardown(random_reductions, setup, teardown),
      cmocka_unit_test_setup_teardown(random_segments, setup, teardown),
      cmocka_unit_test_setup_teardown(every_instruction, setup, teardown),
      cmocka_unit_test_setup_teardown(functions_agree, setup, teardown),
      cmocka_unit_test_setup_teardown(compiled_once, setup, teardown),
      cmocka_unit_test_setup_teardown(foreseen, setup, teardown),
      cmocka_unit_test_setup_teardown(foreseen_in_vain, setup, teardown),
      cmocka_unit_test_setup_teardown(one_shape, setup, teardown),
      cmocka_unit_test_setup_teardown(tiles_together, setup, teardown),
      cmocka_unit_test_setup_teardown(cache_on_disk, setup, teardown),
      cmocka_unit_test_setup_teardown(linked_without_llvm, setup, teardown),
      cmocka_unit_test_setup_teardown(damaged_objects, setup, teardown),
      cmocka_unit_test_setup_teardown(calls_of_the_library, setup, teardown),
      cmocka_unit_test_setup_teardown(text_is_stable, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
