/* SPDX-License-Identifier: Apache-2.0 */
/* Spatial axes: their attributes, how a window lies over them, and what is printed of it. */
#include "ir/ops/spatial.h"

bool spatial_numbers(const struct node *n, enum attr_key key, int rank, int64_t least, int64_t otherwise,
                     int64_t *out, struct arena *arena, const char **why) {
  const struct attr *a = node_attr(n, key);
  if (a && a->count != rank) {
    *why = arena_printf(arena, "%s needs %d number%s, one for each spatial axis, not %d", attr_name(key),
                        rank, rank == 1 ? "" : "s", a->count);
    return false;
  }
  for (int i = 0; i < rank; i++) {
    out[i] = a ? a->ints[i] : otherwise;
    if (out[i] >= least && out[i] <= MAX_ELEMENTS) continue;
    *why = arena_printf(arena, "%s takes numbers from %lld to %lld, not %lld", attr_name(key),
                        (long long)least, (long long)MAX_ELEMENTS, (long long)out[i]);
    return false;
  }
  return true;
}

int64_t spatial_reach(int64_t size, int64_t dilation) {
  if (size <= 1) return size;
  return size - 1 > SPATIAL_MOST / dilation ? SPATIAL_MOST : (size - 1) * dilation + 1;
}

int64_t spatial_places(int64_t input, int64_t input_dilation, int64_t padding, int64_t window,
                       int64_t window_dilation, int64_t stride) {
  int64_t room = spatial_reach(input, input_dilation) + padding - spatial_reach(window, window_dilation);
  return room < 0 ? 0 : room / stride + 1;
}

int64_t spatial_product(int64_t first, size_t count, const int64_t *factors) {
  for (size_t i = 0; i < count; i++)
    if (factors[i] == 0) return 0;
  for (size_t i = 0; i < count; i++)
    if (__builtin_mul_overflow(first, factors[i], &first) || first > SPATIAL_MOST) return SPATIAL_MOST;
  return first;
}

void spatial_print(struct str *s, const struct node *n, enum attr_key key, const char *name) {
  const struct attr *a = node_attr(n, key);
  if (!a) return;
  str_printf(s, " %s ", name);
  for (int i = 0; i < a->count; i++) str_printf(s, "%s%lld", i ? "," : "", (long long)a->ints[i]);
}
