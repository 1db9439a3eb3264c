/* SPDX-License-Identifier: Apache-2.0 */
/* What a call may give: the parameters of what is called. */
#ifndef DGC_FRONTEND_SIGNATURE_H
#define DGC_FRONTEND_SIGNATURE_H

#include "frontend/value.h"

struct signature {
  const char *what, *name;
  const char **params, **defaults; /* of what is built in; NULL: it must be given */
  int count, required;
  const struct made_layer *made; /* has some of the arguments already */
};

void signature_of(struct resolver *r, const struct value *callee, struct signature *s);
/* The parameter of this name, or -1. */
int signature_find(const struct signature *s, const char *name);
/* Whether the layer had its argument i when it was made. */
bool signature_has(const struct signature *s, int i);
void note_signature(struct resolver *r, const struct signature *s, const struct value *callee);

#endif
