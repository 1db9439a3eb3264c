/* SPDX-License-Identifier: Apache-2.0 */
/* Data files: whatever lies in them, opening and reading every row either works or gives an error. The first byte
 * chooses the name, and so the format where the name decides it. */
#include "base/arena.h"
#include "base/diag.h"
#include "runtime/data/data.h"
#include "runtime/data/vocabulary.h"
#include "tests/support/scratch.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char *const names[] = {"f.npy",
                                      "f.npz:a",
                                      "f.csv",
                                      "f.csv:1-2",
                                      "f.txt:8+1",
                                      "f.safetensors:a",
                                      "f.npz",
                                      "f.csv:1:category",
                                      "f.csv:2:optional",
                                      "f.csv:2:present",
                                      "f.csv:1:date",
                                      "f.csv:1:time",
                                      "f.txt:8/3",
                                      "f.png",
                                      "f.jpg:resize"};
  static const struct type shape = {.dtype = DT_F32, .rank = 3, .dim = {5, 7, 3}};
  if (!scratch_make()) abort();
  if (size == 0) return 0;
  const char *name = names[data[0] % (sizeof names / sizeof *names)];

  struct arena *a = arena_create();
  struct diags d;
  diags_init(&d, a);
  char path[256];
  snprintf(path, sizeof path, "%s/%s", scratch_path, name);
  for (char *p = path; *p; p++)
    if (*p == ':') {
      *p = 0;
      break;
    }
  FILE *f = fopen(path, "wb");
  if (!f || fwrite(data + 1, 1, size - 1, f) != size - 1) abort();
  fclose(f);

  struct data_spec spec = {.name = "x", .path = name, .vocabulary = vocabulary_make(a)};
  if (strchr(name, 'j')) spec.row = &shape;
  struct dataset *ds = dataset_open(a, scratch_path, &spec, 1, NULL, &d);
  if (!ds && !d.nerrors) abort();
  if (ds && ds->rows > 0) {
    struct loader_options options = {.batch = 7, .shuffle = true, .epochs = 1};
    struct loader *loader = loader_create(a, ds, &options, &d);
    const struct batch *batch;
    for (int i = 0; loader && i < 100 && loader_next(loader, &batch, &d) == LOADER_BATCH; i++)
      loader_release(loader, batch);
    loader_destroy(loader);
  }
  dataset_close(ds);
  diags_text(&d, false);
  arena_destroy(a);
  unlink(path);
  return 0;
}
