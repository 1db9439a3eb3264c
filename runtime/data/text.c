/* Any file as bytes: one a row; or, for language models, windows of N of them.
 *
 * "x.txt:64" and "x.txt:64+1" are a window and the same one byte later, what comes next. "x.txt:64/32": a window every
 * 32 bytes; they overlap, or leave bytes out. All of them leave out the last byte that only the "+1" could use, so that
 * they have as many rows. */
#include "runtime/data/reader.h"

#include <string.h>

struct text_window {
  int64_t size, step; /* bytes of one, and from one to the next */
  int shift;
};

static bool parse_size(const char **p, int64_t *out) {
  *out = 0;
  for (; **p >= '0' && **p <= '9'; ++*p) {
    if (*out > INT32_MAX / 10) return false;
    *out = *out * 10 + (**p - '0');
  }
  return *out > 0;
}

/* "64", "64/32", "64+1" or "64/32+1" */
static bool parse_window(const char *text, struct text_window *w) {
  if (!parse_size(&text, &w->size)) return false;
  w->step = w->size;
  if (*text == '/' && (text++, !parse_size(&text, &w->step))) return false;
  w->shift = strcmp(text, "+1") == 0;
  return w->shift || !*text;
}

bool read_text(struct reader *r) {
  if (!r->member) return reader_set(r, DT_U8, 1, &r->in.len, 0, r->in.len);
  struct text_window w;
  if (!parse_window(r->member, &w))
    return reader_fail(r,
                       "':%s' is not a window; write the bytes a row, as in ':64', ':64+1' for the same one "
                       "byte later, ':64/32' for one every 32 bytes, or ':64/32+1'",
                       r->member);
  if (r->in.len - 1 < w.size)
    return reader_fail(r, "its %lld bytes are too few for one window of %lld and the byte behind it",
                       (long long)r->in.len, (long long)w.size);
  if (!reader_set(r, DT_U8, 2, (int64_t[]){1, w.size}, w.shift, w.size)) return false;
  r->piece->rows = (r->in.len - 1 - w.size) / w.step + 1;
  r->piece->stride = w.step;
  return true;
}
