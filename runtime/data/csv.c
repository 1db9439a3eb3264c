/* SPDX-License-Identifier: Apache-2.0 */
/* Tables: comma separated cells; also ';' or tab, whichever the first line has. All wanted cells whole: i32, or
 * i64 if one needs it; else f64. The decimal point is a point, whatever the locale. A quoted cell may hold
 * separators, line feeds, and quotes twice (RFC 4180).
 *
 * What a column is read as stands behind its name or number, "x.csv:city:category":
 *   category   words, by the column's vocabulary
 *   optional   numbers, NaN where there is none
 *   present    1 where there is a number, 0 where there is none
 *   date time  see cell_date and cell_time
 *
 * A name in quotes, "x.csv:\"a,b\"", is none of these, nor a number of a column; quotes in it are written twice.
 *
 * The first line is a header if a wanted cell of it is no such number. Of words any line could be one: there it is
 * if a cell of it is a word where the second line has a number. Where a cell that is wanted is empty, or begins as a
 * number does, and no cell is a name, or one looks like a number, it is either a bad header or a bad row: nobody can
 * tell.
 *
 * -0 is whole where the model takes integers, and a float where it takes floats, whose zeros have signs. */
#include "runtime/data/cell.h"
#include "runtime/data/json.h"
#include "runtime/data/reader.h"
#include "runtime/data/vocabulary.h"

#include <math.h>
#include <string.h>
#include <strings.h>

enum { COLUMN_LIMIT = 1 << 20 };

enum cell_kind { NUMBER, CATEGORY, OPTIONAL, PRESENT, DATE, TIME };

static const struct {
  const char *name;
  const char *wrong; /* what a cell is not */
} kinds[] = {
    [NUMBER] =
        {"number",
         "a number; choose other columns with ':1-4'; ':NAME:category' reads words, ':NAME:date' dates"},
    [CATEGORY] = {"category", "UTF-8; convert the file"},
    [OPTIONAL] = {"optional", "a number, nor NA or the like"},
    [PRESENT] = {"present", "a number, nor NA or the like"},
    [DATE] = {"date", "a date, as 2026-11-23 and 23.11.2026 are"},
    [TIME] = {"time", "a time, as 2026-11-23T14:05:30Z and 23.11.2026 14:05:30 are"},
};

struct line {
  const char *p, *end; /* without the line feed */
  long long number;
};

struct csv {
  struct reader *reader;
  const char *p, *end;
  long long line;
  char separator;
  enum cell_kind kind;
  int first, last; /* wanted columns, from 0, half-open */
  int ncolumns;
  bool single; /* one is wanted, by its name or number */
  bool whole;  /* what is stored so far are i64, not f64 */
  bool small;  /* and all fit into i32 */
  bool signs;  /* a zero has one: floats are wanted */
};

/* Where the quote that closes a cell is, from behind the one that opens it; NULL: nowhere. */
static const char *closing_quote(const char *p, const char *end) {
  while ((p = memchr(p, '"', (size_t)(end - p)))) {
    if (p + 1 == end || p[1] != '"') return p;
    p += 2;
  }
  return NULL;
}

/* The end of a line that has quotes: its line feed is none that stands in a quoted cell. A quote opens at the beginning
 * of a cell alone. */
static const char *quoted_end(const struct csv *c, const char *p) {
  for (;;) {
    while (p < c->end && *p == ' ') p++;
    if (p < c->end && *p == '"') {
      const char *close = closing_quote(p + 1, c->end);
      if (!close) return memchr(p, '\n', (size_t)(c->end - p)); /* an error, where the cell is read */
      p = close + 1;
    }
    while (p < c->end && *p != c->separator && *p != '\n') p++;
    if (p == c->end) return NULL;
    if (*p++ == '\n') return p - 1;
  }
}

static bool is_blank(const char *p, const char *end) {
  while (p < end && (*p == ' ' || *p == '\t' || *p == '\r')) p++;
  return p == end;
}

/* The next line that is not blank. */
static bool next_line(struct csv *c, struct line *out) {
  while (c->p < c->end) {
    const char *stop = memchr(c->p, '\n', (size_t)(c->end - c->p));
    long long number = ++c->line;
    if (memchr(c->p, '"', (size_t)((stop ? stop : c->end) - c->p))) {
      const char *first = stop;
      stop = quoted_end(c, c->p);
      for (const char *q = first; q && q < (stop ? stop : c->end); q++) c->line += *q == '\n';
    }
    *out = (struct line){c->p, stop ? stop : c->end, number};
    c->p = stop ? stop + 1 : c->end;
    if (out->end > out->p && out->end[-1] == '\r') out->end--;
    if (!is_blank(out->p, out->end)) return true;
  }
  return false;
}

/* A quoted cell without the quotes before quotes. */
static const char *unquote(struct csv *c, const char *p, const char **end) {
  if (!memchr(p, '"', (size_t)(*end - p))) return p;
  char *text = arena_alloc(c->reader->arena, (size_t)(*end - p)), *to = text;
  for (; p < *end; p++) {
    *to++ = *p;
    if (*p == '"') p++;
  }
  *end = to;
  return text;
}

/* The next cell of a line, without quotes and blanks around it; of a word those between its quotes stay. `line->p` is
 * NULL after the last one. */
static bool next_cell(struct csv *c, struct line *line, const char **cell, int *len) {
  const char *p = line->p, *end = line->end, *stop;
  while (p < end && *p == ' ') p++;
  bool quoted = p < end && *p == '"';
  if (quoted) {
    const char *close = closing_quote(p + 1, end);
    stop = close ? close + 1 : end;
    while (stop < end && *stop == ' ') stop++;
    if (!close || (stop < end && *stop != c->separator))
      return reader_fail(c->reader,
                         "line %lld: a quoted cell must end with a quote; one in it is written twice",
                         line->number);
    end = close;
    p = unquote(c, p + 1, &end);
  } else {
    stop = memchr(p, c->separator, (size_t)(end - p));
    if (!stop) stop = end;
    end = stop;
  }
  if (!quoted || c->kind != CATEGORY) {
    while (p < end && *p == ' ') p++;
    while (end > p && end[-1] == ' ') end--;
  }
  *cell = p;
  *len = end - p < INT32_MAX ? (int)(end - p) : INT32_MAX;
  line->p = stop < line->end ? stop + 1 : NULL;
  return true;
}

static bool is_number(const char *p, int len) {
  double ignored;
  return cell_number(p, len, &ignored);
}

/* Whether a cell says what its column is read as. */
static bool is_kind(enum cell_kind kind, const char *p, int len) {
  int64_t whole;
  double fraction;
  switch (kind) {
  case NUMBER: return is_number(p, len);
  case OPTIONAL:
  case PRESENT: return is_number(p, len) || cell_missing(p, len);
  case DATE: return cell_date(p, len, &whole);
  case TIME: return cell_time(p, len, &whole, &fraction);
  case CATEGORY: break;
  }
  return true;
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

/* "\"a,b\"": a,b. NULL: there are no quotes around it. */
static const char *quoted_name(struct csv *c, const char *member) {
  size_t len = member ? strlen(member) : 0;
  if (len < 2 || *member != '"' || closing_quote(member + 1, member + len) != member + len - 1) return NULL;
  const char *end = member + len - 1, *name = unquote(c, member + 1, &end);
  return arena_strndup(c->reader->arena, name, (size_t)(end - name));
}

/* A name as it is chosen by: in quotes, if it has a comma or quotes. */
static void add_name(struct str *names, const char *before, const char *cell, int len) {
  bool quotes = memchr(cell, ',', (size_t)len) || memchr(cell, '"', (size_t)len);
  str_printf(names, "%s%s", before, quotes ? "\"" : "");
  for (int i = 0; i < len && i < 60; i++) {
    if (cell[i] == '"') str_putc(names, '"');
    str_putc(names, cell[i]);
  }
  if (quotes) str_putc(names, '"');
}

/* "city:category": the kind, and what stands before it. */
static const char *split_kind(struct csv *c, const char *member) {
  const char *colon = member ? strrchr(member, ':') : NULL;
  if (!colon) return member;
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (strcmp(colon + 1, kinds[i].name) == 0) {
      c->kind = (enum cell_kind)i;
      return arena_strndup(c->reader->arena, member, (size_t)(colon - member));
    }
  return member;
}

/* Whether a cell of this line is a word where the next one has a number. */
static bool heads_numbers(struct csv c, struct line line) {
  struct line next;
  struct csv silent = c; /* what is wrong with a line is said when it is read */
  struct reader r = *c.reader;
  struct diags ignored;
  diags_init(&ignored, r.arena);
  r.diags = &ignored;
  silent.reader = &r;
  if (!next_line(&silent, &next)) return false;
  while (line.p && next.p) {
    const char *cell, *below;
    int len, below_len;
    if (!next_cell(&silent, &line, &cell, &len) || !next_cell(&silent, &next, &below, &below_len))
      return false;
    if (!is_number(cell, len) && is_number(below, below_len)) return true;
  }
  return false;
}

/* "0x10", "-nan(ind)": numbers that programs write, and tables do not have. */
static bool is_of_programs(const char *p, int len) {
  int at = *p == '-' || *p == '+';
  return len - at > 2 &&
         (strncasecmp(p + at, "0x", 2) == 0 || (len - at > 4 && strncasecmp(p + at, "nan(", 4) == 0));
}

/* What names no column: nothing, or what was to be a number, as "1.2.3" and "7x". */
static bool is_nameless(const char *p, int len) {
  if (cell_missing(p, len) || is_of_programs(p, len)) return true;
  int at = *p == '-' || *p == '+';
  at += at < len && p[at] == '.';
  return at < len && p[at] >= '0' && p[at] <= '9';
}

/* What is a number, or was to be one: digits, and what people write between them, "1_000", "1.000,50", "10%". */
static bool looks_like_number(const char *p, int len) {
  if (is_of_programs(p, len)) return true;
  bool digits = false;
  for (int i = 0; i < len; i++) {
    bool digit = p[i] >= '0' && p[i] <= '9';
    if (!digit && !(p[i] && strchr("_'., +-eE%", p[i]))) return false;
    digits |= digit;
  }
  return digits && *p != 'e' && *p != 'E';
}

/* "1,5", "-1.234,50", "2,5e3". */
static bool has_decimal_comma(const char *p, int len) {
  const char *end = p + len;
  if (p < end && (*p == '-' || *p == '+')) p++;
  const char *digits = p;
  while (p < end && ((*p >= '0' && *p <= '9') || *p == '.')) p++;
  if (p == digits || p == end || *p++ != ',') return false;
  digits = p;
  while (p < end && *p >= '0' && *p <= '9') p++;
  if (p == digits) return false;
  if (p < end && (*p == 'e' || *p == 'E')) p += 1 + (p + 1 < end && (p[1] == '-' || p[1] == '+'));
  while (p < end && *p >= '0' && *p <= '9') p++;
  return p == end;
}

/* It would be another number, or two, if it were read somehow: 1,234 may be thousands. */
static bool fail_comma(const struct csv *c, long long line, long long column, const char *cell, int len) {
  struct reader *r = c->reader;
  const char *how = c->separator == ','
                        ? "pandas.read_csv(FILE, decimal=',') reads it, and to_csv writes points"
                        : arena_printf(r->arena, "sed 's/,/./g' %s >POINTS.csv writes points", r->path);
  return reader_fail(
      r, "line %lld, column %lld: '%.*s' has a decimal comma, and numbers of a table have a point: %s", line,
      column, len < 60 ? len : 60, cell, how);
}

/* Finds out what the first line says: how many columns, whether they have names, which ones are wanted. */
static bool read_first_line(struct csv *c, const char *member, struct line line, bool *header) {
  struct reader *r = c->reader;
  struct line whole = line, nameless = {0}; /* a cell */
  const char *name = quoted_name(c, member);
  bool ranged = member && !name && parse_range(member, &c->first, &c->last), named = false, words = false,
       numbers = false, names_there = false;
  if (!name) name = member;
  struct str names = str_make(r->arena);
  for (; line.p; c->ncolumns++) {
    const char *cell;
    int len;
    if (c->ncolumns == COLUMN_LIMIT)
      return reader_fail(r, "its first line has more than %d cells", COLUMN_LIMIT);
    if (!next_cell(c, &line, &cell, &len)) return false;
    if (names.len < 400) add_name(&names, c->ncolumns ? ", " : "", cell, len);
    bool word = !is_number(cell, len), wanted = !ranged || (c->ncolumns >= c->first && c->ncolumns < c->last);
    bool number = !word || looks_like_number(cell, len);
    numbers |= number;
    names_there |= !number && !cell_missing(cell, len);
    if (wanted && !is_kind(c->kind, cell, len)) {
      words = true;
      if (!nameless.number && is_nameless(cell, len))
        nameless = (struct line){cell, cell + len, c->ncolumns + 1};
    }
    if (!name || strlen(name) != (size_t)len || memcmp(name, cell, (size_t)len) != 0 || (ranged && !word))
      continue;
    if (named) return reader_fail(r, "it has two columns named '%s'; choose by number", name);
    named = true;
    c->first = c->ncolumns;
    c->last = c->first + 1;
  }
  int odd = (int)(nameless.end - nameless.p < 60 ? nameless.end - nameless.p : 60);
  if (nameless.number && !named && has_decimal_comma(nameless.p, odd))
    return fail_comma(c, whole.number, nameless.number, nameless.p, odd);
  if (nameless.number && (numbers || !names_there) && !named)
    return reader_fail(
        r,
        "line %lld has '%.*s' in column %lld, which is no number, %s: is it a row, or names? Write a number "
        "there, or a line of names in front; ':NAME:optional' reads cells without a number",
        whole.number, odd, nameless.p, nameless.number,
        names_there ? "beside what looks like one" : "and no cell that is a name");
  *header = named || words || (c->kind == CATEGORY && heads_numbers(*c, whole));
  if (!member) {
    c->last = c->ncolumns;
  } else if (!named && !ranged) {
    const char *slash = strchr(member, '/');
    if (slash && slash > member && strspn(slash + 1, "0123456789") == strlen(slash + 1))
      return reader_fail(
          r, "windows, as ':%s', are of texts alone; numpy's sliding_window_view makes them, in an npy file",
          member);
    const char *kind = strrchr(member, ':');
    if (kind && kind > member)
      return reader_fail(
          r,
          "it has no column '%s', and no column is read as '%s': there are ':category', ':optional', "
          "':present', ':date' and ':time'",
          member, kind);
    return reader_fail(r, "it has no column '%s', only: %s%s", member, names.data,
                       strcmp(member, "0") == 0 ? "; their numbers begin at 1" : "");
  } else if (c->last > c->ncolumns) {
    return reader_fail(
        r, "it has %d column%s, so there is no ':%s'%s", c->ncolumns, c->ncolumns == 1 ? "" : "s", member,
        is_table(r->path) ? "" : "; it is read as a table, and a text is a file that is called .txt");
  }
  c->single = named || (ranged && !strchr(member, '-'));
  if (c->kind == CATEGORY && !r->vocabulary)
    return reader_fail(
        r, "its words have no numbers: these are given in a training, and kept in its checkpoint");
  if (c->kind == CATEGORY && c->last > c->first + 1)
    return reader_fail(r, "words are read from one column, and these are %d", c->last - c->first);
  return true;
}

static void store_whole(struct csv *c, int64_t *out, int64_t n, int64_t whole) {
  out[n] = whole;
  c->small &= whole >= INT32_MIN && whole <= INT32_MAX;
}

/* Behind the `n` numbers at `out`, which stop being whole with the first that is not. */
static void store_real(struct csv *c, int64_t *out, int64_t n, double number) {
  for (int64_t i = 0; c->whole && i < n; i++) {
    double earlier = (double)out[i];
    memcpy(&out[i], &earlier, sizeof earlier);
  }
  c->whole = false;
  memcpy(&out[n], &number, sizeof number);
}

/* Whether a number is written that f64 has not, and infinity would be read. */
static bool is_too_large(const char *cell, int len) {
  double number;
  if (!cell_number(cell, len, &number) || !isinf(number)) return false;
  for (int i = 0; i < len; i++)
    if (cell[i] >= '0' && cell[i] <= '9') return true;
  return false;
}

static bool store_number(struct csv *c, int64_t *out, int64_t n, const char *cell, int len) {
  int64_t whole;
  double number;
  if (c->whole && cell_whole(cell, len, &whole) && !(c->signs && whole == 0 && *cell == '-'))
    return store_whole(c, out, n, whole), true;
  if (!cell_number(cell, len, &number) || is_too_large(cell, len)) return false;
  return store_real(c, out, n, number), true;
}

static bool store_time(struct csv *c, int64_t *out, int64_t n, const char *cell, int len) {
  int64_t seconds;
  double fraction;
  if (!cell_time(cell, len, &seconds, &fraction)) return false;
  if (c->whole && fraction == 0)
    store_whole(c, out, n, seconds);
  else
    store_real(c, out, n, (double)seconds + fraction);
  return true;
}

/* Appends a cell to the `n` numbers at `out`. */
static bool store(struct csv *c, int64_t *out, int64_t n, const char *cell, int len) {
  int64_t days;
  switch (c->kind) {
  case NUMBER: return store_number(c, out, n, cell, len);
  case OPTIONAL:
    if (cell_missing(cell, len)) return store_real(c, out, n, __builtin_nan("")), true;
    return store_number(c, out, n, cell, len);
  case PRESENT:
    if (!cell_missing(cell, len) && !is_number(cell, len)) return false;
    return store_whole(c, out, n, !cell_missing(cell, len)), true;
  case DATE: return cell_date(cell, len, &days) && (store_whole(c, out, n, days), true);
  case TIME: return store_time(c, out, n, cell, len);
  case CATEGORY: break;
  }
  if (!utf8_valid(cell, (size_t)len) || memchr(cell, 0, (size_t)len)) return false;
  return store_whole(c, out, n, vocabulary_number(c->reader->vocabulary, cell, len)), true;
}

/* The same of a number that needs no more than a look at each of its bytes. */
static bool store_plain(struct csv *c, struct line *line, int64_t *out, int64_t n) {
  bool whole;
  int64_t number;
  double value;
  const char *p = line->p;
  if ((c->kind != NUMBER && c->kind != OPTIONAL) ||
      !cell_plain(&p, line->end, c->separator, &whole, &number, &value))
    return false;
  if (whole && c->whole && !(c->signs && number == 0 && signbit(value)))
    store_whole(c, out, n, number);
  else
    store_real(c, out, n, value);
  line->p = p < line->end ? p + 1 : NULL;
  return true;
}

/* What may be wrong with a line that does not have the first one's cells, or with a cell. */
static const char *what_separates(const struct csv *c, const char *p, const char *end) {
  const char *comma = memchr(p, ',', (size_t)(end - p));
  if (c->separator == ',' && memchr(p, ';', (size_t)(end - p)))
    return "separated by ';'? A first line that has a ',' says that ',' does: quote what it names, or remove "
           "that";
  if (c->separator == ',' && c->ncolumns == 1 && comma)
    return "a decimal comma? Numbers of a table have a point, and ',' separates them";
  return "truncated?";
}

static bool store_next(struct csv *c, struct line *line, int column, int64_t *out, int64_t n) {
  const char *cell;
  int len;
  if (store_plain(c, line, out, n)) return true;
  if (!next_cell(c, line, &cell, &len)) return false;
  if (store(c, out, n, cell, len)) return true;
  if ((c->kind == NUMBER || c->kind == OPTIONAL) && is_too_large(cell, len))
    return reader_fail(c->reader,
                       "line %lld, column %d: %.*s is larger than any f64; write inf where it is meant",
                       line->number, column, len < 60 ? len : 60, cell);
  if (c->kind != CATEGORY && c->kind != DATE && c->kind != TIME && has_decimal_comma(cell, len))
    return fail_comma(c, line->number, column, cell, len);
  if (!len && c->kind == NUMBER)
    return reader_fail(
        c->reader,
        "line %lld, column %d: the cell is empty; fill it in, drop the line, or read the column "
        "with ':NAME:optional', which gives NaN there, and ':NAME:present'",
        line->number, column);
  bool several = c->separator == ',' && c->kind == NUMBER && memchr(cell, ';', (size_t)len);
  return reader_fail(c->reader, "line %lld, column %d: '%.*s' is not %s%s", line->number, column,
                     len < 60 ? len : 60, cell, several ? "a number; is the line " : kinds[c->kind].wrong,
                     several ? what_separates(c, cell, cell + len) : "");
}

static bool read_cells(struct csv *c, int64_t rows, int64_t *out) {
  struct reader *r = c->reader;
  int64_t n = 0;
  struct line line;
  while (n < rows * (c->last - c->first) && next_line(c, &line)) {
    const struct line whole = line;
    int i = 0;
    for (; line.p; i++) {
      const char *cell;
      int len;
      bool wanted = i >= c->first && i < c->last;
      if (wanted ? !store_next(c, &line, i + 1, out, n++) : !next_cell(c, &line, &cell, &len)) return false;
      if (i + 1 == c->ncolumns && line.p) break;
    }
    if (i != c->ncolumns || line.p)
      return reader_fail(r, "line %lld has %s cells than the first line's %d; is it %s", line.number,
                         line.p ? "more" : "fewer", c->ncolumns, what_separates(c, whole.p, whole.end));
  }
  return true;
}

/* Whether the line is of numbers with decimal commas, some of them, between such separators. */
static bool separates_commas(const char *p, const char *end, char separator) {
  const char *feed = memchr(p, '\n', (size_t)(end - p));
  end = feed ? feed : end;
  if (end > p && end[-1] == '\r') end--;
  if (!memchr(p, separator, (size_t)(end - p))) return false;
  for (const char *stop; p <= end; p = stop + 1) {
    stop = memchr(p, separator, (size_t)(end - p));
    if (!stop) stop = end;
    int len = (int)(stop - p < INT32_MAX ? stop - p : INT32_MAX);
    if (!is_number(p, len) && !has_decimal_comma(p, len)) return false;
  }
  return true;
}

/* Whichever the first line has, outside of quotes. */
static char find_separator(const char *p, const char *end) {
  char found = 0;
  while (p < end && (*p == '\n' || *p == '\r' || *p == ' ')) p++;
  for (const char *s = ";\t"; *s; s++)
    if (separates_commas(p, end, *s)) return *s;
  for (; p < end && *p != '\n' && *p != ','; p++) {
    if (*p == '"') {
      const char *close = closing_quote(p + 1, end);
      if (!close) break;
      p = close;
    } else if (*p == ';' || (*p == '\t' && !found)) {
      found = *p;
    }
  }
  return p < end && *p == ',' ? ',' : found ? found : ',';
}

bool read_csv(struct reader *r) {
  if (!content_load(&r->in, r->path, r->loc, r->diags)) return false;
  const char *p = (const char *)r->in.bytes, *end = p + r->in.len;
  if (r->in.len >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0) p += 3;
  if (memchr(p, 0, (size_t)(end - p)))
    return reader_fail(r, "it has a byte 0, so it is no table in UTF-8; is it damaged, or in UTF-16?");
  struct csv c = {.reader = r,
                  .p = p,
                  .end = end,
                  .separator = find_separator(p, end),
                  .whole = true,
                  .small = true,
                  .signs = r->floats};
  struct line line;
  if (!next_line(&c, &line)) return reader_fail(r, "it has no lines");
  size_t length = (size_t)(line.end - line.p);
  if (memchr(line.p, '\r', length) && !memchr(line.p, '"', length))
    return reader_fail(r, "its lines end with carriage returns alone; make them line feeds: tr '\\r' '\\n'");
  bool header = false;
  const char *member = split_kind(&c, r->member);
  if (!read_first_line(&c, member, line, &header)) return false;

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
  r->piece->cells = true;
  r->piece->words = c.kind == CATEGORY ? WORDS_NUMBERS : WORDS_NONE;
  return reader_set(r, dtype, c.single ? 1 : 2, (int64_t[]){rows, width}, 0, count * dtype_size(dtype));
}
