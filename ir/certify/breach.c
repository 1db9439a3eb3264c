/* SPDX-License-Identifier: Apache-2.0 */
/* What the certificate says: of a claim that holds, and of a breach, which is reported where it began: at the first
 * placed node that has no equivalent in the source although all of its operands have one.
 *
 * Names lead from a node to the source's line that it should be; they are for the message alone. */
#include "ir/certify/breach.h"
#include "ir/graph/text.h"
#include "ir/ops/op_id.h"

#include <stdlib.h>
#include <string.h>

static const char *const claim_names[CLAIM_COUNT] = {"towers",  "batch",   "gradients", "scale", "variables",
                                                     "results", "partial", "devices",   "order", "numbers"};

void certify_say(struct certify *c, enum claim_id claim, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  c->out->claims[claim].checked = true;
  c->out->claims[claim].text = arena_vprintf(c->out_arena, fmt, ap);
  va_end(ap);
}

void certificate_print(struct str *s, const struct certificate *c) {
  for (int i = 0; i < CLAIM_COUNT; i++) {
    const struct claim *claim = &c->claims[i];
    if (!claim->checked && !claim->breaches && !claim->text) continue;
    str_printf(s, "%-9s  ", claim_names[i]);
    if (claim->breaches)
      str_printf(s, "WRONG     %d breach%s\n", claim->breaches, claim->breaches == 1 ? "" : "es");
    else if (claim->checked)
      str_printf(s, "ok        %s\n", claim->text);
    else
      str_printf(s, "skipped   %s\n", claim->text);
  }
}

/* ---- where a breach began ---- */

/* What the source has, or its elements in another order: packs and pieces on their way. */
static bool is_of_source(const struct certify *c, const struct node *of) {
  if (of->id < c->known) return true;
  if (of->op != OP_reshape && of->op != OP_slice && of->op != OP_concat) return false;
  for (int k = 0; k < of->ninputs; k++)
    if (!is_of_source(c, of->inputs[k])) return false;
  return true;
}

static bool is_known(const struct certify *c, const struct node *n) {
  const struct node *of = c->meanings[n->id].of;
  return !of || is_of_source(c, of);
}

/* The first node before n that stands for nothing the source has; NULL if there is none. */
static const struct node *origin_of(struct certify *c, const struct node *n) {
  const struct graph *g = c->placed;
  uint8_t *above = arena_new_array(c->arena, n->id + 1, uint8_t);
  const struct node *first = NULL;
  above[n->id] = 1;
  certify_work(c, n->id);
  for (uint32_t i = n->id + 1; i-- > 0;) {
    if (!above[i]) continue;
    if (i != n->id) first = g->nodes[i];
    for (int k = 0; k < g->nodes[i]->ninputs; k++)
      if (!is_known(c, g->nodes[i]->inputs[k])) above[g->nodes[i]->inputs[k]->id] = 1;
  }
  return first;
}

/* ---- what it is a breach of ---- */

/* What the source has by the name of n, or of what it is a copy of; what is a tower's or a replica's is called so,
 * too. */
static const struct node *counterpart(const struct certify *c, const struct node *n) {
  while (n->op == OP_copy) n = n->inputs[0];
  const struct node *s = graph_find(c->source, n->name);
  if (s) return s;
  const char *tower = arena_printf(c->arena, "tower_%d/", n->tower);
  const char *replica = arena_printf(c->arena, "/replica_%d", n->replica);
  size_t len = strlen(n->name), begin = strlen(tower), end = strlen(replica);
  if (n->tower >= 0 && strncmp(n->name, tower, begin) == 0) return graph_find(c->source, n->name + begin);
  if (n->replica < 0 || len < end || strcmp(n->name + len - end, replica) != 0) return NULL;
  return graph_find(c->source, arena_strndup(c->arena, n->name, len - end));
}

static bool reads(const struct node *n, const struct node *x) {
  for (int i = 0; i < n->ninputs; i++)
    if (n->inputs[i] == x) return true;
  return false;
}

static bool scales(const struct node *n) {
  return n->op == OP_mul || n->op == OP_div || n->op == OP_constant || n->op == OP_batch_size;
}

/* Two expressions that differ by a factor, as far as one step shows it. */
static bool differ_in_scale(const struct node *want, const struct node *have) {
  if (scales(want) && (scales(have) || reads(want, have))) return true;
  if (scales(have) && reads(have, want)) return true;
  if (want->op != have->op || want->ninputs != have->ninputs) return false;
  for (int i = 0; i < want->ninputs; i++) {
    const struct node *w = want->inputs[i], *h = have->inputs[i];
    if (w != h && ((scales(w) && (w->op == h->op || reads(w, h))) || (scales(h) && reads(h, w)))) return true;
  }
  return false;
}

static enum claim_id claim_of(const struct node *n, const struct node *want, const struct node *have,
                              enum claim_id otherwise) {
  if (n->op == OP_split) return CLAIM_BATCH;
  if (n->op == OP_batch_size || (want && differ_in_scale(want, have))) return CLAIM_SCALE;
  return n->tower >= 0 ? CLAIM_TOWERS : otherwise;
}

static const char *line_of(struct certify *c, const struct graph *g, const struct node *n) {
  struct str s = str_make(c->arena);
  node_print(&s, g, n);
  return s.data;
}

/* ---- reports ---- */

static void report(struct certify *c, enum claim_id claim, const struct node *n, const char *what) {
  if (n) c->blamed[n->id] = 1;
  c->out->claims[claim].breaches++;
  c->out->breaches++;
  if (c->diags->nerrors > c->diags->max_errors) {
    c->diags->nerrors++;
    return;
  }
  diag_error(c->diags, n ? n->loc : LOC_NONE, "after %s: %s: %s%s%s", c->after, claim_names[claim],
             n ? n->name : "", n ? ": " : "", what);
  if (n) diag_note(c->diags, LOC_NONE, "%s", line_of(c, c->placed, n));
}

/* Why n, at which the placed graph leaves the source, is not the source's. */
static void explain(struct certify *c, enum claim_id claim, const struct node *n) {
  const struct node *s = counterpart(c, n), *have = c->meanings[n->id].of, *want = NULL;
  if (c->blamed[n->id]) return;
  if (s && c->towers > 1 && n->tower >= 0)
    want = c->rows[(size_t)s->id * (size_t)c->towers + (size_t)n->tower];
  if (s && !want) want = c->global[s->id];
  report(c, claim_of(n, want, have, claim), n, "this is nothing that the source computes");
  if (s) diag_note(c->diags, LOC_NONE, "the source has: %s", line_of(c, c->source, s));
  for (int k = 0; k < n->ninputs; k++) {
    const struct node *x = n->inputs[k];
    if (c->meanings[x->id].of && c->meanings[x->id].of->id >= c->known)
      diag_note(c->diags, LOC_NONE, "of pieces: %s", line_of(c, c->placed, x));
  }
}

void certify_breach(struct certify *c, enum claim_id claim, const struct node *n, const char *fmt, ...) {
  if (n && c->blamed[n->id]) return;
  bool heard = c->diags->nerrors <= c->diags->max_errors; /* else no one is told where it began */
  bool follow = heard && n && c->source && c->meanings && claim != CLAIM_DEVICES;
  const struct node *origin = follow ? origin_of(c, n) : NULL;
  if (origin) {
    explain(c, claim, origin);
    return;
  }
  va_list ap;
  va_start(ap, fmt);
  report(c, claim, n, arena_vprintf(c->arena, fmt, ap));
  va_end(ap);
}

void certify_blame(struct certify *c, enum claim_id claim, const struct node *n, const struct node *want,
                   const char *what) {
  const struct meaning *m = &c->meanings[n->id];
  if (!m->of) return; /* reported where it arose */
  const struct node *origin = is_known(c, n) ? NULL : origin_of(c, n);
  if (!is_known(c, n)) {
    explain(c, claim, origin ? origin : n);
    return;
  }
  if (m->towers)
    certify_breach(c, CLAIM_GRADIENTS, n, "%s is the share of %s only", what,
                   certify_towers_text(c, m->towers, true));
  else if (want && differ_in_scale(want, m->of))
    certify_breach(c, CLAIM_SCALE, n, "%s is %s, and not %s of it", what, m->of->name, want->name);
  else
    certify_breach(c, claim, n, "%s is %s, and not %s", what, m->of->name,
                   want ? want->name : "what it should");
}
