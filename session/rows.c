/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays and functions of the caller: rows of an input that come from no file. */
#include "session/rows.h"

#include "session/model.h"

#include <pthread.h>
#include <string.h>

struct given_rows {
  bool eval;
  struct data_spec spec; /* its source is the one below */
  struct row_source source;
  dgc_rows_fn *fn; /* NULL: an array */
  void *user;
  pthread_mutex_t lock; /* an evaluation reads while the next batches of the training are read ahead */
  bool taken_away;
  struct given_rows *next;
};

static struct given_rows *find(const struct dgc_session *s, bool eval, const char *input) {
  for (struct given_rows *g = s->given_rows; g; g = g->next)
    if (g->eval == eval && strcmp(g->spec.name, input) == 0) return g;
  return NULL;
}

const struct data_spec *rows_given(const struct dgc_session *s, bool eval, const char *input) {
  const struct given_rows *g = find(s, eval, input);
  return g && !g->taken_away ? &g->spec : NULL;
}

bool rows_any(const struct dgc_session *s, bool eval) {
  for (const struct given_rows *g = s->given_rows; g; g = g->next)
    if (g->eval == eval && !g->taken_away) return true;
  return false;
}

const char *rows_input(const struct dgc_session *s, int index) {
  for (const struct given_rows *g = s->given_rows; g; g = g->next)
    if (!g->taken_away && index-- == 0) return g->spec.name;
  return NULL;
}

/* The type of a row, and how many there are. */
static enum dgc_status describe(struct dgc_session *s, const struct dgc_tensor *t, struct row_source *out) {
  enum dtype dtype;
  if (!t->dtype || !dtype_parse(t->dtype, strlen(t->dtype), &dtype) || dtype_is_narrow(dtype))
    return session_fail(s, DGC_USAGE,
                        "rows of %s: '%s' is no type of rows; there are f32, f64, i32, i64, u8 and bool",
                        t->name, t->dtype ? t->dtype : "");
  if (t->rank < 1 || t->rank > MAX_RANK)
    return session_fail(s, DGC_USAGE,
                        "rows of %s: an array has 1 to %d axes, the first of which counts the rows; not %d",
                        t->name, MAX_RANK, t->rank);
  int64_t bytes = dtype_size(dtype);
  for (int i = 0; i < t->rank; i++)
    if (t->shape[i] < 1 || __builtin_mul_overflow(bytes, t->shape[i], &bytes))
      return session_fail(s, DGC_USAGE, "rows of %s: axis %d cannot be %lld long", t->name, i,
                          (long long)t->shape[i]);
  out->row = type_make(dtype, t->rank - 1, t->shape + 1);
  out->rows = t->shape[0];
  return DGC_OK;
}

/* One call of the function at a time. */
static bool read_rows(void *given, int64_t first, int64_t count, void *out) {
  struct given_rows *g = given;
  pthread_mutex_lock(&g->lock);
  bool good = g->fn(g->user, first, count, out);
  pthread_mutex_unlock(&g->lock);
  return good;
}

/* Of an array, or a function; both NULL: takes away what there is. */
static enum dgc_status set(struct dgc_session *s, const char *option, const struct dgc_tensor *t,
                           const void *data, dgc_rows_fn *fn, void *user) {
  bool eval = option && strcmp(option, "eval-data") == 0;
  if (!eval && (!option || strcmp(option, "data") != 0))
    return session_fail(s, DGC_USAGE, "rows are given for the options data and eval-data, not for '%s'",
                        option ? option : "");
  if (!t->name) return session_fail(s, DGC_USAGE, "rows need the name of an input");
  enum dgc_status status = session_alone(s); /* a training may be reading them */
  if (!status && s->model) status = session_check_input(s, t->name);
  if (status) return status;
  struct given_rows *g = find(s, eval, t->name);
  if (!data && !fn) {
    if (g) g->taken_away = true;
    return DGC_OK;
  }
  struct row_source source = {.data = data, .read = fn ? read_rows : NULL};
  status = describe(s, t, &source);
  if (status) return status;
  if (!g) {
    g = arena_new(s->arena, struct given_rows);
    *g = (struct given_rows){.eval = eval, .next = s->given_rows};
    g->spec.name = arena_strdup(s->arena, t->name);
    g->spec.source = &g->source;
    pthread_mutex_init(&g->lock, NULL);
    s->given_rows = g;
  }
  g->spec.path = arena_printf(s->arena, "the %s of %s", data ? "array" : "function", t->name);
  source.user = g;
  g->source = source;
  g->fn = fn, g->user = user;
  g->taken_away = false;
  return DGC_OK;
}

enum dgc_status dgc_set_rows(struct dgc_session *s, const char *option, const struct dgc_tensor *rows,
                             const void *data) {
  CALL(s, set(s, option, rows, data, NULL, NULL));
}

enum dgc_status dgc_set_source(struct dgc_session *s, const char *option, const struct dgc_tensor *rows,
                               dgc_rows_fn *fn, void *user) {
  CALL(s, set(s, option, rows, NULL, fn, user));
}
