/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of a test: see cli_command.h. */
#include "cli_command.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_OUTPUT = 256 << 20 };

double seconds_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- what a line RUN may run ---- */

/* Options by which a verb reads what training has written: in tests, below the folder of %t, as all that writes. */
static const char written_before[] = "receipt resume";
/* What would start other programs, load libraries, or write where no option says. */
static const char refused_options[] = "pjrt-plugin dump-batch hosts";
static const char refused_verbs[] = "launch test new";

static bool is_among(const char *names, const char *name, size_t len) {
  for (const char *p = names; *p; p += strspn(p, " ")) {
    size_t n = strcspn(p, " ");
    if (n == len && strncmp(p, name, n) == 0) return true;
    p += n;
  }
  return false;
}

static const struct verb *verb_named(const char *name) {
  for (const struct verb *v = verbs; v->name; v++)
    if (strcmp(v->name, name) == 0) return v;
  return NULL;
}

/* Whether a value of an option that writes stays in the scratch folder: NAME=FILE, FILE or, on standard output, "-". */
static bool stays(const struct command_runner *r, const char *value) {
  size_t len = strlen(r->scratch);
  const char *equals = strchr(value, '='), *path = equals ? equals + 1 : value;
  return strcmp(path, "-") == 0 || (strncmp(path, r->scratch, len) == 0 && path[len] == '/');
}

static bool refuse(struct command_runner *r, struct dgc_outcome *out, const char *what, const char *which,
                   int len) {
  snprintf(r->why, sizeof r->why, what, len, which);
  out->errors = r->why;
  return false;
}

/* The option of a word, as the tool would read it; its value, NULL: the next word. */
static bool option_of(const struct verb *v, const char *word, const char **value, struct cli_option *out) {
  size_t len = strcspn(word, "=");
  *value = word[len] ? word + len + 1 : NULL;
  for (int i = 0; cli_option(v, i, out); i++) {
    if (word[0] == '-' && word[1] == '-' && strlen(out->name) == len - 2 &&
        strncmp(out->name, word + 2, len - 2) == 0)
      return true;
    if (word[0] != '-' || !out->letter || word[1] != out->letter) continue;
    *value = word[2] ? word + 2 : NULL;
    return true;
  }
  return false;
}

static bool may_run(struct command_runner *r, const struct dgc_command *what, struct dgc_outcome *out) {
  const struct verb *v = verb_named(what->words[0]);
  if (!v) return refuse(r, out, "there is no verb '%.*s'", what->words[0], 100);
  if (is_among(refused_verbs, v->name, strlen(v->name)))
    return refuse(r, out, "dgc %.*s is no verb for tests", v->name, 20);
  for (int i = 1; i < what->count; i++) {
    struct cli_option o;
    const char *value;
    if (!option_of(v, what->words[i], &value, &o)) continue;
    size_t len = strlen(o.name);
    if (is_among(refused_options, o.name, len))
      return refuse(r, out, "--%.*s is no option for tests", o.name, (int)len);
    bool writes = o.use == DGC_WRITES || o.use == DGC_WRITES_IN;
    if (!o.value || (!writes && !is_among(written_before, o.name, len))) continue;
    bool optional = *o.value == '[';
    if (!value && i + 1 < what->count && (!optional || what->words[i + 1][0] != '-'))
      value = what->words[++i];
    if (value && !stays(r, value))
      return refuse(r, out, "--%.*s writes to %%t and nowhere else in a test", o.name, (int)len);
  }
  return true;
}

/* ---- one command ---- */

int memory_file(const char *name, const void *data, size_t size) {
  int fd = memfd_create(name, MFD_CLOEXEC);
  for (size_t at = 0; fd >= 0 && at < size;) {
    ssize_t n = write(fd, (const char *)data + at, size - at);
    if (n <= 0) break;
    at += (size_t)n;
  }
  if (fd >= 0) lseek(fd, 0, SEEK_SET);
  return fd;
}

/* What was written to a file, with a NUL behind it; NULL: it cannot be had. */
char *memory_contents(int fd, size_t *size) {
  struct stat st;
  *size = 0;
  if (fstat(fd, &st) < 0 || st.st_size > MAX_OUTPUT) return NULL;
  char *text = malloc((size_t)st.st_size + 1);
  while (text && *size < (size_t)st.st_size) {
    ssize_t n = pread(fd, text + *size, (size_t)st.st_size - *size, (off_t)*size);
    if (n <= 0) break;
    *size += (size_t)n;
  }
  if (text) text[*size] = 0;
  return text;
}

/* The child: it becomes the tool with these words, and ends when its parent does. */
static _Noreturn void be_command(const struct dgc_command *what, const int fds[3]) {
  char **words = calloc((size_t)what->count + 1, sizeof *words);
  cli_alone();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (int i = 0; i < 3; i++) dup2(fds[i], i);
  if (!words) _exit(DGC_RUNTIME);
  for (int i = 1; i < what->count; i++) words[i - 1] = strdup(what->words[i]);
  int code = cli_run(verb_named(what->words[0]), what->count - 1, words);
  if (fflush(stdout) && !code) code = DGC_RUNTIME;
  _exit(code);
}

/* Whether the other end of the pipe was closed in time, which the end of a process does. */
static bool wait_closed(int fd, double seconds) {
  double until = seconds_now() + seconds;
  for (;;) {
    double left = until - seconds_now();
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int n = poll(&p, 1, left > 0 ? (int)(left * 1000) + 1 : 0);
    if (n > 0) return true;
    if (n == 0 && left <= 0) return false;
  }
}

static void wait_for(struct command_runner *r, pid_t child, int alive, struct dgc_outcome *out) {
  int status = 0;
  bool ended = wait_closed(alive, r->seconds);
  if (!ended) kill(child, SIGKILL);
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  out->code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  if (!ended)
    snprintf(r->why, sizeof r->why, "it has not ended after %g seconds", r->seconds);
  else if (WIFSIGNALED(status))
    snprintf(r->why, sizeof r->why, "it died of signal %d (%s)", WTERMSIG(status),
             strsignal(WTERMSIG(status)));
}

bool command_run(void *user, const struct dgc_command *what, struct dgc_outcome *out) {
  struct command_runner *r = user;
  int alive[2];
  *out = (struct dgc_outcome){.code = -1, .output = "", .errors = r->why};
  if (!may_run(r, what, out)) return false;
  snprintf(r->why, sizeof r->why, "it cannot be started: %s", strerror(errno));
  int in = memory_file("input", what->input, what->input_size), result = memory_file("output", NULL, 0);
  int errors = what->joined ? result : memory_file("errors", NULL, 0);
  if (in < 0 || result < 0 || errors < 0 || pipe2(alive, O_CLOEXEC) < 0) return true;
  const int fds[3] = {in, result, errors};
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    close(alive[0]);
    be_command(what, fds);
  }
  close(alive[1]);
  if (child > 0) wait_for(r, child, alive[0], out);
  close(alive[0]);
  free(r->output);
  free(r->errors);
  size_t size;
  r->output = memory_contents(result, &out->output_size);
  r->errors = what->joined ? NULL : memory_contents(errors, &size);
  if (r->output) out->output = r->output;
  if (out->code >= 0) out->errors = r->errors ? r->errors : "";
  close(in);
  close(result);
  if (!what->joined) close(errors);
  return true;
}
