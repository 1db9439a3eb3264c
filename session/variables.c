/* SPDX-License-Identifier: Apache-2.0 */
/* The variables of a session, for the caller to list, read and write. */
#include "session/run.h"
#include "session/state/values.h"

#include "ir/graph/graph.h"
#include "ir/ops/op_id.h"
#include "runtime/model_variable.h"

#include <string.h>

static enum dgc_status need_variables(struct dgc_session *s) {
  if (!s->model) return session_fail(s, DGC_USAGE, "no model has been loaded");
  enum dgc_status status = session_open(s);
  return status ? status : session_init(s);
}

/* Behind the last one there is none: no error, which the other processes of a cluster would have to know of. */
static enum dgc_status nth_variable(struct dgc_session *s, int index, struct dgc_tensor *out, bool *there) {
  enum dgc_status status = need_variables(s);
  if (status) return status;
  struct model_variable *all;
  int count = store_model_variables(s->values->store, s->call, &all);
  *there = index >= 0 && index < count;
  if (*there) tensor_describe(all[index].name, &all[index].type, out);
  return DGC_OK;
}

static enum dgc_status nth_variable_call(struct dgc_session *s, int index, struct dgc_tensor *out,
                                         bool *there) {
  CALL(s, nth_variable(s, index, out, there));
}

bool dgc_variable(struct dgc_session *s, int index, struct dgc_tensor *out) {
  bool there = false;
  return nth_variable_call(s, index, out, &there) == DGC_OK && there;
}

bool dgc_trained(struct dgc_session *s, const char *variable) {
  const struct graph *g = s->model ? entry_source(s, ENTRY_INIT) : NULL;
  const struct node *n = g ? graph_find(g, variable) : NULL;
  return n && n->op == OP_variable && node_int_or(n, ATTR_trainable, 0);
}

static enum dgc_status no_variable(struct dgc_session *s, const char *name) {
  struct model_variable *all;
  int count = store_model_variables(s->values->store, s->call, &all);
  const char **names = arena_new_array(s->call, (size_t)count, const char *);
  for (int i = 0; i < count; i++) names[i] = all[i].name;
  const char *closest = str_closest(name, names, (size_t)count);
  session_fail(s, DGC_USAGE, "there is no variable '%s'", name);
  if (closest) diag_meant(&s->diags, LOC_NONE, name, closest, '\'');
  return DGC_USAGE;
}

static enum dgc_status access_variable(struct dgc_session *s, const char *name, void *out, const void *in,
                                       size_t bytes) {
  enum dgc_status status = need_variables(s);
  if (status) return status;
  struct model_variable *all, *v = NULL;
  int count = store_model_variables(s->values->store, s->call, &all);
  for (int i = 0; i < count; i++)
    if (strcmp(all[i].name, name) == 0) v = &all[i];
  if (!v) return no_variable(s, name);
  if (v->bytes != bytes)
    return session_fail(s, DGC_USAGE, "variable %s is %s: %zu bytes, not %zu", name,
                        type_text(s->call, &v->type), v->bytes, bytes);
  bool good = !out || model_variable_read(s->values->store, v, out);
  if (in) good = model_variable_write(s->values->store, v, in) && store_broadcast(s->values->store);
  return good ? DGC_OK : session_device_failed(s);
}

enum dgc_status dgc_read(struct dgc_session *s, const char *variable, void *out, size_t bytes) {
  CALL(s, access_variable(s, variable, out, NULL, bytes));
}

enum dgc_status dgc_write(struct dgc_session *s, const char *variable, const void *data, size_t bytes) {
  CALL(s, access_variable(s, variable, NULL, data, bytes));
}
