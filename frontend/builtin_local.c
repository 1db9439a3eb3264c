/* SPDX-License-Identifier: Apache-2.0 */
/* What towers have for themselves: local(x), and all_reduce(x, op), which makes one value of it.
 *
 * Everything else in a model means the whole batch. Results that depend on a local value depend on the number of
 * towers, which is said once. */
#include "frontend/resolve.h"
#include "ir/ops/op_id.h"

#include <string.h>

static void tell_once(struct resolver *r, struct loc loc) {
  if (r->run.number != 1 || told_before(r, LOC_NONE, "local")) return;
  for (const struct frame *f = r->frame; f && f->caller && is_library(r, loc); f = f->caller) loc = f->call;
  diag_note(r->diags, loc, "each tower has a value of its own here: results depend on the number of towers");
}

/* local(x): what a tower has of x, computed from its own rows. */
static struct value run_local(struct resolver *r, struct value *args, struct loc loc,
                              const struct role *role) {
  (void)role;
  struct node *x = tensor_node(r, &args[0], "`x`");
  if (!x) return value_error();
  if (type_is_symbolic(&x->type) || type_has_whole(&x->type)) {
    report(r, loc, "`local` takes what is made of all rows of the batch, without them, not %s",
           type_text(r->arena, &x->type));
    report_value(r, &args[0]);
    report_help(r, "rows are a tower's own already: write `local(mean(x, axis = 0))` of its mean of them");
    return value_error();
  }
  build_here(r, loc);
  struct node *y = read_for_tower(r, x, false, loc);
  if (!y) return value_error();
  if (y == x && !x->own) {
    report(r, loc, "this is the same in all towers: nothing of it is of the rows of a batch");
    report_value(r, &args[0]);
    return value_error();
  }
  tell_once(r, loc);
  return value_tensor(r, y, loc);
}

/* all_reduce(x, op): the sum or the mean over the towers of what each has for itself. Gradients flow through it. */
static struct value run_all_reduce(struct resolver *r, struct value *args, struct loc loc,
                                   const struct role *role) {
  (void)role;
  struct node *x = tensor_node(r, &args[0], "`x`");
  const char *how = args[1].kind == VALUE_STRING ? args[1].string : "";
  if (!x) return value_error();
  if (strcmp(how, "sum") != 0 && strcmp(how, "mean") != 0) {
    report(r, loc, "`op` is \"sum\" or \"mean\"");
    report_value(r, &args[1]);
    return value_error();
  }
  if (type_is_symbolic(&x->type)) {
    report(r, loc, "rows of towers cannot be added to each other: towers may have different numbers of them");
    report_value(r, &args[0]);
    report_help(r, "reduce them in each tower first: `all_reduce(local(sum(x, axis = 0)), op = \"%s\")`",
                how);
    return value_error();
  }
  if (!x->own || x->type.dtype == DT_BOOL) {
    report(r, loc,
           x->own ? "`all_reduce` takes numbers, not %s"
                  : "this is the same in all towers: %s, of the whole batch",
           type_text(r->arena, &x->type));
    report_value(r, &args[0]);
    if (!x->own) report_help(r, "write `all_reduce(local(x), op)` of what each tower has of its own rows");
    return value_error();
  }
  build_here(r, loc);
  if (strcmp(how, "mean") == 0 && dtype_is_int((enum dtype)x->type.dtype)) x = build_cast(r->g, x, DT_F32);
  struct attr attrs[3] = {attr_string(ATTR_reduction, how), attr_int(ATTR_each, 1), attr_int(ATTR_given, 1)};
  struct node *y = build(r->g, OP_aggregate, 1, &x, 3, attrs, NULL);
  return y ? value_tensor(r, y, loc) : value_error();
}

const struct builtin builtins_local[] = {
    {"local", {"x"}, 1, run_local},
    {"all_reduce", {"x", "op"}, 2, run_all_reduce},
    {NULL, {NULL}, 0, NULL},
};
