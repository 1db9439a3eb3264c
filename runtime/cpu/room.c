/* SPDX-License-Identifier: Apache-2.0 */
/* A device runs one step at a time, and so one room serves all that its threads share in a step. */
#include "runtime/cpu/leaf.h"

#include "base/integer.h"
#include "base/line.h"

#include <stdlib.h>
#include <string.h>

/* The place of the device's room; NULL if there is no memory. */
static struct cpu_room **place_of(struct cpu *cpu, int device) {
  if (device >= cpu->nrooms) {
    int count = device + 1;
    struct cpu_room **more = realloc(cpu->rooms, (size_t)count * sizeof(struct cpu_room *));
    if (!more) return NULL;
    memset(more + cpu->nrooms, 0, (size_t)(count - cpu->nrooms) * sizeof(struct cpu_room *));
    cpu->rooms = more, cpu->nrooms = count;
  }
  return &cpu->rooms[device];
}

static bool grow(struct cpu_room *r, size_t size) {
  if (size <= r->size) return true;
  char *data = aligned_alloc(CACHE_LINE, size_round_up(size, CACHE_LINE));
  if (!data) return false;
  free(r->data);
  *r = (struct cpu_room){data, size};
  return true;
}

struct cpu_room *cpu_room(struct cpu *cpu, size_t size) {
  struct cpu_room **place = place_of(cpu, cpu->device);
  if (place && !*place) *place = calloc(1, sizeof(struct cpu_room));
  return place && *place && grow(*place, size) ? *place : NULL;
}

void cpu_destroy_rooms(struct cpu *cpu) {
  for (int i = 0; i < cpu->nrooms; i++) {
    if (cpu->rooms[i]) free(cpu->rooms[i]->data);
    free(cpu->rooms[i]);
  }
  free(cpu->rooms);
}
