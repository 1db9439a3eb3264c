/* SPDX-License-Identifier: Apache-2.0 */
/* An open plugin: its client and devices, and what programs and variables are made of on them. */
#ifndef DGC_RUNTIME_PJRT_ENGINE_H
#define DGC_RUNTIME_PJRT_ENGINE_H

#include "runtime/backend.h"
#include "runtime/pjrt/abi.h"

#include <pthread.h>

/* A library that is loaded; it stays so until the process ends, as plugins are not made to be unloaded. */
struct pjrt_plugin {
  const char *file;
  const struct pjrt_table *table;
  bool initialised;
};

/* Loads the plugin and checks its version. Files are loaded once for the process. NULL after an error in `d`. */
const struct pjrt_plugin *pjrt_load(const char *file, struct diags *d);
/* Whether the plugin's table has all calls up to this one. */
bool pjrt_has(const struct pjrt_plugin *p, enum pjrt_call call);

/* One call of the plugin: what it gives is an error of its own, or NULL. `args` is a structure of abi.h that was made
 * with PJRT_ARGS. */
void *pjrt_invoke(const struct pjrt_plugin *p, enum pjrt_call call, void *args);
#define PJRT_ARGS(name, ...) \
  { .struct_size = sizeof(struct pjrt_##name), __VA_ARGS__ }
/* The plugin's own text of an error, in `a`; the error is given back. */
const char *pjrt_error_text(struct arena *a, const struct pjrt_plugin *p, void *error);
void pjrt_error_drop(const struct pjrt_plugin *p, void *error);

/* The devices of a client that this process can use. */
struct pjrt_listed {
  const char *platform;
  int count;
  void *const *devices; /* the client's */
  int *ids;             /* by which the plugin assigns programs to devices */
  const char **kinds;
};
/* A client of the plugin with `wanted` devices, if it can make as many, and what it has, in `a`. NULL after an
 * error. */
void *pjrt_client_create(struct arena *a, const struct pjrt_plugin *p, int wanted, struct pjrt_listed *out,
                         struct diags *d);
/* NULL is allowed. */
void pjrt_client_destroy(const struct pjrt_plugin *p, void *client);

enum { PJRT_MESSAGE = 1024 };

/* A value that is read later. */
struct pjrt_read {
  void *event; /* NULL: it is there */
  bool taken;
  char value[DEFERRED_BYTES];
};

struct pjrt_device {
  void *device; /* the plugin's; NULL: it is of another backend */
  int id;       /* see struct pjrt_listed */
  const char *text;
  const char *kind; /* as the plugin calls it */
};

struct pjrt_engine {
  struct arena *arena;
  const struct pjrt_plugin *plugin;
  void *client;
  struct pjrt_device *devices; /* by device of the target */
  int ndevices;
  struct pjrt_cell *cells; /* all that hold something */
  struct pjrt_read reads[DEFERRED_READS];
  struct pjrt_loaded *loaded;  /* compiled modules */
  struct pjrt_loaded *running; /* the one that was executed last, if nobody has waited for it */
  int launches;
  int first;            /* device of this backend */
  uint64_t begun, busy; /* of the last run, in nanoseconds */
  int limit;            /* seconds; 0: none */
  bool is_cpu;          /* XLA's CPU backend, which has options of its own */
  _Atomic bool *lost;
  _Atomic bool failed;
  pthread_mutex_t lock; /* of the message */
  char message[PJRT_MESSAGE];
};

/* Notes the first failure: "Execute on /pjrt:0: RESOURCE_EXHAUSTED: ...". */
void pjrt_fail(struct pjrt_engine *e, int device, const char *call, const char *text);
/* One call; false and noted if it fails, or something has failed before. */
bool pjrt_do(struct pjrt_engine *e, int device, enum pjrt_call call, const char *name, void *args);
#define PJRT(e, device, name, args) pjrt_do(e, device, CALL_##name, #name, args)
/* Waits for the event and gives it back. False: what it waits for has failed, or takes longer than the limit. */
bool pjrt_await(struct pjrt_engine *e, int device, void *event);

/* --- values --- */

/* What lies at an address of a device: there is a cell at each address that a plan or the store names, which holds the
 * host's bytes until a program takes them, or buffers of the plugin: one, or the shares of several devices, whose rows
 * follow each other. */
struct pjrt_cell {
  struct pjrt_cell *next, **link; /* in the list of the engine */
  void *host;
  size_t bytes;
  void **parts;
  int nparts;
  int device; /* where the only part is */
};
void pjrt_cell_clear(struct pjrt_engine *e, struct pjrt_cell *c);
/* Buffers that are the cell's from now on, each of `bytes` bytes. */
void pjrt_cell_hold(struct pjrt_engine *e, struct pjrt_cell *c, int device, int nparts, void *const *parts,
                    size_t bytes);
/* A buffer of the cell's value on the device, of part `part` of `nparts` along the first axis. *own: the caller
 * destroys it; else it is the cell's. NULL after a failure. */
void *pjrt_cell_buffer(struct pjrt_engine *e, struct pjrt_cell *c, int device, const struct type *t, int part,
                       int nparts, bool *own);
void pjrt_buffer_destroy(struct pjrt_engine *e, void *buffer);

void *pjrt_alloc(void *self, int device, size_t bytes);
void pjrt_free(void *self, int device, void *data, size_t bytes);
bool pjrt_copy(void *self, void *to, int to_device, const void *from, int from_device, size_t bytes);
bool pjrt_read_begin(void *self, int device, const void *from, size_t bytes, unsigned *number);
bool pjrt_read_end(void *self, int device, unsigned number, void *to, size_t bytes);

/* --- programs --- */

/* The program that the plugin makes of the module, or that it has made before of the same. NULL after an error. */
void *pjrt_program_make(const struct pjrt_engine *e, const struct plan_module *m, struct diags *d);
void pjrt_program_destroy(const struct pjrt_engine *e, void *loaded);
/* What of a program is not its devices', to be closed; gives the plugin's error, or NULL. */
void *pjrt_program_open(const struct pjrt_engine *e, void *loaded, void **executable);
void pjrt_program_close(const struct pjrt_engine *e, void *executable);

/* --- modules --- */

/* Compiles a MODULE step. */
bool pjrt_prepare(void *self, struct arena *a, const struct step *step, int device, struct command *c,
                  struct diags *d);
bool pjrt_module_memory(void *self, const struct plan_module *m, struct module_memory *out, struct diags *d);
void pjrt_close_modules(struct pjrt_engine *e);
/* Waits for what was executed last. */
void pjrt_await_all(struct pjrt_engine *e);
/* Whether that is done, or has failed. */
bool pjrt_all_ready(struct pjrt_engine *e);

#endif
