/* SPDX-License-Identifier: Apache-2.0 */
/* A file that a process goes on replacing, so that no other one does meanwhile. As the file is another one each time,
 * it is its folder that is locked, at a place that stands for the name: the system forgets that when the process
 * ends, however it does, nothing lies on the disk, and who reads is not asked. */
#ifndef DGC_RUNTIME_DATA_CLAIM_H
#define DGC_RUNTIME_DATA_CLAIM_H

#include "base/arena.h"

#include <stdbool.h>
#include <stdint.h>

struct file_claim {
  int fd; /* of the folder; -1: nothing is claimed */
};

/* False: another has it, in the process *holder. What cannot be locked counts as claimed: a pipe, a device, what lies
 * in a folder that cannot be read or has no locks. */
bool claim_file(struct arena *a, const char *path, struct file_claim *out, long *holder);
void claim_end(struct file_claim *c);
/* Another number once the file is replaced or written to; 0: it is not there. */
uint64_t claim_stamp(const char *path);

#endif
