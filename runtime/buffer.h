/* Device memory that outlives plans: the variables of a session by name, and one arena per device. */
#ifndef DGC_RUNTIME_BUFFER_H
#define DGC_RUNTIME_BUFFER_H

#include "runtime/backend.h"

struct variable {
  const char *name; /* "h.kernel", "h.kernel/replica_1" */
  struct type type;
  int device;
  void *data;
  size_t bytes;
  bool filled; /* holds a value: initialised, restored or copied from its primary */
};

struct store;

struct store *store_create(const struct backend *backend, void *self, int ndevices);
/* NULL is allowed. */
void store_destroy(struct store *s);

/* The variable of this name, or NULL. */
struct variable *store_find(const struct store *s, const char *name);
/* The variable of this name, made if it is not there: a copy ("v/replica_1") starts with the value of its
 * primary. NULL after an error in `d`: no memory, or it is there with another type or device. */
struct variable *store_variable(struct store *s, const char *name, const struct type *type, int device,
                                struct diags *d);
int store_count(const struct store *s);
struct variable *store_at(const struct store *s, int i); /* in the order of their making */
/* "v" of "v/replica_3", into `a`; NULL if `name` is a primary copy itself. */
const char *variable_primary(struct arena *a, const char *name);
/* Gives every copy the value of its primary. */
void store_spread(struct store *s);
void store_read(const struct store *s, const struct variable *v, void *out);
void store_write(struct store *s, struct variable *v, const void *data);

/* The arena of a device with at least `bytes`. A larger one than before replaces the old: its contents are
 * lost and pointers into it are out of date, see store_generation. NULL without memory. */
void *store_arena(struct store *s, int device, size_t bytes);
/* Counts replacements of arenas. */
unsigned store_generation(const struct store *s);

#endif
