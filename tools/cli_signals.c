/* SPDX-License-Identifier: Apache-2.0 */
/* Signals that ask the tool to end. Whatever it does may be ended at any time, as files appear whole or not at all; but
 * a training has steps to lose: it is asked to end behind the present one, and to save. A second signal ends it at
 * once. In the end the tool dies of the signal, which is what a shell wants to know: it shows 128 plus its number.
 * Processes that were launched are asked through their launcher, which would leave them a second if it were asked to
 * end itself, but hands on SIGUSR1. */
#include "cli.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Before a call that does not return, the address sanitizer looks at the stack, and asks for memory to do so: where the
 * signal came in its own search for leaks it would wait for ever. */
#define PLAIN __attribute__((no_sanitize("address")))

static const struct {
  int number;
  const char *name;
} signals[] = {
    {SIGINT, "SIGINT"}, {SIGTERM, "SIGTERM"}, {SIGHUP, "SIGHUP"}, {SIGXCPU, "SIGXCPU"}, {SIGUSR1, "SIGUSR1"}};
enum { NSIGNALS = sizeof signals / sizeof *signals };

/* A signal that comes twice within this time is one request: timeout(1), say, sends it to the process and then to its
 * group. */
enum { TWICE_NS = 100000000 };

static struct dgc_session *_Atomic training;
static atomic_bool tests;
static atomic_bool evaluates; /* that session, or it has, and waits for the end of the training */
static _Atomic pid_t launcher;
static atomic_int caught;
static atomic_llong caught_at;

static long long now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (long long)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Only what a handler may call. */
static void say(int number, const char *what) {
  char line[160] = "";
  if (isatty(STDERR_FILENO)) strcat(line, "\r\033[K");
  strcat(line, "dgc: ");
  for (int i = 0; i < NSIGNALS; i++)
    if (signals[i].number == number) strcat(line, signals[i].name);
  strcat(line, what);
  ssize_t written = write(STDERR_FILENO, line, strlen(line));
  (void)written;
}

/* The first process of a container does not die of a signal that it sends to itself: it exits. */
PLAIN static _Noreturn void die(int number) {
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, number);
  signal(number, SIG_DFL);
  raise(number);
  sigprocmask(SIG_UNBLOCK, &one, NULL);
  _exit(128 + number);
}

PLAIN static void on_signal(int number) {
  int error = errno, none = 0;
  struct dgc_session *s = training;
  pid_t child = launcher;
  bool ends = s || child || evaluates || tests; /* not at once */
  if (ends && atomic_compare_exchange_strong(&caught, &none, number)) {
    caught_at = now();
    if (s)
      dgc_stop(s);
    else if (child)
      kill(child, SIGUSR1);
    say(number, tests       ? ": tests end; a second signal ends them at once\n"
                : evaluates ? ": evaluation ends; a second signal ends it at once\n"
                            : ": training ends after this step; a second signal ends it at once\n");
  } else if (!ends || now() - caught_at > TWICE_NS) {
    say(number, ends ? ": ended at once\n" : ": ended\n");
    if (!child) die(number);
    kill(child, SIGTERM);
  }
  errno = error;
}

/* Handlers have a stack of their own, as dgc.h wants it of all. */
void cli_catch_signals(void) {
  static char memory[1 << 16];
  const stack_t stack = {.ss_sp = memory, .ss_size = sizeof memory};
  struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART | SA_ONSTACK}, before;
  sigaltstack(&stack, NULL);
  sigemptyset(&action.sa_mask);
  for (int i = 0; i < NSIGNALS; i++) sigaddset(&action.sa_mask, signals[i].number);
  for (int i = 0; i < NSIGNALS; i++) /* what nohup ignores stays ignored */
    if (sigaction(signals[i].number, NULL, &before) == 0 && before.sa_handler == SIG_DFL)
      sigaction(signals[i].number, &action, NULL);
  signal(SIGXFSZ, SIG_IGN); /* a file that gets too large is an error of its write */
}

void cli_training(struct dgc_session *s) { training = s; }

void cli_evaluating(struct dgc_session *s) {
  evaluates = true;
  training = s;
}

void cli_testing(bool runs) { tests = runs; }

void cli_alone(void) {
  for (int i = 0; i < NSIGNALS; i++) signal(signals[i].number, SIG_DFL);
  tests = false;
}

pid_t cli_fork(void) {
  sigset_t ends, before;
  sigemptyset(&ends);
  for (int i = 0; i < NSIGNALS; i++) sigaddset(&ends, signals[i].number);
  sigprocmask(SIG_BLOCK, &ends, &before); /* who asks asks before there is a launcher, or asks it */
  pid_t child = fork();
  if (child > 0) launcher = child;
  for (int i = 0; child == 0 && i < NSIGNALS; i++) signal(signals[i].number, SIG_DFL);
  if (child == 0) setpgid(0, 0); /* or a terminal would ask it too */
  sigprocmask(SIG_SETMASK, &before, NULL);
  return child;
}

int cli_wait(void) {
  int status = 0;
  pid_t ended;
  do ended = waitpid(launcher, &status, 0);
  while (ended < 0 && errno == EINTR);
  launcher = 0;
  if (ended < 0) return -1;
  int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return caught && code == 128 + SIGUSR1 ? DGC_STOPPED : code;
}

bool cli_asked(int code) {
  if (caught) return true;
  for (int i = 0; i < NSIGNALS; i++)
    if (code == 128 + signals[i].number) return true;
  return false;
}

int cli_end(int code) {
  if (caught && (code == DGC_OK || code == DGC_STOPPED)) die(caught);
  return code;
}
