/* SPDX-License-Identifier: Apache-2.0 */
/* Evaluation over files */
#ifndef DGC_SESSION_EVALUATE_H
#define DGC_SESSION_EVALUATE_H

#include "session/session.h"

struct dataset;

/* The data that a training evaluates on, which is the caller's to close; NULL: nothing to evaluate, or no data. Unless
 * it evaluates `often`, while it trains, rows stay in their files: headers, shapes and ranges are looked at. */
enum dgc_status session_test_data(struct dgc_session *s, bool often, struct dataset **data);
/* The model's metrics over all of it. DGC_STOPPED, and nothing is reported, where dgc_stop was called, which is still
 * to be answered; where tasks are processes, that does not end it. Names live as long as the model. */
enum dgc_status session_evaluate(struct dgc_session *s, const struct dataset *data, struct dgc_metric *out);
/* Tasks of a cluster train alike, and have data to evaluate on or not: see agree.h. */
enum dgc_status session_agree_to_train(struct dgc_session *s, const struct dataset *data);

#endif
