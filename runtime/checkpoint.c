/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints are written and read as safetensors files, with a checksum among their metadata. */
#include "runtime/checkpoint.h"
#include "base/map.h"
#include "runtime/data/atomic.h"
#include "runtime/data/content.h"
#include "runtime/data/decompress.h"
#include "runtime/data/json.h"
#include "runtime/data/safetensors.h"
#include "runtime/data/xxh64.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#define NO_CHECKSUM "0000000000000000"

static bool fail(struct diags *d, const char *path, const char *what, const char *name) {
  diag_error(d, LOC_NONE, "cannot save %s: %s '%s'", path, what, name);
  return false;
}

/* Names have to be read back as they were, and apart. */
static bool check_names(const char *path, const struct checkpoint_entry *entries, int n,
                        const struct checkpoint_text *texts, int ntexts, struct diags *d) {
  struct map seen = map_make(d->arena);
  for (int i = 0; i < n; i++) {
    const char *name = entries[i].name;
    assert(type_valid(&entries[i].type) && !type_is_symbolic(&entries[i].type));
    assert(!entries[i].storage || entries[i].type.dtype == DT_F32);
    if (!utf8_valid(name, strlen(name))) return fail(d, path, "this name is not UTF-8:", name);
    if (strcmp(name, "__metadata__") == 0) return fail(d, path, "the format reserves the name", name);
    if (map_put(&seen, name, &seen)) return fail(d, path, "there are two tensors named", name);
  }
  seen = map_make(d->arena);
  for (int i = 0; i < ntexts; i++) {
    const char *key = texts[i].key, *value = texts[i].value;
    assert(strncmp(key, "dgc.", 4) != 0);
    if (!utf8_valid(key, strlen(key)) || !utf8_valid(value, strlen(value)))
      return fail(d, path, "this text is not UTF-8:", key);
    if (map_put(&seen, key, &seen)) return fail(d, path, "there are two texts named", key);
  }
  return true;
}

static int64_t stored_bytes(const struct checkpoint_entry *e) {
  return e->storage ? type_bytes(&e->type) / 2 : type_bytes(&e->type);
}

/* As the file has it. */
static const void *stored(struct arena *a, const struct checkpoint_entry *e) {
  if (!e->storage) return e->data;
  int64_t n = type_count(&e->type);
  uint16_t *halves = arena_new_array(a, (size_t)n + 1, uint16_t);
  for (int64_t i = 0; i < n; i++) halves[i] = half_from_float(e->storage, ((const float *)e->data)[i]);
  return halves;
}

static const char *stored_dtype(const struct checkpoint_entry *e) {
  static const char *const names[] = {[DT_F16] = "F16", [DT_BF16] = "BF16"};
  return e->storage ? names[e->storage] : safetensors_dtype(e->type.dtype);
}

/* The length and the JSON text, with zeros for a checksum. `*digits`: where these are. */
static struct str make_header(struct arena *a, const struct checkpoint_entry *entries, int n,
                              const struct checkpoint_text *texts, int ntexts, int64_t *digits) {
  struct str s = str_make(a);
  str_putn(&s, "\0\0\0\0\0\0\0\0", 8);
  str_put(&s, "{\"__metadata__\":{\"" SAFETENSORS_CHECKSUM_KEY "\":\"" SAFETENSORS_CHECKSUM_PREFIX);
  *digits = (int64_t)s.len;
  str_put(&s, NO_CHECKSUM "\",\"" SAFETENSORS_FORMAT_KEY "\":\"1\"");
  for (int i = 0; i < ntexts; i++) {
    str_putc(&s, ',');
    json_quote(&s, texts[i].key);
    str_putc(&s, ':');
    json_quote(&s, texts[i].value);
  }
  str_putc(&s, '}');
  int64_t at = 0;
  for (int i = 0; i < n; i++) {
    const struct type *t = &entries[i].type;
    str_putc(&s, ',');
    json_quote(&s, entries[i].name);
    str_printf(&s, ":{\"dtype\":\"%s\",\"shape\":[", stored_dtype(&entries[i]));
    for (int k = 0; k < t->rank; k++) str_printf(&s, "%s%lld", k ? "," : "", (long long)t->dim[k]);
    int64_t end = at + stored_bytes(&entries[i]);
    str_printf(&s, "],\"data_offsets\":[%lld,%lld]}", (long long)at, (long long)end);
    at = end;
  }
  str_putc(&s, '}');
  while (s.len % 8) str_putc(&s, ' ');
  uint64_t len = s.len - 8;
  memcpy(s.data, &len, sizeof len);
  return s;
}

bool checkpoint_save(const char *path, const struct checkpoint_entry *entries, int n,
                     const struct checkpoint_text *texts, int ntexts, struct diags *d) {
  if (!check_names(path, entries, n, texts, ntexts, d)) return false;
  int64_t digits;
  struct str header = make_header(d->arena, entries, n, texts, ntexts, &digits);
  if (header.len - 8 > SAFETENSORS_HEADER_LIMIT)
    return fail(d, path, "there are too many tensors or texts for", path);
  struct xxh64 h;
  xxh64_init(&h);
  xxh64_add(&h, header.data, header.len);
  const void **data = arena_new_array(d->arena, (size_t)n + 1, const void *);
  for (int i = 0; i < n; i++) {
    data[i] = stored(d->arena, &entries[i]);
    xxh64_add(&h, data[i], (size_t)stored_bytes(&entries[i]));
  }
  char checksum[sizeof NO_CHECKSUM];
  snprintf(checksum, sizeof checksum, "%016llx", (unsigned long long)xxh64_end(&h));
  memcpy(header.data + digits, checksum, sizeof checksum - 1);

  struct atomic_file f;
  if (!atomic_open(&f, d->arena, path, d)) return false;
  bool ok = atomic_write(&f, header.data, header.len, d);
  for (int i = 0; i < n && ok; i++) ok = atomic_write(&f, data[i], (size_t)stored_bytes(&entries[i]), d);
  return atomic_commit(&f, d);
}

static enum dtype narrow_of(const char *dtype) {
  return strcmp(dtype, "F16") == 0 ? DT_F16 : strcmp(dtype, "BF16") == 0 ? DT_BF16 : DT_F32;
}

/* The f32 that `count` halves are. */
static const void *widened(struct arena *a, enum dtype storage, const uint8_t *bytes, int64_t count) {
  float *out = arena_new_array(a, (size_t)count + 1, float);
  for (int64_t i = 0; i < count; i++)
    out[i] = half_to_float(storage, (uint16_t)(bytes[2 * i] | bytes[2 * i + 1] << 8));
  return out;
}

/* One whose bytes are as many as its shape says. */
static bool load_half(struct arena *a, const struct safetensors_entry *e, const uint8_t *bytes,
                      struct checkpoint_entry *out) {
  *out = (struct checkpoint_entry){.name = e->name, .type = e->type, .storage = narrow_of(e->dtype)};
  out->type.dtype = DT_F32;
  if (!out->storage || !type_valid(&out->type) || type_bytes(&out->type) / 2 != e->end - e->begin)
    return false;
  out->data = widened(a, out->storage, bytes, type_count(&out->type));
  return true;
}

/* The tensors lie in `file`, but for those that would not be aligned there. */
static const char *parse(struct arena *a, const struct content *file, struct checkpoint *c) {
  struct safetensors s;
  const char *wrong = safetensors_parse(&s, a, file->bytes, file->len);
  if (!wrong) wrong = safetensors_verify(&s, file);
  if (wrong) return wrong;
  c->entries = arena_new_array(a, (size_t)s.count, struct checkpoint_entry);
  for (; c->count < s.count; c->count++) {
    const struct safetensors_entry *e = &s.entries[c->count];
    if (!e->supported && load_half(a, e, file->bytes + s.data + e->begin, &c->entries[c->count])) continue;
    if (!e->supported && narrow_of(e->dtype))
      return arena_printf(a, "tensor '%s' has not as many bytes as its shape says; the file is damaged",
                          e->name);
    if (!e->supported)
      return arena_printf(a, "tensor '%s' is %s, which is not supported; convert it to F32", e->name,
                          e->dtype);
    const void *data = file->bytes + s.data + e->begin;
    if ((uintptr_t)data % 8) data = arena_copy(a, data, (size_t)(e->end - e->begin));
    c->entries[c->count] = (struct checkpoint_entry){.name = e->name, .type = e->type, .data = data};
  }
  c->texts = arena_new_array(a, (size_t)s.nmetadata, struct checkpoint_text);
  for (int i = 0; i < s.nmetadata; i++)
    if (strcmp(s.metadata[i].key, SAFETENSORS_CHECKSUM_KEY) == 0) c->checksum = s.metadata[i].value;
  for (int i = 0; i < s.nmetadata; i++)
    if (strncmp(s.metadata[i].key, "dgc.", 4) != 0)
      c->texts[c->ntexts++] = (struct checkpoint_text){s.metadata[i].key, s.metadata[i].value};
  return NULL;
}

static int64_t size_of(const char *path, const uint8_t *head, int64_t len) {
  (void)path;
  return safetensors_size(head, len);
}

/* The whole file in the arena: what is checked is what is used. */
static bool load(struct arena *a, const char *path, struct content *b, struct content *whole,
                 struct diags *d) {
  int64_t budget = 0;
  if (!content_open(b, NULL, path, size_of, &budget, LOC_NONE, d)) return false;
  uint8_t *bytes = arena_alloc(a, (size_t)b->len);
  if (!content_read(b, 0, bytes, b->len)) return content_unread(path, errno, LOC_NONE, d);
  *whole = (struct content){.bytes = bytes, .len = b->len};
  return true;
}

static void undo_open(void *b) { content_close(b); }

struct checkpoint *checkpoint_load(struct arena *a, const char *path, struct diags *d) {
  struct content b = {0}, whole;
  struct arena_guard guard;
  arena_guard(&guard, undo_open, &b);
  bool loaded = load(a, path, &b, &whole, d);
  arena_unguard(&guard);
  content_close(&b);
  if (!loaded) return NULL;
  struct checkpoint *c = arena_new(a, struct checkpoint);
  const char *wrong = parse(a, &whole, c);
  if (!wrong) return c;
  diag_error(d, LOC_NONE, "cannot load %s: %s", path, wrong);
  return NULL;
}

const char *checkpoint_type_text(struct arena *a, const struct checkpoint_entry *e) {
  const char *text = type_text(a, &e->type);
  return e->storage ? arena_printf(a, "%s%s", dtype_name(e->storage), text + strlen("f32")) : text;
}

const struct checkpoint_entry *checkpoint_find(const struct checkpoint *c, const char *name) {
  for (int i = 0; i < c->count; i++)
    if (strcmp(c->entries[i].name, name) == 0) return &c->entries[i];
  return NULL;
}

const char *checkpoint_text(const struct checkpoint *c, const char *key) {
  for (int i = 0; i < c->ntexts; i++)
    if (strcmp(c->texts[i].key, key) == 0) return c->texts[i].value;
  return NULL;
}
