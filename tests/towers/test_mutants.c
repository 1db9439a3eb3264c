/* SPDX-License-Identifier: Apache-2.0 */
/* Nothing that the certificate accepts does harm: the text of the placed graphs of every sample, and of two models of
 * its own, under every strategy on two and three devices, with one thing changed (mutants.def). What the reader, the
 * verifier and the certificate let pass is computed beside the graph that the passes made, on three inputs for two
 * steps: all results and all copies of all variables must be equal, to the bit where the certificate promises bits (not
 * around the ring, not with NCCL).
 * That the passes' graph is the source's is the numeric claim of the certificate, asked for too where there is time.
 *
 * TEST_MUTANTS=N tries one mutant of N (1000; 1: all of them), TEST_PART=K those whose number leaves K: by N runs all
 * are tried. TEST_SEED draws others where there are many. */
#include "ir/certify/certify.h"
#include "ir/ops/op_id.h"
#include "passes/pass.h"
#include "tests/support/fixture.h"
#include "tests/towers/matrix.h"
#include "tests/towers/mutants.h"
#include "tests/towers/outcome.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* What no sample has: variables and values that each tower has for itself, joined as they are read; aggregates. */
static const char apart[] =
    "use nn\nmodel apart {\n input x : f32[B,3]\n input y : f32[B]\n"
    " state sum_of : f32[3] = 7 aggregation(sum) synchronization(on_read)\n"
    " state count : i64 = 0 aggregation(sum) synchronization(on_read)\n"
    " state middle : f32 = 2 aggregation(mean) synchronization(on_read)\n"
    " state first : f32 = 1 aggregation(only_first_replica) synchronization(on_read)\n"
    " state seen : f32 = 0 aggregation(mean)\n state most : f32 = 0 aggregation(only_first_replica)\n"
    " state spread : f32 = 0 aggregation(mean)\n state steps : i64 = 0 aggregation(sum)\n state all : f32[3] "
    "= 0\n"
    " h = nn.batch_norm(nn.dense(x, units = 4, activation = tanh))\n"
    " h = nn.batch_norm(h, synchronize = false)\n"
    " if training { h = h * (1 + all_reduce(local(max(h, axis = 0)), \"mean\")) }\n"
    " guess = squeeze(nn.dense(h, units = 1), 1)\n loss = squared_error(guess, y)\n"
    " sum_of <- 0.5 * sum_of + sum(x, axis = 0)\n count += cast(tower_id(), i64) + 1\n"
    " middle <- mean(y) + 0.25 * middle\n first <- max(y)\n seen <- mean(x) + 0.5 * seen\n"
    " most <- max(x)\n spread <- moments(h)[1]\n steps += 1\n all <- mean(x, axis = 0) + 0.5 * all\n"
    " train mean(loss) with momentum(rate = 0.1, mu = 0.9)\n"
    " metric error = mean(abs(guess - y))\n metric kept = sum_of[0] + middle\n predict value = guess\n}\n";

/* Loops in loops: weights read as they are and transposed, made before the loop, gone over, from their end, too. */
static const char loops[] =
    "use nn\nmodel loops {\n input x : f32[B,3,2]\n input y : f32[B,2]\n var u : f32[2,2] = uniform()\n"
    " var w : f32[2,2] = uniform()\n var v : f32[3,2,2] = uniform()\n state seen : f32 = 0\n"
    " h = broadcast(cast(0.0, f32), [B, 2])\n"
    " ys = scan h over t in x {\n  h = tanh(t @ transpose(u) + h @ transpose(w) + h @ (w * 0.5))\n"
    "  g = h\n  scan(axis = 0) g over m in v { g = sigmoid(g @ m + t) }\n  return g\n }\n"
    " g = ys[:, -1]\n scan(axis = 0, reverse = true) g over m in v { g = sigmoid(g @ m) + g @ w }\n"
    " loss = squared_error(g, y) + h * y\n seen <- mean(h)\n"
    " train mean(loss) with momentum(rate = 0.1, mu = 0.9)\n metric error = mean(abs(g - y))\n"
    " predict value = g\n}\n";
static const char *const own[] = {apart, loops};
enum { OWN = sizeof own / sizeof *own };

#define W(i, devices) "/job:worker/task:" #i "/" devices
#define PS(i)         "/job:ps/task:" #i "/cpu:0"
#define TWO           W(0, "cpu:0") "," W(1, "cpu:0")
#define THREE         W(0, "cpu:0-1") "," W(1, "cpu:0")

static const struct setting {
  const char *strategy, *devices;
  int towers;
  struct config config;
} settings[] = {
    {"one_device", "cpu:0", 2, {0}},
    {"one_device", "cpu:0", 3, {0}},
    {"replicate", "cpu:0-1", 2, {.uneven = true}},
    {"replicate", "cpu:1-3", 3, {.uneven = true}},
    {"round_robin", "cpu:0-1", 2, {0}},
    {"round_robin", "cpu:0-2", 3, {.balance = "size"}},
    {"central_storage", "cpu:0-1", 2, {0}},
    {"central_storage", "cpu:0-2", 3, {.parameter_device = "/cpu:1"}},
    {"mirrored", "cpu:0-1", 2, {0}},
    {"mirrored", "cpu:0-2", 3, {0}},
    {"multi_worker_mirrored", TWO, 2, {0}},
    {"multi_worker_mirrored", THREE, 3, {.packs = 2}},
    {"parameter_server", TWO "," PS(0), 2, {0}},
    {"parameter_server", THREE "," PS(0) "," PS(1), 3, {.min_part_bytes = 16}},
    {"parameter_server", TWO "," PS(0) "," PS(1), 2, {.asynchronous = true, .min_part_bytes = 64}},
    {"parameter_server", THREE "," PS(0), 3, {.asynchronous = true, .staleness = 1}},
    {"mirrored", "cpu:0-1", 3, {.cross_device = "hierarchical_copy"}},
    {"mirrored", "cpu:0-2", 3, {.cross_device = "ring"}},
    {"mirrored", "cpu:0-1", 2, {.packs = 2}},
    {"mirrored", "gpu:0-2", 3, {.cross_device = "nccl"}},
    {"replicate", "cpu:0-2", 3, {.uneven = true, .loss_scaling = "per_tower"}},
};
enum { NSETTINGS = sizeof settings / sizeof *settings, ROWS = 7 };

enum verdict { BY_READER, BY_VERIFIER, BY_CERTIFICATE, HARMLESS, HARMFUL, VERDICTS };

/* A placed graph, what it does, and what became of all mutants so far. */
struct subject {
  struct arena *arena;
  const char *name;
  struct graph *source, *placed;
  bool bits; /* are promised */
  struct bank narrow, wide;
  struct outcome want, want_wide;
  uint64_t count[MUTANT_KINDS][VERDICTS];
};

static enum verdict judge(struct subject *s, struct arena *a, const struct mutant *m, const char **why) {
  struct diags d;
  struct certificate c;
  diags_init(&d, a);
  struct graph *g = graph_parse(a, source_make(a, "mutant", m->text, m->len), &d);
  if (!g) return BY_READER;
  if (g->stage != STAGE_PLACED || !graph_verify(g, "read", &d)) return BY_VERIFIER;
  if (!graph_certify(a, s->source, g, "read", &d, &c)) return BY_CERTIFICATE;
  struct outcome have = outcome_of(a, &s->narrow, g);
  *why = outcome_difference(a, &s->narrow, &s->want, &have);
  if (*why && !s->bits) {
    have = outcome_of(a, &s->wide, g);
    *why = outcome_difference(a, &s->wide, &s->want_wide, &have);
  }
  return *why ? HARMFUL : HARMLESS;
}

static void try_mutant(void *user, const struct mutant *m) {
  struct subject *s = user;
  struct arena *a = arena_create();
  const char *why = NULL;
  enum verdict v = judge(s, a, m, &why);
  if (v == HARMFUL && s->count[m->kind][HARMFUL] < 20)
    print_error("%s: %s, accepted, and %s\n%s\n=>\n%s\n\n", s->name, mutant_kinds[m->kind], why, m->before,
                m->after);
  s->count[m->kind][v]++;
  arena_destroy(a);
}

static bool promises_bits(const struct setting *l) {
  const char *how = l->config.cross_device;
  return !how || (strcmp(how, "ring") != 0 && strcmp(how, "nccl") != 0);
}

static bool begin(struct subject *s, const struct graph *model, const struct setting *l, bool numeric) {
  struct diags d;
  struct arena *a = s->arena;
  diags_init(&d, a);
  struct graph *g = arena_copy(a, model, sizeof *model);
  g->config = l->config;
  g->config.batch = ROWS;
  g->config.towers = l->towers;
  g->config.strategy = l->strategy;
  s->name = arena_printf(a, "%s, %d towers, %s on %s", model->name, l->towers, l->strategy, l->devices);
  bool ok = target_parse(a, l->devices, &g->config.target, &d, LOC_NONE);
  s->source = ok ? pipeline_run(a, g, NULL, "partition", NULL, &d) : NULL;
  s->placed = s->source ? pipeline_run(a, s->source, NULL, "copies", NULL, &d) : NULL;
  struct certificate c = {0};
  ok = s->placed && (!numeric || (graph_certify_numbers(a, s->source, s->placed, 3, &d, &c) &&
                                  c.claims[CLAIM_NUMBERS].checked));
  if (!ok) print_error("%s: %s\n", s->name, diags_text(&d, false));
  if (!ok) return false;
  s->bits = promises_bits(l);
  s->want = outcome_of(a, &s->narrow, s->placed);
  if (!s->bits) s->want_wide = outcome_of(a, &s->wide, s->placed);
  if (s->want.uncomputed) print_error("%s: %s cannot be computed\n", s->name, s->want.uncomputed);
  return !s->want.uncomputed;
}

/* One of our own, or a sample. */
static const struct model *compile(struct arena *a, const char *text_of_own,
                                   const struct matrix_sample *sample) {
  struct diags d;
  diags_init(&d, a);
  struct frontend_options o = {.seed = 7};
  const struct source *text = text_of_own ? source_make(a, "own", text_of_own, strlen(text_of_own)) : NULL;
  if (sample) {
    o.sets = sample->sets;
    o.nsets = sample->nsets;
    text = source_read(a, arena_printf(a, "%s/%s.dsl", TEST_SAMPLES, sample->name), 1 << 20, &d);
  }
  const struct model *m = text ? frontend_compile(a, text, &o, &d) : NULL;
  if (!m) fail_msg("%s", diags_text(&d, false));
  return m;
}

/* Every entry under every setting. */
static void try_model(struct subject *s, const struct model *m, bool numeric, struct mutant_share *share) {
  const struct graph *const entries[] = {m->init, m->train, m->eval, m->predict};
  uint64_t seed = number_from("TEST_SEED", 1);
  struct arena *a = arena_create();
  s->narrow = bank_make(a, false); /* layouts have most of their values in common */
  s->wide = bank_make(a, true);
  for (int e = 0; e < 4; e++)
    for (int l = 0; entries[e] && l < NSETTINGS; l++) {
      if (!promises_bits(&settings[l]) && graph_has_op(entries[e], OP_scan))
        continue; /* not computed in f64 */
      s->arena = arena_create();
      if (!begin(s, entries[e], &settings[l], numeric)) fail_msg("%s", s->name);
      each_mutant(s->placed, seed + (uint64_t)l, share, try_mutant, s);
      arena_destroy(s->arena);
    }
  arena_destroy(a);
}

static uint64_t report(const struct subject *s) {
  uint64_t sum[VERDICTS] = {0};
  print_message("%-28s %9s %9s %11s %9s %8s\n", "refused by, or accepted", "reader", "verifier",
                "certificate", "harmless", "harmful");
  for (int k = 0; k <= MUTANT_KINDS; k++) {
    const uint64_t *n = k < MUTANT_KINDS ? s->count[k] : sum;
    print_message("%-28s %9llu %9llu %11llu %9llu %8llu\n", k < MUTANT_KINDS ? mutant_kinds[k] : "all",
                  (unsigned long long)n[0], (unsigned long long)n[1], (unsigned long long)n[2],
                  (unsigned long long)n[3], (unsigned long long)n[4]);
    for (int v = 0; v < VERDICTS && k < MUTANT_KINDS; v++) sum[v] += n[v];
  }
  return sum[HARMFUL];
}

static void what_is_accepted_does_no_harm(void **state) {
  (void)state;
  static struct subject s;
  struct mutant_share share = {number_from("TEST_MUTANTS", 1000), number_from("TEST_PART", 0), 0};
  for (int i = 0; i < OWN + SAMPLES; i++) {
    struct arena *a = arena_create();
    const struct model *m = i < OWN ? compile(a, own[i], NULL) : compile(a, NULL, &matrix_samples[i - OWN]);
    try_model(&s, m, share.part == 0 && (i == 0 || share.of < 100), &share);
    arena_destroy(a);
  }
  print_message("%llu mutants, one of %llu tried\n", (unsigned long long)share.next,
                (unsigned long long)share.of);
  assert_int_equal(report(&s), 0);
}

/* ---- updates ---- */

/* The placed graph without one of its outputs. */
static struct graph *without(struct arena *a, const struct graph *g, int output) {
  struct graph *less = arena_copy(a, g, sizeof *g);
  less->outputs = arena_copy(a, g->outputs, sizeof *g->outputs * (size_t)g->noutputs);
  less->noutputs--;
  memmove(&less->outputs[output], &less->outputs[output + 1],
          sizeof *g->outputs * (size_t)(less->noutputs - output));
  return less;
}

/* The proof and the numbers, each for itself, miss any copy that is not written. */
static void every_update_counts(void **state) {
  (void)state;
  static struct subject s;
  struct arena *a = arena_create();
  const struct model *m = compile(a, apart, NULL);
  int tried = 0, accepted = 0, share = (int)number_from("TEST_SHARE", 1);
  s.narrow = bank_make(a, false);
  s.wide = bank_make(a, true);
  for (int e = 0; e < 2; e++)
    for (int l = 0; l < NSETTINGS; l += share) {
      s.arena = arena_create();
      assert_true(begin(&s, e ? m->train : m->init, &settings[l], false));
      for (int i = 0; i < s.placed->noutputs; i++) {
        if (s.placed->outputs[i].role != OUTPUT_UPDATE) continue;
        struct diags d;
        struct certificate c = {0};
        diags_init(&d, s.arena);
        const struct graph *less = without(s.arena, s.placed, i);
        bool proved = graph_certify(s.arena, s.source, less, "deleted", &d, NULL);
        bool computed = graph_certify_numbers(s.arena, s.source, less, 5, &d, &c);
        tried++;
        if (!proved && !computed) continue;
        accepted++;
        print_error("%s without update %s: accepted by %s\n", s.name, s.placed->outputs[i].name,
                    proved ? "the proof" : "the numbers");
      }
      arena_destroy(s.arena);
    }
  print_message("%d updates left out\n", tried);
  arena_destroy(a);
  assert_true(tried > 1000 / share);
  assert_int_equal(accepted, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_update_counts),
                                     cmocka_unit_test(what_is_accepted_does_no_harm)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
