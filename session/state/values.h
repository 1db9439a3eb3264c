/* SPDX-License-Identifier: Apache-2.0 */
/* The values of the variables */
#ifndef DGC_SESSION_STATE_VALUES_H
#define DGC_SESSION_STATE_VALUES_H

#include <stdbool.h>

struct arena;
struct checkpoint;
struct store;

/* Values of variables that have no place at present. */
struct kept {
  struct arena *arena;
  struct checkpoint *values; /* NULL: none */
};

struct values {
  struct store *store; /* their memory; NULL: they have none yet */
  bool initialised;    /* they are there, */
  struct kept kept;    /* or these are to be theirs */
  bool moves;          /* another settlement put them where they lie */
  const char *seeds;   /* a digest of the first values that came from files; NULL: none did */
};

#endif
