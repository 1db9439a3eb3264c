/* SPDX-License-Identifier: Apache-2.0 */
/* The longest common subsequence of lines, by a table, between what both begin and end with alike. Where the table
 * would be too large, all of that counts as changed. */
#include "session/testing/lines_diff.h"

#include <string.h>

enum { CONTEXT = 3, MAX_CELLS = 4 << 20 };

struct split_text {
  struct text *items; /* each with its newline, if it has one */
  int count;
};

static struct split_text split(struct arena *a, struct text t) {
  struct split_text l = {0};
  int n = 0;
  for (size_t i = 0; i < t.len; i++) n += t.data[i] == '\n' || i + 1 == t.len;
  l.items = arena_new_array(a, (size_t)n + 1, struct text);
  for (size_t at = 0; at < t.len;) {
    const char *newline = memchr(t.data + at, '\n', t.len - at);
    size_t len = newline ? (size_t)(newline - t.data) + 1 - at : t.len - at;
    l.items[l.count++] = (struct text){t.data + at, len};
    at += len;
  }
  return l;
}

static bool same(struct text a, struct text b) {
  return a.len == b.len && memcmp(a.data, b.data, a.len) == 0;
}

/* One line of the result, by its numbers in both from 0. */
struct edit {
  char mark; /* ' ', '-', '+' */
  int before, after;
};

struct edits {
  struct edit *items;
  int count;
};

static void add(struct edits *e, char mark, int *before, int *after) {
  e->items[e->count++] = (struct edit){mark, *before, *after};
  *before += mark != '+';
  *after += mark != '-';
}

/* What lies between lines that are alike: n lines here and m there. */
static void edit_middle(struct arena *a, struct edits *e, const struct split_text *x,
                        const struct split_text *y, int *i, int *j, int n, int m) {
  int x_end = *i + n, y_end = *j + m, x0 = *i, y0 = *j;
  size_t width = (size_t)m + 1;
  if ((size_t)(n + 1) * width > MAX_CELLS) {
    while (*i < x_end) add(e, '-', i, j);
    while (*j < y_end) add(e, '+', i, j);
    return;
  }
  int *common = arena_new_array(a, (size_t)(n + 1) * width, int); /* of what follows */
  for (int p = n - 1; p >= 0; p--)
    for (int q = m - 1; q >= 0; q--) {
      int down = common[(size_t)(p + 1) * width + (size_t)q],
          right = common[(size_t)p * width + (size_t)q + 1];
      common[(size_t)p * width + (size_t)q] = same(x->items[x0 + p], y->items[y0 + q])
                                                  ? common[(size_t)(p + 1) * width + (size_t)q + 1] + 1
                                              : down > right ? down
                                                             : right;
    }
  while (*i < x_end || *j < y_end) {
    size_t at = (size_t)(*i - x0) * width + (size_t)(*j - y0);
    if (*i < x_end && *j < y_end && same(x->items[*i], y->items[*j]))
      add(e, ' ', i, j);
    else if (*i < x_end && (*j == y_end || common[at + width] >= common[at + 1]))
      add(e, '-', i, j);
    else
      add(e, '+', i, j);
  }
}

static struct edits edit(struct arena *a, const struct split_text *x, const struct split_text *y) {
  struct edits e = {arena_new_array(a, (size_t)(x->count + y->count) + 1, struct edit), 0};
  int i = 0, j = 0, tail = 0;
  while (i < x->count && j < y->count && same(x->items[i], y->items[j])) add(&e, ' ', &i, &j);
  while (tail < x->count - i && tail < y->count - j &&
         same(x->items[x->count - 1 - tail], y->items[y->count - 1 - tail]))
    tail++;
  edit_middle(a, &e, x, y, &i, &j, x->count - i - tail, y->count - j - tail);
  while (i < x->count) add(&e, ' ', &i, &j);
  return e;
}

static void put_line(struct str *out, char mark, struct text line) {
  str_putc(out, mark);
  str_putn(out, line.data, line.len);
  if (!line.len || line.data[line.len - 1] != '\n') str_put(out, "\n\\ No newline at end of file\n");
}

/* A range of a hunk: an empty one is named by the line before it. */
static void put_range(struct str *out, char mark, int from, int count) {
  str_printf(out, "%c%d", mark, count ? from + 1 : from);
  if (count != 1) str_printf(out, ",%d", count);
}

static void put_hunk(struct str *out, const struct edits *e, int from, int to, const struct split_text *x,
                     const struct split_text *y) {
  int before = 0, after = 0;
  for (int k = from; k < to; k++) {
    before += e->items[k].mark != '+';
    after += e->items[k].mark != '-';
  }
  str_put(out, "@@ ");
  put_range(out, '-', e->items[from].before, before);
  str_putc(out, ' ');
  put_range(out, '+', e->items[from].after, after);
  str_put(out, " @@\n");
  for (int k = from; k < to; k++) {
    const struct edit *l = &e->items[k];
    put_line(out, l->mark, l->mark == '+' ? y->items[l->after] : x->items[l->before]);
  }
}

void lines_diff(struct str *out, struct text before, struct text after, const char *before_name,
                const char *after_name) {
  struct split_text x = split(out->arena, before), y = split(out->arena, after);
  struct edits e = edit(out->arena, &x, &y);
  bool any = false;
  for (int k = 0; k < e.count;) {
    if (e.items[k].mark == ' ') {
      k++;
      continue;
    }
    int from = k > CONTEXT ? k - CONTEXT : 0, alike = 0, end = k;
    for (; end < e.count && alike <= 2 * CONTEXT; end++) alike = e.items[end].mark == ' ' ? alike + 1 : 0;
    int to = alike > CONTEXT ? end - alike + CONTEXT : end;
    if (!any) str_printf(out, "--- %s\n+++ %s\n", before_name, after_name);
    any = true;
    put_hunk(out, &e, from, to, &x, &y);
    k = to;
  }
}
