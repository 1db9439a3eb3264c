/* SPDX-License-Identifier: Apache-2.0 */
/* What a training measures of its batches. Losses are weighed by the rows of their batches; metrics are made of totals,
 * as those of evaluation are. */
#include "session/losses.h"

#include "session/metrics.h"

#include "ir/graph/graph.h"

#include <math.h>

/* A batch whose losses are on their way from the devices. */
struct unread {
  const struct loaded *l; /* NULL: none */
  int64_t rows, step;
  struct deferred_read *losses; /* by output of the source graph */
  struct deferred_read *totals;
};

struct losses {
  struct dgc_session *s;
  const struct graph *g;  /* the source of the entry train */
  struct dgc_metric *all; /* by output of it; `value`: the sum over the rows */
  struct dgc_metric *named;
  double sum, rows;
  bool apart;            /* each loss is known */
  struct totals *totals; /* NULL: no metrics are asked for */
  struct dgc_metric *metrics;
  struct unread unread, spare;
};

static void make_room(struct losses *all, struct unread *u) {
  u->losses = arena_new_array(all->s->call, (size_t)all->g->noutputs, struct deferred_read);
  u->totals = arena_new_array(all->s->call, (size_t)all->g->noutputs, struct deferred_read);
}

struct losses *losses_begin(struct dgc_session *s) {
  struct losses *all = arena_new(s->call, struct losses);
  *all = (struct losses){.s = s, .g = entry_source(s, ENTRY_TRAIN)};
  size_t n = (size_t)all->g->noutputs;
  all->all = arena_new_array(s->call, n, struct dgc_metric);
  all->named = arena_new_array(s->call, n, struct dgc_metric);
  for (size_t i = 0; i < n; i++) all->all[i].name = all->g->outputs[i].name;
  int metrics = totals_count(s, ENTRY_TRAIN);
  if (metrics) all->totals = totals_begin(s, ENTRY_TRAIN);
  all->metrics = arena_new_array(s->call, (size_t)metrics + 1, struct dgc_metric);
  make_room(all, &all->unread);
  make_room(all, &all->spare);
  losses_clear(all);
  return all;
}

void losses_clear(struct losses *all) {
  all->sum = all->rows = 0;
  all->apart = true;
  for (int i = 0; i < all->g->noutputs; i++) all->all[i].value = 0;
  if (all->totals) totals_clear(all->totals);
}

static bool is_loss(const struct losses *all, int output) {
  return all->g->outputs[output].role == OUTPUT_LOSS;
}

static int place(const struct losses *all, const struct loaded *l, int output) {
  return plan_output(l->plan, OUTPUT_LOSS, all->g->outputs[output].name);
}

enum dgc_status losses_read_begin(struct losses *all, const struct loaded *l, int64_t rows, int64_t step,
                                  struct odd_loss *odd) {
  struct unread next = all->spare;
  next.l = l;
  next.rows = rows;
  next.step = step;
  odd->l = NULL;
  for (int i = 0; i < all->g->noutputs; i++)
    if (is_loss(all, i) && !exec_read_begin(l->exec, place(all, l, i), &next.losses[i]))
      return session_device_failed(all->s);
  enum dgc_status status = all->totals ? totals_read_begin(all->s, all->totals, l, next.totals) : DGC_OK;
  if (!status) status = losses_read_end(all, odd);
  all->spare = all->unread;
  all->unread = next;
  bool wait = !status && !odd->l && all->totals && totals_wait(all->totals);
  return wait ? losses_read_end(all, odd) : status;
}

enum dgc_status losses_read_end(struct losses *all, struct odd_loss *odd) {
  struct unread *u = &all->unread;
  const struct loaded *l = u->l;
  odd->l = NULL;
  u->l = NULL;
  if (!l) return DGC_OK;
  for (int i = 0; i < all->g->noutputs; i++) {
    if (!is_loss(all, i)) continue;
    double value;
    enum dgc_status status = output_read_end(all->s, l, place(all, l, i), &u->losses[i], &value);
    if (status) return status;
    if (!isfinite(value) && !all->s->options.allow_nan) {
      *odd = (struct odd_loss){l, place(all, l, i), value, u->step};
      return DGC_OK;
    }
    all->all[i].value += value * (double)u->rows;
    all->sum += value * (double)u->rows;
  }
  all->rows += (double)u->rows;
  return all->totals ? totals_read_end(all->s, all->totals, l, u->rows, u->totals) : DGC_OK;
}

void losses_add(struct losses *all, double sum, double rows) {
  all->sum += sum;
  all->rows += rows;
  all->apart = false;
}

double losses_mean(const struct losses *all) { return all->rows > 0 ? all->sum / all->rows : NAN; }

int losses_named(struct losses *all, const struct dgc_metric **out) {
  int count = 0;
  *out = all->named;
  for (int i = 0; i < all->g->noutputs; i++)
    if (is_loss(all, i))
      all->named[count++] =
          (struct dgc_metric){all->all[i].name, all->rows > 0 ? all->all[i].value / all->rows : NAN};
  if (!all->apart && count == 1) all->named[0].value = losses_mean(all);
  return all->apart || count == 1 ? count : 0;
}

int losses_metrics(struct losses *all, const struct dgc_metric **out) {
  struct inner_arena inner;
  *out = all->metrics;
  if (!all->totals || !(all->rows > 0)) return 0;
  session_inner_begin(all->s, &inner);
  totals_finish(all->s, all->totals, all->metrics);
  session_inner_end(&inner);
  return totals_count(all->s, ENTRY_TRAIN);
}
