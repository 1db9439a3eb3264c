/* SPDX-License-Identifier: Apache-2.0 */
/* Memory and traffic of a plan as text and as JSON. */
#include "ir/graph/text.h"
#include "ir/ops/op.h"
#include "ir/ops/op_id.h"
#include "ir/plan/report.h"

#include <limits.h>

static long long gaps(const struct memory_need *m) { return (long long)(m->arena - m->peak); }

static void print_live(struct str *s, const struct inventory *v, int device, int at) {
  for (int i = v->buffers.first[device]; i < v->buffers.first[device + 1]; i++) {
    const struct plan_buffer *b = &v->plan->buffers[v->buffers.number[i]];
    if (b->region != REGION_ARENA || b->first > at || b->last < at) continue;
    str_printf(s, "      %10lld at %-10lld %s, %s of steps %d to ", (long long)b->bytes, (long long)b->offset,
               b->name, purpose_names[buffer_purpose(v->plan, v->purposes, b)], b->first);
    if (b->last == INT_MAX)
      str_put(s, "the end\n");
    else
      str_printf(s, "%d\n", b->last);
  }
}

static void print_sums(struct str *s, const int64_t *sums, const char *indent) {
  for (int k = 0; k < PURPOSE_COUNT; k++)
    if (sums[k]) str_printf(s, "%s%12lld %ss\n", indent, (long long)sums[k], purpose_names[k]);
}

/* What is not kept for the backward pass: how much, and by name. */
static void print_repeated(struct str *s, const struct inventory *v, int device) {
  struct repeated r = plan_repeated(v, device);
  if (!r.flops && !r.values) return;
  str_printf(s, "    %12lld computed again, %d value%s, by %lld operations\n", (long long)r.bytes, r.values,
             r.values == 1 ? "" : "s", (long long)r.flops);
  for (int i = v->nodes.first[device]; i < v->nodes.first[device + 1]; i++) {
    const struct node *n = v->plan->graph->nodes[v->nodes.number[i]];
    if (!is_repeated(n) || node_is_strided(n) || op_of(n)->view) continue;
    str_printf(s, "      %10lld %s\n", (long long)type_bytes(&n->type), n->name);
  }
}

void plan_print_memory(struct str *s, const struct plan *p) {
  struct arena_guard guard;
  struct arena *a = arena_create_guarded(&guard);
  struct inventory v = plan_inventory(a, p);
  str_printf(s, "memory %s {\n", p->graph->name);
  for (int d = 0; d < p->ndevices; d++) {
    struct memory_need m = memory_need(a, &v, d);
    str_printf(s, "  %s: %lld bytes\n", plan_device_text(p, d), (long long)m.total);
    print_sums(s, m.fixed, "    ");
    str_printf(s, "    %12lld arena", (long long)m.arena);
    if (m.peak) str_printf(s, ", most of it at step %d", m.step);
    str_putc(s, '\n');
    print_sums(s, m.at_peak, "      ");
    if (gaps(&m)) str_printf(s, "      %12lld gaps\n", gaps(&m));
    if (m.peak) print_live(s, &v, d, m.step);
    print_repeated(s, &v, d);
  }
  str_put(s, "}\n");
  arena_destroy_guarded(a, &guard);
}

/* What a copy copies. */
static const char *source_of(const struct transfer *t) {
  if (t->collective) return t->node->inputs[collective_rank(t->node)]->name;
  return t->node->inputs[t->node->op == OP_assign]->name;
}

static void print_transfer(struct str *s, const struct transfer *t) {
  if (t->step < 0)
    str_put(s, "         alias");
  else
    str_printf(s, "    step %5d", t->step);
  str_printf(s, " %12lld  %s, %s %s\n", (long long)t->bytes, t->node->name, purpose_names[t->purpose],
             source_of(t));
}

void plan_print_traffic(struct str *s, const struct plan *p) {
  struct arena_guard guard;
  struct arena *a = arena_create_guarded(&guard);
  int count, copies = 0, aliases = 0;
  const struct transfer *all = plan_transfers(a, p, &count);
  int64_t total = 0;
  str_printf(s, "traffic %s {\n", p->graph->name);
  for (int i = 0; i < count;) {
    int end = i;
    int64_t bytes = 0;
    for (; end < count && all[end].from == all[i].from && all[end].to == all[i].to; end++)
      bytes += all[end].bytes, copies += all[end].step >= 0 && !all[end].collective,
          aliases += all[end].step < 0;
    str_printf(s, "  %s -> %s: %lld bytes\n", plan_device_text(p, all[i].from),
               plan_device_text(p, all[i].to), (long long)bytes);
    total += bytes;
    for (; i < end; i++) print_transfer(s, &all[i]);
  }
  str_printf(s, "  all: %lld bytes in %d cop%s, %d alias%s", (long long)total, copies,
             copies == 1 ? "y" : "ies", aliases, aliases == 1 ? "" : "es");
  if (p->ncollectives) str_printf(s, ", %d collective%s", p->ncollectives, p->ncollectives == 1 ? "" : "s");
  str_put(s, "\n}\n");
  arena_destroy_guarded(a, &guard);
}

/* ---- JSON ---- */

static void json_sums(struct str *s, const int64_t *sums) {
  str_putc(s, '{');
  for (int k = 0; k < PURPOSE_COUNT; k++)
    str_printf(s, "%s\"%ss\": %lld", k ? ", " : "", purpose_names[k], (long long)sums[k]);
  str_putc(s, '}');
}

void plan_print_memory_json(struct str *s, const struct plan *p) {
  struct arena_guard guard;
  struct arena *a = arena_create_guarded(&guard);
  struct inventory v = plan_inventory(a, p);
  str_put(s, "{\"graph\": ");
  text_print_json(s, p->graph->name);
  str_put(s, ", \"devices\": [");
  for (int d = 0; d < p->ndevices; d++) {
    struct memory_need m = memory_need(a, &v, d);
    str_put(s, d ? ",\n  {\"name\": " : "\n  {\"name\": ");
    text_print_json(s, plan_device_text(p, d));
    str_printf(s, ", \"bytes\": %lld, \"fixed\": ", (long long)m.total);
    json_sums(s, m.fixed);
    str_printf(s, ", \"arena\": %lld, \"peak\": %lld, \"step\": %d, \"at_peak\": ", (long long)m.arena,
               (long long)m.peak, m.step);
    json_sums(s, m.at_peak);
    struct repeated r = plan_repeated(&v, d);
    str_printf(s, ", \"again\": {\"values\": %d, \"bytes\": %lld, \"operations\": %lld}}", r.values,
               (long long)r.bytes, (long long)r.flops);
  }
  str_put(s, "\n]}\n");
  arena_destroy_guarded(a, &guard);
}

static void json_ends(struct str *s, const struct plan *p, const struct transfer *t) {
  str_put(s, "\"from\": ");
  text_print_json(s, plan_device_text(p, t->from));
  str_put(s, ", \"to\": ");
  text_print_json(s, plan_device_text(p, t->to));
}

static int64_t json_edges(struct str *s, const struct plan *p, const struct transfer *all, int count) {
  int64_t total = 0;
  for (int i = 0, end; i < count; i = end) {
    int64_t bytes = 0;
    for (end = i; end < count && all[end].from == all[i].from && all[end].to == all[i].to; end++)
      bytes += all[end].bytes;
    str_put(s, i ? ",\n  {" : "\n  {");
    json_ends(s, p, &all[i]);
    str_printf(s, ", \"bytes\": %lld}", (long long)bytes);
    total += bytes;
  }
  return total;
}

void plan_print_traffic_json(struct str *s, const struct plan *p) {
  struct arena_guard guard;
  struct arena *a = arena_create_guarded(&guard);
  int count;
  const struct transfer *all = plan_transfers(a, p, &count);
  str_put(s, "{\"graph\": ");
  text_print_json(s, p->graph->name);
  str_put(s, ", \"edges\": [");
  int64_t total = json_edges(s, p, all, count);
  str_printf(s, "], \"bytes\": %lld, \"copies\": [", (long long)total);
  for (int i = 0; i < count; i++) {
    const struct transfer *t = &all[i];
    str_put(s, i ? ",\n  {\"node\": " : "\n  {\"node\": ");
    text_print_json(s, t->node->name);
    str_put(s, ", \"of\": ");
    text_print_json(s, source_of(t));
    str_printf(s, ", \"carries\": \"%s\", ", purpose_names[t->purpose]);
    json_ends(s, p, t);
    if (t->step >= 0) str_printf(s, ", \"step\": %d", t->step);
    str_printf(s, ", \"bytes\": %lld, \"alias\": %s", (long long)t->bytes, t->step < 0 ? "true" : "false");
    str_put(s, t->collective ? ", \"collective\": true}" : "}");
  }
  str_put(s, "\n]}\n");
  arena_destroy_guarded(a, &guard);
}
