/* The gradients of every sample's loss, as ours and as JAX takes them of the exported forward pass. */
#include "passes/pass.h"
#include "tests/oracle/sample.h"

#include <stdio.h>
#include <stdlib.h>

/* g with these outputs alone. */
static struct graph *with_outputs(struct arena *a, const struct graph *g) {
  struct graph *out = arena_copy(a, g, sizeof *g);
  out->outputs = NULL;
  out->noutputs = 0;
  return out;
}

/* What the loss is made of, and the gradients by all variables, as outputs named after these. */
void write_gradients_of(const struct asked *q, const struct graph *train, const struct values *inputs,
                        const struct values *variables, int64_t rows) {
  struct arena *a = arena_create();
  struct diags d;
  diags_init(&d, a);
  struct graph *forward = with_outputs(a, train), *backward = with_outputs(a, train);
  const struct node *loss = NULL;
  for (uint32_t i = 0; i < train->count; i++) {
    struct node *n = train->nodes[i];
    if (n->op != OP_gradient || (loss && n->inputs[0] != loss)) continue;
    if (!loss) graph_add_output(forward, OUTPUT_VALUE, "loss", n->inputs[0], 0);
    loss = n->inputs[0];
    graph_add_output(backward, OUTPUT_VALUE, n->inputs[1]->name, n, 0);
  }
  backward->config = (struct config){0};
  backward->diags = &d;
  backward = loss ? pipeline_run(a, backward, "simplify,grad", NULL, NULL, &d) : NULL;
  if (loss && !backward) exit((fprintf(stderr, "%s: %s\n", train->name, d.first->message), 1));
  if (loss) {
    struct graph *whole = graph_wide(a, graph_concrete(a, graph_prune(a, forward), rows));
    struct graph *slopes = graph_wide(a, graph_concrete(a, backward, rows));
    struct values wide_inputs = values_wide(a, inputs), wide_variables = values_wide(a, variables);
    if (whole && slopes) {
      const char *name = arena_printf(a, "%s gradients", train->name);
      case_write_gradients(q, name, whole, slopes, &wide_inputs, &wide_variables);
    }
  }
  arena_destroy(a);
}
