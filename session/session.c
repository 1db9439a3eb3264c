/* SPDX-License-Identifier: Apache-2.0 */
/* The session and its calls: what a public function begins and ends with, and how errors are told. */
#include "session/session.h"

#include "session/state/best.h"
#include "session/state/calls.h"
#include "session/state/checkpoints.h"
#include "session/state/data.h"
#include "session/state/evaluator.h"
#include "session/state/handlers.h"
#include "session/state/parts.h"
#include "session/state/running.h"
#include "session/state/settlement.h"
#include "session/state/tasks.h"
#include "session/state/tracing.h"
#include "session/state/used_files.h"
#include "session/state/values.h"

#include "runtime/mpi/transport.h"

#include <pthread.h>
#include <stdarg.h>
#include <string.h>

/* --- calls --- */

static void fresh_call(struct dgc_session *s) {
  arena_reset(s->call);
  diags_init(&s->diags, s->call);
  s->message = "";
}

/* Forks on the way to this process: counted, as to ask for its number would be a call of the system in each step. */
static int forks;

static void count_fork(void) { forks++; }

static void count_forks(void) { pthread_atfork(NULL, NULL, count_fork); }

void session_starts_here(struct dgc_session *s) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, count_forks);
  s->calls->process = forks + 1;
}

bool session_forked(const struct dgc_session *s) {
  return s->calls->process && s->calls->process != forks + 1;
}

bool session_begin(struct dgc_session *s, struct call *c) {
  if (session_forked(s)) {
    s->message =
        "error: the session has run in the process that this one was forked from, and its threads and "
        "devices are there: make another session here\n";
    return false;
  }
  if (s->calls->count && !s->calls->listening) {
    s->message = "error: the session is called while it runs a call; only on_progress may do so\n";
    return false;
  }
  c->outer = arena_on_failure(&c->point);
  c->arena = s->call;
  c->diags = s->diags;
  c->listening = s->calls->listening;
  s->calls->listening = false;
  if (s->calls->count++) s->call = arena_create();
  fresh_call(s);
  return true;
}

/* Back to the enclosing call, if there is one. */
static void leave(struct dgc_session *s, struct call *c) {
  arena_on_failure(c->outer);
  s->calls->listening = c->listening;
  if (--s->calls->count == 0) return;
  if (s->call != c->arena) {
    arena_destroy(s->calls->inner);
    s->calls->inner = s->call;
  }
  s->call = c->arena;
  s->diags = c->diags;
}

enum dgc_status session_end(struct dgc_session *s, struct call *c, enum dgc_status status) {
  s->message = diags_text_on(&s->diags, s->options.color, (int)s->options.columns);
  if (status && status != DGC_STOPPED) transport_fail();
  leave(s, c);
  return status;
}

void session_tell(struct dgc_session *s) {
  if (!s->handlers->message || !*s->diags.told) return;
  const char *text = diags_text_on(&s->diags, s->options.color, (int)s->options.columns);
  s->diags.told = s->diags.tail;
  s->handlers->message(s->handlers->message_user, text);
}

enum dgc_status session_out_of_memory(struct dgc_session *s, struct call *c) {
  transport_fail();
  leave(s, c);
  arena_destroy(s->building);
  s->building = NULL;
  diags_init(&s->diags, s->call);
  s->message = "error: out of memory\n";
  return DGC_RUNTIME;
}

/* Larger ones are memory that nobody has set. */
enum { MAX_STRUCT = 4096 };

bool session_can_give(const void *out) {
  const size_t *size = out;
  return *size > sizeof *size && *size <= MAX_STRUCT;
}

void session_give(void *out, const void *whole, size_t size) {
  size_t own = sizeof(size_t), wanted = *(const size_t *)out, known = wanted < size ? wanted : size;
  memcpy((char *)out + own, (const char *)whole + own, known - own);
  memset((char *)out + known, 0, wanted - known);
}

enum dgc_status session_wrong_size(struct dgc_session *s) {
  return session_fail(s, DGC_USAGE, "the struct to fill in does not say its size; set `size` to its sizeof");
}

/* A range on one line, as its caller counts. */
static void place(const struct diag *g, struct dgc_diagnostic *out) {
  const struct source *s = g->loc.source;
  if (!s) return;
  out->file = s->name;
  source_position(s, g->loc.begin, &out->line, &out->column);
  size_t end = g->loc.begin;
  while (end < g->loc.end && end < s->len && s->text[end] != '\n') end++;
  out->end_column = out->column + (int)(end - g->loc.begin);
}

bool dgc_diagnostic(const struct dgc_session *s, int index, struct dgc_diagnostic *out) {
  static const char *const names[] = {
      [DIAG_ERROR] = "error", [DIAG_WARNING] = "warning", [DIAG_NOTE] = "note", [DIAG_HELP] = "help"};
  const struct diag *g = s->diags.first;
  if (index < 0 || !session_can_give(out)) return false;
  while (g && index-- > 0) g = g->next;
  if (!g || index >= 0) return false;
  struct dgc_diagnostic whole = {
      .severity = names[g->severity], .message = g->message, .wrong = g->wrong, .fix = g->meant};
  place(g, &whole);
  session_give(out, &whole, sizeof whole);
  return true;
}

enum dgc_status session_alone(struct dgc_session *s) {
  if (s->calls->count == 1) return DGC_OK;
  return session_fail(s, DGC_USAGE, "this cannot be done while the session is training");
}

enum dgc_status session_unreached(struct dgc_session *s) {
  transport_report(s->transport, &s->settlement->target, &s->diags);
  return DGC_RUNTIME;
}

enum dgc_status session_fail(struct dgc_session *s, enum dgc_status status, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  diag_error(&s->diags, LOC_NONE, "%s", arena_vprintf(s->call, fmt, ap));
  va_end(ap);
  return status;
}

/* Whose fault an error of the passes is: one without a place in a source is about an option. */
enum dgc_status session_blame(const struct dgc_session *s) {
  for (const struct diag *d = s->diags.first; d; d = d->next)
    if (d->severity == DIAG_ERROR && d->loc.source) return DGC_INPUT;
  return DGC_USAGE;
}

enum dgc_status session_unread(const struct dgc_session *s) {
  return s->diags.failure ? DGC_RUNTIME : DGC_INPUT;
}

_Static_assert(ATOMIC_BOOL_LOCK_FREE == 2, "dgc_stop is called from handlers of signals");

void dgc_stop(struct dgc_session *s) { atomic_store(&s->calls->stop, true); }

/* A call from on_progress leaves the request to the training. */
bool session_is_first(const struct dgc_session *s) { return !s->transport || s->transport->rank == 0; }

bool session_stopped(struct dgc_session *s) {
  bool stop = atomic_load_explicit(&s->calls->stop, memory_order_relaxed);
  return stop && (s->calls->count > 1 || atomic_exchange(&s->calls->stop, false));
}

struct str session_text(struct dgc_session *s) {
  arena_reset(s->text);
  return str_make(s->text);
}

void list_append(struct arena *a, struct list *l, const char *value) {
  const char **items = arena_new_array(a, (size_t)l->count + 1, const char *);
  if (l->count) memcpy(items, l->items, (size_t)l->count * sizeof *items);
  items[l->count] = arena_strdup(a, value);
  *l = (struct list){items, l->count + 1};
}

void session_unsettle(struct dgc_session *s) {
  s->settlement->done = false;
  s->values->moves = s->values->store != NULL;
}

static void leave_inner(void *arg) {
  struct inner_arena *inner = arg;
  arena_destroy(inner->s->call);
  inner->s->call = inner->outer;
}

void session_inner_begin(struct dgc_session *s, struct inner_arena *inner) {
  struct arena *a = arena_create();
  inner->s = s;
  inner->outer = s->call;
  s->call = a;
  arena_guard(&inner->guard, leave_inner, inner);
}

void session_inner_end(struct inner_arena *inner) {
  arena_unguard(&inner->guard);
  leave_inner(inner);
}

/* All zeros. */
static void give_parts(struct dgc_session *s, struct arena *a) {
  s->calls = arena_new(a, struct calls);
  s->handlers = arena_new(a, struct handlers);
  s->used_files = arena_new(a, struct used_files);
  s->parts = arena_new(a, struct predicted_parts);
  s->settlement = arena_new(a, struct settlement);
  s->evaluator = arena_new(a, struct evaluator);
  s->running = arena_new(a, struct running);
  s->values = arena_new(a, struct values);
  s->restored = arena_new(a, struct restored);
  s->saving = arena_new(a, struct saving);
  s->data = arena_new(a, struct data_known);
  s->best = arena_new(a, struct best_of_training);
  s->tasks = arena_new(a, struct tasks_seen);
  s->tracing = arena_new(a, struct tracing);
}

struct dgc_session *session_create(void) {
  struct arena_guard guards[3];
  struct arena *a = arena_create_guarded(&guards[0]);
  struct dgc_session *s = arena_new(a, struct dgc_session);
  give_parts(s, a);
  s->saving->step = -1;
  s->saving->claims[0].fd = s->saving->claims[1].fd = -1;
  s->best->so_far.step = s->best->so_far.evaluated = -1;
  s->arena = a;
  s->call = arena_create_guarded(&guards[1]);
  s->text = arena_create_guarded(&guards[2]);
  fresh_call(s);
  for (int i = 2; i >= 0; i--) arena_unguard(&guards[i]);
  return s;
}
