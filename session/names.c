/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints whose variables have other names than the model's. */
#include "session/names.h"

#include "session/model.h"

#include "base/map.h"
#include "runtime/checkpoint.h"
#include "runtime/model_variable.h"

#include <string.h>

enum { MAX_NAMES_FILE = 16 << 20 };

/* --- the file --- */

struct renames {
  const struct source *source;
  struct map new_names; /* by the old ones */
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

static enum dgc_status read_line(struct dgc_session *s, struct renames *r, const char *line, size_t len) {
  uint32_t begin = (uint32_t)(line - r->source->text);
  struct loc loc = {r->source, begin, begin + (uint32_t)len};
  struct word w = trimmed(line, without_comment(line, len));
  if (!w.len) return DGC_OK;
  const char *equals = memchr(w.text, '=', w.len);
  size_t left = equals ? (size_t)(equals - w.text) : w.len;
  struct word old = trimmed(w.text, left), new = {0};
  if (equals) new = trimmed(equals + 1, w.len - left - 1);
  if (!is_name(old) || !is_name(new)) {
    diag_error(&s->diags, loc, "a line says `old = new`, the name in the checkpoint and that of the model");
    return DGC_INPUT;
  }
  const char *name = arena_strndup(s->call, old.text, old.len);
  if (!map_get(&r->new_names, name)) {
    map_put(&r->new_names, name, arena_strndup(s->call, new.text, new.len));
    return DGC_OK;
  }
  diag_error(&s->diags, loc, "`%s` is renamed twice", name);
  return DGC_INPUT;
}

static enum dgc_status read_renames(struct dgc_session *s, const char *path, struct renames *r) {
  r->source = source_read(s->call, path, MAX_NAMES_FILE, &s->diags);
  if (!r->source) return session_unread(s);
  r->new_names = map_make(s->call);
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

static const char *renamed(struct dgc_session *s, const struct renames *r, const char *name) {
  const char *own = own_name(name);
  for (size_t len = strlen(own); len > 0; len--) {
    if (own[len] && own[len] != '.') continue;
    const char *new = map_getn(&r->new_names, own, len);
    if (new) return arena_printf(s->call, "%.*s%s%s", (int)(own - name), name, new, own + len);
  }
  return name;
}

enum dgc_status names_apply(struct dgc_session *s, struct checkpoint *c, const char *path) {
  struct renames r;
  if (!s->options.names) return DGC_OK;
  enum dgc_status status = read_renames(s, s->options.names, &r);
  if (status) return status;
  struct map taken = map_make(s->call); /* old names by the new ones */
  for (int i = 0; i < c->count; i++) {
    const char *old = c->entries[i].name, *new = renamed(s, &r, old);
    const char *other = map_put(&taken, new, (void *)(uintptr_t)old);
    if (other)
      return session_fail(s, DGC_MISMATCH, "%s: both %s and %s would be %s by %s", path, other, old, new,
                          s->options.names);
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

static bool same_end(const char *a, const char *b) {
  const char *x = strrchr(a, '.'), *y = strrchr(b, '.');
  return strcmp(x ? x : a, y ? y : b) == 0;
}

struct help {
  struct dgc_session *s;
  const struct checkpoint *c;
  struct map known; /* names of the model, and those of the file that a line renames */
  struct map lines;
};

/* What the file may call v: of the same type, and with the same end, or else the only one of its type. */
static const struct checkpoint_entry *called(const struct help *h, const struct model_variable *v,
                                             bool by_end) {
  const struct checkpoint_entry *found = NULL;
  for (int k = 0; k < h->c->count; k++) {
    const struct checkpoint_entry *e = &h->c->entries[k];
    if (map_get(&h->known, e->name) || !type_equal(&e->type, &v->type) || own_name(e->name) != e->name)
      continue;
    if (by_end && !same_end(e->name, v->name)) continue;
    if (by_end) return e;
    if (found) return NULL;
    found = e;
  }
  return found;
}

static void add_lines(struct help *h, const struct model_variable *all, int count, bool by_end) {
  for (int i = 0; i < count; i++) {
    const struct model_variable *v = &all[i];
    if (checkpoint_find(h->c, v->name) || map_get(&h->known, v->name) == v) continue;
    const struct checkpoint_entry *e = called(h, v, by_end);
    if (!e) continue;
    size_t old = strlen(e->name), new = strlen(v->name);
    cut_common(e->name, &old, v->name, &new);
    map_put(&h->known, e->name, h);
    map_put(&h->known, v->name, (void *)(uintptr_t)v);
    map_put(&h->lines, arena_printf(h->s->call, "%.*s = %.*s", (int)old, e->name, (int)new, v->name), h);
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
  enum { SHOWN = 8 };
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
