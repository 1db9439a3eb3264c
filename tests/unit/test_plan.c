/* Fusing, scheduling and memory: random graphs, run as planned, against the plain evaluation of the graph. */
#include "passes/pass.h"
#include "plan_random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

struct fixture {
  struct arena *arena, *scratch;
  struct diags diags;
};

static void begin(struct fixture *f) {
  *f = (struct fixture){.arena = arena_create(), .scratch = arena_create()};
  diags_init(&f->diags, f->arena);
}

static void end(struct fixture *f) {
  arena_destroy(f->arena);
  arena_destroy(f->scratch);
}

static void show(struct fixture *f, const struct graph *g, const struct plan *p) {
  struct str s = str_make(f->arena);
  if (g) graph_print(&s, g);
  if (p) plan_print(&s, p);
  fprintf(stderr, "%s%s", s.data, diags_text(&f->diags, false));
}

static struct graph *fuse(struct fixture *f, struct graph *g, bool verify) {
  struct pass_ctx ctx = {f->arena, f->scratch, &f->diags};
  struct graph *fused = pass_fuse(&ctx, g);
  arena_reset(f->scratch);
  if (verify && !graph_verify(fused, "fuse", &f->diags)) {
    show(f, fused, NULL);
    fail();
  }
  return fused;
}

static struct plan *plan(struct fixture *f, struct graph *fused) {
  struct plan *p = plan_build(f->arena, fused, &f->diags);
  if (!plan_verify(p, &f->diags)) {
    show(f, fused, p);
    fail();
  }
  return p;
}

static bool same(const struct tensor *want, const void *have) {
  if (want->type.dtype != DT_F32) return memcmp(want->data, have, (size_t)type_bytes(&want->type)) == 0;
  for (int64_t i = 0; i < type_count(&want->type); i++) {
    float a = ((const float *)want->data)[i], b = ((const float *)have)[i];
    if (!(a == b || (a != a && b != b))) return false;
  }
  return true;
}

static void start(struct machine *m, const struct graph *g) {
  for (uint32_t i = 0; i < g->count; i++) {
    const struct node *n = g->nodes[i];
    if (n->op != OP_variable || !machine_variable(m, n->name)) continue;
    memcpy(machine_variable(m, n->name), initial(m->arena, n).data, (size_t)type_bytes(&n->type));
  }
  for (int i = 0; i < m->p->ninputs; i++) {
    const struct node *n = graph_find(g, m->p->inputs[i].name);
    memcpy(machine_at(m, &m->p->inputs[i].operand), initial(m->arena, n).data, (size_t)type_bytes(&n->type));
  }
}

/* Runs the plan and compares each output and each variable. */
static const char *run_and_compare(struct fixture *f, const struct graph *g, const struct tensor *want,
                                   const struct plan *p, uint64_t seed) {
  struct machine m = machine_make(f->arena, p);
  m.random = seed;
  start(&m, g);
  if (!machine_run(&m)) return "the devices wait for each other";
  int k = 0;
  for (int i = 0; i < g->noutputs; i++) {
    const struct node *n = g->outputs[i].node;
    const void *have = g->outputs[i].role == OUTPUT_UPDATE ? machine_variable(&m, n->inputs[0]->name)
                                                           : machine_at(&m, &p->outputs[k++].operand);
    if (have && !same(&want[n->id], have)) return arena_printf(f->arena, "%s (%s)", g->outputs[i].name, n->name);
  }
  return NULL;
}

/* Without any one of its waits a plan is wrong. */
static void drop_waits(struct fixture *f, const struct plan *p) {
  for (int d = 0; d < p->ndevices; d++)
    for (int i = 0; i < p->devices[d].nsteps; i++) {
      struct step *s = &p->devices[d].steps[i], saved = *s;
      if (s->kind != STEP_WAIT) continue;
      *s = (struct step){.kind = STEP_COPY, .node = saved.node};
      struct diags diags;
      diags_init(&diags, f->scratch);
      if (plan_verify(p, &diags)) {
        *s = saved;
        show(f, p->graph, p);
        print_message("the wait at step %d of device %d is not needed\n", i, d);
        fail();
      }
      *s = saved;
      arena_reset(f->scratch);
    }
}

static void one_random(uint64_t seed, int nodes, int ndevices) {
  struct fixture f;
  begin(&f);
  struct graph *g = random_graph(f.arena, seed, nodes, ndevices, &f.diags);
  struct tensor *want = oracle(f.arena, g);
  struct graph *fused = fuse(&f, g, seed % 2 == 0);
  struct plan *p = plan(&f, fused);
  for (int i = 0; i < 3; i++) {
    const char *wrong = run_and_compare(&f, g, want, p, seed * 3 + (uint64_t)i);
    if (!wrong) continue;
    show(&f, g, NULL);
    show(&f, fused, p);
    print_message("seed %llu, %d nodes, %d devices: %s differs\n", (unsigned long long)seed, nodes, ndevices, wrong);
    fail();
  }
  drop_waits(&f, p);
  end(&f);
}

static int number(const char *variable, int otherwise) {
  const char *text = getenv(variable);
  return text ? atoi(text) : otherwise;
}

static void random_graphs(void **state) {
  (void)state;
  int first = number("PLAN_FIRST", 0), rounds = number("PLAN_ROUNDS", 60);
  for (int i = first; i < first + rounds; i++) one_random((uint64_t)i, 4 + i % 9 * 12, 1 + i % 4);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_graphs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
