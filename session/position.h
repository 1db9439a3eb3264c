/* SPDX-License-Identifier: Apache-2.0 */
/* Where a training that goes on stands in its data */
#ifndef DGC_SESSION_POSITION_H
#define DGC_SESSION_POSITION_H

#include "runtime/data/data.h"
#include "session/session.h"

/* The position that a checkpoint had becomes one in batches of `batch` rows of the dataset; a warning says where its
 * epoch cannot end as it began. */
enum dgc_status session_fit_position(struct dgc_session *s, int64_t batch, const struct dataset *ds);

#endif
