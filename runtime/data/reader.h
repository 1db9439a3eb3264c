/* SPDX-License-Identifier: Apache-2.0 */
/* What the readers of the single formats share. Each fills in a piece's row type, rows, data and stride from
 * `in`; memory of its own (inflated, parsed, swapped bytes) goes to `own`, which is then not empty. */
#ifndef DGC_RUNTIME_DATA_READER_H
#define DGC_RUNTIME_DATA_READER_H

#include "runtime/data/content.h"
#include "runtime/data/data.h"

struct reader {
  struct arena *arena;
  const char *path;   /* of the file, for messages and for what depends on its name */
  const char *member; /* behind the ':', or NULL */
  struct loc loc;
  struct diags *diags;
  struct vocabulary *vocabulary; /* of the column; NULL: words have no numbers */
  bool pipe;                     /* it came through one */
  bool floats;                   /* the model takes such; false: integers, or it is not known */
  struct content in;
  struct content own;
  struct column_piece *piece;
};

bool read_idx(struct reader *r);
bool read_npy(struct reader *r);
bool read_npz(struct reader *r);
bool read_csv(struct reader *r);
bool read_text(struct reader *r);
bool read_safetensors(struct reader *r);

/* By the first bytes of a file. */
bool is_idx(const uint8_t *head, int64_t len);
bool is_npy(const uint8_t *head, int64_t len);
bool is_npz(const uint8_t *head, int64_t len);
bool is_safetensors(const uint8_t *head, int64_t len);
/* How long the first bytes say that the file is: see content_size_fn. */
int64_t idx_size(const uint8_t *head, int64_t len);
int64_t npy_size(const uint8_t *head, int64_t len);

/* Whether it is a CSV or TSV file, by its name. */
bool is_table(const char *path);
bool is_plain_text(const char *path);
/* "path: message" as an error; returns false. */
bool reader_fail(struct reader *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The format has no members: an error if one was asked for. */
bool reader_no_member(struct reader *r, const char *format);
/* Bytes of `in` or `own` in memory, copied there if they are in a file. NULL after an error. */
const uint8_t *reader_bytes(struct reader *r, const struct content *b, int64_t offset, int64_t len);
/* Whether `available` bytes are what an array of such numbers has, `size` bytes each, whose first axis counts
 * rows; else an error. */
bool reader_holds(struct reader *r, const char *type, int size, int rank, const int64_t *dims,
                  int64_t available);
/* Sets the piece to a dense array whose first axis counts rows, and checks that exactly `available` bytes hold it:
 * those from `at` on of `own`, or of `in` if that is empty. */
bool reader_set(struct reader *r, enum dtype dtype, int rank, const int64_t *dims, int64_t at,
                int64_t available);

/* Opens one file: splits off the member, recognises the format. `content` is what the piece points into. */
bool piece_open(struct arena *a, const char *folder, const struct data_spec *spec, const char *path,
                struct column_piece *p, struct content *content, int64_t *budget, struct diags *d);

/* A number that does not fit into the type a column is delivered as, or bytes that cannot be read. */
struct misfit {
  const struct column_piece *piece;
  int64_t row; /* of the piece */
  char value[32];
  bool unread;
  int error;        /* as of content_read */
  const char *path; /* of an image, and why it cannot be read; else NULL */
  char cause[160];
};
/* Copies rows [row, row + count) into dense memory, as they are delivered in an epoch. False if a number does not fit.
 */
bool column_read(const struct column *c, int64_t epoch, int64_t row, int64_t count, void *out,
                 struct misfit *bad);

/* How many of the next `rows` rows lie one behind the other, without gaps and overlaps: all, or one. */
int64_t piece_together(const struct column_piece *p, int64_t rows);

/* Numbers of a dense piece whose bytes are in a file, from the number `first` of this row on: as many as `*count` says,
 * or as fit into PIECE_WINDOW bytes. They go on into the next rows where these lie together. */
enum { PIECE_WINDOW = 1 << 14 };
bool piece_numbers(const struct column_piece *p, int64_t row, int64_t first, int64_t *count, void *out,
                   struct misfit *bad);

/* Converts `count` numbers from one dense array to another; the source may be unaligned. -1, or the index of the
 * first number that does not fit. */
int64_t convert_numbers(enum dtype to, void *out, enum dtype from, const void *in, int64_t count);
/* Whether numbers of one type may become the other at all. */
bool convert_allowed(enum dtype to, enum dtype from);
/* Whether rows of `have` are ones of `want`, whatever their types: axes of one element come and go, and what is one
 * axis in one of them may be several in the other, the last one the fastest. */
bool row_becomes(const struct type *have, const struct type *want);
/* What to write instead, as help behind an error, where they have as many elements. */
void row_explain(const char *input, const struct type *have, const struct type *want, struct diags *d);

#endif
