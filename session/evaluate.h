/* SPDX-License-Identifier: Apache-2.0 */
/* Evaluation over files */
#ifndef DGC_SESSION_EVALUATE_H
#define DGC_SESSION_EVALUATE_H

#include "session/session.h"

struct dataset;

/* How many rows there are to evaluate on; -1: nothing to evaluate, or no data. */
enum dgc_status session_evaluation_rows(struct dgc_session *s, int64_t *rows);
/* The data to evaluate on, which is the caller's to close, and all that is needed for that. */
enum dgc_status session_evaluation_open(struct dgc_session *s, struct dataset **data);
/* The model's metrics over all of it. DGC_STOPPED, and nothing is reported, where dgc_stop was called, which is still
 * to be answered; where tasks are processes, that does not end it. Names live as long as the model. */
enum dgc_status session_evaluate(struct dgc_session *s, const struct dataset *data, struct dgc_metric *out);

#endif
