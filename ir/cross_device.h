/* SPDX-License-Identifier: Apache-2.0 */
/* The algorithms of sums that every device needs, by name: the rows of cross_device.def. */
#ifndef DGC_IR_CROSS_DEVICE_H
#define DGC_IR_CROSS_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

enum cross_device {
#define CROSS_DEVICE(name, bits, planned, help) CROSS_DEVICE_##name,
#include "ir/cross_device.def"
#undef CROSS_DEVICE
  CROSS_DEVICE_COUNT
};

enum sum_bits { BITS_OF_TREE, BITS_OF_DEVICES };
enum sum_planned { PLANNED_APART, PLANNED_APART_ON_ONE_HOST, PLANNED_TOGETHER };

struct cross_device_info {
  const char *name;
  enum sum_bits bits;
  enum sum_planned planned;
  const char *help;
};
/* By number. */
extern const struct cross_device_info cross_devices[CROSS_DEVICE_COUNT];

/* The number of a name, reduce_to_one for NULL; -1 if there is none. */
int cross_device_number(const char *name);

/* Whether a task plans for itself; `hosts`: they are named. */
bool cross_device_apart(enum cross_device algorithm, bool hosts);

/* Which of so many workers makes a sum of so many bytes for all: a large one, and among many workers any, goes to the
 * one that has the least to sum yet, so that none waits for another to do all of it. `summed`: the bytes of each so
 * far; is brought up to date. */
int cross_device_root(int64_t *summed, int workers, int64_t bytes);

#endif
