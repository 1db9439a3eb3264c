/* SPDX-License-Identifier: Apache-2.0 */
/* For tests: how much has been done, where a clock would tell more of the machine. */
#ifndef DGC_BASE_WORK_H
#define DGC_BASE_WORK_H

#include <stddef.h>

/* Bytes that all arenas of this thread have handed out since it began, also those that are forgotten or gone. */
size_t work_bytes(void);

#endif
