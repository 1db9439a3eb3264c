/* SPDX-License-Identifier: Apache-2.0 */
/* What the simulated libraries share: settings from the environment, failures on demand, the list of what
 * has to be destroyed, and the host compiler. */
#ifndef SIMULATED_COMMON_H
#define SIMULATED_COMMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

/* The value of DGC_SIMULATED_<name>. */
const char *sim_setting(const char *name, const char *fallback);
long long sim_number(const char *name, long long fallback);
/* "12.4" is 12040, as CUDA counts versions. */
int sim_version(const char *name, const char *fallback);

/* Called once per call of an entry point: is this the one that DGC_SIMULATED_FAIL="NAME:nth,..." lets fail? */
bool sim_fails(const char *entry_point);
/* Is `name` in a list like "cuGraphLaunch,cuEventQuery"? */
bool sim_listed(const char *list, const char *name);

/* One line on stderr that says why a call is refused; for mistakes that real hardware would often let pass. */
void sim_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The first member of everything behind a handle. `magic` stays readable for a while after the end, so that a
 * handle that is used too late is recognised. What has not ended when the process does is a leak. */
struct object {
  unsigned magic;
  const char *kind; /* one of the strings below, compared by address */
  int device;       /* -1: none */
  unsigned generation;
  unsigned serial;
  struct object *next, *previous;
};

extern const char kind_context[], kind_stream[], kind_event[], kind_module[], kind_function[], kind_graph[],
    kind_exec[], kind_memory[], kind_host_memory[], kind_program[], kind_handle[], kind_communicator[];

void object_begin(struct object *o, const char *kind, int device);
bool object_is(const struct object *o, const char *kind);
void object_end(struct object *o);  /* from now on it is not one; no leak any more */
void object_bury(struct object *o); /* frees its memory, later */

/* Rewrites CUDA C into C behind the text of module.h and shim.h: see rewrite.c. NULL and a message if it
 * cannot. Both are malloc'ed. */
char *sim_rewrite(const char *text, const char *name, char **message);

/* Runs the host compiler on C text. The shared object's bytes, malloc'ed, or NULL. `log`: what the compiler
 * said, malloc'ed; may be empty. `contract`: a*b+c may become one operation. What the cache holds already needs
 * no compiler. */
void *sim_compile(const char *text, bool contract, size_t *bytes, char **log);

/* The head of a simulated cubin; the shared object follows. PTX is text: a line that begins with SIM_PTX and
 * ends with the architecture's number, then the rewritten C. */
#define SIM_CUBIN "simulated cubin"
#define SIM_PTX   "// simulated PTX, sm_"
struct cubin {
  char magic[16];
  uint32_t arch, bytes;
};

#endif
