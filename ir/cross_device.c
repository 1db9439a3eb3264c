/* SPDX-License-Identifier: Apache-2.0 */
/* The table of cross-device algorithms, from cross_device.def, and the search in it. */
#include "ir/cross_device.h"

#include <string.h>

const struct cross_device_info cross_devices[CROSS_DEVICE_COUNT] = {
#define CROSS_DEVICE(name, bits, planned, help) {#name, BITS_OF_##bits, PLANNED_##planned, help},
#include "ir/cross_device.def"
#undef CROSS_DEVICE
};

int cross_device_number(const char *name) {
  if (!name) return CROSS_DEVICE_reduce_to_one;
  for (int i = 0; i < CROSS_DEVICE_COUNT; i++)
    if (strcmp(cross_devices[i].name, name) == 0) return i;
  return -1;
}

/* Below this size a sum is not worth a second worker; among many workers any is, as its root has a message of each. */
enum { SMALL_SUM = 16384, MANY_WORKERS = 64 };

int cross_device_root(int64_t *summed, int workers, int64_t bytes) {
  int best = 0;
  if (workers >= MANY_WORKERS) bytes += SMALL_SUM;
  for (int i = 1; bytes >= SMALL_SUM && i < workers; i++)
    if (summed[i] < summed[best]) best = i;
  summed[best] += bytes;
  return best;
}

bool cross_device_apart(enum cross_device algorithm, bool hosts) {
  enum sum_planned planned = cross_devices[algorithm].planned;
  return planned == PLANNED_APART || (planned == PLANNED_APART_ON_ONE_HOST && !hosts);
}
