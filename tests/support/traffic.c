/* SPDX-License-Identifier: Apache-2.0 */
/* Traffic by the commands that an executor has, whatever the plan's report says. */
#include "tests/support/traffic.h"

#include "runtime/exec_internal.h"

static bool works(const struct command *c) {
  return (c->kind == COMMAND_KERNEL || c->kind == COMMAND_CALL || c->kind == COMMAND_COPY) && c->args;
}

static int64_t moved(const struct plan *p, const struct command *c, int from, int to) {
  const struct step *s = &p->devices[to].steps[c->step];
  if (!works(c)) return 0;
  if (s->kind == STEP_COPY && p->buffers[s->operands[0].buffer].device == from) return s->bytes;
  return 0;
}

/* What a device gives to the next one of its ring. */
static int64_t given(const struct plan *p, const struct command *c, int from, int to) {
  const struct step *s = &p->devices[from].steps[c->step];
  if (!works(c) || s->kind != STEP_ALL_REDUCE) return 0;
  const struct collective *all = s->collective;
  int rank = collective_rank_of(all, from);
  return all->devices[(rank + 1) % all->count] == to ? collective_bytes(all, rank) : 0;
}

int64_t commands_traffic(const struct exec *e, int from, int to) {
  int64_t bytes = 0;
  for (int i = 0; i < e->nlanes; i++)
    for (const struct command *c = e->lanes[i].commands; c->kind != COMMAND_END; c++) {
      if (e->lanes[i].device == to) bytes += moved(e->plan, c, from, to);
      if (e->lanes[i].device == from) bytes += given(e->plan, c, from, to);
    }
  return bytes;
}
