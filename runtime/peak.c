/* What this machine reaches: operations in f32, by independent chains of multiply-adds in the widest vectors there are;
 * bytes, by arrays that no cache holds. */
#include "runtime/devices.h"

#include "base/clock.h"
#include "runtime/workers.h"

#include <stdlib.h>

#if defined(__x86_64__)
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

/* Each thread keeps its own best, so that one that was interrupted does not count. */
static void run_loop(void *arg, int worker) {
  struct best *best = &((struct best *)arg)[worker];
  for (int i = 0; i < 8; i++) {
    double begin = clock_seconds(), rate = loop() / (clock_seconds() - begin);
    if (rate > best->rate) best->rate = rate;
  }
}

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
