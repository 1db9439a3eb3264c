/* SPDX-License-Identifier: Apache-2.0 */
/* The frontend: a source in, the model's graphs or diagnostics out. The language is described in
 * docs/language.md. */
#ifndef DGC_FRONTEND_FRONTEND_H
#define DGC_FRONTEND_FRONTEND_H

#include "frontend/ast.h"
#include "ir/type.h"

struct frontend_options {
  const char *const *sets; /* "hidden=256": values for the model's parameters */
  int nsets;
  int64_t seed;                   /* of all random ops */
  bool train_metrics;             /* the train graph gives the metrics of its batch, too */
  const char *model;              /* which model of a source that has several; NULL: the only one */
  const char *folder;             /* where relative paths begin; NULL: the folder of the source's name */
  const struct file_roots *roots; /* where the files may lie that it uses; NULL: anywhere */
};

struct model_parameter {
  const char *name;
  const char *value; /* as the language writes it */
};

struct model_input {
  const char *name;
  struct type type; /* axis 0 is B */
  struct loc loc;
  /* What the model can use, when low <= high: class numbers, rows of a table. `limited`: where it says so, maybe
   * in the library; `asked`: where the user's text leads there. Of floats NaN is none of them, and fits. */
  int64_t low, high;
  bool ends; /* low and high alone, and nothing between */
  struct loc limited, asked;
  /* The widest of such ranges that holds for a part of it: one column of many. Nothing is checked by it. */
  int64_t part_low, part_high;
};

struct model_data {
  const char *split; /* "train", "test" */
  const char *input;
  const char **paths; /* relative to the source's folder; several files are one behind the other */
  int npaths;
  struct loc loc;
};

/* A variable whose first value reads that of another one, which was declared before it. */
struct model_start {
  struct model_start *next;
  const char *name, *of;
  bool unrounded; /* it is as it was before it was rounded to its storage */
  bool computed;  /* it is not that value, or a cast of it, but something else made of it */
};

/* What a model says of the strategy it wants; what the words mean is not known here. */
struct model_setting {
  const char *name;
  enum { SETTING_INT, SETTING_TEXT, SETTING_FLAG } kind;
  int64_t i; /* INT, FLAG */
  const char *text;
  struct loc loc;
};

struct model_strategy {
  const char *name; /* NULL: nothing */
  struct loc loc;
  struct model_setting *settings;
  int nsettings;
};

struct model {
  const char *name;
  const char **files; /* that it uses, as they were opened */
  int nfiles;
  struct model_strategy strategy;
  struct model_parameter *parameters;
  int nparameters;
  struct model_input *inputs;
  int ninputs;
  struct model_data *data;
  int ndata;
  struct model_start *starts; /* in the order of their declarations */
  /* NULL where the model has no statement for it. */
  struct graph *init, *train, *eval, *predict;
  /* Losses and metrics of evaluation, in the order of the model's text. */
  const char **measures;
  int nmeasures;
  struct graph *metrics; /* the metrics that are made of what the eval graph gives, each of its own inputs */
  /* The same of training, where the option train_metrics asks for it, without the losses. */
  const char **train_measures;
  int ntrain_measures;
  struct graph *train_metrics;
  /* The learning rates, each called as its loss, of the input `step` or of none: only those that no more is needed
   * for. NULL: there are none. */
  struct graph *rates;
};

/* The names of the models in a source, in its order; how many. None after an error in `d`. */
int frontend_models(struct arena *a, const struct source *source, struct diags *d, const char *const **names);

/* What the library says of a function, layer, initializer or optimizer of its own, or how a built in function is
 * called; NULL and an error where there is none. `name` NULL or "": a list of all, or, as a `page` of Markdown, all
 * that it says. */
const char *frontend_doc(struct arena *a, const char *name, bool page, struct diags *d);

/* NULL after an error. Everything lives in the arena; the diagnostics may hold warnings. */
struct model *frontend_compile(struct arena *a, const struct source *source,
                               const struct frontend_options *options, struct diags *d);

#endif
