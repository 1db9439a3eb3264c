/* SPDX-License-Identifier: Apache-2.0 */
/* The attribute table, from attrs.def, and the one place where an attribute's value is checked: against its rule, its
 * op and the types that it speaks of. The parser of graph text, the builder and the verifier all come here. */
#include "ir/ops/op.h"

#include <string.h>

static const struct {
  const char *name;
  enum attr_kind kind;
  enum attr_rule rule;
  const char *words;
} attr_table[ATTR_COUNT] = {
#define ATTR(name, kind, rule, words) {#name, ATTR_##kind, RULE_##rule, words},
#include "ir/graph/attrs.def"
#undef ATTR
};

_Static_assert(ATTR_COUNT <= 64, "sets of attributes are 64 bits");

const char *attr_name(enum attr_key key) { return attr_table[key].name; }

enum attr_kind attr_kind_of(enum attr_key key) { return attr_table[key].kind; }

enum attr_rule attr_rule_of(enum attr_key key) { return attr_table[key].rule; }

/* "sum mean"; "" unless the rule is RULE_WORD */
static const char *attr_words(enum attr_key key) { return attr_table[key].words; }

enum attr_key attr_lookup(const char *name, size_t len) {
  for (int i = 0; i < ATTR_COUNT; i++)
    if (strlen(attr_table[i].name) == len && memcmp(attr_table[i].name, name, len) == 0)
      return (enum attr_key)i;
  return ATTR_COUNT;
}

bool attr_has_word(enum attr_key key, const char *word) {
  size_t len = strlen(word);
  for (const char *p = attr_words(key); *p;) {
    size_t n = strcspn(p, " ");
    if (n == len && memcmp(p, word, n) == 0) return true;
    p += n;
    if (*p) p++;
  }
  return false;
}

/* Axes of `of`, each at most once; ascending unless they are a permutation. */
static const char *check_axes(const struct attr *a, const struct type *of, bool ascending,
                              struct arena *arena) {
  const char *name = attr_name(a->key);
  uint32_t seen = 0;
  for (int i = 0; i < a->count; i++) {
    int64_t axis = a->ints[i];
    if (axis < 0 || axis >= of->rank)
      return arena_printf(arena, "%s: %s has no axis %lld", name, type_text(arena, of), (long long)axis);
    if (seen >> axis & 1) return arena_printf(arena, "%s has axis %lld twice", name, (long long)axis);
    if (ascending && i > 0 && axis < a->ints[i - 1]) return arena_printf(arena, "%s must ascend", name);
    seen |= 1u << axis;
  }
  return NULL;
}

static const char *check_length(const struct attr *a, const struct type *of, struct arena *arena) {
  if (a->count == of->rank) return NULL;
  return arena_printf(arena, "%s needs %d number%s, one for each axis of %s, not %d", attr_name(a->key),
                      of->rank, of->rank == 1 ? "" : "s", type_text(arena, of), a->count);
}

static const char *check_sizes(const struct attr *a, struct arena *arena) {
  for (int i = 0; i < a->count; i++)
    if (a->ints[i] < 0 || a->ints[i] > MAX_ELEMENTS)
      return arena_printf(arena, "%s takes numbers from 0 to %lld, not %lld", attr_name(a->key),
                          (long long)MAX_ELEMENTS, (long long)a->ints[i]);
  return NULL;
}

static const char *attr_check(const struct node *n, const struct attr *a, struct arena *arena) {
  const char *name = attr_name(a->key), *why;
  bool typed = op_of(n)->traits & OP_TYPED;
  const struct type *x = n->ninputs && op_of(n)->kind != KIND_SOURCE ? &n->inputs[0]->type : &n->type;
  switch (attr_rule_of(a->key)) {
  case RULE_ANY: return NULL;
  case RULE_FLAG:
    return a->i == 0 || a->i == 1 ? NULL
                                  : arena_printf(arena, "%s is 0 or 1, not %lld", name, (long long)a->i);
  case RULE_SIZE:
    return a->i >= 0 && a->i <= MAX_ELEMENTS ? NULL
                                             : arena_printf(arena, "%s is from 0 to %lld, not %lld", name,
                                                            (long long)MAX_ELEMENTS, (long long)a->i);
  case RULE_AXIS:
    return a->i >= 0 && a->i < x->rank
               ? NULL
               : arena_printf(arena, "%s: %s has no axis %lld", name, type_text(arena, x), (long long)a->i);
  case RULE_AXES:
    if (!typed) return check_axes(a, x, true, arena);
    why = check_length(a, x, arena);
    return why ? why : check_axes(a, &n->type, true, arena);
  case RULE_PERMUTATION: why = check_length(a, x, arena); return why ? why : check_axes(a, x, false, arena);
  case RULE_SIZES: why = check_length(a, x, arena); return why ? why : check_sizes(a, arena);
  case RULE_WORD:
    return attr_has_word(a->key, a->string) ? NULL
                                            : arena_printf(arena, "there is no %s \"%s\"; there is %s", name,
                                                           a->string, attr_words(a->key));
  }
  return NULL;
}

const char *attrs_check(const struct node *n, enum attr_key *which, struct arena *arena) {
  const struct op_info *op = op_of(n);
  uint64_t have = 0;
  *which = ATTR_COUNT;
  for (int i = 0; i < n->nattrs; i++) {
    const struct attr *a = &n->attrs[i];
    uint64_t bit = UINT64_C(1) << a->key;
    const char *why;
    *which = a->key;
    if (!((op->attrs | op->optional_attrs | ATTR_BIT(again)) & bit))
      return arena_printf(arena, "%s has no attribute %s", op->name, attr_name(a->key));
    if (have & bit) return arena_printf(arena, "%s has the attribute %s twice", op->name, attr_name(a->key));
    if ((why = attr_check(n, a, arena))) return why;
    have |= bit;
  }
  *which = ATTR_COUNT;
  uint64_t missing = op->attrs & ~have;
  for (int k = 0; missing && k < ATTR_COUNT; k++)
    if (missing >> k & 1)
      return arena_printf(arena, "%s needs the attribute %s", op->name, attr_name((enum attr_key)k));
  return NULL;
}
