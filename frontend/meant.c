/* SPDX-License-Identifier: Apache-2.0 */
/* What was meant by a line that cannot be read: rules over its text, the first that fits says what to write. */
#include "frontend/meant.h"

#include "frontend/elsewhere.h"

#include <string.h>

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"

/* The text ends with a NUL, which no rule looks behind. */
struct puzzle {
  const char *begin; /* of the source */
  const char *line;  /* its first letter */
  const char *at;    /* where it cannot be read on */
  size_t first;      /* letters of its first word */
  size_t here;       /* of the word at `at` */
  int depth;
  bool closes; /* what stands at `at` is a bracket that closes another */
};

static bool is_word(const char *at, size_t len, const char *word) {
  return strlen(word) == len && strncmp(at, word, len) == 0;
}

/* The letter before, blanks left out, that the line has; NUL: none. */
static char before(const struct puzzle *p, const char *at) {
  while (at > p->line && strchr(" \t", at[-1])) at--;
  return at > p->line ? at[-1] : '\0';
}

/* Whether the word before `at` is this one. */
static bool is_behind(const struct puzzle *p, const char *word) {
  const char *end = p->at;
  while (end > p->line && strchr(" \t", end[-1])) end--;
  const char *begin = end;
  while (begin > p->line && strchr(LETTERS, begin[-1])) begin--;
  return is_word(begin, (size_t)(end - begin), word);
}

static bool is_operand(char c) { return c && strchr(LETTERS "0123456789)]\"", c); }

/* Whether the line has one name before `at`, and how long it is. */
static bool is_one_name(const struct puzzle *p, size_t *len) {
  *len = p->first ? strspn(p->line, LETTERS "0123456789") : 0;
  return *len && p->line + *len <= p->at && p->line + *len + strspn(p->line + *len, " \t") == p->at;
}

/* Blanks and comments at its end left out. */
static int length_of_rest(const char *at) {
  size_t n = strcspn(at, "#;\n");
  while (n && strchr(" \t\r", at[n - 1])) n--;
  return (int)n;
}

/* `y -= 1`, `i++`. */
static const char *changed(const struct puzzle *p, struct arena *a) {
  enum { MOST = 60 };
  size_t n;
  char op = *p->at;
  if (!op || !strchr("+-*/%", op) || !is_one_name(p, &n)) return NULL;
  int len = (int)n;
  if (op == p->at[1] && (op == '+' || op == '-'))
    return arena_printf(a, "write `%.*s = %.*s %c 1`", len, p->line, len, p->line, op);
  bool power = op == '*' && p->at[1] == '*';
  const char *is = p->at + (power ? 2 : 1);
  if (*is != '=') return NULL;
  const char *value = is + 1 + strspn(is + 1, " \t");
  int rest = length_of_rest(value);
  bool fits = rest > 0 && rest < MOST;
  return arena_printf(a, "write `%.*s = %.*s %c %.*s`", len, p->line, len, p->line, power ? '^' : op,
                      fits ? rest : 5, fits ? value : "value");
}

/* `optimizer.step()`, `d.trainable = False`. */
static const char *method(const struct puzzle *p, struct arena *a) {
  size_t n;
  const char *dot = p->at == p->line ? p->at + p->here : p->at;
  if (*dot != '.' || (dot == p->at && !is_one_name(p, &n))) return NULL;
  const char *word = dot + 1;
  size_t len = strspn(word, LETTERS "0123456789");
  const char *instead = elsewhere_instead(word, len);
  return instead ? instead : elsewhere_parameter(arena_strndup(a, word, len));
}

/* Names with points between them are all that the line has before `at`. */
static bool is_one_path(const struct puzzle *p) {
  if (!p->first || p->depth == 0 || p->line >= p->at) return false;
  return p->line + strspn(p->line, LETTERS "0123456789.") >= p->at;
}

static bool is_scan(const struct puzzle *p) {
  for (const char *at = p->line; (at = strstr(at, "scan")) && at < p->at; at++)
    if ((at == p->line || !strchr(LETTERS, at[-1])) && !strchr(LETTERS, at[4])) return true;
  return false;
}

/* Whether the line before begins with `train`, and has no `with`. */
static bool is_behind_train(const struct puzzle *p) {
  const char *end = p->line;
  while (end > p->begin && strchr(" \t\r\n", end[-1])) end--;
  const char *begin = end;
  while (begin > p->begin && begin[-1] != '\n') begin--;
  begin += strspn(begin, " \t");
  const char *with = strstr(begin, " with ");
  return strncmp(begin, "train", 5) == 0 && !strchr(LETTERS, begin[5]) && (!with || with > end);
}

/* The last line before this one that has more than blanks and a comment, and how long it is without these. */
static const char *line_before(const struct puzzle *p, int *len) {
  const char *at = p->line;
  while (at > p->begin && at[-1] != '\n') at--;
  for (*len = 0; !*len && at > p->begin;) {
    const char *end = --at;
    while (at > p->begin && at[-1] != '\n') at--;
    const char *from = at + strspn(at, " \t");
    *len = from < end ? length_of_rest(from) : 0;
    if (*len) return from;
  }
  return NULL;
}

/* The line before ends with `=` or an operator, and goes on here, where no value begins or one that is bound. */
static const char *no_value(const struct puzzle *p, struct arena *a) {
  enum { MOST = 60 };
  int len;
  size_t n;
  const char *line = line_before(p, &len);
  if (!line || (p->at != p->line && !(*p->at == '=' && is_one_name(p, &n)))) return NULL;
  const char *end = line + len, *word = end;
  while (word > line && strchr(LETTERS, word[-1])) word--;
  size_t letters = (size_t)(end - word);
  bool open = is_word(word, letters, "and") || is_word(word, letters, "or") || is_word(word, letters, "not");
  if (!open && !strchr("=+-*/@^<>", end[-1])) return NULL;
  return len < MOST ? arena_printf(a, "there is no value behind `%.*s` of the line before", len, line)
                    : "there is no value at the end of the line before";
}

/* `name = ...` */
static bool is_bound(const struct puzzle *p) {
  const char *is = p->line + p->first + strspn(p->line + p->first, " \t");
  return p->first && *is == '=' && is[1] != '=';
}

static const char *of_line(const struct puzzle *p, struct arena *a) {
  size_t n;
  const char *help = no_value(p, a);
  if (!help) help = changed(p, a);
  if (!help) help = method(p, a);
  if (help) return help;
  bool first = p->at == p->line;
  char c = *p->at, last = before(p, p->at);
  if (first && is_word(p->at, p->here, "else"))
    return "it stands behind the end of what belongs to its `if`: `} else {`";
  if (c == ':' && is_behind(p, "else")) return "what belongs to it stands in `{ }`: `} else {`";
  if (is_word(p->at, p->here, "elif") || is_word(p->at, p->here, "lambda"))
    return elsewhere_statement(p->at, p->here);
  if (is_behind(p, "lambda")) return elsewhere_statement("lambda", strlen("lambda"));
  if (!first && is_word(p->at, p->here, "is")) return "values are compared by `==` and `!=`";
  if (first && is_word(p->at, p->here, "with") && is_behind_train(p))
    return "it stands on the line of its `train`, which goes on inside of brackets: `train loss with [...]`";
  if (!first && is_word(p->at, p->here, "with") && is_bound(p))
    return arena_printf(a, "what is trained begins with `train`: `train %.*s = ... with adam(1e-3)`",
                        (int)p->first, p->line);
  if (first && is_word(p->at, p->here, "with"))
    return "what runs elsewhere stands in `on \"/gpu:0\" { }`, and gradients end at `stop_gradient(x)`";
  if (!first && p->here && p->at[p->here] == '.' && last == '=' && p->here < 7)
    return "the name of a file stands in quotes: `x = \"train.csv\"`";
  if (is_word(p->line, p->first, "train") && is_word(p->at, p->here, "for"))
    return "how long is said by `dgc train --epochs N` or `--steps N`";
  if (is_word(p->line, p->first, "train") && c == ',')
    return "what is done one after the other stands in a list: `with [clip_by_norm(1.0), adam()]`";
  if (is_word(p->line, p->first, "for") && c && strchr("(,", c))
    return "write `for i in 0..n { }`, or `for item in list { }`";
  if (is_word(p->line, p->first, "input") && c == '=') return "an input has a type: `input x : f32[B, 4]`";
  if (c && strchr("<>=!", c) && is_operand(last) && strcspn(p->line, "<>=!") < (size_t)(p->at - p->line))
    return "two comparisons are joined: `a < b and b < c`";
  if (c == '-' && p->at[1] == '>') return "what it gives is not said: `function f(x) { return ... }`";
  if (is_word(p->line, p->first, "train") && is_word(p->at, p->here, "with") && is_behind(p, "train"))
    return "the loss stands between them: `train loss with adam(1e-3)`";
  if (first && is_word(p->at, p->here, "optimizer") && p->at[p->here + strspn(p->at + p->here, " \t")] == '=')
    return "the optimizer stands behind the loss: `train loss with adam(1e-3)`";
  if (is_word(p->line, p->first, "data") && (!first || !p->here) && (c == '"' || strchr(":={", c)))
    return "the file of each input: `data train { x = \"x.npy\" }`";
  if (c == ':' && (is_word(p->line, p->first, "if") || is_word(p->line, p->first, "for")) && p->depth &&
      length_of_rest(p->at + 1) > 0)
    return arena_printf(a, "what belongs to it stands in `{ }`: `%.*s { ... }`, and the same behind `else`",
                        (int)(p->at - p->line), p->line);
  if (is_word(p->at, p->here, "in") && is_scan(p))
    return "what is carried stands before `over`: `scan h over x_t in x { }`";
  if (c && strchr(".(", c) && is_one_path(p))
    return "a value is bound, `x = f(x)`, or given back, `return f(x)`";
  if (c == '{' && last && strchr("=(,[", last))
    return "a list stands in `[ ]`; values by name are statements of their own";
  if (c == '[' && is_one_name(p, &n))
    return "elements are not assigned: `select(c, a, b)` chooses among two, `scatter_add(x, index, values)` "
           "adds to "
           "rows";
  if (first && p->depth == 0 && is_word(p->at, p->here, "graph"))
    return "a graph as text is read by `dgc opt`, `dgc verify` and `dgc diff`";
  if (first && c == '@') return "nothing stands before a definition: a model is compiled as a whole";
  if (first && c == '"') return "a comment begins with `#`";
  if (first && c == '(') return "names stand without brackets: `a, b = value`";
  if (first && c == '}' && p->depth == 0 && !p->closes) return "no `{` is open here";
  if (first && p->depth == 0 && p->here && p->line[p->here + strspn(p->line + p->here, " \t")] == '=')
    return "values stand in a model, a layer or a function";
  if (c == ',' && is_operand(last)) return "each stands on a line of its own, or behind `;`";
  return NULL;
}

bool help_meant(struct diags *d, struct arena *a, const struct source *source, uint32_t at, int depth,
                bool closes) {
  struct puzzle p = {.begin = source->text,
                     .line = source->text + at,
                     .at = source->text + at,
                     .depth = depth,
                     .closes = closes};
  while (p.line > p.begin && p.line[-1] != '\n') p.line--;
  p.line += strspn(p.line, " \t");
  if (p.line > p.at) return false;
  p.first = strspn(p.line, LETTERS);
  p.here = strspn(p.at, LETTERS);
  const char *help = of_line(&p, a);
  if (help) diag_help(d, LOC_NONE, "%s", help);
  return help != NULL;
}
