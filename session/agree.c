/* SPDX-License-Identifier: Apache-2.0 */
/* Agreement: what processes know is told the first one, which compares it and tells all what it found. */
#include "session/agree.h"

#include "ir/graph/graph.h"
#include "runtime/data/data.h"
#include "runtime/data/xxh64.h"
#include "runtime/engines.h"
#include "runtime/mpi/transport.h"
#include "session/options.h"
#include "session/state/best.h"
#include "session/state/running.h"
#include "session/state/settlement.h"
#include "session/state/values.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* "/job:worker/task:1 on node7" */
static const char *process_name(struct dgc_session *s, int process, const char *host) {
  const struct target *t = &s->settlement->target;
  int *of = arena_new_array(s->call, (size_t)t->ndevices, int);
  target_processes(t, of);
  for (int i = 0; i < t->ndevices; i++) {
    if (of[i] != process) continue;
    const struct device_name *n = &t->devices[i].name;
    return n->job ? arena_printf(s->call, "/job:%s/task:%d on %s", n->job, n->task, host)
                  : arena_printf(s->call, "process %d on %s", process, host);
  }
  return arena_printf(s->call, "process %d on %s", process, host);
}

/* The line at *text, of so many bytes; *text goes on to the next one. */
static const char *next_line(const char **text, int *len) {
  const char *line = *text;
  *len = (int)strcspn(line, "\n");
  *text = line + *len + (line[*len] == '\n');
  return line;
}

static bool same_line(const char *a, int alen, const char *b, int blen) {
  return alen == blen && memcmp(a, b, (size_t)alen) == 0;
}

/* Facts are lines: the host, which may be any, what the process is about to do, and what has to be the same for that.
 * Where they differ, what is to be said of it. If they differ in what `asks` begins with, more is to be known first:
 * that is "?", and the number of the process. */
static const char *first_difference(struct dgc_session *s, const char *const *facts, int processes,
                                    const char *asks) {
  for (int i = 1; i < processes; i++) {
    const char *mine = facts[0], *other = facts[i];
    int len, olen;
    const char *host = next_line(&mine, &len), *ohost = next_line(&other, &olen);
    const char *here = process_name(s, 0, arena_strndup(s->call, host, (size_t)len));
    const char *there = process_name(s, i, arena_strndup(s->call, ohost, (size_t)olen));
    while (*mine || *other) {
      const char *a = next_line(&mine, &len), *b = next_line(&other, &olen);
      if (same_line(a, len, b, olen)) continue;
      if (asks && strncmp(a, asks, strlen(asks)) == 0 && strncmp(b, asks, strlen(asks)) == 0)
        return arena_printf(s->call, "?%d", i);
      return arena_printf(s->call, "%s %.*s, and %s %.*s", there, olen, b, here, len, a);
    }
  }
  return "";
}

/* What the first process has found, "" if nothing, goes to all. */
static enum dgc_status compare(struct dgc_session *s, const char *facts, const char *asks,
                               const char **difference) {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  const struct transport *t = s->transport;
  const char **all;
  if (!transport_collect(t, s->call, arena_printf(s->call, "%s\n%s", host, facts), &all))
    return session_unreached(s);
  *difference = all ? first_difference(s, all, t->size, asks) : "";
  return transport_tell(t, s->call, difference) ? DGC_OK : session_unreached(s);
}

static enum dgc_status blame(struct dgc_session *s, const char *difference) {
  if (!*difference) return DGC_OK;
  transport_fail_together();
  if (s->transport->rank == 0) session_fail(s, DGC_USAGE, "the tasks do not agree: %s", difference);
  return DGC_USAGE;
}

static enum dgc_status agree(struct dgc_session *s, const char *facts) {
  const char *difference;
  enum dgc_status status = compare(s, facts, NULL, &difference);
  return status ? status : blame(s, difference);
}

enum dgc_status agree_on_build(struct dgc_session *s) {
  if (!s->transport) return DGC_OK;
  return agree(s, arena_printf(s->call, "begins\nhas --init-from %d times\nis dgc %s\nis built so:\n%s",
                               s->options.init_from.count, dgc_version(), dgc_build()));
}

/* One character per device: '1' if the process knows it to be simulated. */
enum dgc_status tell_simulated(struct dgc_session *s) {
  if (!s->transport) return DGC_OK;
  struct device *devices = s->settlement->target.devices;
  int n = s->settlement->target.ndevices;
  char *flags = arena_new_array(s->call, (size_t)n + 1, char);
  for (int i = 0; i < n; i++) flags[i] = devices[i].simulated ? '1' : '0';
  const char **all, *any = flags;
  if (!transport_collect(s->transport, s->call, flags, &all)) return session_unreached(s);
  for (int p = 0; all && p < s->transport->size; p++)
    for (int i = 0; i < n && all[p][i]; i++)
      if (all[p][i] == '1') flags[i] = '1';
  if (!transport_tell(s->transport, s->call, &any)) return session_unreached(s);
  for (int i = 0; i < n && any[i]; i++) devices[i].simulated = any[i] == '1';
  return DGC_OK;
}

enum dgc_status agree_on_checkpoint(struct dgc_session *s, const struct position *p) {
  if (!s->transport) return DGC_OK;
  return agree(s, arena_printf(s->call, "reads a checkpoint\nreads one of step %lld, epoch %lld, batch %lld",
                               (long long)p->step, (long long)p->epoch, (long long)p->index));
}

/* Its rows, and where they are cut into files. */
static void add_column(struct dgc_session *s, struct str *facts, const struct column *c) {
  str_printf(facts, "has %lld rows of %s, each %s\n", (long long)c->rows, c->name,
             type_text(s->call, &c->row));
  if (c->npieces < 2) return;
  struct xxh64 h;
  xxh64_init(&h);
  for (int i = 0; i < c->npieces; i++) xxh64_add(&h, &c->pieces[i].rows, sizeof c->pieces[i].rows);
  str_printf(facts, "has %s in %d files, whose sizes have the checksum %016llx\n", c->name, c->npieces,
             (unsigned long long)xxh64_end(&h));
}

/* All columns, and where a process has all of their rows, what these are: a checksum of some of them. */
static bool add_data(struct dgc_session *s, struct str *facts, const struct dataset *ds) {
  uint64_t sum;
  bool all;
  if (!dataset_sample(ds, &sum, &all, &s->diags)) return false;
  for (int i = 0; i < ds->ncolumns; i++) add_column(s, facts, &ds->columns[i]);
  if (all) str_printf(facts, "has rows whose checksum is %016llx\n", (unsigned long long)sum);
  return true;
}

enum dgc_status agree_on_evaluation(struct dgc_session *s, const struct dataset *ds) {
  if (!s->transport) return DGC_OK;
  struct str facts = str_make(s->call);
  str_put(&facts, "evaluates\n");
  return add_data(s, &facts, ds) ? agree(s, facts.data) : session_unread(s);
}

enum dgc_status agree_on_training(struct dgc_session *s, const struct dataset *ds, bool tested) {
  if (!s->transport) return DGC_OK;
  const struct options *o = &s->options;
  const struct position *p = &s->position;
  struct str facts = str_make(s->call);
  str_printf(&facts, "trains\nhas seed %lld\n", (long long)o->seed);
  str_printf(&facts, "begins at step %lld, epoch %lld, batch %lld\n", (long long)p->step, (long long)p->epoch,
             (long long)p->index);
  if (o->epochs_given) str_printf(&facts, "ends with epoch %lld\n", (long long)o->epochs);
  if (o->steps_given) str_printf(&facts, "ends with step %lld\n", (long long)o->steps);
  str_printf(&facts, "saves every %lld steps, every %lld s%s\n", (long long)o->checkpoint_every,
             (long long)o->checkpoint_seconds, o->checkpoint ? "" : ", without a file for it");
  str_printf(&facts, "evaluates every %lld steps, every %lld epochs, with patience %lld, watching %s%s\n",
             (long long)o->eval_every.steps, (long long)o->eval_every.epochs, (long long)o->patience,
             s->best->so_far.what ? s->best->so_far.what : "nothing",
             o->keep_best ? ", and keeps the best" : "");
  if (s->values->seeds) str_printf(&facts, "begins with values whose checksum is %s\n", s->values->seeds);
  if (s->settlement->free)
    str_printf(&facts, "takes batches as they come, %lld beside another's\n",
               (long long)s->settlement->unordered_bound);
  str_printf(&facts, "takes rows %s\n", o->no_shuffle ? "in their order" : "shuffled");
  str_printf(&facts, "has %s to evaluate on\n", tested ? "data" : "no data");
  return add_data(s, &facts, ds) ? agree(s, facts.data) : session_unread(s);
}

/* Lines are numbered from 1. */
static const char *different_line(struct dgc_session *s, const char *mine, const char *other, int process) {
  for (int line = 1; *mine || *other; line++) {
    int len, olen;
    const char *a = next_line(&mine, &len), *b = next_line(&other, &olen);
    if (same_line(a, len, b, olen)) continue;
    return arena_printf(
        s->call,
        "process %d has another plan than process 0. They differ first in line %d:\n  %.*s\nand\n  %.*s",
        process, line, olen, b, len, a);
  }
  return "";
}

/* The process whose plan is another shows it to the first one. */
static enum dgc_status show_plan(struct dgc_session *s, const char *text, int process) {
  const struct transport *t = s->transport;
  const char **all, *found = "";
  if (!transport_collect(t, s->call, t->rank == process ? text : "", &all)) return session_unreached(s);
  if (all) found = different_line(s, text, all[process], process);
  if (!transport_tell(t, s->call, &found)) return session_unreached(s);
  return blame(s, found);
}

/* ---- messages ---- */

/* What both ends of a message know of it. */
static const char *message_text(struct dgc_session *s, const struct plan *p, const struct message *m) {
  struct str line = str_make(s->call);
  str_printf(&line, "message %d from %s to %s, of %lld bytes, in the order", m->tag,
             plan_device_text(p, m->from), plan_device_text(p, m->to), (long long)m->bytes);
  int count;
  const int64_t *order = node_ints(m->node, ATTR_order, &count);
  for (int i = 0; i < count; i++) str_printf(&line, " %lld", (long long)order[i]);
  return line.data;
}

static bool is_sent_here(const struct plan *p, const struct message *m) {
  return plan_process(p, m->from) == p->part - 1;
}

/* Of all messages that are sent, less those that are received: over all processes 0. */
static uint64_t message_sum(struct dgc_session *s, const struct plan *p) {
  uint64_t sum = 0;
  for (int i = 0; i < p->nmessages; i++) {
    const char *text = message_text(s, p, &p->messages[i]);
    struct xxh64 h;
    xxh64_init(&h);
    xxh64_add(&h, text, strlen(text));
    sum += is_sent_here(p, &p->messages[i]) ? xxh64_end(&h) : -xxh64_end(&h);
  }
  return sum;
}

/* All of one process, a line each, as the first process reads them: "+" for what is sent. */
static const char *message_list(struct dgc_session *s, const struct plan *p) {
  struct str list = str_make(s->call);
  for (int i = 0; i < p->nmessages; i++)
    str_printf(&list, "%c%s, %s\n", is_sent_here(p, &p->messages[i]) ? '+' : '-',
               message_text(s, p, &p->messages[i]), p->messages[i].node->name);
  return list.data;
}

/* The first message that only one end knows of. */
static const char *lone_message(struct dgc_session *s, const char *const *lists, int processes) {
  struct map ends = map_make(s->call); /* by message_text: the line of the end that was seen */
  for (int i = 0; i < processes; i++)
    for (const char *p = lists[i]; *p;) {
      int len;
      const char *line = next_line(&p, &len);
      const char *name = memrchr(line, ',', (size_t)len);
      const char *key = arena_strndup(s->call, line + 1, (size_t)(name - line - 1));
      bool met = map_get(&ends, key) != NULL;
      map_put(&ends, key, met ? NULL : (void *)(uintptr_t)arena_strndup(s->call, line, (size_t)len));
    }
  for (uint32_t i = 0; i < ends.count; i++) {
    const char *line = ends.entries[i].value;
    if (line) return arena_printf(s->call, "nobody %s %s", *line == '+' ? "expects" : "sends", line + 1);
  }
  return "";
}

/* Each process has planned its own part: what one sends is what another receives. */
static enum dgc_status agree_on_messages(struct dgc_session *s, const struct plan *p) {
  const struct transport *t = s->transport;
  const char **all, *differ = "";
  if (!transport_collect(t, s->call, arena_printf(s->call, "%016llx", (unsigned long long)message_sum(s, p)),
                         &all))
    return session_unreached(s);
  uint64_t sum = 0;
  for (int i = 0; all && i < t->size; i++) sum += strtoull(all[i], NULL, 16);
  if (sum) differ = "?";
  if (!transport_tell(t, s->call, &differ)) return session_unreached(s);
  if (!*differ) return DGC_OK;
  if (!transport_collect(t, s->call, message_list(s, p), &all)) return session_unreached(s);
  if (all) differ = lone_message(s, all, t->size);
  return transport_tell(t, s->call, &differ) ? blame(s, differ) : session_unreached(s);
}

/* How this process computes what the plan leaves open; "" where it is nothing. */
static const char *way_of_computing(struct dgc_session *s, const struct graph *g) {
  bool bf16 = false;
  if (options_portable(&s->options)) return "\nhas --bits portable";
  for (uint32_t i = 0; i < g->count && !bf16; i++) bf16 = node_attr(g->nodes[i], ATTR_precision) != NULL;
  if (!bf16) return "";
  const char *units = engines_bf16_units(s->running->engines);
  if (!units) return "\nmultiplies bfloat16 as f32";
  return arena_printf(s->call, "\nmultiplies bfloat16 in units for it, %s (DGC_BF16_UNITS=off: as f32)",
                      units);
}

enum dgc_status agree_on_plan(struct dgc_session *s, const struct graph *g, const struct plan *p) {
  static const char digest[] = "has plan ";
  if (!s->transport) return DGC_OK;
  struct str text = str_make(s->call);
  graph_print(&text, g);
  if (!p->part) plan_print(&text, p);
  struct xxh64 h;
  xxh64_init(&h);
  xxh64_add(&h, text.data, text.len);
  const char *difference;
  enum dgc_status status = compare(s,
                                   arena_printf(s->call, "plans\n%s%016llx%s", digest,
                                                (unsigned long long)xxh64_end(&h), way_of_computing(s, g)),
                                   digest, &difference);
  if (status) return status;
  if (*difference == '?') return show_plan(s, text.data, (int)strtol(difference + 1, NULL, 10));
  status = blame(s, difference);
  return status || !p->part ? status : agree_on_messages(s, p);
}
