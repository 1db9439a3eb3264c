/* SPDX-License-Identifier: Apache-2.0 */
/* dgc doctor: what this machine has of what dgc can use, what it lacks, and what to do. */
#include "cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* One thing that was looked at. */
enum finding { GOOD, LACKS, FAILS };

struct doctor {
  struct cli *c;
  int told, failed;
};

static void tell(struct doctor *d, enum finding how, const char *what, const char *says, const char *help) {
  static const char *const marks[] = {"ok", "not there", "FAILED"};
  d->failed += how == FAILS;
  if (!d->c->json) {
    printf("%-12s %-10s %s\n", what, marks[how], says);
    if (help && how != GOOD) printf("%-12s %-10s %s\n", "", "", help);
    return;
  }
  printf("%s{\"what\":", d->told++ ? "," : "{\"found\":[");
  cli_json_string(stdout, what);
  printf(",\"state\":\"%s\",\"says\":", marks[how]);
  cli_json_string(stdout, says);
  if (help && how != GOOD) {
    fputs(",\"help\":", stdout);
    cli_json_string(stdout, help);
  }
  putchar('}');
}

/* A model of one line, run on one device by the default backend: the compiler of kernels, its libraries, threads. */
static void try_kernels(struct doctor *d) {
  static const char text[] =
      "model m() { input x : f32[B, 64]\n var y : f32[64, 64] = zeros()\n predict p = exp(x @ y) }";
  static float x[2 * 64], p[2 * 64];
  struct dgc_session *s = dgc_create();
  const char *name, *help;
  char says[600];
  if (!s) return;
  bool runs = !dgc_load_text(s, "doctor", text, sizeof text - 1) &&
              !dgc_run(s, "predict", 2, (const void *const[]){x}, (void *const[]){p}) && p[127] == 1;
  dgc_backend(0, &name, &help);
  snprintf(says, sizeof says, "%s: %s", name, runs ? help : dgc_message(s));
  says[strcspn(says, "\n")] = 0;
  tell(d, runs ? GOOD : FAILS, "kernels", says,
       "LLVM 19 and oneDNN compile them (Debian: llvm-19, libdnnl3); DGC_LLVM=FILE names another libLLVM");
  dgc_destroy(s);
}

/* As runtime/cache.c chooses it: used if it belongs to this user and nobody else may write to it. */
static void look_at_cache(struct doctor *d) {
  const char *off = getenv("DGC_CACHE"), *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  char path[4096], says[4200];
  struct stat st;
  static const char help[] =
      "each start compiles its kernels anew; set HOME or XDG_CACHE_HOME to a folder of your own";
  if (off && strcmp(off, "off") == 0) {
    tell(d, LACKS, "cache", "DGC_CACHE=off: kernels are compiled anew at each start", "unset DGC_CACHE");
    return;
  }
  if (base && *base == '/')
    snprintf(path, sizeof path, "%s/dgc", base);
  else if (home && *home)
    snprintf(path, sizeof path, "%s/.cache/dgc", home);
  else {
    tell(d, LACKS, "cache", "neither HOME nor XDG_CACHE_HOME says where", help);
    return;
  }
  bool there = lstat(path, &st) == 0;
  bool own = there && S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 022) &&
             access(path, W_OK) == 0;
  snprintf(says, sizeof says, "%s%s", path,
           !there ? ": it is not there"
           : own  ? ""
                  : ": it is not this user's alone, so it is not used");
  tell(d, own ? GOOD : LACKS, "cache", says,
       there && !own ? "chmod go-w it, or remove it, if it should be yours" : help);
}

static bool on_path(const char *program, char *found, size_t size) {
  const char *path = getenv("PATH");
  for (const char *p = path ? path : ""; *p; p += *p == ':') {
    size_t len = strcspn(p, ":");
    if (snprintf(found, size, "%.*s/%s", (int)len, p, program) < (int)size && access(found, X_OK) == 0)
      return true;
    p += len;
  }
  return false;
}

static void look_at_mpi(struct doctor *d) {
  char found[4096], says[5000];
  const char *module = NULL, *why = NULL;
  bool launcher = on_path("mpirun", found, sizeof found);
  if (dgc_mpi(d->c->session, &module, &why)) why = dgc_message(d->c->session);
  const char *help =
      "clusters of processes (dgc launch) want it: Debian: openmpi-bin, or mpich; all else works without";
  if (!launcher) {
    tell(d, LACKS, "MPI", "no mpirun on the path", help);
    return;
  }
  snprintf(says, sizeof says, "%s%s%.400s", found,
           module ? ", by " : ", and nothing to reach it by: ", module ? module : why);
  if (!module)
    help = "a build of dgc has dgc-mpi.so where MPI's headers were (Debian: libopenmpi-dev), which loads the "
           "library of that mpirun";
  tell(d, module ? GOOD : LACKS, "MPI", says, help);
}

static void look_at_gpus(struct doctor *d) {
  const struct dgc_gpu *gpus;
  int count = 0;
  const char *why = NULL;
  char says[400];
  if (dgc_gpus(d->c->session, &gpus, &count, &why)) why = dgc_message(d->c->session);
  if (count)
    snprintf(says, sizeof says, "%d: %s%s%s", count, gpus[0].name, count > 1 ? " and others" : "",
             gpus[0].simulated ? ", simulated" : "");
  else
    snprintf(says, sizeof says, "%s", why ? why : "the driver knows of none");
  says[strcspn(says, "\n")] = 0;
  tell(d, count ? GOOD : LACKS, "GPU", says,
       "NVIDIA's driver, NVRTC and cuBLAS; DGC_CUDA_PATH names their folder");
}

/* Where large arrays lie on pages of 2 MB, products are faster. */
static void look_at_pages(struct doctor *d) {
  char text[200] = "";
  FILE *f = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "r");
  if (f && !fgets(text, sizeof text, f)) *text = 0;
  if (f) fclose(f);
  text[strcspn(text, "\n")] = 0;
  bool good = strstr(text, "[always]") || strstr(text, "[madvise]");
  tell(d, good ? GOOD : LACKS, "huge pages", *text ? text : "the kernel does not say",
       "as root: echo madvise >/sys/kernel/mm/transparent_hugepage/enabled");
}

int cli_doctor(struct cli *c) {
  struct doctor d = {.c = c};
  struct dgc_machine m = {.size = sizeof m};
  char says[400];
  c->told = true;
  int code = cli_status(c, dgc_machine(c->session, &m));
  if (code) return code;
  snprintf(says, sizeof says, "dgc %s; %s, %d core%s, %s, %.1f GiB", dgc_version(), m.cpu, m.cores,
           m.cores == 1 ? "" : "s", m.vectors, (double)m.memory / (1 << 30));
  tell(&d, GOOD, "machine", says, NULL);
  try_kernels(&d);
  look_at_cache(&d);
  look_at_gpus(&d);
  look_at_mpi(&d);
  look_at_pages(&d);
  if (c->json) printf("],\"ok\":%s}\n", d.failed ? "false" : "true");
  return d.failed ? DGC_RUNTIME : DGC_OK;
}
