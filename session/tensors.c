/* SPDX-License-Identifier: Apache-2.0 */
/* What can be done with checkpoints without a model: seen, compared, renamed, averaged, written in other forms. */
#include "session/checkpoint.h"
#include "session/claims.h"
#include "session/metrics.h"
#include "session/names.h"

#include "base/place.h"
#include "runtime/data/json.h"
#include "runtime/data/npz_writer.h"

#include <float.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

/* One call. */
struct checkpoint_work {
  struct dgc_session *s;
  struct checkpoint **files;
  const char *const *paths;
  int count;
  const char *out;
  bool json;
  struct str text;
};

static double element(const struct checkpoint_entry *e, int64_t i) {
  return number_at((enum dtype)e->type.dtype, e->data, i);
}

static void put_number(struct str *out, bool json, double value) {
  if (json && !isfinite(value))
    str_put(out, "null");
  else if (value == floor(value) && fabs(value) < 0x1p53)
    str_printf(out, "%lld", (long long)value);
  else if (json || fabs(value) > (double)FLT_MAX)
    str_double(out, value);
  else
    str_float(out, (float)value);
}

/* --- show --- */

struct tensor_figures {
  double least, most, mean;
  int64_t nans, infinite;
};

/* Of what is a number. */
static struct tensor_figures figures_of(const struct checkpoint_entry *e) {
  struct tensor_figures f = {INFINITY, -INFINITY, 0, 0, 0};
  int64_t count = type_count(&e->type);
  double sum = 0;
  for (int64_t i = 0; i < count; i++) {
    double x = element(e, i);
    f.nans += isnan(x);
    f.infinite += isinf(x);
    if (isnan(x)) continue;
    if (x < f.least) f.least = x;
    if (x > f.most) f.most = x;
    sum += x;
  }
  f.mean = sum / (double)(count - f.nans);
  return f;
}

static void show_entry(struct checkpoint_work *w, const struct checkpoint_entry *e) {
  struct tensor_figures f = figures_of(e);
  struct str *out = &w->text;
  const char *type = checkpoint_type_text(w->s->call, e);
  const struct {
    const char *name;
    double value;
  } all[] = {{"min", f.least}, {"max", f.most}, {"mean", f.mean}};
  if (w->json) {
    str_put(out, "{\"name\":");
    json_quote(out, e->name);
    str_printf(out, ",\"dtype\":\"%.*s\",\"shape\":[", (int)strcspn(type, "["), type);
    for (int i = 0; i < e->type.rank; i++) str_printf(out, "%s%lld", i ? "," : "", (long long)e->type.dim[i]);
    str_put(out, "]");
  } else
    str_printf(out, "%s : %s", e->name, type);
  for (int i = 0; i < 3; i++) {
    if (!w->json && type_count(&e->type) == f.nans) break;
    str_printf(out, w->json ? ",\"%s\":" : "  %s ", all[i].name);
    put_number(out, w->json, all[i].value);
  }
  if (w->json) str_printf(out, ",\"nan\":%lld,\"infinite\":%lld}", (long long)f.nans, (long long)f.infinite);
  if (!w->json && f.nans) str_printf(out, "  %lld NaN", (long long)f.nans);
  if (!w->json && f.infinite) str_printf(out, "  %lld infinite", (long long)f.infinite);
  if (!w->json) str_putc(out, '\n');
}

static enum dgc_status show(struct checkpoint_work *w) {
  const struct checkpoint *c = w->files[0];
  struct str *out = &w->text;
  checkpoint_print_texts(out, w->json, c);
  for (int i = 0; i < c->count; i++) {
    if (w->json && i) str_putc(out, ',');
    show_entry(w, &c->entries[i]);
  }
  if (w->json) str_put(out, "]}\n");
  return DGC_OK;
}

/* --- diff --- */

struct difference {
  int64_t elements; /* whose bits differ */
  double most;      /* the greatest distance of two numbers */
};

static struct difference difference_of(const struct checkpoint_entry *a, const struct checkpoint_entry *b) {
  struct difference d = {0, 0};
  int64_t count = type_count(&a->type), size = dtype_size(a->type.dtype);
  for (int64_t i = 0; i < count; i++) {
    if (!memcmp((const char *)a->data + i * size, (const char *)b->data + i * size, (size_t)size)) continue;
    double x = fabs(element(a, i) - element(b, i));
    d.elements++;
    if (x > d.most) d.most = x;
  }
  return d;
}

/* A line, or an object of the list. */
static void begin_difference(struct checkpoint_work *w, const char *name, int *lines) {
  if (w->json) {
    str_put(&w->text, (*lines)++ ? ",{\"name\":" : "{\"name\":");
    json_quote(&w->text, name);
    return;
  }
  (*lines)++;
  str_put(&w->text, name);
}

static void put_only(struct checkpoint_work *w, const char *name, int side, int *lines) {
  begin_difference(w, name, lines);
  if (w->json)
    str_printf(&w->text, ",\"only\":%d}", side);
  else
    str_printf(&w->text, ": only in %s\n", w->paths[side]);
}

static void put_texts(struct checkpoint_work *w, const char *name, const char *a, const char *b, int *lines) {
  begin_difference(w, name, lines);
  if (!w->json) {
    str_printf(&w->text, ": %s there, %s here\n", a, b);
    return;
  }
  str_put(&w->text, ",\"values\":[");
  json_quote(&w->text, a);
  str_putc(&w->text, ',');
  json_quote(&w->text, b);
  str_put(&w->text, "]}");
}

static void put_values(struct checkpoint_work *w, const struct checkpoint_entry *e,
                       const struct difference *d, int *lines) {
  begin_difference(w, e->name, lines);
  int64_t count = type_count(&e->type);
  if (w->json)
    str_printf(&w->text, ",\"elements\":%lld,\"of\":%lld,\"most\":", (long long)d->elements,
               (long long)count);
  else
    str_printf(&w->text, ": %lld of %lld elements differ, by at most ", (long long)d->elements,
               (long long)count);
  put_number(&w->text, w->json, d->most);
  str_put(&w->text, w->json ? "}" : "\n");
}

static void compare_texts(struct checkpoint_work *w, int *lines) {
  const struct checkpoint *a = w->files[0], *b = w->files[1];
  for (int i = 0; i < a->ntexts; i++) {
    const char *key = a->texts[i].key, *there = a->texts[i].value, *here = checkpoint_text(b, key);
    const char *name = arena_printf(w->s->call, "# %s", key);
    if (!here)
      put_only(w, name, 0, lines);
    else if (strcmp(there, here) != 0)
      put_texts(w, name, there, here, lines);
  }
  for (int i = 0; i < b->ntexts; i++)
    if (!checkpoint_text(a, b->texts[i].key))
      put_only(w, arena_printf(w->s->call, "# %s", b->texts[i].key), 1, lines);
}

static void compare_tensors(struct checkpoint_work *w, int *lines) {
  const struct checkpoint *a = w->files[0], *b = w->files[1];
  for (int i = 0; i < a->count; i++) {
    const struct checkpoint_entry *x = &a->entries[i], *y = checkpoint_find(b, x->name);
    if (!y) {
      put_only(w, x->name, 0, lines);
    } else if (!type_equal(&x->type, &y->type)) {
      put_texts(w, x->name, checkpoint_type_text(w->s->call, x), checkpoint_type_text(w->s->call, y), lines);
    } else {
      struct difference d = difference_of(x, y);
      if (d.elements) put_values(w, x, &d, lines);
    }
  }
  for (int i = 0; i < b->count; i++)
    if (!checkpoint_find(a, b->entries[i].name)) put_only(w, b->entries[i].name, 1, lines);
}

static enum dgc_status diff(struct checkpoint_work *w) {
  int texts = 0, tensors = 0;
  if (w->json) str_put(&w->text, "{\"texts\":[");
  compare_texts(w, &texts);
  if (w->json) str_put(&w->text, "],\"tensors\":[");
  compare_tensors(w, &tensors);
  if (w->json) str_put(&w->text, "]}\n");
  if (!texts && !tensors) return DGC_OK;
  if (!tensors)
    return session_fail(w->s, DGC_MISMATCH, "%s and %s hold the same tensors; what is said of them differs",
                        w->paths[0], w->paths[1]);
  return session_fail(w->s, DGC_MISMATCH, "%s and %s differ in %d tensor%s", w->paths[0], w->paths[1],
                      tensors, tensors == 1 ? "" : "s");
}

/* --- files that are made of others --- */

static enum dgc_status save(struct checkpoint_work *w, const struct checkpoint *c) {
  bool good = checkpoint_save(w->out, c->entries, c->count, c->texts, c->ntexts, &w->s->diags);
  return good ? DGC_OK : DGC_RUNTIME;
}

static enum dgc_status rename_all(struct checkpoint_work *w) {
  if (!w->s->options.names)
    return session_fail(w->s, DGC_USAGE, "rename: --names FILE says how, a line `old = new` for each");
  enum dgc_status status = names_apply(w->s, w->files[0], w->paths[0]);
  return status ? status : save(w, w->files[0]);
}

/* What is no number with a fraction is that of the last file. */
static enum dgc_status average_entry(struct checkpoint_work *w, struct checkpoint_entry *e) {
  int64_t count = type_count(&e->type);
  bool single = e->type.dtype == DT_F32;
  for (int k = 0; k < w->count; k++) {
    const struct checkpoint_entry *other = checkpoint_find(w->files[k], e->name);
    if (!other) return session_fail(w->s, DGC_MISMATCH, "%s holds no %s", w->paths[k], e->name);
    if (!type_equal(&other->type, &e->type))
      return session_fail(w->s, DGC_MISMATCH, "%s: %s is %s there, and %s in %s", w->paths[k], e->name,
                          checkpoint_type_text(w->s->call, other), checkpoint_type_text(w->s->call, e),
                          w->paths[w->count - 1]);
  }
  if (!dtype_is_float((enum dtype)e->type.dtype)) return DGC_OK;
  void *mean = arena_alloc(w->s->call, (size_t)type_bytes(&e->type) + 1);
  for (int64_t i = 0; i < count; i++) {
    double sum = 0;
    for (int k = 0; k < w->count; k++) sum += element(checkpoint_find(w->files[k], e->name), i);
    sum /= w->count;
    if (single)
      ((float *)mean)[i] = (float)sum;
    else
      ((double *)mean)[i] = sum;
  }
  e->data = mean;
  return DGC_OK;
}

static enum dgc_status average(struct checkpoint_work *w) {
  struct checkpoint c = *w->files[w->count - 1];
  enum dgc_status status = DGC_OK;
  c.entries = arena_copy(w->s->call, c.entries, (size_t)c.count * sizeof *c.entries);
  for (int k = 0; k < w->count; k++)
    for (int i = 0; i < w->files[k]->count && !status; i++)
      if (!checkpoint_find(&c, w->files[k]->entries[i].name))
        status = session_fail(w->s, DGC_MISMATCH, "%s holds no %s", w->paths[w->count - 1],
                              w->files[k]->entries[i].name);
  for (int i = 0; i < c.count && !status; i++) status = average_entry(w, &c.entries[i]);
  return status ? status : save(w, &c);
}

static enum dgc_status to_npz(struct checkpoint_work *w) {
  const struct checkpoint *c = w->files[0];
  struct npz_array *arrays = arena_new_array(w->s->call, (size_t)c->count + 1, struct npz_array);
  for (int i = 0; i < c->count; i++)
    arrays[i] = (struct npz_array){c->entries[i].name, c->entries[i].type, c->entries[i].data};
  return npz_write(w->s->call, w->out, arrays, c->count, &w->s->diags) ? DGC_OK : DGC_RUNTIME;
}

/* How many finite numbers of e are infinite in what it is stored in. */
static int64_t too_large(const struct checkpoint_entry *e) {
  const float *x = e->data;
  int64_t count = 0, n = type_count(&e->type);
  for (int64_t i = 0; i < n; i++)
    count += isfinite(x[i]) && isinf(half_to_float(e->storage, half_from_float(e->storage, x[i])));
  return count;
}

/* Says it once, of the first tensor, and how many there are beside it. */
static void warn_infinite(struct checkpoint_work *w) {
  const struct checkpoint *c = w->files[0];
  const struct checkpoint_entry *first = NULL;
  int64_t of_first = 0, more = 0;
  int others = 0;
  for (int i = 0; i < c->count; i++) {
    const struct checkpoint_entry *e = &c->entries[i];
    int64_t count = e->storage ? too_large(e) : 0;
    if (first && count) others++, more += count;
    if (!first && count) first = e, of_first = count;
  }
  if (!first) return;
  diag_warning(
      &w->s->diags, LOC_NONE, "cast: %lld of %lld numbers of %s are too large for %s and become infinite",
      (long long)of_first, (long long)type_count(&first->type), first->name, dtype_name(first->storage));
  if (others)
    diag_note(&w->s->diags, LOC_NONE, "so do %lld of %d more tensor%s", (long long)more, others,
              others == 1 ? "" : "s");
  if (first->storage == DT_F16)
    diag_help(&w->s->diags, LOC_NONE, "--to bf16 has room for them: the largest f16 is 65504");
}

static enum dgc_status cast(struct checkpoint_work *w) {
  static const struct {
    const char *name;
    enum dtype storage;
  } forms[] = {{"f32", DT_F32}, {"f16", DT_F16}, {"bf16", DT_BF16}};
  const char *to = w->s->options.to;
  int form = -1;
  for (int i = 0; to && i < 3; i++)
    if (strcmp(to, forms[i].name) == 0) form = i;
  if (form < 0)
    return session_fail(w->s, DGC_USAGE, "cast: --to is f32, f16 or bf16%s%s", to ? ", not " : "",
                        to ? to : "");
  for (int i = 0; i < w->files[0]->count; i++) {
    struct checkpoint_entry *e = &w->files[0]->entries[i];
    if (e->type.dtype == DT_F32) e->storage = forms[form].storage;
  }
  warn_infinite(w);
  return save(w, w->files[0]);
}

/* --- which --- */

static const struct action {
  const char *name;
  int least, most; /* files */
  bool writes;
  enum dgc_status (*run)(struct checkpoint_work *w);
} actions[] = {
    {"show", 1, 1, false, show},        {"diff", 2, 2, false, diff},
    {"rename", 1, 1, true, rename_all}, {"average", 1, 1 << 10, true, average},
    {"to-npz", 1, 1, true, to_npz},     {"cast", 1, 1, true, cast},
};
enum { ACTIONS = sizeof actions / sizeof *actions };

static enum dgc_status no_action(struct dgc_session *s, const char *what) {
  const char *names[ACTIONS];
  for (int i = 0; i < ACTIONS; i++) names[i] = actions[i].name;
  session_fail(s, DGC_USAGE, "nothing called '%s' can be done with a checkpoint", what);
  diag_closest(&s->diags, LOC_NONE, what, names, ACTIONS, "there are");
  return DGC_USAGE;
}

static enum dgc_status check_files(struct checkpoint_work *w, const struct action *a) {
  struct stat st;
  if (w->count < a->least || w->count > a->most)
    return session_fail(w->s, DGC_USAGE, "%s: %d file%s, and %d %s given", a->name, a->least,
                        a->least == 1 ? " is needed" : "s are needed", w->count,
                        w->count == 1 ? "is" : "are");
  if (!a->writes) return DGC_OK;
  if (!w->out) return session_fail(w->s, DGC_USAGE, "%s: -o FILE says where the result goes", a->name);
  for (int i = 0; i < w->count && strcmp(w->out, "-") != 0; i++)
    if (place_one(w->s->call, w->paths[i], w->out))
      return session_fail(w->s, DGC_USAGE, "%s: %s is what it reads: name another file for the result",
                          a->name, w->out);
  if (w->s->options.overwrite || strcmp(w->out, "-") == 0 || stat(w->out, &st) != 0 || !S_ISREG(st.st_mode))
    return DGC_OK;
  session_fail(w->s, DGC_USAGE, "%s is there already", w->out);
  diag_help(&w->s->diags, LOC_NONE, "--overwrite replaces it");
  return DGC_USAGE;
}

static enum dgc_status run(struct checkpoint_work *w, const char *what) {
  const struct action *a = NULL;
  for (int i = 0; i < ACTIONS; i++)
    if (strcmp(actions[i].name, what) == 0) a = &actions[i];
  if (!a) return no_action(w->s, what);
  enum dgc_status status = check_files(w, a);
  if (status) return status;
  w->files = arena_new_array(w->s->call, (size_t)w->count, struct checkpoint *);
  for (int i = 0; i < w->count; i++) {
    w->files[i] = checkpoint_load(w->s->call, w->paths[i], &w->s->diags);
    if (!w->files[i]) return session_unread(w->s);
  }
  struct file_claim held = {.fd = -1};
  struct arena_guard guard;
  if (!w->out) return a->run(w);
  arena_guard(&guard, session_claim_end, &held);
  status = session_claim_file(w->s, w->out, &held);
  if (!status) status = a->run(w);
  arena_unguard(&guard);
  session_claim_end(&held);
  return status;
}

static enum dgc_status checkpoint_call(struct dgc_session *s, const char *what, const char *const *paths,
                                       int count, const char *out, bool json, const char **text) {
  struct checkpoint_work w = {
      .s = s, .paths = paths, .count = count, .out = out, .json = json, .text = session_text(s)};
  enum dgc_status status = run(&w, what);
  *text = w.text.data;
  return status;
}

enum dgc_status dgc_checkpoint(struct dgc_session *s, const char *what, const char *const *paths, int count,
                               const char *out, bool json, const char **text) {
  *text = "";
  CALL(s, checkpoint_call(s, what, paths, count, out, json, text));
}
