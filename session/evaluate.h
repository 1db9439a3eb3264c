/* Evaluation over files */
#ifndef DGC_SESSION_EVALUATE_H
#define DGC_SESSION_EVALUATE_H

#include "session/session.h"

/* How many rows there are to evaluate on; -1: nothing to evaluate, or no data. */
enum dgc_status session_evaluation_rows(struct dgc_session *s, int64_t *rows);

#endif
