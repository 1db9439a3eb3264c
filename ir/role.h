/* SPDX-License-Identifier: Apache-2.0 */
/* What outputs and variables of a graph are to their model: what plans and checkpoints know of them, too. */
#ifndef DGC_IR_ROLE_H
#define DGC_IR_ROLE_H

#include "ir/type.h"

#include <stdbool.h>

/* What a graph gives to its caller. */
enum output_role {
  OUTPUT_LOSS,    /* scalar */
  OUTPUT_METRIC,  /* a scalar: a sum over the batch, see `count`; in the entry metrics the figure itself */
  OUTPUT_TOTAL,   /* what adds up over batches, and is read by the entry metrics; any shape */
  OUTPUT_MAXIMUM, /* as OUTPUT_TOTAL, but the greatest counts; NaN if one is NaN */
  OUTPUT_MINIMUM,
  OUTPUT_SAME,    /* as OUTPUT_TOTAL, but every batch gives the same */
  OUTPUT_PREDICT, /* one row per example */
  OUTPUT_VALUE,   /* anything else: asked for in graph text */
  OUTPUT_UPDATE,  /* an effect: no value */
  OUTPUT_SEND,    /* in the part of one task: what it gives to others, no value for the caller */
  OUTPUT_HELD,    /* in the part of one task: a variable that another task holds, no value either */
  OUTPUT_ROLES
};

/* How a variable stands to one of the model's: it is that one, a replica of it on another device, a part of its rows,
 * or a tower's copy, which is joined with those of the others when it is read. */
enum variable_role { VARIABLE_ITSELF, VARIABLE_REPLICA, VARIABLE_PART, VARIABLE_OF_TOWER };
struct variable_identity {
  enum variable_role role;
  const char *of;     /* the model's variable; NULL: ITSELF */
  int number;         /* of the PART, of the tower */
  const char *joins;  /* OF_TOWER: the aggregation */
  enum dtype storage; /* narrow: its f32 hold values of this type alone; DT_F32: any */
  bool everywhere;    /* each process has a copy of the model's variable: it needs none of another's */
};

#endif
