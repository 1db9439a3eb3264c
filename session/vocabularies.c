/* SPDX-License-Identifier: Apache-2.0 */
/* Vocabularies of inputs: see words.h. */
#include "session/vocabularies.h"

#include "session/model.h"
#include "session/state/checkpoints.h"

#include "base/file.h"
#include "runtime/data/json.h"
#include "runtime/data/vocabulary.h"

#include <string.h>

#define PREFIX "words."

struct words {
  const char *input;
  struct vocabulary *vocabulary;
  struct words *next;
};

static struct words *find(struct dgc_session *s, const char *input) {
  struct words *w = s->words;
  while (w && strcmp(w->input, input) != 0) w = w->next;
  if (w) return w;
  w = arena_new(s->arena, struct words);
  *w = (struct words){arena_strdup(s->arena, input), NULL, s->words};
  return s->words = w;
}

struct vocabulary *words_of(struct dgc_session *s, const char *input, bool train) {
  struct words *w = find(s, input);
  bool known = w->vocabulary && w->vocabulary->closed;
  if (train && (!known || (!s->restored->any && !s->position.step)))
    w->vocabulary = vocabulary_make(s->arena);
  return train || known ? w->vocabulary : NULL;
}

void words_say_unknown(struct dgc_session *s) {
  for (struct words *w = s->words; w; w = w->next) {
    if (!w->vocabulary || !w->vocabulary->unknown) continue;
    diag_note(&s->diags, LOC_NONE,
              "input %s: %lld row%s words that its training had not, which are read as 0", w->input,
              (long long)w->vocabulary->unknown, w->vocabulary->unknown == 1 ? " has" : "s have");
    w->vocabulary->unknown = 0;
  }
}

/* "x.csv:city:category", and of a folder "photos/:label" */
static bool reads(struct arena *a, const char *path) {
  const char *colon = strrchr(path, ':');
  if (!colon || strcmp(colon, ":label") != 0) return colon && strcmp(colon, ":category") == 0;
  return file_is_folder(arena_strndup(a, path, (size_t)(colon - path)));
}

bool words_are_read(struct arena *a, const char *path, const char *const *more, int nmore) {
  bool any = reads(a, path);
  for (int i = 0; i < nmore; i++) any |= reads(a, more[i]);
  return any;
}

int words_count(const struct dgc_session *s) {
  int n = 0;
  for (const struct words *w = s->words; w; w = w->next) n += w->vocabulary && w->vocabulary->closed;
  return n;
}

void words_save(const struct dgc_session *s, struct arena *a, struct checkpoint_text *texts, int *n) {
  for (int i = 0; i < s->model->ninputs; i++) /* in the order of the model */
    for (const struct words *w = s->words; w; w = w->next) {
      const struct vocabulary *v = w->vocabulary;
      if (!v || !v->closed || strcmp(w->input, s->model->inputs[i].name) != 0) continue;
      struct str list = str_make(a);
      for (int k = 0; k < v->count; k++) {
        str_putc(&list, k ? ',' : '[');
        json_quote(&list, v->words[k]);
      }
      str_put(&list, v->count ? "]" : "[]");
      texts[(*n)++] = (struct checkpoint_text){arena_printf(a, PREFIX "%s", w->input), list.data};
    }
}

static struct vocabulary *parse(struct dgc_session *s, const char *text) {
  struct json j = {s->call, text, text + strlen(text)};
  const char **words = arena_new_array(s->call, strlen(text), const char *);
  int n = 0;
  if (!json_take(&j, '[')) return NULL;
  if (!json_take(&j, ']')) {
    do
      if (!(words[n++] = json_string(&j))) return NULL;
    while (json_take(&j, ','));
    if (!json_take(&j, ']')) return NULL;
  }
  struct vocabulary *v = vocabulary_make(s->arena);
  return json_done(&j) && vocabulary_set(v, words, n) ? v : NULL;
}

bool words_restore(struct dgc_session *s, const struct checkpoint *c, bool check) {
  if (!check)
    for (struct words *w = s->words; w; w = w->next) w->vocabulary = NULL;
  for (int i = 0; i < c->ntexts; i++) {
    if (strncmp(c->texts[i].key, PREFIX, strlen(PREFIX)) != 0) continue;
    struct vocabulary *v = parse(s, c->texts[i].value);
    if (!v) return false;
    if (!check) find(s, c->texts[i].key + strlen(PREFIX))->vocabulary = v;
  }
  return true;
}
