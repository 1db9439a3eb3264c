/* SPDX-License-Identifier: Apache-2.0 */
/* Running: device memory, plans and what they give */
#ifndef DGC_SESSION_RUN_H
#define DGC_SESSION_RUN_H

#include "runtime/exec.h"
#include "session/model.h"
#include "session/state/values.h"

/* One entry graph for one batch size, ready to run. */
struct loaded {
  struct loaded *next;
  enum entry_kind kind;
  int64_t batch;
  const struct graph *source; /* the entry's; of predictions there may be several */
  struct arena *arena;
  const struct graph *graph; /* fused */
  const struct plan *plan;
  struct exec *exec;
  int64_t runs;
  struct traced *traced; /* see trace.c; NULL: it was not traced yet */
};

/* A run of an executor, and what a trace says of it. */
struct plan_run {
  struct exec *exec;
  const struct plan *plan; /* that it was loaded from */
  struct arena *arena;     /* which lives as long as it */
  struct traced **traced;  /* see trace.c; *traced is NULL: it was not traced yet */
  const char *name;        /* "train" */
  int64_t step, rows;
  int worker; /* asynchronous training: whose step it is; else -1 */
};

/* Backend, workers and memory for the options' devices. */
enum dgc_status session_open(struct dgc_session *s);
void session_close(struct dgc_session *s);
/* Of the evaluator: whether the training beside it has told that it has ended; what it has saved last is known then. */
bool session_training_ended(struct dgc_session *s);
/* Gives variables their first values unless they have some. */
enum dgc_status session_init(struct dgc_session *s);
/* Takes the values of the variables away, as those of another model, to be put back or freed with *out's arena (NULL:
 * there were none); they get first values when they are needed. */
enum dgc_status session_set_aside(struct dgc_session *s, struct kept *out);
void session_put_back(struct dgc_session *s, const struct kept *values);
/* The values that were kept when devices changed are somewhere else now. */
void session_forget_kept(struct dgc_session *s);
/* Everything an entry needs to run but its plan. */
enum dgc_status session_ready(struct dgc_session *s, enum entry_kind kind);
/* Where there are no first values yet: plans these and an entry of the batch that the session has, and begins to
 * compile both, so that no core waits for the one before it has the other. */
enum dgc_status session_foresee(struct dgc_session *s, enum entry_kind kind);
/* The entry for this batch size, compiled if it is not there yet. It is the session's. */
enum dgc_status session_plan(struct dgc_session *s, enum entry_kind kind, int64_t batch, struct loaded **out);
/* One run of a plan whose inputs are written. */
enum dgc_status session_run(struct dgc_session *s, struct loaded *l);
/* The same of any executor. */
enum dgc_status session_run_exec(struct dgc_session *s, const struct plan_run *r);
/* Reports the failure of a device. */
enum dgc_status session_device_failed(struct dgc_session *s);

/* The input of a plan by name, -1 if it needs none of that name. */
int plan_input(const struct plan *p, const char *name);
/* Whether this process, of several, reads no other rows of the input than those from `first` to `end`: a gradient of
 * rows by number needs all numbers, wherever it is. */
bool reads_rows(const struct dgc_session *s, const struct loaded *l, const char *input, int64_t first,
                int64_t end);
/* A scalar output as a number; or one that exec_read_begin has asked for. */
enum dgc_status output_number(struct dgc_session *s, const struct loaded *l, int output, double *out);
enum dgc_status output_read_end(struct dgc_session *s, const struct loaded *l, int output,
                                const struct deferred_read *r, double *out);
/* One tensor for the caller; its name is not copied. */
void tensor_describe(const char *name, const struct type *t, struct dgc_tensor *out);

#endif
