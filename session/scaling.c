/* SPDX-License-Identifier: Apache-2.0 */
/* How long a step takes on any number of tasks, by each cross-device algorithm, as a table and as JSON. */
#include "session/scaling.h"

#include "session/forecast.h"
#include "session/settle.h"
#include "session/state/settlement.h"

#include "ir/graph/text.h"
#include "passes/strategy/strategy.h"

#include <string.h>

/* What so many tasks do. */
struct scale {
  struct crew crew;
  const char *refused; /* why there is no such crew, or NULL */
  struct forecast by[CROSS_DEVICE_COUNT];
  double efficiency[CROSS_DEVICE_COUNT]; /* rows a second of a task, of those of one alone */
  enum cross_device taken;               /* by auto */
};

struct scaling {
  struct dgc_session *s;
  enum entry_kind kind;
  struct speeds speeds;
  const int *hosts; /* of the tasks that --cluster names, which are repeated; NULL: each has one of its own */
  int nnamed, nhosts;
  struct scale *scales;
  int count;
};

/* ---- numbers of tasks ---- */

static struct crew crew_of(const struct dgc_session *s, int tasks) {
  int towers = s->options.towers ? (int)s->options.towers : tasks;
  int64_t batch = session_batch(s);
  if (s->settlement->config.batch_per_replica ||
      (s->options.batch_is && strcmp(s->options.batch_is, "per_replica") == 0))
    batch = batch / s->settlement->config.towers * towers;
  return (struct crew){tasks, towers, batch, NULL};
}

/* The hosts of so many tasks: those that are named, and as many others again and again. */
static const int *hosts_of(const struct scaling *c, int tasks) {
  int *host = arena_new_array(c->s->call, (size_t)tasks, int);
  for (int i = 0; i < tasks; i++) host[i] = c->hosts[i % c->nnamed] + i / c->nnamed * c->nhosts;
  return host;
}

/* The hosts that --cluster names for workers of one device each. */
static bool find_hosts(struct scaling *c) {
  struct dgc_session *s = c->s;
  const struct target *t = &s->settlement->listed;
  int *of = arena_new_array(s->call, (size_t)t->ndevices, int);
  if (!s->options.cluster) return true;
  c->hosts = cluster_hosts(s->call, s->options.cluster, t);
  c->nnamed = t->ndevices;
  for (int i = 0; c->hosts && i < t->ndevices; i++) {
    if (strcmp(t->devices[i].name.job, "worker") != 0) return false;
    c->nhosts = c->hosts[i] >= c->nhosts ? c->hosts[i] + 1 : c->nhosts;
  }
  return c->hosts && target_processes(t, of) == t->ndevices;
}

static bool predict_all(struct forecasting *f, double alone, struct scale *out) {
  if (!forecast_sums(f, &out->crew, out->by)) return false;
  out->taken = forecast_best(&out->crew, out->by);
  for (int i = 0; i < CROSS_DEVICE_COUNT; i++)
    out->efficiency[i] = (double)out->crew.batch / out->crew.tasks / out->by[i].step / alone;
  return true;
}

static enum dgc_status predict(struct scaling *c, const int *tasks) {
  struct dgc_session *s = c->s;
  struct forecasting f = {.s = s, .kind = c->kind, .speeds = c->speeds, .why = &s->diags};
  struct forecast by[CROSS_DEVICE_COUNT];
  struct crew one = crew_of(s, 1);
  session_configure(s, &f.base, 0);
  const char *devices = s->options.devices ? s->options.devices : "cpu:0";
  f.base.cluster = NULL;
  if (c->hosts && !target_parse(s->call, devices, &f.base.target, &s->diags, LOC_NONE)) return DGC_USAGE;
  if (!forecast_sums(&f, &one, by)) return session_blame(s);
  double alone = (double)one.batch / by[CROSS_DEVICE_reduce_to_one].step;
  for (int i = 0; i < c->count; i++) {
    struct scale *out = &c->scales[i];
    out->crew = crew_of(s, tasks[i]);
    if (c->hosts) out->crew.host = hosts_of(c, tasks[i]);
    if (out->crew.towers < tasks[i])
      out->refused =
          arena_printf(s->call, "%d towers are for %d tasks at most", out->crew.towers, out->crew.towers);
    else if (!predict_all(&f, alone, out))
      return session_blame(s);
  }
  return DGC_OK;
}

/* ---- printing ---- */

static const char *const nccl_refused = "it is for GPUs, and chooses its own messages";
static const char *const hosts_refused = "where hosts are named it is planned for all tasks together";

/* In a column of so many characters, at its right. */
static void put_right(struct scaling *c, struct str *out, int width, void (*print)(struct str *, double),
                      double value) {
  struct str cell = str_make(c->s->call);
  print(&cell, value);
  str_printf(out, " %*s", width, cell.data);
}

static void print_percent(struct str *s, double share) { str_printf(s, "%d %%", (int)(100 * share + 0.5)); }

static void print_head(struct scaling *c, struct str *out) {
  const struct scale *first = &c->scales[0];
  bool each = crew_of(c->s, 1).batch != crew_of(c->s, 2).batch;
  str_printf(out, "scaling of %s: batch %lld %s; a step, predicted\n", entry_source(c->s, c->kind)->name,
             (long long)(each ? first->crew.batch / first->crew.tasks : first->crew.batch),
             each ? "for each task" : "for all tasks together");
  str_put(out, "  of a task: ");
  speeds_print_speed(out, &c->speeds);
  str_put(out, " (--speed); of its link: ");
  speeds_print_link(out, &c->speeds);
  str_put(out, " (--link)\n");
  if (c->hosts)
    str_printf(out, "  %d tasks on %d hosts, and so on (--cluster); between tasks of a host by memory\n",
               c->nnamed, c->nhosts);
  str_put(out, ""
               "  messages and bytes: the busiest task; *: the fastest that keeps the bits\n"
               "tasks  algorithm         computing messages      sent  received      step  eff.\n");
}

static void print_row(struct scaling *c, struct str *out, const struct scale *scale, int algorithm) {
  const struct forecast *k = &scale->by[algorithm];
  const struct link_load *l = &k->most;
  bool alone = scale->crew.tasks == 1;
  str_printf(out, "%5d%c %-17s", scale->crew.tasks, (int)scale->taken == algorithm && !alone ? '*' : ' ',
             alone ? "-" : cross_devices[algorithm].name);
  put_right(c, out, 9, print_seconds, k->computing);
  int64_t messages = l->messages_sent > l->messages_received ? l->messages_sent : l->messages_received;
  str_printf(out, " %8lld", (long long)messages);
  put_right(c, out, 9, print_bytes, (double)l->bytes_sent);
  put_right(c, out, 9, print_bytes, (double)l->bytes_received);
  put_right(c, out, 9, print_seconds, k->step);
  put_right(c, out, 5, print_percent, scale->efficiency[algorithm]);
  str_putc(out, '\n');
}

static void print_table(struct scaling *c, struct str *out) {
  const struct scale *best = NULL;
  int with = 0;
  print_head(c, out);
  for (int i = 0; i < c->count; i++) {
    const struct scale *scale = &c->scales[i];
    if (scale->refused) {
      str_printf(out, "%5d  refused: %s\n", scale->crew.tasks, scale->refused);
      continue;
    }
    for (int k = 0; k < CROSS_DEVICE_COUNT; k++) {
      if (!forecast_knows(&scale->crew, (enum cross_device)k) || (scale->crew.tasks == 1 && k > 0)) continue;
      print_row(c, out, scale, k);
      double now = scale->by[k].step / (double)scale->crew.batch;
      if ((int)scale->taken != k || (best && now >= best->by[with].step / (double)best->crew.batch)) continue;
      best = scale;
      with = k;
    }
  }
  str_printf(out, "nccl: refused: %s\n", nccl_refused);
  if (c->hosts) str_printf(out, "hierarchical_copy: refused: %s\n", hosts_refused);
  if (!best) return;
  str_printf(out, "most rows a second: %d task%s", best->crew.tasks, best->crew.tasks == 1 ? "" : "s");
  if (best->crew.tasks > 1) str_printf(out, " with %s", cross_devices[with].name);
  str_put(out, ", ");
  print_seconds(out, best->by[with].step);
  str_put(out, " a step\n");
}

static void json_number(struct str *out, const char *name, double value) {
  str_printf(out, ", \"%s\": ", name);
  str_double(out, value);
}

static void json_row(struct str *out, const struct scale *scale, int algorithm) {
  const struct forecast *k = &scale->by[algorithm];
  const struct link_load *l = &k->most;
  str_printf(out, "{\"name\": \"%s\", \"taken\": %s, \"fixed_bits\": %s", cross_devices[algorithm].name,
             (int)scale->taken == algorithm ? "true" : "false",
             cross_devices[algorithm].bits == BITS_OF_TREE ? "true" : "false");
  str_printf(out, ", \"messages_sent\": %lld, \"messages_received\": %lld", (long long)l->messages_sent,
             (long long)l->messages_received);
  str_printf(out, ", \"bytes_sent\": %lld, \"bytes_received\": %lld", (long long)l->bytes_sent,
             (long long)l->bytes_received);
  json_number(out, "computing", k->computing);
  json_number(out, "step", k->step);
  json_number(out, "efficiency", scale->efficiency[algorithm]);
  str_putc(out, '}');
}

static void print_json(struct scaling *c, struct str *out) {
  str_put(out, "{\"graph\": ");
  text_print_json(out, entry_source(c->s, c->kind)->name);
  json_number(out, "flops", c->speeds.flops);
  json_number(out, "memory", c->speeds.memory);
  json_number(out, "link", c->speeds.link);
  json_number(out, "delay", c->speeds.delay);
  str_put(out, ", \"tasks\": [");
  for (int i = 0; i < c->count; i++) {
    const struct scale *scale = &c->scales[i];
    str_printf(out, "%s\n  {\"tasks\": %d, \"towers\": %d, \"batch\": %lld", i ? "," : "", scale->crew.tasks,
               scale->crew.towers, (long long)scale->crew.batch);
    if (scale->refused) {
      str_put(out, ", \"refused\": ");
      text_print_json(out, scale->refused);
    } else {
      str_put(out, ", \"algorithms\": [");
      for (int k = 0; k < CROSS_DEVICE_COUNT; k++) {
        if (!forecast_knows(&scale->crew, (enum cross_device)k)) continue;
        str_put(out, k ? ",\n    " : "\n    ");
        json_row(out, scale, k);
      }
      str_put(out, "]");
    }
    str_putc(out, '}');
  }
  str_printf(out, "\n], \"refused\": {\"nccl\": \"%s\"", nccl_refused);
  if (c->hosts) str_printf(out, ", \"hierarchical_copy\": \"%s\"", hosts_refused);
  str_put(out, "}}\n");
}

/* ---- */

static enum dgc_status check(struct scaling *c) {
  struct dgc_session *s = c->s;
  const struct strategy_info *strategy = strategy_find(s->settlement->config.strategy);
  if (s->options.task || !find_hosts(c)) {
    session_fail(s, DGC_USAGE, "--emit scaling is for clusters of workers, of any number");
    diag_help(
        &s->diags, LOC_NONE,
        "leave out --cluster and --task, and give numbers of workers: --tasks 1..64; or name the hosts of "
        "workers of one device each, which are repeated: --cluster worker=a,a,b,b");
    return DGC_USAGE;
  }
  if (!c->hosts && s->settlement->listed.ndevices > 1) {
    session_fail(s, DGC_USAGE, "--emit scaling is for tasks of one device each, and --devices lists %d",
                 s->settlement->listed.ndevices);
    return DGC_USAGE;
  }
  if (strategy && !(strategy->settings & TAKES_SUMS)) {
    session_fail(s, DGC_USAGE,
                 "strategy %s makes no sums that every task needs: there is no algorithm to compare",
                 strategy->name);
    diag_help(&s->diags, LOC_NONE, "--emit strategies compares strategies");
    return DGC_USAGE;
  }
  return DGC_OK;
}

enum dgc_status session_scaling(struct dgc_session *s, enum entry_kind kind, bool json, struct str *out) {
  struct scaling c = {.s = s, .kind = kind, .speeds = session_speeds(s)};
  const int *tasks;
  enum dgc_status status = check(&c);
  if (status) return status;
  tasks_read(s->call, s->options.tasks ? s->options.tasks : "1..64", &tasks, &c.count);
  c.scales = arena_new_array(s->call, (size_t)c.count, struct scale);
  status = predict(&c, tasks);
  if (!status) (json ? print_json : print_table)(&c, out);
  return status;
}
