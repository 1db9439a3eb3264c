/* SPDX-License-Identifier: Apache-2.0 */
/* What tests set up and take down. */
#ifndef TESTS_SUPPORT_FIXTURE_H
#define TESTS_SUPPORT_FIXTURE_H

#include "tests/support/engine.h"

/* For a group of tests: interp and, where this build has it, cpu, two threads each. */
extern struct engine engines[2];
extern int nengines;
int open_engines(void **state);
int close_engines(void **state);

/* A program for GPUs does all in one test, which first asks whether there are any, and opens the device: a simulated
 * one sees to faults of memory itself, and each test of the framework begins with seeing to them instead. gpus_found:
 * how many; a line says what they are, or "SKIP: " and why there is none. gpu_status: the exit status of a program with
 * so many failures; 77 where there was no GPU. */
int gpus_found(bool *simulated);
int gpu_status(int failures);

/* For one test: an arena, diagnostics and an empty folder; *state is a struct world *. */
struct world {
  struct arena *arena;
  struct diags diags;
  char folder[220];
};
int open_world(void **state);
int close_world(void **state);
/* The path of a file there. */
char *in_folder(struct world *w, const char *name);

/* A number from the environment, as TEST_SEED. */
uint64_t number_from(const char *variable, uint64_t otherwise);

/* "x 1 2 ; y 3": moves on to the next name (63 characters at most) and its numbers; false at the end. */
bool next_entry(const char **p, char *name, double *numbers, int *count);
/* Which of these values are not so, to the last bits of an f64: NULL, or what is wrong. */
const char *wrong_entries(struct arena *a, const char *text, const struct values *outputs,
                          const struct values *variables);

#endif
