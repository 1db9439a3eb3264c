/* SPDX-License-Identifier: Apache-2.0 */
/* The PJRT C API as far as dgc uses it: how its structures lie in memory, and what numbers stand for. It is the
 * interface of plugins that bring a compiler and devices, TPUs among them; no header of theirs is needed to build dgc.
 *
 * A call takes one structure, which begins with its size as the caller knows it, so that either side may be the
 * older one, and gives an error or NULL. Objects are pointers that only the plugin looks behind. */
#ifndef DGC_RUNTIME_PJRT_ABI_H
#define DGC_RUNTIME_PJRT_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PJRT_MAJOR = 0 }; /* another one means another interface */

struct pjrt_version {
  size_t struct_size;
  void *extensions;
  int major_version, minor_version;
};

/* What GetPjrtApi gives: its calls stand behind the version, each at its place. */
struct pjrt_table {
  size_t struct_size;
  void *extensions;
  struct pjrt_version version;
  void *calls[];
};

enum pjrt_call {
#define CALL(place, name, fields) CALL_##name = place,
#include "runtime/pjrt/calls.def"
#undef CALL
};

/* A named option of a client. */
enum pjrt_option_type { PJRT_STRING, PJRT_INT64, PJRT_INT64_LIST, PJRT_FLOAT, PJRT_BOOL };
struct pjrt_option {
  size_t struct_size;
  void *extensions;
  const char *name;
  size_t name_size;
  int type;
  union {
    const char *string;
    int64_t int64;
  } value;
  size_t value_size; /* of a string its length, else 1 */
};

/* What is compiled; `format` is "mlir" for StableHLO text. */
struct pjrt_code {
  size_t struct_size;
  void *extensions;
  const char *code;
  size_t code_size;
  const char *format;
  size_t format_size;
};

/* Options of one execution. */
struct pjrt_execution {
  size_t struct_size;
  void *extensions;
  void *send_callbacks, *recv_callbacks;
  size_t num_send_ops, num_recv_ops;
  int launch_id;
  const int64_t *non_donatable_input_indices;
  size_t num_non_donatable_input_indices;
  void *context;
  const char *call_location;
  size_t num_tasks;
  int *task_ids;
  int64_t *incarnation_ids;
};

/* Types of elements. */
enum { PJRT_PRED = 1, PJRT_S32 = 4, PJRT_S64 = 5, PJRT_U8 = 6, PJRT_F32 = 11, PJRT_F64 = 12 };
/* The host's bytes are taken before the call returns. */
enum { PJRT_IMMUTABLE_ONLY_DURING_CALL = 0 };

typedef void pjrt_deleter(void *);

#define FIELD(type, name) type name;
#define CALL(place, name, fields) \
  struct pjrt_##name {            \
    size_t struct_size;           \
    void *extensions;             \
    fields                        \
  };
#include "runtime/pjrt/calls.def"
#undef CALL
#undef FIELD

#endif
