/* SPDX-License-Identifier: Apache-2.0 */
/* Samples made small, each with a batch of numbers, and the layouts that they are trained on: what the
 * matrix of samples, strategies, towers and batches is made of. */
#ifndef TESTS_TOWERS_MATRIX_H
#define TESTS_TOWERS_MATRIX_H

#include "frontend/frontend.h"
#include "tests/support/engine.h"
#include "tests/support/expect.h"

struct matrix_sample {
  const char *name, *sets[3]; /* what makes it small */
  int nsets;
  int64_t most_rows; /* 0: any batch; else the others would take long */
};
extern const struct matrix_sample matrix_samples[];
enum { SAMPLES = 8 };

/* As ir/strategies.def: each has to have a layout. */
enum matrix_strategy {
#define STRATEGY(name, ...) WITH_##name,
#include "ir/strategies.def"
#undef STRATEGY
  STRATEGIES
};

/* What the bits may depend on, besides the number of towers. */
enum bits { OF_TOWERS, OF_DEVICES, OF_WORKERS };

struct matrix_layout {
  enum matrix_strategy strategy;
  const char *devices;
  struct config config; /* what else is asked for */
  enum bits bits;
  int order; /* equal for layouts that, though the bits depend on more than towers, have the same */
};
extern const struct matrix_layout cpu_layouts[], gpu_layouts[]; /* ended by devices NULL */

/* A sample with the numbers of one batch. */
struct matrix_subject {
  struct arena *arena;
  struct diags diags;
  const struct model *model;
  const char *name;
  int64_t rows;
  struct values inputs, before;
};

/* Compiles the sample, draws inputs, and starts from the values that it gives its variables on one device.
 * Fails the cmocka test where it cannot. */
void matrix_begin(struct matrix_subject *s, const struct matrix_sample *sample,
                  const struct matrix_layout *one_device, int64_t rows, uint64_t seed, struct engine *e);
void matrix_end(struct matrix_subject *s);

/* A graph of the model, as it is to be compiled. */
struct graph *matrix_graph(struct matrix_subject *s, const struct graph *source,
                           const struct matrix_layout *l, int towers);
/* Runs it; NULL, or what went wrong. `variables` are read and written. */
const char *matrix_run(struct matrix_subject *s, struct engine *e, const struct graph *source,
                       const struct matrix_layout *l, int towers, int steps, struct values *variables,
                       struct values *outputs);
/* "digits, 7 rows, 3 towers, mirrored on cpu:0-1, ring" */
const char *matrix_text(struct matrix_subject *s, const struct matrix_layout *l, int towers);

/* How many GPUs it needs. */
int matrix_gpus(const struct matrix_layout *l);

/* Of all tensors that `like` names, whatever their order. */
uint64_t matrix_hash(const struct values *like, const struct values *v);

#endif
