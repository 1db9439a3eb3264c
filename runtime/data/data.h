/* SPDX-License-Identifier: Apache-2.0 */
/* Training and prediction data: files become datasets, datasets become batches, predictions become files.
 *
 *   format       recognised by            path                        rows
 *   IDX          00 00 type rank          digits-images               first axis
 *   npy          \x93NUMPY                x.npy                       first axis
 *   npz          PK                       x.npz:member                first axis of the member
 *                                         x.npz                       rows of a sparse matrix (CSR of scipy)
 *   safetensors  length, then '{'         x.safetensors:tensor        first axis of the tensor
 *   CSV          name ends in .csv, .tsv  x.csv  x.csv:age  x.csv:2   lines; one value a row with a name or number
 *                                         x.csv:1-4                   columns 1 to 4, counted from 1
 *                                         x.csv:city:category         words, dates, numbers that may be missing: csv.c
 *   bytes        name ends in .txt        x.txt                       one byte a row
 *                                         x.txt:64  x.txt:64+1        windows of 64 bytes; the same, one byte later
 *                                         x.txt:64/32  x.txt:64/32+1  one of them every 32 bytes
 *                                         x.txt:64/moving             which begin elsewhere in each epoch
 *   folder       a folder                 photos/  photos/:resize     images below it, PNG and JPEG: images.h
 *                                         photos/:label               i32, by the folder that the image lies in
 *   PNG, JPEG    89 PNG, ff d8 ff         cat.png  cat.png:resize     one
 *
 *   standard input, or a FIFO              -  -:age                    any of these; what has no first bytes is CSV
 *
 * Every format but images may be compressed with gzip. Headers are checked against the length of the file before
 * anything is allocated. Files are read into memory as long as they have no more than $DGC_DATA_MEMORY bytes together
 * (256 MiB if it is not set); of further ones rows are read when they are wanted. A file that becomes shorter, or
 * cannot be read, is an error then. */
#ifndef DGC_RUNTIME_DATA_DATA_H
#define DGC_RUNTIME_DATA_DATA_H

#include "base/diag.h"
#include "ir/type.h"

/* --- datasets --- */

/* What is known of a file that is not opened. */
struct file_shape {
  struct type row;
  int64_t rows; /* 0: nothing, it is opened */
};

/* Rows that the program has: an array, or a function that makes them. */
struct row_source {
  struct type row;
  int64_t rows;
  const void *data; /* all of them, dense; lives as long as the dataset. NULL: */
  /* Writes rows [first, first + count), dense; false if it cannot. From the loader's thread, and from that which opens
   * the dataset. */
  bool (*read)(void *user, int64_t first, int64_t count, void *out);
  void *user;
};

struct data_spec {
  const char *name;        /* of the model's input */
  const char *path;        /* with its ":member"; relative to the dataset's folder */
  const char *const *more; /* further files, whose rows come behind */
  int nmore;
  struct loc loc;                 /* where the user wrote it, for messages */
  const struct file_roots *roots; /* where the files may lie, if a model names them; NULL: anywhere */
  const struct file_shape
      *shapes; /* of all files; their rows cannot be read where they are not opened; NULL: all are */
  struct vocabulary
      *vocabulary;     /* of words, "x.csv:city:category"; an open one is closed by what the files have. NULL:
                                  * an error, if there are words */
  struct pipes *pipes; /* where what comes through pipes is kept; NULL: there must be none */
  bool in_files;       /* few rows are read, or none: what no format needs in memory stays in the file */
  const struct type *row; /* what the model takes, which images are made to be; NULL: it is not known */
  const struct row_source *source; /* instead of files: then `path` is what messages call it. NULL: files */
};

/* Numbers of words: from 1 on, 0 being none; or of classes, from 0 on. */
enum word_numbers { WORDS_NONE, WORDS_NUMBERS, WORDS_CLASSES };

/* The rows of a column that lie in one file, or in one folder. */
struct column_piece {
  const char *path;
  struct type row; /* as it lies there */
  int64_t first;   /* the number that its first row has in the column */
  int64_t rows;
  const uint8_t *data;             /* of the first row; may be unaligned. NULL: in the file */
  const struct content *file;      /* NULL: it is not opened, or there is none */
  const struct row_source *source; /* whose function gives the rows; else NULL */
  int64_t at;                      /* of the first row, in the file */
  int64_t stride;                  /* bytes from a row to the next */
  int64_t
      moves; /* of text: in each epoch all rows begin by so many bytes later, or by fewer; 0: they do not */
  const struct images *images; /* whose files are decoded when they are read; else NULL */
  bool cells;                  /* of a CSV file */
  enum word_numbers words;     /* numbers of a vocabulary's words, i32, in memory of the file's own */
  /* Of a sparse one, else NULL: row i has data[starts[i]] to data[starts[i + 1] - 1], at `places`, and zeros. */
  const int64_t *starts, *places;
};

/* One column: `rows` values of type `row`, which is what a batch holds without its first axis. */
struct column {
  const char *name, *path; /* path: of the first file */
  struct loc loc;
  struct type row;   /* as delivered; see dataset_expect */
  int64_t low, high; /* of its numbers, when low <= high; see dataset_check_range */
  bool ends;
  int64_t rows;
  struct column_piece *pieces; /* none of them is empty */
  int npieces;
  const struct vocabulary *words; /* whose numbers they are, from 1 on; NULL: of none */
};

struct dataset {
  int64_t rows;
  int64_t begin; /* the number of the first of them among all that the files have */
  int ncolumns;
  struct column *columns;
  struct content *files; /* what the columns point into */
  int nfiles;
};

/* Opens `n` columns that must have equal row counts; the files of one must agree in the shape of a row.
 * `rows` selects a part like numpy's a:b: "100:200", ":-1000", "8000:"; NULL or "" = all. Unlike numpy's, a bound
 * outside of the data is an error.
 * `folder`: what relative paths are relative to, NULL = the current folder. NULL after an error in `d`. */
struct dataset *dataset_open(struct arena *a, const char *folder, const struct data_spec *specs, int n,
                             const char *rows, struct diags *d);
/* Opens one of the files, from 0 on, to see what it has. False after an error in `d`. */
bool data_shape(struct arena *a, const struct data_spec *spec, int file, struct file_shape *out,
                struct diags *d);
/* NULL is allowed. Loaders of the dataset must be destroyed before. */
void dataset_close(struct dataset *ds);
const struct column *dataset_find(const struct dataset *ds, const char *name);

/* Delivers the column as rows of type `row`. Axes of one element come and go, one axis becomes several or several one;
 * any other shape is an error. Numbers are converted where nothing is lost but precision. Integers that may not fit are
 * checked when they are read. A fraction does not become an integer: that is an error. */
bool dataset_expect(struct dataset *ds, const char *name, const struct type *row, struct diags *d);
/* Reads a column once: false, with an error in `d` that names the file, the row and the value, when one of its numbers
 * is not from low to high, or with `ends` neither: *wrong. NaN may be among them. */
bool dataset_check_range(struct dataset *ds, const char *name, int64_t low, int64_t high, bool ends,
                         double *wrong, struct diags *d);

/* Which numbers a column with one in each row has: has[0] is for the lowest that dataset_check_range has allowed, and
 * set where there is such a row. False: it is another kind of column, or not in memory. */
bool dataset_classes(const struct dataset *ds, const char *name, bool *has);

/* A checksum that tells the rows from others: of some of them, spread over all, as the model sees them at first, and of
 * images as they lie in their files. It does not depend on formats, nor on how rows are cut into files; rows of a
 * function have no part in it. *all: false where files are not opened; then the sums of all processes, which have
 * different ones, add up to it. False after an error in `d`: what should be read cannot be. */
bool dataset_sample(const struct dataset *ds, uint64_t *sum, bool *all, struct diags *d);

/* Adds as help to `d` which column is the first to have an infinity where it lies in memory, and with `nan` which a
 * NaN, in which row, and how the model reads another number there. */
void dataset_help_odd(const struct dataset *ds, bool nan, struct diags *d);

/* Where the first of n numbers is that is less than low or greater than high, or with `ends` between; -1: nowhere. */
int64_t numbers_outside(enum dtype d, const void *data, int64_t n, int64_t low, int64_t high, bool ends);

/* --- batches --- */

/* Which rows the workers of a cluster get.
 *   data  each batch is the next rows of the dataset, dealt to the workers: numbers do not depend on workers
 *   file  worker w has files w, w + workers, ... and takes its share of each batch from there; an epoch ends with
 *         the longest of these sequences
 *   off   every worker takes its share from all rows: an epoch has each row once for every worker
 *   auto  file where each worker can have one, else data */
enum shard { SHARD_DATA, SHARD_FILE, SHARD_OFF, SHARD_AUTO };
/* Whether workers with files of their own are never given a row of another's, where `rows` are those of the files, and
 * worker w has the towers from first[w] to first[w + 1], which share a batch: at the end of an epoch, sequences of
 * different lengths are dealt to all towers. */
bool shards_stay_apart(struct arena *a, const int64_t *rows, int files, int workers, const int *first,
                       int64_t batch);
/* By its name; `out` may be NULL. */
bool shard_find(const char *name, enum shard *out);

/* Where batches may lie, at multiples of 64 bytes. */
struct batch_memory {
  void *(*alloc)(void *arg, size_t bytes); /* NULL returned: there is none */
  void (*free)(void *arg, void *data);
  void *arg;
};

struct loader_options {
  int64_t batch; /* rows of a whole batch, over all workers */
  bool shuffle;  /* a new order in every epoch, see data_order */
  uint64_t seed;
  int64_t epochs; /* the loader ends before this epoch; 0 = never */
  int64_t epoch;  /* where to begin: */
  int64_t index;  /* ... batch of that epoch. May be the epoch's batch count: the next epoch's first. */
  enum shard shard;
  const int64_t *shares; /* rows of a whole batch for each worker */
  int workers;           /* with 0 or 1 there is nothing to shard */
  int towers;            /* the batch's; 0: all rows are read, else only those of these: */
  int first_tower, end_tower;
  int ring;     /* batches prepared ahead; 0 = 4 */
  int decoders; /* threads that decode images; 0: one for each core, at most 16. The rows are the same. */
  struct batch_memory
      memory; /* for large batches; without `alloc`, or where that has none, the loader has its own */
};

struct batch {
  int64_t epoch, index;         /* index: within the epoch */
  bool last;                    /* of its epoch */
  int64_t number;               /* of its first row, which counts those of the epoch's batches before it */
  int64_t rows;                 /* the last ones of an epoch may have fewer than the others */
  int64_t first, end;           /* those that are read; what lies at the others' places is no data */
  const struct tensor *columns; /* in the dataset's order, `rows` rows each, 64-byte aligned */
};

enum loader_status { LOADER_BATCH, LOADER_END, LOADER_ERROR };

struct loader;

/* Starts a thread that prepares batches ahead, and others where images are decoded. After that nothing is allocated,
 * but what an image needs while it is decoded. */
struct loader *loader_create(struct arena *a, const struct dataset *ds, const struct loader_options *o,
                             struct diags *d);
/* The next batch, valid until it is released; several may be held, fewer than the ring has. Errors come behind
 * the batches before them, and again on every further call. For one consumer thread. */
enum loader_status loader_next(struct loader *l, const struct batch **b, struct diags *d);
void loader_release(struct loader *l, const struct batch *b);
/* Reads all rows of one column of a batch that the consumer holds. False after an error in `d`. */
bool loader_complete(struct loader *l, const struct batch *b, int column, struct diags *d);
/* Stops the thread; held batches die. NULL is allowed. */
void loader_destroy(struct loader *l);
int64_t loader_batches_per_epoch(const struct loader *l);
/* The rows of an epoch's batch. */
int64_t loader_batch_rows(const struct loader *l, int64_t index);

/* The row that stands at `position` of an epoch's order: a permutation of 0..rows-1 that depends on the
 * arguments alone. It is a Feistel network over the smallest even number of bits that can number the rows, applied
 * again until the result is a row; so any position is found without the ones before it. */
int64_t data_order(uint64_t seed, int64_t epoch, int64_t rows, int64_t position);

/* --- predictions --- */

struct row_writer;

/* Whether these `n` columns can go to a file of this name; else an error. */
bool row_writer_takes(const char *path, const char *const *names, const struct type *row_types, int n,
                      struct diags *d);
/* Writes rows to `path`: .npy takes one column; .txt one of u8, each row of which is a line, its bytes as they are;
 * .csv any number, whose elements become columns x_0, x_1, ...
 * "-" is CSV on standard output. A regular file appears whole, when finished, or not at all. */
struct row_writer *row_writer_create(struct arena *a, const char *path, const char *const *names,
                                     const struct type *row_types, int n, struct diags *d);
/* `data[i]`: `rows` dense rows of column i. */
bool row_writer_put(struct row_writer *w, const void *const *data, int64_t rows, struct diags *d);
/* Ends the writer either way; false if the file could not be completed. */
bool row_writer_finish(struct row_writer *w, struct diags *d);
/* Ends the writer without leaving a file. NULL is allowed. */
void row_writer_abandon(struct row_writer *w);

#endif
