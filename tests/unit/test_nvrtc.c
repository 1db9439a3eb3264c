/* SPDX-License-Identifier: Apache-2.0 */
/* Every kernel of every sample through the real NVRTC, where it is installed; no GPU and no driver are needed. A kernel
 * that another program had too, but for its name, is left out: that takes most of NVRTC's time. Kernels that dgc makes
 * ask nothing of the architecture: what the oldest can, all can. Those written by hand are bench/gpu/registers.py's.
 * test_nvrtc FOLDER-OF-SAMPLES CACHE: what NVRTC makes of a text is kept in the folder CACHE, or in TEST_CACHE. */
#include "base/map.h"
#include "include/dgc.h"
#include "runtime/cuda/library.h"
#include "runtime/cuda/program.h"
#include "tests/support/small.h"

#include <ctype.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SKIPPED = 77, MACHINE_CUDA = 190 }; /* ELF's number of NVIDIA's processors */

static const char head[] = "extern \"C\" __global__ void ";

static bool in_word(char c) { return isalnum((unsigned char)c) || c == '_'; }

/* Adds the names that a text defines: words before a parenthesis or a brace. */
static void define(struct map *definitions, const char *text) {
  for (const char *at = text; *at;) {
    size_t len = 0;
    while (in_word(at[len])) len++;
    const char *next = at + len + strspn(at + len, " ");
    if (len && (*next == '(' || *next == '{'))
      map_put(definitions, arena_strndup(definitions->arena, at, len), definitions);
    at += len ? len : 1;
  }
}

/* Puts the words of a kernel that its program has definitions of. */
static void put_defined_words(struct str *s, const char *kernel, const struct map *definitions) {
  for (const char *at = kernel; *at;) {
    size_t len = 0;
    while (in_word(at[len])) len++;
    if (len && map_getn(definitions, at, len)) str_putn(s, at, len), str_putc(s, ' ');
    at += len ? len : 1;
  }
}

/* The kernel, whatever its name, and which definitions it names: those are the same in all programs that have them. */
static const char *key_of(struct arena *a, const char *kernel, const struct map *definitions) {
  struct str s = str_make(a);
  const char *name = strstr(kernel, head) + sizeof head - 1;
  size_t len = strcspn(name, "(");
  for (const char *at = kernel; *at;)
    if (strncmp(at, name, len) == 0)
      str_putc(&s, '$'), at += len;
    else
      str_putc(&s, *at++);
  str_putc(&s, '\n');
  put_defined_words(&s, kernel, definitions);
  return s.data;
}

/* A program without the kernels that others had before; NULL if none is left. Empty lines stand between its kernels. */
static const char *without(struct map *seen, const char *text) {
  struct arena *a = seen->arena;
  struct map definitions = map_make(a);
  struct str s = str_make(a);
  int left = 0;
  for (const char *at = text; *at;) {
    const char *end = strstr(at, "\n\n");
    const char *part = arena_strndup(a, at, end ? (size_t)(end + 2 - at) : strlen(at));
    at += strlen(part);
    if (!strstr(part, head)) {
      define(&definitions, part);
    } else if (map_put(seen, key_of(a, part, &definitions), seen)) {
      continue;
    } else {
      left++;
    }
    str_put(&s, part);
  }
  return left ? s.data : NULL;
}

/* Names of all kernels of the text are in the image, which is code for the right machine. */
static bool is_whole(struct arena *a, const char *text, const struct cuda_image *image) {
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
  struct cuda_program p = {.text = text};
  struct cuda_image image;
  struct diags d;
  diags_init(&d, a);
  bool good = cuda_program_compile(a, &p, "sm_80", &image, &d) && is_whole(a, text, &image) &&
              !strstr(text, "__CUDA_ARCH__");
  printf("%s %s: %s, %.0f ms\n%s", sample, entry, good ? "ok" : "FAILED", (double)image.compile_ns / 1e6,
         diags_text(&d, false));
  return !good;
}

/* A session with the sample, of which one GPU computes everything. */
static struct dgc_session *open_sample(const char *sample) {
  int nsets;
  const char *const *sets = small_sets(sample, &nsets);
  struct dgc_session *d = dgc_create();
  if (!d) exit(2);
  dgc_set(d, "devices", "gpu:0");
  for (int i = 0; i < nsets; i++) dgc_set(d, "set", sets[i]);
  if (dgc_load(d, sample) == DGC_OK) return d;
  printf("%s: FAILED\n%s", sample, dgc_message(d));
  exit(1);
}

int main(int argc, char **argv) {
  static const char *const entries[] = {"init", "train", "eval", "predict"};
  glob_t samples;
  int failures = 0, compiled = 0;
  if (argc < 3) return 2;
  unsetenv("DGC_CUDA_PATH");
  const char *cache = getenv("TEST_CACHE");
  setenv("XDG_CACHE_HOME", cache ? cache : argv[2], 1);
  const char *why_not = cuda_load_nvrtc();
  if (why_not) {
    printf("SKIP: %s\n", why_not);
    return SKIPPED;
  }
  struct arena *a = arena_create();
  struct map seen = map_make(a);
  if (glob(arena_printf(a, "%s/*.dsl", argv[1]), 0, NULL, &samples) != 0) return 2;
  for (size_t s = 0; s < samples.gl_pathc; s++) {
    const char *sample = samples.gl_pathv[s], *text;
    struct dgc_session *session = open_sample(sample);
    for (int e = 0; e < 4; e++) {
      bool made = dgc_emit(session, entries[e], "cuda", &text) == DGC_OK;
      if (!made && strstr(dgc_message(session), "has no ")) continue; /* such a statement */
      if (!made) printf("%s %s: FAILED\n%s", sample, entries[e], dgc_message(session));
      const char *rest = made ? without(&seen, text) : NULL;
      failures += !made ? 1 : rest ? compile(a, sample, entries[e], rest) : 0;
      compiled++;
    }
    dgc_destroy(session);
  }
  globfree(&samples);
  arena_destroy(a);
  printf("%d programs of %u different kernels, %d failures\n", compiled, seen.count, failures);
  return failures != 0 || compiled == 0;
}
