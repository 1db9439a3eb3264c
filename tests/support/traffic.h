/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that the commands of a loaded plan move from one device to another in a run. */
#ifndef DGC_TESTS_SUPPORT_TRAFFIC_H
#define DGC_TESTS_SUPPORT_TRAFFIC_H

#include "runtime/exec.h"

int64_t commands_traffic(const struct exec *e, int from, int to);

#endif
