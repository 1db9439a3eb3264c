/* SPDX-License-Identifier: Apache-2.0 */
/* Windows of f32 by kernels/cuda/window_fixed.cu, whose text has the sizes in it. */
#include "runtime/cuda/leaf.h"

#include "base/integer.h"
#include "ir/ops/op_id.h"

enum { MOST_SIZE = 32 }; /* elements of a window */

bool cuda_window_is_fixed(const struct node *n) {
  if ((n->op != OP_window_max && n->op != OP_window_put) || n->inputs[0]->type.dtype != DT_F32) return false;
  if (type_count(&n->inputs[0]->type) == 0 || type_count(&n->type) == 0 || !cuda_windows_in_int(n))
    return false;
  struct windows w = windows_of(n);
  int64_t size = 1;
  for (int i = 0; i < WINDOW_AXES; i++) {
    if (w.dilation[i] != 1 || w.input_dilation[i] != 1 || w.size[i] > MOST_SIZE || w.output[i] == 0)
      return false;
    bool beside =
        w.stride[i] == w.size[i] && w.low[i] >= 0 && w.low[i] < w.size[i]; /* no window is padding alone */
    if (n->op == OP_window_put && !beside) return false;
    size *= w.size[i];
  }
  return size <= MOST_SIZE;
}

/* The definitions in front of the text. */
static const char *definitions(struct arena *a, const struct windows *w, bool put) {
  struct str text = str_make(a);
  str_printf(
      &text,
      "#define TYPE float\n#define SUM float\n#define INDEX int\n#define PUT %d\n#define CHANNELS %lld\n",
      put, (long long)w->channels);
  for (int i = 0; i < WINDOW_AXES; i++) {
    const struct {
      const char *name;
      int64_t value;
    } axis[] = {{"IN", w->input[i]},
                {"SIZE", w->size[i]},
                {"OUT", w->output[i]},
                {"STRIDE", w->stride[i]},
                {"LOW", w->low[i]}};
    for (size_t j = 0; j < sizeof axis / sizeof *axis; j++)
      str_printf(&text, "#define %s_%d (%lld)\n", axis[j].name, i, (long long)axis[j].value);
  }
  return text.data;
}

bool cuda_leaf_window(struct cuda_engine *e, struct arena *a, const struct step *step, int device,
                      struct command *c, struct diags *d) {
  const struct node *n = step->node;
  struct windows w = windows_of(n);
  bool put = n->op == OP_window_put;
  int64_t vec = w.channels % 4 == 0 ? 4 : w.channels % 2 == 0 ? 2 : 1, columns = w.output[2];
  int64_t high[2] = {w.output[0], w.output[1]};
  for (int i = 0; put && i < 2; i++) high[i] = blocks_of(w.input[i] + w.low[i], w.stride[i]);
  if (put) columns = w.input[2];
  struct leaf_launch how = {.name = "window_fixed",
                            .types = definitions(e->arena, &w, put),
                            .nargs = put ? 3 : 2,
                            .missing = !put,
                            .threads = w.batch * high[0] * high[1] * columns * (w.channels / vec)};
  op_of(n)->numbers(n, how.numbers);
  return cuda_call_leaf(e, a, &how, device, c, d);
}
