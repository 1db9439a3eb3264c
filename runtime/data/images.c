/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that are images: see images.h. */
#include "runtime/data/images.h"

#include "runtime/data/folder.h"
#include "runtime/data/json.h"
#include "runtime/data/vocabulary.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const suffixes[] = {".png", ".jpg", ".jpeg", NULL};

/* --- which rows --- */

static bool list(struct reader *r, const struct data_spec *spec, struct folder *out) {
  const char *where, *cause;
  if (!folder_list(r->arena, spec->roots, r->path, suffixes, out, &where, &cause)) {
    diag_error(r->diags, r->loc, "cannot read %s%s%s: %s", r->path, *where ? "/" : "", where, cause);
    return false;
  }
  if (out->nfiles == 0) {
    diag_error(r->diags, r->loc, "cannot read %s: the folder has no files named .png, .jpg or .jpeg",
               r->path);
    return false;
  }
  if (out->others && !r->member)
    diag_note(r->diags, r->loc, "%s: %lld file%s no PNG or JPEG by name, and left out: %s%s", r->path,
              (long long)out->others, out->others > 1 ? "s are" : " is", out->other,
              out->others > 1 ? ", ..." : "");
  return true;
}

static const char **full_paths(struct reader *r, const struct folder *f) {
  const char **paths = arena_new_array(r->arena, (size_t)f->nfiles, const char *);
  size_t len = strlen(r->path);
  const char *slash = r->path[len - 1] == '/' ? "" : "/";
  for (int64_t i = 0; i < f->nfiles; i++)
    paths[i] = arena_printf(r->arena, "%s%s%s", r->path, slash, f->files[i]);
  return paths;
}

static bool wrong_member(struct reader *r) {
  return reader_fail(
      r, "images have no ':%s'; there is ':resize', which scales them, and of a folder ':label'", r->member);
}

/* --- their shape --- */

/* The header of one file, which is closed again. */
static bool look(struct reader *r, const struct data_spec *spec, const char *path, struct image *out) {
  struct content b;
  char cause[IMAGE_CAUSE];
  if (!content_open_file(&b, spec->roots, path, r->loc, r->diags)) return false;
  bool good = image_header(&b, out, cause);
  content_close(&b);
  if (!good) diag_error(r->diags, r->loc, "cannot read %s: %s", path, cause);
  if (!good && out->other) diag_help(r->diags, r->loc, "%s", out->other->help);
  return good;
}

/* What the model takes; where there is none, what the first image is. */
static bool find_shape(struct reader *r, const struct data_spec *spec, struct images *m) {
  const struct type *row = spec->row;
  if (!row) {
    struct image first;
    if (!look(r, spec, m->paths[0], &first)) return false;
    m->height = first.height, m->width = first.width, m->channels = first.channels;
    return true;
  }
  bool plane = row->rank == 2;
  m->height = plane || row->rank == 3 ? row->dim[0] : 0;
  m->width = plane || row->rank == 3 ? row->dim[1] : 0;
  m->channels = plane ? 1 : row->rank == 3 && row->dim[2] <= 4 && row->dim[2] != 2 ? (int)row->dim[2] : 0;
  if (m->channels > 0 && m->height > 0 && m->width > 0 && m->height <= IMAGE_PIXELS / m->width &&
      row->dtype != DT_BOOL)
    return true;
  diag_error(r->diags, r->loc,
             "%s: a row of input '%s' is %s; images are numbers from 0 to 255, [height, width], or [height, "
             "width, channels] with 1, 3 or 4 of these",
             r->path, spec->name, type_text(r->diags->arena, row));
  return false;
}

static bool check_size(struct reader *r, const struct data_spec *spec, const struct images *m,
                       const char *path) {
  struct image one;
  if (!look(r, spec, path, &one)) return false;
  if (m->resize || (one.height == m->height && one.width == m->width)) return true;
  diag_error(r->diags, r->loc, "%s has %lld x %lld pixels (height x width), but %s %lld x %lld", path,
             (long long)one.height, (long long)one.width,
             spec->row ? arena_printf(r->arena, "input '%s' takes", spec->name) : "the first image has",
             (long long)m->height, (long long)m->width);
  diag_help(r->diags, r->loc, "%s:resize scales all images to what the model takes", r->path);
  return false;
}

static bool set_images(struct reader *r, const struct data_spec *spec, const char *const *paths,
                       int64_t count) {
  struct images *m = arena_new(r->arena, struct images);
  *m = (struct images){.paths = paths, .count = count, .roots = spec->roots, .resize = r->member != NULL};
  if (r->member && strcmp(r->member, "resize") != 0) return wrong_member(r);
  if (!find_shape(r, spec, m)) return false;
  for (int64_t i = 0; i < count; i++)
    if (!check_size(r, spec, m, paths[i])) return false;
  int rank = spec->row ? spec->row->rank : m->channels == 1 ? 2 : 3;
  r->piece->row = type_make(DT_U8, rank, (int64_t[]){m->height, m->width, m->channels});
  r->piece->rows = count;
  r->piece->stride = type_bytes(&r->piece->row);
  r->piece->images = m;
  return true;
}

bool read_images_file(struct reader *r, const struct data_spec *spec) {
  const char **paths = arena_new(r->arena, const char *);
  paths[0] = r->path;
  return set_images(r, spec, paths, 1);
}

/* --- labels --- */

static bool unknown_class(struct reader *r, const char *name) {
  struct str known = str_make(r->arena);
  struct vocabulary *v = r->vocabulary;
  v->unknown = 0;
  for (int i = 0; i < v->count && known.len < 400; i++)
    str_printf(&known, "%s%.60s", i ? ", " : "", v->words[i]);
  return reader_fail(r, "its folder '%s' is no class that the training had: %s", name,
                     known.len ? known.data : "(none)");
}

/* Numbers from 0 on; those of a vocabulary that is open become so when it is closed. */
static bool class_number(struct reader *r, const char *file, int32_t *out) {
  const char *slash = strchr(file, '/');
  if (!slash) return reader_fail(r, "%s lies in no folder below it that would be its label", file);
  *out = vocabulary_number(r->vocabulary, file, (int)(slash - file)) - r->vocabulary->closed;
  return *out >= 0 || unknown_class(r, arena_strndup(r->arena, file, (size_t)(slash - file)));
}

static bool set_labels(struct reader *r, const struct folder *f) {
  if (!r->vocabulary)
    return reader_fail(
        r, "its labels have no numbers: these are given in a training, and kept in its checkpoint");
  for (int64_t i = 0; i < f->nfolders; i++) {
    const char *name = f->folders[i];
    if (!utf8_valid(name, strlen(name)))
      return reader_fail(r, "the name of folder %lld of its %lld is not UTF-8; rename it", (long long)i + 1,
                         (long long)f->nfolders);
    if (!r->vocabulary->closed) vocabulary_number(r->vocabulary, name, (int)strlen(name));
  }
  if (!content_alloc(&r->own, f->nfiles * 4, r->path, r->loc, r->diags)) return false;
  int32_t *numbers = r->own.map;
  for (int64_t i = 0; i < f->nfiles; i++)
    if (!class_number(r, f->files[i], &numbers[i])) return false;
  r->piece->words = WORDS_CLASSES;
  return reader_set(r, DT_I32, 1, &f->nfiles, 0, f->nfiles * 4);
}

bool read_images_folder(struct reader *r, const struct data_spec *spec) {
  struct folder f;
  bool labels = r->member && strcmp(r->member, "label") == 0;
  if (r->member && !labels && strcmp(r->member, "resize") != 0) return wrong_member(r);
  if (!list(r, spec, &f)) return false;
  return labels ? set_labels(r, &f) : set_images(r, spec, full_paths(r, &f), f.nfiles);
}

/* --- reading, on several threads --- */

static bool cannot(struct misfit *bad, const char *path, int error, const char *cause) {
  bad->path = path;
  bad->error = error;
  snprintf(bad->cause, sizeof bad->cause, "%s", cause);
  return false;
}

/* The bytes of a file, which are the caller's to free; the file may be any by now. */
static bool load(const struct images *m, const char *path, struct content *out, struct misfit *bad) {
  const char *cause;
  int64_t len;
  int fd = file_open_within(m->roots, path, &len, &cause);
  if (fd < 0) return cannot(bad, path, errno, cause);
  uint8_t *bytes = len <= IMAGE_BYTES ? malloc((size_t)len + 1) : NULL;
  int64_t got = bytes ? file_read(fd, bytes, len, 0) : 0;
  int error = !bytes ? ENOMEM : got < 0 ? errno : 0;
  close(fd);
  *out = (struct content){.bytes = bytes, .len = len};
  if (bytes && got == len) return true;
  free(bytes);
  return cannot(bad, path, error, bytes ? content_why(error) : "no memory for it");
}

/* The pixels as they are looked at; frees those that are given. NULL: there is no memory. */
static uint8_t *upright(uint8_t *pixels, const struct image *header, int channels) {
  if (header->turn == 1) return pixels;
  uint8_t *out = malloc((size_t)(header->height * header->width * channels));
  if (out) image_turn(pixels, out, header, channels);
  free(pixels);
  return out;
}

/* Pixels as the row has its channels, which are the caller's to free. NULL after an error. */
static uint8_t *decode(const struct images *m, const struct content *b, const struct image *header,
                       const char *path, struct misfit *bad) {
  char cause[IMAGE_CAUSE] = "";
  uint8_t *pixels = malloc((size_t)(header->height * header->width * 4));
  if (!pixels) return cannot(bad, path, ENOMEM, "no memory for its pixels"), NULL;
  if ((header->jpeg ? jpeg_decode : png_decode)(b, header, pixels, cause)) {
    image_channels(pixels, header->height * header->width, m->channels);
    pixels = upright(pixels, header, m->channels);
    if (!pixels) cannot(bad, path, ENOMEM, "no memory for its pixels");
    return pixels;
  }
  free(pixels);
  return cannot(bad, path, 0, cause), NULL;
}

static bool read_row(const struct images *m, const struct content *b, const char *path, enum dtype to,
                     uint8_t *out, struct misfit *bad) {
  char cause[IMAGE_CAUSE];
  struct image header;
  if (!image_header(b, &header, cause)) return cannot(bad, path, 0, cause);
  bool same = header.height == m->height && header.width == m->width;
  if (!same && !m->resize) return cannot(bad, path, 0, "its size has changed");
  uint8_t *pixels = decode(m, b, &header, path, bad);
  if (pixels && same)
    convert_numbers(to, out, DT_U8, pixels, m->height * m->width * m->channels);
  else if (pixels)
    image_resize(to, out, m->height, m->width, pixels, &header, m->channels);
  free(pixels);
  return pixels != NULL;
}

bool images_read(const struct column_piece *p, enum dtype to, int64_t first, int64_t count, uint8_t *out,
                 struct misfit *bad) {
  const struct images *m = p->images;
  int64_t bytes = type_count(&p->row) * dtype_size(to);
  *bad = (struct misfit){.piece = p, .unread = true};
  for (int64_t i = 0; i < count; i++) {
    struct content b;
    const char *path = m->paths[first + i];
    if (!load(m, path, &b, bad)) return false;
    bool good = read_row(m, &b, path, to, out + i * bytes, bad);
    free((void *)b.bytes);
    if (!good) return false;
  }
  return true;
}
