/* SPDX-License-Identifier: Apache-2.0 */
/* The host's C compiler as the back end of simulated NVRTC and of the driver's PTX compiler. */
#include "tests/simulated_cuda/common.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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
 * moment, and there are many: so they are not optimised, but where operations are to be contracted. Those that are
 * written by hand are few, and the same in all plans, but where sizes are part of their text. Without optimisation
 * tcc takes a twentieth of clang's time, and clang half of gcc's; what tcc does not take as it is, others compile. */
static bool is_by_hand(const char *text) {
  return !strstr(text, " k0_"); /* with which begins what dgc makes */
}

static const char *level_of(const char *text, bool contract) {
  bool of_a_size = strstr(text, " conv_few(") || strstr(text, " window_fixed(");
  if (contract) return "-O2";
  return is_by_hand(text) && !of_a_size ? "-O1" : "-O0";
}

static bool compiles_quickly(const char *source, const char *object, const char *log) {
  const char *const argv[] = {"tcc", "-std=gnu17", "-Werror", "-fPIC", "-c", source, "-o", object, NULL};
  return runs((char *const *)argv, log);
}

/* `link`: to a library, else to what ld makes one of. A compiler that links starts itself twice, which takes as long as
 * most kernels do. `quickly`: by tcc, which does not look whether accesses are aligned; dgc's own are. */
static bool compiles(const char *level, bool contract, bool link, bool quickly, const char *source,
                     const char *object, const char *log) {
  char words[512], *argv[64];
  snprintf(words, sizeof words, "%s", getenv("CC") && *getenv("CC") ? getenv("CC") : "");
  int leading = 0;
  for (char *rest = words, *word; leading < 16 && (word = strtok_r(leading ? NULL : words, " ", &rest));)
    argv[leading++] = word;
  if (!leading && !link && quickly && strcmp(level, "-O0") == 0 && compiles_quickly(source, object, log))
    return true;
  const char *const names[] = {leading ? argv[0] : "clang-19", "clang", "cc", "gcc"};
  for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
    int n = i == 0 && leading ? leading : 1;
    argv[0] = (char *)names[i];
    static const char *const options[] = {"-std=gnu17",
                                          "-w",
                                          "-fPIC",
                                          "-fno-math-errno",
                                          "-fno-strict-aliasing",
                                          "-fwrapv",
                                          "-fno-tree-vectorize",
                                          "-fsanitize=alignment",
                                          "-fsanitize-undefined-trap-on-error"};
    argv[n++] = (char *)source;
    argv[n++] = (char *)(link ? "-shared" : "-c");
    argv[n++] = (char *)level;
    for (unsigned k = 0; k < sizeof options / sizeof *options; k++) argv[n++] = (char *)options[k];
#if defined(__x86_64__)
    if (__builtin_cpu_supports("fma")) argv[n++] = (char *)"-mfma";
#endif
    argv[n++] = (char *)(contract ? "-ffp-contract=fast" : "-ffp-contract=off");
    argv[n++] = (char *)"-o";
    argv[n++] = (char *)object;
    if (link) argv[n++] = (char *)"-lm";
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
  return false;
}

/* Without libraries, which take ld five times as long as the rest: the driver has loaded libm, the program libc. */
static bool links(const char *unlinked, const char *object, const char *log) {
  char *argv[] = {(char *)"ld", (char *)"-shared", (char *)"-o", (char *)object, (char *)unlinked, NULL};
  if (runs(argv, log)) return true;
  unlink(log);
  return false;
}

static void *compile_anew(const char *text, bool contract, size_t *bytes, char **log) {
  const char *tmp = getenv("TMPDIR");
  char folder[256], source[300], unlinked[300], object[300], messages[300];
  snprintf(folder, sizeof folder, "%s/simulated_cuda.XXXXXX", tmp && *tmp ? tmp : "/tmp");
  *log = NULL;
  if (!mkdtemp(folder)) {
    *log = strdup("no temporary folder");
    return NULL;
  }
  snprintf(source, sizeof source, "%s/kernels.c", folder);
  snprintf(unlinked, sizeof unlinked, "%s/kernels.o", folder);
  snprintf(object, sizeof object, "%s/kernels.so", folder);
  snprintf(messages, sizeof messages, "%s/log", folder);
  void *data = NULL;
  const char *level = level_of(text, contract);
  bool ok =
      write_file(source, text) &&
      compiles(level, contract, false, !is_by_hand(text), source, unlinked, messages) &&
      (links(unlinked, object, messages) || compiles(level, contract, true, false, source, object, messages));
  size_t ignored;
  *log = read_file(messages, &ignored);
  if (ok) data = read_file(object, bytes);
  if (!*log || (!ok && !**log)) {
    free(*log);
    *log = strdup(ok ? "" : "no C compiler found: set CC");
  }
  unlink(source);
  unlink(unlinked);
  unlink(object);
  unlink(messages);
  rmdir(folder);
  return data;
}

/* --- what has been compiled already: in the build folder, or where DGC_SIMULATED_CACHE says; "": nowhere ---
 *
 * A file holds struct kept, what was compiled, and the object. Its name is a digest of what was compiled. The
 * folder is of use as long as the machine's compilers stay the same. */

struct kept {
  uint64_t key_bytes, object_bytes;
};

static char *key_of(const char *text, bool contract, size_t *bytes) {
  char *key;
  const char *cc = getenv("CC");
  int n = asprintf(&key, "%s\n%s aligned%s\n%s", cc ? cc : "", level_of(text, contract),
                   contract ? " contract" : "", text);
  *bytes = n < 0 ? 0 : (size_t)n;
  return n < 0 ? NULL : key;
}

static void name_file(char *path, size_t size, const char *folder, const char *key, size_t bytes) {
  uint64_t digest[2] = {UINT64_C(0xcbf29ce484222325), UINT64_C(0x84222325cbf29ce4)};
  for (size_t i = 0; i < bytes; i++)
    for (int k = 0; k < 2; k++) digest[k] = (digest[k] ^ (unsigned char)key[i]) * UINT64_C(0x100000001b3);
  snprintf(path, size, "%s/%016" PRIx64 "%016" PRIx64, folder, digest[0], digest[1]);
}

static void *take_kept(const char *path, const char *key, size_t key_bytes, size_t *bytes) {
  size_t size = 0;
  char *data = read_file(path, &size);
  struct kept head = {0, 0};
  if (data && size >= sizeof head) memcpy(&head, data, sizeof head);
  bool good = data && head.key_bytes == key_bytes && size == sizeof head + key_bytes + head.object_bytes &&
              head.object_bytes > 0 && memcmp(data + sizeof head, key, key_bytes) == 0;
  if (!good) {
    free(data);
    return NULL;
  }
  *bytes = head.object_bytes;
  memmove(data, data + sizeof head + key_bytes, *bytes);
  return data;
}

/* Whole, or not at all: others read at the same time. */
static void keep(const char *folder, const char *path, const char *key, size_t key_bytes, const void *object,
                 size_t bytes) {
  static unsigned serial;
  char other[600];
  snprintf(other, sizeof other, "%s.%ld.%u", path, (long)getpid(), serial++);
  FILE *f = fopen(other, "wbx");
  if (!f && mkdir(folder, 0777) == 0) f = fopen(other, "wbx");
  if (!f) return;
  struct kept head = {key_bytes, bytes};
  bool ok = fwrite(&head, sizeof head, 1, f) == 1 && fwrite(key, key_bytes, 1, f) == 1 &&
            fwrite(object, bytes, 1, f) == 1;
  if (fclose(f) != 0 || !ok || rename(other, path) != 0) unlink(other);
}

void *sim_compile(const char *text, bool contract, size_t *bytes, char **log) {
  const char *folder = getenv("DGC_SIMULATED_CACHE");
  size_t key_bytes;
  if (!folder) folder = SIMULATED_CACHE;
  char *key = *folder ? key_of(text, contract, &key_bytes) : NULL;
  if (!key) return compile_anew(text, contract, bytes, log);
  char path[512];
  name_file(path, sizeof path, folder, key, key_bytes);
  void *object = take_kept(path, key, key_bytes, bytes);
  if (object)
    *log = strdup("");
  else if ((object = compile_anew(text, contract, bytes, log)) != NULL && !**log)
    keep(folder, path, key, key_bytes, object, *bytes);
  free(key);
  return object;
}
