/* Metrics: totals over batches, and the formulas that make metrics of them */
#ifndef DGC_SESSION_METRICS_H
#define DGC_SESSION_METRICS_H

#include "session/session.h"

struct loaded;
struct totals;

/* What the metrics of the entry eval are made of, before the first batch. It lives as long as the call. */
struct totals *totals_begin(struct dgc_session *s);
/* Adds what the run of a batch of so many rows gave. */
enum dgc_status totals_add(struct dgc_session *s, struct totals *t, const struct loaded *l, int64_t rows);
/* The metrics of all that was added, in the order of the model's text, as many as it has measures. Their names live as
 * long as the model. */
void totals_finish(struct dgc_session *s, const struct totals *t, struct dgc_metric *metrics);
/* The sum that a metric of one mean is made of, and what it is divided by, 0 if by nothing, by the index of the output
 * of the entry's source graph. */
void totals_average(const struct totals *t, int output, double *sum, double *count);
/* The elements of another output. */
const double *totals_elements(const struct totals *t, int output);

#endif
