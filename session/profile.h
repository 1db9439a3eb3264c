/* SPDX-License-Identifier: Apache-2.0 */
/* Where the time of a step goes */
#ifndef DGC_SESSION_PROFILE_H
#define DGC_SESSION_PROFILE_H

#include "session/run.h"
#include "session/session.h"

struct plan;

/* What timed runs add up: by device and step of its plan, those in loops too (struct exec_times). */
struct profile {
  struct step_time **steps;
  uint64_t wall, worked; /* of all runs, nanoseconds */
  int runs;
};

/* For this plan, with nothing in it, in the session's call. An error where there is a device whose work runs behind the
 * host: its steps cannot be timed one by one. */
enum dgc_status profile_begin(struct dgc_session *s, const struct plan *p, struct profile *out);
/* Seconds of a step as `roof` of struct dgc_bench; `out` knows the threads, the peak and the bandwidth. */
double profile_roof(const struct dgc_session *s, const struct plan *p, const struct dgc_bench *out);
/* The lines of `out`, which knows the peak and the bandwidth: those of the steps in a loop behind that of the loop. */
void profile_lines(struct dgc_session *s, const struct loaded *l, const struct profile *x,
                   struct dgc_bench *out);
/* The places of `out`: x is a profile on several devices or threads, `alone` one of another session, of the same model
 * and batch on one thread of one device. */
void profile_places(struct dgc_session *s, const struct plan *p, const struct profile *x,
                    const struct plan *alone_plan, const struct profile *alone, struct dgc_bench *out);

#endif
