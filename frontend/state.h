/* SPDX-License-Identifier: Apache-2.0 */
/* What the resolver knows. Each struct is the state of one idea, and of the file that is named there; struct resolver
 * holds them together. */
#ifndef DGC_FRONTEND_STATE_H
#define DGC_FRONTEND_STATE_H

#include "frontend/frontend.h"
#include "frontend/node_walk.h"
#include "frontend/reach.h"
#include "frontend/value.h"
#include "ir/graph/differentiate.h"

enum {
  MAX_CALLS = 200, /* layers that call each other */
  MAX_EVAL = 2500, /* expressions and blocks inside each other, through all calls */
  MAX_PARAMS = 64,
  MAX_LIST_DEPTH = 100,
  MAX_STRING = 65536,  /* bytes of a string put together */
  MAX_NODES = 400000,  /* of one graph */
  MAX_TRIPS = 1000000, /* of one loop */
  MAX_STEPS = 400000   /* expressions evaluated in one run */
};

/* ---- one run of the text (resolve.c) ---- */

enum run_kind { RUN_TRAIN, RUN_EVAL, RUN_PREDICT };

struct model_run {
  enum run_kind kind;
  int number;           /* from 1: tells this run's variables from another's */
  int train_statements; /* so far */
  struct map outputs;   /* of the graph, by name */
  struct map bound;     /* how often each path was bound */
};

/* What may be spent on it (expr.c), through all calls. */
struct budget {
  int calls, depth;
  int64_t steps;
  bool stopped; /* it is spent */
};

/* ---- errors (error.c) ---- */

struct errors {
  struct map told; /* those that are told once, and warnings */
  bool quiet;      /* the last error was told before: drop its notes */
  bool inside;     /* it arose in the library, and is told with what that was given */
  int before_statements;
};

/* ---- names (module.c, scope.c, names.c) ---- */

struct modules {
  struct map by_name; /* by path or library name */
  struct module *prelude;
  bool ask_gradients; /* the files of the model call gradient(y, x): its graphs are built literally */
};

/* Names of a block; the body of a loop has its own, the body of an `if` has not. */
struct scope {
  struct scope *outer;
  struct map names; /* struct binding */
  bool step;        /* of a scan: what is bound outside stays what it is */
};

struct binding {
  struct value value;
  struct loc loc;
  uint64_t block; /* that bound it last: there it is bound again only to what is made of it */
  bool fixed;     /* an input, variable or parameter */
};

/* Where in its statement an expression stands: names what is anonymous. */
struct role {
  const struct role *outer;
  const char *name;
  int index; /* when name is NULL */
};

/* ---- a definition that runs (call.c) ---- */

struct frame {
  struct frame *caller;
  const struct function *function;
  struct loc call;
  struct scope *scope;
  struct map left;   /* struct binding: what the bodies of loops have bound, which stays in them */
  const char *path;  /* of the binding that called: "h", "" for the model; its values are named by it */
  const char *owner; /* its variables are named by this one: see names.c */
  const struct stmt *statement; /* that is being run, or NULL */
  uint64_t numbered;            /* by which its calls are noted, or 0: not yet */
  const char *suffix;           /* of the loops around: ".0.1" */
  uint64_t block;
  int loops; /* loops and conditions around */
  int step;  /* scans around, */
  int scans; /* and those around the calls that led here, too */
  bool bf16; /* the precision of products: bf16, not f32 */
  bool returned;
  struct value result;
};

/* ---- what a model declares (declare.c) ---- */

/* Places in the lists of struct model, from 1. */
struct declared {
  struct map inputs; /* by name */
  struct map data;   /* by "train x" */
};

/* ---- variables (variable.c) ---- */

struct variable {
  struct variable *next;
  const char *path;
  struct type type;
  bool trainable;
  const char *slot;          /* of an optimizer's state: whose it is, else NULL */
  bool replaces;             /* of that: it is read in the variable's place, but for training */
  struct variable *replaced; /* of a variable: what is read in its place, or NULL */
  bool
      masters; /* of state, too: optimizers read and change it in the variable's place, which is it, rounded */
  struct variable *master; /* of a variable with a storage: that state, in this run, or NULL */
  struct node *unrounded;  /* of such a variable: its first value before it is rounded */
  uint64_t turn;           /* the call of a made layer that declared it first in this run, or 0 */
  const char *aggregation; /* how what towers write becomes one value; NULL: they write the same */
  bool on_read;            /* each tower has a copy, joined when it is read */
  enum dtype storage;      /* narrow: what it is given is rounded to this type; DT_F32: it is not */
  int order;               /* of declaration */
  int chosen;              /* the last train statement whose `over` means it */
  struct loc loc;
  int run;              /* the last run that declared it */
  struct node *node;    /* in that run's graph */
  struct node *pending; /* what it becomes after this step, or NULL */
  struct loc pending_loc;
  const struct trail *pending_trail;
  uint64_t pending_turn; /* the turn that wrote it */
  int writer;            /* the train statement that wrote it; 0: a layer */
};

struct variables {
  struct map by_path;
  struct variable *first, **last; /* in the order of declaration */
  struct variable *step;
  struct model_start **last_start;
};

/* The variable that gets its first value. */
struct first_value {
  const struct type *type;     /* of the variable; NULL: none gets one */
  bool of_master;              /* that begins with what has not been rounded */
  const struct variable *read; /* whose first value the expression has read last, or NULL */
};

/* ---- training (optimizer.c) ---- */

/* By which an optimizer asks for variables. */
struct asked_pattern {
  struct asked_pattern *next;
  const char *text;
};

/* A variable that a chain trains, and what has come of it so far. */
struct trained {
  struct variable *v;
  struct node *gradient;
  bool left;                /* one of the chain has returned none */
  struct node *when, *step; /* of struct update */
};

/* The run of an optimizer for one variable. */
struct update {
  struct variable *variable; /* NULL: none runs */
  struct node *gradient;
  const struct value *variables, *gradients; /* lists of all that its chain trains */
  struct node *when;              /* what it assigns is assigned where this is true; NULL: always */
  struct node *step;              /* what `step` is to it; NULL: as to everybody */
  struct asked_pattern *patterns; /* of the run for all variables */
};

/* ---- statements (statement_effects.c) ---- */

/* What has come of a statement in all runs so far. */
enum statement_effect { STATEMENT_MET = 1, STATEMENT_EFFECTIVE = 2 };

/* A statement that has been met, in the order of meeting. */
struct met {
  struct met *next;
  const struct stmt *stmt;
  enum def_kind in;
  struct loc shown; /* itself, or the user's call that leads to it */
};

struct effects {
  uint64_t count; /* of what statements bind, declare, assign and give */
  struct met *first, **last;
  bool predicts, evaluates; /* the model has such statements */
};

/* ---- metrics (metric.c) ---- */

/* The formulas of a run's metrics, in a graph of their own. */
struct formulas {
  struct graph *graph; /* NULL: no metric needs one */
  struct node **of;    /* for nodes of the run's graph, by id: as nodes of that one, or NULL */
  uint32_t count;
};

/* ---- functions of the language (builtins.c, statistic.c) ---- */

/* The global norm that was asked for last: of this list, in this graph. */
struct known_norm {
  const struct value *of;
  int count;
  const struct graph *g;
  struct node *node;
};

/* Of all graphs, in the order in which they are made. */
struct statistics {
  struct statistic *items;
  int count;
};

/* ---- all together ---- */

struct resolver {
  struct arena *arena;
  struct diags *diags;
  const struct frontend_options *options;
  struct model *model; /* what comes of it */
  struct errors errors;
  struct budget budget;
  struct modules modules;
  struct model_run run;
  struct graph *g;     /* what is built: the run's, or */
  struct graph *init;  /* that of first values */
  struct diags built;  /* what the builder says, until it is told where the user sees it */
  struct graph *rates; /* learning rates, as functions of `step` (rate.c); NULL: there are none */
  struct frame *frame;
  const char *path; /* of the binding being evaluated */
  uint64_t serial;  /* the last number of a block, a statement's run or a layer's call: each has its own */
  uint64_t turn;    /* the call of a made layer that runs, or 0 */
  struct declared declared;
  struct variables variables;
  struct first_value first_value;
  struct update update;
  struct effects effects;
  struct formulas formulas;
  struct reaches reach;
  struct node_walk walk;
  struct known_norm norm;
  struct statistics statistics;
  struct differentiation differentiation; /* of what gradient(y, x) has asked for */
};

#endif
