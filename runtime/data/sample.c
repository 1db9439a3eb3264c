/* SPDX-License-Identifier: Apache-2.0 */
/* What tells the rows of a dataset from others at a small price: checksums of some of them. */
#include "runtime/data/images.h"
#include "runtime/data/reader.h"
#include "runtime/data/xxh64.h"

#include "base/file.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* So many runs of rows, spread over all of them, the first and the last among them; a run has as many as these bytes
 * hold, one at least. */
enum { RUNS = 64, RUN_ROWS = 16, RUN_BYTES = 1 << 14, IMAGE_RUNS = 16 };

static bool is_open(const struct column_piece *p) { return p->file || p->data || p->images || p->source; }

static const struct column_piece *piece_with(const struct column *c, int64_t row) {
  int i = 0;
  while (i + 1 < c->npieces && c->pieces[i + 1].first <= row) i++;
  return &c->pieces[i];
}

/* The first bytes of the file, and how many it has: nothing is decoded. */
static bool add_image(struct xxh64 *h, const struct column *c, const struct column_piece *p, int64_t row,
                      struct diags *d) {
  const struct images *m = p->images;
  const char *path = m->paths[p->at / p->stride + row - p->first], *cause;
  uint8_t head[1 << 12];
  int64_t len;
  int fd = file_open_within(m->roots, path, &len, &cause);
  if (fd < 0) return content_unread(path, errno, c->loc, d);
  int64_t want = len < (int64_t)sizeof head ? len : (int64_t)sizeof head, got = file_read(fd, head, want, 0);
  int error = got < 0 ? errno : 0;
  close(fd);
  if (got != want) return content_unread(path, error, c->loc, d);
  xxh64_add(h, &len, sizeof len);
  xxh64_add(h, head, (size_t)want);
  return true;
}

/* A number that does not fit is said when the training comes to it. */
static bool add_row(uint64_t *sum, const struct column *c, int64_t row, uint8_t *room, struct diags *d) {
  const struct column_piece *p = piece_with(c, row);
  struct misfit bad;
  struct xxh64 h;
  if (!is_open(p) || p->source) return true;
  xxh64_init(&h);
  xxh64_add(&h, c->name, strlen(c->name));
  xxh64_add(&h, &row, sizeof row);
  if (p->images) {
    if (!add_image(&h, c, p, row, d)) return false;
  } else if (column_read(c, 0, row, 1, room, &bad)) {
    xxh64_add(&h, room, (size_t)type_bytes(&c->row));
  } else if (bad.unread) {
    return content_unread(p->path, bad.error, c->loc, d);
  }
  *sum += xxh64_end(&h);
  return true;
}

static bool add_column(uint64_t *sum, const struct column *c, struct diags *d) {
  bool images = c->pieces[0].images != NULL, good = true;
  int64_t bytes = type_bytes(&c->row), run = images || bytes > RUN_BYTES ? 1 : RUN_ROWS;
  while (run > 1 && run * bytes > RUN_BYTES) run--;
  int64_t runs = (c->rows + run - 1) / run, most = images ? IMAGE_RUNS : RUNS;
  int64_t looked = runs < most ? runs : most;
  struct content room = {0};
  if (!images && !content_alloc(&room, bytes, c->path, c->loc, d)) return false;
  for (int64_t i = 0; i < looked && good; i++) {
    int64_t at =
        looked < runs ? (runs - 1) / (looked - 1) * i + (runs - 1) % (looked - 1) * i / (looked - 1) : i;
    for (int64_t row = at * run; row < at * run + run && row < c->rows && good; row++)
      good = add_row(sum, c, row, room.map, d);
  }
  content_close(&room);
  return good;
}

bool dataset_sample(const struct dataset *ds, uint64_t *sum, bool *all, struct diags *d) {
  *sum = 0, *all = true;
  for (int i = 0; i < ds->ncolumns; i++) {
    for (int k = 0; k < ds->columns[i].npieces; k++) *all &= is_open(&ds->columns[i].pieces[k]);
    if (!add_column(sum, &ds->columns[i], d)) return false;
  }
  return true;
}
