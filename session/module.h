/* SPDX-License-Identifier: Apache-2.0 */
/* Plans for other compilers: the graph of an entry as one module */
#ifndef DGC_SESSION_MODULE_H
#define DGC_SESSION_MODULE_H

#include "ir/plan/plan.h"
#include "session/session.h"

/* The last pass before a graph becomes a module: the towers stand side by side, and nothing is in pieces. */
extern const char module_pass[];
/* How many devices carry towers. */
int module_devices(const struct graph *g);
/* Whether the session's devices run modules, not steps: those of a PJRT plugin. */
bool session_runs_modules(const struct dgc_session *s);
/* An error where the devices, or what was asked of them, cannot be run so. */
enum dgc_status session_check_modules(struct dgc_session *s);
/* The replicated graph as a plan of one module, in `a`. All its variables are in the plan. Where the devices cannot
 * share the rows of a batch of `few` rows or fewer, the first of them does all of it. NULL after an error. */
struct plan *module_plan(struct dgc_session *s, struct arena *a, const struct graph *g, int64_t few);
/* A plan that only has the variables of the graph. */
struct plan *module_variables(struct dgc_session *s, struct arena *a, const struct graph *g);

#endif
