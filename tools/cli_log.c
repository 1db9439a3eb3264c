/* SPDX-License-Identifier: Apache-2.0 */
/* The log of a training: a line for each report, as JSON or CSV.
 *
 * A line is one write to the end of the file, so that whoever is killed leaves whole lines; one that a full disk has
 * cut is taken back. What goes on from a checkpoint appends. */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static struct {
  int fd; /* -1: none */
  bool csv, regular, begun;
  char *header; /* of a CSV file that is gone on with; NULL: none */
} log_file = {.fd = -1};

static bool ends_in(const char *path, const char *end) {
  size_t len = strlen(path), n = strlen(end);
  return len >= n && strcmp(path + len - n, end) == 0;
}

static int fail(struct cli *c, const char *what) {
  cli_clear_bar();
  fprintf(stderr, "error: cannot %s %s: %s\n", what, c->log, strerror(errno));
  return DGC_RUNTIME;
}

/* Where the last whole line ends, and the first line, of a file that is gone on with. */
static off_t whole_lines(FILE *f, char **first) {
  off_t end = 0;
  char *line = NULL;
  size_t cap = 0;
  ssize_t len;
  while ((len = getline(&line, &cap, f)) > 0) {
    if (line[len - 1] != '\n') break;
    end += len;
    if (*first) continue;
    line[len - 1] = 0;
    *first = strdup(line);
  }
  free(line);
  return end;
}

/* Takes away what somebody who was killed in its last line has left of that. */
static int append_to(struct cli *c, off_t size) {
  FILE *f = fopen(c->log, "re");
  if (!f) return fail(c, "read");
  off_t end = whole_lines(f, &log_file.header);
  fclose(f);
  if (end < size && ftruncate(log_file.fd, end) != 0) return fail(c, "write");
  if (!c->process && !c->quiet)
    fprintf(stderr, "note: %s is there: lines are appended%s\n", c->log,
            end < size ? ", and one that was not whole is gone" : "");
  return DGC_OK;
}

int cli_log_open(struct cli *c) {
  struct stat st;
  if (!c->log || c->process > 0) return DGC_OK;
  log_file.csv = ends_in(c->log, ".csv");
  if (!log_file.csv && !ends_in(c->log, ".jsonl"))
    return cli_usage(c, "--log: the name must end in .jsonl or .csv, not '%s'", c->log);
  bool there = stat(c->log, &st) == 0 && st.st_size > 0;
  if (there && S_ISREG(st.st_mode) && !c->resumes && !c->overwrite) {
    cli_usage(c, "%s is there already, and this training would replace it", c->log);
    fputs("dgc train: help: --resume appends to it, --overwrite begins anew\n", stderr);
    return DGC_USAGE;
  }
  int flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  log_file.fd = open(c->log, flags, 0666);
  if (log_file.fd < 0 || fstat(log_file.fd, &st) != 0) return fail(c, "write");
  log_file.regular = S_ISREG(st.st_mode);
  if (!log_file.regular || !st.st_size) return DGC_OK;
  if (c->resumes) return append_to(c, st.st_size);
  return ftruncate(log_file.fd, 0) == 0 ? DGC_OK : fail(c, "replace");
}

/* A line, whole or not at all. After a failure nothing more is written; the training goes on, and the tool fails. */
static void put_line(struct cli *c, char *text, size_t len) {
  struct stat st = {0};
  if (text && fstat(log_file.fd, &st) == 0) {
    ssize_t n = write(log_file.fd, text, len);
    if (n == (ssize_t)len) return;
    if (n >= 0) errno = ENOSPC;
    int cause = errno;
    if (n > 0 && log_file.regular && ftruncate(log_file.fd, st.st_size) != 0) cause = errno;
    errno = cause;
  }
  fail(c, "write");
  c->failed = true;
  cli_log_close();
}

/* --- figures --- */

/* What a line says, one after the other: the same names each time. */
struct figures {
  FILE *to;
  enum { NAMES, VALUES, MEMBERS } how;
  int count;
};

/* `there`: else it is left out, or an empty field. */
static void figure(struct figures *f, const char *prefix, const char *name, double value, bool there) {
  if (f->how == MEMBERS && !there) return;
  if (f->count++) fputc(',', f->to);
  if (f->how != VALUES) {
    char text[512];
    snprintf(text, sizeof text, "%s%s", prefix, name);
    if (f->how == MEMBERS)
      cli_json_string(f->to, text);
    else
      fputs(text, f->to);
  }
  if (f->how == MEMBERS) fputc(':', f->to);
  if (f->how == NAMES || !there) return;
  if (f->how == VALUES && !isfinite(value))
    fputs(isnan(value) ? "nan" : value < 0 ? "-inf" : "inf", f->to);
  else
    cli_json_number(f->to, value);
}

static void figures_of(struct figures *f, const struct dgc_progress *p) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  figure(f, "", "step", (double)p->total_steps, true);
  figure(f, "", "epoch", (double)p->epoch + 1, true);
  for (int i = 0; i < p->nlosses; i++) figure(f, "train.", p->losses[i].name, p->losses[i].value, true);
  for (int i = 0; i < p->nmetrics; i++) figure(f, "train.", p->metrics[i].name, p->metrics[i].value, true);
  if (p->nlosses != 1) figure(f, "", "loss", p->loss, true);
  for (int i = 0; i < p->nvalidation; i++)
    figure(f, "", p->validation[i].name, p->validation[i].value, p->evaluated);
  for (int i = 0; i < p->nrates; i++)
    figure(f, p->nlosses == 1 ? "" : "rate.", p->nlosses == 1 ? "rate" : p->rates[i].name, p->rates[i].value,
           true);
  figure(f, "", "examples_per_second", p->examples_per_second, true);
  figure(f, "", "epoch_seconds", p->epoch_seconds, true);
  figure(f, "", "seconds", p->seconds, true);
  figure(f, "", "time", (double)now.tv_sec + (double)(now.tv_nsec / 1000000) * 1e-3, true);
}

/* --- lines --- */

/* What a log of JSON begins with, and goes on with after a checkpoint. */
static void put_run(struct cli *c, FILE *f) {
  struct dgc_machine m = {.size = sizeof m};
  fprintf(f, "{\"run\":{\"dgc\":\"%s\",\"step\":%lld,\"model\":", dgc_version(),
          (long long)dgc_step(c->session));
  cli_json_string(f, c->words[0]);
  fputs(",\"arguments\":[", f);
  for (int i = 0; i < c->argc; i++) {
    if (i) fputc(',', f);
    cli_json_string(f, c->argv[i]);
  }
  fputc(']', f);
  if (dgc_machine(c->session, &m) == DGC_OK) {
    fputs(",\"cpu\":", f);
    cli_json_string(f, m.cpu);
    fprintf(f, ",\"cores\":%d", m.cores);
  }
  fputs("}}\n", f);
}

void cli_log_run(struct cli *c) {
  char *text = NULL;
  size_t len = 0;
  FILE *f = log_file.fd >= 0 && !log_file.csv ? open_memstream(&text, &len) : NULL;
  if (!f) return;
  put_run(c, f);
  fclose(f);
  put_line(c, text, len);
  free(text);
}

static char *line_of(const struct dgc_progress *p, int how, size_t *len) {
  char *text = NULL;
  FILE *f = open_memstream(&text, len);
  if (!f) return NULL;
  struct figures all = {.to = f, .how = how};
  if (how == MEMBERS) fputc('{', f);
  figures_of(&all, p);
  fputs(how == MEMBERS ? "}\n" : "\n", f);
  fclose(f);
  return text;
}

/* The first line of CSV; false: the file that is gone on with has other columns. */
static bool begin_csv(struct cli *c, const struct dgc_progress *p) {
  size_t len;
  char *names = line_of(p, NAMES, &len);
  if (!log_file.header) {
    put_line(c, names, len);
    free(names);
    return true;
  }
  bool same = names && strncmp(names, log_file.header, len - 1) == 0 && !log_file.header[len - 1];
  free(names);
  if (same) return true;
  cli_clear_bar();
  cli_usage(c, "--log: %s has other columns than this training: give another name", c->log);
  return false;
}

bool cli_log_report(struct cli *c, const struct dgc_progress *p) {
  if (log_file.fd < 0) return true;
  if (log_file.csv && !log_file.begun && !begin_csv(c, p)) return false;
  log_file.begun = true;
  if (!p->log_due || log_file.fd < 0) return true;
  size_t len;
  char *text = line_of(p, log_file.csv ? VALUES : MEMBERS, &len);
  put_line(c, text, len);
  free(text);
  return true;
}

void cli_log_close(void) {
  if (log_file.fd >= 0) close(log_file.fd);
  log_file.fd = -1;
  free(log_file.header);
  log_file.header = NULL;
}
