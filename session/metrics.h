/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics: totals over batches, and the formulas that make metrics of them */
#ifndef DGC_SESSION_METRICS_H
#define DGC_SESSION_METRICS_H

#include "session/model.h"

struct deferred_read;
struct loaded;
struct totals;

/* What the metrics of the entry eval are made of, before the first batch, or those of the entry train, which has some
 * where the option train-metrics asks for them. It lives as long as the call. */
struct totals *totals_begin(struct dgc_session *s, enum entry_kind kind);
/* How many metrics come of it. */
int totals_count(const struct dgc_session *s, enum entry_kind kind);
/* As before the first batch. */
void totals_clear(struct totals *t);
/* Adds what the run of a batch of so many rows gave. */
enum dgc_status totals_add(struct dgc_session *s, struct totals *t, const struct loaded *l, int64_t rows);
/* The same in two parts: `reads` are as many as the source graph has outputs. Where totals_wait is false, other runs
 * may begin between the two. */
enum dgc_status totals_read_begin(struct dgc_session *s, struct totals *t, const struct loaded *l,
                                  struct deferred_read *reads);
enum dgc_status totals_read_end(struct dgc_session *s, struct totals *t, const struct loaded *l, int64_t rows,
                                const struct deferred_read *reads);
bool totals_wait(const struct totals *t);
/* The metrics of all that was added, in the order of the model's text, totals_count of them. Their names live as long
 * as the model. */
void totals_finish(struct dgc_session *s, const struct totals *t, struct dgc_metric *metrics);
/* The learning rates of a step, from 0, each called as its loss; how many are known. */
int session_rates(struct dgc_session *s, int64_t step, struct dgc_metric *out);
/* The sum that a metric of one mean is made of, and what it is divided by, 0 if by nothing, by the index of the output
 * of the entry's source graph. */
void totals_average(const struct totals *t, int output, double *sum, double *count);
/* Element i of dense data. */
double number_at(enum dtype d, const void *data, int64_t i);
/* The elements of another output, each as a number. */
void totals_elements(const struct totals *t, int output, double *out);

#endif
