/* SPDX-License-Identifier: Apache-2.0 */
/* Where a training that goes on stands in its data */
#ifndef DGC_SESSION_POSITION_H
#define DGC_SESSION_POSITION_H

#include "session/session.h"

/* The position that a checkpoint had becomes one in batches of `batch` of `rows` rows; a warning says where its epoch
 * cannot end as it began. */
void session_fit_position(struct dgc_session *s, int64_t batch, int64_t rows);

#endif
