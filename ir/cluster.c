/* SPDX-License-Identifier: Apache-2.0 */
/* Clusters: jobs and their tasks, as TensorFlow's cluster specifications have them, as a list of devices.
 *
 * All tasks are compiled for logical devices of one process, and run there if they are only numbered: where hosts are
 * named, they say which tasks are near each other (cluster_hosts), and what runs in one process refuses them
 * (cluster_numbered). */
#include "base/map.h"
#include "ir/target.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TASKS = MAX_TARGET_DEVICES };

struct job {
  const char *name;
  int tasks;
  bool hosts; /* they are named */
};

static bool wrong(struct diags *d, const char *what, const char *part) {
  diag_error(d, LOC_NONE, "cluster: %s: '%s'", what, part);
  diag_help(
      d, LOC_NONE,
      "write jobs with their hosts, as worker=host:2222,other:2222;ps=host:2223, or how many tasks they "
      "have, as worker=2;ps=1");
  return false;
}

/* "host" or "host:port", of len bytes. */
static bool is_host(const char *text, size_t len) {
  const char *colon = memrchr(text, ':', len);
  size_t name = colon ? (size_t)(colon - text) : len;
  if (name == 0 || *text == '-') return false;
  for (size_t i = 0; i < name; i++)
    if (!isalnum((unsigned char)text[i]) && !strchr(".-_[]:", text[i])) return false;
  if (!colon || text[len - 1] == ']') return true;
  size_t digits = len - name - 1;
  return digits > 0 && digits <= 5 && strspn(colon + 1, "0123456789") == digits &&
         strtol(colon + 1, NULL, 10) <= 65535;
}

/* "worker=2" or "worker=host:port,host:port" */
static bool parse_job(struct arena *a, const char *text, struct job *out, struct diags *d) {
  static const char *const jobs[] = {"chief", "worker", "ps"};
  const char *equals = strchr(text, '=');
  if (!equals) return wrong(d, "a job needs tasks", text);
  const char *name = arena_strndup(a, text, (size_t)(equals - text)), *tasks = equals + 1;
  *out = (struct job){0};
  for (int i = 0; i < 3; i++)
    if (strcmp(name, jobs[i]) == 0) out->name = jobs[i];
  if (!out->name) return wrong(d, "the jobs of training are chief, worker and ps, not", name);
  if (!*tasks) return wrong(d, "a job needs tasks", text);
  if (strspn(tasks, "0123456789") == strlen(tasks)) {
    out->tasks = strlen(tasks) > 5 ? MAX_TASKS + 1 : (int)strtol(tasks, NULL, 10);
    if (out->tasks < 1 || out->tasks > MAX_TASKS) return wrong(d, "a job has 1 to 16384 tasks", text);
  } else {
    out->hosts = true;
    for (const char *p = tasks;; p++) {
      size_t len = strcspn(p, ",");
      if (len == 0) return wrong(d, "a host is missing", text);
      if (memchr(p, '=', len))
        return wrong(d, "jobs stand apart by `;`, not by `,`", arena_strndup(a, p, len));
      if (!is_host(p, len)) return wrong(d, "no host, and no host:port", arena_strndup(a, p, len));
      out->tasks++;
      p += len;
      if (!*p) break;
    }
  }
  return true;
}

/* Whether a device of the list says which job it belongs to: then the list is complete. */
static bool names_jobs(const struct target *t) {
  for (int i = 0; i < t->ndevices; i++)
    if (t->devices[i].name.job) return true;
  return false;
}

static bool check_members(const struct target *t, const struct job *jobs, int njobs, struct diags *d) {
  for (int i = 0; i < t->ndevices; i++) {
    const struct device_name *n = &t->devices[i].name;
    bool member = false;
    for (int k = 0; k < njobs; k++)
      member |= n->job && strcmp(n->job, jobs[k].name) == 0 && n->task >= 0 && n->task < jobs[k].tasks;
    if (member) continue;
    diag_error(d, LOC_NONE, "%s is no device of the cluster's tasks", t->devices[i].text);
    return false;
  }
  return true;
}

/* Workers have the listed devices each, a parameter server its CPU. */
static void list_devices(struct str *s, const struct job *job, const struct target *each) {
  bool stores = strcmp(job->name, "ps") == 0;
  for (int task = 0; task < job->tasks; task++)
    for (int i = 0; i < (stores ? 1 : each->ndevices); i++)
      str_printf(s, "%s/job:%s/task:%d%s", s->len ? "," : "", job->name, task,
                 stores ? "/cpu:0" : each->devices[i].text);
}

/* At most three jobs; how many, 0 after an error. */
static int parse_jobs(struct arena *a, const char *spec, struct job *jobs, struct diags *d) {
  int njobs = 0;
  for (const char *p = spec;; p++) {
    size_t len = strcspn(p, ";");
    struct job job;
    if (!parse_job(a, arena_strndup(a, p, len), &job, d)) return 0;
    for (int i = 0; i < njobs; i++)
      if (strcmp(jobs[i].name, job.name) == 0) return wrong(d, "a job is given twice", job.name), 0;
    jobs[njobs++] = job;
    p += len;
    if (!*p) return njobs;
  }
}

const char *cluster_numbered(struct arena *a, const char *spec, struct diags *d) {
  struct job jobs[3];
  struct str numbers = str_make(a);
  bool hosts = false;
  int njobs = parse_jobs(a, spec, jobs, d);
  for (int i = 0; i < njobs; i++) {
    hosts |= jobs[i].hosts;
    str_printf(&numbers, "%s%s=%d", i ? ";" : "", jobs[i].name, jobs[i].tasks);
  }
  return hosts ? numbers.data : NULL;
}

/* The hosts of one job, "worker=a:1,b:1", by task. */
static void name_hosts(struct arena *a, const char *text, struct map *of) {
  const char *equals = strchr(text, '=');
  if (!equals || strspn(equals + 1, "0123456789") == strlen(equals + 1)) return;
  int task = 0;
  for (const char *p = equals + 1;; p++) {
    size_t len = strcspn(p, ",");
    const char *colon = memrchr(p, ':', len), *end = colon && p[len - 1] != ']' ? colon : p + len;
    map_put_owned(of, arena_printf(a, "%.*s:%d", (int)(equals - text), text, task++),
                  arena_strndup(a, p, (size_t)(end - p)));
    p += len;
    if (!*p) return;
  }
}

const int *cluster_hosts(struct arena *a, const char *spec, const struct target *t) {
  struct map names = map_make(a), of = map_make(a);
  for (const char *p = spec; p && *p; p += *p == ';') {
    size_t len = strcspn(p, ";");
    name_hosts(a, arena_strndup(a, p, len), &of);
    p += len;
  }
  int *hosts = arena_new_array(a, (size_t)t->ndevices, int);
  for (int i = 0; i < t->ndevices; i++) {
    const struct device_name *n = &t->devices[i].name;
    const char *host = n->job ? map_get(&of, arena_printf(a, "%s:%d", n->job, n->task)) : NULL;
    const int *known = host ? map_get(&names, host) : NULL;
    hosts[i] = known ? *known : 0;
    if (!host || known) continue;
    hosts[i] = (int)names.count;
    map_put_owned(&names, host, &hosts[i]);
  }
  return names.count < 2 ? NULL : hosts;
}

bool cluster_parse(struct arena *a, const char *spec, const char *devices, struct target *out,
                   struct diags *d) {
  struct job jobs[3];
  struct target each;
  int njobs = parse_jobs(a, spec, jobs, d);
  if (!njobs) return false;
  if (!target_parse(a, devices ? devices : "cpu:0", &each, d, LOC_NONE)) return false;
  if (names_jobs(&each)) {
    *out = each;
    return check_members(out, jobs, njobs, d);
  }
  struct str list = str_make(a);
  /* The chief's devices first, the workers' next: towers begin there. */
  static const char *const order[] = {"chief", "worker", "ps"};
  for (int k = 0; k < 3; k++)
    for (int i = 0; i < njobs; i++)
      if (strcmp(jobs[i].name, order[k]) == 0) list_devices(&list, &jobs[i], &each);
  return target_parse(a, list.data, out, d, LOC_NONE);
}

/* ---- numbers of tasks ---- */

/* A number of tasks at *p, which goes on behind it; 0: there is none. */
static int read_count(const char **p) {
  char *end;
  long n = **p >= '1' && **p <= '9' ? strtol(*p, &end, 10) : 0;
  if (n < 1 || n > MAX_TARGET_DEVICES) return 0;
  *p = end;
  return (int)n;
}

const char *tasks_read(struct arena *a, const char *text, const int **tasks, int *count) {
  enum { MOST = 64 };
  int *list = arena_new_array(a, MOST, int), n = 0;
  const char *p = text;
  do {
    int first = read_count(&p), last = first;
    if (first && strncmp(p, "..", 2) == 0) p += 2, last = read_count(&p);
    if (!first || !last || (*p && *p != ','))
      return arena_printf(a, "write numbers from 1 to %d, as 1,2,8 or 1..1024, not '%s'", MAX_TARGET_DEVICES,
                          text);
    if (last < first) return arena_printf(a, "%d..%d ends before it begins", first, last);
    for (int i = first; i <= last && n < MOST; i = i < last && 2 * i > last ? last : 2 * i) list[n++] = i;
    if (n == MOST) return arena_printf(a, "at most %d numbers are compared", MOST - 1);
  } while (*p++ == ',');
  *tasks = list;
  *count = n;
  return NULL;
}
