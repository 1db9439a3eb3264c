/* SPDX-License-Identifier: Apache-2.0 */
/* Writes npz files: npy arrays one behind the other, and at the end the directory of a zip archive. Members of four
 * gigabytes and more, and archives that long, have the sizes of ZIP64 (PKWARE's APPNOTE, 4.5.3), as numpy's have. */
#include "runtime/data/npz_writer.h"

#include "base/str.h"
#include "runtime/data/atomic.h"

#include <string.h>

enum { ALIGN = 64, NO_TIME = 0, FIRST_DAY = 1 << 5 | 1 }; /* 1980-01-01 */

/* The CRC-32 of zip: polynomial 0xedb88320, bits reflected. */
static uint32_t crc_add(uint32_t crc, const void *data, size_t len) {
  static const uint32_t table[16] = {0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
                                     0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
                                     0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};
  const uint8_t *p = data;
  crc = ~crc;
  for (size_t i = 0; i < len; i++) {
    crc = table[(crc ^ p[i]) & 15] ^ crc >> 4;
    crc = table[(crc ^ (uint32_t)p[i] >> 4) & 15] ^ crc >> 4;
  }
  return ~crc;
}

static void put_number(struct str *s, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; i++) str_putc(s, (char)(value >> 8 * i & 0xff));
}

static const char *descr_of(enum dtype d) {
  switch (d) {
  case DT_F32: return "<f4";
  case DT_F64: return "<f8";
  case DT_I32: return "<i4";
  case DT_I64: return "<i8";
  case DT_U8: return "|u1";
  case DT_BOOL: return "|b1";
  case DT_BF16:
  case DT_F16:
  case DT_COUNT: break;
  }
  return NULL;
}

/* An npy header, version 1, that ends where the array may begin. */
static struct str header_of(struct arena *a, const struct type *t) {
  struct str text = str_make(a), s = str_make(a);
  str_printf(&text, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr_of((enum dtype)t->dtype));
  for (int i = 0; i < t->rank; i++)
    str_printf(&text, "%s%lld%s", i ? ", " : "", (long long)t->dim[i], t->rank == 1 ? "," : "");
  str_put(&text, "), }");
  while ((10 + text.len + 1) % ALIGN) str_putc(&text, ' ');
  str_putc(&text, '\n');
  str_putn(&s, "\x93NUMPY\x01\0", 8);
  put_number(&s, text.len, 2);
  str_putn(&s, text.data, text.len);
  return s;
}

struct archive {
  struct atomic_file file;
  struct str directory;
  uint64_t at;
  struct diags *d;
};

static bool put(struct archive *z, const void *data, size_t len) {
  z->at += len;
  return atomic_write(&z->file, data, len, z->d);
}

/* What the header of a member and its entry in the directory have in common; sizes stand in the field of ZIP64. */
static void put_common(struct str *s, uint32_t crc, size_t name_len, size_t extra_len) {
  put_number(s, 45, 2);      /* the version that knows ZIP64 */
  put_number(s, 1 << 11, 2); /* names are UTF-8 */
  put_number(s, 0, 2);
  put_number(s, NO_TIME, 2);
  put_number(s, FIRST_DAY, 2);
  put_number(s, crc, 4);
  put_number(s, UINT32_MAX, 4);
  put_number(s, UINT32_MAX, 4);
  put_number(s, name_len, 2);
  put_number(s, extra_len, 2);
}

static bool put_member(struct archive *z, struct arena *a, const struct npz_array *array) {
  struct str header = header_of(a, &array->type), local = str_make(a), *dir = &z->directory;
  size_t bytes = (size_t)type_bytes(&array->type);
  uint64_t size = header.len + bytes, begin = z->at;
  uint32_t crc = crc_add(crc_add(0, header.data, header.len), array->data, bytes);
  const char *name = arena_printf(a, "%s.npy", array->name);
  put_number(&local, 0x04034b50, 4);
  put_common(&local, crc, strlen(name), 20);
  str_put(&local, name);
  put_number(&local, 1, 2);
  put_number(&local, 16, 2);
  put_number(&local, size, 8);
  put_number(&local, size, 8);

  put_number(dir, 0x02014b50, 4);
  put_number(dir, 45, 2);
  put_common(dir, crc, strlen(name), 28);
  put_number(dir, 0, 2); /* no comment */
  put_number(dir, 0, 2); /* on the first disk */
  put_number(dir, 0, 2);
  put_number(dir, 0, 4);
  put_number(dir, UINT32_MAX, 4);
  str_put(dir, name);
  put_number(dir, 1, 2);
  put_number(dir, 24, 2);
  put_number(dir, size, 8);
  put_number(dir, size, 8);
  put_number(dir, begin, 8);
  return put(z, local.data, local.len) && put(z, header.data, header.len) && put(z, array->data, bytes);
}

static bool put_end(struct archive *z, struct arena *a, int count) {
  struct str s = str_make(a);
  uint64_t begin = z->at, size = z->directory.len;
  put_number(&s, 0x06064b50, 4);
  put_number(&s, 44, 8);
  put_number(&s, 45, 2);
  put_number(&s, 45, 2);
  put_number(&s, 0, 4);
  put_number(&s, 0, 4);
  put_number(&s, (uint64_t)count, 8);
  put_number(&s, (uint64_t)count, 8);
  put_number(&s, size, 8);
  put_number(&s, begin, 8);
  put_number(&s, 0x07064b50, 4);
  put_number(&s, 0, 4);
  put_number(&s, begin + size, 8);
  put_number(&s, 1, 4);
  put_number(&s, 0x06054b50, 4);
  put_number(&s, 0, 4);
  put_number(&s, UINT16_MAX, 2);
  put_number(&s, UINT16_MAX, 2);
  put_number(&s, UINT32_MAX, 4);
  put_number(&s, UINT32_MAX, 4);
  put_number(&s, 0, 2);
  return put(z, z->directory.data, z->directory.len) && put(z, s.data, s.len);
}

bool npz_write(struct arena *a, const char *path, const struct npz_array *arrays, int count,
               struct diags *d) {
  struct archive z = {.directory = str_make(a), .d = d};
  for (int i = 0; i < count; i++)
    if (strlen(arrays[i].name) > UINT16_MAX - 4) {
      diag_error(d, LOC_NONE, "cannot write %s: the name '%.60s...' is too long", path, arrays[i].name);
      return false;
    }
  if (!atomic_open(&z.file, a, path, d)) return false;
  bool good = true;
  for (int i = 0; good && i < count; i++) good = put_member(&z, a, &arrays[i]);
  good = good && put_end(&z, a, count);
  return atomic_commit(&z.file, d) && good;
}
