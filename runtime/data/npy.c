/* SPDX-License-Identifier: Apache-2.0 */
/* Reads npy versions 1 to 3: {'descr': '<f4', 'fortran_order': False, 'shape': (60000, 784), } */
#include "runtime/data/npy.h"

#include "runtime/data/stored.h"

#include <string.h>

#define MAGIC "\x93NUMPY"

enum { HEADER_LIMIT = 1 << 16 };

bool is_npy(const uint8_t *head, int64_t len) { return len >= 6 && memcmp(head, MAGIC, 6) == 0; }

struct cursor {
  const char *p, *end;
};

static void skip_blanks(struct cursor *c) {
  while (c->p < c->end && (*c->p == ' ' || *c->p == '\n')) c->p++;
}

static bool take(struct cursor *c, const char *word) {
  skip_blanks(c);
  size_t n = strlen(word);
  if ((size_t)(c->end - c->p) < n || memcmp(c->p, word, n) != 0) return false;
  c->p += n;
  return true;
}

/* A quoted string without escapes. */
static bool take_string(struct cursor *c, const char **text, int *len) {
  skip_blanks(c);
  if (c->p == c->end || (*c->p != '\'' && *c->p != '"')) return false;
  const char *begin = c->p + 1, *close = memchr(begin, *c->p, (size_t)(c->end - begin));
  if (!close || memchr(begin, '\\', (size_t)(close - begin))) return false;
  *text = begin;
  *len = (int)(close - begin);
  c->p = close + 1;
  return true;
}

static bool take_size(struct cursor *c, int64_t *out) {
  skip_blanks(c);
  const char *begin = c->p;
  int64_t n = 0;
  for (; c->p < c->end && *c->p >= '0' && *c->p <= '9'; c->p++)
    if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, *c->p - '0', &n)) return false;
  *out = n;
  return c->p > begin;
}

/* (), (3,), (3, 4) */
static bool take_shape(struct cursor *c, int *rank, int64_t *dims) {
  if (!take(c, "(")) return false;
  bool comma = true;
  for (*rank = 0; !take(c, ")"); ++*rank) {
    int64_t dim;
    if (!comma || !take_size(c, &dim)) return false;
    if (*rank < MAX_RANK) dims[*rank] = dim;
    comma = take(c, ",");
  }
  return *rank != 1 || comma;
}

/* "<f4": the order of the bytes, a letter for the type, the bytes of one. */
static bool parse_descr(struct reader *r, const char *text, int len, struct stored *out) {
  static const struct {
    const char *descr;
    enum stored_kind kind;
  } known[] = {{"f2", STORED_F16}, {"f4", STORED_F32}, {"f8", STORED_F64}, {"i1", STORED_I8},
               {"i2", STORED_I16}, {"i4", STORED_I32}, {"i8", STORED_I64}, {"u1", STORED_U8},
               {"u2", STORED_U16}, {"u4", STORED_U32}, {"u8", STORED_U64}, {"b1", STORED_BOOL}};
  bool ordered = len == 3 && (*text == '<' || *text == '>');
  for (size_t i = 0; i < sizeof known / sizeof *known && len == 3; i++)
    if (memcmp(text + 1, known[i].descr, 2) == 0 &&
        (ordered || (*text == '|' && stored_size(known[i].kind) == 1))) {
      out->kind = known[i].kind;
      out->big_endian = *text == '>';
      return true;
    }
  return reader_fail(r,
                     "its elements are '%.*s', which are no numbers that fit; save it with "
                     ".astype('<f4'), or f2, f8, i1 to i8, u1 to u8, bool",
                     len < 40 ? len : 40, text);
}

static bool parse_dict(struct reader *r, struct cursor *c, struct stored *stored, int *rank, int64_t *dims) {
  bool descr = false, order = false, shape = false, comma = true;
  if (!take(c, "{")) goto bad;
  while (!take(c, "}")) {
    const char *key, *text;
    int key_len, len;
    if (!comma || !take_string(c, &key, &key_len) || !take(c, ":")) goto bad;
    if (key_len == 5 && memcmp(key, "descr", 5) == 0 && !descr) {
      if (take(c, "["))
        return reader_fail(r, "it holds records with named fields; save each field as an array of its own");
      if (!take_string(c, &text, &len)) goto bad;
      if (!parse_descr(r, text, len, stored)) return false;
      descr = true;
    } else if (key_len == 13 && memcmp(key, "fortran_order", 13) == 0 && !order) {
      stored->columns_first = take(c, "True");
      if (!stored->columns_first && !take(c, "False")) goto bad;
      order = true;
    } else if (key_len == 5 && memcmp(key, "shape", 5) == 0 && !shape) {
      if (!take_shape(c, rank, dims)) goto bad;
      shape = true;
    } else {
      goto bad;
    }
    comma = take(c, ",");
  }
  skip_blanks(c);
  if (c->p == c->end && descr && order && shape) return true;
bad:
  return reader_fail(r, "its npy header is malformed; the file is damaged");
}

struct npy {
  struct stored stored;
  int rank;
  int64_t dims[MAX_RANK];
  int64_t data; /* where the numbers begin */
};

/* From the first bytes of an array of `len` bytes. */
static bool parse_header(struct reader *r, const uint8_t *bytes, int64_t len, struct npy *out) {
  if (len < 10) return reader_fail(r, "its npy header is truncated");
  int major = bytes[6];
  if (major < 1 || major > 3)
    return reader_fail(r, "npy version %d.%d is not supported, only 1 to 3", major, bytes[7]);
  int64_t start = major == 1 ? 10 : 12;
  int64_t header = bytes[8] | bytes[9] << 8;
  if (major > 1 && len >= 12) header |= (int64_t)bytes[10] << 16 | (int64_t)bytes[11] << 24;
  if (header > HEADER_LIMIT || start + header > len)
    return reader_fail(r, "its npy header claims %lld bytes; the file is damaged or truncated",
                       (long long)header);
  struct cursor c = {(const char *)bytes + start, (const char *)bytes + start + header};
  *out = (struct npy){.stored.kind = STORED_U8, .data = start + header};
  return parse_dict(r, &c, &out->stored, &out->rank, out->dims);
}

bool npy_parse(struct reader *r, const struct content *b, int64_t at, int64_t len) {
  struct npy h;
  const uint8_t *head = reader_bytes(r, b, at, len < HEADER_LIMIT + 12 ? len : HEADER_LIMIT + 12);
  return head && parse_header(r, head, len, &h) &&
         reader_set_stored(r, h.stored, h.rank, h.dims, at + h.data, len - h.data);
}

bool read_npy(struct reader *r) { return reader_no_member(r, "npy") && npy_parse(r, &r->in, 0, r->in.len); }

/* What is wrong is said by who reads it. */
int64_t npy_size(const uint8_t *head, int64_t len) {
  struct npy h;
  struct diags ignored;
  struct arena_guard guard;
  struct arena *a = arena_create_guarded(&guard);
  diags_init(&ignored, a);
  struct reader r = {.arena = a, .path = "", .diags = &ignored};
  bool good = parse_header(&r, head, len, &h) && h.rank <= MAX_RANK;
  int64_t bytes = good ? stored_size(h.stored.kind) : 0;
  for (int i = 0; good && i < h.rank; i++) good = !__builtin_mul_overflow(bytes, h.dims[i], &bytes);
  good = good && !__builtin_add_overflow(bytes, h.data, &bytes);
  arena_destroy_guarded(a, &guard);
  return good ? bytes : CONTENT_WRONG;
}
