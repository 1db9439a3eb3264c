/* Comma separated numbers; also ';' or tab, whichever the first line has. The first line is a header if a wanted
 * cell of it is not a number. All wanted cells whole: i32, or i64 if one needs it; else f64. The decimal point is
 * a point, whatever the locale. */
#include "runtime/data/reader.h"

#include <string.h>

enum { CELL_LIMIT = 63, COLUMN_LIMIT = 1 << 20 };

struct line {
  const char *p, *end; /* without the line feed */
  long long number;
};

struct csv {
  struct reader *reader;
  const char *p, *end;
  long long line;
  char separator;
  int first, last; /* wanted columns, from 0, half-open */
  int ncolumns;
  bool whole; /* what is stored so far are i64, not f64 */
  bool small; /* and all fit into i32 */
};

static bool next_line(struct csv *c, struct line *out) {
  while (c->p < c->end) {
    const char *stop = memchr(c->p, '\n', (size_t)(c->end - c->p)), *end = stop ? stop : c->end;
    *out = (struct line){c->p, end, ++c->line};
    c->p = stop ? stop + 1 : c->end;
    if (out->end > out->p && out->end[-1] == '\r') out->end--;
    for (const char *q = out->p; q < out->end; q++)
      if (*q != ' ' && *q != '\t') return true;
  }
  return false;
}

/* The next cell of a line, without quotes and blanks around it. `line->p` is NULL after the last one. */
static bool next_cell(struct csv *c, struct line *line, const char **cell, int *len) {
  const char *p = line->p, *end = line->end, *stop;
  while (p < end && *p == ' ') p++;
  if (p < end && *p == '"') {
    const char *close = memchr(p + 1, '"', (size_t)(end - p - 1));
    stop = close ? close + 1 : end;
    while (stop < end && *stop == ' ') stop++;
    if (!close || (stop < end && *stop != c->separator))
      return reader_fail(c->reader, "line %lld: a quoted cell must end on its line, and hold no quotes",
                         line->number);
    p++;
    end = close;
  } else {
    stop = memchr(p, c->separator, (size_t)(end - p));
    if (!stop) stop = end;
    end = stop;
  }
  while (end > p && end[-1] == ' ') end--;
  *cell = p;
  *len = end - p < INT32_MAX ? (int)(end - p) : INT32_MAX;
  line->p = stop < line->end ? stop + 1 : NULL;
  return true;
}

static bool parse_whole(const char *p, int len, int64_t *out) {
  const char *end = p + len;
  bool negative = len && *p == '-';
  if (len && (*p == '-' || *p == '+')) p++;
  if (p == end) return false;
  int64_t n = 0;
  for (; p < end; p++) {
    if (*p < '0' || *p > '9' || __builtin_mul_overflow(n, 10, &n)) return false;
    int digit = *p - '0';
    if (__builtin_sub_overflow(n, digit, &n)) return false; /* negative numbers reach one further */
  }
  return *out = n, negative || !__builtin_sub_overflow(0, n, out);
}

static bool parse_number(const char *p, int len, double *out) {
  char text[CELL_LIMIT + 1];
  if (len < 1 || len > CELL_LIMIT) return false;
  memcpy(text, p, (size_t)len);
  text[len] = 0;
  const char *end;
  *out = str_to_double(text, &end);
  return end == text + len;
}

static bool is_number(const char *p, int len) {
  double ignored;
  return parse_number(p, len, &ignored);
}

/* "2" or "1-4", counted from 1. */
static bool parse_range(const char *text, int *first, int *last) {
  int bound[2] = {0, 0}, n = 0;
  for (;; text++) {
    if (*text >= '0' && *text <= '9') {
      if (bound[n] > COLUMN_LIMIT) return false;
      bound[n] = bound[n] * 10 + (*text - '0');
    } else if (*text == '-' && n == 0 && bound[0]) {
      n++;
    } else if (!*text) {
      break;
    } else {
      return false;
    }
  }
  *first = bound[0] - 1;
  *last = bound[n];
  return bound[0] && bound[n] >= bound[0];
}

/* Finds out what the first line says: how many columns, whether they have names, which ones are wanted. */
static bool read_first_line(struct csv *c, const char *member, struct line line, bool *header) {
  struct reader *r = c->reader;
  bool ranged = member && parse_range(member, &c->first, &c->last), named = false, words = false;
  struct str names = str_make(r->arena);
  for (; line.p; c->ncolumns++) {
    const char *cell;
    int len;
    if (c->ncolumns == COLUMN_LIMIT)
      return reader_fail(r, "its first line has more than %d cells", COLUMN_LIMIT);
    if (!next_cell(c, &line, &cell, &len)) return false;
    if (names.len < 400) str_printf(&names, "%s%.*s", c->ncolumns ? ", " : "", len < 60 ? len : 60, cell);
    bool word = !is_number(cell, len);
    if (word && (!ranged || (c->ncolumns >= c->first && c->ncolumns < c->last))) words = true;
    if (!member || strlen(member) != (size_t)len || memcmp(member, cell, (size_t)len) != 0 ||
        (ranged && !word))
      continue;
    if (named) return reader_fail(r, "it has two columns named '%s'; choose by number", member);
    named = true;
    c->first = c->ncolumns;
    c->last = c->first + 1;
  }
  *header = named || words;
  if (!member) {
    c->last = c->ncolumns;
  } else if (!named && !ranged) {
    return reader_fail(r, "it has no column '%s', only: %s", member, names.data);
  } else if (c->last > c->ncolumns) {
    return reader_fail(r, "it has %d columns, so there is no ':%s'", c->ncolumns, member);
  }
  return true;
}

/* Appends a cell to the `n` numbers at `out`; they stop being whole with the first that is not. */
static bool store(struct csv *c, int64_t *out, int64_t n, const char *cell, int len) {
  int64_t whole;
  double number;
  if (c->whole && parse_whole(cell, len, &whole)) {
    out[n] = whole;
    c->small &= whole >= INT32_MIN && whole <= INT32_MAX;
    return true;
  }
  if (!parse_number(cell, len, &number)) return false;
  for (int64_t i = 0; c->whole && i < n; i++) {
    double earlier = (double)out[i];
    memcpy(&out[i], &earlier, sizeof earlier);
  }
  c->whole = false;
  memcpy(&out[n], &number, sizeof number);
  return true;
}

static bool read_cells(struct csv *c, int64_t rows, int64_t *out) {
  struct reader *r = c->reader;
  int64_t n = 0;
  struct line line;
  while (n < rows * (c->last - c->first) && next_line(c, &line)) {
    int i = 0;
    for (; line.p; i++) {
      const char *cell;
      int len;
      if (!next_cell(c, &line, &cell, &len)) return false;
      if (i < c->first || i >= c->last) continue;
      if (!store(c, out, n++, cell, len))
        return reader_fail(
            r,
            len ? "line %lld, column %d: '%.*s' is not a number; choose other columns with ':1-4'"
                : "line %lld, column %d: the cell is empty; fill it in or drop the line",
            line.number, i + 1, len < 60 ? len : 60, cell);
      if (i + 1 == c->ncolumns && line.p) break;
    }
    if (i != c->ncolumns || line.p)
      return reader_fail(r, "line %lld has %s cells than the first line's %d; is it truncated?", line.number,
                         line.p ? "more" : "fewer", c->ncolumns);
  }
  return true;
}

bool read_csv(struct reader *r) {
  if (!content_load(&r->in, r->path, r->loc, r->diags)) return false;
  const char *p = (const char *)r->in.bytes, *end = p + r->in.len;
  if (r->in.len >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0) p += 3;
  struct csv c = {.reader = r, .p = p, .end = end, .separator = ',', .whole = true, .small = true};
  struct line line;
  if (!next_line(&c, &line)) return reader_fail(r, "it has no lines");
  size_t len = (size_t)(line.end - line.p);
  if (!memchr(line.p, ',', len))
    c.separator = memchr(line.p, ';', len) ? ';' : memchr(line.p, '\t', len) ? '\t' : ',';
  bool header = false;
  if (!read_first_line(&c, r->member, line, &header)) return false;

  struct csv counter = c;
  int64_t rows = !header, width = c.last - c.first, count;
  while (next_line(&counter, &line)) rows++;
  if (!header) c.p = p, c.line = 0;
  /* A cell takes a byte and a separator at least: lines too short for the header's cells fail below, but must not
   * make this large. */
  if (__builtin_mul_overflow(rows, width, &count) || count > r->in.len)
    return reader_fail(r, "its lines have fewer cells than the first line's %d; is it truncated?",
                       c.ncolumns);
  if (count == 0) return reader_fail(r, "it has a header, but no lines of numbers");
  if (!content_alloc(&r->own, count * 8, r->path, r->loc, r->diags) || !read_cells(&c, rows, r->own.map))
    return false;

  int64_t *wide = r->own.map;
  int32_t *narrow = r->own.map;
  for (int64_t i = 0; c.whole && c.small && i < count; i++) {
    int32_t value = (int32_t)wide[i];
    memcpy(&narrow[i], &value, sizeof value);
  }
  enum dtype dtype = !c.whole ? DT_F64 : c.small ? DT_I32 : DT_I64;
  bool vector = width > 1 || !r->member || strchr(r->member, '-');
  return reader_set(r, dtype, vector ? 2 : 1, (int64_t[]){rows, width}, 0, count * dtype_size(dtype));
}
