/* Which cluster a session runs in, and which of its tasks this process is: what the options say, else TF_CONFIG as
 * TensorFlow reads it ({"cluster": {"worker": ["host:port", ...], ...}, "task": {"type": "worker", "index": 0}}), else
 * what a launcher has started, all workers. */
#include "session/cluster.h"

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

enum dgc_status session_cluster(struct dgc_session *s, struct cluster *out) {
  const struct options *o = &s->options;
  int rank, processes = transport_launched(&rank);
  *out = (struct cluster){.spec = o->cluster, .from = "--cluster", .task = o->task, .task_from = "--task"};
  enum dgc_status status = read_environment(s, out);
  if (status) return status;
  if (!out->spec && processes > 1) {
    out->spec = arena_printf(s->arena, "worker=%d", processes);
    out->from = "the launcher";
  }
  return DGC_OK;
}

enum dgc_status session_task(struct dgc_session *s, const struct cluster *c, const struct target *t,
                             int *task) {
  *task = -1;
  if (!c->task) return DGC_OK;
  const char *colon = strchr(c->task, ':');
  int *of = arena_new_array(s->call, (size_t)t->ndevices, int);
  target_processes(t, of);
  for (int i = 0; i < t->ndevices; i++) {
    const struct device_name *n = &t->devices[i].name;
    if (n->job && strcmp(arena_printf(s->call, "%s:%d", n->job, n->task), c->task) == 0) *task = of[i];
  }
  if (*task >= 0) return DGC_OK;
  session_fail(s, DGC_USAGE, "%s: the cluster (%s of %s) has no task %s", c->task_from,
               c->spec ? c->spec : "none", c->from, c->task);
  if (colon && strncmp(c->task, "evaluator", (size_t)(colon - c->task)) == 0)
    diag_help(&s->diags, LOC_NONE, "there is no job evaluator: dgc eval evaluates a checkpoint");
  else
    diag_help(&s->diags, LOC_NONE, "a task is its job and its number, as worker:0");
  return DGC_USAGE;
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
           cluster_parse(s->call, c.spec, s->options.devices, &t, &s->diags, LOC_NONE) &&
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
