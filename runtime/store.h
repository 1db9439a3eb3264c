/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory that outlives plans: the variables of a session by name, and one arena per device. */
#ifndef DGC_RUNTIME_STORE_H
#define DGC_RUNTIME_STORE_H

#include "runtime/engines.h"

struct stored_variable {
  const char *name; /* in its plans: "h.kernel", "h.kernel/replica_1" */
  struct type type;
  int device;
  void *data;
  size_t bytes;
  struct variable_identity identity;
  bool filled; /* holds a value: initialised, restored or copied from its primary */
};

struct store;

struct store *store_create(const struct engines *engines);
/* NULL is allowed. */
void store_destroy(struct store *s);

/* The variable of this name, or NULL. */
struct stored_variable *store_find(const struct store *s, const char *name);
/* The variable of this name, made if it is not there: a replica starts with the value of its primary. `identity` is
 * copied. NULL after an error in `d`: no memory, or it is there with another type or device. */
struct stored_variable *store_variable(struct store *s, const char *name, const struct type *type,
                                       const struct variable_identity *identity, int device, struct diags *d);
/* What a replica is a copy of: its primary, or, where another process has that, the first replica of this process; NULL
 * if that is `v` itself, or `v` is no replica. */
struct stored_variable *store_primary(const struct store *s, const struct stored_variable *v);
int store_count(const struct store *s);
struct stored_variable *store_at(const struct store *s, int i); /* in the order of their making */
/* These are false when a device has failed: see engines_status. Where tasks are processes, all of them do the same: of
 * what they write, each keeps its own, and all have what is read. */
/* Gives every replica the value of its primary. */
bool store_broadcast(struct store *s);
bool store_read(const struct store *s, const struct stored_variable *v, void *out);
bool store_write(struct store *s, struct stored_variable *v, const void *data);

/* The arena of a device with at least `bytes`. A larger one than before replaces the old: its contents are
 * lost and pointers into it are out of date, see store_generation. NULL without memory. */
void *store_arena(struct store *s, int device, size_t bytes);
/* Counts replacements of arenas. */
unsigned store_generation(const struct store *s);

#endif
