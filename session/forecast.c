/* SPDX-License-Identifier: Apache-2.0 */
/* Forecasts. What a task computes and exchanges is read from the plan of two tasks with as many rows each, and what so
 * many tasks make of it is predicted (ir/plan/program.h). Nothing is measured: all come to the same, whoever asks. */
#include "session/forecast.h"

#include "ir/speeds.h"
#include "passes/pass.h"
#include "passes/strategy/strategy.h"
#include "planner/planner.h"
#include "runtime/mpi/transport.h"

struct speeds session_speeds(const struct dgc_session *s) {
  struct speeds m = speeds_default;
  if (s->options.link) speeds_read_link(s->call, s->options.link, &m);
  if (s->options.speed) speeds_read_speed(s->call, s->options.speed, &m);
  return m;
}

/* ---- programs ---- */

/* The devices of the first two tasks; where there is one, it is doubled. */
static bool two_tasks(struct forecasting *f, struct target *out) {
  const struct target *t = &f->base.target;
  struct arena *a = f->s->call;
  int *of = arena_new_array(a, (size_t)t->ndevices, int);
  if (target_processes(t, of) < 2) return cluster_parse(a, "worker=2", f->s->options.devices, out, f->why);
  struct target two = target_copy(a, t);
  two.ndevices = 0;
  for (int i = 0; i < t->ndevices; i++)
    if (of[i] < 2) two.devices[two.ndevices++] = t->devices[i];
  *out = target_copy(a, &two);
  return true;
}

/* What a task of the crew does. */
static bool read_program(struct forecasting *f, bool alone, int towers, int64_t rows) {
  struct dgc_session *s = f->s;
  struct graph *g = graph_copy(s->call, entry_source(s, f->kind));
  struct config c = f->base;
  c.homes = NULL;
  c.nhomes = 0;
  c.strategy = c.cross_device = c.task = c.cluster = NULL;
  c.towers = alone ? towers : 2 * towers;
  c.batch = alone ? rows : 2 * rows;
  c.batch_per_replica = 0;
  if (!alone && !two_tasks(f, &c.target)) return false;
  g->config = config_copy(s->call, &c);
  const struct graph *placed = pipeline_run(s->call, g, NULL, "place", NULL, f->why), *all = NULL;
  if (placed) all = pipeline_run(s->call, graph_copy(s->call, placed), NULL, NULL, NULL, f->why);
  const struct plan *p = all ? (alone ? plan_build : plan_build_processes)(s->call, all, f->why) : NULL;
  if (!p) return false;
  f->program =
      alone ? program_alone(s->call, p, &f->speeds) : program_of_two(s->call, placed, p, rows, &f->speeds);
  f->alone = alone;
  f->own_towers = towers;
  f->own_rows = rows;
  return true;
}

/* The rows of the first task, which has most. */
static int64_t most_rows(const struct crew *c) {
  int64_t rows = 0;
  for (int i = 0; i < c->towers && tower_device(i, c->towers, c->tasks) == 0; i++)
    rows += tower_rows(i, c->towers, c->batch);
  return rows;
}

bool forecast_sums(struct forecasting *f, const struct crew *crew, struct forecast *out) {
  bool alone = crew->tasks == 1;
  int towers = (crew->towers + crew->tasks - 1) / crew->tasks;
  int64_t rows = most_rows(crew);
  bool known = f->own_towers == towers && f->own_rows == rows && f->alone == alone;
  if (!known && !read_program(f, alone, towers, rows)) return false;
  for (int i = 0; i < CROSS_DEVICE_COUNT; i++)
    out[i] = program_predict(f->s->call, &f->program, crew, (enum cross_device)i, &f->speeds);
  return true;
}

/* ---- the choice ---- */

/* The tasks that carry towers, and as what. 0: their sums are not all tasks'. */
static int find_crew(struct dgc_session *s, const struct config *config, int64_t rows, bool for_each,
                     struct crew *out) {
  struct config c = config_copy(s->call, config);
  struct strategy strategy;
  struct diags silent;
  diags_init(&silent, s->call);
  c.cross_device = NULL;
  if (!strategy_resolve(s->call, session_all_variables(s), &c, &strategy, &silent)) return 0;
  if (!strategy.mirrored || !(strategy.info->settings & TAKES_SUMS)) return 0;
  int *of = arena_new_array(s->call, (size_t)c.target.ndevices, int), tasks = 0;
  int *host = arena_new_array(s->call, (size_t)strategy.nworkers, int);
  const int *hosts = cluster_hosts(s->call, c.cluster, &c.target); /* by device */
  target_processes(&c.target, of);
  for (int i = 0; i < strategy.nworkers; i++) {
    if (i > 0 && of[strategy.workers[i]] == of[strategy.workers[i - 1]]) continue;
    host[tasks++] = hosts ? hosts[strategy.workers[i]] : 0;
  }
  *out = (struct crew){tasks, strategy.towers, for_each ? rows * strategy.towers : rows, hosts ? host : NULL};
  return tasks;
}

static const char *reason(struct dgc_session *s, const struct crew *crew, const struct forecast *all,
                          const struct speeds *speeds, enum cross_device best) {
  struct str why = str_make(s->call), others = str_make(s->call);
  for (int i = 0; i < CROSS_DEVICE_COUNT; i++) {
    if (!forecast_counts(crew, (enum cross_device)i) || i == (int)best) continue;
    str_printf(&others, "%s%s ", others.len ? ", " : "", cross_devices[i].name);
    print_seconds(&others, all[i].step);
  }
  str_printf(&why, "sums by %s: ", cross_devices[best].name);
  print_seconds(&why, all[best].step);
  str_printf(&why, " a step of %d tasks is predicted for links of ", crew->tasks);
  speeds_print_link(&why, speeds);
  str_printf(&why, " (%s)", others.data);
  return why.data;
}

const char *session_choose_sums(struct dgc_session *s, const struct config *config, int64_t rows,
                                bool for_each, const char **why) {
  struct forecast all[CROSS_DEVICE_COUNT];
  struct crew crew;
  struct diags silent;
  diags_init(&silent, s->call);
  if (!entry_there(s, ENTRY_TRAIN) || find_crew(s, config, rows, for_each, &crew) < 2) return NULL;
  struct forecasting f = {
      .s = s, .kind = ENTRY_TRAIN, .base = *config, .speeds = session_speeds(s), .why = &silent};
  if (!forecast_sums(&f, &crew, all)) return NULL;
  enum cross_device best = forecast_best(&crew, all);
  *why = reason(s, &crew, all, &f.speeds, best);
  return cross_devices[best].name;
}
