/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints of a session: its variables, where training stands, and what the numbers depend on. Here they are saved;
 * restore.c reads them. */
#include "session/checkpoint.h"

#include "session/agree.h"
#include "session/claims.h"
#include "session/files.h"
#include "session/model.h"
#include "session/parameters.h"
#include "session/run.h"
#include "session/settle.h"
#include "session/state/best.h"
#include "session/state/checkpoints.h"
#include "session/vocabularies.h"

#include "ir/graph/graph.h"
#include "runtime/checkpoint_writer.h"
#include "runtime/data/json.h"
#include "runtime/model_variable.h"
#include "runtime/mpi/transport.h"

#include <string.h>

static void add_number(struct arena *a, struct checkpoint_text *texts, int *n, const char *key,
                       int64_t value) {
  texts[(*n)++] = (struct checkpoint_text){key, arena_printf(a, "%lld", (long long)value)};
}

/* Of a training that evaluates as it goes. */
static void add_best(struct arena *a, struct checkpoint_text *texts, int *n, const struct best_so_far *b) {
  if (b->evaluated < 0) return;
  add_number(a, texts, n, "evaluated", b->evaluated);
  texts[(*n)++] = (struct checkpoint_text){"watched", arena_strdup(a, b->what)};
  add_number(a, texts, n, "waited", b->waited);
  if (b->step < 0) return;
  add_number(a, texts, n, "best_step", b->step);
  struct str value = str_make(a);
  str_double(&value, b->value);
  texts[(*n)++] = (struct checkpoint_text){"best", value.data};
}

/* The largest of all elements' bits without their signs: at least those of infinity if one is not finite. */
static bool is_finite(const struct model_variable *w, const void *data) {
  const uint32_t *f32 = data;
  const uint64_t *f64 = data;
  int32_t most32 = 0;
  int64_t most64 = 0;
  size_t count = w->bytes / (size_t)dtype_size(w->type.dtype);
  if (w->type.dtype == DT_F32)
    for (size_t i = 0; i < count; i++) {
      int32_t bits = (int32_t)(f32[i] & INT32_MAX);
      most32 = bits > most32 ? bits : most32;
    }
  if (w->type.dtype == DT_F64)
    for (size_t i = 0; i < count; i++) {
      int64_t bits = (int64_t)(f64[i] & INT64_MAX);
      most64 = bits > most64 ? bits : most64;
    }
  return most32 < 0x7f800000 && most64 < 0x7ff0000000000000;
}

static bool is_trained(const struct dgc_session *s, const char *name) {
  const struct node *n = entry_variable(s, name);
  return n && node_int_or(n, ATTR_trainable, 0);
}

/* Takes all of it over in s->building, and hands that to the writer. */
static enum dgc_status copy_all(struct dgc_session *s, const char *path, bool finite) {
  struct arena *a = s->building;
  struct model_variable *all;
  int count = store_model_variables(s->values->store, a, &all);
  struct checkpoint *c = model_variables_save(s->values->store, a, all, count);
  if (!c) return session_device_failed(s);
  for (int i = 0; i < count; i++)
    if (finite && is_trained(s, all[i].name) && !is_finite(&all[i], c->entries[i].data)) {
      session_fail(s, DGC_MISMATCH,
                   "variable %s holds what is no finite number after step %lld: it is not saved", all[i].name,
                   (long long)s->position.step);
      diag_help(&s->diags, LOC_NONE, "%s is as it was before; --allow-nan saves all the same", path);
      return DGC_MISMATCH;
    }
  if (!session_is_first(s)) return DGC_OK; /* the first process writes it */
  struct checkpoint_text *texts = c->texts =
      arena_new_array(a, 20 + (size_t)words_count(s) + (size_t)s->options.set.count, struct checkpoint_text);
  int *n = &c->ntexts;
  texts[(*n)++] = (struct checkpoint_text){"format", CHECKPOINT_FORMAT};
  texts[(*n)++] = (struct checkpoint_text){"model", arena_strdup(a, s->model->name)};
  add_number(a, texts, n, "seed", s->options.seed);
  add_number(a, texts, n, "towers", s->settlement->config.towers);
  add_number(a, texts, n, "batch", s->position.batch ? s->position.batch : session_batch(s));
  add_number(a, texts, n, "step", s->position.step);
  add_number(a, texts, n, "epoch", s->position.epoch);
  add_number(a, texts, n, "epoch_batch", s->position.index);
  if (s->position.rows) add_number(a, texts, n, "rows", s->position.rows);
  if (s->position.rows) add_number(a, texts, n, "shuffle", s->position.shuffle);
  if (s->position.sample) add_number(a, texts, n, "sample", s->position.sample);
  add_best(a, texts, n, &s->best->so_far);
  parameters_save(s, a, texts, n);
  words_save(s, a, texts, n);
  s->building = NULL;
  if (path == s->options.checkpoint) s->saving->step = s->position.step;
  checkpoint_writer_put(s->saving->writer, a, arena_strdup(a, path), c);
  return DGC_OK;
}

/* One status for all: what failed in one process has failed in all. */
static enum dgc_status agreed(struct dgc_session *s, const char *path, enum dgc_status status,
                              enum dgc_status others) {
  unsigned char failed = status != DGC_OK;
  if (!s->transport) return status;
  if (!transport_any(s->transport, &failed)) return session_device_failed(s);
  if (!failed) return DGC_OK;
  transport_fail_together();
  return status ? status : session_fail(s, others, "the first process could not save %s", path);
}

enum dgc_status session_save_begin(struct dgc_session *s, const char *path, bool finite) {
  if (!s->saving->writer) s->saving->writer = checkpoint_writer_create();
  if (!s->saving->writer) arena_exhausted();
  s->building = checkpoint_writer_arena(s->saving->writer);
  enum dgc_status status = copy_all(s, path, finite);
  checkpoint_writer_give(s->saving->writer, s->building);
  s->building = NULL;
  return agreed(s, path, status, DGC_RUNTIME);
}

bool session_save_failed(const struct dgc_session *s) {
  return s->saving->writer && checkpoint_writer_failed(s->saving->writer);
}

bool session_save_wait(struct dgc_session *s, const char *path, struct diags *d) {
  if (s->saving->writer && !checkpoint_writer_finish(s->saving->writer, d)) return false;
  session_saved(s, path, claim_stamp(path));
  return true;
}

enum dgc_status session_save_end(struct dgc_session *s, const char *path) {
  return agreed(s, path, session_save_wait(s, path, &s->diags) ? DGC_OK : DGC_RUNTIME, DGC_RUNTIME);
}

/* A training that writes the file keeps it. */
static enum dgc_status save_alone(struct dgc_session *s, const char *path) {
  struct file_claim held = {.fd = -1};
  struct arena_guard guard;
  arena_guard(&guard, session_claim_end, &held);
  enum dgc_status status = session_is_first(s) ? session_claim_file(s, path, &held) : DGC_OK;
  status = agreed(s, path, status, DGC_USAGE);
  if (!status) status = session_save_begin(s, path, !s->options.allow_nan);
  if (!status) status = session_save_end(s, path);
  arena_unguard(&guard);
  claim_end(&held);
  return status;
}

static enum dgc_status save(struct dgc_session *s, const char *path) {
  if (!s->model) return session_fail(s, DGC_USAGE, "no model has been loaded");
  enum dgc_status status = session_may_write(s, "the file to save to", path);
  if (!status) status = session_open(s);
  if (!status) status = session_init(s);
  return status ? status : save_alone(s, path);
}

enum dgc_status dgc_save(struct dgc_session *s, const char *path) { CALL(s, save(s, path)); }

enum dgc_status session_may_save(struct dgc_session *s) {
  const struct options *o = &s->options;
  enum dgc_status status = session_files_apart(s, true);
  if (!status) status = session_may_replace(s, o->checkpoint, NULL);
  if (!status) status = session_may_replace(s, o->keep_best, session_is_own_best);
  if (!status) parameters_say_left_out(s, o->checkpoint ? o->checkpoint : o->keep_best);
  return status;
}

enum dgc_status session_claim(struct dgc_session *s) {
  const struct options *o = &s->options;
  enum dgc_status status = DGC_OK;
  if (!o->checkpoint && !o->keep_best) return DGC_OK;
  if (session_is_first(s)) {
    status = session_claim_file(s, o->checkpoint, &s->saving->claims[0]);
    if (!status) status = session_claim_file(s, o->keep_best, &s->saving->claims[1]);
    if (!status) status = session_is_as_read(s, o->checkpoint);
    if (!status) status = session_may_replace(s, o->checkpoint, NULL);
    if (!status) status = session_may_replace(s, o->keep_best, session_is_own_best);
  }
  return agreed(s, o->checkpoint ? o->checkpoint : o->keep_best, status, DGC_USAGE);
}

void session_release(struct dgc_session *s) {
  for (int i = 0; i < 2; i++) claim_end(&s->saving->claims[i]);
}

void checkpoint_print_texts(struct str *out, bool json, const struct checkpoint *c) {
  if (json) str_put(out, "{\"texts\":{");
  for (int i = 0; i < c->ntexts; i++) {
    if (json) {
      if (i) str_putc(out, ',');
      json_quote(out, c->texts[i].key);
      str_putc(out, ':');
      json_quote(out, c->texts[i].value);
    } else
      str_printf(out, "# %s: %s\n", c->texts[i].key, c->texts[i].value);
  }
  if (json) str_put(out, "},\"tensors\":[");
}
