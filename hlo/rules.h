/* SPDX-License-Identifier: Apache-2.0 */
/* The rules that are functions, one for each EMIT of rules.def. */
#ifndef DGC_HLO_RULES_H
#define DGC_HLO_RULES_H

#include "hlo/emit.h"

#define NATIVE(op, operation)
#define SCALAR(op)
#define EMIT(op) hlo_rule_fn hlo_##op;
#define REFUSED(op, why)
#include "hlo/rules.def"
#undef NATIVE
#undef SCALAR
#undef EMIT
#undef REFUSED

#endif
