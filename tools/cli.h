/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the command line tool share. It is a client of dgc.h and sees nothing else. */
#ifndef DGC_TOOLS_CLI_H
#define DGC_TOOLS_CLI_H

#include "dgc.h"

#include <stdio.h>
#include <sys/types.h>

enum { MAX_WORDS = 64 };

/* One run of the tool. */
struct cli {
  struct dgc_session *session;
  const struct verb *verb;
  const char *words[MAX_WORDS]; /* arguments that are no options */
  int nwords;
  char **given; /* the options, as "--name=value" */
  int ngiven;
  int argc; /* what stands behind the verb */
  char **argv;
  const char *emit, *file, *entry, *dump_dir, *passes, *checkpoint, *resume, *log, *log_dir, *receipt;
  const char *jobs, *seconds, *filter, *junit, *define;
  bool json, help, quiet, resumes, overwrite, color, update, markdown, lists;
  char *diagnostics; /* of all calls, as the members of a JSON array; NULL: there are none */
  bool told;         /* in JSON */
  char *message;     /* of the last call that failed; NULL: none did */
  const char *processes, *hosts, *restarts, *min_tasks;
  char **rest;    /* what stands behind "--": of launch, a command; ends with NULL */
  int process;    /* of several that a launcher has started; the first one prints */
  bool evaluator; /* this one prints as well */
  bool failed;    /* a dump or a log could not be written */
  bool refused;   /* the training was ended, as the log cannot go on */
};

struct verb {
  const char *name;
  /* "MODEL NODE": one name per word that must be there; "FILE...": there may be more; "[NAME]": or none. */
  const char *words;
  const char *help;
  const char *options; /* names, separated by spaces */
  int (*run)(struct cli *c);
};

extern const struct verb verbs[]; /* ends with a name of NULL */

/* cli_options.c */
/* Fills in `c` from the arguments behind the verb; options of the library go to the session. The exit code. */
int cli_parse(struct cli *c, int argc, char **argv);
/* Frees what the tool has kept of a run. */
void cli_forget(struct cli *c);
/* The options of a verb: false behind the last one. */
struct cli_option {
  char letter;       /* 0: none */
  const char *name;  /* "devices" */
  const char *value; /* what it takes; NULL: a flag */
  const char *help;
  const char *choices; /* words that it may be, between blanks; NULL: no list */
  const char *group;   /* of help */
  enum dgc_file_use use;
};
bool cli_option(const struct verb *v, int index, struct cli_option *out);
/* The whole number of an option, within its range; `otherwise` where it is not given, -1 after an error. */
int cli_number_of(struct cli *c, const char *name, const char *text, int otherwise);
enum { CLI_MOST_JOBS = 256 };
/* Tells the session which files the command reads and writes; the exit code: 2 where two of them are one. */
int cli_use_files(struct cli *c);
/* Whether `name` is one of the words of a list, which blanks separate. */
bool cli_in_list(const char *list, const char *name);
/* The candidate most like `word`, or NULL. Candidates are separated by spaces. */
const char *cli_closest(const char *word, const char *candidates);

/* cli_environment.c */
/* Warns of DGC_ names in the environment that nothing reads; the exit code: 2 where a value is none. */
int cli_check_environment(struct cli *c);

/* cli_help.c */
/* A verb and its options by groups, the common ones first; lines of at most 80 columns. */
void cli_print_help(const struct verb *v);
/* The same as an object: of each option what it takes, and what is done with the file that it names. */
void cli_print_help_json(const struct verb *v);
void cli_print_verbs(FILE *f);
/* The verb: a script for the shell that is its word. */
int cli_completion(struct cli *c);

/* cli_launch.c */
int cli_launch(struct cli *c);

/* cli_test.c, cli_new.c, cli_doctor.c: verbs */
int cli_test(struct cli *c);
int cli_new(struct cli *c);
int cli_doctor(struct cli *c);

/* main.c: a verb with what stands behind it; the exit code. */
int cli_run(const struct verb *v, int argc, char **argv);

/* cli_diagnostics.c */
/* Keeps what the session's last call has said, as long as the verb runs. */
void cli_keep_diagnostics(struct cli *c);
/* Adds what another run of the verb has kept, and forgets it there. */
void cli_take_diagnostics(struct cli *c, struct cli *from);
/* Keeps what is wrong with the words of the command line. */
void cli_keep_usage(struct cli *c, const char *message);
/* ,"diagnostics":[...]: a member behind another, if there are any. */
void cli_print_diagnostics(const struct cli *c);
/* {"ok":false,"diagnostics":[...]} if the verb has told nothing in JSON; of dgc check also where all is well. */
void cli_tell(struct cli *c, int code);

/* cli_signals.c */
void cli_catch_signals(void);
/* From here on there are steps to lose in the session; NULL: no longer. */
void cli_training(struct dgc_session *s);
/* From here on others, which this process was started with, would end with it, and it is asked to end without them. */
void cli_evaluating(struct dgc_session *s);
/* From here on there are tests that may be asked to end; false: no longer. */
void cli_testing(bool runs);
/* In a process that has been forked: a signal ends it, and nothing else is asked. */
void cli_alone(void);
/* As fork: the child is to become a launcher of trainings. It has the signals' defaults and no terminal; when this
 * process is asked to end, it asks the launcher. */
pid_t cli_fork(void);
/* The launcher's exit code, as a shell has it; DGC_STOPPED: its trainings ended because this process was asked to.
 * -1: it cannot be had, see errno. */
int cli_wait(void);
/* Somebody asked this process to end, or, by its exit code, one that was launched. */
bool cli_asked(int code);
/* Ends the tool with the signal that ended its work, if one did; gives the code back. */
int cli_end(int code);

/* cli_message.c */
/* What a training has to say while it runs; of dgc_on_message, in the first process. */
void cli_message(void *user, const char *text);
/* How messages of the session look: colours, and the width of the terminal. */
void cli_set_look(struct cli *c);
/* What the session has to say goes to standard error; gives `status` back. */
int cli_status(struct cli *c, enum dgc_status status);
/* "error: ..." on standard error; gives DGC_USAGE back. */
int cli_usage(struct cli *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* cli_bar.c */
/* Of the terminal behind standard error; 0: it is none that a bar can be drawn on. */
int cli_columns(void);
/* Where standard error is a terminal that can have one. */
void cli_draw_bar(const struct dgc_progress *p);
/* Removes the bar, if there is one, before something else is printed. */
void cli_clear_bar(void);
/* What is no number has no sign, which processors choose as they like. */
double cli_unsigned_nan(double value);
/* "0:07", "12:07", "3:12:07", in `text`. */
const char *cli_clock_text(double seconds, char *text, size_t size);

/* cli_progress.c */
bool cli_progress(void *user, const struct dgc_progress *p);

/* cli_result.c */
/* Remembers what the training has come to. */
void cli_keep_result(const struct dgc_progress *p);
/* What a training has come to as a JSON object, whichever way it ended: `metrics` NULL where it was not evaluated. */
void cli_print_result(struct cli *c, int code, const struct dgc_metric *metrics, int count, int64_t rows);

/* cli_receipt.c */
/* Whether the file of --receipt may be written, before any work is done; the exit code. */
int cli_receipt_may(struct cli *c);
/* Behind a training. */
int cli_receipt_write(struct cli *c);
/* Does the training of the receipt again, and compares. */
int cli_receipt_verify(struct cli *c);

/* cli_events.c: as those of the log */
int cli_events_open(struct cli *c);
void cli_events_run(struct cli *c);
void cli_events_report(struct cli *c, const struct dgc_progress *p);
void cli_events_close(void);

/* cli_log.c */
/* Opens the file of --log before any work is done; the exit code. */
int cli_log_open(struct cli *c);
/* Says which run the lines that come are of. */
void cli_log_run(struct cli *c);
/* A line, if one is due. False: this training cannot go on with the file, which is said. */
bool cli_log_report(struct cli *c, const struct dgc_progress *p);
void cli_log_close(void);

/* cli_report.c */
void cli_print_metrics(const struct cli *c, const struct dgc_metric *m, int count, int64_t rows);
/* The metrics of a training step, in one line. */
void cli_print_step(const struct cli *c, int64_t step, const struct dgc_metric *m, int count, int64_t rows);
void cli_print_bench(const struct cli *c, const struct dgc_bench *b);

/* cli_json.c */
void cli_json_string(FILE *f, const char *text);
void cli_json_number(FILE *f, double value);
/* The tasks' times, behind another member of an object. */
void cli_print_tasks_json(struct dgc_session *s);

#endif
