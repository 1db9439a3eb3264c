/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints whose variables have other names than the model's. */
#include "session/names.h"

#include "session/model.h"

#include "base/map.h"
#include "runtime/checkpoint.h"
#include "runtime/data/strided.h"
#include "runtime/model_variable.h"

#include <string.h>

enum { MAX_NAMES_FILE = 16 << 20 };

/* --- the file --- */

/* What a line says: the model's name, and of which axis there each one is; rank 0: they stay. */
struct name_line {
  const char *name;
  int rank, order[MAX_RANK];
};

struct renames {
  const struct source *source;
  struct map lines; /* by the old names */
};

struct word {
  const char *text;
  size_t len;
};

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

static struct word trimmed(const char *text, size_t len) {
  while (len && is_blank(*text)) text++, len--;
  while (len && is_blank(text[len - 1])) len--;
  return (struct word){text, len};
}

static bool is_name(struct word w) {
  for (size_t i = 0; i < w.len; i++)
    if (is_blank(w.text[i])) return false;
  return w.len > 0;
}

/* The word of a line, without its comment. `#` is also within names, as in `h#2`: a comment begins behind a blank. */
static size_t without_comment(const char *line, size_t len) {
  for (size_t i = 0; i < len; i++)
    if (line[i] == '#' && (i == 0 || is_blank(line[i - 1]))) return i;
  return len;
}

/* Cuts "[1, 0]" off the end of a word. False: it is no order of axes. */
static bool cut_order(struct word *w, struct name_line *to) {
  const char *open = memchr(w->text, '[', w->len), *end = w->text + w->len, *at = open;
  unsigned seen = 0;
  if (!open) return true;
  if (end[-1] != ']') return false;
  for (; *at != ']'; to->rank++) {
    struct word digit = trimmed(at + 1, strcspn(at + 1, ",]"));
    if (digit.len != 1 || *digit.text < '0' || *digit.text >= '0' + MAX_RANK || to->rank == MAX_RANK)
      return false;
    seen |= 1U << (to->order[to->rank] = *digit.text - '0');
    at = digit.text + 1 + strspn(digit.text + 1, " \t\r");
  }
  *w = trimmed(w->text, (size_t)(open - w->text));
  return at + 1 == end && seen + 1 == 1U << to->rank;
}

static enum dgc_status read_line(struct dgc_session *s, struct renames *r, const char *line, size_t len) {
  uint32_t begin = (uint32_t)(line - r->source->text);
  struct loc loc = {r->source, begin, begin + (uint32_t)len};
  struct word w = trimmed(line, without_comment(line, len));
  if (!w.len) return DGC_OK;
  const char *equals = memchr(w.text, '=', w.len);
  size_t left = equals ? (size_t)(equals - w.text) : w.len;
  struct word old = trimmed(w.text, left), new = {0};
  struct name_line *to = arena_new(s->call, struct name_line);
  if (equals) new = trimmed(equals + 1, w.len - left - 1);
  if (new.len && !cut_order(&new, to)) {
    diag_error(&s->diags, loc,
               "an order of axes has each of 0, 1, ... once, as [1, 0], which transposes a matrix");
    return DGC_INPUT;
  }
  if (!is_name(old) || !is_name(new)) {
    diag_error(&s->diags, loc, "a line says `old = new`, the name in the checkpoint and that of the model");
    return DGC_INPUT;
  }
  const char *name = arena_strndup(s->call, old.text, old.len);
  if (!map_get(&r->lines, name)) {
    to->name = arena_strndup(s->call, new.text, new.len);
    map_put(&r->lines, name, to);
    return DGC_OK;
  }
  diag_error(&s->diags, loc, "`%s` is renamed twice", name);
  return DGC_INPUT;
}

static enum dgc_status read_renames(struct dgc_session *s, const char *path, struct renames *r) {
  r->source = source_read(s->call, path, MAX_NAMES_FILE, &s->diags);
  if (!r->source) return session_unread(s);
  r->lines = map_make(s->call);
  enum dgc_status status = DGC_OK;
  const char *at = r->source->text, *end = at + r->source->len;
  while (at < end) {
    const char *stop = memchr(at, '\n', (size_t)(end - at));
    if (!stop) stop = end;
    enum dgc_status line = read_line(s, r, at, (size_t)(stop - at));
    if (line) status = line;
    at = stop + 1;
  }
  return status;
}

/* --- renaming --- */

/* Towers' copies are "tower_0/NAME". */
static const char *own_name(const char *name) {
  const char *slash = strncmp(name, "tower_", 6) == 0 ? strchr(name, '/') : NULL;
  return slash ? slash + 1 : name;
}

/* The new name; *line: what says it, or NULL. */
static const char *renamed(struct dgc_session *s, const struct renames *r, const char *name,
                           const struct name_line **line) {
  const char *own = own_name(name);
  for (size_t len = strlen(own); len > 0; len--) {
    if (own[len] && own[len] != '.') continue;
    *line = map_getn(&r->lines, own, len);
    if (*line) return arena_printf(s->call, "%.*s%s%s", (int)(own - name), name, (*line)->name, own + len);
  }
  return name;
}

/* Axis i of the new tensor is axis order[i] of the old one, as numpy's transpose has it. */
static void permute(struct dgc_session *s, struct checkpoint_entry *e, const int *order) {
  struct type to = e->type;
  int64_t stride[MAX_RANK];
  void *data = arena_alloc(s->call, (size_t)type_bytes(&e->type) + 1);
  for (int i = 0; i < to.rank; i++) {
    to.dim[i] = e->type.dim[order[i]], stride[i] = 1;
    for (int k = order[i] + 1; k < to.rank; k++) stride[i] *= e->type.dim[k];
  }
  copy_strided(data, e->data, (size_t)dtype_size((enum dtype)to.dtype), to.rank, to.dim, stride);
  e->data = data;
  e->type = to;
}

static const char *last_part(const char *name) {
  const char *dot = strrchr(name, '.');
  return dot ? dot + 1 : name;
}

/* PyTorch's Linear and Conv have weights [out, in, spatial...], kernels are [spatial..., in, out]. */
static bool has_torch_order(const struct checkpoint *c, const char *old, const char *new, int rank) {
  return !c->checksum && rank >= 2 && strcmp(last_part(old), "weight") == 0 &&
         strcmp(last_part(new), "kernel") == 0;
}

static void torch_order(int rank, int *order) {
  for (int i = 0; i < rank - 2; i++) order[i] = i + 2;
  order[rank - 2] = 1, order[rank - 1] = 0;
}

static const char *order_text(struct dgc_session *s, int rank, const int *order) {
  struct str text = str_make(s->call);
  for (int i = 0; i < rank; i++) str_printf(&text, "%s%d", i ? ", " : "[", order[i]);
  str_printf(&text, "]");
  return text.data;
}

static enum dgc_status reorder(struct dgc_session *s, struct checkpoint *c, struct checkpoint_entry *e,
                               const char *new, const struct name_line *line, const char *path) {
  int order[MAX_RANK], same[MAX_RANK], rank = e->type.rank;
  if (line->rank && line->rank != rank)
    return session_fail(s, DGC_MISMATCH, "%s: %s has %d ax%s, and %s orders %d", path, e->name, rank,
                        rank == 1 ? "is" : "es", s->options.names, line->rank);
  if (line->rank) {
    permute(s, e, line->order);
  } else if (has_torch_order(c, e->name, new, rank)) {
    diag_warning(&s->diags, LOC_NONE,
                 "%s: %s becomes %s as it lies, and PyTorch has the axes of weights in another order", path,
                 e->name, new);
    torch_order(rank, order);
    for (int i = 0; i < rank; i++) same[i] = i;
    diag_help(&s->diags, LOC_NONE,
              "write `%s = %s %s` in %s if it is of PyTorch's Linear or Conv, and %s if it lies as here",
              e->name, new, order_text(s, rank, order), s->options.names, order_text(s, rank, same));
  }
  return DGC_OK;
}

enum dgc_status names_apply(struct dgc_session *s, struct checkpoint *c, const char *path) {
  struct renames r;
  if (!s->options.names) return DGC_OK;
  enum dgc_status status = read_renames(s, s->options.names, &r);
  if (status) return status;
  struct map taken = map_make(s->call); /* old names by the new ones */
  for (int i = 0; i < c->count; i++) {
    const struct name_line *line = NULL;
    const char *old = c->entries[i].name, *new = renamed(s, &r, old, &line);
    const char *other = map_put(&taken, new, (void *)(uintptr_t)old);
    if (other)
      return session_fail(s, DGC_MISMATCH, "%s: both %s and %s would be %s by %s", path, other, old, new,
                          s->options.names);
    if (line) status = reorder(s, c, &c->entries[i], new, line, path);
    if (status) return status;
    c->entries[i].name = new;
  }
  return DGC_OK;
}

/* --- help --- */

/* Cuts the parts off that both names end with, but leaves one of each. */
static void cut_common(const char *a, size_t *na, const char *b, size_t *nb) {
  for (;;) {
    size_t x = *na, y = *nb;
    while (x && a[x - 1] != '.') x--;
    while (y && b[y - 1] != '.') y--;
    if (!x || !y || *na - x != *nb - y || memcmp(a + x, b + y, *na - x) != 0) return;
    *na = x - 1;
    *nb = y - 1;
  }
}

/* What layers of PyTorch call theirs, and layers here. */
static bool same_end(const char *file, const char *model) {
  static const char *const torch[][2] = {{"weight", "kernel"},
                                         {"weight", "scale"},
                                         {"bias", "shift"},
                                         {"weight", "table"},
                                         {"running_mean", "moving_mean"},
                                         {"running_var", "moving_variance"}};
  const char *x = last_part(file), *y = last_part(model);
  for (size_t i = 0; i < sizeof torch / sizeof *torch; i++)
    if (strcmp(x, torch[i][0]) == 0 && strcmp(y, torch[i][1]) == 0) return true;
  return strcmp(x, y) == 0;
}

struct help {
  struct dgc_session *s;
  const struct checkpoint *c;
  struct map known; /* names of the model, and those of the file that a line renames */
  struct map lines;
};

/* The part before the last. */
static struct word before_last(const char *name) {
  const char *end = last_part(name), *begin = end > name ? --end : end;
  while (begin > name && begin[-1] != '.') begin--;
  return (struct word){begin, (size_t)(end - begin)};
}

static bool same_layer(const char *a, const char *b) {
  struct word x = before_last(a), y = before_last(b);
  return x.len == y.len && memcmp(x.text, y.text, x.len) == 0;
}

/* Whether the tensor may be v, and in which order of its axes: "" as it lies. */
static bool may_be(const struct help *h, const struct checkpoint_entry *e, const struct model_variable *v,
                   const char **order) {
  struct type t = e->type;
  int axes[MAX_RANK];
  *order = "";
  if (has_torch_order(h->c, e->name, v->name, t.rank)) {
    torch_order(t.rank, axes);
    for (int i = 0; i < t.rank; i++) t.dim[i] = e->type.dim[axes[i]];
    *order = arena_printf(h->s->call, " %s", order_text(h->s, t.rank, axes));
  }
  return type_equal(&t, &v->type);
}

/* What the file may call v: of its type, and with the same end, of a layer of the same name if there is one, or else
 * the only one of its type. */
static const struct checkpoint_entry *called(const struct help *h, const struct model_variable *v,
                                             bool by_end, const char **order) {
  const struct checkpoint_entry *found = NULL;
  const char *text;
  for (int k = 0; k < h->c->count; k++) {
    const struct checkpoint_entry *e = &h->c->entries[k];
    if (map_get(&h->known, e->name) || own_name(e->name) != e->name || !may_be(h, e, v, &text)) continue;
    if (by_end && !same_end(e->name, v->name)) continue;
    bool same = by_end && same_layer(e->name, v->name);
    if (found && !by_end) return NULL;
    if (!found || same) found = e, *order = text;
    if (same) break;
  }
  return found;
}

static void add_lines(struct help *h, const struct model_variable *all, int count, bool by_end) {
  for (int i = 0; i < count; i++) {
    const struct model_variable *v = &all[i];
    if (checkpoint_find(h->c, v->name) || map_get(&h->known, v->name) == v) continue;
    const char *order = "";
    const struct checkpoint_entry *e = called(h, v, by_end, &order);
    if (!e) continue;
    size_t old = strlen(e->name), new = strlen(v->name);
    if (h->c->checksum) cut_common(e->name, &old, v->name, &new);
    map_put(&h->known, e->name, h);
    map_put(&h->known, v->name, (void *)(uintptr_t)v);
    map_put(&h->lines, arena_printf(h->s->call, "%.*s = %.*s%s", (int)old, e->name, (int)new, v->name, order),
            h);
  }
}

/* Whether a line says of each variable that the file has not what it is called there. */
static bool all_are_called(const struct help *h, const struct model_variable *all, int count) {
  for (int i = 0; i < count; i++)
    if (!checkpoint_find(h->c, all[i].name) && map_get(&h->known, all[i].name) != &all[i]) return false;
  return true;
}

void names_help(struct dgc_session *s, const struct checkpoint *c, const struct model_variable *all,
                int count) {
  enum { SHOWN = 24 };
  struct help h = {s, c, map_make(s->call), map_make(s->call)};
  for (int i = 0; i < count; i++) map_put(&h.known, all[i].name, &h);
  add_lines(&h, all, count, true);
  add_lines(&h, all, count, false);
  const char *model = checkpoint_text(c, "model");
  bool other = model && strcmp(model, s->model->name) != 0;
  if (other) diag_note(&s->diags, LOC_NONE, "the file is a checkpoint of model %s", model);
  if (!h.lines.count || (other && !all_are_called(&h, all, count))) return;
  struct str text = str_make(s->call);
  for (uint32_t i = 0; i < h.lines.count && i < SHOWN; i++)
    str_printf(&text, "%s`%s`", i ? ", " : "", h.lines.entries[i].key);
  if (h.lines.count > SHOWN) str_printf(&text, " and %u more", h.lines.count - SHOWN);
  diag_help(&s->diags, LOC_NONE,
            "a file of lines `old = new` says by --names what its variables are called here: %s", text.data);
}
