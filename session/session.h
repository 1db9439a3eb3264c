/* SPDX-License-Identifier: Apache-2.0 */
/* The session, and what a public function begins and ends with.
 *
 * The files of this folder are layers. A file includes the headers of those below it only; from the bottom:
 *
 *   session               what a session has, its calls, its errors
 *   option_table, option_checks, option_words
 *                         what options there are, which values are wrong whatever the model is, and what others call
 *                         options
 *   options               what was asked for
 *   files                 which files are read and written: no two are one
 *   model                 the source, and the entries that it has
 *   cluster, agree        which task this process is; what it must have in common with the others
 *   forecast              how long a step is predicted to take
 *   device_words          devices as options name them
 *   auto, strategy        the devices, and the strategy that is settled for all graphs of the model
 *   scaling               how long a step takes on so many tasks, predicted
 *   memory_limit          what a training step computes again, to need less memory
 *   compile, devices      from an entry to its graphs; the backend that is to run them
 *   towers                which process runs which towers
 *   module                the graph of an entry as one module, for other compilers
 *   picture               a model's stages, or a graph text's, as a page
 *   facts, summary        what is told of a node or a model, for people and as JSON; a model's variables
 *   diff                  two graph texts, by structure
 *   opt, emit, explain, nodes
 *                         text: of graphs that were read, of the model's stages, of one node; lists of nodes
 *   run                   device memory, plans, runs
 *   tasks                 what the tasks of a cluster did with their time
 *   worker                the step of one worker and the parameter servers, by themselves
 *   trace, trace_summary  what runs took, as a file; what such a file says
 *   names                 of variables in files that call them otherwise
 *   words, parameters     vocabularies of inputs, and what --set gives the model, in checkpoints
 *   starts                variables that begin as others do, which were loaded
 *   variables, checkpoint the values of variables, for the caller and in files
 *   init_from             first values, out of such files
 *   rows                  arrays and functions of the caller, in place of files
 *   own_files             which of the files of an entry this process opens
 *   data, batches, metrics, evaluate
 *                         the files of an entry and their batches; what is measured of them, and over all
 *   position              where a training that goes on stands in its data
 *   best, losses          the metric that a training watches; what it measures of its batches
 *   free                  asynchronous training in no fixed order
 *   train, predict, batch what is done with all that
 *   evaluator             what another process trains, evaluated beside it
 *   profile, bench, verify and how fast and how right it is
 *   receipt               what a training was made of and has come to
 *   tensors, report       what is done with checkpoints and logs by themselves
 *   testing/              tests that are files
 *   inspect, dgc          files as they are; the making and the end of a session
 *
 * tools/check_layers.py holds the files to it. */
#ifndef DGC_SESSION_SESSION_H
#define DGC_SESSION_SESSION_H

#include "base/diag.h"
#include "base/map.h"
#include "base/str.h"
#include "include/dgc.h"
#include "ir/graph/config.h"
#include "runtime/data/claim.h"

#include <setjmp.h>
#include <stdatomic.h>

struct list {
  const char **items;
  int count;
};

/* How often something is done: every so many steps, or epochs. 0: never. */
struct every {
  int64_t steps, epochs;
};

/* Options by name; see option_table.c. */
struct options {
  struct list set, data, eval_data, output, allow_path, init_from;
#define NUMBER(type, name, most) int64_t name;
#define WORD(name)               const char *name;
#define TEXT(name)               const char *name;
#define FLAG(name)               bool name;
#include "ir/graph/config.def"
  const char *model, *graph, *emit, *devices, *backend, *arch, *batch_is, *pjrt_plugin, *bits;
  const char *rows, *eval_rows, *auto_shard;
  const char *link, *speed, *tasks; /* of predictions */
  const char *names;                /* of what a checkpoint holds */
  const char *trace, *checkpoint, *keep_best, *metric_to_watch, *to;
  struct every eval_every, log_every;
  const char *disable_pass, *print_after, *stress;
  const char *source_path; /* of verify */
  bool numeric;
  int64_t threads, epochs, steps, seed, checkpoint_every, checkpoint_seconds, timeout, eval_timeout, patience,
      dump_batch, memory_limit, columns;
  bool overwrite, allow_nan, train_metrics, sums, verify_each, dump_passes, time_passes, no_origins,
      no_shuffle, tf32, color, profile;
  bool seed_given, epochs_given, steps_given;
  bool free;          /* asynchronous, and in no fixed order; */
  int64_t free_bound; /* see runtime/mpi/free.h */
};

/* Where training stands; a checkpoint holds it. */
struct position {
  int64_t epoch, index; /* the next batch */
  int64_t step;         /* training steps since the model's first */
  int64_t batch;        /* rows of a global batch, which `index` counts in */
  int64_t rows;         /* that the epoch has; 0: it is not known, */
  int64_t shuffle;      /* nor whether they come in an order of its own, */
  int64_t sample;       /* nor what they are: a checksum of some of them */
};

/* What is known of the metric that a training watches; a checkpoint holds it. */
struct best_so_far {
  const char *what;  /* "val.loss:min"; NULL: nothing */
  int metric;        /* the number of the model's measure */
  bool most;         /* the greatest is the best */
  double value;      /* the best so far, */
  int64_t step;      /* and the step behind which it was; -1: there is none */
  int64_t waited;    /* evaluations since */
  int64_t evaluated; /* the step behind which the last evaluation was; -1: there was none */
};

/* What the evaluator knows of the file that it watches. */
struct watched {
  bool begun;
  struct seen {
    uint64_t inode;
    int64_t seconds, nanoseconds;
  } seen;            /* as it was when it was looked at last; all 0: never */
  bool restored;     /* something was */
  char checksum[32]; /* of that, if it has one */
  bool told;         /* that the training has ended, */
  int64_t saved;     /* and the step that it saved last; -1: none */
};

/* The process that evaluates beside a training (evaluator.c). */
struct evaluator {
  int tasks;                         /* that the cluster names: 0 or 1 */
  bool here;                         /* this process is that one */
  const struct transport *transport; /* between it and the first task; else NULL */
  struct watched watched;
};

/* What data is for. */
enum data_use { DATA_TRAIN, DATA_EVAL, DATA_PREDICT, DATA_USES };

/* A file that the caller uses, by dgc_uses. */
struct used_file {
  const char *what, *path;
  enum dgc_file_use use;
};

struct used_files {
  struct used_file *items;
  int count;
};

/* Values of variables that have no place at present. */
struct kept {
  struct arena *arena;
  struct checkpoint *values; /* NULL: none */
};

struct given_rows; /* see rows.h */
struct words;      /* see words.h */
struct pipes;      /* see runtime/data/pipe.h */

struct plan_run;

/* What the caller has asked to be told (dgc.c). */
struct handlers {
  dgc_message_fn *message;
  void *message_user;
  dgc_pass_fn *pass;
  void *pass_user;
  dgc_progress_fn *progress;
  void *progress_user;
};

/* The calls that are going on (session.c). */
struct calls {
  atomic_bool stop;    /* asked for by dgc_stop, and not answered yet */
  int count;           /* a second one comes from the handler of progress */
  bool listening;      /* which is running */
  struct arena *inner; /* of the last call that came from there: its message */
};

/* Parts of what a model predicts, by name (predict.c, batch.c). */
struct predicted_parts {
  const struct graph *predicted; /* what is predicted in this call, where that is not all; NULL: it is */
  struct map made;               /* which plans were made of, by what they are of and their names */
  struct list names;             /* that dgc_output has handed out */
};

/* What came from a checkpoint (checkpoint.c, starts.c). */
struct restored {
  bool any;
  const char *file;     /* the last one, */
  int64_t step;         /* of this step */
  struct list anew;     /* variables that it does not hold, */
  bool anew_told;       /* which has been said */
  struct list left_out; /* what it holds beside variables of the model */
};

/* What goes into checkpoints (checkpoint.c). */
struct saving {
  struct checkpoint_writer *writer; /* NULL until something is saved */
  int64_t step;                     /* of what was saved last; -1: nothing was */
  struct list files;                /* those that hold what the session has, or had: by their real paths */
  struct file_claim claims[2];      /* the files of the options checkpoint and keep-best, while it trains */
};

/* What the tasks did last (tasks.c). */
struct tasks_seen {
  struct dgc_task *items; /* NULL: that was never asked for */
  int count;
};

/* Of runs (trace.c). */
struct tracing {
  struct trace *trace; /* see trace.h; NULL: there is none at present */
  bool (*run)(struct dgc_session *s, const struct plan_run *r);
  bool begun; /* the file of the option trace has been begun, if not ended, too */
};

struct dgc_session {
  struct arena *arena; /* the session's */
  struct arena *call;  /* the present call's */
  struct arena *text;  /* of the last text handed out */
  struct diags diags;
  const char *message;
  struct options options;
  struct given_rows *given_rows; /* NULL: none */
  struct words *words;           /* NULL: none */
  struct pipes *pipes;           /* what came through them; NULL: nothing */
  struct handlers handlers;

  const struct source *source;
  struct model *model;
  struct predicted_parts parts;
  struct target listed; /* the devices of the options */
  struct target target; /* and what the strategy adds to them */
  struct config config; /* once it is settled, but for the batch */
  bool free;           /* workers apply their gradients as they come, by an option or the model's strategy: */
  int64_t free_bound;  /* see runtime/mpi/free.h */
  bool settled, moves; /* variables lie where another settlement put them */
  int worker;          /* of asynchronous training in no order: whose graph is compiled */
  int task;            /* of the cluster, that this process is; -1: as the launcher numbers it */
  const char
      *hosts; /* the cluster by the hosts that its processes run on, once they have met; NULL: it is one */
  const char *why_sums; /* what is to be said of how sums travel, once that is known; NULL: nothing */
  const struct transport
      *transport; /* to the other tasks of the cluster, where they are processes; else NULL */
  struct evaluator evaluator;
  struct engines *engines;
  struct workers *workers;
  int process; /* that has these, and devices; 0: there are none yet */
  struct store *store;
  struct loaded *plans;
  struct arena *building; /* of a plan that is not in `plans` yet */
  struct position position;
  struct best_so_far best;
  struct best_so_far
      last_best; /* with the evaluation behind the last step, which was not due; `what` NULL: none was */
  const char **val_names; /* "val.loss": of the model's measures */
  bool initialised;       /* the variables hold values */
  struct kept kept;       /* or these are to be theirs */
  struct restored restored;
  struct saving saving;
  struct used_files used_files;
  struct tasks_seen tasks;
  const char *seeds;       /* a digest of the first values that came from files; NULL: none did */
  int64_t begun;           /* the step at which its last training began */
  int64_t rows[DATA_USES]; /* of what it runs over, for the choice of a strategy; 0: that is not known */
  bool trained;            /* since it was loaded: its training data is not what to evaluate on */

  struct tracing tracing;
  struct calls calls;
};

/* What a call puts back when it ends. */
struct call {
  jmp_buf point, *outer;
  struct arena *arena;
  struct diags diags;
  bool listening;
};
/* A public function is one CALL: diagnostics are collected, and running out of memory ends here. A call from within a
 * call is refused, except from the handler of progress. */
bool session_begin(struct dgc_session *s, struct call *c);
enum dgc_status session_end(struct dgc_session *s, struct call *c, enum dgc_status status);
/* Gives the handler of messages what the present call has said since it was given something last. */
void session_tell(struct dgc_session *s);
enum dgc_status session_out_of_memory(struct dgc_session *s, struct call *c);
/* Of a struct that begins with its size, as its caller has it: whether the library can fill it in; and fills it in with
 * what it knows, which is `size` bytes at `whole`, and zeros. */
bool session_can_give(const void *out);
void session_give(void *out, const void *whole, size_t size);
enum dgc_status session_wrong_size(struct dgc_session *s);

#define CALL(s, expression)                                         \
  do {                                                              \
    struct call call;                                               \
    if (setjmp(call.point)) return session_out_of_memory(s, &call); \
    if (!session_begin((s), &call)) return DGC_USAGE;               \
    return session_end((s), &call, (expression));                   \
  } while (0)

/* Whether what the session has started (threads, devices) is of another process, from which this one was forked. */
bool session_forked(const struct dgc_session *s);
void session_starts_here(struct dgc_session *s);

/* Between the two, what a call allocates lives no longer than that; its diagnostics do. */
struct inner_arena {
  struct dgc_session *s;
  struct arena *outer;
  struct arena_guard guard;
};
void session_inner_begin(struct dgc_session *s, struct inner_arena *inner);
void session_inner_end(struct inner_arena *inner);
/* Memory that there is not: as arena_create says. */
struct dgc_session *session_create(void);
/* An error where the session is called from the handler of progress. */
enum dgc_status session_alone(struct dgc_session *s);
/* The error where another process of the cluster cannot be reached. */
enum dgc_status session_unreached(struct dgc_session *s);
/* Answers dgc_stop: true once for each request. */
bool session_stopped(struct dgc_session *s);
/* A string that lives as long as the session's last text. */
struct str session_text(struct dgc_session *s);
/* A copy of the value behind the last one. */
void list_append(struct arena *a, struct list *l, const char *value);
/* Options have changed: what follows from them is settled again when it is needed, and variables move with their
 * values. */
void session_unsettle(struct dgc_session *s);

/* Reports, and gives the status back. */
enum dgc_status session_fail(struct dgc_session *s, enum dgc_status status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Whose fault an error of the passes is: the source's where it has a place there, else an option's. */
enum dgc_status session_blame(const struct dgc_session *s);
/* Whose fault it is that a file could not be used: the system's where the diagnostics say so, else the file's. */
enum dgc_status session_unread(const struct dgc_session *s);

#endif
