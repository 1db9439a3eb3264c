/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products of f32 by code of our own against the library's: bench_products [ROUNDS [WORD [MEGABYTES]]], of all
 * shapes or of those whose description has the word, or the one that it is ("1x784x512x1024 ta"). With MEGABYTES there
 * are as many copies of the operands as take so much memory, and each call takes the next one, so that what a cache
 * cannot hold comes from memory. Both on this thread, one after the other in each round, as other work comes and goes:
 * of each shape the least times, the rate that they are, and our time over the library's: the least ones', and the
 * median of the rounds'. */
#include "base/arena.h"
#include "base/clock.h"
#include "runtime/cpu/gemm.h"
#include "runtime/cpu/onednn.h"
#include "runtime/host_memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct shape {
  int64_t batch, m, n, k;
  bool ta, tb;
  const char *what;
};

static const struct shape shapes[] = {
    {1, 1024, 512, 784, 0, 0, "perceptron 1024, first layer"},
    {1, 784, 512, 1024, 1, 0, "its gradient"},
    {1, 1024, 512, 512, 0, 0, "second layer"},
    {1, 1024, 512, 512, 0, 1, "what flows back"},
    {1, 512, 512, 1024, 1, 0, "its gradient"},
    {1, 128, 512, 784, 0, 0, "perceptron 128, first layer"},
    {1, 784, 512, 128, 1, 0, "its gradient"},
    {1, 128, 512, 512, 0, 1, "what flows back"},
    {1, 1024, 128, 128, 0, 0, "transformer, projection"},
    {1, 128, 128, 1024, 1, 0, "its gradient"},
    {1, 1024, 512, 128, 0, 0, "transformer, first of the perceptron"},
    {1, 1024, 128, 512, 0, 0, "second"},
    {1, 512, 128, 1024, 1, 0, "its gradient"},
    {1, 1024, 128, 512, 0, 1, "what flows back"},
    {1, 512, 512, 128, 0, 1, "transposed"},
    {1, 1024, 1024, 1024, 0, 0, "square"},
    {1, 64, 512, 256, 0, 0, "LSTM, a step"},
    {1, 128, 512, 160, 0, 0, "LSTM, a step of 128 rows"},
    {1, 128, 128, 512, 0, 1, "LSTM, what flows back"},
    {1, 160, 512, 4096, 1, 0, "LSTM, gradient of 64 steps"},
    {1, 160, 512, 8192, 1, 0, "LSTM, gradient of all steps"},
    {1, 32, 32, 32, 0, 0, "small"},
    {1, 64, 64, 64, 0, 0, "small"},
    {1, 128, 10, 512, 0, 0, "digits, last layer"},
    {1, 512, 10, 128, 1, 0, "its gradient"},
    {1, 128, 512, 10, 0, 1, "what flows back"},
    {1, 1024, 10, 512, 0, 0, "narrow"},
    {1, 512, 10, 1024, 1, 0, "narrow"},
    {1, 128, 64, 64, 0, 0, "small"},
    {1, 1024, 64, 64, 0, 0, "small"},
    {1, 1024, 128, 32, 0, 1, "small"},
    {1, 128, 32, 32, 0, 1, "small"},
    {1, 1, 64, 64, 0, 0, "small"},
    {1, 1024, 10, 128, 0, 0, "narrow"},
    {1, 128, 4, 8, 0, 0, "small"},
    {1, 4096, 16, 64, 0, 0, "narrow"},
    {1, 1024, 1, 512, 0, 0, "one column"},
    {1, 1, 512, 784, 0, 0, "one row"},
    {1, 8, 512, 784, 0, 0, "few rows"},
    {1, 32, 1024, 1024, 0, 0, "few rows, those of B a page apart"},
    {1, 64, 3072, 768, 0, 0, "few rows, those of B three pages apart"},
    {1, 64, 512, 160, 0, 0, "few rows, those of B half a page apart"},
    {1, 16, 16, 4096, 1, 0, "long"},
    {1, 1024, 3072, 768, 0, 0, "GPT-2, first of the perceptron"},
    {1, 768, 3072, 1024, 1, 0, "GPT-2, its gradient"},
    {1, 1024, 768, 3072, 0, 1, "GPT-2, what flows back"},
    {1, 1024, 768, 3072, 0, 0, "GPT-2, second"},
    {1, 3072, 768, 1024, 1, 0, "GPT-2, its gradient"},
    {1, 1024, 3072, 768, 0, 1, "GPT-2, what flows back"},
    {1, 1024, 768, 768, 0, 0, "GPT-2, projection"},
    {1, 1024, 50257, 768, 0, 1, "GPT-2, logits by the table"},
    {1, 50257, 768, 1024, 1, 0, "GPT-2, its gradient"},
    {1, 1024, 768, 50257, 0, 0, "GPT-2, what flows back"},
    {1, 1024, 50257, 768, 0, 0, "GPT-2, logits by weights"},
    {1, 768, 50257, 1024, 1, 0, "GPT-2, their gradient"},
    {1, 65536, 64, 32, 0, 0, "MobileNet, channels of 32 x 32"},
    {1, 32, 64, 65536, 1, 0, "MobileNet, their gradient"},
    {1, 16384, 128, 128, 0, 0, "MobileNet, channels of 16 x 16"},
    {1, 128, 128, 16384, 1, 0, "MobileNet, their gradient"},
    {1, 4096, 256, 256, 0, 0, "MobileNet, channels of 8 x 8"},
    {64, 64, 64, 32, 0, 1, "attention, scores"},
    {64, 64, 32, 64, 0, 0, "attention, values"},
};
enum { NSHAPES = sizeof shapes / sizeof *shapes, MOST_ROUNDS = 100000 };

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static float *numbers(int64_t count) {
  float *x = host_alloc(((size_t)count * sizeof *x + 127) / 64 * 64);
  if (!x) exit(3);
  for (int64_t i = 0; i < count; i++) x[i] = (float)(i * 37 % 101 - 50) / 50;
  return x;
}

/* How often in a round, so that a call is not shorter than what reading the clock costs. */
static int times_of(const struct shape *s) {
  double flops = 2.0 * (double)(s->batch * s->m * s->n * s->k);
  return flops < 1e6 ? (int)(1e6 / flops) + 1 : 1;
}

/* oneDNN has a plain call, and primitives made for one shape: what is the faster of them. */
struct library {
  dnnl_primitive_t primitive; /* NULL: the call */
  dnnl_engine_t engine;
  dnnl_stream_t stream;
  dnnl_memory_t a, b, c, scratch;
};

enum { MOST_COPIES = 4096 };

struct pair {
  const struct shape *shape;
  const struct gemm *own;
  struct library library;
  const float *a, *b;
  float *c[2];
  const float *all_a[MOST_COPIES], *all_b[MOST_COPIES];
  float *all_c[MOST_COPIES][2];
  int copies, now;
};

static void take_copy(struct pair *p) {
  p->now = (p->now + 1) % p->copies;
  p->a = p->all_a[p->now], p->b = p->all_b[p->now];
  for (int i = 0; i < 2; i++) p->c[i] = p->all_c[p->now][i];
}

static void done(dnnl_status_t status) {
  if (status != dnnl_success) exit(3);
}

#if DNNL_VERSION_MAJOR == 2

/* Measured with oneDNN 2.6 on AVX-512: 1.02 to 2.6 times as fast as the plain call within these bounds. */
static bool wants_primitive(const struct shape *s) { return s->m >= 32 && (s->tb || (!s->ta && s->n <= 64)); }

static void describe(dnnl_memory_desc_t *d, int64_t rows, int64_t columns, bool transposed) {
  dnnl_dims_t dims = {rows, columns}, strides = {transposed ? 1 : columns, transposed ? rows : 1};
  done(dnnl_memory_desc_init_by_strides(d, 2, dims, dnnl_f32, strides));
}

static void make_primitive(struct library *l, const struct shape *s) {
  dnnl_memory_desc_t a, b, c;
  dnnl_matmul_desc_t desc;
  dnnl_primitive_attr_t attr;
  dnnl_primitive_desc_t made;
  describe(&a, s->m, s->k, s->ta), describe(&b, s->k, s->n, s->tb), describe(&c, s->m, s->n, false);
  done(dnnl_matmul_desc_init(&desc, &a, &b, NULL, &c));
  done(dnnl_engine_create(&l->engine, dnnl_cpu, 0));
  done(dnnl_stream_create(&l->stream, l->engine, dnnl_stream_default_flags));
  done(dnnl_primitive_attr_create(&attr));
  done(dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user));
  done(dnnl_primitive_desc_create(&made, &desc, attr, l->engine, NULL));
  done(dnnl_primitive_create(&l->primitive, made));
  const dnnl_memory_desc_t *scratch = dnnl_primitive_desc_query_md(made, dnnl_query_scratchpad_md, 0);
  done(dnnl_memory_create(&l->a, &a, l->engine, DNNL_MEMORY_NONE));
  done(dnnl_memory_create(&l->b, &b, l->engine, DNNL_MEMORY_NONE));
  done(dnnl_memory_create(&l->c, &c, l->engine, DNNL_MEMORY_NONE));
  done(dnnl_memory_create(&l->scratch, scratch, l->engine, DNNL_MEMORY_ALLOCATE));
  dnnl_primitive_desc_destroy(made);
  dnnl_primitive_attr_destroy(attr);
}

#else

static bool wants_primitive(const struct shape *s) { return s == NULL; }
static void make_primitive(struct library *l, const struct shape *s) { (void)l, (void)s; }

#endif

static void destroy_library(struct library *l) {
  if (!l->primitive) return;
  dnnl_memory_t all[] = {l->a, l->b, l->c, l->scratch};
  for (int i = 0; i < 4; i++) dnnl_memory_destroy(all[i]);
  dnnl_primitive_destroy(l->primitive);
  dnnl_stream_destroy(l->stream);
  dnnl_engine_destroy(l->engine);
}

static void run_own(const struct pair *p) {
  struct gemm_block all = {0};
  gemm_units(p->own, &all.bottom, &all.right);
  for (; all.batch < p->shape->batch; all.batch++) gemm_run(p->own, &all, p->a, p->b, p->c[0]);
}

static void run_primitive(const struct library *l, const float *a, const float *b, float *c) {
  const dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, l->a},
                                  {DNNL_ARG_WEIGHTS, l->b},
                                  {DNNL_ARG_DST, l->c},
                                  {DNNL_ARG_SCRATCHPAD, l->scratch}};
  if (!onednn_data(l->a, a) || !onednn_data(l->b, b) || !onednn_data(l->c, c)) exit(3);
  done(dnnl_primitive_execute(l->primitive, l->stream, 4, args));
}

static void run_library(const struct pair *p) {
  const struct shape *s = p->shape;
  for (int64_t i = 0; i < s->batch; i++) {
    const float *a = p->a + i * s->m * s->k, *b = p->b + i * s->k * s->n;
    float *c = p->c[1] + i * s->m * s->n;
    if (p->library.primitive)
      run_primitive(&p->library, a, b, c);
    else
      done(dnnl_sgemm(s->ta ? 'T' : 'N', s->tb ? 'T' : 'N', s->m, s->n, s->k, 1.0f, a, s->ta ? s->m : s->k, b,
                      s->tb ? s->k : s->n, 0.0f, c, s->n));
  }
}

static double time_of(struct pair *p, void (*run)(const struct pair *), int times) {
  double start = clock_seconds();
  for (int i = 0; i < times; i++) take_copy(p), run(p);
  return (clock_seconds() - start) / times;
}

enum { TEXT = 64 };

static void put_shape(char *text, const struct shape *s) {
  snprintf(text, TEXT, "%lldx%lldx%lldx%lld%s%s", (long long)s->batch, (long long)s->m, (long long)s->n,
           (long long)s->k, s->ta ? " ta" : "", s->tb ? " tb" : "");
}

/* Its description has the word, or it is that shape. */
static bool is_meant(const struct shape *s, const char *word) {
  char text[TEXT];
  put_shape(text, s);
  return strstr(s->what, word) || strcmp(text, word) == 0;
}

static void measure(struct cpu_jit *jit, struct arena *a, const struct shape *s, int rounds, int64_t bytes,
                    struct diags *d) {
  struct product size = {DT_F32, s->batch, s->m, s->n, s->k, s->ta, s->tb, false, false};
  static struct pair p;
  p = (struct pair){.shape = s, .own = gemm_create(jit, a, &size, NULL, false)};
  if (wants_primitive(s)) make_primitive(&p.library, s);
  if (!cpu_jit_finish(jit, d)) exit(3);
  int64_t each = 4 * s->batch * (s->m * s->k + s->k * s->n + 2 * s->m * s->n);
  do {
    int n = p.copies++;
    p.all_a[n] = numbers(s->batch * s->m * s->k), p.all_b[n] = numbers(s->batch * s->k * s->n);
    for (int i = 0; i < 2; i++) p.all_c[n][i] = numbers(s->batch * s->m * s->n);
  } while (p.copies < MOST_COPIES && (p.copies + 1) * each <= bytes);
  take_copy(&p);
  double *own = arena_new_array(a, (size_t)rounds, double),
         *library = arena_new_array(a, (size_t)rounds, double);
  double *ratio = arena_new_array(a, (size_t)rounds, double);
  run_own(&p), run_library(&p);
  for (int i = 0; i < rounds; i++) {
    own[i] = time_of(&p, run_own, times_of(s));
    library[i] = time_of(&p, run_library, times_of(s));
    ratio[i] = own[i] / library[i];
  }
  qsort(own, (size_t)rounds, sizeof *own, compare);
  qsort(library, (size_t)rounds, sizeof *library, compare);
  qsort(ratio, (size_t)rounds, sizeof *ratio, compare);
  double giga = 2e-9 * (double)(s->batch * s->m * s->n * s->k);
  char text[TEXT];
  put_shape(text, s);
  printf("%-22s %9.1f %9.1f %7.1f %7.1f %7.2f %7.2f  %s\n", text, 1e6 * own[0], 1e6 * library[0],
         giga / own[0], giga / library[0], own[0] / library[0], ratio[rounds / 2], s->what);
  destroy_library(&p.library);
  for (int n = 0; n < p.copies; n++) {
    host_free((void *)(uintptr_t)p.all_a[n]), host_free((void *)(uintptr_t)p.all_b[n]);
    host_free(p.all_c[n][0]), host_free(p.all_c[n][1]);
  }
}

int main(int argc, char **argv) {
  struct arena *a = arena_create();
  struct diags d;
  diags_init(&d, a);
  int rounds = argc > 1 ? atoi(argv[1]) : 200;
  int64_t bytes = argc > 3 ? INT64_C(1000000) * atoi(argv[3]) : 0;
  struct cpu_jit *jit = cpu_jit_create(&d);
  if (!jit || !gemm_can() || rounds < 1 || rounds > MOST_ROUNDS) return 3;
  onednn_use_one_thread();
  printf("%-22s %9s %9s %7s %7s %7s %7s\n", "shape", "us, own", "library", "GF/s", "library", "least",
         "median");
  for (int i = 0; i < NSHAPES; i++)
    if (argc < 3 || is_meant(&shapes[i], argv[2])) measure(jit, a, &shapes[i], rounds, bytes, &d);
  cpu_jit_destroy(jit);
  arena_destroy(a);
}
