/* What the files of the library share: the session. */
#ifndef DGC_INTERNAL_H
#define DGC_INTERNAL_H

#include "include/dgc.h"

#include "frontend/frontend.h"
#include "passes/pass.h"
#include "runtime/checkpoint.h"
#include "runtime/data/data.h"
#include "runtime/exec.h"

#include <setjmp.h>

struct list {
  const char **items;
  int count;
};

/* Options by name; see option_table in dgc_options.c. */
struct options {
  struct list set, data, eval_data, output;
  const char *model, *graph, *devices, *strategy, *parameter_device, *consolidation_device, *backend;
  const char *rows, *eval_rows;
  const char *checkpoint;
  const char *disable_pass, *print_after, *stress;
  int64_t towers, batch, threads, epochs, steps, seed, checkpoint_every;
  bool soft_placement, verify_each, dump_passes, time_passes, no_shuffle, color;
  bool seed_given;
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
  struct target target;
  const struct backend *backend;
  void *backend_self;
  struct workers *workers;
  struct store *store;
  struct loaded *plans;
  struct arena *building; /* of a plan that is not in `plans` yet */
  struct position position;
  bool initialised; /* the variables hold values */
  bool trained;     /* since it was loaded: its training data is not what to evaluate on */

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
/* A string that lives as long as the session's last text. */
struct str session_text(struct dgc_session *s);

/* dgc_options.c */
enum dgc_status options_set(struct dgc_session *s, const char *name, const char *value);

/* dgc_compile.c */
enum dgc_status session_target(struct dgc_session *s);
enum dgc_status session_load(struct dgc_session *s, const struct source *source);
/* The source again, with the options as they are now. */
enum dgc_status session_compile(struct dgc_session *s);
bool entry_there(const struct dgc_session *s, enum entry_kind kind);
/* An error if the model has no such entry. */
enum dgc_status session_need(struct dgc_session *s, enum entry_kind kind);
/* NULL stands for the first worth a look. */
enum dgc_status entry_find(struct dgc_session *s, const char *name, enum entry_kind *out);
/* The entry's graph for this batch (0: the session's) after the passes up to and including `last`, NULL = all. */
struct graph *session_graph(struct dgc_session *s, struct arena *a, enum entry_kind kind, int64_t batch,
                            const char *last);
enum dgc_status session_blame(const struct dgc_session *s);
int64_t session_batch(const struct dgc_session *s);

/* dgc_run.c */
enum dgc_status session_no_backend(struct dgc_session *s);
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
/* A scalar output as a number. */
double output_number(const struct loaded *l, int output);
const struct graph *entry_source(const struct dgc_session *s, enum entry_kind kind);

/* dgc_data.c */
enum data_use { DATA_TRAIN, DATA_EVAL, DATA_PREDICT };
/* The data that an entry's inputs come from; `*out` is NULL without an error when there is none and `optional`. */
enum dgc_status session_data(struct dgc_session *s, enum data_use use, bool optional, struct dataset **out);
/* One batch of the dataset through its plan. */
enum dgc_status session_batch_run(struct dgc_session *s, enum entry_kind kind, const struct dataset *ds,
                                  const struct batch *b, struct loaded **out);

/* dgc_checkpoint.c */
enum dgc_status session_save(struct dgc_session *s, const char *path);
/* Seed, towers and batch come from the checkpoint unless they were given. */
enum dgc_status session_restore(struct dgc_session *s, const char *path);
/* The variables that a checkpoint holds, by name: primary copies. */
struct variable **session_variables(const struct dgc_session *s, struct arena *a, int *count);

#endif
