/* SPDX-License-Identifier: Apache-2.0 */
/* Runs lexer and parser: which line breaks count, which brackets are open, what to say of stray bytes. */
#include "frontend/parse.h"

#include "frontend/parser.h"
/* The lexer's header needs the parser's types. */
#include "frontend/lexer.h"

/* A line break behind one of these ends nothing. */
static bool continues(int token) {
  switch (token) {
  case NEWLINE:
  case '{':
  case '(':
  case '[':
  case ',':
  case '=':
  case ':':
  case ASSIGN:
  case '+':
  case '-':
  case '*':
  case '/':
  case '%':
  case '@':
  case POW:
  case '<':
  case '>':
  case LE:
  case GE:
  case EQ:
  case NE:
  case AND:
  case OR:
  case NOT: return true;
  }
  return false;
}

static bool open_bracket(struct parser *p, char bracket, struct loc loc) {
  if (p->depth == MAX_NESTING) {
    if (!p->fatal) diag_error(p->diags, loc, "brackets are nested more than %d deep", MAX_NESTING);
    p->fatal = true;
    return false;
  }
  p->depth++;
  p->bracket[p->depth] = bracket;
  p->open[p->depth] = loc;
  return true;
}

static void close_bracket(struct parser *p, char open, struct loc loc) {
  if (!p->depth || p->bracket[p->depth] != open) return;
  p->depth--;
  p->closed = loc.end;
}

static void report_stray(struct parser *p, struct loc loc) {
  unsigned char c = (unsigned char)p->source->text[loc.begin];
  if (c >= 0x80)
    diag_error(p->diags, loc, "letters outside ASCII may only stand in strings and comments");
  else if (c < 0x20 || c == 0x7f)
    diag_error(p->diags, loc, "unexpected byte 0x%02x", c);
  else
    diag_error(p->diags, loc, "unexpected character `%c`", c);
  if (c == '!') diag_help(p->diags, LOC_NONE, "logical negation is written `not`");
  if (c == '\'') diag_help(p->diags, LOC_NONE, "strings stand in double quotes");
  if (c == '?') diag_help(p->diags, LOC_NONE, "a choice is written `a if c else b`");
  if (c == '&') diag_help(p->diags, LOC_NONE, "logical conjunction is written `and`");
  if (c == '|') diag_help(p->diags, LOC_NONE, "logical disjunction is written `or`");
}

/* The end of a line of which something is wrong, behind all blocks that begin in it; or of the block that it is in. */
static int lex_behind(FRONTEND_STYPE *value, struct loc *loc, struct parser *p) {
  p->skips = false;
  for (;;) {
    int token = frontend_raw_lex(value, loc, p->scanner);
    if (token == '{')
      p->skipped++;
    else if (token == '}' && p->skipped)
      p->skipped--;
    else if (token == 0 || token == '}' || (token == NEWLINE && !p->skipped))
      return token;
  }
}

int frontend_lex(FRONTEND_STYPE *value, struct loc *loc, struct parser *p) {
  for (;;) {
    bool behind = p->skips;
    int token = p->fatal ? 0 : behind ? lex_behind(value, loc, p) : frontend_raw_lex(value, loc, p->scanner);
    switch (token) {
    case 0: *loc = (struct loc){p->source, (uint32_t)p->source->len, (uint32_t)p->source->len}; break;
    case NEWLINE:
      if ((!behind && continues(p->previous)) || (p->depth && p->bracket[p->depth] != '{')) continue;
      break;
    case '(':
    case '[':
    case '{':
      if (!open_bracket(p, (char)token, *loc)) continue;
      break;
    case ')': close_bracket(p, '(', *loc); break;
    case ']': close_bracket(p, '[', *loc); break;
    case '}': close_bracket(p, '{', *loc); break;
    case STRAY: report_stray(p, *loc); continue;
    case BAD_NUMBER:
      diag_error(p->diags, *loc, "a number ends before the first letter");
      if (value->slice.text[0] == '0' && value->slice.text[1] == 'x')
        diag_help(p->diags, LOC_NONE, "numbers are decimal");
      value->slice = (struct slice){"0", 1};
      token = INT;
      break;
    case OPEN_POINT: {
      bool first = value->slice.text[0] == '.';
      diag_error(p->diags, *loc, "a number with a point has digits on both sides of it");
      diag_help(p->diags, LOC_NONE, "write `%s%.*s%s`", first ? "0" : "", (int)value->slice.len,
                value->slice.text, first ? "" : "0");
      if (first)
        value->slice = (struct slice){"0.0", 3};
      else
        value->slice.len--;
      token = FLOAT;
      break;
    }
    case OPEN_STRING:
      diag_error(p->diags, *loc, "this string does not end on its line");
      value->slice = (struct slice){"\"\"", 2};
      token = STRING;
      break;
    }
    return p->previous = token;
  }
}

struct file *ast_parse_part(struct arena *a, const struct source *source, uint32_t begin, uint32_t end,
                            struct diags *d) {
  struct parser *p = arena_new(a, struct parser);
  *p = (struct parser){.arena = a, .source = source, .diags = d, .offset = begin, .previous = NEWLINE};
  p->file = arena_new(a, struct file);
  p->file->source = source;
  frontend_raw_lex_init_extra(p, &p->scanner);
  frontend_raw__scan_bytes(source->text + begin, (int)(end - begin), p->scanner);
  frontend_parse(p);
  return p->file;
}

struct file *ast_parse(struct arena *a, const struct source *source, struct diags *d) {
  struct loc start = {source, 0, 0};
  if (source->len > MAX_SOURCE) {
    diag_error(d, start, "a source may have at most %d bytes", MAX_SOURCE);
    return NULL;
  }
  /* Before the scanner sees it: flex takes time quadratic in a run of NULs. */
  const char *zero = memchr(source->text, 0, source->len);
  if (zero) {
    uint32_t at = (uint32_t)(zero - source->text);
    diag_error(d, (struct loc){source, at, at + 1}, "unexpected byte 0x00");
    diag_help(d, LOC_NONE, "a source is text; this may be a file of another kind");
    return NULL;
  }
  return ast_parse_part(a, source, 0, (uint32_t)source->len, d);
}
