/* SPDX-License-Identifier: Apache-2.0 */
/* Source locations and diagnostics: collected while the compiler works, printed at the end.
 *
 *   digits.dsl:9:12: error: matmul needs equal inner dimensions: f32[B,784] @ f32[512,10]
 *     9 |   logits = h @ kernel
 *       |            ^~~~~~~~~~
 *   digits.dsl:4:3: note: kernel : f32[512,10] is declared here
 */
#ifndef DGC_BASE_DIAG_H
#define DGC_BASE_DIAG_H

#include "base/arena.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct file_roots; /* base/file.h */

/* One text that locations point into. `text` holds `len` bytes and a NUL behind them; it may hold NULs. */
struct source {
  const char *name; /* as the user wrote it: a path, "-" or "<nn>" */
  const char *text;
  size_t len;
  const uint32_t *lines; /* where each line begins; NULL if not known, then positions are counted */
  uint32_t nlines;
  bool is_file; /* read from the file of its name */
  bool hidden;  /* its file is not named as a source is, and may be anything: no line of it is shown */
};

/* A half-open byte range of a source. `source == NULL` means that no location is known. */
struct loc {
  const struct source *source;
  uint32_t begin, end;
};

/* How a place inside of a function was reached: calls, the innermost first. */
struct trail {
  const struct trail *outer;
  struct loc call;
  const char *callee; /* "nn.dense" */
};

enum severity { DIAG_ERROR, DIAG_WARNING, DIAG_NOTE, DIAG_HELP };

struct diag {
  enum severity severity;
  struct loc loc;
  const char *message;
  const char *wrong,
      *meant; /* of a help: a word in the place of the error, and the one that is meant; else NULL */
  struct diag *next;
};

/* Diagnostics of one call, in order. Notes and helps belong to the error or warning before them. */
struct diags {
  struct arena *arena;
  struct diag *first, **tail;
  struct diag **told; /* behind those that diags_text leaves out, as somebody has read them */
  int nerrors;        /* all errors seen */
  int max_errors;     /* further ones are counted, not kept (default 20) */
  bool dropped;       /* inside an error past the limit: its notes are dropped too */
  bool failure;       /* one of the errors is a failure */
};

void diags_init(struct diags *d, struct arena *a);
void diag_error(struct diags *d, struct loc loc, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* An error that is the system's and not the input's: no memory, a disk that cannot be read. */
void diag_failure(struct diags *d, struct loc loc, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void diag_warning(struct diags *d, struct loc loc, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void diag_note(struct diags *d, struct loc loc, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void diag_help(struct diags *d, struct loc loc, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Help at `loc`: did you mean 'meant'? `quote` stands around it. */
void diag_meant(struct diags *d, struct loc loc, const char *word, const char *meant, char quote);
/* Help at `loc` for a word that is none of these names: the closest one, if any is close; else what there is:
 * `otherwise`, "passes are", and all of them; NULL: no help then. */
void diag_closest(struct diags *d, struct loc loc, const char *word, const char *const *names, size_t count,
                  const char *otherwise);

/* Line and column (both from 1, columns in bytes) of a byte offset. */
void source_position(const struct source *s, uint32_t offset, int *line, int *column);
/* The range from the start of `a` to the end of `b`. */
struct loc loc_join(struct loc a, struct loc b);
#define LOC_NONE ((struct loc){0})

/* All diagnostics behind `told` as text: source line, carets, ranges; long lines are cut around the caret and control
 * characters are shown as '.'. Colours only when asked. The result lives in the diagnostics' arena. */
const char *diags_text(const struct diags *d, bool color);
/* The same for a screen of so many columns; 0: it is none. */
const char *diags_text_on(const struct diags *d, bool color, int screen);

/* Reads a whole file ("-" = standard input) into the arena. On failure: an error in `d`, NULL returned.
 * Files larger than `limit` bytes are refused. */
struct source *source_read(struct arena *a, const char *path, size_t limit, struct diags *d);
/* As source_read of a file that a model names; see file_open_within. It must be named as a source is. */
struct source *source_read_within(struct arena *a, const struct file_roots *roots, const char *path,
                                  size_t limit, struct diags *d);
/* A source from memory; `text` is copied. Bytes past 4 GiB are dropped. */
struct source *source_make(struct arena *a, const char *name, const char *text, size_t len);

#endif
