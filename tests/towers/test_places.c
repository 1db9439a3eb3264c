/* SPDX-License-Identifier: Apache-2.0 */
/* The rule behind each node of a placed graph tells its device: from the printed graph alone, its header and the rules
 * that stand on the lines, every device is computed again. */
#include "ir/ops/op_id.h"
#include "ir/strategies.h"
#include "tests/towers/samples.h"

#include "ir/graph/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct reader {
  struct arena *arena;
  const struct graph *g;
  int *devices; /* by node, as derived */
};

/* The first device that has all fields of `text`; -1 if there is none. */
static int named(const struct reader *r, const char *text) {
  struct device_name want;
  if (!device_name_parse(r->arena, text, &want)) return -1;
  for (int i = 0; i < r->g->config.target.ndevices; i++)
    if (device_matches(&want, &r->g->config.target.devices[i].name)) return i;
  return -1;
}

/* Servers and what only stores carry no towers. */
static bool carries(const struct device *d) {
  return !d->no_towers && !(d->name.job && strcmp(d->name.job, "ps") == 0);
}

/* Towers lie over the devices that carry some in contiguous blocks. */
static int worker(const struct reader *r, int tower) {
  const struct config *c = &r->g->config;
  int *carry = arena_new_array(r->arena, (size_t)c->target.ndevices, int), n = 0;
  for (int i = 0; i < c->target.ndevices; i++)
    if (carries(&c->target.devices[i])) carry[n++] = i;
  return carry[tower_device(tower, c->towers, c->towers < n ? c->towers : n)];
}

/* The first CPU of the first worker's task, or that worker. */
static int first_cpu(const struct reader *r) {
  const struct target *t = &r->g->config.target;
  const struct device_name *first = &t->devices[worker(r, 0)].name;
  for (int i = 0; i < t->ndevices; i++) {
    const struct device_name *d = &t->devices[i].name;
    bool same_job = (!d->job && !first->job) || (d->job && first->job && strcmp(d->job, first->job) == 0);
    if (strcmp(d->kind, "cpu") == 0 && same_job && d->task == first->task) return i;
  }
  return worker(r, 0);
}

/* /cpu:0 of its task, which is there wherever variables need it. */
static int cpu_zero(const struct reader *r) {
  const struct target *t = &r->g->config.target;
  const struct device_name *first = &t->devices[worker(r, 0)].name;
  struct device_name zero = {.job = first->job, .task = first->task, .kind = "cpu", .part = -1};
  for (int i = 0; i < t->ndevices; i++)
    if (device_matches(&zero, &t->devices[i].name)) return i;
  return -1;
}

static int parameter_device(const struct reader *r) {
  const struct config *c = &r->g->config;
  if (c->parameter_device) return named(r, c->parameter_device);
  int compute = 0;
  for (int i = 0; i < c->target.ndevices; i++) compute += carries(&c->target.devices[i]);
  bool gpu = strcmp(c->target.devices[worker(r, 0)].name.kind, "gpu") == 0;
  bool shared = strategy_find(c->strategy)->storage == STORAGE_SHARED && !(compute == 1 && gpu);
  return shared ? cpu_zero(r) : worker(r, 0);
}

/* What the header says of a variable; what an optimizer keeps for one is where that is. */
static int home(const struct reader *r, const char *variable) {
  const struct config *c = &r->g->config;
  size_t longest = 0;
  int device = -1;
  for (int i = 0; i < c->nhomes; i++) {
    size_t len = strlen(c->homes[i].variable);
    bool its = strncmp(c->homes[i].variable, variable, len) == 0 && (!variable[len] || variable[len] == '.');
    if (its && len > longest) longest = len, device = named(r, c->homes[i].device);
  }
  return device;
}

/* The variable that an optimizer keeps this for: the longest beginning of its name that is one. */
static const struct node *owner(const struct reader *r, const struct node *slot) {
  const struct node *found = slot;
  size_t longest = 0;
  for (uint32_t i = 0; i < r->g->count; i++) {
    const struct node *v = r->g->nodes[i];
    size_t len = strlen(v->name);
    if (v->op != OP_variable || v == slot || len <= longest) continue;
    if (strncmp(slot->name, v->name, len) == 0 && slot->name[len] == '.') found = v, longest = len;
  }
  return found;
}

/* What a rule without annotations says. */
static int by_rule(const struct reader *r, const struct node *n, const char *rule) {
  const struct config *c = &r->g->config;
  int number;
  const char *arrow = strstr(rule, " -> "), *last = NULL;
  if (!arrow) return -1;
  const char *to = arrow + 4;
  if (*to == '/') return named(r, to);
  if (strcmp(to, "parameter device") == 0) return parameter_device(r);
  if (strcmp(to, "its home") == 0) return home(r, n->name);
  if (strcmp(to, "consolidation device") == 0)
    return c->consolidation_device ? named(r, c->consolidation_device) : first_cpu(r);
  if (strcmp(to, "with its variable") == 0)
    return r->devices[n->ninputs ? n->inputs[0]->id : owner(r, n)->id];
  if (strcmp(to, "where its towers are") == 0) return r->devices[n->inputs[0]->id];
  if (strcmp(to, "with its loop") == 0) return r->devices[n->inputs[0]->id];
  if (strcmp(to, "with their table") == 0) return r->devices[n->inputs[0]->id];
  if (strcmp(to, "the worker") == 0) return worker(r, 0);
  if (sscanf(to, "tower %d's worker", &number) == 1) return worker(r, number);
  for (const char *p = to; (p = strstr(p, "device ")); p += 7) last = p;
  return last && sscanf(last, "device %d", &number) == 1 ? number : -1;
}

/* `on "X" over RULE`: the fields of X over those of the rule's device. */
static int annotated(const struct reader *r, const struct node *n, const char *why, const char *over) {
  const char *end = strchr(why + 4, '"');
  const char *text = arena_strndup(r->arena, why + 4, (size_t)(end - why - 4));
  int device = by_rule(r, n, over);
  struct device_name want;
  if (device < 0 || !device_name_parse(r->arena, text, &want)) return -1;
  struct device_name base = r->g->config.target.devices[device].name;
  if (want.kind && strcmp(want.kind, base.kind) != 0) base.index = -1;
  struct device_name merged = device_name_merge(base, want);
  return named(r, device_name_text(r->arena, merged));
}

static int derive(const struct reader *r, const struct node *n) {
  const char *over = n->why.over, *rule = n->why.rule;
  const char *soft = strstr(rule, "soft placement -> ");
  if (soft) return named(r, soft + 18);
  if (strncmp(rule, "on \"", 4) == 0) return over ? annotated(r, n, rule, over) : -1;
  return by_rule(r, n, rule);
}

static struct str text_of(struct arena *a, const struct graph *placed) {
  struct str s = str_make(a);
  graph_print(&s, placed);
  return s;
}

static const char *read_back(struct arena *a, struct str s, struct graph **out) {
  struct diags d;
  diags_init(&d, a);
  *out = graph_parse(a, source_make(a, "placed", s.data, s.len), &d);
  if (!*out) return diags_text(&d, false);
  struct str again = str_make(a);
  graph_print(&again, *out);
  return strcmp(s.data, again.data) == 0 ? NULL : "the text is another when it is read and printed again";
}

static const char *rules_tell_devices(struct arena *a, struct str text) {
  struct graph *g;
  const char *wrong = read_back(a, text, &g);
  if (wrong) return wrong;
  struct reader r = {a, g, arena_new_array(a, g->count, int)};
  for (uint32_t i = 0; i < g->count; i++) {
    const struct node *n = g->nodes[i];
    const char *origin = node_origin(a, n);
    if (!n->why.rule) return arena_printf(a, "%s has no rule", n->name);
    if (!origin) return arena_printf(a, "%s has no origin", n->name);
    r.devices[i] = derive(&r, n);
    if (r.devices[i] != n->device)
      return arena_printf(a, "%s is on device %d, and its rule says %d: %s", n->name, n->device, r.devices[i],
                          reason_text(a, n->why));
  }
  return NULL;
}

/* Texts that were checked, by a digest of 64 bits. Some layouts differ in the name of the algorithm of
 * sums alone, which tells no device. */
enum { MAX_SEEN = 1 << 18 };
struct seen {
  uint64_t digests[MAX_SEEN]; /* 0: free */
  int count, again;
};

static bool is_new(struct seen *seen, uint64_t digest) {
  size_t at = digest % MAX_SEEN;
  for (; seen->digests[at]; at = (at + 1) % MAX_SEEN)
    if (seen->digests[at] == digest) return seen->again++, false;
  if (2 * seen->count < MAX_SEEN) seen->digests[at] = digest, seen->count++;
  return true;
}

/* Of all that the text says but for the algorithm's name. */
static uint64_t digest_of(struct arena *a, struct str text) {
  struct str s = str_make(a);
  const char *name = strstr(text.data, "\n  cross_device "), *rest = text.data;
  if (name) str_putn(&s, text.data, (size_t)(name - text.data)), rest = name + 1 + strcspn(name + 1, "\n");
  str_put(&s, rest);
  return str_digest(STR_HASH_SEED, s.data, s.len) | 1;
}

static const char *check_sample(struct arena *a, const struct sample_case *c, void *user) {
  struct str text = text_of(a, c->graph);
  return is_new(user, digest_of(a, text)) ? rules_tell_devices(a, text) : NULL;
}

static void samples(void **state) {
  (void)state;
  static const char *const lists[] = {
      "cpu:0",
      "cpu:0-1",
      "cpu:0-3",
      "cpu:1-2",
      "gpu:0-1",
      "cpu:0,gpu:0-2",
      "/job:worker/task:0/cpu:0,/job:worker/task:1/cpu:0",
      "/job:ps/task:0/cpu:0,/job:ps/task:1/cpu:0,/job:worker/task:0/cpu:0,/job:worker/task:1/cpu:0",
      NULL};
  struct seen *seen = calloc(1, sizeof *seen);
  assert_non_null(seen);
  each_sample(lists, 24, false, false, check_sample, seen);
  print_message("%d texts, %d of them as others\n", seen->count + seen->again, seen->again);
  assert_true(seen->again < seen->count * 4);
  free(seen);
}

/* Annotations: on ops they win, field by field; inputs stay, and so do variables but under the strategies that move
 * them. */
static void annotations(void **state) {
  (void)state;
  static const char text[] = "graph m.train {\n"
                             "  stage source\n"
                             "  x = input : f32[B,4] want \"/cpu:1\"\n"
                             "  w = variable {trainable=1} : f32[4,2] want \"/cpu:1\"\n"
                             "  y = matmul x, w : f32[B,2] want \"/cpu:1\"\n"
                             "  z = exp y : f32[B,2] want \"/gpu:0\"\n"
                             "  s = reduce_sum z {axes=[0]} : f32[2] want \"cpu\"\n"
                             "  b = broadcast s {axes=[1]} : f32[4,2] want \"/cpu:3\"\n"
                             "  w.update = assign w, b want \"/cpu:1\"\n"
                             "  w.sgd.m = variable {slot=\"w\"} : f32[4,2] want \"/cpu:0\"\n"
                             "  n = neg w.sgd.m\n"
                             "  w.sgd.m.update = assign w.sgd.m, n\n"
                             "  value s\n"
                             "  update w.update\n"
                             "  update w.sgd.m.update\n"
                             "}\n";
  static const char *const lists[] = {"cpu:0-1", "cpu:0-3", "cpu:0-3,gpu:0", "cpu:1,gpu:0-1"};
  static const char *const tried[] = {"mirrored", "central_storage", "replicate", "round_robin"};
  for (int l = 0; l < 4; l++)
    for (int s = 0; s < 4; s++)
      for (int towers = 1; towers < 5; towers++) {
        struct arena *a = arena_create();
        struct diags d;
        diags_init(&d, a);
        struct graph *g = graph_parse(a, source_make(a, "m.dg", text, sizeof text - 1), &d);
        assert_non_null(g);
        for (uint32_t i = 0; i < g->count; i++) g->nodes[i]->origin = "m.dsl:1";
        g->config =
            (struct config){.batch = 8, .towers = towers, .strategy = tried[s], .soft_placement = true};
        g->config.uneven = s == 2;
        assert_true(target_parse(a, lists[l], &g->config.target, &d, LOC_NONE));
        g = pipeline_run(a, g, NULL, "copies", NULL, &d);
        if (!g) fail_msg("%s", diags_text(&d, false));
        const char *wrong = rules_tell_devices(a, text_of(a, g));
        if (wrong) fail_msg("%s, %s, %d towers: %s", lists[l], tried[s], towers, wrong);
        const struct node *w = graph_find(g, "w"), *m = graph_find(g, "w.sgd.m");
        bool moves = s > 1 && l<3, kept = s> 0; /* cpu:1 is there; slots of one copy are with it */
        if (moves) assert_string_equal(g->config.target.devices[w->device].text, "/cpu:1");
        if (kept) assert_int_equal(w->device, m->device);
        arena_destroy(a);
      }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(annotations), cmocka_unit_test(samples)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
