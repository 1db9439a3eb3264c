/* SPDX-License-Identifier: Apache-2.0 */
/* The resolver: runs the model's text once per graph. Compile-time values are computed, tensor expressions
 * become nodes.
 *
 * A model is run up to three times, as training, evaluation and prediction, as far as it has them; the first run that
 * meets a variable also builds its initial value in the init graph. Errors are kept once, however often their line is
 * run. */
#ifndef DGC_FRONTEND_RESOLVE_H
#define DGC_FRONTEND_RESOLVE_H

#include "frontend/state.h"

/* error.c */
void report(struct resolver *r, struct loc loc, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void report_note(struct resolver *r, struct loc loc, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void report_help(struct resolver *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* A note that tells where a value comes from and what type it has. */
void report_value(struct resolver *r, const struct value *v);
/* What to do where two tensors are to have one type, this one. */
void report_cast(struct resolver *r, const struct value *a, const struct value *b, enum dtype to);
/* A note that tells which of the user's names has this value, if one has. */
void report_number(struct resolver *r, const struct value *v);
/* "did you mean", among the given names. */
void report_closest(struct resolver *r, const char *word, const char *const *names, size_t count);
/* `np.where`, `torch.nn.functional.relu`: reported, if it is a member of a library elsewhere that can be told how it is
 * written here; whether it is. */
bool report_elsewhere(struct resolver *r, const struct expr *e);
bool is_library(const struct resolver *r, struct loc loc);
/* Whether a statement has been found wrong. */
bool any_errors(const struct resolver *r);
/* Of a warning that is given once: whether it has been given, `what` at this place. From now on it has. */
bool told_before(struct resolver *r, struct loc loc, const char *what);

/* scope.c */
struct binding *scope_find(const struct resolver *r, const char *name);
/* A name like this one that nothing has so far. */
const char *free_name(struct resolver *r, const char *name);
/* Finds any visible name; `called`: only what can be called. VALUE_ERROR (silent) if there is none. */
struct value lookup(struct resolver *r, const char *name, bool called);
void report_unknown(struct resolver *r, struct loc loc, const char *name, bool called);
const char *lower_case(struct arena *a, const char *name);
void report_no_member(struct resolver *r, struct loc loc, const struct module *m, const char *name);
/* `name = value` in the current block; `again`: the value is made of what the name was bound to. */
void bind(struct resolver *r, const char *name, struct loc loc, struct value value, bool fixed, bool again);
/* The path of what the block binds as `name`. */
const char *binding_path(struct resolver *r, const char *name);
/* What `name`, bound again to what is made of it, is called in this block: "h#2". */
const char *name_bound_again(struct resolver *r, const char *name);
void scope_push(struct resolver *r);
void scope_pop(struct resolver *r);
/* A function of the language that is not written in it. */
bool is_built_in(const char *name);

/* expr.c */
struct value eval(struct resolver *r, const struct expr *e, const struct role *role);
/* Evaluates to an integer, a string, a truth value; reports and returns false otherwise. `what` names it in
 * messages. */
bool eval_int(struct resolver *r, const struct expr *e, const char *what, int64_t *out);
bool eval_string(struct resolver *r, const struct expr *e, const char *what, const char **out);
bool eval_bool(struct resolver *r, const struct expr *e, bool *out);
/* The path of what stands at `role` in the binding being evaluated. */
const char *role_path(struct resolver *r, const struct role *role);
bool spend(struct resolver *r, struct loc loc);

/* const_eval.c: operators and elementwise ops on compile-time values */
/* Measures a new list and pays for it; false after an error when it is too large. */
bool list_seal(struct resolver *r, struct value *list, struct loc loc);
struct value const_binary(struct resolver *r, enum operator op, const struct value *a, const struct value *b,
                          struct loc loc);
struct value const_op(struct resolver *r, unsigned op, const struct value *v, int n, struct loc loc);

/* tensor.c */
/* What is built next stands at `loc` in the binding being evaluated. */
void build_here(struct resolver *r, struct loc loc);
struct value value_tensor(struct resolver *r, struct node *n, struct loc loc);
/* The value as a node of the graph being built; numbers become constants of `d`. NULL after an error. */
struct node *value_node(struct resolver *r, const struct value *v, enum dtype d);
/* Tensors only. */
struct node *tensor_node(struct resolver *r, const struct value *v, const char *what);
struct value elementwise(struct resolver *r, unsigned op, struct value *v, int n, struct loc loc);
/* What x is where its elements are added up: bytes are i64. */
struct node *added_up(struct resolver *r, struct node *x);
/* The one element type of the tensors in v, into *d; reports two different ones. */
bool common_dtype(struct resolver *r, unsigned op, const struct value *v, int n, struct loc loc,
                  enum dtype *d);
/* Whether the op takes elements of d, which are v's; if not, says so. */
bool dtype_fits(struct resolver *r, unsigned op, const struct value *v, enum dtype d, struct loc loc);
struct value binary_values(struct resolver *r, enum operator op, struct value *v, struct loc loc);

/* all_rows.c: the rows of all towers */
/* x with the rows of the whole batch along its batch axis, which is then N; NULL after an error. */
struct node *all_rows(struct resolver *r, struct node *x, struct loc loc);
/* For a product a @ b: of two sides with the batch along different axes the right one becomes one of all rows, and so
 * does what meets N. */
bool gather_for_product(struct resolver *r, struct node **a, struct node **b, struct loc loc);
/* Help where elementwise operands, aligned at their ends, have the batch along different axes, or meet N. */
void help_pairs(struct resolver *r, struct node *const *x, int n);
struct value run_all_gather(struct resolver *r, struct value *args, struct loc loc, const struct role *role);

/* precision.c */
/* How a variable is stored: bf16, f16, f32 or their names; none leaves what is there. */
bool read_storage(struct resolver *r, const struct value *v, enum dtype *out);
/* `with precision = ...` of the definition whose frame has begun; without it the caller's holds. */
bool apply_settings(struct resolver *r, const struct def *d);
/* Whether f32 operands of a product are rounded to bfloat16: the precision is `v`, or where that is none the one that
 * holds here. Reports one that they cannot have. */
bool rounds_operands(struct resolver *r, const struct value *ab, const struct value *v, struct loc loc,
                     bool *bf16);
/* a @ b in the precision `v`, or where that is none in the one that holds here. */
struct value matmul_in(struct resolver *r, struct value *ab, const struct value *v, struct loc loc);

/* tensor.c: whether a number that is finite is so as d; false after an error */
bool float_fits(struct resolver *r, const struct value *v, enum dtype d);
/* literal.c: a list of numbers as a constant; NULL after an error */
struct node *list_constant(struct resolver *r, const struct value *v, enum dtype d);
/* How what is in a list becomes one tensor. */
void help_list(struct resolver *r, const struct value *v);

/* index.c */
struct value eval_index(struct resolver *r, const struct expr *e, const struct role *role);
/* An expression as a type: `f32[K, units]`, `f32`, `type(x)`. */
bool eval_type(struct resolver *r, const struct expr *e, struct type *out);
bool value_as_type(struct resolver *r, const struct value *v, struct type *out);
bool type_append(struct resolver *r, struct type *t, const struct value *v);
bool type_check(struct resolver *r, const struct type *t, struct loc loc);

/* call.c */
struct value eval_call(struct resolver *r, const struct expr *e, const struct role *role);
/* An optimizer, of r->update.variable; *returned: whether it has, the value. */
struct value call_optimizer(struct resolver *r, const struct function *f, struct value *args, struct loc loc,
                            const char *path, bool *returned);
/* `path` names its values, `owner` its variables. */
struct value call_function(struct resolver *r, const struct function *f, struct value *args, struct loc loc,
                           const char *path, const char *owner);

/* arguments.c */
/* The arguments of a call, one per parameter; those not given are VALUE_NONE with no location. */
bool eval_args(struct resolver *r, const struct expr *e, const struct value *callee, const struct role *role,
               struct value *out);
/* The arguments of `layer.new(...)`: those without a name begin at the second parameter, and any may be missing. */
bool eval_new_args(struct resolver *r, const struct expr *e, const struct value *of, const struct role *role,
                   struct value *out);

/* layer.c: layers that are made once and called often */
/* Whether what is called is `... .new`. */
bool is_maker(const struct expr *callee);
struct value make_layer(struct resolver *r, const struct expr *e, const struct value *of,
                        const struct role *role);
struct value call_layer(struct resolver *r, const struct expr *e, const struct made_layer *layer,
                        struct value *args, const struct role *role);
/* Whether the declaration at `loc` is that of v, run again in another call of a layer that was made. */
bool is_declared_again(const struct resolver *r, const struct variable *v, struct loc loc);
/* Its variable of this name, or what is bound in it. */
struct value layer_member(struct resolver *r, const struct made_layer *layer, const char *name,
                          struct loc loc);

/* curried.c: calls without their input, as other libraries have them; true: the error has been told */
bool report_curried(struct resolver *r, const struct expr *e);
/* Of an argument that should be a function itself. */
bool report_called(struct resolver *r, const struct function *f, const struct param *p, const struct arg *a);
/* Of one that is a number or none. */
bool report_no_function(struct resolver *r, const struct function *f, const struct param *p,
                        const struct value *v);
/* Where a call of a layer lacks an argument: that its input is what it lacks. */
bool help_input_first(struct resolver *r, const struct expr *call, const struct value *callee);
/* A call of what is called there in its turn, `nn.Dense(64)(x)`, of which the first is not known. */
void help_curried(struct resolver *r, const struct expr *e);
/* The call, with the arguments that it has not and must have: `nn.dense(x, units)`. */
void help_call(struct resolver *r, const struct expr *call, const char *const *missing, int count);
/* pattern.c */
bool match_param(struct resolver *r, const struct param *p, struct value *v);
/* Whether a call may give `none`: where it is the default, and where an untyped parameter's function looks at it. */
bool none_fits(struct resolver *r, const struct param *p, const struct value *v);

/* statement_effects.c: every statement that is met yields a node, a declaration or a diagnostic */
void effects_begin(struct resolver *r);
/* A statement has been run; `effects` is what r->effects was before. */
void effects_settle(struct resolver *r, const struct stmt *s, uint64_t effects);
/* After all runs: what was met, and never where it has a meaning. */
void effects_report(struct resolver *r, bool trains);

/* statistic.c: what a tower has of its own rows */
/* n is a statistic of the rows `of`, whatever rows it is computed by. */
void note_statistic(struct resolver *r, struct node *n, const struct node *of);
/* x, read for the rows of one tower: by a `local` of its own in it, or `joined`, by what joins the towers' values. x
 * itself where that is the same; NULL after an error, which is reported at loc. */
struct node *read_for_tower(struct resolver *r, struct node *x, bool joined, struct loc loc);

/* statement.c */
void run_block(struct resolver *r, const struct block *b);

/* scan.c */
void run_scan(struct resolver *r, const struct stmt *s);

/* declare.c */
/* The model's input of this name, or NULL. */
struct model_input *input_named(const struct resolver *r, const char *name);
void declare_input(struct resolver *r, const struct stmt *s);
void declare_data(struct resolver *r, const struct stmt *s);
void declare_strategy(struct resolver *r, const struct stmt *s);

/* variable.c */
void declare_variable(struct resolver *r, const struct stmt *s);
/* Says which variables this run trains. */
void help_trained(struct resolver *r);
struct value step_value(struct resolver *r);
/* What an optimizer reads as `variable`: what that, or its master, has become so far in this step. NULL after an
 * error. */
struct node *variable_now(struct resolver *r, const struct variable *v);
/* n, as the variable holds it: rounded, where it is stored so. */
struct node *stored_in(struct graph *g, const struct variable *v, struct node *n);

/* assign.c */
void run_assign(struct resolver *r, const struct stmt *s);
/* What the step leaves in each variable becomes an output of the graph. */
void finish_updates(struct resolver *r);

/* optimizer.c */
/* Runs what stands behind `with` for the variables that the loss trains; *trains: it leaves not all of them out. False
 * after an error. */
bool run_optimizers(struct resolver *r, const struct stmt *s, const char *loss, struct trained *trained,
                    int count, bool *trains);

/* train.c */
void run_train(struct resolver *r, const struct stmt *s);

/* rate.c: keeps what the optimizer is given as `rate`, if that is a function of `step` */
void keep_rate(struct resolver *r, const struct function *f, const struct value *args, const char *loss);

/* metric.c */
/* A result of the model: an output of r->g, whose name is then taken. */
void give(struct resolver *r, enum output_role role, const char *name, struct node *n, int64_t count);
/* A loss that is no function of totals is given as the mean over the batches. */
void run_metric(struct resolver *r, const char *name, struct loc loc, const struct value *v, bool is_loss);
void run_predict(struct resolver *r, const struct stmt *s);

/* leaf.c */
/* The parameters of an op that the language has under its name; the last of them have defaults. */
int op_params(unsigned op, const char **params, int *required);
struct value op_call(struct resolver *r, unsigned op, struct value *args, struct loc loc);
/* An argument that is true or false; false where it is not given. */
bool value_flag(struct resolver *r, const struct value *v, const char *what, bool *out);

/* builtins.c */
/* Whether `text` is what `pattern` says: * stands for any letters, ? for one. */
/* Whether a pattern is what a path is called, or what it lies below: `h` is also `h.kernel`, as behind `over`. */
bool path_matches(struct arena *a, const char *path, const char *pattern);
extern const struct builtin *const builtin_tables[];
const struct builtin *builtin_find(const char *name);
extern const struct builtin builtins_values[], builtins_reduce[], builtins_shape[], builtins_rows[],
    builtins_conv[], builtins_attention[], builtins_random[], builtins_gradient[], builtins_einsum[],
    builtins_local[];
/* Where x is an input of integers, its data is checked to lie within low and high before it is used. */
void limit_input(struct resolver *r, const struct node *x, int64_t low, int64_t high, struct loc loc);
/* An axis argument: an integer, counted from the end when negative. */
bool value_axis(struct resolver *r, const struct value *v, int rank, int *out);
/* What the elements of n are, wherever they lie, and of whatever type. */
const struct node *node_behind_moves(const struct node *n);
bool value_ints(struct resolver *r, const struct value *v, const char *what, int64_t *out, int *count);

/* builtin_moments.c: [mean, variance] of the floats x over `axes`, a bit mask. */
struct value moments(struct resolver *r, struct node *x, uint32_t axes, struct loc loc);

/* builtin_gradient.c: whether a file calls gradient(y, x) */
bool asks_gradients(const struct file *file);

/* names.c: what a variable is called */
/* What owns the variables of the layer `name` that is called by e, or of the layer that e makes. */
const char *owner_of_call(struct resolver *r, const struct expr *e, const char *name);
/* Whether calls of f make variables: it is a layer, or a function that may call one. */
bool makes_variables(struct resolver *r, const struct function *f);
/* The variable `name` of the definition that is being run. */
const char *variable_path(struct resolver *r, const char *name);

/* module.c */
/* What a module itself knows under a name, NULL if nothing; definitions of the library are parsed here. */
const struct value *module_find(struct resolver *r, const struct module *m, const char *name);
struct module *load_library(struct resolver *r, const char *name);
struct module *load_modules(struct resolver *r, const struct source *source, const struct file *file);
const char *resolve_path(struct resolver *r, const struct source *from, const char *path);

/* parameters.c */
bool model_parameters(struct resolver *r, const struct def *d);
/* unused.c */
void warn_unused(struct resolver *r, const struct file *file);

#endif
