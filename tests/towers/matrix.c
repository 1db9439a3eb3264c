/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/towers/matrix.h"

#include "ir/ops/op_id.h"
#include "passes/strategy/strategy.h"

#include "passes/pass.h"
#include "tests/support/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

const struct matrix_sample matrix_samples[] = {
    {"linear", {NULL}, 0, 0},
    {"digits", {"hidden=6"}, 1, 0},
    {"lenet", {NULL}, 0, 4},
    {"words", {"width=2"}, 1, 0},
    {"perceptron", {"hidden=5"}, 1, 0},
    {"logistic", {"features=3"}, 1, 0},
    {"mnist", {"hidden=6"}, 1, 0},
    {"autoencoder", {"hidden=4", "code=3", "steps=60"}, 3, 0},
};

#define W(i, devices) "/job:worker/task:" #i "/" devices
#define PS(i)         "/job:ps/task:" #i "/cpu:0"
#define TWO           W(0, "cpu:0") "," W(1, "cpu:0")
#define UNEQUAL       W(0, "cpu:0-2") "," W(1, "cpu:0")
#define THREE         W(0, "cpu:0-1") "," W(1, "cpu:0") "," W(2, "cpu:0-1")

const struct matrix_layout cpu_layouts[] = {
    {WITH_one_device, "cpu:0", {0}, OF_TOWERS, 0},
    {WITH_one_device, "cpu:0", {.packs = 2}, OF_TOWERS, 0},
    {WITH_one_device, "cpu:1", {.parameter_device = "/cpu:1"}, OF_TOWERS, 0},
    {WITH_replicate, "cpu:0-1", {.uneven = true}, OF_TOWERS, 0},
    {WITH_replicate, "cpu:1-4", {.uneven = true}, OF_TOWERS, 0},
    {WITH_replicate, "cpu:0-2", {.uneven = true, .consolidation_device = "/cpu:1"}, OF_TOWERS, 0},
    {WITH_round_robin, "cpu:0-1", {0}, OF_TOWERS, 0},
    {WITH_round_robin, "cpu:0-3", {0}, OF_TOWERS, 0},
    {WITH_round_robin, "cpu:0,cpu:1,cpu:3", {.balance = "size"}, OF_TOWERS, 0},
    {WITH_round_robin, THREE, {.balance = "size"}, OF_TOWERS, 0},
    {WITH_central_storage, "cpu:0-1", {0}, OF_TOWERS, 0},
    {WITH_central_storage, "cpu:1-3", {0}, OF_TOWERS, 0},
    {WITH_central_storage, "cpu:0-2", {.parameter_device = "/cpu:2"}, OF_TOWERS, 0},
    {WITH_central_storage, "cpu:0-7", {.consolidation_device = "/cpu:3"}, OF_TOWERS, 0},
    {WITH_central_storage, UNEQUAL, {0}, OF_TOWERS, 0},
    {WITH_mirrored, "cpu:0", {0}, OF_TOWERS, 0},
    {WITH_mirrored, "cpu:0-1", {0}, OF_TOWERS, 0},
    {WITH_mirrored, "cpu:0-3", {0}, OF_TOWERS, 0},
    {WITH_mirrored, "cpu:0-4", {.cross_device = "hierarchical_copy"}, OF_TOWERS, 0},
    {WITH_mirrored, "cpu:0-2", {.cross_device = "hierarchical_copy", .packs = 2}, OF_TOWERS, 0},
    {WITH_mirrored, "cpu:0-2", {.cross_device = "scatter"}, OF_TOWERS, 0},
    {WITH_mirrored, "cpu:0-3", {.cross_device = "scatter", .packs = 2}, OF_TOWERS, 0},
    {WITH_mirrored, "cpu:0-7", {.packs = 3}, OF_TOWERS, 0},
    {WITH_mirrored, "cpu:0-1", {.bytes_per_pack = 64}, OF_TOWERS, 0},
    {WITH_mirrored, "cpu:0-2", {.cross_device = "ring"}, OF_DEVICES, 3},
    {WITH_mirrored, "cpu:0-3", {.cross_device = "ring", .packs = 1}, OF_DEVICES, 104},
    {WITH_multi_worker_mirrored, TWO, {0}, OF_TOWERS, 0},
    {WITH_multi_worker_mirrored, UNEQUAL, {.packs = 4}, OF_TOWERS, 0},
    {WITH_multi_worker_mirrored, THREE, {.cross_device = "hierarchical_copy"}, OF_TOWERS, 0},
    {WITH_multi_worker_mirrored, THREE, {.cross_device = "scatter"}, OF_TOWERS, 0},
    {WITH_multi_worker_mirrored, THREE, {.bytes_per_pack = 1000}, OF_TOWERS, 0},
    {WITH_multi_worker_mirrored, W(0, "cpu:0-1") "," W(1, "cpu:0"), {.cross_device = "ring"}, OF_DEVICES, 3},
    {WITH_parameter_server, TWO "," PS(0), {0}, OF_TOWERS, 0},
    {WITH_parameter_server, UNEQUAL "," PS(0) "," PS(1), {.min_part_bytes = 16}, OF_TOWERS, 0},
    {WITH_parameter_server, PS(0) "," PS(1) "," PS(2) "," THREE, {.min_part_bytes = 100}, OF_TOWERS, 0},
    {WITH_parameter_server, W(0, "cpu:0-3") "," PS(0) "," PS(1), {.balance = "size"}, OF_TOWERS, 0},
    {WITH_parameter_server, TWO "," PS(0), {.asynchronous = true}, OF_WORKERS, 200},
    {WITH_parameter_server,
     TWO "," PS(0) "," PS(1),
     {.asynchronous = true, .min_part_bytes = 16},
     OF_WORKERS,
     200},
    {WITH_parameter_server, TWO "," PS(0), {.asynchronous = true, .staleness = 1}, OF_WORKERS, 201},
    {WITH_parameter_server,
     PS(0) "," PS(1) "," PS(2) "," TWO,
     {.asynchronous = true, .staleness = 1, .balance = "size", .min_part_bytes = 64},
     OF_WORKERS,
     201},
    {STRATEGIES, NULL, {0}, OF_TOWERS, 0},
};

const struct matrix_layout gpu_layouts[] = {
    {WITH_one_device, "gpu:0", {0}, OF_TOWERS, 0},
    {WITH_one_device, "gpu:1", {.packs = 2}, OF_TOWERS, 0},
    {WITH_replicate, "gpu:0", {.uneven = true}, OF_TOWERS, 0},
    {WITH_round_robin, "gpu:0-1", {0}, OF_TOWERS, 0},
    {WITH_round_robin, "gpu:0/0,gpu:0/1,gpu:1", {.balance = "size"}, OF_TOWERS, 0},
    {WITH_central_storage, "gpu:0-2", {.parameter_device = "/gpu:0"}, OF_TOWERS, 0},
    {WITH_central_storage, "gpu:0/0,gpu:0/1", {.parameter_device = "/gpu:0/1"}, OF_TOWERS, 0},
    {WITH_mirrored, "gpu:0-3", {0}, OF_TOWERS, 0},
    {WITH_mirrored, "gpu:0/0,gpu:0/1,gpu:1", {.cross_device = "hierarchical_copy"}, OF_TOWERS, 0},
    {WITH_mirrored, "gpu:0-1", {.packs = 2}, OF_TOWERS, 0},
    {WITH_mirrored, "gpu:0-2", {.cross_device = "ring"}, OF_DEVICES, 3},
    {STRATEGIES, NULL, {0}, OF_TOWERS, 0},
};

/* ---- numbers ---- */

static int row_width(const struct type *t) {
  int64_t width = 1;
  for (int i = 1; i < t->rank; i++) width *= t->dim[i];
  return (int)width;
}

/* Classes, letters, pixels or fractions, by what the samples call their inputs. */
static double draw(struct rng *r, const char *name, const struct type *t, int column) {
  if (strcmp(name, "line") == 0) return column == 0 ? '1' + rng_below(r, 3) : 'a' + rng_below(r, 6);
  if (strcmp(name, "label") == 0) return rng_below(r, t->dtype == DT_F32 ? 2 : 10);
  if (t->dtype == DT_U8) return rng_chance(r, 60) ? 0 : rng_below(r, 256);
  return rng_uniform(r, -1, 1);
}

static void draw_inputs(struct matrix_subject *s, uint64_t seed) {
  struct rng r = {seed + (uint64_t)s->rows};
  s->inputs = values_make(s->arena);
  for (int i = 0; i < s->model->ninputs; i++) {
    const struct model_input *in = &s->model->inputs[i];
    struct type t = type_specialize(&in->type, s->rows);
    struct tensor x = {t, arena_alloc(s->arena, (size_t)type_bytes(&t))};
    int width = row_width(&t);
    for (int64_t k = 0; k < type_count(&t); k++) tensor_set(&x, k, draw(&r, in->name, &t, (int)(k % width)));
    values_put(&s->inputs, in->name, &t, x.data);
  }
  values_put_first_row(&s->inputs, 1000);
}

static void initialise(struct matrix_subject *s, const struct matrix_layout *l, struct engine *e) {
  const struct graph *init = s->model->init;
  s->before = values_make(s->arena);
  for (uint32_t i = 0; i < init->count; i++) {
    const struct node *n = init->nodes[i];
    if (n->op == OP_variable)
      values_put(&s->before, n->name, &n->type, arena_alloc(s->arena, (size_t)type_bytes(&n->type)));
  }
  const char *wrong = matrix_run(s, e, init, l, 1, 1, &s->before, NULL);
  if (wrong) fail_msg("%s: %s", init->name, wrong);
}

void matrix_begin(struct matrix_subject *s, const struct matrix_sample *sample,
                  const struct matrix_layout *one_device, int64_t rows, uint64_t seed, struct engine *e) {
  struct arena *a = arena_create();
  *s = (struct matrix_subject){.arena = a, .name = sample->name, .rows = rows};
  diags_init(&s->diags, a);
  struct frontend_options o = {.sets = sample->sets, .nsets = sample->nsets, .seed = 7};
  const char *path = arena_printf(a, "%s/%s.dsl", TEST_SAMPLES, sample->name);
  const struct source *source = source_read(a, path, 1 << 20, &s->diags);
  s->model = source ? frontend_compile(a, source, &o, &s->diags) : NULL;
  if (!s->model) fail_msg("%s", diags_text(&s->diags, false));
  draw_inputs(s, seed);
  initialise(s, one_device, e);
}

void matrix_end(struct matrix_subject *s) { arena_destroy(s->arena); }

/* ---- runs ---- */

struct graph *matrix_graph(struct matrix_subject *s, const struct graph *source,
                           const struct matrix_layout *l, int towers) {
  struct graph *g = arena_copy(s->arena, source, sizeof *source);
  g->config = l->config;
  g->config.batch = s->rows;
  g->config.towers = towers;
  g->config.strategy = strategies[l->strategy].name;
  if (!target_parse(s->arena, l->devices, &g->config.target, &s->diags, LOC_NONE))
    fail_msg("%s", diags_text(&s->diags, false));
  return g;
}

const char *matrix_run(struct matrix_subject *s, struct engine *e, const struct graph *source,
                       const struct matrix_layout *l, int towers, int steps, struct values *variables,
                       struct values *outputs) {
  struct graph *g = matrix_graph(s, source, l, towers);
  struct plan *p = engine_plan(s->arena, g, &s->diags);
  if (p && engine_run(e, p, &s->inputs, variables, outputs, steps, &s->diags)) return NULL;
  return diags_text(&s->diags, false);
}

const char *matrix_text(struct matrix_subject *s, const struct matrix_layout *l, int towers) {
  struct str t = str_make(s->arena);
  str_printf(&t, "%s, %lld rows, %d towers, %s on %s", s->name, (long long)s->rows, towers,
             strategies[l->strategy].name, l->devices);
  const struct config *c = &l->config;
  if (c->cross_device) str_printf(&t, ", %s", c->cross_device);
  if (c->packs) str_printf(&t, ", %d packs", c->packs);
  if (c->bytes_per_pack) str_printf(&t, ", packs of %lld bytes", (long long)c->bytes_per_pack);
  if (c->min_part_bytes) str_printf(&t, ", parts of %lld bytes", (long long)c->min_part_bytes);
  if (c->balance) str_printf(&t, ", by %s", c->balance);
  if (c->parameter_device) str_printf(&t, ", parameters on %s", c->parameter_device);
  if (c->consolidation_device) str_printf(&t, ", batches on %s", c->consolidation_device);
  if (c->asynchronous) str_printf(&t, ", staleness %d", c->staleness);
  return t.data;
}

int matrix_gpus(const struct matrix_layout *l) {
  struct arena *a = arena_create();
  struct diags d;
  struct target t;
  int most = 0;
  diags_init(&d, a);
  if (!target_parse(a, l->devices, &t, &d, LOC_NONE)) fail_msg("%s", diags_text(&d, false));
  for (int i = 0; i < t.ndevices; i++)
    if (t.devices[i].name.index >= most) most = t.devices[i].name.index + 1;
  arena_destroy(a);
  return most;
}

uint64_t matrix_hash(const struct values *like, const struct values *v) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < like->map.count; i++) {
    const char *name = like->map.entries[i].key;
    const struct tensor *t = values_get(v, name);
    if (strchr(name, '/')) continue; /* copies, parts */
    uint64_t h = str_hash(STR_HASH_SEED, name, strlen(name));
    sum += t ? str_hash(h, t->data, (size_t)type_bytes(&t->type)) : h;
  }
  return sum;
}
