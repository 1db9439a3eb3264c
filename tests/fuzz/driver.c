/* SPDX-License-Identifier: Apache-2.0 */
/* Stands in for libFuzzer where there is none: runs a target over its corpus and over simple mutations of it, the
 * same ones every time. driver [-runs=N] FILE-OR-FOLDER... */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LARGEST = 1 << 16 };

static uint64_t state = 1;

static size_t draw(size_t below) {
  state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (size_t)(state >> 33) % below;
}

/* Changes, drops, repeats or moves a few bytes of `data`, which has room for twice LARGEST. */
static size_t mutate(uint8_t *data, size_t size) {
  static const char *const words[] = {"-1",   "0", "9223372036854775807", "(", "}", "\"", "#", "\n",
                                      "f32[", "B"};
  for (size_t n = 1 + draw(4); n; n--) {
    if (size == 0) data[size++] = (uint8_t)draw(256);
    size_t at = draw(size), span = 1 + draw(size - at < 40 ? size - at : 40);
    switch (draw(4)) {
    case 0: data[at] = (uint8_t)draw(256); break;
    case 1:
      memmove(data + at, data + at + span, size - at - span);
      size -= span;
      break;
    case 2:
      memmove(data + at + span, data + at, size - at);
      size += span;
      break;
    default: {
      const char *word = words[draw(sizeof words / sizeof *words)];
      size_t len = strlen(word);
      memmove(data + at + len, data + at, size - at);
      memcpy(data + at, word, len);
      size += len;
    }
    }
    if (size > LARGEST) size = LARGEST;
  }
  return size;
}

static long inputs;

static void run_file(const char *path, long runs) {
  static uint8_t original[2 * LARGEST], data[2 * LARGEST];
  FILE *f = fopen(path, "rb");
  if (!f) {
    perror(path);
    exit(1);
  }
  size_t size = fread(original, 1, LARGEST, f);
  fclose(f);
  LLVMFuzzerTestOneInput(original, size);
  inputs++;
  for (long i = 0; i < runs; i++) {
    memcpy(data, original, size);
    LLVMFuzzerTestOneInput(data, mutate(data, size));
    inputs++;
  }
}

static int visible(const struct dirent *e) { return e->d_name[0] != '.'; }

static void run_path(const char *path, long runs) {
  struct stat st;
  if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode)) {
    run_file(path, runs);
    return;
  }
  struct dirent **entries;
  int n = scandir(path, &entries, visible, alphasort);
  for (int i = 0; i < n; i++) {
    char inner[4096];
    snprintf(inner, sizeof inner, "%s/%s", path, entries[i]->d_name);
    run_path(inner, runs);
    free(entries[i]);
  }
  if (n >= 0) free(entries);
}

int main(int argc, char **argv) {
  long runs = 0;
  for (int i = 1; i < argc; i++) {
    if (strncmp(argv[i], "-runs=", 6) == 0)
      runs = atol(argv[i] + 6);
    else
      run_path(argv[i], runs);
  }
  printf("%ld inputs\n", inputs);
  return inputs ? 0 : 1;
}
