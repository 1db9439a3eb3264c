/* SPDX-License-Identifier: Apache-2.0 */
/* Labels, which all machines have alike. */
#include "runtime/cpu/assembler.h"

void asm_place(struct assembler *a, struct label *l) {
  l->at = a->code.len;
  l->placed = true;
  for (int i = 0; i < l->waiting; i++) asm_reach(a, l->from[i], l->at);
}

void asm_aim(struct assembler *a, size_t from, struct label *l) {
  if (l->placed)
    asm_reach(a, from, l->at);
  else
    l->from[l->waiting++] = from;
}
