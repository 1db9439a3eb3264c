/* SPDX-License-Identifier: Apache-2.0 */
/* dgc test: tests that are files. The library reads them and compares; here they are found, tested, many at a time,
 * each in a process of its own, and told of. A pipe that its processes alone keep open tells that one has ended. */
#include "cli_command.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_FILES = 100000, MAX_DEPTH = 32 };

/* ---- one file ---- */

struct test_job {
  const char *path;
  pid_t process; /* 0: it has not begun, or has ended */
  int alive, report;
  double begun, seconds;
  enum dgc_test_end end;
  char *text; /* NULL until it has ended */
};

struct jobs {
  struct cli *c;
  struct test_job *all;
  char **paths;
  int count, running, begun;
  char scratch[64];
  char **defines;
  int ndefines;
};

static void remove_tree(const char *path, int depth) {
  DIR *d = depth < MAX_DEPTH ? opendir(path) : NULL;
  struct dirent *e;
  char below[PATH_MAX];
  while (d && (e = readdir(d))) {
    if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
    if (snprintf(below, sizeof below, "%s/%s", path, e->d_name) >= (int)sizeof below) continue;
    if (unlink(below) < 0) remove_tree(below, depth + 1);
  }
  if (d) closedir(d);
  rmdir(path);
}

/* In a process of its own: tests the file in its folder, and writes what has come out. */
static void test_file(struct jobs *j, const struct test_job *job, int number, FILE *report) {
  char scratch[96], *path = strdup(job->path), *slash = path ? strrchr(path, '/') : NULL;
  const char *name = slash ? slash + 1 : path;
  struct command_runner r = {
      .c = j->c, .scratch = scratch, .seconds = j->c->seconds ? atof(j->c->seconds) : 60};
  struct dgc_test how = {.scratch = scratch,
                         .defines = (const char *const *)j->defines,
                         .ndefines = j->ndefines,
                         .update = j->c->update,
                         .run = command_run,
                         .user = &r};
  struct dgc_test_result result = {.size = sizeof result, .end = DGC_TEST_FAILED, .text = ""};
  struct dgc_session *s = dgc_create();
  snprintf(scratch, sizeof scratch, "%s/%d", j->scratch, number);
  if (slash) *slash = 0;
  bool there = s && path && mkdir(scratch, 0700) == 0 && (!slash || chdir(slash == path ? "/" : path) == 0);
  if (!there)
    fprintf(report, "%d%s: %s\n", DGC_TEST_FAILED, job->path, strerror(errno));
  else {
    enum dgc_status status = dgc_test(s, name, &how, &result);
    fprintf(report, "%d%s", status ? (int)DGC_TEST_FAILED : (int)result.end,
            status ? dgc_message(s) : result.text);
  }
  free(r.output);
  free(r.errors);
  free(path);
  dgc_destroy(s);
  remove_tree(scratch, 0);
}

static bool start_job(struct jobs *j, int number) {
  struct test_job *job = &j->all[number];
  int alive[2];
  job->report = memory_file("report", NULL, 0);
  if (job->report < 0 || pipe2(alive, O_CLOEXEC) < 0) return false;
  fflush(NULL);
  job->begun = seconds_now();
  job->process = fork();
  if (job->process == 0) {
    close(alive[0]);
    cli_alone();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    FILE *report = fdopen(job->report, "w");
    if (report) test_file(j, job, number, report);
    _exit(report && fclose(report) == 0 ? 0 : DGC_RUNTIME);
  }
  close(alive[1]);
  job->alive = alive[0];
  if (job->process < 0) return false;
  j->running++;
  return true;
}

static void end_job(struct jobs *j, struct test_job *job) {
  int status = 0;
  size_t size;
  while (waitpid(job->process, &status, 0) < 0 && errno == EINTR) {}
  job->seconds = seconds_now() - job->begun;
  job->process = 0;
  j->running--;
  close(job->alive);
  char *text = memory_contents(job->report, &size);
  close(job->report);
  bool whole = text && *text >= '0' && *text <= '0' + DGC_TEST_NOTHING_TO_TEST && WIFEXITED(status);
  job->end = whole ? (enum dgc_test_end)(*text - '0') : DGC_TEST_FAILED;
  job->text = strdup(whole ? text + 1 : "the process that tests the file has died\n");
  free(text);
}

/* ---- all files ---- */

/* Goes on until something ends; false: somebody asked the tests to end. */
static bool wait_for_one(struct jobs *j) {
  struct pollfd *p = calloc((size_t)j->running + 1, sizeof *p);
  int *which = calloc((size_t)j->running + 1, sizeof *which), n = 0;
  if (!p || !which) return free(p), free(which), false;
  for (int i = 0; i < j->begun; i++) {
    if (!j->all[i].process) continue;
    which[n] = i;
    p[n++] = (struct pollfd){.fd = j->all[i].alive, .events = POLLIN};
  }
  int changed = poll(p, (nfds_t)n, 100); /* a signal may have come just before */
  for (int k = 0; k < n && changed > 0; k++)
    if (p[k].revents) end_job(j, &j->all[which[k]]);
  free(p);
  free(which);
  return !cli_asked(0);
}

static bool run_all(struct jobs *j, int at_once) {
  bool going_on = true;
  while (going_on && (j->begun < j->count || j->running)) {
    while (j->begun < j->count && j->running < at_once)
      if (!start_job(j, j->begun++)) return false;
    going_on = wait_for_one(j);
  }
  for (int i = 0; i < j->begun; i++) {
    struct test_job *job = &j->all[i];
    if (!job->process) continue;
    kill(job->process, SIGKILL);
    end_job(j, job);
  }
  return going_on;
}

/* ---- which files ---- */

static bool add_path(struct jobs *j, const char *path) {
  if (j->count == MAX_FILES) return false;
  char **more = (j->count & (j->count - 1))
                    ? j->paths
                    : realloc(j->paths, (size_t)(j->count ? 2 * j->count : 1) * sizeof *more);
  if (!more) return false;
  j->paths = more;
  j->paths[j->count] = strdup(path);
  return j->paths[j->count++] != NULL;
}

static bool is_test_name(const char *name) {
  static const char *const ends[] = {".dsl", ".dg", ".test"};
  size_t len = strlen(name);
  for (int i = 0; i < 3; i++)
    if (len > strlen(ends[i]) && strcmp(name + len - strlen(ends[i]), ends[i]) == 0) return true;
  return false;
}

static int by_name(const struct dirent **a, const struct dirent **b) {
  return strcmp((*a)->d_name, (*b)->d_name);
}

/* The files of a folder and below, but for what is hidden, folders `inputs`, and links to folders. */
static bool add_folder(struct jobs *j, const char *path, int depth) {
  struct dirent **found;
  int n = depth < MAX_DEPTH ? scandir(path, &found, NULL, by_name) : -1;
  bool added = n >= 0;
  for (int i = 0; i < n; i++) {
    const char *name = found[i]->d_name;
    char below[PATH_MAX];
    struct stat st;
    bool fits = snprintf(below, sizeof below, "%s%s%s", path, path[strlen(path) - 1] == '/' ? "" : "/",
                         name) < (int)sizeof below;
    bool seen = added && fits && *name != '.' && lstat(below, &st) == 0;
    if (seen && S_ISDIR(st.st_mode) && strcmp(name, "inputs") != 0) added = add_folder(j, below, depth + 1);
    if (seen && !S_ISDIR(st.st_mode) && is_test_name(name) && (!j->c->filter || strstr(below, j->c->filter)))
      added = add_path(j, below);
    free(found[i]);
  }
  if (n >= 0) free(found);
  return added;
}

static int collect(struct jobs *j) {
  for (int i = 0; i < j->c->nwords; i++) {
    const char *path = j->c->words[i];
    struct stat st;
    bool there = stat(path, &st) == 0;
    if (there && (S_ISDIR(st.st_mode) ? add_folder(j, path, 0) : add_path(j, path))) continue;
    fprintf(stderr, "dgc test: error: cannot read %s: %s\n", path, strerror(errno));
    return DGC_INPUT;
  }
  j->all = calloc((size_t)j->count + 1, sizeof *j->all);
  for (int i = 0; j->all && i < j->count; i++) j->all[i].path = j->paths[i];
  return j->all ? DGC_OK : DGC_RUNTIME;
}

/* ---- what is told ---- */

static const char *const end_names[] = {
    "passed", "failed", "skipped", "failed as expected", "passed unexpectedly", "updated", "nothing to test"};

/* A file that was named has to have something to test; of a folder, some are tested. */
static bool is_good(const struct jobs *j, const struct test_job *job) {
  if (job->end == DGC_TEST_NOTHING_TO_TEST)
    for (int i = 0; i < j->c->nwords; i++)
      if (job->path != j->c->words[i] && strcmp(job->path, j->c->words[i]) == 0) return false;
  return job->end != DGC_TEST_FAILED && job->end != DGC_TEST_XPASSED;
}

static void print_results(const struct jobs *j, const int *counts) {
  for (int i = 0; i < j->count; i++) {
    const struct test_job *job = &j->all[i];
    bool good = is_good(j, job);
    if (good && (job->end != DGC_TEST_UPDATED && (j->c->quiet || job->end != DGC_TEST_SKIPPED))) continue;
    printf("%s: %s", job->path,
           good || job->end == DGC_TEST_XPASSED ? end_names[job->end]
           : job->end == DGC_TEST_FAILED        ? "FAILED"
                                                : "nothing to test");
    bool several = strchr(job->text, '\n') != NULL;
    printf("%s%s%s", *job->text ? several ? "\n" : ": " : "", job->text, several ? "" : "\n");
  }
  const char *before = "";
  for (int e = 0; e <= DGC_TEST_UPDATED; e++) {
    if (!counts[e] && e > DGC_TEST_FAILED) continue;
    printf("%s%d %s", before, counts[e], end_names[e]);
    before = ", ";
  }
  putchar('\n');
}

static void print_json(const struct jobs *j, bool good) {
  printf("{\"ok\":%s,\"tests\":[", good ? "true" : "false");
  const char *before = "";
  for (int i = 0; i < j->count; i++) {
    const struct test_job *job = &j->all[i];
    if (job->end == DGC_TEST_NOTHING_TO_TEST && is_good(j, job)) continue;
    printf("%s{\"file\":", before);
    cli_json_string(stdout, job->path);
    printf(",\"end\":\"%s\",\"seconds\":", end_names[job->end]);
    cli_json_number(stdout, job->seconds);
    fputs(",\"text\":", stdout);
    cli_json_string(stdout, job->text);
    putchar('}');
    before = ",";
  }
  puts("]}");
}

/* Characters that XML has no way to write become dots. */
static void put_xml(FILE *f, const char *text) {
  for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
    const char *name = *p == '<'    ? "&lt;"
                       : *p == '>'  ? "&gt;"
                       : *p == '&'  ? "&amp;"
                       : *p == '"'  ? "&quot;"
                       : *p == '\n' ? "&#10;"
                                    : NULL;
    if (name)
      fputs(name, f);
    else
      fputc((*p < 0x20 && *p != '\t') || *p == 0x7f ? '.' : *p, f);
  }
}

/* What continuous integration reads. */
static char *junit_of(const struct jobs *j, const int *counts) {
  char *text = NULL;
  size_t size;
  FILE *f = open_memstream(&text, &size);
  if (!f) return NULL;
  double seconds = 0;
  int failed = 0, tests = 0;
  for (int i = 0; i < j->count; i++) {
    seconds += j->all[i].seconds;
    failed += !is_good(j, &j->all[i]);
    tests += j->all[i].end != DGC_TEST_NOTHING_TO_TEST || !is_good(j, &j->all[i]);
  }
  fprintf(f,
          "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite name=\"dgc\" tests=\"%d\" "
          "failures=\"%d\" "
          "errors=\"0\" skipped=\"%d\" time=\"%.3f\">\n",
          tests, failed, counts[DGC_TEST_SKIPPED] + counts[DGC_TEST_XFAILED], seconds);
  for (int i = 0; i < j->count; i++) {
    const struct test_job *job = &j->all[i];
    const char *slash = strrchr(job->path, '/');
    bool good = is_good(j, job), skipped = job->end == DGC_TEST_SKIPPED || job->end == DGC_TEST_XFAILED;
    if (job->end == DGC_TEST_NOTHING_TO_TEST && good) continue;
    fputs("<testcase classname=\"", f);
    char *folder = strndup(job->path, slash ? (size_t)(slash - job->path) : 0);
    put_xml(f, folder && *folder ? folder : ".");
    free(folder);
    fputs("\" name=\"", f);
    put_xml(f, slash ? slash + 1 : job->path);
    fprintf(f, "\" time=\"%.3f\">", job->seconds);
    if (!good || skipped) {
      fprintf(f, "<%s message=\"%s\">", good ? "skipped" : "failure", end_names[job->end]);
      put_xml(f, job->text);
      fputs(good ? "</skipped>" : "</failure>", f);
    }
    fputs("</testcase>\n", f);
  }
  fputs("</testsuite>\n</testsuites>\n", f);
  if (fclose(f) == 0) return text;
  free(text);
  return NULL;
}

static int tell(struct jobs *j) {
  j->c->told = true;
  int counts[DGC_TEST_NOTHING_TO_TEST + 1] = {0}, code = DGC_OK, tested = 0;
  for (int i = 0; i < j->count; i++) {
    counts[j->all[i].end]++;
    tested += j->all[i].end != DGC_TEST_NOTHING_TO_TEST;
    if (!is_good(j, &j->all[i])) code = DGC_MISMATCH;
  }
  if (j->c->json)
    print_json(j, !code);
  else
    print_results(j, counts);
  if (!tested && !code) {
    fputs(
        "dgc test: error: there is nothing to test: no file has a line RUN, EXPECT or an expected message\n",
        stderr);
    code = DGC_INPUT;
  }
  char *junit = j->c->junit ? junit_of(j, counts) : NULL;
  int written = junit ? cli_status(j->c, dgc_write_file(j->c->session, j->c->junit, junit)) : DGC_OK;
  free(junit);
  return code ? code : written;
}

/* ---- the verb ---- */

/* --define NAME=PATH, as paths from the root without links. */
static int define(struct jobs *j) {
  static const char option[] = "--define=";
  j->defines = calloc((size_t)j->c->ngiven + 1, sizeof *j->defines);
  for (int i = 0; j->defines && i < j->c->ngiven; i++) {
    const char *given = j->c->given[i], *equals;
    if (strncmp(given, option, sizeof option - 1) != 0) continue;
    given += sizeof option - 1;
    equals = strchr(given, '=');
    char *real = equals && equals > given ? realpath(equals + 1, NULL) : NULL;
    if (!real)
      return cli_usage(j->c, "--define NAME=PATH: '%s': %s", given, equals ? strerror(errno) : "it has no =");
    size_t size = (size_t)(equals - given) + strlen(real) + 2;
    j->defines[j->ndefines] = malloc(size);
    if (j->defines[j->ndefines])
      snprintf(j->defines[j->ndefines++], size, "%.*s=%s", (int)(equals - given), given, real);
    free(real);
  }
  return DGC_OK;
}

static void forget(struct jobs *j) {
  for (int i = 0; i < j->count; i++) {
    if (j->all) free(j->all[i].text);
    free(j->paths[i]);
  }
  for (int i = 0; i < j->ndefines; i++) free(j->defines[i]);
  free(j->defines);
  free(j->paths);
  free(j->all);
}

static int test(struct jobs *j, int at_once) {
  const char *folder = getenv("TMPDIR");
  int code = define(j);
  if (!code) code = collect(j);
  if (code) return code;
  if (snprintf(j->scratch, sizeof j->scratch, "%s/dgc-test-XXXXXX",
               folder && *folder == '/' && strlen(folder) < 40 ? folder : "/tmp") >= (int)sizeof j->scratch ||
      !mkdtemp(j->scratch)) {
    fprintf(stderr, "dgc test: error: cannot make %s: %s\n", j->scratch, strerror(errno));
    return DGC_RUNTIME;
  }
  setenv("NO_COLOR", "1", 1);
  unsetenv("TF_CONFIG");
  cli_testing(true);
  bool ended = run_all(j, at_once);
  cli_testing(false);
  remove_tree(j->scratch, 0);
  if (!ended) return cli_asked(0) ? DGC_STOPPED : DGC_RUNTIME;
  return tell(j);
}

int cli_test(struct cli *c) {
  struct jobs j = {.c = c};
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  int at_once = cli_number_of(c, "jobs", c->jobs, cores > 0 && cores < CLI_MOST_JOBS ? (int)cores : 1);
  if (at_once < 0 || cli_number_of(c, "seconds", c->seconds, 60) < 0) return DGC_USAGE;
  int code = test(&j, at_once);
  forget(&j);
  return code;
}
