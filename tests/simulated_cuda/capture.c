/* SPDX-License-Identifier: Apache-2.0 */
/* Stream capture, and graphs.
 *
 * A stream that is captured has a frontier: the nodes that its next one comes after. An event that is recorded
 * takes the frontier along; a wait adds it to another stream's, which joins the capture by that. At the end all
 * nodes must come before the frontier of the stream where it began. A graph runs its nodes one by one in a
 * random order that its edges allow, so an edge that is missing shows. */
#include "tests/simulated_cuda/simulated.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_CAPTURES = 64 };

static struct capture {
  uint64_t number; /* 0: not in use */
  CUstream origin;
  pthread_t thread;
  CUstream *streams;
  int nstreams;
  struct node *nodes;
  int count, room;
  bool invalid;
} captures[MAX_CAPTURES];
static uint64_t last_number;

bool capture_active(uint64_t number) {
  for (int i = 0; i < MAX_CAPTURES; i++)
    if (number && captures[i].number == number) return true;
  return false;
}

bool capture_here(void) {
  for (int i = 0; i < MAX_CAPTURES; i++)
    if (captures[i].number && pthread_equal(captures[i].thread, pthread_self())) return true;
  return false;
}

void capture_invalidate_here(void) {
  for (int i = 0; i < MAX_CAPTURES; i++)
    if (captures[i].number && pthread_equal(captures[i].thread, pthread_self())) captures[i].invalid = true;
}

static CUresult refuse(struct capture *c, CUresult r, const char *why) {
  sim_complain("capture: %s", why);
  if (c) c->invalid = true;
  return r;
}

/* --- frontiers --- */

static void set_frontier(CUstream s, const int *nodes, int count) {
  int *copy = malloc((size_t)(count + 1) * sizeof *copy);
  if (count) memcpy(copy, nodes, (size_t)count * sizeof *copy);
  free(s->frontier);
  s->frontier = copy;
  s->nfrontier = count;
}

static void join(struct capture *c, CUstream s, const int *nodes, int count) {
  s->capture = c;
  set_frontier(s, nodes, count);
  c->streams = realloc(c->streams, (size_t)(c->nstreams + 1) * sizeof(CUstream));
  c->streams[c->nstreams++] = s;
}

static void add_to_frontier(CUstream s, const int *nodes, int count) {
  s->frontier = realloc(s->frontier, (size_t)(s->nfrontier + count + 1) * sizeof *s->frontier);
  for (int i = 0; i < count; i++) {
    bool known = false;
    for (int k = 0; k < s->nfrontier; k++) known = known || s->frontier[k] == nodes[i];
    if (!known) s->frontier[s->nfrontier++] = nodes[i];
  }
}

CUresult capture_add(CUstream s, struct work *w) {
  struct capture *c = s->capture;
  if (c->invalid) {
    work_drop(w);
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  }
  if (c->count == c->room)
    c->nodes = realloc(c->nodes, (size_t)(c->room = 2 * c->room + 16) * sizeof *c->nodes);
  c->nodes[c->count] = (struct node){w, s->frontier, s->nfrontier};
  s->frontier = NULL;
  set_frontier(s, &c->count, 1);
  c->count++;
  return CUDA_SUCCESS;
}

CUresult capture_record(CUstream s, CUevent e) {
  if (s->capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  e->capture = s->capture->number;
  e->nfrontier = s->nfrontier;
  e->frontier = malloc((size_t)(s->nfrontier + 1) * sizeof *e->frontier);
  if (s->nfrontier) memcpy(e->frontier, s->frontier, (size_t)s->nfrontier * sizeof *e->frontier);
  return CUDA_SUCCESS;
}

CUresult capture_wait(CUstream s, CUevent e) {
  struct capture *c = s->capture;
  if (c && c->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (!e->capture)
    return refuse(c, CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
                  "a captured stream waits for an event that was not captured");
  if (!capture_active(e->capture))
    return refuse(c, CUDA_ERROR_CAPTURED_EVENT,
                  "a stream waits for an event that was last recorded in an ended capture");
  if (c && c->number != e->capture)
    return refuse(c, CUDA_ERROR_STREAM_CAPTURE_MERGE,
                  "a captured stream waits for an event of another capture");
  if (c) {
    add_to_frontier(s, e->frontier, e->nfrontier);
    return CUDA_SUCCESS;
  }
  for (int i = 0; i < MAX_CAPTURES; i++)
    if (captures[i].number == e->capture) c = &captures[i];
  if (c->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  join(c, s, e->frontier, e->nfrontier);
  return CUDA_SUCCESS;
}

/* --- begin and end --- */

static void leave(CUstream s) {
  free(s->frontier);
  s->frontier = NULL;
  s->nfrontier = 0;
  s->capture = NULL;
}

void capture_forget_stream(CUstream s) {
  struct capture *c = s->capture;
  c->invalid = true;
  if (object_is(&s->object, kind_stream) && c->origin == s) return;
  for (int i = 0; i < c->nstreams; i++)
    if (c->streams[i] == s) c->streams[i] = c->streams[--c->nstreams];
  leave(s);
}

CUresult cuStreamBeginCapture(CUstream s, int mode) {
  CUresult r = sim_enter(__func__, 0);
  if (r) return r;
  r = stream_check(s);
  if (!r && mode != CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) r = CUDA_ERROR_INVALID_VALUE;
  if (!r && s->capture)
    r = refuse(s->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "the stream is being captured");
  if (r) return sim_leave(r);
  for (int i = 0; i < MAX_CAPTURES; i++) {
    if (captures[i].number) continue;
    captures[i] = (struct capture){.number = ++last_number, .origin = s, .thread = pthread_self()};
    join(&captures[i], s, NULL, 0);
    return sim_leave(CUDA_SUCCESS);
  }
  return sim_leave(CUDA_ERROR_OUT_OF_MEMORY);
}

/* Do all nodes come before the end of the origin? */
static bool joined(const struct capture *c) {
  bool *before = calloc((size_t)c->count + 1, sizeof *before), ok = true;
  for (int i = 0; i < c->origin->nfrontier; i++) before[c->origin->frontier[i]] = true;
  for (int i = c->count - 1; i >= 0; i--) { /* edges lead to later nodes only */
    ok = ok && before[i];
    for (int k = 0; before[i] && k < c->nodes[i].nbefore; k++) before[c->nodes[i].before[k]] = true;
  }
  free(before);
  return ok;
}

static void drop_nodes(struct node *nodes, int count) {
  for (int i = 0; i < count; i++) {
    work_drop(nodes[i].work);
    free(nodes[i].before);
  }
  free(nodes);
}

CUresult cuStreamEndCapture(CUstream s, CUgraph *graph) {
  CUresult r = sim_enter(__func__, DESTROYS);
  *graph = NULL;
  if (r) return r;
  r = stream_check(s);
  if (r && r != s->context->failed) return sim_leave(r); /* the capture ends on a failed device, too */
  struct capture *c = s->capture;
  if (!c && r) return sim_leave(r);
  if (!c) return sim_leave(refuse(NULL, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "it ends but did not begin"));
  if (c->origin != s)
    return sim_leave(
        refuse(c, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "it does not end in the stream where it began"));
  if (!pthread_equal(c->thread, pthread_self()))
    return sim_leave(refuse(c, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, "it ends in another thread"));
  for (int i = 0; i < c->nstreams; i++) /* nothing can be joined to it any more */
    c->invalid = c->invalid || c->streams[i]->context->failed;
  if (!r && c->invalid)
    r = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  else if (!r && !joined(c))
    r = refuse(c, CUDA_ERROR_STREAM_CAPTURE_UNJOINED,
               "work of another stream is not joined to the first one");
  for (int i = 0; i < c->nstreams; i++) leave(c->streams[i]);
  if (!r) {
    struct CUgraph_st *g = calloc(1, sizeof *g);
    g->nodes = c->nodes;
    g->count = c->count;
    sim_begin(&g->object, kind_graph, s->object.device);
    *graph = g;
  } else
    drop_nodes(c->nodes, c->count);
  free(c->streams);
  *c = (struct capture){0};
  return sim_leave(r);
}

/* --- graphs --- */

CUresult cuGraphDestroy(CUgraph g) {
  CUresult r = sim_enter(__func__, DESTROYS);
  if (r) return r;
  if (!g || !sim_valid(&g->object, kind_graph)) return sim_leave(CUDA_ERROR_INVALID_HANDLE);
  drop_nodes(g->nodes, g->count);
  object_end(&g->object);
  object_bury(&g->object);
  return sim_leave(CUDA_SUCCESS);
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph g, unsigned long long flags) {
  CUresult r = sim_enter(__func__, UNSAFE);
  if (r) return r;
  if (!g || !sim_valid(&g->object, kind_graph)) return sim_leave(CUDA_ERROR_INVALID_HANDLE);
  if (flags) return sim_leave(CUDA_ERROR_INVALID_VALUE);
  size_t n = (size_t)g->count + 1;
  CUgraphExec e = calloc(1, sizeof *e);
  *e = (struct CUgraphExec_st){.users = 1,
                               .count = g->count,
                               .nodes = calloc(n, sizeof *e->nodes),
                               .after = calloc(n, sizeof *e->after),
                               .nafter = calloc(n, sizeof *e->nafter)};
  for (int i = 0; i < g->count; i++) {
    const struct node *from = &g->nodes[i];
    from->work->users++;
    int *before = malloc((size_t)(from->nbefore + 1) * sizeof *before);
    for (int k = 0; k < from->nbefore; k++) {
      int b = before[k] = from->before[k];
      e->after[b] = realloc(e->after[b], (size_t)(e->nafter[b] + 1) * sizeof **e->after);
      e->after[b][e->nafter[b]++] = i;
    }
    e->nodes[i] = (struct node){from->work, before, from->nbefore};
  }
  sim_begin(&e->object, kind_exec, g->object.device);
  *exec = e;
  return sim_leave(CUDA_SUCCESS);
}

void exec_release(CUgraphExec e) {
  if (--e->users) return;
  drop_nodes(e->nodes, e->count);
  for (int i = 0; i < e->count; i++) free(e->after[i]);
  free(e->after);
  free(e->nafter);
  moment_drop(e->last);
  object_bury(&e->object);
}

CUresult cuGraphExecDestroy(CUgraphExec e) {
  CUresult r = sim_enter(__func__, DESTROYS);
  if (r) return r;
  if (!e || !sim_valid(&e->object, kind_exec)) return sim_leave(CUDA_ERROR_INVALID_HANDLE);
  object_end(&e->object);
  exec_release(e);
  return sim_leave(CUDA_SUCCESS);
}

CUresult cuGraphLaunch(CUgraphExec e, CUstream s) {
  CUresult r = sim_enter(__func__, 0);
  if (r) return r;
  r = stream_check(s);
  if (!r && (!e || !sim_valid(&e->object, kind_exec))) r = CUDA_ERROR_INVALID_HANDLE;
  if (!r && s->capture)
    r = refuse(s->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "graphs in graphs are not simulated");
  for (int i = 0; !r && i < e->count; i++) {
    const struct work *w = e->nodes[i].work;
    r = sim_contexts[w->device].failed;
    if (w->function && !sim_valid(&w->function->module->object, kind_module)) {
      sim_complain("cuGraphLaunch: the module of kernel %s is unloaded", w->function->kernel->name);
      r = CUDA_ERROR_INVALID_HANDLE;
    }
  }
  if (r) return sim_leave(r);
  if (e->last && !e->last->done) { /* launches of a graph follow each other, whatever their streams */
    stream_push(s, OP_WAIT)->moment = e->last;
    e->last->users++;
  }
  struct op *op = stream_push(s, OP_GRAPH);
  op->exec = e;
  e->users++;
  op->moment = moment_new(s);
  moment_drop(e->last);
  e->last = op->moment;
  e->last->users++;
  graph_start(op);
  stream_some();
  return sim_leave(CUDA_SUCCESS);
}

/* --- running a graph --- */

/* Among those that have become ready since there were `before` of them, at any place. */
static void make_ready(struct op *op, int before, int node) {
  int place = before + (int)sim_below((uint64_t)(op->nready - before) + 1);
  op->ready[op->nready++] = op->ready[place];
  op->ready[place] = node;
}

void graph_start(struct op *op) {
  const struct CUgraphExec_st *e = op->exec;
  size_t n = (size_t)e->count + 1;
  op->left = e->count;
  op->missing = calloc(n, sizeof *op->missing);
  op->ready = calloc(n, sizeof *op->ready);
  op->finish = calloc(n, sizeof *op->finish);
  op->newest = sim_below(2);
  op->late = (int)sim_below(2 * n) - (int)n; /* half of the time none */
  for (int i = 0; i < e->count; i++)
    if ((op->missing[i] = e->nodes[i].nbefore) == 0) make_ready(op, 0, i);
}

/* Any node that could be next, or the one that has been so for the shortest time: then what hangs together runs
 * ahead of all else. One node may be kept back as long as there is another. */
static int take_ready(struct op *op) {
  int n = op->nready, place = op->newest ? n - 1 : (int)sim_below((uint64_t)n);
  if (op->ready[place] == op->late && n > 1)
    place = op->newest ? n - 2 : (place + 1 + (int)sim_below((uint64_t)n - 1)) % n;
  int node = op->ready[place];
  memmove(&op->ready[place], &op->ready[place + 1], (size_t)(n - 1 - place) * sizeof *op->ready);
  op->nready--;
  return node;
}

bool graph_step(CUstream s, struct op *op) {
  const struct CUgraphExec_st *e = op->exec;
  if (op->left == 0) return true;
  int i = take_ready(op), ready = op->nready;
  s->stuck = work_stuck(e->nodes[i].work);
  if (s->stuck) return false;
  uint64_t start = op->issued, begin = sim_now();
  for (int k = 0; k < e->nodes[i].nbefore; k++) {
    uint64_t before = op->finish[e->nodes[i].before[k]];
    if (start < before) start = before;
  }
  work_run(e->nodes[i].work);
  op->finish[i] = start + (sim_now() - begin);
  if (s->clock < op->finish[i]) s->clock = op->finish[i];
  for (int k = 0; k < e->nafter[i]; k++) {
    int next = e->after[i][k];
    if (--op->missing[next] == 0) make_ready(op, ready, next);
  }
  return --op->left == 0;
}
