/* SPDX-License-Identifier: Apache-2.0 */
/* Our own table of the PJRT C API against the real header, which abi.sh names on the command line: the place of every
 * call, the place and size of every field, the size of every structure, every constant. The compiler compares; what
 * runs only says that it did. */
#include "runtime/pjrt/abi.h"

#include PJRT_HEADER
#include <stdio.h>

#define SAME(ours, field, real, its)                                                \
  do {                                                                              \
    _Static_assert(offsetof(ours, field) == offsetof(real, its), #real " " #its);   \
    _Static_assert(sizeof(((ours *)0)->field) == sizeof(((real *)0)->its), #field); \
    checked++;                                                                      \
  } while (0);

static int checked;

#define FIELD(type, name) SAME(our_args, name, real_args, name)
#define CALL(place, name, fields)                                                                     \
  static void check_##name(void) {                                                                    \
    typedef struct pjrt_##name our_args;                                                              \
    typedef PJRT_##name##_Args real_args;                                                             \
    _Static_assert(offsetof(PJRT_Api, PJRT_##name) == offsetof(struct pjrt_table, calls[place]), ""); \
    _Static_assert(sizeof(our_args) >= PJRT_##name##_Args_STRUCT_SIZE, "the size of " #name);         \
    SAME(our_args, struct_size, real_args, struct_size)                                               \
    fields                                                                                            \
  }
#include "runtime/pjrt/calls.def"
#undef CALL
#undef FIELD

static void check_structures(void) {
  SAME(struct pjrt_version, major_version, PJRT_Api_Version, major_version)
  SAME(struct pjrt_version, minor_version, PJRT_Api_Version, minor_version)
  SAME(struct pjrt_table, version, PJRT_Api, pjrt_api_version)
  SAME(struct pjrt_option, name, PJRT_NamedValue, name)
  SAME(struct pjrt_option, name_size, PJRT_NamedValue, name_size)
  SAME(struct pjrt_option, type, PJRT_NamedValue, type)
  SAME(struct pjrt_option, value.int64, PJRT_NamedValue, int64_value)
  SAME(struct pjrt_option, value_size, PJRT_NamedValue, value_size)
  SAME(struct pjrt_code, code, PJRT_Program, code)
  SAME(struct pjrt_code, code_size, PJRT_Program, code_size)
  SAME(struct pjrt_code, format, PJRT_Program, format)
  SAME(struct pjrt_code, format_size, PJRT_Program, format_size)
  SAME(struct pjrt_execution, send_callbacks, PJRT_ExecuteOptions, send_callbacks)
  SAME(struct pjrt_execution, num_recv_ops, PJRT_ExecuteOptions, num_recv_ops)
  SAME(struct pjrt_execution, launch_id, PJRT_ExecuteOptions, launch_id)
  SAME(struct pjrt_execution, non_donatable_input_indices, PJRT_ExecuteOptions, non_donatable_input_indices)
  SAME(struct pjrt_execution, num_non_donatable_input_indices, PJRT_ExecuteOptions,
       num_non_donatable_input_indices)
  SAME(struct pjrt_execution, context, PJRT_ExecuteOptions, context)
  SAME(struct pjrt_execution, call_location, PJRT_ExecuteOptions, call_location)
  SAME(struct pjrt_execution, num_tasks, PJRT_ExecuteOptions, num_tasks)
  SAME(struct pjrt_execution, task_ids, PJRT_ExecuteOptions, task_ids)
  SAME(struct pjrt_execution, incarnation_ids, PJRT_ExecuteOptions, incarnation_ids)
  _Static_assert(sizeof(struct pjrt_option) >= PJRT_NamedValue_STRUCT_SIZE, "the size of an option");
  _Static_assert(sizeof(struct pjrt_code) >= PJRT_Program_STRUCT_SIZE, "the size of code");
  _Static_assert(sizeof(struct pjrt_execution) >= PJRT_ExecuteOptions_STRUCT_SIZE,
                 "the size of an execution");
}

#define CONSTANT(ours, real) _Static_assert((int)(ours) == (int)(real), #real);
CONSTANT(PJRT_MAJOR, PJRT_API_MAJOR)
CONSTANT(PJRT_STRING, PJRT_NamedValue_kString)
CONSTANT(PJRT_INT64, PJRT_NamedValue_kInt64)
CONSTANT(PJRT_PRED, PJRT_Buffer_Type_PRED)
CONSTANT(PJRT_S32, PJRT_Buffer_Type_S32)
CONSTANT(PJRT_S64, PJRT_Buffer_Type_S64)
CONSTANT(PJRT_U8, PJRT_Buffer_Type_U8)
CONSTANT(PJRT_F32, PJRT_Buffer_Type_F32)
CONSTANT(PJRT_F64, PJRT_Buffer_Type_F64)
CONSTANT(PJRT_IMMUTABLE_ONLY_DURING_CALL, PJRT_HostBufferSemantics_kImmutableOnlyDuringCall)

int main(void) {
#define CALL(place, name, fields) check_##name();
#include "runtime/pjrt/calls.def"
#undef CALL
  check_structures();
  printf("compared with the header of version %d.%d\n%d passed, 0 failed\n", PJRT_API_MAJOR, PJRT_API_MINOR,
         checked);
  return 0;
}
