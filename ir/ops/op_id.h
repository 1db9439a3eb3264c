/* SPDX-License-Identifier: Apache-2.0 */
/* The ops by name. Who names none does without: the rest of the tree knows an op as a number, and is not compiled again
 * where ops.def gets a row. */
#ifndef DGC_IR_OPS_OP_ID_H
#define DGC_IR_OPS_OP_ID_H

#define OP(name, spread) OP_##name,
enum op_id {
#include "ir/ops/ops.def"
  OP_COUNT
};
#undef OP

#endif
