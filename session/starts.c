/* SPDX-License-Identifier: Apache-2.0 */
/* Variables that begin as others do: an average of a variable begins with what was loaded for that, not with what the
 * model would have drawn for it. */
#include "session/starts.h"

#include "session/model.h"
#include "session/run.h"
#include "session/state/checkpoints.h"
#include "session/state/values.h"

#include "ir/graph/graph.h"
#include "ir/ops/op_id.h"
#include "runtime/checkpoint.h"
#include "runtime/data/reader.h"
#include "runtime/model_variable.h"

#include <string.h>

/* The value of `of`: as the file has it, which was rounded to be stored, or as it is. NULL when a device has failed. */
static const void *value_of(struct dgc_session *s, const struct model_variable *of,
                            const struct checkpoint *file) {
  const struct checkpoint_entry *e = file ? checkpoint_find(file, of->name) : NULL;
  if (e && type_equal(&e->type, &of->type)) return e->data;
  void *data = arena_alloc(s->call, of->bytes);
  return model_variable_read(s->values->store, of, data) ? data : NULL;
}

static enum dgc_status copy(struct dgc_session *s, const struct model_variable *v,
                            const struct model_variable *of, const struct checkpoint *file,
                            const char *path) {
  const void *data = value_of(s, of, file);
  if (!data) return session_device_failed(s);
  if (v->type.dtype != of->type.dtype) {
    void *own = arena_alloc(s->call, v->bytes);
    int64_t wrong = convert_numbers((enum dtype)v->type.dtype, own, (enum dtype)of->type.dtype, data,
                                    type_count(&v->type));
    if (wrong >= 0)
      return session_fail(s, DGC_MISMATCH, "%s: number %lld of %s does not fit into %s, which begins with it",
                          path, (long long)wrong, of->name, v->name);
    data = own;
  }
  return model_variable_write(s->values->store, v, data) ? DGC_OK : session_device_failed(s);
}

static bool same_sizes(const struct type *a, const struct type *b) {
  struct type c = type_with_dtype(*a, (enum dtype)b->dtype);
  return type_equal(&c, b);
}

enum dgc_status session_starts(struct dgc_session *s, const struct map *loaded, const char *path) {
  enum dgc_status status = DGC_OK;
  struct model_variable *all;
  int count = store_model_variables(s->values->store, s->call, &all);
  struct map known = map_make(s->call);
  for (int i = 0; i < count; i++) map_put(&known, all[i].name, &all[i]);
  for (const struct model_start *start = s->model->starts; start && !status; start = start->next) {
    const struct model_variable *v = map_get(&known, start->name), *of = map_get(&known, start->of);
    const struct checkpoint *file = map_get(loaded, start->of);
    if (!v || !of || map_get(loaded, start->name) || (start->unrounded && !file)) continue;
    if (!start->computed && same_sizes(&v->type, &of->type))
      status = copy(s, v, of, start->unrounded ? file : NULL, path);
    else if (file)
      diag_warning(&s->diags, LOC_NONE,
                   "%s begins with what is computed of the model's first value of %s, not of that in %s",
                   v->name, of->name, path);
  }
  return status;
}

/* --- what an optimizer keeps, and a file does not hold --- */

/* Whether what training makes of the variable is computed of `step`, as by a correction of first steps. */
static bool counts_steps(struct dgc_session *s, const char *variable) {
  const struct graph *g = entry_source(s, ENTRY_TRAIN);
  bool *counts = arena_new_array(s->call, g->count, bool);
  for (uint32_t i = 0; i < g->count; i++) {
    const struct node *n = g->nodes[i];
    counts[n->id] = n->op == OP_variable && strcmp(n->name, STEP_VARIABLE) == 0;
    for (int k = 0; k < n->ninputs; k++) counts[n->id] |= counts[n->inputs[k]->id];
  }
  for (int i = 0; i < g->noutputs; i++) {
    const struct node *n = g->outputs[i].node;
    if (g->outputs[i].role == OUTPUT_UPDATE && counts[n->id] && node_is(n->inputs[0], OP_variable) &&
        strcmp(n->inputs[0]->name, variable) == 0)
      return true;
  }
  return false;
}

static bool begins_as_variable(const struct dgc_session *s, const char *name) {
  for (const struct model_start *start = s->model->starts; start; start = start->next)
    if (strcmp(start->name, name) == 0) return !start->computed;
  return false;
}

static bool is_behind(struct dgc_session *s, const char *name) {
  const struct node *n = graph_find(entry_source(s, ENTRY_TRAIN), name);
  const char *of = node_is(n, OP_variable) ? node_string_or(n, ATTR_slot, NULL) : NULL;
  return s->position.step > 0 && of && !begins_as_variable(s, name) && counts_steps(s, of);
}

void session_say_anew(struct dgc_session *s) {
  enum { SHOWN = 4 };
  struct str names = str_make(s->call);
  int count = s->restored->anew.count;
  bool behind = false;
  if (!s->restored->any || s->restored->anew_told || !count || !entry_there(s, ENTRY_TRAIN)) return;
  s->restored->anew_told = true;
  for (int i = 0; i < count && i < SHOWN; i++)
    str_printf(&names, "%s%s", i ? ", " : "", s->restored->anew.items[i]);
  for (int i = 0; i < count && !behind; i++) behind = is_behind(s, s->restored->anew.items[i]);
  if (count > SHOWN) str_printf(&names, " and %d more", count - SHOWN);
  if (!behind) {
    diag_note(&s->diags, LOC_NONE, "these start anew, as they are not in the file: %s", names.data);
    return;
  }
  diag_warning(&s->diags, LOC_NONE,
               "these start anew, as they are not in the file, and `step` goes on from %lld: %s",
               (long long)s->position.step, names.data);
  diag_help(
      &s->diags, LOC_NONE,
      "an optimizer that corrects its first steps by `step`, as adam, takes these several times too large: "
      "--init-from %s starts all of them anew, `step` too",
      s->restored->file);
}
