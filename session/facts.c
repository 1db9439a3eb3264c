/* SPDX-License-Identifier: Apache-2.0 */
/* Facts as text for people and as JSON. */
#include "session/facts.h"

#include "ir/graph/text.h"

static struct fact *append(struct arena *a, struct fact *in, const struct fact *fact) {
  struct fact *f = arena_copy(a, fact, sizeof *fact);
  f->last = &f->first;
  if (!in) return f;
  *in->last = f;
  in->last = &f->next;
  return f;
}

struct fact *fact_root(struct arena *a) {
  return append(a, NULL, &(struct fact){.kind = FACT_OBJECT});
}

void fact_text(struct arena *a, struct fact *in, const char *key, const char *text) {
  if (text) append(a, in, &(struct fact){.kind = FACT_TEXT, .key = key, .text = text});
}

void fact_number(struct arena *a, struct fact *in, const char *key, int64_t number) {
  append(a, in, &(struct fact){.kind = FACT_NUMBER, .key = key, .number = number});
}

void fact_flag(struct arena *a, struct fact *in, const char *key, bool flag) {
  append(a, in, &(struct fact){.kind = FACT_FLAG, .key = key, .number = flag});
}

struct fact *fact_list(struct arena *a, struct fact *in, const char *key, const char *line) {
  return append(a, in, &(struct fact){.kind = FACT_LIST, .key = key, .line = line});
}

struct fact *fact_object(struct arena *a, struct fact *in, const char *key, const char *line) {
  return append(a, in, &(struct fact){.kind = FACT_OBJECT, .key = key, .line = line});
}

/* A list without anything in it has no line either. */
static void print(struct str *s, const struct fact *f, int indent) {
  if (f->line && (f->kind != FACT_LIST || f->first)) {
    str_printf(s, "%*s%s\n", indent, "", f->line);
    indent += 2;
  }
  for (const struct fact *c = f->first; c; c = c->next) print(s, c, indent);
}

void facts_print(struct str *s, const struct fact *root) { print(s, root, 0); }

static void print_json(struct str *s, const struct fact *f, int indent) {
  bool list = f->kind == FACT_LIST;
  switch (f->kind) {
  case FACT_TEXT: text_print_json(s, f->text); return;
  case FACT_NUMBER: str_printf(s, "%lld", (long long)f->number); return;
  case FACT_FLAG: str_put(s, f->number ? "true" : "false"); return;
  case FACT_LIST:
  case FACT_OBJECT: break;
  }
  str_putc(s, list ? '[' : '{');
  for (const struct fact *c = f->first; c; c = c->next) {
    bool own_line = list || indent == 0;
    if (own_line)
      str_printf(s, "\n%*s", indent + 2, "");
    else if (c != f->first)
      str_putc(s, ' ');
    if (c->key) {
      text_print_json(s, c->key);
      str_put(s, ": ");
    }
    print_json(s, c, indent + 2);
    if (c->next) str_putc(s, ',');
  }
  if (f->first && (list || indent == 0)) str_printf(s, "\n%*s", indent, "");
  str_putc(s, list ? ']' : '}');
}

void facts_print_json(struct str *s, const struct fact *root) {
  print_json(s, root, 0);
  str_putc(s, '\n');
}
