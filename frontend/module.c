/* SPDX-License-Identifier: Apache-2.0 */
/* Where names come from: the prelude, the standard library, other files. */
#include "frontend/resolve.h"

#include "frontend/library.h"

#include <string.h>

enum { MAX_USES = 64 }; /* files that use each other */

static void define(struct resolver *r, struct module *m, const char *name, struct loc loc, struct value v) {
  const struct value *old = map_get(&m->names, name);
  v.decl = loc;
  v.name = name;
  if (old) {
    report(r, loc, "`%s` is defined already", name);
    report_note(r, old->decl, "it is defined here");
    return;
  }
  map_put(&m->names, name, arena_copy(r->arena, &v, sizeof v));
}

static void define_all(struct resolver *r, struct module *m, const struct file *file) {
  for (const struct def *d = file->defs; d; d = d->next) {
    struct function *f = arena_new(r->arena, struct function);
    *f = (struct function){.def = d, .module = m, .makes = arena_new(r->arena, uint8_t)};
    define(r, m, d->name, d->loc, (struct value){.kind = VALUE_FUNCTION, .function = f});
  }
}

/* A file of the library: its names, and where their definitions stand. */
static void define_library(struct resolver *r, struct module *m, const struct source *source,
                           const struct embedded *e) {
  size_t count = library_definitions(e, NULL, 0);
  struct definition *all = arena_new_array(r->arena, count, struct definition);
  library_definitions(e, all, count);
  for (const struct definition *d = all; d < all + count; d++) {
    struct function *f = arena_new(r->arena, struct function);
    *f = (struct function){
        .text = {source, d->begin, d->end}, .module = m, .makes = arena_new(r->arena, uint8_t)};
    const char *name = arena_strndup(r->arena, e->text + d->name_begin, d->name_end - d->name_begin);
    define(r, m, name, (struct loc){source, d->name_begin, d->name_end},
           (struct value){.kind = VALUE_FUNCTION, .function = f});
  }
}

const struct value *module_find(struct resolver *r, const struct module *m, const char *name) {
  struct value *v = map_get(&m->names, name);
  if (!v || v->kind != VALUE_FUNCTION || v->function->def) return v;
  struct function *f = arena_copy(r->arena, v->function, sizeof *f);
  f->def = ast_parse_part(r->arena, f->text.source, f->text.begin, f->text.end, r->diags)->defs;
  v->function = f;
  return v;
}

static struct module *new_module(struct resolver *r, const char *name, const struct source *source,
                                 bool library) {
  struct module *m = arena_new(r->arena, struct module);
  *m = (struct module){.name = name, .source = source, .outer = r->modules.prelude, .library = library};
  m->names = map_make(r->arena);
  return m;
}

/* One embedded file, its names into `m` (or a module of its own). */
static struct module *load_embedded(struct resolver *r, const struct embedded *e, struct module *m) {
  const struct source *source = source_make(r->arena, e->name, e->text, e->len);
  struct module *own = new_module(r, arena_strndup(r->arena, e->name, strcspn(e->name, ".")), source, true);
  map_put(&r->modules.by_name, e->name, own);
  define_library(r, m ? m : own, source, e);
  return own;
}

/* The library that a file is part of: "nn" of nn.dsl and nn_attention.dsl; NULL: of what is always in scope. */
static const char *library_of(const char *file) { return strncmp(file, "nn", 2) == 0 ? "nn" : NULL; }

struct module *load_library(struct resolver *r, const char *name) {
  if (!r->modules.prelude) {
    struct module *prelude = new_module(r, "prelude", NULL, true);
    for (const struct embedded *e = frontend_library; e->name; e++)
      if (!library_of(e->name)) load_embedded(r, e, prelude);
    r->modules.prelude = prelude;
  }
  struct module *all = NULL;
  for (const struct embedded *e = frontend_library; e->name; e++) {
    if (!str_same(library_of(e->name), name)) continue;
    struct module *m = map_get(&r->modules.by_name, e->name);
    if (!all && m && m->library) return m;
    m = load_embedded(r, e, all);
    all = all ? all : m;
  }
  return all;
}

const char *resolve_path(struct resolver *r, const struct source *from, const char *path) {
  if (path[0] == '/' || strstr(path, "://")) return path;
  const char *folder = r->options->folder;
  if (folder && *folder) return arena_printf(r->arena, "%s/%s", folder, path);
  const char *slash = strrchr(from->name, '/');
  if (!slash) return path;
  return arena_printf(r->arena, "%.*s%s", (int)(slash - from->name + 1), from->name, path);
}

static struct module *load_file(struct resolver *r, const struct use *u) {
  const char *path = resolve_path(r, u->loc.source, u->what);
  struct module *m = map_get(&r->modules.by_name, path);
  if (m && m->loading) {
    report(r, u->loc, "`%s` uses itself", u->what);
    return NULL;
  }
  if (m) return m;
  if (r->modules.by_name.count > MAX_USES) {
    report(r, u->loc, "a model may use at most %d files", MAX_USES);
    return NULL;
  }
  struct diags d;
  diags_init(&d, r->arena);
  const struct source *source = source_read_within(r->arena, r->options->roots, path, MAX_SOURCE, &d);
  if (!source) {
    report(r, u->loc, "%s", d.first ? d.first->message : "cannot be read");
    r->diags->failure |= d.failure;
    return NULL;
  }
  int errors = r->diags->nerrors;
  const struct file *file = ast_parse(r->arena, source, r->diags);
  return r->diags->nerrors == errors ? load_modules(r, source, file) : NULL;
}

/* The libraries that a model may name. */
static const char **library_names(struct arena *a, size_t *count) {
  const char **names = arena_new_array(a, 1, const char *);
  names[0] = "nn";
  *count = 1;
  return names;
}

struct module *load_modules(struct resolver *r, const struct source *source, const struct file *file) {
  struct module *m = new_module(r, source->name, source, false);
  map_put(&r->modules.by_name, source->name, m);
  m->loading = true;
  for (const struct use *u = file->uses; u; u = u->next) {
    struct module *used = u->is_path ? load_file(r, u) : load_library(r, u->what);
    const char *as = u->as ? u->as : u->what;
    if (!used && !u->is_path) {
      report(r, u->loc, "there is no library `%s`", u->what);
      size_t count;
      const char **names = library_names(r->arena, &count);
      report_closest(r, u->what, names, count);
      report_help(r, "a file is used by its path: `use \"%s.dsl\" as %s`", u->what, u->what);
    }
    struct value v = value_error();
    if (used) v = (struct value){.kind = VALUE_MODULE, .module = used};
    define(r, m, as, u->loc, v);
  }
  define_all(r, m, file);
  r->modules.ask_gradients |= asks_gradients(file);
  m->loading = false;
  return m;
}
