/* SPDX-License-Identifier: Apache-2.0 */
/* Reads headers of safetensors files, and a column out of one. */
#include "runtime/data/safetensors.h"
#include "base/map.h"
#include "runtime/data/json.h"
#include "runtime/data/stored.h"
#include "runtime/data/xxh64.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS = 16 };

static const char *const dtype_names[DT_COUNT] = {[DT_F32] = "F32", [DT_F64] = "F64", [DT_I32] = "I32",
                                                  [DT_I64] = "I64", [DT_U8] = "U8",   [DT_BOOL] = "BOOL"};

const char *safetensors_dtype(enum dtype d) { return dtype_names[d]; }

static uint64_t header_length(const uint8_t *file) {
  uint64_t n;
  memcpy(&n, file, sizeof n);
  return n;
}

bool is_safetensors(const uint8_t *head, int64_t len) {
  return len >= 10 && head[8] == '{' && header_length(head) <= SAFETENSORS_HEADER_LIMIT;
}

/* --- the header --- */

struct header_parser {
  struct json json;
  const char *start; /* of the JSON text */
  struct safetensors *out;
  struct map names, keys; /* of tensors and of metadata, seen so far */
  int cap, metadata_cap;
};

static void *grow(struct arena *a, void *old, int count, int *cap, size_t size) {
  if (count < *cap) return old;
  *cap = *cap ? *cap * 2 : 16;
  void *wider = arena_array(a, (size_t)*cap, size);
  if (count) memcpy(wider, old, (size_t)count * size);
  return wider;
}

static bool parse_metadata(struct header_parser *p) {
  struct json *j = &p->json;
  if (!json_take(j, '{')) return false;
  if (json_take(j, '}')) return true;
  do {
    const char *key = json_string(j);
    if (!key || !json_take(j, ':') || !json_take(j, '"')) return false;
    const char *raw = j->p--;
    const char *value = json_string(j);
    if (!value || map_put(&p->keys, key, p)) return false;
    struct safetensors *s = p->out;
    s->metadata = grow(j->arena, s->metadata, s->nmetadata, &p->metadata_cap, sizeof *s->metadata);
    s->metadata[s->nmetadata++] = (struct safetensors_text){key, value};
    size_t prefix = sizeof SAFETENSORS_CHECKSUM_PREFIX - 1;
    bool plain = j->p - raw == (ptrdiff_t)(prefix + DIGITS + 1) &&
                 memcmp(raw, SAFETENSORS_CHECKSUM_PREFIX, prefix) == 0;
    if (strcmp(key, SAFETENSORS_CHECKSUM_KEY) != 0) continue;
    if (!plain) return false;
    s->checksum = 8 + (raw + prefix - p->start);
  } while (json_take(j, ','));
  return json_take(j, '}');
}

static bool parse_shape(struct json *j, struct type *t) {
  if (!json_take(j, '[')) return false;
  if (json_take(j, ']')) return true;
  do {
    if (t->rank == MAX_RANK || !json_size(j, &t->dim[t->rank])) return false;
    t->rank++;
  } while (json_take(j, ','));
  return json_take(j, ']');
}

static bool parse_offsets(struct json *j, struct safetensors_entry *e) {
  return json_take(j, '[') && json_size(j, &e->begin) && json_take(j, ',') && json_size(j, &e->end) &&
         json_take(j, ']') && e->begin <= e->end;
}

static bool parse_entry(struct header_parser *p, const char *name) {
  struct json *j = &p->json;
  struct safetensors_entry e = {.name = name};
  bool shape = false, offsets = false;
  if (map_put(&p->names, name, p) || !json_take(j, '{')) return false;
  do {
    const char *key = json_string(j);
    if (!key || !json_take(j, ':')) return false;
    if (strcmp(key, "dtype") == 0 && !e.dtype) {
      if (!(e.dtype = json_string(j))) return false;
    } else if (strcmp(key, "shape") == 0 && !shape) {
      if (!parse_shape(j, &e.type)) return false;
      shape = true;
    } else if (strcmp(key, "data_offsets") == 0 && !offsets) {
      if (!parse_offsets(j, &e)) return false;
      offsets = true;
    } else {
      return false;
    }
  } while (json_take(j, ','));
  if (!json_take(j, '}') || !e.dtype || !shape || !offsets) return false;
  e.type.dtype = DT_U8;
  for (int i = 0; i < DT_BF16; i++) /* those that ops compute with */
    if (strcmp(e.dtype, dtype_names[i]) == 0) e.supported = true, e.type.dtype = (uint8_t)i;
  struct safetensors *s = p->out;
  s->entries = grow(j->arena, s->entries, s->count, &p->cap, sizeof *s->entries);
  s->entries[s->count++] = e;
  return true;
}

static bool parse_header(struct header_parser *p) {
  struct json *j = &p->json;
  if (!json_take(j, '{')) return false;
  if (json_take(j, '}')) return json_done(j);
  bool metadata = false;
  do {
    const char *name = json_string(j);
    if (!name || !json_take(j, ':')) return false;
    if (strcmp(name, "__metadata__") != 0) {
      if (!parse_entry(p, name)) return false;
    } else if (metadata || !parse_metadata(p)) {
      return false;
    } else {
      metadata = true;
    }
  } while (json_take(j, ','));
  return json_take(j, '}') && json_done(j);
}

static int by_offset(const void *a, const void *b) {
  const struct safetensors_entry *x = *(const struct safetensors_entry *const *)a;
  const struct safetensors_entry *y = *(const struct safetensors_entry *const *)b;
  if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
  return (x->end > y->end) - (x->end < y->end);
}

/* The tensors fill the data exactly: without gaps, without overlaps, each as long as its type says. */
static const char *check_layout(const struct safetensors *s, struct arena *a, int64_t len) {
  const struct safetensors_entry **sorted =
      arena_new_array(a, (size_t)s->count, const struct safetensors_entry *);
  for (int i = 0; i < s->count; i++) sorted[i] = &s->entries[i];
  qsort(sorted, (size_t)s->count, sizeof *sorted, by_offset);
  int64_t at = 0;
  for (int i = 0; i < s->count; i++) {
    const struct safetensors_entry *e = sorted[i];
    if (e->begin != at || e->end > len)
      return arena_printf(a, "the bytes of tensor '%s' %s; the file is damaged or truncated", e->name,
                          e->begin < at   ? "overlap those of another"
                          : e->begin > at ? "leave a gap before them"
                                          : "end behind the file's end");
    at = e->end;
    int64_t bytes = e->supported ? dtype_size(e->type.dtype) : 0;
    bool fits = true, empty = false;
    for (int k = 0; k < e->type.rank; k++) {
      if (e->type.dim[k] == 0)
        empty = true;
      else
        fits = fits && !__builtin_mul_overflow(bytes, e->type.dim[k], &bytes);
    }
    if (e->supported && (empty ? e->end != e->begin || !fits : !fits || bytes != e->end - e->begin))
      return arena_printf(a,
                          "tensor '%s' has %lld bytes, which is not what its shape says; the file is damaged",
                          e->name, (long long)(e->end - e->begin));
    if (!type_valid(&e->type) && e->supported) return arena_printf(a, "tensor '%s' is too large", e->name);
  }
  if (at == len) return NULL;
  return arena_printf(a, "%lld bytes follow the last tensor; the file is damaged", (long long)(len - at));
}

/* The length and the header of a file in memory, or as much of them as there is. NULL, with errno as content_read
 * leaves it. */
static const uint8_t *safetensors_head(struct arena *a, const struct content *file) {
  uint8_t length[8];
  int64_t len = file->len < 8 ? file->len : 8;
  if (!file->in_file) return file->bytes;
  if (!content_read(file, 0, length, len)) return NULL;
  if (len == 8 && header_length(length) <= SAFETENSORS_HEADER_LIMIT) len += (int64_t)header_length(length);
  if (len > file->len) len = file->len;
  uint8_t *head = arena_alloc(a, (size_t)len);
  return content_read(file, 0, head, len) ? head : NULL;
}

/* Eight letters, which as the length of a header were far too many. */
static bool is_text(const uint8_t *file) {
  for (int i = 0; i < 8; i++)
    if ((file[i] < ' ' || file[i] > '~') && file[i] != '\n' && file[i] != '\r' && file[i] != '\t')
      return false;
  return true;
}

const char *safetensors_parse(struct safetensors *out, struct arena *a, const uint8_t *file, int64_t len) {
  *out = (struct safetensors){.checksum = -1};
  if (len < 10) return "it is too short for a safetensors file; it is truncated";
  if (memcmp(file, "PK\3\4", 4) == 0)
    return "it is a zip archive, as npz files, Keras' and PyTorch's are; `save_file` of the Python package "
           "safetensors writes what is read here";
  if (memcmp(file, "\x89HDF\r\n\x1a\n", 8) == 0)
    return "it is an HDF5 file, as Keras' are; `save_file` of the Python package safetensors writes what is "
           "read here";
  uint64_t header = header_length(file);
  if (is_text(file)) return "it is a text, and no safetensors file";
  if (header > SAFETENSORS_HEADER_LIMIT || (int64_t)header > len - 8)
    return arena_printf(a, "its header claims %llu bytes, but the file has %lld; it is damaged or truncated",
                        (unsigned long long)header, (long long)len);
  struct header_parser p = {.json = {a, (const char *)file + 8, (const char *)file + 8 + header},
                            .start = (const char *)file + 8,
                            .out = out,
                            .names = map_make(a),
                            .keys = map_make(a)};
  out->data = 8 + (int64_t)header;
  if (!parse_header(&p))
    return arena_printf(a,
                        "its header is malformed at byte %lld; the file is damaged, or no safetensors file",
                        (long long)(8 + (p.json.p - p.start)));
  return check_layout(out, a, len - out->data);
}

/* The bytes from `begin` to `end`. */
static bool add_bytes(struct xxh64 *h, const struct content *file, int64_t begin, int64_t end) {
  if (!file->in_file) {
    xxh64_add(h, file->bytes + begin, (size_t)(end - begin));
    return true;
  }
  uint8_t window[1 << 14];
  for (int64_t n; begin < end; begin += n) {
    n = end - begin < (int64_t)sizeof window ? end - begin : (int64_t)sizeof window;
    if (!content_read(file, begin, window, n)) return false;
    xxh64_add(h, window, (size_t)n);
  }
  return true;
}

const char *safetensors_verify(const struct safetensors *s, const struct content *file) {
  bool ours = false;
  char digits[DIGITS + 1], said[DIGITS];
  for (int i = 0; i < s->nmetadata; i++) ours |= strcmp(s->metadata[i].key, SAFETENSORS_FORMAT_KEY) == 0;
  if (s->checksum < 0) return ours ? "its checksum is missing; the file is damaged" : NULL;
  struct xxh64 h;
  xxh64_init(&h);
  bool read = content_read(file, s->checksum, said, DIGITS) && add_bytes(&h, file, 0, s->checksum);
  xxh64_add(&h, "0000000000000000", DIGITS);
  if (!read || !add_bytes(&h, file, s->checksum + DIGITS, file->len)) return content_why(errno);
  snprintf(digits, sizeof digits, "%016llx", (unsigned long long)xxh64_end(&h));
  if (memcmp(digits, said, DIGITS) == 0) return NULL;
  return "its content does not match its checksum; the file is damaged";
}

int64_t safetensors_size(const uint8_t *head, int64_t len) {
  int64_t header = len >= 8 ? (int64_t)header_length(head) : -1;
  if (header < 0 || header > SAFETENSORS_HEADER_LIMIT) return CONTENT_WRONG;
  if (len < 8 + header) return -(8 + header);
  struct arena_guard guard;
  struct arena *a = arena_create_guarded(&guard);
  struct safetensors s = {.checksum = -1};
  int64_t end = 0;
  struct header_parser p = {.json = {a, (const char *)head + 8, (const char *)head + 8 + header},
                            .start = (const char *)head + 8,
                            .out = &s,
                            .names = map_make(a),
                            .keys = map_make(a)};
  bool good = parse_header(&p);
  for (int i = 0; i < s.count; i++)
    if (s.entries[i].end > end) end = s.entries[i].end;
  good = good && !__builtin_add_overflow(end, 8 + header, &end);
  arena_destroy_guarded(a, &guard);
  return good ? end : CONTENT_WRONG;
}

/* --- a column --- */

/* By its name in the header; STORED_KINDS: none. */
static enum stored_kind kind_of(const char *dtype) {
  static const char *const names[STORED_KINDS] = {
      [STORED_BOOL] = "BOOL", [STORED_I8] = "I8",   [STORED_I16] = "I16",   [STORED_I32] = "I32",
      [STORED_I64] = "I64",   [STORED_U8] = "U8",   [STORED_U16] = "U16",   [STORED_U32] = "U32",
      [STORED_U64] = "U64",   [STORED_F16] = "F16", [STORED_BF16] = "BF16", [STORED_F32] = "F32",
      [STORED_F64] = "F64"};
  int kind = 0;
  while (kind < STORED_KINDS && strcmp(names[kind], dtype) != 0) kind++;
  return (enum stored_kind)kind;
}

bool read_safetensors(struct reader *r) {
  struct safetensors s;
  const uint8_t *head = safetensors_head(r->arena, &r->in);
  if (!head) return content_unread(r->path, errno, r->loc, r->diags);
  const char *wrong = safetensors_parse(&s, r->arena, head, r->in.len);
  if (wrong) return reader_fail(r, "%s", wrong);
  struct str names = str_make(r->arena);
  const struct safetensors_entry *found = s.count == 1 && !r->member ? s.entries : NULL;
  for (int i = 0; i < s.count; i++) {
    if (names.len < 400) str_printf(&names, "%s%s", i ? ", " : "", s.entries[i].name);
    if (r->member && strcmp(r->member, s.entries[i].name) == 0) found = &s.entries[i];
  }
  if (!s.count) return reader_fail(r, "it has no tensors");
  if (!found && !r->member)
    return reader_fail(r, "it has several tensors; write %s:NAME with one of %s", r->path, names.data);
  if (!found) return reader_fail(r, "it has no tensor '%s', only %s", r->member, names.data);
  struct stored stored = {.kind = kind_of(found->dtype)};
  if (stored.kind == STORED_KINDS)
    return reader_fail(r, "tensor '%s' is %s, which is not supported; convert it to F32", found->name,
                       found->dtype);
  if ((wrong = safetensors_verify(&s, &r->in))) return reader_fail(r, "%s", wrong);
  return reader_set_stored(r, stored, found->type.rank, found->type.dim, s.data + found->begin,
                           found->end - found->begin);
}
