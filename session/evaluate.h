/* Metrics: what a sum over rows becomes */
#ifndef DGC_SESSION_EVALUATE_H
#define DGC_SESSION_EVALUATE_H

#include "session/session.h"

struct graph;
struct output;

/* A sum that is divided: by the sum that a ratio has below it, or by a number of elements, 0 if by nothing. */
double metric_value(double sum, double count, bool ratio);
/* The output that the metric is divided by: NULL unless it is a ratio. */
const struct output *metric_divisor(const struct graph *g, const struct output *metric);
/* How many rows there are to evaluate on; -1: nothing to evaluate, or no data. */
enum dgc_status session_evaluation_rows(struct dgc_session *s, int64_t *rows);

#endif
