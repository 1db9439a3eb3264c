/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of an option is its row: nothing else asks for one by name. */
#ifndef DGC_SESSION_OPTION_TABLE_H
#define DGC_SESSION_OPTION_TABLE_H

#include "session/session.h"

/* How the value is read; STEPS_OR_TIME and STALENESS set fields beside their own. */
enum option_kind { FLAG, TEXT, INTEGER, LIST, EVERY, STEPS_OR_TIME, STALENESS };

/* What may stand behind a number: "2GB", "30s". */
struct option_units {
  const char *examples;
  struct option_unit {
    const char *name;
    int64_t times;
  } all[8]; /* ends with a name of NULL */
};
extern const struct option_units units_of_time;

/* How a value names a file: FILE; NAME=PATH of an input, of several files and their members; NAME=FILE; FILE:old=new;
 * FILE, and FILE.N of process N; the number of a step. */
enum option_path {
  PATH_ALONE,
  PATH_OF_INPUT,
  PATH_OF_OUTPUT,
  PATH_BEFORE_NAMES,
  PATH_OF_EACH_PROCESS,
  PATH_OF_STEP
};

/* Until when it may be set: always, before a model is loaded, before anything runs. */
enum option_until { ALWAYS, UNTIL_LOADED, UNTIL_RUN };

/* What has been made of the old value, and goes; of DEVICES graphs are made, too. */
enum option_remakes { NOTHING, GRAPHS, DEVICES };

struct option_row {
  const char *name;
  const char *group; /* of help, and the section of the manual */
  enum option_kind kind;
  size_t offset;     /* into struct options */
  const char *value; /* what it takes; NULL: nothing */
  const char *help;
  int64_t min, max; /* of a number */
  const struct option_units *units;
  const char *fraction; /* what helps who has written a number with a point */
  const char *words;    /* that it may be, each with a blank behind it; NULL: no list */
  /* Refuses a value that is wrong whatever the model is; NULL: none is. */
  enum dgc_status (*check)(struct dgc_session *s, const struct option_row *r, const char *value);
  enum option_until until;
  enum option_remakes remakes;
  size_t given; /* of a bool that says that it was set; 0: there is none */
  enum dgc_file_use use;
  enum option_path path; /* how the value names the file */
  size_t needs;          /* a text without which it is nothing; 0: there is none, */
  const char *needs_why;
  const char *not_free; /* why it is not for asynchronous training in no fixed order; NULL: it is */
};

extern const struct option_row option_table[];
extern const int option_count;

/* option_checks.c */
enum dgc_status check_word(struct dgc_session *s, const struct option_row *r, const char *value);
enum dgc_status check_assignment(struct dgc_session *s, const struct option_row *r, const char *value);
enum dgc_status check_range(struct dgc_session *s, const struct option_row *r, const char *value);
enum dgc_status check_strategy(struct dgc_session *s, const struct option_row *r, const char *value);
enum dgc_status check_link(struct dgc_session *s, const struct option_row *r, const char *value);
enum dgc_status check_speed(struct dgc_session *s, const struct option_row *r, const char *value);
enum dgc_status check_tasks(struct dgc_session *s, const struct option_row *r, const char *value);
enum dgc_status check_passes(struct dgc_session *s, const struct option_row *r, const char *value);
enum dgc_status check_pass_or_all(struct dgc_session *s, const struct option_row *r, const char *value);

#endif
