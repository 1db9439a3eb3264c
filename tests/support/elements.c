/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/elements.h"

#include "base/bits.h"

#include <math.h>
#include <string.h>

uint64_t tensor_bits(const struct tensor *t, int64_t i) {
  uint64_t bits = 0;
  size_t size = (size_t)dtype_size(t->type.dtype);
  memcpy(&bits, (const char *)t->data + (size_t)i * size, size);
  return bits;
}

double bits_number(enum dtype d, uint64_t bits) { return f64_of_bits(scalar_convert(DT_F64, d, bits)); }

uint64_t number_bits(enum dtype d, double value) { return scalar_convert(d, DT_F64, f64_bits(value)); }

double tensor_at(const struct tensor *t, int64_t i) { return bits_number(t->type.dtype, tensor_bits(t, i)); }

void tensor_set(struct tensor *t, int64_t i, double value) {
  uint64_t bits = number_bits(t->type.dtype, value);
  size_t size = (size_t)dtype_size(t->type.dtype);
  memcpy((char *)t->data + (size_t)i * size, &bits, size);
}

static bool same_bits(enum dtype d, uint64_t x, uint64_t y) {
  return x == y || (dtype_is_float(d) && isnan(bits_number(d, x)) && isnan(bits_number(d, y)));
}

const char *tensor_element(struct arena *a, const struct tensor *t, int64_t e) {
  struct str s = str_make(a);
  enum dtype d = t->type.dtype;
  if (dtype_is_float(d))
    str_double(&s, tensor_at(t, e));
  else
    str_printf(&s, "%lld", (long long)scalar_convert(DT_I64, d, tensor_bits(t, e)));
  return s.data;
}

static const char *difference(struct arena *a, const struct tensor *want, const struct tensor *got,
                              bool zeros_differ) {
  if (!type_equal(&want->type, &got->type))
    return arena_printf(a, "type %s, not %s", type_text(a, &got->type), type_text(a, &want->type));
  int64_t count = type_count(&want->type);
  enum dtype d = want->type.dtype;
  for (int64_t e = 0; e < count; e++) {
    uint64_t x = tensor_bits(want, e), y = tensor_bits(got, e);
    bool zeros = dtype_is_float(d) && !zeros_differ && bits_number(d, x) == 0 && bits_number(d, y) == 0;
    if (!same_bits(d, x, y) && !zeros)
      return arena_printf(a, "element %lld of %s is %s, not %s", (long long)e, type_text(a, &want->type),
                          tensor_element(a, got, e), tensor_element(a, want, e));
  }
  return NULL;
}

const char *tensor_difference(struct arena *a, const struct tensor *want, const struct tensor *got) {
  return difference(a, want, got, true);
}

const char *tensor_difference_but_zeros(struct arena *a, const struct tensor *want,
                                        const struct tensor *got) {
  return difference(a, want, got, false);
}
