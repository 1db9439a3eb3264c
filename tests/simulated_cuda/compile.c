/* The host's C compiler as the back end of simulated NVRTC and of the driver's PTX compiler. */
#include "tests/simulated_cuda/common.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static char *read_file(const char *path, size_t *bytes) {
  FILE *f = fopen(path, "rb");
  if (!f) return NULL;
  fseek(f, 0, SEEK_END);
  long size = ftell(f);
  rewind(f);
  char *data = malloc((size_t)size + 1);
  *bytes = fread(data, 1, (size_t)size, f);
  data[*bytes] = 0;
  fclose(f);
  return data;
}

static bool write_file(const char *path, const char *text) {
  FILE *f = fopen(path, "wb");
  if (!f) return false;
  bool ok = fputs(text, f) >= 0;
  return fclose(f) == 0 && ok;
}

static bool runs(char *const *argv, const char *log) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, log, O_WRONLY | O_CREAT | O_APPEND, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t pid;
  int error = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ), status = 1;
  posix_spawn_file_actions_destroy(&actions);
  if (error) return false;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* The compilers to try, the first that exists: $CC, split at its spaces, then the usual names. Kernels run for a
 * moment, and there are many: so they are not optimised, but where operations are to be contracted. */
static bool compiles(char *folder, bool contract, const char *source, const char *object, const char *log) {
  char words[512], *argv[64];
  snprintf(words, sizeof words, "%s", getenv("CC") && *getenv("CC") ? getenv("CC") : "");
  int leading = 0;
  for (char *rest = words, *word; leading < 16 && (word = strtok_r(leading ? NULL : words, " ", &rest));)
    argv[leading++] = word;
  const char *const names[] = {leading ? argv[0] : "cc", "gcc", "clang", "clang-19"};
  for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
    int n = i == 0 && leading ? leading : 1;
    argv[0] = (char *)names[i];
    static const char *const options[] = {"-std=gnu17",
                                          "-w",
                                          "-shared",
                                          "-fPIC",
                                          "-fno-math-errno",
                                          "-lm",
                                          "-fno-strict-aliasing",
                                          "-fwrapv",
                                          "-fno-tree-vectorize"};
    argv[n++] = (char *)source;
    argv[n++] = (char *)(contract ? "-O2" : "-O0");
    for (unsigned k = 0; k < sizeof options / sizeof *options; k++) argv[n++] = (char *)options[k];
#if defined(__x86_64__)
    if (__builtin_cpu_supports("fma")) argv[n++] = (char *)"-mfma";
#endif
    argv[n++] = (char *)(contract ? "-ffp-contract=fast" : "-ffp-contract=off");
    argv[n++] = (char *)"-o";
    argv[n++] = (char *)object;
    argv[n] = NULL;
    unlink(log);
    if (runs(argv, log)) return true;
    if (access(log, F_OK) == 0) {
      size_t bytes = 0;
      char *text = read_file(log, &bytes);
      free(text);
      if (bytes) return false; /* it exists and said why not */
    }
  }
  (void)folder;
  return false;
}

void *sim_compile(const char *text, bool contract, size_t *bytes, char **log) {
  const char *tmp = getenv("TMPDIR");
  char folder[256], source[300], object[300], messages[300];
  snprintf(folder, sizeof folder, "%s/simulated_cuda.XXXXXX", tmp && *tmp ? tmp : "/tmp");
  *log = NULL;
  if (!mkdtemp(folder)) {
    *log = strdup("no temporary folder");
    return NULL;
  }
  snprintf(source, sizeof source, "%s/kernels.c", folder);
  snprintf(object, sizeof object, "%s/kernels.so", folder);
  snprintf(messages, sizeof messages, "%s/log", folder);
  void *data = NULL;
  bool ok = write_file(source, text) && compiles(folder, contract, source, object, messages);
  size_t ignored;
  *log = read_file(messages, &ignored);
  if (ok) data = read_file(object, bytes);
  if (!*log || (!ok && !**log)) {
    free(*log);
    *log = strdup(ok ? "" : "no C compiler found: set CC");
  }
  unlink(source);
  unlink(object);
  unlink(messages);
  rmdir(folder);
  return data;
}
