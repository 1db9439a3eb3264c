/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA C into C. The text stays as it is, line for line, but for a few words: `extern "C"` goes, `__global__`
 * makes a static function, `__shared__` says of which kernel, and no loop is unrolled: clang takes a third less
 * for the longest texts. Behind it comes a table of the kernels, see module.h. Only what sim_rewrite() must know is
 * parsed: the parameters of kernels, and where their bodies are. */
#include "tests/simulated_cuda/common.h"

#include "base/embed.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const struct embedded sim_texts[]; /* module.h, shim.h */

struct text {
  char *data;
  size_t length, room;
};

static void add(struct text *t, const char *data, size_t n) {
  if (t->length + n + 1 > t->room) t->data = realloc(t->data, t->room = 2 * (t->length + n + 1));
  memcpy(t->data + t->length, data, n);
  t->data[t->length += n] = 0;
}

__attribute__((format(printf, 2, 3))) static void addf(struct text *t, const char *format, ...) {
  char *line;
  va_list args;
  va_start(args, format);
  int n = vasprintf(&line, format, args);
  va_end(args);
  if (n >= 0) add(t, line, (size_t)n), free(line);
}

enum { MAX_KERNELS = 4096, MAX_PARAMETERS = 512 };

struct kernel {
  const char *name, *body; /* where they are in the text */
  int name_length;
  char *bounds; /* of __launch_bounds__, or NULL */
  char *types[MAX_PARAMETERS];
  int parameters;
  bool barriers;
};

struct rewriting {
  struct text out;
  struct kernel *kernels;
  int count, current, depth; /* the kernel whose body this is, or -1 */
  bool helper_barriers;      /* a function that is no kernel has a barrier: then any kernel may */
  char *message;
};

static bool is_word(char c) { return isalnum((unsigned char)c) || c == '_'; }

/* What follows a comment, a literal, a word or one other character. */
static const char *token_end(const char *p) {
  if (p[0] == '/' && p[1] == '*') {
    const char *end = strstr(p + 2, "*/");
    return end ? end + 2 : p + strlen(p);
  }
  if (p[0] == '/' && p[1] == '/') return p + strcspn(p, "\n");
  if (*p == '"' || *p == '\'') {
    char quote = *p++;
    while (*p && *p != quote) p += *p == '\\' && p[1] ? 2 : 1;
    return *p ? p + 1 : p;
  }
  if (is_word(*p)) {
    while (is_word(*p)) p++;
    return p;
  }
  return p + 1;
}

static bool token_is(const char *p, const char *end, const char *word) {
  return (size_t)(end - p) == strlen(word) && memcmp(p, word, (size_t)(end - p)) == 0;
}

/* The next token that is neither space nor comment. */
static const char *skip(const char *p) {
  for (;;) {
    if (isspace((unsigned char)*p))
      p++;
    else if (p[0] == '/' && (p[1] == '*' || p[1] == '/'))
      p = token_end(p);
    else
      return p;
  }
}

static bool failed(struct rewriting *r, const char *format, ...) {
  va_list args;
  va_start(args, format);
  if (!r->message && vasprintf(&r->message, format, args) < 0) r->message = NULL;
  va_end(args);
  return false;
}

static void forget(struct kernel *k) {
  free(k->bounds);
  for (int i = 0; i < k->parameters; i++) free(k->types[i]);
  *k = (struct kernel){0};
}

/* One parameter is its type and its name. */
static bool parameter(struct rewriting *r, struct kernel *k, const char *begin, const char *end) {
  struct text type = {0};
  size_t before_name = 0;
  bool named = false;
  add(&type, "", 0);
  for (const char *p = skip(begin); p < end; p = skip(token_end(p))) {
    named = is_word(*p);
    before_name = type.length;
    add(&type, p, (size_t)(token_end(p) - p));
    add(&type, " ", 1);
  }
  if (type.length == 0 || strcmp(type.data, "void ") == 0) {
    free(type.data);
    return true;
  }
  if (!named || before_name == 0 || k->parameters == MAX_PARAMETERS) {
    failed(r, "kernel %.*s: parameter %d is not 'type name'", k->name_length, k->name, k->parameters + 1);
    free(type.data);
    return false;
  }
  type.data[before_name] = 0;
  k->types[k->parameters++] = type.data;
  return true;
}

/* `p` stands behind __global__. */
static bool signature(struct rewriting *r, const char *p) {
  if (r->count == MAX_KERNELS) return failed(r, "too many kernels");
  struct kernel *k = &r->kernels[r->count];
  *k = (struct kernel){0};
  for (p = skip(p); *p && *p != '('; p = skip(token_end(p))) {
    if (!is_word(*p)) return failed(r, "__global__ is not followed by 'void NAME('");
    if (token_is(p, token_end(p), "__launch_bounds__")) {
      p = skip(token_end(p));
      k->bounds = strndup(p + 1, strcspn(p + 1, ",)"));
      p += strcspn(p, ")");
      continue;
    }
    k->name = p;
    k->name_length = (int)(token_end(p) - p);
  }
  if (!*p || !k->name) return failed(r, "__global__ is not followed by 'void NAME('");
  const char *begin = p + 1;
  int depth = 0;
  for (p = begin; *p && !(depth == 0 && *p == ')'); p = token_end(p)) {
    depth += (*p == '(') - (*p == ')');
    if (depth == 0 && *p == ',') {
      if (!parameter(r, k, begin, p)) return false;
      begin = p + 1;
    }
  }
  if (!*p) return failed(r, "kernel %.*s: no ')'", k->name_length, k->name);
  if (!parameter(r, k, begin, p)) return false;
  k->body = skip(p + 1);
  if (*k->body == '{')
    r->count++;
  else
    forget(k); /* it is only declared */
  return true;
}

static bool rewrite_token(struct rewriting *r, const char **at) {
  const char *p = *at, *end = token_end(p);
  if (token_is(p, end, "extern") && strncmp(skip(end), "\"C\"", 3) == 0) {
    *at = skip(end) + 3;
    for (; p < *at; p++)
      if (*p == '\n') add(&r->out, "\n", 1);
    return true;
  }
  if (*p == '#' && strncmp(p, "#pragma unroll", 14) == 0) {
    *at = p + strcspn(p, "\n");
    return true;
  }
  *at = end;
  if (token_is(p, end, "__global__")) {
    addf(&r->out, "static __attribute__((unused))");
    return signature(r, end);
  }
  if (token_is(p, end, "__shared__")) {
    if (r->current < 0)
      addf(&r->out, "SIMULATED_SHARED(helpers)");
    else
      addf(&r->out, "SIMULATED_SHARED(%d)", r->current);
    return true;
  }
  if (token_is(p, end, "__syncthreads")) {
    if (r->current < 0)
      r->helper_barriers = true;
    else
      r->kernels[r->current].barriers = true;
  }
  if (r->count && p == r->kernels[r->count - 1].body) r->current = r->count - 1, r->depth = 0;
  r->depth += (*p == '{') - (*p == '}');
  if (*p == '}' && r->depth == 0) r->current = -1;
  add(&r->out, p, (size_t)(end - p));
  return true;
}

static void add_kernel(struct rewriting *r, const struct kernel *k) {
  struct text *out = &r->out;
  int n = k->name_length;
  addf(out, "static void simulated_thread_%.*s(void **p) {\n  %.*s(", n, k->name, n, k->name);
  for (int i = 0; i < k->parameters; i++) addf(out, "%s*(%s*)p[%d]", i ? ", " : "", k->types[i], i);
  addf(out,
       ");\n}\nstatic void simulated_block_%.*s(void **p, unsigned count, unsigned first, unsigned stride) "
       "{\n",
       n, k->name);
  for (int i = 0; i < k->parameters; i++)
    addf(out, "  %s p%d = *(%s*)p[%d];\n", k->types[i], i, k->types[i], i);
  addf(out, "  for (unsigned i = 0, t = first; i < count; i++) {\n    simulated_set_thread(t);\n    %.*s(", n,
       k->name);
  for (int i = 0; i < k->parameters; i++) addf(out, "%sp%d", i ? ", " : "", i);
  addf(out, ");\n    t += stride;\n    if (t >= count) t -= count;\n  }\n}\n");
  addf(out, "static const unsigned simulated_bytes_%.*s[] = {", n, k->name);
  for (int i = 0; i < k->parameters; i++) addf(out, "sizeof(%s), ", k->types[i]);
  addf(out, "0};\n");
}

static void add_table(struct rewriting *r) {
  struct text *out = &r->out;
  addf(out, "\n#line 1 \"table of kernels\"\nSIMULATED_SHARED_RANGE(helpers)\n");
  for (int i = 0; i < r->count; i++) {
    addf(out, "SIMULATED_SHARED_RANGE(%d)\n", i);
    add_kernel(r, &r->kernels[i]);
  }
  addf(out, "static const struct simulated_kernel simulated_kernels[] = {\n");
  for (int i = 0; i < r->count; i++) {
    const struct kernel *k = &r->kernels[i];
    int n = k->name_length;
    addf(out, "  {\"%.*s\", simulated_thread_%.*s, simulated_block_%.*s, \"", n, k->name, n, k->name, n,
         k->name);
    for (int j = 0; j < k->parameters; j++) add(out, strchr(k->types[j], '*') ? "p" : "v", 1);
    addf(out, "\", simulated_bytes_%.*s, %d, %s, __start_simulated_shared_%d, __stop_simulated_shared_%d},\n",
         n, k->name, k->barriers || r->helper_barriers, k->bounds ? k->bounds : "0", i, i);
  }
  addf(out, "  {0}};\n"
            "extern const struct simulated_module simulated_module;\n"
            "__attribute__((visibility(\"default\"))) const struct simulated_module simulated_module = {\n"
            "  &simulated_thread, &simulated_block, &simulated_block_dim, &simulated_grid_dim,\n"
            "  &simulated_barrier, simulated_kernels, __start_simulated_shared_helpers,\n"
            "  __stop_simulated_shared_helpers};\n");
}

char *sim_rewrite(const char *text, const char *name, char **message) {
  struct rewriting r = {.current = -1, .kernels = calloc(MAX_KERNELS, sizeof(struct kernel))};
  for (const struct embedded *e = sim_texts; e->name; e++) add(&r.out, e->text, e->len);
  addf(&r.out, "#line 1 \"%s\"\n", name);
  const char *p = text;
  while (*p && rewrite_token(&r, &p)) {}
  if (!r.message) add_table(&r);
  for (int i = 0; i < MAX_KERNELS && i <= r.count; i++) forget(&r.kernels[i]);
  free(r.kernels);
  *message = r.message;
  if (!r.message) return r.out.data;
  free(r.out.data);
  return NULL;
}
