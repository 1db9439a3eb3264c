/* SPDX-License-Identifier: Apache-2.0 */
/* What the syntax tree says of itself: the operators' table, the kinds of definitions. */
#include "frontend/ast.h"

#define OPERATOR(name, text, precedence, op) [OPERATOR_##name] = {text, precedence},
const struct operator_info operators[OPERATOR_COUNT] = {
#include "frontend/operators.def"
};
#undef OPERATOR

const char *def_kind_name(enum def_kind kind) {
  static const char *const names[] = {[DEF_LAYER] = "layer",
                                      [DEF_FUNCTION] = "function",
                                      [DEF_INITIALIZER] = "initializer",
                                      [DEF_OPTIMIZER] = "optimizer",
                                      [DEF_MODEL] = "model"};
  return names[kind];
}
