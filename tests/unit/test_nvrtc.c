/* SPDX-License-Identifier: Apache-2.0 */
/* Every kernel of every sample through the real NVRTC, where it is installed; no GPU and no driver are needed.
 * test_nvrtc DGC FOLDER-OF-SAMPLES CACHE: what NVRTC makes of a text is kept in the folder CACHE, or in TEST_CACHE. */
#include "runtime/cuda/library.h"
#include "runtime/cuda/program.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SKIPPED = 77, MACHINE_CUDA = 190 }; /* ELF's number of NVIDIA's processors */

static const char *run(struct arena *a, const char *command, int *status) {
  struct str text = str_make(a);
  char chunk[4096];
  size_t got;
  FILE *f = popen(command, "r");
  if (!f) exit(2);
  while ((got = fread(chunk, 1, sizeof chunk, f)) > 0) str_putn(&text, chunk, got);
  *status = pclose(f);
  return text.data;
}

/* Names of all kernels of the text are in the image, which is code for the right machine. */
static bool is_whole(struct arena *a, const char *text, const struct cuda_image *image) {
  static const char head[] = "extern \"C\" __global__ void ";
  const unsigned char *elf = image->data;
  if (image->size < 64 || memcmp(elf, "\177ELF", 4) != 0 || elf[18] + 256 * elf[19] != MACHINE_CUDA)
    return false;
  for (const char *at = text; (at = strstr(at, head)) != NULL;) {
    at += sizeof head - 1;
    const char *name = arena_strndup(a, at, strcspn(at, "("));
    if (!memmem(image->data, image->size, name, strlen(name) + 1)) return false;
  }
  return true;
}

static int compile(struct arena *a, const char *sample, const char *entry, const char *text) {
  static const char *const archs[] = {"sm_80", "sm_90"};
  int failures = 0;
  for (int i = 0; i < 2; i++) {
    struct cuda_program p = {.text = text};
    struct cuda_image image;
    struct diags d;
    diags_init(&d, a);
    bool good = cuda_program_compile(a, &p, archs[i], &image, &d) && is_whole(a, text, &image);
    printf("%s %s %s: %s, %.0f ms\n%s", sample, entry, archs[i], good ? "ok" : "FAILED",
           (double)image.compile_ns / 1e6, diags_text(&d, false));
    failures += !good;
  }
  return failures;
}

int main(int argc, char **argv) {
  static const char *const entries[] = {"init", "train", "eval", "predict"};
  glob_t samples;
  int failures = 0, compiled = 0;
  if (argc < 4) return 2;
  unsetenv("DGC_CUDA_PATH");
  const char *cache = getenv("TEST_CACHE");
  setenv("XDG_CACHE_HOME", cache ? cache : argv[3], 1);
  const char *why_not = cuda_load_nvrtc();
  if (why_not) {
    printf("SKIP: %s\n", why_not);
    return SKIPPED;
  }
  struct arena *a = arena_create();
  if (glob(arena_printf(a, "%s/*.dsl", argv[2]), 0, NULL, &samples) != 0) return 2;
  for (size_t s = 0; s < samples.gl_pathc; s++)
    for (int e = 0; e < 4; e++) {
      int status;
      const char *sample = samples.gl_pathv[s];
      const char *command = arena_printf(a, "'%s' compile '%s' --devices gpu:0 --entry %s --emit cuda",
                                         argv[1], sample, entries[e]);
      const char *text = run(a, command, &status); /* without what dgc notes beside it */
      if (status != 0) text = run(a, arena_printf(a, "%s 2>&1", command), &status);
      if (status != 0 && strstr(text, "has no ")) continue; /* such a statement */
      if (status != 0) printf("%s %s: FAILED\n%s", sample, entries[e], text);
      failures += status != 0 ? 1 : compile(a, sample, entries[e], text);
      compiled++;
    }
  globfree(&samples);
  arena_destroy(a);
  printf("%d programs, %d failures\n", compiled, failures);
  return failures != 0 || compiled == 0;
}
