/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters of the model in checkpoints: see parameters.h. */
#include "session/parameters.h"

#include "session/model.h"

#include <string.h>

#define PREFIX "set."

enum { MOST_NAME = 200, MOST_VALUE = 4000 };

static bool is_name(const char *text, size_t len) {
  bool good = len > 0 && len <= MOST_NAME && (text[0] < '0' || text[0] > '9');
  for (size_t i = 0; i < len && good; i++)
    good = text[i] == '_' || (text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'z') ||
           (text[i] >= 'A' && text[i] <= 'Z');
  return good;
}

static bool is_value(const char *text) {
  size_t len = strlen(text);
  for (size_t i = 0; i < len && i <= MOST_VALUE; i++)
    if (text[i] < ' ' || text[i] > '~') return false;
  return len <= MOST_VALUE;
}

/* The value that the option gives a parameter, the last one; NULL: none. */
static const char *value_of(const struct dgc_session *s, const char *name, size_t len) {
  const struct list *l = &s->options.set;
  for (int i = l->count - 1; i >= 0; i--)
    if (strncmp(l->items[i], name, len) == 0 && l->items[i][len] == '=') return l->items[i] + len + 1;
  return NULL;
}

/* Of the option's i-th: how long its name is, 0 where another one behind it is of the same. */
static size_t name_length(const struct dgc_session *s, int i) {
  const char *set = s->options.set.items[i];
  size_t len = strcspn(set, "=");
  return value_of(s, set, len) == set + len + 1 ? len : 0;
}

void parameters_save(const struct dgc_session *s, struct arena *a, struct checkpoint_text *texts, int *n) {
  for (int i = 0; i < s->options.set.count; i++) {
    const char *set = s->options.set.items[i];
    size_t len = name_length(s, i);
    if (!len || !is_name(set, len) || !is_value(set + len + 1)) continue;
    texts[(*n)++] = (struct checkpoint_text){arena_printf(a, PREFIX "%.*s", (int)len, set),
                                             arena_strdup(a, set + len + 1)};
  }
}

void parameters_say_left_out(struct dgc_session *s, const char *path) {
  for (int i = 0; path && i < s->options.set.count; i++) {
    const char *set = s->options.set.items[i];
    size_t len = name_length(s, i);
    if (len && !(is_name(set, len) && is_value(set + len + 1)))
      diag_warning(&s->diags, LOC_NONE,
                   "%s will not keep --set %.*s: its value is no ASCII of at most %d characters", path,
                   (int)len, set, MOST_VALUE);
  }
}

/* The name that the text is of; NULL: none. */
static const char *name_of(const struct checkpoint_text *t) {
  return strncmp(t->key, PREFIX, strlen(PREFIX)) == 0 ? t->key + strlen(PREFIX) : NULL;
}

bool parameters_are_good(const struct checkpoint *c) {
  for (int i = 0; i < c->ntexts; i++) {
    const char *name = name_of(&c->texts[i]);
    if (name && !(is_name(name, strlen(name)) && is_value(c->texts[i].value))) return false;
  }
  return true;
}

static bool is_of_model(const struct dgc_session *s, const char *name) {
  for (int i = 0; i < s->model->nparameters; i++)
    if (strcmp(s->model->parameters[i].name, name) == 0) return true;
  return false;
}

bool parameters_restore(struct dgc_session *s, const struct checkpoint *c, const char *path) {
  struct str said = str_make(s->call);
  for (int i = 0; i < c->ntexts; i++) {
    const char *name = name_of(&c->texts[i]), *value = c->texts[i].value;
    if (!name || !is_of_model(s, name)) continue;
    const char *given = value_of(s, name, strlen(name));
    if (given && strcmp(given, value) != 0)
      diag_note(&s->diags, LOC_NONE, "%s was made with --set %s=%s, and now it is %s", path, name, value,
                given);
    if (given) continue;
    const char *set = arena_printf(s->call, "%s=%s", name, value);
    list_append(s->arena, &s->options.set, set);
    str_printf(&said, "%s--set %s", said.len ? " " : "", set);
  }
  if (said.len) diag_note(&s->diags, LOC_NONE, "%s, as in %s", said.data, path);
  return said.len > 0;
}
