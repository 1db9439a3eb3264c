/* SPDX-License-Identifier: Apache-2.0 */
/* Variables that begin as others do: an average of a variable begins with what was loaded for that, not with what the
 * model would have drawn for it. */
#include "session/starts.h"

#include "session/model.h"
#include "session/run.h"

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
  return model_variable_read(s->store, of, data) ? data : NULL;
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
  return model_variable_write(s->store, v, data) ? DGC_OK : session_device_failed(s);
}

static bool same_sizes(const struct type *a, const struct type *b) {
  struct type c = type_with_dtype(*a, (enum dtype)b->dtype);
  return type_equal(&c, b);
}

enum dgc_status session_starts(struct dgc_session *s, const struct map *loaded, const char *path) {
  enum dgc_status status = DGC_OK;
  struct model_variable *all;
  int count = store_model_variables(s->store, s->call, &all);
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
