/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints: named tensors and named texts in a safetensors file, which other programs can read.
 *
 * The bytes depend on the arguments alone. A checkpoint replaces an older one whole or leaves it as it was, also
 * when the disk is full or the machine stops. A checksum of the whole file stands in its metadata
 * (dgc.checksum); files of other programs have none and are accepted without. Tensors of F16 and BF16 are f32 here. */
#ifndef DGC_RUNTIME_CHECKPOINT_H
#define DGC_RUNTIME_CHECKPOINT_H

#include "base/diag.h"
#include "ir/type.h"
#include "runtime/data/half.h"

struct checkpoint_entry {
  const char *name;   /* UTF-8, unique */
  struct type type;   /* concrete; sizes of 0 are allowed */
  const void *data;   /* dense */
  enum dtype storage; /* narrow: what the file has in place of f32 */
};

/* Keys that start with "dgc." are reserved. */
struct checkpoint_text {
  const char *key, *value; /* UTF-8 */
};

struct checkpoint {
  struct checkpoint_entry *entries; /* in the order they were saved in */
  int count;
  struct checkpoint_text *texts;
  int ntexts;
  const char *checksum; /* of the file that it was read from, "xxh64:..."; NULL: another program's */
};

/* False after an error in `d`; then the file at `path` is what it was before. */
bool checkpoint_save(const char *path, const struct checkpoint_entry *entries, int n,
                     const struct checkpoint_text *texts, int ntexts, struct diags *d);
/* All of it in the arena. NULL after an error in `d`. */
struct checkpoint *checkpoint_load(struct arena *a, const char *path, struct diags *d);
/* The type of one, as the file has it: "bf16[784,512]". */
const char *checkpoint_type_text(struct arena *a, const struct checkpoint_entry *e);
const struct checkpoint_entry *checkpoint_find(const struct checkpoint *c, const char *name);
/* NULL if there is none. */
const char *checkpoint_text(const struct checkpoint *c, const char *key);

#endif
