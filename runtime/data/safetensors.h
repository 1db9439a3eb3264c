/* SPDX-License-Identifier: Apache-2.0 */
/* The header of a safetensors file: eight bytes of length, JSON, then the tensors' bytes without gaps. */
#ifndef DGC_RUNTIME_DATA_SAFETENSORS_H
#define DGC_RUNTIME_DATA_SAFETENSORS_H

#include "ir/type.h"
#include "runtime/data/content.h"

#define SAFETENSORS_HEADER_LIMIT 100000000 /* as in the reference implementation */

/* Metadata that dgc writes: an XXH64 of the whole file, with these 16 digits as zeros. */
#define SAFETENSORS_CHECKSUM_KEY    "dgc.checksum"
#define SAFETENSORS_CHECKSUM_PREFIX "xxh64:"
#define SAFETENSORS_FORMAT_KEY      "dgc.format" /* a file with this key must have the other */

struct safetensors_entry {
  const char *name;
  const char *dtype; /* "F32" */
  bool supported;    /* whether dgc has that element type; if not, `type.dtype` is u8 and means nothing */
  struct type type;
  int64_t begin, end; /* of its bytes, behind the header */
};

struct safetensors_text {
  const char *key, *value;
};

struct safetensors {
  struct safetensors_entry *entries; /* in the order of the header */
  int count;
  struct safetensors_text *metadata;
  int nmetadata;
  int64_t data;     /* where the tensors' bytes begin in the file */
  int64_t checksum; /* where the checksum's digits are in the file; -1 = none */
};

/* The safetensors name of an element type, "F32". */
const char *safetensors_dtype(enum dtype d);
/* Reads and checks the header of a file of `len` bytes. NULL, or what is wrong. */
const char *safetensors_parse(struct safetensors *out, struct arena *a, const uint8_t *head, int64_t len);
/* How long the first bytes say that the file is: see content_size_fn. */
int64_t safetensors_size(const uint8_t *head, int64_t len);
/* Checks the checksum, if there is one. NULL, or what is wrong. */
const char *safetensors_verify(const struct safetensors *s, const struct content *file);

#endif
