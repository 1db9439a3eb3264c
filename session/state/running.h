/* SPDX-License-Identifier: Apache-2.0 */
/* What runs: devices, threads and plans */
#ifndef DGC_SESSION_STATE_RUNNING_H
#define DGC_SESSION_STATE_RUNNING_H

struct engines;
struct workers;
struct loaded;

struct running {
  struct engines *engines;
  struct workers *workers;
  struct loaded *plans;
};

#endif
