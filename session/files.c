/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are read and files that are written must be different ones, whatever their names look like: those of
 * options, as their table says what is done with them; those of the caller, as dgc_uses says; the model with what it
 * uses and the data that it names; the checkpoints that were restored or saved. */
#include "session/files.h"

#include "session/options.h"
#include "session/state/checkpoints.h"
#include "session/state/used_files.h"

#include "base/place.h"
#include "frontend/frontend.h"
#include "runtime/mpi/transport.h"

#include <string.h>
#include <unistd.h>

struct used {
  const char *what, *path;
  enum dgc_file_use use;
  bool standard, own; /* own: a checkpoint that the session has restored or saved */
  struct file_place place;
};

struct all_files {
  struct dgc_session *s;
  struct used *all;
  int count, cap;
  bool trains;
};

/* ---- what there is ---- */

static bool is_standard(const char *path) {
  static const char *const names[] = {"/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/fd/",
                                      "/proc/self/fd/"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strncmp(path, names[i], strlen(names[i])) == 0) return true;
  return strcmp(path, "-") == 0;
}

/* Devices and pipes may be named as often as one likes. */
static struct used *add(struct all_files *f, const char *what, const char *path, enum dgc_file_use use) {
  struct used u = {.what = what, .path = path, .use = use};
  u.standard = use != DGC_WRITES_IN && is_standard(path);
  const char *real = strcmp(path, "-") != 0 || !u.standard ? path
                     : use == DGC_READS                    ? "/dev/stdin"
                                                           : "/dev/stdout";
  if (!place_of(f->s->call, real, &u.place)) return NULL;
  if (u.place.there && !u.place.regular && !u.place.folder) return NULL;
  if (f->count == f->cap) {
    struct used *more = arena_new_array(f->s->call, (size_t)f->cap * 2 + 16, struct used);
    if (f->count) memcpy(more, f->all, (size_t)f->count * sizeof *more);
    f->all = more;
    f->cap = f->cap * 2 + 16;
  }
  f->all[f->count] = u;
  return &f->all[f->count++];
}

/* "x.npz:a": x.npz, if that is there; NULL: it is not. */
static const char *before_member(struct arena *a, const char *path) {
  char *file = arena_strdup(a, path), *colon = file;
  if (path[0] == '-' && (!path[1] || path[1] == ':')) return "-";
  while (colon && access(file, F_OK) != 0)
    if ((colon = strrchr(file, ':'))) *colon = 0;
  return colon ? file : NULL;
}

/* "a.npy,b.npz:x": two files, unless it is the name of one. */
static void add_data(struct all_files *f, const char *what, const char *paths) {
  struct arena *a = f->s->call;
  const char *file = before_member(a, paths);
  if (file && (access(paths, F_OK) == 0 || !strchr(paths, ','))) {
    add(f, what, file, DGC_READS);
    return;
  }
  for (size_t len; *paths; paths += len + (paths[len] != 0)) {
    len = strcspn(paths, ",");
    file = before_member(a, arena_strndup(a, paths, len));
    if (file) add(f, what, file, DGC_READS);
  }
}

static void add_option(void *user, const struct option_file *o) {
  struct all_files *f = user;
  struct arena *a = f->s->call;
  const char *what = arena_printf(a, "--%s", o->name);
  int rank, processes = transport_launched(&rank);
  if (o->data)
    add_data(f, what, o->path);
  else if (o->use == DGC_READS)
    add(f, what, o->renames && before_member(a, o->path) ? before_member(a, o->path) : o->path, DGC_READS);
  else
    add(f, what, o->path, o->use != DGC_TRAINING_WRITES ? o->use : f->trains ? DGC_WRITES : DGC_READS);
  for (int i = 1; o->of_each_process && i < processes; i++)
    add(f, what, arena_printf(a, "%s.%d", o->path, i), DGC_WRITES);
}

static void add_model(struct all_files *f) {
  const struct dgc_session *s = f->s;
  if (s->source && s->source->is_file) add(f, "the model", s->source->name, DGC_READS);
  if (!s->model) return;
  for (int i = 0; i < s->model->nfiles; i++) add(f, "`use` of the model", s->model->files[i], DGC_READS);
  for (int i = 0; i < s->model->ndata; i++) {
    const struct model_data *d = &s->model->data[i];
    const char *what = arena_printf(s->call, "the model's data of %s", d->input);
    for (int k = 0; k < d->npaths; k++) {
      const char *file = before_member(s->call, d->paths[k]);
      if (file) add(f, what, file, DGC_READS);
    }
  }
}

static struct all_files collect(struct dgc_session *s, bool trains) {
  struct all_files f = {.s = s, .trains = trains};
  options_files(s, add_option, &f);
  for (int i = 0; i < s->used_files->count; i++)
    add(&f, s->used_files->items[i].what, s->used_files->items[i].path, s->used_files->items[i].use);
  add_model(&f);
  for (int i = 0; i < s->saving->files.count; i++) {
    struct used *u = add(&f, "the checkpoint that the session has", s->saving->files.items[i], DGC_READS);
    if (u) u->own = true;
  }
  return f;
}

/* ---- what is one ---- */

static bool ends_in(const char *name, const char *end) {
  size_t len = strlen(name), n = strlen(end);
  return len >= n && strcasecmp(name + len - n, end) == 0;
}

/* Whether a folder that is read may have this file read. */
static bool is_read_in_folders(const char *name) {
  static const char *const ends[] = {".png", ".jpg", ".jpeg", ".dsl", ".dg", ".test"};
  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
    if (ends_in(name, ends[i])) return true;
  return false;
}

/* Whether dgc gives such names to the files that it writes in a folder: dumps and events. */
static bool is_written_in_folders(const char *name) {
  return ends_in(name, ".dg") || strstr(name, ".tfevents.") != NULL;
}

/* A checkpoint that is gone on with is replaced by what comes of it. */
static bool goes_on(const struct used *read, const struct used *written) {
  bool from = read->own || strcmp(read->what, "--resume") == 0;
  return from && (strcmp(written->what, "--checkpoint") == 0 || strcmp(written->what, "--keep-best") == 0);
}

/* The names that a file has until it is whole. */
static bool is_temporary_of(const struct used *written, const struct used *other) {
  size_t len = strlen(written->place.real);
  return written->use == DGC_WRITES && strncmp(other->place.real, written->place.real, len) == 0 &&
         strncmp(other->place.real + len, ".tmp-", 5) == 0;
}

static enum dgc_status both_name(struct dgc_session *s, const struct used *a, const struct used *b,
                                 const struct used *written) {
  if (strcmp(a->path, b->path) == 0)
    session_fail(s, DGC_USAGE, "%s and %s both name %s", a->what, b->what, a->path);
  else
    session_fail(s, DGC_USAGE, "%s and %s both name one file, as %s and as %s", a->what, b->what, a->path,
                 b->path);
  diag_help(&s->diags, LOC_NONE, "each needs a file of its own: name another one for %s", written->what);
  return DGC_USAGE;
}

static enum dgc_status fail_in_folder(struct dgc_session *s, const struct used *folder,
                                      const struct used *file) {
  session_fail(s, DGC_USAGE, "%s names %s, and %s names %s, where files are %s by such names", folder->what,
               folder->path, file->what, file->path, folder->use == DGC_READS ? "read" : "written");
  diag_help(&s->diags, LOC_NONE, "name another %s for %s", folder->use == DGC_READS ? "file" : "folder",
            folder->use == DGC_READS ? file->what : folder->what);
  return DGC_USAGE;
}

/* `w` is written. */
static enum dgc_status apart(struct dgc_session *s, const struct used *a, const struct used *b,
                             const struct used *w) {
  const struct used *other = w == a ? b : a;
  bool read = other->use == DGC_READS;
  if ((a->standard && b->standard) || strcmp(a->what, b->what) == 0) return DGC_OK;
  if (read && goes_on(other, w)) return DGC_OK;
  if (w->use == DGC_WRITES_IN && (other->use == DGC_WRITES_IN || other->place.folder)) return DGC_OK;
  if (place_same(&a->place, &b->place)) return both_name(s, a, b, w);
  if (is_temporary_of(w, other)) return both_name(s, a, b, w);
  if (w->use == DGC_WRITES_IN && place_below(&w->place, &other->place) &&
      is_written_in_folders(other->place.real))
    return fail_in_folder(s, w, other);
  if (read && other->place.folder && w->use == DGC_WRITES && place_below(&other->place, &w->place) &&
      is_read_in_folders(w->place.real))
    return fail_in_folder(s, other, w);
  return DGC_OK;
}

static enum dgc_status check(const struct all_files *f) {
  for (int i = 0; i < f->count; i++)
    for (int k = i + 1; k < f->count; k++) {
      const struct used *a = &f->all[i], *b = &f->all[k];
      enum dgc_status status = DGC_OK;
      if (a->use != DGC_READS) status = apart(f->s, a, b, a);
      if (!status && b->use != DGC_READS) status = apart(f->s, a, b, b);
      if (status) return status;
    }
  return DGC_OK;
}

enum dgc_status session_files_apart(struct dgc_session *s, bool trains) {
  struct all_files f = collect(s, trains);
  return check(&f);
}

enum dgc_status session_may_write(struct dgc_session *s, const char *what, const char *path) {
  struct all_files f = collect(s, false);
  int before = f.count;
  const struct used *w = add(&f, what, path, DGC_WRITES);
  for (int i = 0; w && i < before; i++)
    if (f.all[i].use == DGC_READS && !f.all[i].own && strcmp(f.all[i].what, "--checkpoint") != 0 &&
        strcmp(f.all[i].what, "--resume") != 0) {
      enum dgc_status status = apart(s, &f.all[i], w, w);
      if (status) return status;
    }
  return DGC_OK;
}

static enum dgc_status uses(struct dgc_session *s, const char *what, const char *path,
                            enum dgc_file_use use) {
  if (use != DGC_READS && use != DGC_WRITES && use != DGC_WRITES_IN)
    return session_fail(s, DGC_USAGE, "a file is read, written, or a folder that files are written in");
  struct used_file *more = arena_new_array(s->arena, (size_t)s->used_files->count + 1, struct used_file);
  if (s->used_files->count) memcpy(more, s->used_files->items, (size_t)s->used_files->count * sizeof *more);
  more[s->used_files->count] =
      (struct used_file){arena_strdup(s->arena, what), arena_strdup(s->arena, path), use};
  s->used_files->items = more;
  s->used_files->count++;
  return session_files_apart(s, false);
}

enum dgc_status dgc_uses(struct dgc_session *s, const char *what, const char *path, enum dgc_file_use use) {
  CALL(s, uses(s, what, path, use));
}
