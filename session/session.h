/* SPDX-License-Identifier: Apache-2.0 */
/* The session, and what a public function begins and ends with.
 *
 * The files of this folder are layers. A file includes the headers of those below it only; from the bottom:
 *
 *   state/                what a session has, a struct for each idea: a file includes those that it uses
 *   session               which these are, the calls of a session, its errors
 *   option_table, option_checks, option_words
 *                         what options there are, which values are wrong whatever the model is, and what others call
 *                         options
 *   options               what was asked for
 *   files                 which files are read and written: no two are one
 *   model                 the source, and the entries that it has
 *   cluster, agree        which task this process is; what it must have in common with the others
 *   forecast              how long a step is predicted to take
 *   device_words          devices as options name them
 *   auto, settle          the devices, and the strategy that is settled for all graphs of the model
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
 *   run, open             plans and runs; device memory, and the other processes
 *   tasks                 what the tasks of a cluster did with their time
 *   worker                the step of one worker and the parameter servers, by themselves
 *   trace, trace_summary  what runs took, as a file; what such a file says
 *   names                 of variables in files that call them otherwise
 *   vocabularies, parameters
 *                         words of inputs, and what --set gives the model, in checkpoints
 *   starts                variables that begin as others do, which were loaded
 *   claims                whose files a training writes
 *   variables, checkpoint, restore
 *                         the values of variables, for the caller and in files
 *   init_from             first values, out of such files
 *   rows                  arrays and functions of the caller, in place of files
 *   own_files             which of the files of an entry this process opens
 *   ranges                what is said of numbers in data that the model cannot use
 *   batch_run             batches, into their plans
 *   data, batches, metrics, evaluate
 *                         the files of an entry and their batches; what is measured of them, and over all
 *   position              where a training that goes on stands in its data
 *   best, losses          the metric that a training watches; what it measures of its batches
 *   unordered             asynchronous training in no fixed order
 *   training              a training that is under way
 *   train, train_unordered, predict, caller_batch
 *                         what is done with all that
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
#include "base/str.h"
#include "include/dgc.h"
#include "session/state/options.h"
#include "session/state/position.h"

#include <setjmp.h>

struct given_rows; /* see rows.h */
struct words;      /* see words.h */
struct pipes;      /* see runtime/data/pipe.h */

/* Behind most of the pointers is what some of the files have in common: a struct of session/state/. */
struct dgc_session {
  struct arena *arena;    /* the session's */
  struct arena *call;     /* the present call's */
  struct arena *text;     /* of the last text handed out */
  struct arena *building; /* of a plan that is not among those that run yet */
  struct diags diags;
  const char *message;
  struct calls *calls;
  struct handlers *handlers;

  struct options options;
  struct used_files *used_files;
  const struct source *source;
  struct model *model;
  struct predicted_parts *parts;
  struct settlement *settlement;
  const struct transport
      *transport; /* to the other tasks of the cluster, where they are processes; else NULL */
  struct evaluator *evaluator;

  struct running *running;
  struct values *values;
  struct restored *restored;
  struct saving *saving;

  struct given_rows *given_rows; /* NULL: none */
  struct words *words;           /* NULL: none */
  struct pipes *pipes;           /* what came through them; NULL: nothing */
  struct data_known *data;
  struct position position;
  int64_t begun; /* the step at which its last training began */
  struct best_of_training *best;
  struct tasks_seen *tasks;
  struct tracing *tracing;
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
/* Whether this process is the first of those of a cluster, or the only one: files are written by it. */
bool session_is_first(const struct dgc_session *s);
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
