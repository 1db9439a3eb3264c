/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as files hold them, of types and in orders that the language has not. */
#ifndef DGC_RUNTIME_DATA_STORED_H
#define DGC_RUNTIME_DATA_STORED_H

#include "runtime/data/reader.h"

/*   stored                                       becomes
 *   i8 i16 u16                                   i32
 *   u32 u64                                      i64; one of u64 that is larger is an error
 *   f16 bf16                                     f32
 *   big endian, Fortran order (columns first)    little endian, C order (rows first)
 *
 * All of it exactly. */
enum stored_kind {
  STORED_BOOL,
  STORED_I8,
  STORED_I16,
  STORED_I32,
  STORED_I64,
  STORED_U8,
  STORED_U16,
  STORED_U32,
  STORED_U64,
  STORED_F16,
  STORED_BF16,
  STORED_F32,
  STORED_F64,
  STORED_KINDS
};

struct stored {
  enum stored_kind kind;
  bool big_endian, columns_first;
};

/* Bytes of one. */
int stored_size(enum stored_kind kind);
/* As reader_set, of such numbers. What the language has otherwise is changed now, in memory of the reader's own. */
bool reader_set_stored(struct reader *r, struct stored s, int rank, const int64_t *dims, int64_t at,
                       int64_t available);

#endif
