/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of sessions share: a small model, its data, and a session that has it. They fail as cmocka's do. */
#ifndef TESTS_UNIT_SESSION_H
#define TESTS_UNIT_SESSION_H

#include "include/dgc.h"

enum { ROWS = 7 };
/* Inputs x : f32[B, 3] and y : f32[B, 1]; it trains, has the metric `error` and predicts `guess`. */
extern const char small_model[];
extern float x[ROWS * 3], y[ROWS];

/* Fills x and y, and goes to a folder that is gone with the test, as cmocka's setup of a group. */
int fill(void **state);
/* A new session with the model; the caller destroys it. */
struct dgc_session *open_with(const char *devices, const char *towers);
/* One batch of the first rows of x and y. */
enum dgc_status run(struct dgc_session *s, const char *entry, int rows, void *const *outputs);
/* The loss of the last of so many steps. */
float loss_after(struct dgc_session *s, int steps);
/* ROWS rows of f32 as an npy file; `path` is a template of mkstemp. */
void write_npy(const char *path, const float *data, int columns);

#endif
