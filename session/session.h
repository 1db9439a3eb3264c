/* What the files of the library share: the session. */
#ifndef DGC_SESSION_SESSION_H
#define DGC_SESSION_SESSION_H

#include "include/dgc.h"

#include "frontend/frontend.h"
#include "passes/pass.h"
#include "planner/planner.h"
#include "runtime/checkpoint.h"
#include "runtime/data/data.h"
#include "runtime/exec.h"
#include "runtime/whole.h"

#include <setjmp.h>
#include <stdatomic.h>

struct list {
  const char **items;
  int count;
};

/* Options by name; see option_table in options.c. */
struct options {
  struct list set, data, eval_data, output, allow_path;
#define NUMBER(type, name, most) int64_t name;
#define WORD(name)               const char *name;
#define TEXT(name)               const char *name;
#define FLAG(name)               bool name;
#include "ir/graph/config.def"
  const char *model, *graph, *devices, *backend, *arch, *batch_is;
  const char *rows, *eval_rows, *auto_shard;
  const char *checkpoint;
  const char *disable_pass, *print_after, *stress;
  const char *source_path; /* of verify */
  bool numeric;
  int64_t threads, epochs, steps, seed, checkpoint_every, timeout;
  bool overwrite, allow_nan, sums, verify_each, dump_passes, time_passes, no_shuffle, tf32, color;
  bool seed_given, epochs_given, steps_given;
};

enum entry_kind { ENTRY_INIT, ENTRY_TRAIN, ENTRY_EVAL, ENTRY_PREDICT, ENTRY_COUNT };
extern const char *const entry_names[ENTRY_COUNT];

/* One entry graph for one batch size, ready to run. */
struct loaded {
  struct loaded *next;
  enum entry_kind kind;
  int64_t batch;
  struct arena *arena;
  const struct graph *graph; /* fused */
  const struct plan *plan;
  struct exec *exec;
  int64_t runs;
};

/* Where training stands; a checkpoint holds it. */
struct position {
  int64_t epoch, index; /* the next batch */
  int64_t step;         /* training steps since the model's first */
  int64_t batch;        /* rows of a global batch, which `index` counts in */
};

/* Values of variables that have no place at present. */
struct kept {
  struct arena *arena;
  struct checkpoint_entry *entries;
  int count;
};

struct dgc_session {
  struct arena *arena; /* the session's */
  struct arena *call;  /* the present call's */
  struct arena *text;  /* of the last text handed out */
  struct diags diags;
  const char *message;
  struct options options;
  dgc_pass_fn *on_pass;
  void *on_pass_user;
  dgc_progress_fn *on_progress;
  void *on_progress_user;

  const struct source *source;
  struct model *model;
  struct target listed; /* the devices of the options */
  struct target target; /* and what the strategy adds to them */
  struct config config; /* once it is settled, but for the batch */
  bool settled, moves;  /* variables lie where another settlement put them */
  struct engines *engines;
  struct workers *workers;
  struct store *store;
  struct loaded *plans;
  struct arena *building; /* of a plan that is not in `plans` yet */
  struct position position;
  bool initialised;       /* the variables hold values */
  struct kept kept;       /* or these are to be theirs */
  struct list part_names; /* that dgc_output has handed out */
  struct list anew;       /* variables that the checkpoint restored last does not hold */
  struct list own_files;  /* checkpoints that hold what the session has, or had: by their real paths */
  bool trained;           /* since it was loaded: its training data is not what to evaluate on */

  atomic_bool stop;    /* asked for by dgc_stop, and not answered yet */
  int calls;           /* going on: a second one comes from on_progress */
  bool listening;      /* on_progress is running */
  struct arena *inner; /* of the last call that came from there: its message */
};

/* What a call puts back when it ends. */
struct call {
  jmp_buf point, *outer;
  struct arena *arena;
  struct diags diags;
  bool listening;
};
/* A public function is one CALL: diagnostics are collected, and running out of memory ends here. A call from within a
 * call is refused, except from on_progress. */
bool session_begin(struct dgc_session *s, struct call *c);
enum dgc_status session_end(struct dgc_session *s, struct call *c, enum dgc_status status);
enum dgc_status session_out_of_memory(struct dgc_session *s, struct call *c);
#define CALL(s, expression)                                         \
  do {                                                              \
    struct call call;                                               \
    if (setjmp(call.point)) return session_out_of_memory(s, &call); \
    if (!session_begin((s), &call)) return DGC_USAGE;               \
    return session_end((s), &call, (expression));                   \
  } while (0)
/* An error where the session is called from on_progress. */
enum dgc_status session_alone(struct dgc_session *s);
/* Reports, and gives the status back. */
enum dgc_status session_fail(struct dgc_session *s, enum dgc_status status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Answers dgc_stop: true once for each request. */
bool session_stopped(struct dgc_session *s);
/* A string that lives as long as the session's last text. */
struct str session_text(struct dgc_session *s);

/* options.c */
/* A copy of the value behind the last one. */
void list_append(struct arena *a, struct list *l, const char *value);
enum dgc_status options_set(struct dgc_session *s, const char *name, const char *value);

/* strategy.c */
/* The devices; once there is a model, all that its graphs are compiled for is settled with them. */
enum dgc_status session_target(struct dgc_session *s);
/* Options have changed: it is settled again when it is needed, and variables move with their values. */
void session_unsettle(struct dgc_session *s);
/* What is settled, for this batch (0: the session's). */
void session_configure(const struct dgc_session *s, struct config *c, int64_t batch);
int64_t session_batch(const struct dgc_session *s);
/* Options that were given win over what is in `c`. */
void options_over(const struct options *o, struct config *c);

/* The table of strategies alone. */
enum dgc_status session_compare(struct dgc_session *s, struct str *table);
/* A graph that holds all variables of the model. */
const struct graph *session_all_variables(const struct dgc_session *s);

/* auto.c */
/* The strategy that moves least in a step; of those the one whose fullest device holds least; of those the default, or
 * the first. NULL after an error. */
const char *session_choose(struct dgc_session *s, const struct config *config, struct str *table);

/* compile.c */
enum dgc_status session_load(struct dgc_session *s, const struct source *source);
/* Where the files may lie that a model names: its own folder if it came from a file, and what the options give. Lives
 * as long as the call. */
const struct file_roots *session_roots(struct dgc_session *s);
/* The source again, with the options as they are now. */
enum dgc_status session_compile(struct dgc_session *s);
bool entry_there(const struct dgc_session *s, enum entry_kind kind);
/* An error if the model has no such entry. */
enum dgc_status session_need(struct dgc_session *s, enum entry_kind kind);
/* NULL stands for the first worth a look. */
enum dgc_status entry_find(struct dgc_session *s, const char *name, enum entry_kind *out);
/* The entry's source graph with the options in its header, for this batch (0: the session's). */
struct graph *session_source(struct dgc_session *s, struct arena *a, enum entry_kind kind, int64_t batch);
struct pipeline_options session_passes(const struct dgc_session *s);
/* The option graph names none of these: a usage error that lists them. */
enum dgc_status session_no_graph(struct dgc_session *s, const char *path, const char **names, int count);
/* Options that were given win over what a source graph's header says. */
enum dgc_status session_override(struct dgc_session *s, struct config *c);
/* The entry's graph for this batch (0: the session's) after the passes up to and including `last`, NULL = all. */
struct graph *session_graph(struct dgc_session *s, struct arena *a, enum entry_kind kind, int64_t batch,
                            const char *last);
enum dgc_status session_blame(const struct dgc_session *s);
/* Whose fault it is that a file could not be used: the system's where the diagnostics say so, else the file's. */
enum dgc_status session_unread(const struct dgc_session *s);

/* run.c */
/* The backend of the option, or the default: an error if there is none of the name, or no device for it. */
enum dgc_status session_backend(struct dgc_session *s, const struct backend **out);
/* Backend, workers and memory for the options' devices. */
enum dgc_status session_open(struct dgc_session *s);
void session_close(struct dgc_session *s);
/* The entry for this batch size, compiled if it is not there yet. */
enum dgc_status session_plan(struct dgc_session *s, enum entry_kind kind, int64_t batch, struct loaded **out);
/* Forgets all plans: options that they depend on have changed. */
void session_drop_plans(struct dgc_session *s);

/* One run of a plan whose inputs are written. */
enum dgc_status session_run(struct dgc_session *s, struct loaded *l);
/* Gives variables their first values unless they have some. */
enum dgc_status session_init(struct dgc_session *s);
/* Everything an entry needs to run but its plan. */
enum dgc_status session_ready(struct dgc_session *s, enum entry_kind kind);
/* The input of a plan by name, -1 if it needs none of that name. */
int plan_input(const struct plan *p, const char *name);
/* A scalar output as a number; or one that exec_post has asked for. */
enum dgc_status output_number(struct dgc_session *s, const struct loaded *l, int output, double *out);
enum dgc_status output_collect(struct dgc_session *s, const struct loaded *l, int output,
                               const struct late_read *r, double *out);
/* Reports the failure of a device. */
enum dgc_status session_device_failed(struct dgc_session *s);
const struct graph *entry_source(const struct dgc_session *s, enum entry_kind kind);

/* One tensor for the caller; its name is not copied. */
void tensor_describe(const char *name, const struct type *t, struct dgc_tensor *out);

/* evaluate.c */
/* A sum that is divided: by the sum that a ratio has below it, or by a number of elements, 0 if by nothing. */
double metric_value(double sum, double count, bool ratio);
/* The output that the metric is divided by: NULL unless it is a ratio. */
const struct output *metric_divisor(const struct graph *g, const struct output *metric);
/* How many rows there are to evaluate on; -1: nothing to evaluate, or no data. */
enum dgc_status session_evaluation_rows(struct dgc_session *s, int64_t *rows);

/* data.c */
enum data_use { DATA_TRAIN, DATA_EVAL, DATA_PREDICT };
/* The data that an entry's inputs come from; `*out` is NULL without an error when there is none and `optional`. */
enum dgc_status session_data(struct dgc_session *s, enum data_use use, bool optional, struct dataset **out);
/* Whether the strategy takes a batch of so many rows, and the batches that `all` rows make; else an error. */
enum dgc_status session_takes(struct dgc_session *s, enum entry_kind kind, int64_t rows);
enum dgc_status session_takes_all(struct dgc_session *s, enum entry_kind kind, int64_t all);
/* One batch of the dataset through its plan. */
enum dgc_status session_batch_run(struct dgc_session *s, enum entry_kind kind, const struct dataset *ds,
                                  const struct batch *b, struct loaded **out);

/* checkpoint.c */
/* `finite`: an error, and nothing is written, if a variable that is trained is not. */
enum dgc_status session_save(struct dgc_session *s, const char *path, bool finite);
/* Before the first step of a training: an error if the option checkpoint cannot be written, or would replace a file
 * that the session has neither read nor written. */
enum dgc_status session_may_save(struct dgc_session *s);
/* Seed, towers and batch come from the checkpoint unless they were given. */
enum dgc_status session_restore(struct dgc_session *s, const char *path);

#endif
