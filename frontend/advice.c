/* SPDX-License-Identifier: Apache-2.0 */
/* Advice about arguments. The library calls a parameter by what it takes, the same wherever it takes that:
 * argument_kind() alone knows these words. Definitions of users may mean anything by them. */
#include "frontend/advice.h"
#include "frontend/resolve.h"
#include "ir/ops/op_id.h"

#include <string.h>

enum argument_kind {
  ARGUMENT_ANY,
  ARGUMENT_LOGITS, /* what a model says, before an activation makes probabilities of it */
  ARGUMENT_SCORES, /* what a model says, from 0 to 1 */
  ARGUMENT_LABELS,
  ARGUMENT_RATE,
  ARGUMENT_STEPS,
  ARGUMENT_SIZES /* or places of axes: a list of integers */
};

static enum argument_kind argument_kind(const struct signature *s, int i) {
  static const struct {
    const char *param;
    enum argument_kind kind;
  } words[] = {{"logits", ARGUMENT_LOGITS}, {"scores", ARGUMENT_SCORES}, {"label", ARGUMENT_LABELS},
               {"rate", ARGUMENT_RATE},     {"steps", ARGUMENT_STEPS},   {"shape", ARGUMENT_SIZES},
               {"perm", ARGUMENT_SIZES}};
  for (size_t k = 0; i >= 0 && i < s->count && k < sizeof words / sizeof *words; k++)
    if (strcmp(words[k].param, s->params[i]) == 0) return words[k].kind;
  return ARGUMENT_ANY;
}

static bool is_of_library(const struct resolver *r, const struct value *callee) {
  return callee->kind == VALUE_FUNCTION && is_library(r, callee->function->def->loc);
}

void help_too_many(struct resolver *r, const struct signature *s, const struct value *callee) {
  int last = s->count - 1;
  if (callee->kind == VALUE_FUNCTION && callee->function->def->kind == DEF_INITIALIZER)
    report_help(r, r->first_value.type
                       ? "an initializer has the shape of its variable: `var w : f32[3] = zeros()`"
                       : "a tensor of one number is `broadcast(cast(0, f32), shape)`");
  else if (argument_kind(s, last) == ARGUMENT_SIZES)
    report_help(r, "the numbers of `%s` stand in a list: `[2, 3]`", s->params[last]);
}

/* The activation whose result the node is, or NULL. */
static const char *activation_of(const struct node *n) {
  const struct trail *t = n->trail;
  if (n->op == OP_sigmoid) return "sigmoid";
  return n->op == OP_div && t && t->callee && strcmp(t->callee, "softmax") == 0 ? t->callee : NULL;
}

/* What takes logits would have the activation a second time. */
static void warn_probabilities(struct resolver *r, const struct signature *s, const struct value *args) {
  for (int i = 0; i < s->count; i++) {
    const char *done = args[i].kind == VALUE_TENSOR ? activation_of(args[i].tensor.node) : NULL;
    if (!done || argument_kind(s, i) != ARGUMENT_LOGITS || told_before(r, args[i].at, "logits")) continue;
    diag_warning(r->diags, args[i].at,
                 "probabilities are given where logits are wanted: this has been through `%s`", done);
    diag_help(r->diags, LOC_NONE, "`%s` takes values that no `%s` has been taken of", s->name, done);
  }
}

static bool is_weighed(const struct node *n) {
  n = node_behind_moves(n);
  if (n->op != OP_matmul && n->op != OP_conv) return false;
  return node_behind_moves(n->inputs[0])->op == OP_variable ||
         node_behind_moves(n->inputs[1])->op == OP_variable;
}

/* Whether the node is what a layer makes without an activation: products by weights, maybe with a bias. */
static bool is_linear(const struct node *n) {
  n = node_behind_moves(n);
  if (n->op == OP_add) return is_weighed(n->inputs[0]) || is_weighed(n->inputs[1]);
  return is_weighed(n);
}

/* What takes scores from 0 to 1 would be NaN. */
static void warn_logits(struct resolver *r, const struct signature *s, const struct value *args) {
  for (int i = 0; i < s->count; i++) {
    const struct value *v = &args[i];
    if (argument_kind(s, i) != ARGUMENT_SCORES || v->kind != VALUE_TENSOR || !is_linear(v->tensor.node))
      continue;
    if (told_before(r, v->at, "scores")) continue;
    const char *name = v->name && v->decl.source ? v->name : "logits";
    diag_warning(r->diags, v->at,
                 "logits are given where scores from 0 to 1 are wanted: `%s` is NaN where one lies outside",
                 s->name);
    diag_help(r->diags, LOC_NONE, "write `sigmoid(%s)`", name);
  }
}

/* A schedule over a part of one step: its arguments stand the other way round. */
static void warn_steps(struct resolver *r, const struct signature *s, const struct value *args) {
  if (argument_kind(s, 0) != ARGUMENT_RATE || argument_kind(s, 1) != ARGUMENT_STEPS) return;
  const struct value *steps = &args[1];
  bool part = steps->kind == VALUE_FLOAT && steps->f > 0 && steps->f < 1;
  if (!part || told_before(r, steps->at, "steps")) return;
  diag_warning(r->diags, steps->at, "`steps` of `%s` is %s, less than one step", s->name,
               value_text(r->arena, steps));
  diag_help(r->diags, LOC_NONE, "the rate stands first: `%s(rate, steps)`", s->name);
}

void advise_arguments(struct resolver *r, const struct signature *s, const struct value *callee,
                      const struct value *args) {
  bool of_user = callee->kind == VALUE_FUNCTION && !is_of_library(r, callee);
  if (!of_user) warn_probabilities(r, s, args);
  if (is_of_library(r, callee)) warn_steps(r, s, args), warn_logits(r, s, args);
}

/* The library takes what a model says first, and the labels behind it, as others do not. */
bool report_turned_round(struct resolver *r, const struct signature *s, const struct value *callee,
                         const struct value *args) {
  if (!is_of_library(r, callee) || argument_kind(s, 1) != ARGUMENT_LABELS) return false;
  if (argument_kind(s, 0) != ARGUMENT_LOGITS && argument_kind(s, 0) != ARGUMENT_SCORES) return false;
  if (args[0].kind != VALUE_TENSOR || args[1].kind != VALUE_TENSOR) return false;
  const struct type *said = &args[0].tensor.node->type, *label = &args[1].tensor.node->type;
  if (dtype_is_float((enum dtype)said->dtype) || !dtype_is_float((enum dtype)label->dtype)) return false;
  report(r, args[0].at, "`%s` of `%s` are f32 or f64, not %s", s->params[0], s->name,
         type_text(r->arena, said));
  report_value(r, &args[0]);
  report_help(r, "what the model says stands first: `%s(%s, label)`", s->name, s->params[0]);
  return true;
}

/* Of class numbers: logits are [..., classes], and labels have all these axes but the last. */
bool report_classes(struct resolver *r, const struct signature *s, const struct value *callee,
                    const struct value *args) {
  if (!is_of_library(r, callee) || argument_kind(s, 0) != ARGUMENT_LOGITS ||
      argument_kind(s, 1) != ARGUMENT_LABELS)
    return false;
  if (args[0].kind != VALUE_TENSOR || args[1].kind != VALUE_TENSOR) return false;
  const struct type *logits = &args[0].tensor.node->type, *label = &args[1].tensor.node->type;
  bool whole = dtype_is_int((enum dtype)label->dtype) && dtype_is_float((enum dtype)logits->dtype);
  bool batch = logits->rank > 0 && logits->dim[logits->rank - 1] < 0;
  if (!whole || strncmp(s->name, "sigmoid", 7) == 0 || (logits->rank == label->rank + 1 && !batch))
    return false;
  report(r, args[0].at, "`%s` takes logits [..., classes] and the numbers of classes [...], not %s and %s",
         s->name, type_text(r->arena, logits), type_text(r->arena, label));
  report_value(r, &args[0]);
  report_value(r, &args[1]);
  const char *name = args[1].name && args[1].decl.source ? args[1].name : "label";
  int last = label->rank - 1;
  if (batch || logits->rank == 0)
    report_help(
        r, "of one logit for each row it is `sigmoid_cross_entropy(logits, label)`, with a label of 0 or 1");
  else if (label->rank == logits->rank && label->dim[last] == 1)
    report_help(r, "write `squeeze(%s, %d)`", name, last);
  else if (label->rank == logits->rank)
    report_help(r, "of labels that are 1 at the place of their class it is `argmax(%s, %d)`", name, last);
  else if (logits->rank > label->rank + 2)
    report_help(
        r,
        "a label is that of one vector of logits: `flatten(x)` before the last layer makes [B, n] of images");
  else if (logits->rank > label->rank + 1)
    report_help(r, "a label is that of one vector of logits: `mean(x, axis = 1)` before the last layer makes "
                   "one of all steps");
  return true;
}
