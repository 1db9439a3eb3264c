/* SPDX-License-Identifier: Apache-2.0 */
/* What a plan takes: bytes of memory by what they hold, bytes that move between devices in one run. The figures
 * are those of the commands that the runtime makes of it: tests/towers/test_traffic.c compares them. */
#ifndef DGC_IR_PLAN_REPORT_H
#define DGC_IR_PLAN_REPORT_H

#include "ir/plan/plan.h"

/* What a value is for. */
enum purpose {
  PURPOSE_VARIABLE, /* also a copy of one */
  PURPOSE_SLOT,     /* what an optimizer keeps */
  PURPOSE_CONSTANT,
  PURPOSE_INPUT, /* the batch and slices of it */
  PURPOSE_ACTIVATION,
  PURPOSE_GRADIENT,
  PURPOSE_UPDATE, /* what variables become */
  PURPOSE_RESULT, /* nothing but an output needs it */
  PURPOSE_COUNT
};
extern const char *const purpose_names[PURPOSE_COUNT]; /* "variable": one; more of them have an s */

/* By node id. */
uint8_t *graph_purposes(struct arena *a, const struct graph *g);
/* Of what a buffer holds first. */
enum purpose buffer_purpose(const struct plan *p, const uint8_t *purposes, const struct plan_buffer *b);

/* What each device of a plan holds, so that all of them are gone through once: numbers of its buffers and ids of its
 * nodes, ascending; those of device d end where those of d + 1 begin. */
struct inventory {
  const struct plan *plan;
  const uint8_t *purposes; /* of the plan's graph */
  struct held {
    const int *first, *number;
  } buffers, nodes;
};
/* Lives in `a`. */
struct inventory plan_inventory(struct arena *a, const struct plan *p);

struct memory_need {
  int64_t total;                  /* variables, slots, constants and the arena */
  int64_t fixed[PURPOSE_COUNT];   /* outside of the arena */
  int64_t arena, peak;            /* bytes of the arena; alive at once, at `step` */
  int64_t at_peak[PURPOSE_COUNT]; /* sum to `peak`; what is missing to `arena` are gaps */
  int step;
};
/* What a device computes for the second time in a run, so as not to keep it. */
struct repeated {
  int values; /* that are stored */
  int64_t bytes, flops;
};
struct repeated plan_repeated(const struct inventory *v, int device);
/* Whether `n`, a node of the plan's graph, or of a kernel what it gives, is computed for the second time. */
bool is_repeated(const struct node *n);

struct memory_need memory_need(struct arena *a, const struct inventory *v, int device);

/* A copy from one device to another, or what a device's part of a collective sends to the next one: see
 * collective_bytes. NCCL may take another way. */
struct transfer {
  const struct node *node;
  int from, to;
  int step;      /* of device `by`; -1: an alias, which moves nothing */
  int by;        /* the device that copies */
  int64_t bytes; /* 0: an alias */
  enum purpose purpose;
  bool collective;
};
/* Ascending by edge, then by step; aliases last. */
struct transfer *plan_transfers(struct arena *a, const struct plan *p, int *count);

/* What is alive at each device's peak, and what it is for. */
void plan_print_memory(struct str *s, const struct plan *p);
/* Each edge between devices with its copies, and totals. */
void plan_print_traffic(struct str *s, const struct plan *p);
void plan_print_memory_json(struct str *s, const struct plan *p);
void plan_print_traffic_json(struct str *s, const struct plan *p);

#endif
