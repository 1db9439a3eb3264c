/* SPDX-License-Identifier: Apache-2.0 */
/* What this machine reaches: operations in f32, by independent chains of multiply-adds in the widest vectors there are;
 * products of bfloat16 that are added up in f32, by its tiles (AMX) or dot products (AVX-512 BF16), where it has them;
 * bytes, by arrays that no cache holds. */
#include "runtime/devices.h"

#include "base/clock.h"
#include "kernels/cpu/amx.h"
#include "kernels/cpu/amx_tiles.h"
#include "runtime/workers.h"

#include <stdlib.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

/* Enough chains to cover the latency of two units. */
enum { CHAINS = 12, ROUNDS = 1 << 16 };
static _Thread_local volatile float sink; /* so that nothing is left out */

#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 12")
#endif

#if defined(__x86_64__)
#define LOOP(NAME, TARGET, VECTOR, SET, FMA, FIRST)                          \
  __attribute__((target(TARGET))) static double NAME(void) {                 \
    VECTOR acc[CHAINS], x = SET(0.999f), y = SET(0.001f);                    \
    for (int i = 0; i < CHAINS; i++) acc[i] = SET((float)i);                 \
    for (int r = 0; r < ROUNDS; r++) {                                       \
      UNROLL for (int i = 0; i < CHAINS; i++) acc[i] = FMA(acc[i], x, y);    \
    }                                                                        \
    float sum = 0;                                                           \
    for (int i = 0; i < CHAINS; i++) sum += FIRST(acc[i]);                   \
    sink = sum;                                                              \
    return 2.0 * ROUNDS * CHAINS * (double)(sizeof(VECTOR) / sizeof(float)); \
  }
LOOP(loop_avx512, "avx512f", __m512, _mm512_set1_ps, _mm512_fmadd_ps, _mm512_cvtss_f32)
LOOP(loop_avx2, "avx2,fma", __m256, _mm256_set1_ps, _mm256_fmadd_ps, _mm256_cvtss_f32)
#endif

static double loop_plain(void) {
  float acc[CHAINS * 4];
  for (int i = 0; i < CHAINS * 4; i++) acc[i] = (float)i;
  for (int r = 0; r < ROUNDS; r++)
    for (int i = 0; i < CHAINS * 4; i++) acc[i] = acc[i] * 0.999f + 0.001f;
  float sum = 0;
  for (int i = 0; i < CHAINS * 4; i++) sum += acc[i];
  sink = sum;
  return 2.0 * ROUNDS * CHAINS * 4;
}

static double loop(void) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f")) return loop_avx512();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return loop_avx2();
#endif
  return loop_plain();
}

/* On a line of its own per thread. */
struct best {
  _Alignas(64) double rate;
};

/* Each thread keeps its own best, so that one that was interrupted does not count. `run` says how many operations it
 * has done. */
static void keep_best(struct best *best, double (*run)(void)) {
  for (int i = 0; i < 8; i++) {
    double begin = clock_seconds(), rate = run() / (clock_seconds() - begin);
    if (rate > best->rate) best->rate = rate;
  }
}

static void run_loop(void *arg, int worker) { keep_best(&((struct best *)arg)[worker], loop); }

/* All threads do this again and again for 0.1 s; the sum of what each reached at best. */
static double best_rates(int threads, work_fn *fn) {
  enum { MAX_THREADS = 256 };
  struct best best[MAX_THREADS] = {{0}};
  if (threads < 1) threads = 1;
  if (threads > MAX_THREADS) threads = MAX_THREADS;
  struct arena *a = arena_create();
  struct diags d;
  diags_init(&d, a);
  struct workers *w = workers_create(threads, &d);
  for (double until = clock_seconds() + 0.1; w && clock_seconds() < until;) workers_run(w, fn, best);
  workers_destroy(w);
  arena_destroy(a);
  double sum = 0;
  for (int i = 0; i < threads; i++) sum += best[i].rate;
  return sum;
}

double machine_peak(int threads) { return best_rates(threads, run_loop); }

/* --- bfloat16 --- */

#if defined(__x86_64__)
static bool has_dot_products(void) {
  unsigned a, b, c, d;
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512f") && __get_cpuid_count(7, 1, &a, &b, &c, &d) && a >> 5 & 1;
}

/* Four sums of 16 x 16, each of two factors with 32 products for each element. */
AMX static double loop_tiles(void) {
  float out[LANES * LANES];
  begin_tiles();
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_zero(4);
  _tile_zero(5);
  _tile_zero(6);
  _tile_zero(7);
  enum { TILE_ROUNDS = ROUNDS / 16 };
  for (int r = 0; r < TILE_ROUNDS; r++) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, out, LANES * sizeof *out);
  _tile_release();
  sink = out[0];
  return 2.0 * TILE_ROUNDS * 4 * 16 * 16 * 32;
}

__attribute__((target("avx512f,avx512bf16"))) static double loop_dot_products(void) {
  __m512 acc[CHAINS];
  __m512bh x = (__m512bh)_mm512_set1_epi32(0x3f803f80), y = (__m512bh)_mm512_set1_epi32(0x3a803a80);
  for (int i = 0; i < CHAINS; i++) acc[i] = _mm512_set1_ps((float)i);
  for (int r = 0; r < ROUNDS; r++) {
    UNROLL for (int i = 0; i < CHAINS; i++) acc[i] = _mm512_dpbf16_ps(acc[i], x, y);
  }
  float sum = 0;
  for (int i = 0; i < CHAINS; i++) sum += _mm512_cvtss_f32(acc[i]);
  sink = sum;
  return 2.0 * ROUNDS * CHAINS * 32;
}

static void run_tiles(void *arg, int worker) { keep_best(&((struct best *)arg)[worker], loop_tiles); }
static void run_dot_products(void *arg, int worker) {
  keep_best(&((struct best *)arg)[worker], loop_dot_products);
}

double machine_bf16_peak(int threads) {
  if (amx_can()) return best_rates(threads, run_tiles);
  return has_dot_products() ? best_rates(threads, run_dot_products) : 0;
}
#else
double machine_bf16_peak(int threads) {
  (void)threads;
  return 0;
}
#endif

/* --- memory --- */

enum { LENGTH = 4 << 20, PASSES = 6 }; /* floats of an array: 16 MB */

static void triad(float *restrict to, const float *restrict a, const float *restrict b) {
  for (int i = 0; i < LENGTH; i++) to[i] = a[i] + 0.5f * b[i];
}

static void run_triad(void *arg, int worker) {
  struct best *best = &((struct best *)arg)[worker];
  float *x = calloc(3 * (size_t)LENGTH, sizeof *x);
  if (!x) return;
  for (size_t i = 0; i < 3 * (size_t)LENGTH; i += 1024) x[i] = 1; /* every page is there */
  for (int i = 0; i < PASSES; i++) {
    double begin = clock_seconds();
    triad(x, x + LENGTH, x + 2 * LENGTH);
    double rate = 3.0 * LENGTH * sizeof *x / (clock_seconds() - begin);
    if (rate > best->rate) best->rate = rate;
  }
  sink = x[LENGTH / 2];
  free(x);
}

double machine_bandwidth(int threads) { return best_rates(threads, run_triad); }
