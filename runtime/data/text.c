/* Any file as bytes: one a row; or, for language models, windows of N of them.
 *
 * "x.txt:64" and "x.txt:64+1" are a window and the same one byte later, what comes next. Both leave out the last
 * byte that only the second could use, so that they have as many rows. */
#include "runtime/data/reader.h"

#include <string.h>

/* "64" or "64+1" */
static bool parse_window(const char *text, int64_t *window, int *shift) {
  *window = 0;
  for (; *text >= '0' && *text <= '9'; text++) {
    if (*window > INT32_MAX / 10) return false;
    *window = *window * 10 + (*text - '0');
  }
  *shift = strcmp(text, "+1") == 0;
  return *window > 0 && (*shift || !*text);
}

bool read_text(struct reader *r) {
  if (!r->member) return reader_set(r, DT_U8, 1, &r->in.len, 0, r->in.len);
  int64_t window;
  int shift;
  if (!parse_window(r->member, &window, &shift))
    return reader_fail(
        r,
        "':%s' is not a window; write the bytes a row, as in ':64', or ':64+1' for the same one "
        "byte later",
        r->member);
  int64_t rows = (r->in.len - 1) / window;
  if (rows < 1)
    return reader_fail(r, "its %lld bytes are too few for one window of %lld and the byte behind it",
                       (long long)r->in.len, (long long)window);
  return reader_set(r, DT_U8, 2, (int64_t[]){rows, window}, shift, rows * window);
}
