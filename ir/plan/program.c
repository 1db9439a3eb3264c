/* SPDX-License-Identifier: Apache-2.0 */
/* Predicts how long a program takes: goes through its events once, for all tasks (a crew) side by side. All tasks have
 * the same events in the same order; what differs is when each one's link is free, and which sums it adds up. A task
 * that takes several results in a row begins none of them later for the others: it waits when it computes next. */
#include "ir/plan/program.h"

#include "ir/target.h"

struct crew_walk {
  const struct program *p;
  const struct crew *crew;
  const struct speeds *m;
  enum cross_device algorithm;
  double *clock;         /* by task: when it has done what it does itself */
  double *wanted;        /* by task: when all that it takes is there */
  double *sends, *takes; /* by task: when its link is free */
  struct link_load *loads;
  int *first;    /* by task, and one more: its first tower */
  int64_t *rows; /* by task */
  int *pieces,
      all_pieces;       /* by task: how many sums of its towers it sends for a sum that another task makes */
  int *sums, *root;     /* by exchange: how many sums came before; the task that makes the sum alone */
  int *begin, *members; /* with hosts: the tasks of host h, from begin[h] on */
  double *there, *last; /* by task: when a sum came to it, and the last part of one */
  double **ready;       /* by exchange, once it is given: by task, when all for it is there */
  bool *taken;          /* by exchange */
};

/* How a sum is made. */
enum summing { SUM_ONE, SUM_HALVES, SUM_PARTS, SUM_RING };

static enum summing summing_of(const struct crew_walk *w, const struct exchange *x) {
  bool parts = x->adds && x->elements >= w->crew->tasks;
  switch (w->algorithm) {
  case CROSS_DEVICE_hierarchical_copy: return SUM_HALVES;
  case CROSS_DEVICE_scatter: return parts ? SUM_PARTS : SUM_ONE;
  case CROSS_DEVICE_ring: return parts ? SUM_RING : SUM_ONE;
  case CROSS_DEVICE_reduce_to_one:
  case CROSS_DEVICE_nccl:
  case CROSS_DEVICE_COUNT: break;
  }
  return SUM_ONE;
}

static double later(double a, double b) { return a > b ? a : b; }

/* ---- links ---- */

/* So many messages leave a task from `begin` on; when the last one has. */
static double leave(struct crew_walk *w, int task, double begin, int64_t messages, int64_t bytes) {
  double takes = (double)messages * w->m->delay + (double)bytes / w->m->link;
  w->loads[task].messages_sent += messages;
  w->loads[task].bytes_sent += bytes;
  return w->sends[task] = later(w->sends[task], begin) + takes;
}

static double arrive(struct crew_walk *w, int task, double begin, int64_t messages, int64_t bytes) {
  double takes = (double)messages * w->m->delay + (double)bytes / w->m->link;
  w->loads[task].messages_received += messages;
  w->loads[task].bytes_received += bytes;
  return w->takes[task] = later(w->takes[task], begin) + takes;
}

/* One message; when it is there. */
static bool same_host(const struct crew_walk *w, int a, int b) {
  return w->crew->host && w->crew->host[a] == w->crew->host[b];
}

static double message(struct crew_walk *w, int from, int to, double begin, int64_t bytes) {
  if (same_host(w, from, to)) { /* by their memory, beside the network */
    w->loads[from].messages_sent++;
    w->loads[from].bytes_sent += bytes;
    w->loads[to].messages_received++;
    w->loads[to].bytes_received += bytes;
    return begin + speeds_work(w->m, 0, 2 * (double)bytes);
  }
  double left = leave(w, from, begin, 1, bytes);
  return later(left, arrive(w, to, begin, 1, bytes));
}

static double last_of(const struct crew_walk *w, const double *times) {
  double last = 0;
  for (int i = 0; i < w->crew->tasks; i++) last = later(last, times[i]);
  return last;
}

/* ---- sums ---- */

static int task_of(const struct crew_walk *w, int tower) {
  return tower_device(tower, w->crew->towers, w->crew->tasks);
}

/* The blocks of towers lo..hi-1 that are subtrees within one task: counted in `pieces` by task. */
static void count_pieces(const struct crew_walk *w, int lo, int hi, int *pieces) {
  if (task_of(w, lo) == task_of(w, hi - 1)) {
    pieces[task_of(w, lo)]++;
    return;
  }
  int half = lo + tower_cut(hi - lo);
  count_pieces(w, lo, half, pieces);
  count_pieces(w, half, hi, pieces);
}

/* Shares of so many bytes each become one. */
static double adding(const struct crew_walk *w, int64_t shares, int64_t bytes) {
  return shares < 2 ? 0 : speeds_work(w->m, 0, (double)((shares + 1) * bytes));
}

/* The sums of the range's pieces go to the root; when all are there. */
static double gather_pieces(struct crew_walk *w, int lo, int hi, int root, int64_t bytes) {
  double there = w->clock[root];
  int task = task_of(w, lo);
  if (task == task_of(w, hi - 1))
    return task == root ? there : later(there, message(w, task, root, w->clock[task], bytes));
  int half = lo + tower_cut(hi - lo);
  there = gather_pieces(w, lo, half, root, bytes);
  return later(there, gather_pieces(w, half, hi, root, bytes));
}

static void want(struct crew_walk *w, int task, double when) {
  w->wanted[task] = later(w->wanted[task], when);
}

/* From where it lies to those who need it. */
static void send_to_all(struct crew_walk *w, const struct exchange *x, int root) {
  double begin = w->clock[root];
  for (int i = 0; x->all && i < w->crew->tasks; i++)
    if (i != root) want(w, i, message(w, root, i, begin, x->bytes));
  if (!x->all && root != 0) want(w, 0, message(w, root, 0, begin, x->bytes));
}

/* ---- with hosts ---- */

struct range_sum {
  int at; /* the task that has it */
  double there;
};

/* The sum of a range of towers for the root: within a task, then within a host that is not the root's, and else there.
 * `turn`: of the chunks of a sum, for which the tasks of a host take turns. */
static struct range_sum sum_range(struct crew_walk *w, int lo, int hi, int root, int turn, int64_t bytes) {
  int task = task_of(w, lo), half = lo + (hi - lo > 1 ? tower_cut(hi - lo) : 0);
  if (hi - lo == 1) return (struct range_sum){task, w->clock[task]};
  struct range_sum a = sum_range(w, lo, half, root, turn, bytes),
                   b = sum_range(w, half, hi, root, turn, bytes);
  struct range_sum sum = {root, 0};
  bool near = same_host(w, a.at, b.at) && !same_host(w, a.at, root);
  if (hi - lo < w->crew->towers && (a.at == b.at || near))
    sum.at = a.at == b.at ? a.at : task_of(w, lo + turn % (hi - lo));
  if (a.at != sum.at) a.there = message(w, a.at, sum.at, a.there, bytes);
  if (b.at != sum.at) b.there = message(w, b.at, sum.at, b.there, bytes);
  sum.there = later(a.there, b.there) + (a.at == b.at ? 0 : adding(w, 2, bytes));
  return sum;
}

/* The task that fetches a sum for the host of this one. */
static int leader_of(const struct crew_walk *w, int task, int turn) {
  int host = w->crew->host[task], first = w->begin[host];
  return w->members[first + turn % (w->begin[host + 1] - first)];
}

/* From the root to all tasks that need it, or to the first: to another host once, and on from there. */
static void spread_sum(struct crew_walk *w, int root, int turn, bool all, int64_t bytes) {
  int n = all ? w->crew->tasks : 1;
  double begin = w->clock[root];
  w->there[root] = begin;
  for (int i = 0; i < n; i++)
    if (i != root) w->there[i] = -1;
  for (int i = 0; i < n; i++) {
    int leader = same_host(w, i, root) ? i : leader_of(w, i, turn);
    if (leader >= n) w->there[leader] = -1;
  }
  for (int i = 0; i < n; i++) {
    int leader = same_host(w, i, root) ? i : leader_of(w, i, turn);
    if (leader != root && w->there[leader] < 0) w->there[leader] = message(w, root, leader, begin, bytes);
    if (leader != i && i != root) w->there[i] = message(w, leader, i, w->there[leader], bytes);
  }
}

static void take_spread(struct crew_walk *w, const struct exchange *x, int root) {
  spread_sum(w, root, 0, x->all, x->bytes);
  for (int i = 0; i < (x->all ? w->crew->tasks : 1); i++) want(w, i, w->there[i]);
}

/* Each half of the tree has a root among its towers, and another one for the next sum. */
struct halves {
  int cut, root[2]; /* root: tasks */
  int total;        /* the half whose root has the sum of both */
};

static struct halves halves_of(const struct crew_walk *w, int exchange) {
  int n = w->crew->towers, index = w->sums[exchange], cut = tower_cut(n);
  return (struct halves){
      .cut = cut, .root = {task_of(w, index % cut), task_of(w, cut + index % (n - cut))}, .total = index & 1};
}

/* Whether all towers of the task are in the half. */
static bool is_within(const struct crew_walk *w, const struct halves *h, int half, int task) {
  return half ? w->first[task] >= h->cut : w->first[task + 1] <= h->cut;
}

/* Whether tasks plan for themselves: each has towers of one half. */
static bool are_apart(const struct crew_walk *w, const struct halves *h) {
  bool apart = false;
  for (int i = 0; i < w->crew->tasks; i++) apart |= w->first[i] == h->cut;
  return apart && !w->crew->host;
}

/* The halves' sums, and the one to the root of the other. */
static void join_halves(struct crew_walk *w, const struct exchange *x, int exchange) {
  struct halves h = halves_of(w, exchange);
  int have = h.root[h.total], other = h.root[!h.total], n = w->crew->towers;
  double *ready = w->ready[exchange];
  for (int half = 0; half < 2; half++) {
    int root = h.root[half];
    w->clock[root] = later(w->clock[root], ready[root]);
    w->clock[root] += adding(w, half ? n - h.cut : h.cut, x->bytes);
  }
  ready[have] = have == other ? w->clock[have] : message(w, other, have, w->clock[other], x->bytes);
}

/* Their total. */
static void take_halves(struct crew_walk *w, const struct exchange *x, int exchange) {
  struct halves h = halves_of(w, exchange);
  int have = h.root[h.total], other = h.root[!h.total];
  w->clock[have] = later(w->clock[have], w->ready[exchange][have]) + adding(w, 2, x->bytes);
  /* once to the other root, if it or one that reads from it needs the total; from the two to the others. A result
   * comes to all from where it is, if all is planned together. */
  bool relays = x->all && (!x->result || are_apart(w, &h)) && have != other;
  if (!x->all) relays = have != other && (other == 0 || is_within(w, &h, !h.total, 0));
  double begin = w->clock[have], relayed = relays ? message(w, have, other, begin, x->bytes) : begin;
  if (relays) want(w, other, relayed);
  for (int i = 0; i < (x->all ? w->crew->tasks : 1); i++) {
    bool there = relays && is_within(w, &h, !h.total, i);
    if (i != have && (i != other || !relays))
      want(w, i, message(w, there ? other : have, i, there ? relayed : begin, x->bytes));
  }
}

/* ---- parts: each task makes the sum of one ---- */

static int64_t part_bytes(const struct crew_walk *w, const struct exchange *x, int part) {
  int64_t n = w->crew->tasks, size = x->bytes / x->elements;
  part = (int)((part + n) % n);
  return (x->elements * (part + 1) / n - x->elements * part / n) * size;
}

static void give_parts(struct crew_walk *w, const struct exchange *x, double *ready) {
  int n = w->crew->tasks;
  for (int i = 0; i < n; i++) {
    int64_t own = part_bytes(w, x, i), others = w->all_pieces - w->pieces[i];
    leave(w, i, w->clock[i], (int64_t)w->pieces[i] * (n - 1), w->pieces[i] * (x->bytes - own));
    arrive(w, i, w->clock[i], others, others * own);
  }
  double left = last_of(w, w->sends);
  for (int i = 0; i < n; i++) ready[i] = later(left, w->takes[i]);
}

static void take_parts(struct crew_walk *w, const struct exchange *x, const double *ready) {
  int n = w->crew->tasks, readers = x->all ? n : 1;
  for (int i = 0; i < n; i++) {
    int64_t own = part_bytes(w, x, i), to = readers - (i < readers);
    w->clock[i] = later(w->clock[i], ready[i]) + adding(w, w->crew->towers, own);
    leave(w, i, w->clock[i], to, to * own);
  }
  double begin = last_of(w, w->clock), left = last_of(w, w->sends);
  for (int i = 0; i < readers; i++) {
    double there = arrive(w, i, begin, n - 1, x->bytes - part_bytes(w, x, i));
    want(w, i, later(w->clock[i], later(left, there)) + speeds_work(w->m, 0, 2 * (double)x->bytes));
  }
}

/* The same with hosts, part by part. */
static void give_parts_to_hosts(struct crew_walk *w, const struct exchange *x, double *ready) {
  for (int i = 0; i < w->crew->tasks; i++)
    ready[i] = sum_range(w, 0, w->crew->towers, i, i, part_bytes(w, x, i)).there;
}

static void take_parts_of_hosts(struct crew_walk *w, const struct exchange *x, const double *ready,
                                double *last) {
  int n = w->crew->tasks, readers = x->all ? n : 1;
  for (int i = 0; i < n; i++) last[i] = w->clock[i] = later(w->clock[i], ready[i]);
  for (int c = 0; c < n; c++) {
    spread_sum(w, c, c, x->all, part_bytes(w, x, c));
    for (int i = 0; i < readers; i++) last[i] = later(last[i], w->there[i]);
  }
  for (int i = 0; i < readers; i++) want(w, i, last[i] + speeds_work(w->m, 0, 2 * (double)x->bytes));
}

/* Once around with additions, once without. Where only the first task needs the sum, each part goes on to it. */
static void take_ring(struct crew_walk *w, const struct exchange *x, const double *ready) {
  int n = w->crew->tasks;
  int64_t most = part_bytes(w, x, n - 1);
  double begin = later(last_of(w, w->clock), last_of(w, ready)), hop = speeds_message(w->m, (double)most),
         adds = adding(w, 2, most);
  double end = begin + (n - 1) * (2 * hop + adds);
  for (int i = 0; i < n; i++) {
    int64_t back = n - 1, sent = x->bytes - part_bytes(w, x, i + 1), taken = x->bytes - part_bytes(w, x, i);
    if (!x->all) {
      back = i;
      sent = taken = 0;
      for (int c = 1; c <= i; c++) sent += part_bytes(w, x, c);
      for (int c = 1; c <= (i ? i - 1 : n - 1); c++) taken += part_bytes(w, x, c);
    }
    leave(w, i, begin, n - 1 + back, x->bytes - part_bytes(w, x, i) + sent);
    arrive(w, i, begin,
           n - 1 +
               (x->all ? back
                : i    ? i - 1
                       : n - 1),
           x->bytes - part_bytes(w, x, i - 1) + taken);
    w->sends[i] = w->takes[i] = end;
    if (x->all || i == 0) w->clock[i] = end + speeds_work(w->m, 0, 2 * (double)x->bytes);
  }
}

/* ---- events ---- */

static void give_sum(struct crew_walk *w, const struct exchange *x, int exchange, double *ready) {
  int towers = w->crew->towers;
  struct halves h;
  if (w->crew->host && summing_of(w, x) == SUM_PARTS) {
    give_parts_to_hosts(w, x, ready);
    return;
  }
  if (w->crew->host && summing_of(w, x) == SUM_ONE) {
    ready[w->root[exchange]] = sum_range(w, 0, towers, w->root[exchange], 0, x->bytes).there;
    return;
  }
  switch (summing_of(w, x)) {
  case SUM_ONE: ready[w->root[exchange]] = gather_pieces(w, 0, towers, w->root[exchange], x->bytes); break;
  case SUM_HALVES:
    h = halves_of(w, exchange);
    ready[h.root[0]] = gather_pieces(w, 0, h.cut, h.root[0], x->bytes);
    ready[h.root[1]] = later(ready[h.root[1]], gather_pieces(w, h.cut, towers, h.root[1], x->bytes));
    break;
  case SUM_PARTS: give_parts(w, x, ready); break;
  case SUM_RING:
    for (int i = 0; i < w->crew->tasks; i++) ready[i] = w->clock[i];
    break;
  }
}

static void take_sum(struct crew_walk *w, const struct exchange *x, int exchange) {
  const double *ready = w->ready[exchange];
  int root = w->root[exchange];
  if (w->crew->host && summing_of(w, x) == SUM_PARTS) {
    take_parts_of_hosts(w, x, ready, w->last);
    return;
  }
  if (w->crew->host && summing_of(w, x) == SUM_ONE) {
    w->clock[root] = later(w->clock[root], ready[root]);
    take_spread(w, x, root);
    return;
  }
  switch (summing_of(w, x)) {
  case SUM_ONE:
    w->clock[root] = later(w->clock[root], ready[root]) + adding(w, w->all_pieces, x->bytes);
    send_to_all(w, x, root);
    break;
  case SUM_HALVES: take_halves(w, x, exchange); break;
  case SUM_PARTS: take_parts(w, x, ready); break;
  case SUM_RING: take_ring(w, x, ready); break;
  }
}

/* Each tower's by themselves, to all tasks or to the first. */
static int readers_of(const struct crew_walk *w, const struct exchange *x) {
  return x->all ? w->crew->tasks : 1;
}

static void give_rows(struct crew_walk *w, const struct exchange *x, double *ready) {
  int n = w->crew->tasks, readers = readers_of(w, x);
  int64_t all = w->crew->batch * x->bytes;
  for (int i = 0; i < n; i++) {
    int64_t own = w->rows[i] * x->bytes, towers = w->first[i + 1] - w->first[i], to = readers - (i < readers);
    leave(w, i, w->clock[i], towers * to, to * own);
    if (i < readers) arrive(w, i, w->clock[i], w->crew->towers - towers, all - own);
  }
  double left = last_of(w, w->sends);
  for (int i = 0; i < readers; i++) ready[i] = later(left, w->takes[i]);
}

/* The rows of all, where the program has those of two tasks, or of those that the first reads none: they are put
 * together, and read once more. */
static void take_rows(struct crew_walk *w, const struct exchange *x, const double *ready) {
  double more = (double)(w->crew->batch - (x->all ? 2 * w->rows[0] : 0)) * (double)x->bytes;
  for (int i = 0; i < readers_of(w, x); i++) {
    w->clock[i] = later(w->clock[i], ready[i]);
    if (more > 0) w->clock[i] += speeds_work(w->m, 0, 3 * more);
  }
}

static void give(struct crew_walk *w, struct arena *a, int exchange) {
  const struct exchange *x = &w->p->exchanges[exchange];
  int n = w->crew->tasks;
  double *ready = w->ready[exchange];
  if (!ready) ready = w->ready[exchange] = arena_new_array(a, (size_t)n, double);
  switch (x->kind) {
  case EXCHANGE_SUM: give_sum(w, x, exchange, ready); break;
  case EXCHANGE_ROWS: give_rows(w, x, ready); break;
  case EXCHANGE_TO_MAIN:
    for (int i = 1; i < n; i++) ready[0] = later(ready[0], message(w, i, 0, w->clock[i], x->bytes));
    break;
  case EXCHANGE_FROM_MAIN: break;
  }
}

static void take(struct crew_walk *w, int exchange) {
  const struct exchange *x = &w->p->exchanges[exchange];
  const double *ready = w->ready[exchange];
  double begin = w->clock[0];
  w->taken[exchange] = true;
  switch (x->kind) {
  case EXCHANGE_SUM: take_sum(w, x, exchange); break;
  case EXCHANGE_ROWS: take_rows(w, x, ready); break;
  case EXCHANGE_TO_MAIN: w->clock[0] = later(w->clock[0], ready[0]); break;
  case EXCHANGE_FROM_MAIN:
    for (int i = 1; i < w->crew->tasks; i++) want(w, i, message(w, 0, i, begin, x->bytes));
    break;
  }
}

/* What a sum needs before its total. */
static void join(struct crew_walk *w, int exchange) {
  const struct exchange *x = &w->p->exchanges[exchange];
  if (x->kind == EXCHANGE_SUM && summing_of(w, x) == SUM_HALVES) join_halves(w, x, exchange);
}

/* All that is taken in a row from event i on; the last of them. */
static int take_together(struct crew_walk *w, int i) {
  int end = i;
  for (; end < w->p->nevents && w->p->events[end].kind == EVENT_TAKE; end++)
    join(w, w->p->events[end].exchange);
  for (int k = i; k < end; k++) take(w, w->p->events[k].exchange);
  return end - 1;
}

static void wait_for_all(struct crew_walk *w) {
  for (int i = 0; i < w->crew->tasks; i++) w->clock[i] = later(w->clock[i], w->wanted[i]);
}

static void lay_towers(struct crew_walk *w) {
  const struct crew *c = w->crew;
  for (int i = c->towers; i-- > 0;) {
    w->first[task_of(w, i)] = i;
    w->rows[task_of(w, i)] += tower_rows(i, c->towers, c->batch);
  }
  w->first[c->tasks] = c->towers;
  count_pieces(w, 0, c->towers, w->pieces);
  for (int i = 0; i < c->tasks; i++) w->all_pieces += w->pieces[i];
}

static void find_members(struct crew_walk *w, struct arena *a) {
  const struct crew *c = w->crew;
  int hosts = 0;
  for (int i = 0; i < c->tasks; i++) hosts = c->host[i] >= hosts ? c->host[i] + 1 : hosts;
  w->begin = arena_new_array(a, (size_t)hosts + 1, int);
  w->members = arena_new_array(a, (size_t)c->tasks, int);
  int *filled = arena_new_array(a, (size_t)hosts, int);
  for (int i = 0; i < c->tasks; i++) w->begin[c->host[i] + 1]++;
  for (int h = 0; h < hosts; h++) w->begin[h + 1] += w->begin[h];
  for (int i = 0; i < c->tasks; i++) w->members[w->begin[c->host[i]] + filled[c->host[i]]++] = i;
  w->there = arena_new_array(a, (size_t)c->tasks, double);
  w->last = arena_new_array(a, (size_t)c->tasks, double);
}

static void note_most(struct link_load *most, const struct link_load *l) {
  if (l->messages_sent > most->messages_sent) most->messages_sent = l->messages_sent;
  if (l->messages_received > most->messages_received) most->messages_received = l->messages_received;
  if (l->bytes_sent > most->bytes_sent) most->bytes_sent = l->bytes_sent;
  if (l->bytes_received > most->bytes_received) most->bytes_received = l->bytes_received;
}

struct forecast program_predict(struct arena *a, const struct program *p, const struct crew *crew,
                                enum cross_device algorithm, const struct speeds *m) {
  size_t n = (size_t)crew->tasks, exchanges = (size_t)p->nexchanges;
  struct crew_walk w = {.p = p,
                        .crew = crew,
                        .m = m,
                        .algorithm = algorithm,
                        .clock = arena_new_array(a, n, double),
                        .wanted = arena_new_array(a, n, double),
                        .sends = arena_new_array(a, n, double),
                        .takes = arena_new_array(a, n, double),
                        .loads = arena_new_array(a, n, struct link_load),
                        .first = arena_new_array(a, n + 1, int),
                        .rows = arena_new_array(a, n, int64_t),
                        .pieces = arena_new_array(a, n, int),
                        .sums = arena_new_array(a, exchanges, int),
                        .root = arena_new_array(a, exchanges, int),
                        .ready = arena_new_array(a, exchanges, double *),
                        .taken = arena_new_array(a, exchanges, bool)};
  struct forecast result = {0};
  int64_t *summed = arena_new_array(a, n, int64_t);
  lay_towers(&w);
  if (crew->host) find_members(&w, a);
  for (int i = 0; i < p->nexchanges; i++) {
    if (i) w.sums[i] = w.sums[i - 1] + (p->exchanges[i - 1].kind == EXCHANGE_SUM);
    if (p->exchanges[i].kind == EXCHANGE_SUM)
      w.root[i] = cross_device_root(summed, crew->tasks, p->exchanges[i].bytes);
  }
  for (int i = 0; i < p->nevents; i++) {
    const struct task_event *e = &p->events[i];
    if (e->kind == EVENT_GIVE && n > 1) give(&w, a, e->exchange);
    if (e->kind == EVENT_TAKE && n > 1) i = take_together(&w, i);
    if (e->kind != EVENT_COMPUTE) continue;
    wait_for_all(&w);
    result.computing += e->seconds;
    for (size_t t = 0; t < n; t++) w.clock[t] += e->seconds;
  }
  for (int i = 0; i < p->nexchanges; i++) {
    if (!w.ready[i] || w.taken[i]) continue;
    join(&w, i);
    take(&w, i);
  }
  wait_for_all(&w);
  for (size_t i = 0; i < n; i++) note_most(&result.most, &w.loads[i]);
  result.step = later(last_of(&w, w.clock), last_of(&w, w.sends));
  return result;
}

bool forecast_knows(const struct crew *crew, enum cross_device algorithm) {
  return algorithm != CROSS_DEVICE_nccl && (algorithm != CROSS_DEVICE_hierarchical_copy || !crew->host);
}

bool forecast_counts(const struct crew *crew, enum cross_device algorithm) {
  enum { FEW_TASKS = 16 };
  bool apart = cross_device_apart(algorithm, crew->host != NULL);
  return cross_devices[algorithm].bits == BITS_OF_TREE && forecast_knows(crew, algorithm) &&
         (apart || crew->tasks <= FEW_TASKS);
}

enum cross_device forecast_best(const struct crew *crew, const struct forecast *all) {
  enum cross_device best = CROSS_DEVICE_reduce_to_one;
  for (int i = 0; i < CROSS_DEVICE_COUNT; i++)
    if (forecast_counts(crew, (enum cross_device)i) && all[i].step < all[best].step)
      best = (enum cross_device)i;
  return best;
}
