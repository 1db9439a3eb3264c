/* SPDX-License-Identifier: Apache-2.0 */
/* dgc launch: starts the processes of a cluster through mpirun, and starts them anew from the last checkpoint when one
 * has died or got stuck. What the user did wrong, a loss that is no number and a signal to end are no deaths. */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

/* The value of an option of the command, as "--checkpoint FILE" or "--checkpoint=FILE"; NULL: it is not there. */
static const char *option_of(char *const *command, const char *name) {
  size_t len = strlen(name);
  for (int i = 0; command[i]; i++) {
    if (strncmp(command[i], name, len) != 0) continue;
    if (command[i][len] == '=') return command[i] + len + 1;
    if (!command[i][len]) return command[i + 1] ? command[i + 1] : "";
  }
  return NULL;
}

/* The path of this program, as it may have been found on the path. */
static const char *own_path(char *room, size_t size) {
  ssize_t len = readlink("/proc/self/exe", room, size - 1);
  room[len > 0 ? len : 0] = 0;
  return len > 0 ? room : "dgc";
}

/* mpirun -n N [--hostfile FILE] dgc VERB ... [--json] [--resume=CHECKPOINT]; NULL without memory. */
static char **line_of(const struct cli *c, int processes, const char *checkpoint) {
  static char count[16], self[4096], from[4096 + 16];
  int given = 0, n = 0;
  while (c->rest[given]) given++;
  char **line = malloc(sizeof *line * (size_t)(given + 9));
  if (!line) return NULL;
  snprintf(count, sizeof count, "%d", processes);
  line[n++] = (char *)"mpirun";
  line[n++] = (char *)"-n";
  line[n++] = count;
  if (c->hosts) {
    line[n++] = (char *)"--hostfile";
    line[n++] = (char *)c->hosts;
  }
  own_path(self, sizeof self);
  line[n++] = self;
  for (int i = 0; i < given; i++) line[n++] = c->rest[i];
  if (c->json) line[n++] = (char *)"--json";
  if (checkpoint) { /* the last one holds */
    snprintf(from, sizeof from, "--resume=%s", checkpoint);
    line[n++] = from;
  }
  line[n] = NULL;
  return line;
}

/* mpirun is not in the terminal's foreground: it reads nothing, and Ctrl-C is for this process. */
static void become_mpirun(char **line) {
  setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 0); /* more tasks than cores are slow, not wrong */
  setenv("OMPI_MCA_oob_tcp_keepalive_time", "2",
         0); /* seconds, until mpirun asks a machine whether it is there, */
  setenv("OMPI_MCA_oob_tcp_keepalive_intvl", "2",
         0); /* and asks again; otherwise it waits for ever for one that has */
  setenv("OMPI_MCA_oob_tcp_keepalive_probes", "3", 0); /* vanished */
  int nothing = open("/dev/null", O_RDONLY);
  if (nothing >= 0) dup2(nothing, STDIN_FILENO);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  execvp(line[0], line);
  fprintf(stderr, "dgc launch: error: cannot start mpirun: %s\n", strerror(errno));
  fputs("dgc launch: help: install MPI (Debian: openmpi-bin)\n", stderr);
  _exit(127);
}

/* The exit code, as a shell has it; -1: it could not be started. */
static int start(char **line) {
  pid_t child = cli_fork();
  if (child == 0) become_mpirun(line);
  return child < 0 ? -1 : cli_wait();
}

/* What another start may mend: something of the machine failed, or a process died of a signal that asks for nothing. */
static bool may_help(int code) { return !cli_asked(code) && (code == DGC_RUNTIME || code > 128); }

static bool same_file(const struct stat *a, const struct stat *b) {
  return a->st_ino == b->st_ino && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
         a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* What the processes write must not be the file of --hosts either; the rest they find out themselves. */
static int use_files(struct cli *c) {
  const struct verb *v = verbs;
  int count = 0;
  while (v->name && strcmp(v->name, c->rest[0]) != 0) v++;
  if (!c->hosts || !v->name) return DGC_OK;
  struct cli one = {.verb = v, .session = dgc_create(), .quiet = true, .json = c->json};
  if (!one.session) return DGC_RUNTIME;
  while (c->rest[count]) count++;
  int code = cli_parse(&one, count - 1, c->rest + 1);
  if (!code) code = cli_status(&one, dgc_uses(one.session, "--hosts", c->hosts, DGC_READS));
  if (!code && !one.help) code = cli_use_files(&one);
  cli_take_diagnostics(c, &one);
  dgc_destroy(one.session);
  cli_forget(&one);
  return code;
}

/* Open MPI's mpirun, whose own words are many. */
static void explain_root(int code) {
  if (code != 1 || geteuid() != 0 || getenv("OMPI_ALLOW_RUN_AS_ROOT")) return;
  fputs("dgc launch: help: to root, as in a container, Open MPI starts nothing without "
        "OMPI_ALLOW_RUN_AS_ROOT=1 and "
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 in the environment\n",
        stderr);
}

int cli_launch(struct cli *c) {
  int n = cli_number_of(c, "processes", c->processes, 0);
  int restarts = cli_number_of(c, "restarts", c->restarts, 0);
  if (n < 0 || restarts < 0) return DGC_USAGE;
  if (!n) return cli_usage(c, "--processes N says how many processes to start");
  int least = cli_number_of(c, "min-tasks", c->min_tasks, n);
  if (least < 0) return DGC_USAGE;
  if (least > n) return cli_usage(c, "--min-tasks %d is more than the %d processes", least, n);
  if (!c->rest || !c->rest[0])
    return cli_usage(c, "what to start is missing: dgc launch -n %d -- train MODEL ...", n);
  const char *checkpoint = option_of(c->rest, "--checkpoint");
  if (restarts && !checkpoint)
    return cli_usage(c, "--restarts goes on from a checkpoint: give one, as -- train --checkpoint FILE");
  if (least < n && option_of(c->rest, "--cluster"))
    return cli_usage(c, "--min-tasks starts fewer tasks, and --cluster says how many there are");
  int code = use_files(c);
  if (code) return code;
  struct stat before = {0}, now;
  bool there = checkpoint && stat(checkpoint, &before) == 0, resumes = false;
  for (int tasks = n;; restarts--) {
    char **line = line_of(c, tasks, resumes ? checkpoint : NULL);
    code = line ? start(line) : -1;
    free(line);
    if (code < 0) {
      fprintf(stderr, "dgc launch: error: cannot start mpirun: %s\n", strerror(errno));
      return DGC_RUNTIME;
    }
    if (code == 127) cli_keep_usage(c, "cannot start mpirun: install MPI (Debian: openmpi-bin)");
    explain_root(code);
    c->told = code != 127; /* by the processes, of which one has printed its result */
    if (!may_help(code) || restarts == 0) return code;
    /* A checkpoint of before this run is none of this run. */
    resumes = checkpoint && stat(checkpoint, &now) == 0 && (!there || !same_file(&before, &now));
    if (tasks > least) tasks--;
    fprintf(stderr, "dgc launch: note: a process ended with %d; %d start %s, %d more restart%s may follow\n",
            code, tasks, resumes ? "from the last checkpoint" : "anew, as nothing has been saved",
            restarts - 1, restarts == 2 ? "" : "s");
  }
}
