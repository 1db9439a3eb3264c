/* SPDX-License-Identifier: Apache-2.0 */
/* Which cluster a session runs in, and which of its tasks this process is: what the options say, else TF_CONFIG as
 * TensorFlow reads it ({"cluster": {"worker": ["host:port", ...], ...}, "task": {"type": "worker", "index": 0}}), else
 * what a launcher has started, all workers. The evaluator, if there is one, stands beside it. */
#include "session/cluster.h"

#include "session/state/evaluator.h"

#include "runtime/data/json.h"
#include "runtime/mpi/transport.h"

#include <stdlib.h>
#include <string.h>

struct tf_config {
  struct json json;
  struct str cluster; /* "worker=a:1,b:1;ps=c:1" */
  const char *type;   /* of the task */
  int64_t index;
};

/* "worker": ["a:1", "b:1"] */
static bool read_job(struct tf_config *r) {
  const char *job = json_string(&r->json), *host;
  if (!job || !json_take(&r->json, ':') || !json_take(&r->json, '[')) return false;
  if (json_take(&r->json, ']')) return true; /* a job without tasks */
  str_printf(&r->cluster, "%s%s=", r->cluster.len ? ";" : "", job);
  for (int i = 0;; i++) {
    if (!(host = json_string(&r->json))) return false;
    str_printf(&r->cluster, "%s%s", i ? "," : "", host);
    if (!json_take(&r->json, ',')) return json_take(&r->json, ']');
  }
}

static bool read_cluster(struct tf_config *r) {
  if (!json_take(&r->json, '{')) return false;
  if (json_take(&r->json, '}')) return true;
  do
    if (!read_job(r)) return false;
  while (json_take(&r->json, ','));
  return json_take(&r->json, '}');
}

static bool read_task(struct tf_config *r) {
  if (!json_take(&r->json, '{')) return false;
  if (json_take(&r->json, '}')) return true;
  do {
    const char *key = json_string(&r->json);
    if (!key || !json_take(&r->json, ':')) return false;
    if (strcmp(key, "type") == 0) {
      if (!(r->type = json_string(&r->json))) return false;
    } else if (strcmp(key, "index") == 0) {
      if (!json_size(&r->json, &r->index)) return false;
    } else if (!json_skip(&r->json))
      return false;
  } while (json_take(&r->json, ','));
  return json_take(&r->json, '}');
}

static bool read_config(struct tf_config *r) {
  if (!json_take(&r->json, '{')) return false;
  if (json_take(&r->json, '}')) return json_done(&r->json);
  do {
    const char *key = json_string(&r->json);
    if (!key || !json_take(&r->json, ':')) return false;
    bool good = strcmp(key, "cluster") == 0 ? read_cluster(r)
                : strcmp(key, "task") == 0  ? read_task(r)
                                            : json_skip(&r->json);
    if (!good) return false;
  } while (json_take(&r->json, ','));
  return json_take(&r->json, '}') && json_done(&r->json);
}

static enum dgc_status read_environment(struct dgc_session *s, struct cluster *out) {
  const char *text = getenv("TF_CONFIG");
  if (!text || !*text) return DGC_OK;
  struct tf_config r = {
      .json = {s->call, text, text + strlen(text)}, .cluster = str_make(s->call), .index = -1};
  if (!read_config(&r)) {
    session_fail(s, DGC_USAGE, "TF_CONFIG is no cluster as TensorFlow writes it: see byte %lld",
                 (long long)(r.json.p - text));
    diag_help(&s->diags, LOC_NONE,
              "it is {\"cluster\": {\"worker\": [\"a:2222\", \"b:2222\"]}, \"task\": {\"type\": \"worker\", "
              "\"index\": 0}}, or unset it");
    return DGC_USAGE;
  }
  if (!out->spec && r.cluster.len) {
    out->spec = arena_strdup(s->arena, r.cluster.data);
    out->from = "TF_CONFIG";
  }
  if (!out->task && r.type) {
    out->task = arena_printf(s->arena, "%s:%lld", r.type, (long long)(r.index < 0 ? 0 : r.index));
    out->task_from = "TF_CONFIG";
  }
  return DGC_OK;
}

/* --- the evaluator --- */

static const char evaluator[] = "evaluator";

/* How many tasks "evaluator=1" or "evaluator=host:port" has, of `len` bytes; 0: it is another job. */
static int evaluators_of(const char *job, size_t len) {
  size_t name = sizeof evaluator - 1;
  if (len <= name + 1 || strncmp(job, evaluator, name) != 0 || job[name] != '=') return 0;
  if (len == name + 2 && job[name + 1] == '1') return 1;
  if (job[name + 1] >= '0' && job[name + 1] <= '9' && strspn(job + name + 1, "0123456789") == len - name - 1)
    return 2;
  int count = 1;
  for (size_t i = name; i < len; i++) count += job[i] == ',';
  return count;
}

/* The jobs of training; NULL: there are none. */
static const char *without_evaluator(struct dgc_session *s, const char *spec, int *evaluators) {
  struct str rest = str_make(s->call);
  for (const char *p = spec; *p; p += *p == ';') {
    size_t len = strcspn(p, ";");
    int count = evaluators_of(p, len);
    *evaluators += count;
    if (!count) str_printf(&rest, "%s%.*s", rest.len ? ";" : "", (int)len, p);
    p += len;
  }
  if (!*evaluators) return spec;
  return rest.len ? arena_strdup(s->arena, rest.data) : NULL;
}

/* The evaluator has no cluster, and the others have none in theirs: by the launcher's numbers it is the last one. */
static enum dgc_status set_apart(struct dgc_session *s, struct cluster *c) {
  int rank, processes = transport_launched(&rank), evaluators = 0;
  if (c->spec) c->spec = without_evaluator(s, c->spec, &evaluators);
  bool named = c->task && strncmp(c->task, evaluator, sizeof evaluator - 1) == 0;
  if (evaluators > 1 || (named && strcmp(c->task, "evaluator:0") != 0))
    return session_fail(s, DGC_USAGE,
                        "%s: there is one evaluator: evaluator=1 of a cluster, task evaluator:0",
                        evaluators > 1 ? c->from : c->task_from);
  s->evaluator->tasks = evaluators;
  s->evaluator->here = named || (!c->task && evaluators && processes > 1 && rank == processes - 1);
  if (evaluators && !c->spec && !s->evaluator->here)
    return session_fail(s, DGC_USAGE, "%s: there is an evaluator, and no task that trains", c->from);
  if (s->evaluator->here) c->spec = c->task = NULL;
  return DGC_OK;
}

enum dgc_status session_cluster(struct dgc_session *s, struct cluster *out) {
  const struct options *o = &s->options;
  *out = (struct cluster){.spec = o->cluster, .from = "--cluster", .task = o->task, .task_from = "--task"};
  enum dgc_status status = read_environment(s, out);
  if (!status) status = set_apart(s, out);
  if (status) return status;
  int rank, processes = session_processes(s, &rank);
  if (!out->spec && processes > 1) {
    out->spec = arena_printf(s->arena, "worker=%d", processes);
    out->from = "the launcher";
  }
  return DGC_OK;
}

int session_processes(const struct dgc_session *s, int *process) {
  int processes = transport_launched(process) - s->evaluator->tasks;
  if (processes > 1 && !s->evaluator->here) return processes;
  *process = 0;
  return 1;
}

/* --- tasks --- */

enum dgc_status session_task(struct dgc_session *s, const struct cluster *c, const struct target *t,
                             int *task) {
  *task = -1;
  if (!c->task) return DGC_OK;
  int *of = arena_new_array(s->call, (size_t)t->ndevices, int);
  target_processes(t, of);
  for (int i = 0; i < t->ndevices; i++) {
    const struct device_name *n = &t->devices[i].name;
    if (n->job && strcmp(arena_printf(s->call, "%s:%d", n->job, n->task), c->task) == 0) *task = of[i];
  }
  if (*task >= 0) return DGC_OK;
  session_fail(s, DGC_USAGE, "%s: the cluster (%s of %s) has no task %s", c->task_from,
               c->spec ? c->spec : "none", c->from, c->task);
  diag_help(&s->diags, LOC_NONE, "a task is its job and its number, as worker:0");
  return DGC_USAGE;
}

/* As a cluster names it. */
static const char *host_name(struct dgc_session *s, const char *name) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  char *host = arena_printf(s->call, "%s:0", name); /* by its port it is no number */
  for (char *p = host; p[2]; p++)
    if (!strchr(letters, *p) || (p == host && *p == '-')) *p = '_';
  return host;
}

const char *session_hosts(struct dgc_session *s, const struct target *t, const struct transport *transport) {
  struct str hosts = str_make(s->call);
  const struct device_name *last = NULL;
  int *of = arena_new_array(s->call, (size_t)t->ndevices, int);
  bool several = false;
  target_processes(t, of);
  for (int i = 0; i < t->ndevices; i++) {
    const struct device_name *n = &t->devices[i].name;
    bool job = !last || !str_same(last->job, n->job);
    if (!job && last->task == n->task) continue;
    if (!n->job || n->task != (job ? 0 : last->task + 1) || of[i] >= transport->size) return NULL;
    const char *host = host_name(s, transport->host(transport, of[i]));
    several |= strcmp(transport->host(transport, of[i]), transport->host(transport, 0)) != 0;
    if (job)
      str_printf(&hosts, "%s%s=%s", hosts.len ? ";" : "", n->job, host);
    else
      str_printf(&hosts, ",%s", host);
    last = n;
  }
  return several ? arena_strdup(s->arena, hosts.data) : NULL;
}

/* What is wrong is told when something runs. */
static enum dgc_status find_process(struct dgc_session *s, int *process) {
  struct cluster c;
  struct target t;
  int task = -1;
  transport_launched(process);
  if (s->transport)
    *process = s->transport->rank;
  else if (!session_cluster(s, &c) && c.spec && c.task &&
           cluster_parse(s->call, c.spec, s->options.devices, &t, &s->diags) &&
           !session_task(s, &c, &t, &task) && task >= 0)
    *process = task;
  diags_init(&s->diags, s->call);
  return DGC_OK;
}

static enum dgc_status find_process_call(struct dgc_session *s, int *process) {
  CALL(s, find_process(s, process));
}

int dgc_process(struct dgc_session *s, int *count) {
  int process, processes = transport_launched(&process);
  if (count) *count = processes;
  if (processes > 1) find_process_call(s, &process);
  return process;
}

/* As above. */
static enum dgc_status find_evaluator(struct dgc_session *s, bool *is) {
  struct cluster c;
  *is = !session_cluster(s, &c) && s->evaluator->here;
  diags_init(&s->diags, s->call);
  return DGC_OK;
}

static enum dgc_status find_evaluator_call(struct dgc_session *s, bool *is) {
  CALL(s, find_evaluator(s, is));
}

bool dgc_is_evaluator(struct dgc_session *s) {
  bool is = false;
  find_evaluator_call(s, &is);
  return is;
}
