/* SPDX-License-Identifier: Apache-2.0 */
/* What a training was made of and has come to, by digests: enough to do it again, and to tell whether the same came
 * of it. */
#include "session/compile.h"
#include "session/data.h"
#include "session/model.h"
#include "session/run.h"
#include "session/settle.h"
#include "session/state/data.h"
#include "session/state/settlement.h"
#include "session/state/values.h"

#include "ir/graph/graph.h"
#include "ir/graph/text.h"
#include "ir/plan/plan.h"
#include "ir/scalar/kernel.h"
#include "runtime/data/json.h"
#include "runtime/data/loader.h"
#include "runtime/data/xxh64.h"
#include "runtime/model_variable.h"

#include <string.h>

static void put_digest(struct str *out, const char *key, struct xxh64 *h) {
  str_printf(out, ",\n\"%s\":\"xxh64:%016llx\"", key, (unsigned long long)xxh64_end(h));
}

static void put_text(struct str *out, const char *key, const char *value) {
  str_printf(out, ",\n\"%s\":", key);
  json_quote(out, value);
}

static void put_number(struct str *out, const char *key, int64_t value) {
  str_printf(out, ",\n\"%s\":%lld", key, (long long)value);
}

/* --- what it was made of --- */

static void add_graph(struct dgc_session *s, struct xxh64 *h, const struct graph *g) {
  struct str text = str_make(s->call);
  if (!g) return;
  graph_print(&text, g);
  xxh64_add(h, text.data, text.len);
}

/* As the model says it, before anything is spread over devices. */
static void put_source(struct dgc_session *s, struct str *out) {
  struct xxh64 h;
  xxh64_init(&h);
  add_graph(s, &h, entry_source(s, ENTRY_INIT));
  add_graph(s, &h, entry_source(s, ENTRY_TRAIN));
  put_digest(out, "graph", &h);
}

static enum dgc_status put_placed(struct dgc_session *s, struct str *out) {
  struct graph *g = session_graph(s, s->call, ENTRY_TRAIN, session_batch(s), "place");
  struct xxh64 h;
  if (!g) return session_blame(s);
  xxh64_init(&h);
  add_graph(s, &h, g);
  put_digest(out, "placed", &h);
  return DGC_OK;
}

/* Of each distinct kernel of the plan, in its order: all that code is made of, whatever the device. */
static enum dgc_status put_kernels(struct dgc_session *s, struct str *out) {
  struct loaded *l;
  enum dgc_status status = session_plan(s, ENTRY_TRAIN, session_batch(s), &l);
  if (status) return status;
  str_put(out, ",\n\"kernels\":[");
  for (int i = 0; i < l->plan->nkernels; i++) {
    struct str bytes = str_make(s->call);
    struct xxh64 h;
    xxh64_init(&h);
    kernel_bytes(&bytes, l->plan->kernels[i]);
    xxh64_add(&h, bytes.data, bytes.len);
    str_printf(out, "%s\"xxh64:%016llx\"", i ? "," : "", (unsigned long long)xxh64_end(&h));
  }
  str_putc(out, ']');
  return DGC_OK;
}

static enum dgc_status add_rows(struct dgc_session *s, const struct dataset *ds, struct loader *loader,
                                struct xxh64 *h) {
  const struct batch *b;
  for (;;) {
    enum loader_status next = loader_next(loader, &b, &s->diags);
    if (next != LOADER_BATCH) return next == LOADER_END ? DGC_OK : session_unread(s);
    for (int i = 0; i < ds->ncolumns; i++)
      xxh64_add(h, b->columns[i].data, (size_t)(type_bytes(&ds->columns[i].row) * b->rows));
    loader_release(loader, b);
  }
}

/* All rows in their order, as the model sees them. */
static enum dgc_status put_data(struct dgc_session *s, struct str *out) {
  struct loader_options o = {.batch = 256, .epochs = 1};
  struct data_reading r = {0};
  struct arena_guard guard;
  struct xxh64 h;
  xxh64_init(&h);
  arena_guard(&guard, data_reading_end, &r);
  enum dgc_status status = session_data(s, DATA_TRAIN, false, &r.data);
  if (!status) r.loader = loader_create(s->call, r.data, &o, &s->diags);
  if (!status) status = r.loader ? add_rows(s, r.data, r.loader, &h) : session_unread(s);
  if (!status) put_number(out, "rows", r.data->rows);
  arena_unguard(&guard);
  data_reading_end(&r);
  if (!status) put_digest(out, "data", &h);
  return status;
}

static void put_devices(struct dgc_session *s, struct str *out) {
  str_put(out, ",\n\"devices\":[");
  for (int i = 0; i < s->settlement->target.ndevices; i++) {
    if (i) str_putc(out, ',');
    json_quote(out, s->settlement->target.devices[i].text);
  }
  str_putc(out, ']');
}

/* --- what it has come to --- */

static enum dgc_status put_state(struct dgc_session *s, struct str *out) {
  struct model_variable *all;
  struct xxh64 h;
  int count = store_model_variables(s->values->store, s->call, &all);
  struct checkpoint *c = model_variables_save(s->values->store, s->call, all, count);
  if (!c) return session_device_failed(s);
  xxh64_init(&h);
  for (int i = 0; i < count; i++) {
    xxh64_add(&h, all[i].name, strlen(all[i].name));
    xxh64_add(&h, c->entries[i].data, all[i].bytes);
  }
  put_digest(out, "state", &h);
  return DGC_OK;
}

static enum dgc_status receipt(struct dgc_session *s, const char **text) {
  enum dgc_status status = session_alone(s);
  if (!status) status = session_ready(s, ENTRY_TRAIN);
  if (status) return status;
  struct str out = session_text(s);
  str_put(&out, "{\n\"dgc\":");
  json_quote(&out, dgc_version());
  put_text(&out, "build", dgc_build());
  put_text(&out, "model", s->model->name);
  put_source(s, &out);
  status = put_placed(s, &out);
  if (!status) status = put_kernels(s, &out);
  if (!status) status = put_data(s, &out);
  if (status) return status;
  put_number(&out, "seed", s->options.seed);
  put_number(&out, "towers", s->settlement->config.towers);
  put_number(&out, "batch", session_batch(s));
  put_devices(s, &out);
  put_number(&out, "begun", s->begun);
  put_number(&out, "step", s->position.step);
  put_number(&out, "epoch", s->position.epoch);
  status = put_state(s, &out);
  str_put(&out, "}");
  *text = out.data;
  return status;
}

enum dgc_status dgc_receipt(struct dgc_session *s, const char **text) {
  *text = "";
  CALL(s, receipt(s, text));
}
