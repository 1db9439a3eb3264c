/* SPDX-License-Identifier: Apache-2.0 */
/* --trace: a file that Perfetto and Chrome read. A process is a row of rows; each device of this process is one of
 * them, by its name in graphs, and so is the host. What a device does is a span with the name of the node that graphs
 * and pictures have; a wait has that of what was waited for. Times are microseconds since the file was begun. Of
 * devices that work behind the host, spans are the calls that asked them to. */
#include "session/trace.h"

#include "session/files.h"
#include "session/state/tracing.h"

#include "base/clock.h"
#include "ir/graph/text.h"
#include "ir/ops/op.h"
#include "runtime/data/atomic.h"
#include "runtime/mpi/transport.h"

#include <string.h>

enum { MAX_EVENTS = 2000000, HOST_ROW = 1000000 };

/* Of a plan that is traced: the events of a run, and who gives each signal. */
struct traced {
  struct exec_trace *events;
  struct giver {
    int device;
    const struct step *step; /* the last one before the signal that makes something */
  } * givers;
};

struct trace {
  struct atomic_file file;
  uint64_t origin;
  int64_t events, dropped;
  int process; /* of several */
  bool *named; /* by device: it has a row */
  struct str line;
  bool failed;
};

static bool run_traced(struct dgc_session *s, const struct plan_run *r);

/* ---- the file ---- */

static void put(struct dgc_session *s) {
  struct trace *t = s->tracing->trace;
  if (!t->failed) t->failed = !atomic_write(&t->file, t->line.data, t->line.len, &s->diags);
  t->line.len = 0;
}

static void begin_event(struct trace *t, const char *phase, int row) {
  str_printf(&t->line, "%s{\"ph\":\"%s\",\"pid\":%d,\"tid\":%d", t->events++ ? ",\n" : "", phase, t->process,
             row);
}

/* Microseconds with all digits, whatever the locale. */
static void put_time(struct trace *t, const char *name, uint64_t ns) {
  str_printf(&t->line, ",\"%s\":%llu.%03llu", name, (unsigned long long)ns / 1000,
             (unsigned long long)ns % 1000);
}

static void put_member(struct trace *t, const char *before, const char *text) {
  str_put(&t->line, before);
  text_print_json(&t->line, text);
}

static void name_row(struct dgc_session *s, int row, const char *name) {
  begin_event(s->tracing->trace, "M", row);
  put_member(s->tracing->trace, ",\"name\":\"thread_name\",\"args\":{\"name\":", name);
  str_put(&s->tracing->trace->line, "}}");
  begin_event(s->tracing->trace, "M", row);
  str_printf(&s->tracing->trace->line, ",\"name\":\"thread_sort_index\",\"args\":{\"sort_index\":%d}}", row);
  put(s);
}

enum dgc_status trace_open(struct dgc_session *s) {
  if (s->tracing->begun || !s->options.trace) return DGC_OK;
  int rank = s->transport ? s->transport->rank : 0;
  const char *path = rank ? arena_printf(s->arena, "%s.%d", s->options.trace, rank) : s->options.trace;
  enum dgc_status status = session_files_apart(s, false);
  if (status) return status;
  struct trace *t = arena_new(s->arena, struct trace);
  *t = (struct trace){.origin = clock_ns(), .process = rank, .line = str_make(s->arena)};
  if (!atomic_open(&t->file, s->arena, path, &s->diags)) return DGC_RUNTIME;
  s->tracing->trace = t;
  s->tracing->begun = true;
  s->tracing->run = run_traced;
  str_put(&t->line, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
  begin_event(t, "M", 0);
  put_member(t, ",\"name\":\"process_name\",\"args\":{\"name\":",
             s->transport ? arena_printf(s->call, "task %d", rank)
                          : arena_printf(s->call, "dgc %s", s->model->name));
  str_put(&t->line, "}}");
  name_row(s, HOST_ROW, "host");
  return DGC_OK;
}

enum dgc_status trace_close(struct dgc_session *s) {
  struct trace *t = s->tracing->trace;
  s->tracing->trace = NULL;
  if (!t) return DGC_OK;
  str_printf(&t->line, "\n],\"otherData\":{\"version\":\"%s\",\"model\":", dgc_version());
  text_print_json(&t->line, s->model->name);
  str_printf(&t->line, ",\"dropped\":%lld}}\n", (long long)t->dropped);
  if (!t->failed) t->failed = !atomic_write(&t->file, t->line.data, t->line.len, &s->diags);
  if (t->failed) {
    atomic_discard(&t->file);
    return DGC_RUNTIME;
  }
  if (t->dropped)
    diag_note(&s->diags, LOC_NONE, "trace: after %d events the file is full, and %lld more are not in it",
              MAX_EVENTS, (long long)t->dropped);
  return atomic_commit(&t->file, &s->diags) ? DGC_OK : DGC_RUNTIME;
}

/* A span without its end: arguments may follow. False: the file is full. */
static bool begin_span(struct trace *t, int row, const char *name, const char *category, uint64_t begin,
                       uint64_t end) {
  if (t->events >= MAX_EVENTS) {
    t->dropped++;
    return false;
  }
  begin_event(t, "X", row);
  put_member(t, ",\"name\":", name);
  put_member(t, ",\"cat\":", category);
  put_time(t, "ts", begin - t->origin);
  put_time(t, "dur", end - begin);
  return true;
}

void trace_span(struct dgc_session *s, const char *what, uint64_t begin) {
  struct trace *t = s->tracing->trace;
  if (!t) return;
  if (begin_span(t, HOST_ROW, what, what, begin, clock_ns()))
    str_printf(&t->line, ",\"args\":{\"step\":%lld}}", (long long)s->position.step);
  put(s);
}

/* ---- runs ---- */

static struct traced *prepare(const struct plan_run *r) {
  const struct plan *p = r->plan;
  struct traced *t = arena_new(r->arena, struct traced);
  t->events = exec_trace_make(r->arena, r->exec);
  t->givers = arena_new_array(r->arena, (size_t)p->nsignals + 1, struct giver);
  for (int i = 0; i < p->nsignals; i++) t->givers[i].device = -1; /* given in another run */
  for (int d = 0; d < p->ndevices; d++) {
    const struct step *last = NULL;
    for (int i = 0; i < p->devices[d].nsteps; i++) {
      const struct step *step = &p->devices[d].steps[i];
      if (step->kind == STEP_SIGNAL)
        t->givers[step->signal] = (struct giver){d, last};
      else if (step->node)
        last = step;
    }
  }
  return t;
}

/* All that libraries compute is one, whatever its op. */
static const char *category_of(const struct step *step) {
  return step->kind == STEP_LEAF ? "library" : step->kind == STEP_SCAN ? "loop" : step_word(step);
}

static const char *device_name(const struct plan *p, int device) {
  return p->graph->config.target.devices[device].text;
}

/* A wait's span is named after what it waits for. */
static void put_wait(struct trace *t, struct arena *a, const struct plan_run *r, const struct exec_event *e) {
  const struct step *step = &r->plan->devices[e->device].steps[e->step];
  struct giver from = {step->message ? step->message->from : -1, step};
  if (step->kind == STEP_WAIT) from = (*r->traced)->givers[step->signal];
  const char *name = from.step && from.step->node ? from.step->node->name : "another device";
  if (!begin_span(t, e->device, arena_printf(a, "wait: %s", name), "wait", e->begin, e->end)) return;
  put_member(t, ",\"args\":{\"for\":", name);
  if (from.device >= 0) put_member(t, ",\"on\":", device_name(r->plan, from.device));
  str_put(&t->line, "}}");
}

static void put_work(struct trace *t, struct arena *a, const struct plan *p, const struct exec_event *e) {
  const struct step *step = &p->devices[e->device].steps[e->step];
  const struct node *n = step->node;
  const char *category = category_of(step), *name = n ? n->name : category;
  if (!begin_span(t, e->device, name, category, e->begin, e->end)) return;
  put_member(t, ",\"args\":{\"op\":", n ? op_of(n)->name : category);
  const char *origin = n ? node_origin(a, n) : NULL;
  if (origin) put_member(t, ",\"where\":", origin);
  if (step->bytes) str_printf(&t->line, ",\"bytes\":%lld", (long long)step->bytes);
  if (step->kind == STEP_COPY)
    put_member(t, ",\"from\":", device_name(p, p->buffers[step->operands[0].buffer].device));
  if (step->flops) str_printf(&t->line, ",\"flops\":%lld", (long long)step->flops);
  str_put(&t->line, "}}");
}

/* Before its first event: of several processes each has some of the devices. */
static void name_device(struct dgc_session *s, const struct plan *p, int device) {
  struct trace *t = s->tracing->trace;
  if (!t->named) t->named = arena_new_array(s->arena, (size_t)p->ndevices, bool);
  if (t->named[device]) return;
  t->named[device] = true;
  name_row(s, device, device_name(p, device));
}

static void put_run(struct dgc_session *s, const struct plan_run *r, uint64_t begin, uint64_t end) {
  struct trace *t = s->tracing->trace;
  struct inner_arena inner;
  const struct exec_trace *all = (*r->traced)->events;
  session_inner_begin(s, &inner);
  for (int row = 0; row < all->rows; row++)
    for (int i = 0; i < all->counts[row]; i++) {
      const struct exec_event *e = &all->events[row][i];
      name_device(s, r->plan, e->device);
      if (e->waits)
        put_wait(t, s->call, r, e);
      else
        put_work(t, s->call, r->plan, e);
      put(s);
    }
  session_inner_end(&inner);
  if (begin_span(t, HOST_ROW, r->name, "step", begin, end)) {
    str_printf(&t->line, ",\"args\":{\"step\":%lld,\"rows\":%lld", (long long)r->step, (long long)r->rows);
    if (r->worker >= 0) str_printf(&t->line, ",\"worker\":%d", r->worker);
    str_put(&t->line, "}}");
  }
  put(s);
}

static bool run_traced(struct dgc_session *s, const struct plan_run *r) {
  if (!*r->traced) *r->traced = prepare(r);
  uint64_t begin = clock_ns();
  exec_trace(r->exec, (*r->traced)->events);
  bool done = exec_run(r->exec);
  uint64_t end = clock_ns();
  exec_trace(r->exec, NULL);
  put_run(s, r, begin, end);
  return done;
}
