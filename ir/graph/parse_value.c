/* SPDX-License-Identifier: Apache-2.0 */
/* Header lines and the elements of constants. */
#include "ir/graph/parse.h"
#include "ir/graph/text.h"
#include "ir/ops/op.h"
#include "ir/strategies.h"

#include <math.h>
#include <string.h>

/* ---- constants ---- */

static bool read_float(struct lex *l, enum dtype d, void *to) {
  double value;
  uint64_t bits;
  if (lex_nan_bits(l, &bits)) {
    memcpy(to, &bits, (size_t)dtype_size(d)); /* the low half on the little-endian hosts there are */
    return true;
  }
  if (!lex_float(l, &value)) return lex_expected(l, "a number");
  float narrow = (float)value;
  if (d == DT_F32 && isinf(narrow) && !isinf(value)) return lex_expected(l, "a number within f32");
  if (d == DT_F32)
    memcpy(to, &narrow, sizeof narrow);
  else
    memcpy(to, &value, sizeof value);
  return true;
}

static bool read_element(struct lex *l, enum dtype d, void *to) {
  int64_t value;
  if (dtype_is_float(d)) return read_float(l, d, to);
  if (dtype_is_narrow(d))
    return lex_expected(l, arena_printf(l->arena, "a cast: there are no constants of %s", dtype_name(d)));
  if (d == DT_BOOL) {
    bool yes = lex_keyword(l, "true");
    if (!yes && !lex_keyword(l, "false")) return lex_expected(l, "true or false");
    *(uint8_t *)to = yes;
    return true;
  }
  lex_blanks(l);
  const char *start = l->p;
  bool fits = lex_int(l, &value);
  if (d == DT_I32) fits = fits && value >= INT32_MIN && value <= INT32_MAX;
  if (d == DT_U8) fits = fits && value >= 0 && value <= UINT8_MAX;
  if (!fits) {
    l->p = start;
    return lex_expected(l, d == DT_U8 ? "an integer from 0 to 255" : "an integer that fits its type");
  }
  if (d == DT_I32)
    *(int32_t *)to = (int32_t)value;
  else if (d == DT_U8)
    *(uint8_t *)to = (uint8_t)value;
  else
    *(int64_t *)to = value;
  return true;
}

static bool read_list(struct lex *l, enum dtype d, char *to, int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    if (i && !lex_char(l, ',')) return lex_expected(l, "',': the type has more elements");
    if (!read_element(l, d, to + i * dtype_size(d))) return false;
  }
  return lex_char(l, ']') || lex_expected(l, "']': the type has no more elements");
}

static bool read_splat(struct lex *l, enum dtype d, char *to, int64_t count) {
  if (count == 0) return lex_expected(l, "[]: the type has no elements");
  if (!read_element(l, d, to)) return false;
  for (int64_t i = 1; i < count; i++) memcpy(to + i * dtype_size(d), to, (size_t)dtype_size(d));
  if (lex_char(l, '}')) return true;
  return lex_char(l, ',') || lex_expected(l, "',' or '}'");
}

bool parse_data(struct lex *l, struct node *n, const char *data, size_t *total) {
  const struct type *t = &n->type;
  if (type_is_symbolic(t)) {
    diag_error(l->diags, n->loc, "a constant needs a shape without B");
    return false;
  }
  *total += (size_t)type_bytes(t);
  if (*total > TEXT_MAX_DATA) {
    diag_error(l->diags, n->loc, "constants of more than %u MiB in one text are refused",
               TEXT_MAX_DATA >> 20);
    return false;
  }
  struct lex at = *l;
  at.p = data;
  enum dtype d = (enum dtype)t->dtype;
  int64_t count = type_count(t);
  char *to = arena_array(l->arena, (size_t)count + 1, (size_t)dtype_size(d));
  if (lex_char(&at, '[') ? !read_list(&at, d, to, count) : !read_splat(&at, d, to, count)) return false;
  struct attr *value = (struct attr *)(uintptr_t)node_attr(n, ATTR_value); /* the parser's own array */
  value->data = to;
  value->count = (int)type_bytes(t);
  return true;
}

/* ---- header lines ---- */

static int find_device(const struct target *t, struct arena *a, const char *text) {
  struct device_name name;
  if (!device_name_parse(a, text, &name)) return -1;
  text = device_name_text(a, name);
  for (int i = 0; i < t->ndevices; i++)
    if (strcmp(t->devices[i].text, text) == 0) return i;
  return -1;
}

/* "@/gpu:0", "(simulated)" and "(storage)" behind the device at `name`. */
static bool read_suffixes(struct lex *l, struct target *t, const char *name) {
  int device = find_device(t, l->arena, name);
  if (lex_char(l, '@')) {
    struct lexeme other = lex_until(l, "@(");
    int shared = other.text ? find_device(t, l->arena, other.text) : -1;
    if (device < 0 || shared < 0 || shared > device) {
      diag_error(l->diags, other.loc,
                 "expected the device itself or one listed before it, whose memory it has");
      return false;
    }
    t->devices[device].memory = shared == device ? device : t->devices[shared].memory;
  }
  while (lex_char(l, '(')) {
    bool simulated = lex_keyword(l, "simulated"), storage = !simulated && lex_keyword(l, "storage");
    if (device < 0 || !(simulated || storage) || !lex_char(l, ')'))
      return lex_expected(l, "'simulated)' or 'storage)'");
    t->devices[device].simulated |= simulated;
    t->devices[device].no_towers |= storage;
  }
  return true;
}

/* All names first, then what is said behind each. */
static bool read_devices(struct lex *l, struct target *t) {
  struct str list = str_make(l->arena);
  const char *start = l->p;
  while (!lex_line_end(l)) {
    struct lexeme name = lex_until(l, "@(");
    if (!name.text) return lex_expected(l, "a device");
    if (list.len) str_putc(&list, ',');
    str_put(&list, name.text);
    if (l->p < l->end && (*l->p == '@' || *l->p == '(')) lex_until(l, "");
  }
  if (!target_parse(l->arena, list.data, t, l->diags, lex_loc(l, start, l->p))) return false;
  l->p = start;
  while (!lex_line_end(l)) {
    struct lexeme name = lex_until(l, "@(");
    if (!name.text) return lex_expected(l, "a device");
    if (l->p < l->end && (*l->p == '@' || *l->p == '(') && !read_suffixes(l, t, name.text)) return false;
  }
  return true;
}

static bool read_number(struct lex *l, int64_t max, int64_t *out) {
  lex_blanks(l);
  const char *start = l->p;
  if (lex_int(l, out) && *out >= 1 && *out <= max) return true;
  l->p = start;
  *out = 0;
  return lex_expected(l, "a positive number");
}

static bool read_text(struct lex *l, const char **out) {
  struct lexeme text = lex_name(l);
  if (!text.text) return lex_expected(l, "a name");
  *out = text.text;
  return true;
}

static bool read_stage(struct lex *l, enum stage *out) {
  for (int i = 0; i < 4; i++)
    if (lex_keyword(l, text_stages[i])) {
      *out = (enum stage)i;
      return true;
    }
  return lex_expected(l, "source, replicated, placed or fused");
}

/* "h.kernel /gpu:0" */
static bool read_home(struct lex *l, struct config *c) {
  struct lexeme variable = lex_name(l);
  if (!variable.text) return lex_expected(l, "the name of a variable");
  struct lexeme device = lex_until(l, "");
  struct device_name name;
  if (!device.text || !device_name_parse(l->arena, device.text, &name)) {
    diag_error(l->diags, device.text ? device.loc : variable.loc, "expected the device that holds %s",
               variable.text);
    return false;
  }
  /* Grows by doubling: at every power of two the array moves. */
  if ((c->nhomes & (c->nhomes - 1)) == 0) {
    struct home *more = arena_new_array(l->arena, c->nhomes ? 2 * (size_t)c->nhomes : 1, struct home);
    if (c->nhomes) memcpy(more, c->homes, sizeof *more * (size_t)c->nhomes);
    c->homes = more;
  }
  c->homes[c->nhomes++] = (struct home){variable.text, device_name_text(l->arena, name)};
  return true;
}

static bool read_strategy(struct lex *l, struct loc loc, struct config *c) {
  c->asked.strategy = loc;
  if (!read_text(l, &c->strategy)) return false;
  if (strategy_find(c->strategy)) return true;
  strategy_unknown(c->strategy, NULL, loc, l->diags);
  return false;
}

bool parse_option(struct lex *l, struct lexeme line, struct graph *g) {
  const char *key = line.text;
  struct config *c = &g->config;
  if (strcmp(key, "stage") == 0) return read_stage(l, &g->stage);
  if (strcmp(key, "strategy") == 0) return read_strategy(l, line.loc, c);
#define NUMBER(type, name, most)          \
  if (strcmp(key, #name) == 0) {          \
    int64_t n;                            \
    bool good = read_number(l, most, &n); \
    c->name = (type)n;                    \
    c->asked.name = line.loc;             \
    return good;                          \
  }
#define WORD(name)                 \
  if (strcmp(key, #name) == 0) {   \
    c->asked.name = line.loc;      \
    return read_text(l, &c->name); \
  }
#define TEXT(name) WORD(name)
#define FLAG(name)               \
  if (strcmp(key, #name) == 0) { \
    c->asked.name = line.loc;    \
    return c->name = true;       \
  }
#include "ir/graph/config.def"
  return strcmp(key, "home") == 0 ? read_home(l, c) : read_devices(l, &c->target);
}
