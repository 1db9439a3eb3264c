/* SPDX-License-Identifier: Apache-2.0 */
/* Any file as bytes: one a row; or, for language models, windows of N of them.
 *
 * "x.txt:64" and "x.txt:64+1" are a window and the same one byte later, what comes next. "x.txt:64/32": a window every
 * 32 bytes; they overlap, or leave bytes out. All of them leave out the last byte that only the "+1" could use, so that
 * they have as many rows. "x.txt:64/moving": the windows of an epoch follow each other as those of ":64", but begin at
 * another of the first 64 bytes in each epoch, at all of them in 64 epochs; there is a window less. */
#include "runtime/data/reader.h"

#include <string.h>

struct text_window {
  int64_t size, step; /* bytes of one, and from one to the next */
  int shift;
  bool moves;
};

static bool parse_size(const char **p, int64_t *out) {
  *out = 0;
  for (; **p >= '0' && **p <= '9'; ++*p) {
    if (*out > INT32_MAX / 10) return false;
    *out = *out * 10 + (**p - '0');
  }
  return *out > 0;
}

/* "64", "64/32" or "64/moving", and "+1" */
static bool parse_window(const char *text, struct text_window *w) {
  if (!parse_size(&text, &w->size)) return false;
  w->step = w->size;
  w->moves = strncmp(text, "/moving", 7) == 0;
  if (w->moves)
    text += 7;
  else if (*text == '/' && (text++, !parse_size(&text, &w->step)))
    return false;
  w->shift = strcmp(text, "+1") == 0;
  return w->shift || !*text;
}

bool read_text(struct reader *r) {
  if (!r->member) return reader_set(r, DT_U8, 1, &r->in.len, 0, r->in.len);
  struct text_window w;
  if (!parse_window(r->member, &w))
    return reader_fail(
        r,
        "':%s' is not a window; write the bytes a row, as in ':64', ':64+1' for the same one "
        "byte later, ':64/32' for one every 32 bytes, ':64/moving' for others in each epoch; '+1' behind "
        "either",
        r->member);
  int64_t left = r->in.len - 1 - w.size - (w.moves ? w.step - 1 : 0);
  if (left < 0)
    return reader_fail(r, "its %lld bytes are too few for one window of %lld and the byte behind it%s",
                       (long long)r->in.len, (long long)w.size, w.moves ? ", which moves" : "");
  if (!reader_set(r, DT_U8, 2, (int64_t[]){1, w.size}, w.shift, w.size)) return false;
  r->piece->rows = left / w.step + 1;
  r->piece->moves = w.moves ? w.step : 0;
  r->piece->stride = w.step;
  return true;
}
