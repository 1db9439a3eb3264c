/* Variables from their parts. "v/part_2" is part 2 of "v", and "v/part_2.adam.m" of "v.adam.m"; "tower_2/v" is tower
 * 2's copy of "v". */
#include "runtime/whole.h"

#include "ir/ops/op.h"

#include <stdlib.h>
#include <string.h>

static const char part_mark[] = "/part_";

/* The number of the part, -1 if the name is none of a part; where the mark ends. */
static int part_number(const char *name, const char **mark, const char **end) {
  *mark = strstr(name, part_mark);
  if (!*mark) return -1;
  char *after;
  long number = strtol(*mark + strlen(part_mark), &after, 10);
  *end = after;
  return after > *mark + strlen(part_mark) && number >= 0 && number < 1 << 20 ? (int)number : -1;
}

/* Whose copy it is, 0 where the name is that of the model; `*whole` is the variable's name. */
static int tower_number(const char *name, const char **whole) {
  static const char mark[] = "tower_";
  *whole = name;
  char *after;
  if (strncmp(name, mark, strlen(mark)) != 0) return 0;
  long number = strtol(name + strlen(mark), &after, 10);
  if (*after != '/' || number < 1 || number >= 1 << 20) return 0;
  *whole = after + 1;
  return (int)number;
}

/* One variable, as far as it can be ordered: by the name of the whole, then by the number of the part. */
struct entry {
  const char *whole;
  int part;
  struct variable *variable;
};

static int by_whole(const void *a, const void *b) {
  const struct entry *x = a, *y = b;
  int order = strcmp(x->whole, y->whole);
  return order ? order : x->part - y->part;
}

int store_wholes(const struct store *s, struct arena *a, struct whole **out) {
  int count = store_count(s), n = 0, wholes = 0;
  struct entry *entries = arena_new_array(a, (size_t)count, struct entry);
  for (int i = 0; i < count; i++) {
    struct variable *v = store_at(s, i);
    if (variable_primary(a, v->name)) continue;
    const char *mark, *end;
    int part = part_number(v->name, &mark, &end);
    const char *whole = v->name;
    if (v->joins)
      part = tower_number(v->name, &whole);
    else if (part >= 0)
      whole = arena_printf(a, "%.*s%s", (int)(mark - v->name), v->name, end);
    entries[n++] = (struct entry){whole, part, v};
  }
  if (n) qsort(entries, (size_t)n, sizeof *entries, by_whole);
  struct variable **parts = arena_new_array(a, (size_t)n, struct variable *);
  *out = arena_new_array(a, (size_t)n, struct whole);
  for (int i = 0; i < n; i++) {
    struct variable *v = parts[i] = entries[i].variable;
    struct whole *last = wholes ? &(*out)[wholes - 1] : NULL;
    if (entries[i].part > 0 && last && strcmp(last->name, entries[i].whole) == 0) {
      if (!v->joins) last->type.dim[0] += v->type.dim[0];
      if (!v->joins) last->bytes += v->bytes;
      last->nparts++;
    } else
      (*out)[wholes++] = (struct whole){entries[i].whole, v->type, v->bytes, &parts[i], 1, v->joins};
  }
  return wholes;
}

/* All copies as one: the tree over the towers that a graph would compute. */
static bool read_joined(const struct store *s, const struct whole *w, void *out) {
  bool good = true;
  struct arena_guard guard;
  struct arena *a = arena_create_guarded(&guard);
  struct tensor *in = arena_new_array(a, (size_t)w->nparts, struct tensor), result = {w->type, out};
  for (int i = 0; good && i < w->nparts; i++) {
    in[i] = (struct tensor){w->type, arena_alloc(a, w->bytes)};
    good = store_read(s, w->parts[i], in[i].data);
  }
  struct attr how = {.key = ATTR_reduction, .string = w->joins};
  struct node n = {.op = OP_all_reduce, .type = w->type, .ninputs = w->nparts, .nattrs = 1, .attrs = &how};
  good = good && node_eval(&n, in, &result, 0);
  arena_destroy_guarded(a, &guard);
  return good;
}

/* To each copy the value; of a sum its share: an equal one, or of integers all to the first. */
static bool write_joined(struct store *s, const struct whole *w, const void *data) {
  bool good = true, sum = strcmp(w->joins, "sum") == 0, whole = !dtype_is_float((enum dtype)w->type.dtype);
  int64_t count = type_count(&w->type);
  struct arena_guard guard;
  struct arena *a = arena_create_guarded(&guard);
  void *share = arena_alloc(a, w->bytes);
  if (!sum || w->nparts == 1) memcpy(share, data, w->bytes);
  for (int64_t i = 0; sum && !whole && i < count; i++)
    if (w->type.dtype == DT_F32)
      ((float *)share)[i] = ((const float *)data)[i] / (float)w->nparts;
    else
      ((double *)share)[i] = ((const double *)data)[i] / w->nparts;
  for (int i = 0; good && i < w->nparts; i++)
    good = store_write(s, w->parts[i], sum && whole && i == 0 ? data : share);
  arena_destroy_guarded(a, &guard);
  return good;
}

bool whole_read(const struct store *s, const struct whole *w, void *out) {
  if (w->joins) return read_joined(s, w, out);
  char *to = out;
  for (int i = 0; i < w->nparts; i++) {
    if (!store_read(s, w->parts[i], to)) return false;
    to += w->parts[i]->bytes;
  }
  return true;
}

bool whole_write(struct store *s, const struct whole *w, const void *data) {
  if (w->joins) return write_joined(s, w, data);
  const char *from = data;
  for (int i = 0; i < w->nparts; i++) {
    if (!store_write(s, w->parts[i], from)) return false;
    from += w->parts[i]->bytes;
  }
  return true;
}
