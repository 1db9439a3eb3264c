/* SPDX-License-Identifier: Apache-2.0 */
/* What a session's model is compiled for: the options over the model's own strategy clause, settled once for all of
 * its graphs, so that each variable has one home. */
#include "session/settle.h"

#include "session/auto.h"
#include "session/cluster.h"
#include "session/device_words.h"
#include "session/forecast.h"
#include "session/model.h"
#include "session/options.h"
#include "session/state/evaluator.h"
#include "session/state/handlers.h"
#include "session/state/settlement.h"

#include "passes/strategy/strategy.h"
#include "passes/strategy/task_graph.h"
#include "runtime/backend.h"
#include "runtime/mpi/transport.h"

#include <stdlib.h>
#include <string.h>

enum { DEFAULT_BATCH = 128 };

static const char automatic[] = "auto";

static bool is_per_replica(const struct options *o) {
  return o->batch_is && strcmp(o->batch_is, "per_replica") == 0;
}

/* --- devices --- */

/* A launcher's processes are the tasks of the cluster, and all workers if nothing else is said. */
static enum dgc_status count_tasks(struct dgc_session *s, const struct target *t, int processes) {
  int *of = arena_new_array(s->call, (size_t)t->ndevices, int), tasks = target_processes(t, of);
  if (tasks == processes) return DGC_OK;
  session_fail(s, DGC_USAGE, "cluster: %d task%s, and %d processes were started", tasks,
               tasks == 1 ? "" : "s", processes);
  diag_help(&s->diags, LOC_NONE, "each task is one process: start as many, as mpirun -n %d dgc …", tasks);
  return DGC_USAGE;
}

/* What the options list, before a strategy adds to it. */
static enum dgc_status list_devices(struct dgc_session *s) {
  const struct options *o = &s->options;
  struct target t;
  if (s->settlement->listed.ndevices) return DGC_OK;
  struct cluster c;
  enum dgc_status status = session_cluster(s, &c);
  if (!status) status = session_name_devices(s);
  if (status) return status;
  bool good = c.spec ? cluster_parse(s->arena, c.spec, o->devices, &t, &s->diags)
                     : target_parse(s->arena, o->devices ? o->devices : "cpu:0", &t, &s->diags, LOC_NONE);
  if (!good) return DGC_USAGE;
  int rank, processes = session_processes(s, &rank);
  if (transport_launched(&rank) > 1 && !s->evaluator->here) status = count_tasks(s, &t, processes);
  if (!status) status = session_task(s, &c, &t, &s->settlement->task);
  t.plugin = o->pjrt_plugin;
  if (!status) s->settlement->listed = t;
  return status;
}

/* --- the model's clause --- */

static enum dgc_status wrong_setting(struct dgc_session *s, const struct model_setting *m,
                                     const char *expected) {
  diag_error(&s->diags, m->loc, "`%s` of a strategy is %s", m->name, expected);
  return DGC_INPUT;
}

static enum dgc_status set_number(struct dgc_session *s, const struct model_setting *m, int64_t least,
                                  int64_t most, int64_t *out) {
  if (m->kind != SETTING_INT) return wrong_setting(s, m, "an integer");
  *out = m->i;
  if (m->i >= least && m->i <= most) return DGC_OK;
  return wrong_setting(s, m, arena_printf(s->call, "from %lld to %lld", (long long)least, (long long)most));
}

static const char *const settings[] = {
#define NUMBER(type, name, most) #name,
#define WORD(name)               #name,
#define TEXT(name)               #name,
#define FLAG(name)               #name,
#include "ir/graph/config.def"
};

/* What is said of a strategy elsewhere, or follows from it. */
static bool is_setting(const char *name) {
  static const char *const other[] = {"batch",          "batch_per_replica", "strategy", "asynchronous",
                                      "soft_placement", "cluster",           "task"};
  for (size_t i = 0; i < sizeof other / sizeof *other; i++)
    if (strcmp(name, other[i]) == 0) return false;
  return true;
}

static enum dgc_status no_setting(struct dgc_session *s, const struct model_setting *m) {
  enum { COUNT = sizeof settings / sizeof *settings };
  const char *names[COUNT];
  size_t n = 0;
  for (int i = 0; i < COUNT; i++)
    if (is_setting(settings[i])) names[n++] = settings[i];
  diag_error(&s->diags, m->loc, "strategies have no setting `%s`", m->name);
  diag_closest(&s->diags, LOC_NONE, m->name, names, n, "settings are");
  return DGC_INPUT;
}

/* staleness = "free", "free:4" */
static enum dgc_status take_free(struct dgc_session *s, const struct model_setting *m, struct config *c) {
  enum { DIGITS = 5, MOST = 16384 };
  const char *bound = unordered_bound_of(m->text);
  size_t digits = bound ? strspn(bound, "0123456789") : 0;
  if (digits && digits <= DIGITS && !bound[digits]) s->settlement->unordered_bound = strtol(bound, NULL, 10);
  if (!digits || digits > DIGITS || bound[digits] || s->settlement->unordered_bound > MOST)
    return wrong_setting(s, m, "an integer, \"free\", or \"free:N\" with N from 0 to 16384");
  s->settlement->free = true;
  c->asked.staleness = m->loc;
  return DGC_OK;
}

static enum dgc_status take_setting(struct dgc_session *s, const struct model_setting *m, struct config *c) {
  if (!is_setting(m->name)) return no_setting(s, m);
  if (strcmp(m->name, "staleness") == 0 && m->kind == SETTING_TEXT) return take_free(s, m, c);
#define NUMBER(type, field, most)                                                              \
  if (strcmp(m->name, #field) == 0) {                                                          \
    int64_t value = 0;                                                                         \
    enum dgc_status status = set_number(s, m, strcmp(#field, "staleness") != 0, most, &value); \
    c->field = (type)value;                                                                    \
    c->asked.field = m->loc;                                                                   \
    c->asynchronous |= strcmp(#field, "staleness") == 0;                                       \
    return status;                                                                             \
  }
#define WORD(field)                                                      \
  if (strcmp(m->name, #field) == 0) {                                    \
    if (m->kind != SETTING_TEXT) return wrong_setting(s, m, "a string"); \
    c->field = m->text;                                                  \
    c->asked.field = m->loc;                                             \
    return DGC_OK;                                                       \
  }
#define TEXT(field) WORD(field)
#define FLAG(field)                                                           \
  if (strcmp(m->name, #field) == 0) {                                         \
    if (m->kind != SETTING_FLAG) return wrong_setting(s, m, "true or false"); \
    c->field = m->i != 0;                                                     \
    c->asked.field = m->loc;                                                  \
    return DGC_OK;                                                            \
  }
#include "ir/graph/config.def"
  return no_setting(s, m);
}

/* A strategy given as an option replaces the clause whole. */
static bool has_clause(const struct dgc_session *s) {
  const char *given = s->options.strategy, *own = s->model->strategy.name;
  return own && (!given || strcmp(given, own) == 0);
}

static enum dgc_status take_clause(struct dgc_session *s, struct config *c) {
  const struct model_strategy *m = &s->model->strategy;
  if (!has_clause(s)) return DGC_OK;
  if (strcmp(m->name, automatic) != 0 && !strategy_find(m->name)) {
    strategy_unknown(m->name, automatic, m->loc, &s->diags);
    return DGC_INPUT;
  }
  c->strategy = m->name;
  c->asked.strategy = m->loc;
  enum dgc_status status = DGC_OK;
  for (int i = 0; !status && i < m->nsettings; i++) status = take_setting(s, &m->settings[i], c);
  return status;
}

bool session_chooses(const struct dgc_session *s) {
  const char *name = s->options.strategy ? s->options.strategy : s->model ? s->model->strategy.name : NULL;
  return name && strcmp(name, automatic) == 0;
}

/* --- settling --- */

void options_over(const struct options *o, struct config *c) {
#define NUMBER(type, name, most) \
  if (o->name) c->name = (type)o->name, c->asked.name = LOC_NONE;
#define WORD(name) \
  if (o->name) c->name = o->name, c->asked.name = LOC_NONE;
#define TEXT(name) WORD(name)
#define FLAG(name) WORD(name)
#include "ir/graph/config.def"
  if (o->asynchronous)
    c->staleness = (int)o->staleness, c->asked.staleness = LOC_NONE; /* 0 is a bound, too */
  if (o->free) c->asynchronous = false, c->staleness = 0;            /* each worker has a graph of its own */
  if (is_per_replica(o) && o->batch) {
    c->batch_per_replica = o->batch;
    c->batch = 0;
  }
}

static enum dgc_status asked_for(struct dgc_session *s, struct config *c) {
  *c = (struct config){.target = s->settlement->listed};
  s->settlement->free = false;
  enum dgc_status status = take_clause(s, c);
  if (!status) options_over(&s->options, c);
  if (s->options.free) s->settlement->unordered_bound = s->options.unordered_bound;
  s->settlement->free = s->options.free || (s->settlement->free && !s->options.asynchronous);
  struct diags silent; /* of a cluster that is wrong more is said elsewhere */
  diags_init(&silent, s->call);
  if (s->settlement->hosts && (!c->cluster || !cluster_numbered(s->call, c->cluster, &silent)))
    c->cluster = s->settlement->hosts;
  return status;
}

/* How sums travel, where that is left to be chosen: by default where tasks are processes. NULL: nothing was chosen. */
static const char *choose_sums(struct dgc_session *s, struct config *c, const char **why) {
  int rank;
  bool asked = c->cross_device && strcmp(c->cross_device, automatic) == 0;
  if (c->cross_device && !asked) return NULL;
  c->cross_device = NULL;
  if (!asked && s->settlement->task < 0 && transport_launched(&rank) == 1) return NULL;
  return session_choose_sums(s, c, session_batch(s), is_per_replica(&s->options), why);
}

/* The first process says so; where there are several, once their hosts are known. */
static void settle_sums(struct dgc_session *s, struct config *c) {
  const char *why, *chosen = choose_sums(s, c, &why);
  int process, processes = transport_launched(&process);
  s->settlement->why_sums = NULL;
  if (!chosen) return;
  c->cross_device = chosen;
  if (processes > 1)
    s->settlement->why_sums = arena_strdup(s->arena, why);
  else
    diag_note(&s->diags, LOC_NONE, "%s", why);
}

static enum dgc_status compare(struct dgc_session *s, struct config *c, struct str *table) {
  bool multiplied = is_per_replica(&s->options);
  c->batch = multiplied ? 0 : session_batch(s);
  c->batch_per_replica = multiplied ? session_batch(s) : 0;
  struct config several = *c;
  const char *why, *sums;
  several.strategy = strategy_default(DEFAULT_FOR_SEVERAL_TASKS)->name;
  sums = choose_sums(s, &several, &why);
  c->cross_device = several.cross_device;
  const char *best = session_choose(s, c, sums, table);
  if (!best) return session_blame(s);
  c->strategy = arena_strdup(s->arena, best);
  return DGC_OK;
}

/* The strategy that needs least, with the table that says so. */
static enum dgc_status choose(struct dgc_session *s, struct config *c) {
  struct str table = str_make(s->call);
  if (backend_runs_modules(s->settlement->listed.devices[0].name.kind))
    return session_fail(s, DGC_USAGE,
                        "strategy auto: what a PJRT plugin makes of a graph cannot be predicted");
  enum dgc_status status = compare(s, c, &table);
  if (!status && s->handlers->pass) s->handlers->pass(s->handlers->pass_user, "strategies", table.data);
  return status;
}

enum dgc_status session_compare(struct dgc_session *s, struct str *table) {
  struct config c;
  enum dgc_status status = list_devices(s);
  if (!status) status = asked_for(s, &c);
  return status ? status : compare(s, &c, table);
}

/* The task that this process is, where what it does can be told without what the others do, for all graphs of the
 * model; NULL: they are compiled for all tasks. */
static const char *find_task(struct dgc_session *s, const struct config *c, const struct strategy *strategy) {
  const struct target *t = &c->target;
  int process = s->settlement->task, rank, *of = arena_new_array(s->call, (size_t)t->ndevices, int);
  if (process < 0 && session_processes(s, &rank) > 1) process = rank;
  if (process < 0) return NULL;
  for (int i = 0; i < ENTRY_COUNT; i++) {
    const struct graph *g = entry_source(s, (enum entry_kind)i);
    if (g && !task_graph_is_possible(s->call, g, c, strategy)) return NULL;
  }
  target_processes(t, of);
  for (int i = 0; i < t->ndevices; i++)
    if (of[i] == process && t->devices[i].name.job)
      return arena_printf(s->arena, "%s:%d", t->devices[i].name.job, t->devices[i].name.task);
  return NULL;
}

/* --- workers by themselves --- */

int session_workers(struct dgc_session *s, int *workers, int *servers, int *nservers) {
  const struct target *t = &s->settlement->target;
  int *of = arena_new_array(s->call, (size_t)t->ndevices, int), n = 0;
  target_processes(t, of);
  *nservers = 0;
  for (int i = 0; i < t->ndevices; i++) {
    bool serves = device_is_server(&t->devices[i]);
    int *list = serves ? servers : workers, *count = serves ? nservers : &n;
    if (*count == 0 || list[*count - 1] != of[i]) list[(*count)++] = of[i];
  }
  return n;
}

void session_one_worker(const struct dgc_session *s, struct arena *a, struct config *c) {
  struct target alone = target_copy(a, &c->target);
  int *of = arena_new_array(a, (size_t)alone.ndevices, int), worker = -1, last = -1;
  target_processes(&alone, of);
  for (int i = 0; i < alone.ndevices; i++) {
    if (device_is_server(&alone.devices[i])) continue;
    worker += of[i] != last;
    last = of[i];
    if (worker != s->settlement->worker) alone.devices[i].no_towers = true;
  }
  c->target = alone;
}

/* Towers are those of a step, which one worker does. */
static void count_towers(struct dgc_session *s, struct config *c) {
  const struct target *t = &c->target;
  int *of = arena_new_array(s->call, (size_t)t->ndevices, int), first = -1, count = 0;
  target_processes(t, of);
  for (int i = 0; i < t->ndevices; i++) {
    if (device_is_server(&t->devices[i]) || (first >= 0 && of[i] != first)) continue;
    first = of[i];
    count++;
  }
  if (!c->towers) c->towers = count;
}

static enum dgc_status check_free(struct dgc_session *s, const struct config *c,
                                  const struct strategy *strategy) {
  if (strategy->info->storage == STORAGE_SERVERS) return DGC_OK;
  diag_error(&s->diags, s->options.free ? LOC_NONE : c->asked.staleness,
             "only strategy %s trains asynchronously: with %s workers wait for each other",
             strategies_taking(s->call, TAKES_STALENESS), strategy->info->name);
  diag_help(&s->diags, LOC_NONE, "leave out %s, or use strategy %s, with a job ps in the cluster",
            s->options.free ? "--staleness" : "`staleness`", strategies_taking(s->call, TAKES_STALENESS));
  return session_blame(s);
}

enum dgc_status session_settle(struct dgc_session *s) {
  enum dgc_status status = list_devices(s);
  if (status || s->settlement->done) return status;
  s->settlement->target = s->settlement->listed;
  if (!s->model) return DGC_OK;
  struct config c;
  struct strategy strategy;
  status = asked_for(s, &c);
  if (!status && c.strategy && strcmp(c.strategy, automatic) == 0) status = choose(s, &c);
  if (status) return status;
  settle_sums(s, &c);
  c.batch = c.batch_per_replica = 0; /* it is another for each graph */
  c.task = NULL;
  bool free = s->settlement->free && !s->evaluator->here;
  if (free) count_towers(s, &c);
  if (!strategy_resolve(s->arena, session_all_variables(s), &c, &strategy, &s->diags)) {
    if (has_clause(s) && session_blame(s) == DGC_USAGE)
      diag_note(&s->diags, s->model->strategy.loc, "the model asks for its strategy here");
    return session_blame(s);
  }
  status = free ? check_free(s, &c, &strategy) : DGC_OK;
  if (status) return status;
  c.task = find_task(s, &c, &strategy);
  s->settlement->config = c;
  s->settlement->target = c.target;
  s->settlement->done = true;
  return DGC_OK;
}

int64_t session_batch(const struct dgc_session *s) {
  const struct options *o = &s->options;
  if (!o->batch && s->position.batch) return s->position.batch;
  int64_t rows = o->batch ? o->batch : DEFAULT_BATCH;
  return is_per_replica(o) && s->settlement->done ? rows * s->settlement->config.towers : rows;
}

void session_configure(const struct dgc_session *s, struct config *c, int64_t batch) {
  const struct options *o = &s->options;
  *c = s->settlement->config;
  c->target = s->settlement->target;
  c->task = NULL; /* see session_part */
  c->batch = batch ? batch : session_batch(s);
  if (is_per_replica(o)) c->batch_per_replica = o->batch ? o->batch : DEFAULT_BATCH;
}
