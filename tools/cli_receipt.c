/* SPDX-License-Identifier: Apache-2.0 */
/* Receipts: what a training was asked for, made of and has come to, in a file; and the same training done again. */
#include "cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* --- writing --- */

int cli_receipt_may(struct cli *c) {
  struct stat st;
  bool there = c->receipt && !c->process && stat(c->receipt, &st) == 0 && st.st_size > 0;
  if (!there || c->resumes || c->overwrite) return DGC_OK;
  cli_usage(c, "%s is there already, and this training would replace it", c->receipt);
  fputs("dgc train: help: --overwrite replaces it\n", stderr);
  return DGC_USAGE;
}

int cli_receipt_write(struct cli *c) {
  const char *facts;
  char *text = NULL;
  size_t len = 0;
  if (!c->receipt) return DGC_OK;
  int code = cli_status(c, dgc_receipt(c->session, &facts));
  if (code || c->process) return code;
  FILE *f = open_memstream(&text, &len);
  if (!f) return DGC_RUNTIME;
  fputs("{\"receipt\":1,\n\"file\":", f);
  cli_json_string(f, c->words[0]);
  fputs(",\n\"arguments\":[", f);
  for (int i = 0; i < c->ngiven; i++) {
    if (i) fputc(',', f);
    cli_json_string(f, c->given[i]);
  }
  fprintf(f, "],\n\"facts\":%s}\n", facts);
  fclose(f);
  code = cli_status(c, dgc_write_file(c->session, c->receipt, text));
  free(text);
  return code;
}

/* --- reading --- */

/* A receipt as it was written: keys are looked for behind the beginning of a line. */
static const char *value_of(const char *text, const char *key) {
  char want[64];
  int len = snprintf(want, sizeof want, "\n\"%s\":", key);
  const char *at = strstr(text, want);
  return at ? at + len : NULL;
}

/* The string at *p, which is moved behind it; the caller frees it. NULL: there is none. */
static char *read_string(const char **p) {
  const char *at = *p;
  if (*at++ != '"') return NULL;
  char *out = malloc(strlen(at) + 1), *to = out;
  for (; out && *at && *at != '"'; at++) {
    unsigned code;
    if (*at != '\\')
      *to++ = *at;
    else if (at[1] == 'u' && sscanf(at + 2, "%4x", &code) == 1 && strlen(at) >= 6)
      *to++ = (char)code, at += 5;
    else if (*++at)
      *to++ = *at;
    else
      break;
  }
  if (!out || *at != '"') {
    free(out);
    return NULL;
  }
  *to = 0;
  *p = at + 1;
  return out;
}

/* One fact as it stands in the text, up to the end of its line. */
static size_t fact_length(const char *value) {
  size_t len = strcspn(value, "\n");
  while (len && (value[len - 1] == ',' || value[len - 1] == '}')) len--;
  return len;
}

static bool same_fact(const char *a, const char *b, const char *key) {
  const char *x = value_of(a, key), *y = value_of(b, key);
  if (!x || !y) return false;
  size_t len = fact_length(x);
  return len == fact_length(y) && strncmp(x, y, len) == 0;
}

static char *read_file(const char *path) {
  enum { MOST = 1 << 20 };
  FILE *f = fopen(path, "re");
  char *text = f ? calloc(1, MOST + 1) : NULL;
  size_t len = text ? fread(text, 1, MOST, f) : 0;
  if (f) fclose(f);
  if (text && len < MOST && strlen(text) == len) return text;
  if (text) errno = EINVAL;
  free(text);
  return NULL;
}

/* --- once more --- */

static const struct verb *verb_train(void) {
  const struct verb *train = verbs;
  while (strcmp(train->name, "train") != 0) train++;
  return train;
}

/* What files it wrote on its way, and which it went on from, is its own matter, and where it ended is known. A plugin
 * is code: whoever checks another's receipt names it himself. */
static bool is_left_out(const char *argument) {
  static const char *const names[] = {"checkpoint-every", "log-every", "resume", "epochs",     "steps",
                                      "overwrite",        "json",      "quiet",  "pjrt-plugin"};
  size_t len = strcspn(argument + 2, "=");
  struct cli_option o;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strlen(names[i]) == len && strncmp(argument + 2, names[i], len) == 0) return true;
  for (int i = 0; cli_option(verb_train(), i, &o); i++)
    if (strlen(o.name) == len && strncmp(argument + 2, o.name, len) == 0)
      return o.use == DGC_WRITES || o.use == DGC_WRITES_IN;
  return false;
}

enum { MOST_ARGUMENTS = 512 };

struct arguments {
  char *all[MOST_ARGUMENTS + 8];
  int count;
};

static void add(struct arguments *a, char *text) {
  if (text && a->count < MOST_ARGUMENTS)
    a->all[a->count++] = text;
  else
    free(text);
}

/* "--towers=4", of a fact that is a number. */
static void add_fact(struct arguments *a, const char *text, const char *key, const char *option) {
  char argument[128];
  const char *value = value_of(text, key);
  int len = value ? (int)fact_length(value) : 0;
  if (len > 0 && len < 32) {
    snprintf(argument, sizeof argument, "--%s=%.*s", option, len, value);
    add(a, strdup(argument));
  }
}

/* What it was asked for, what that has become, then what this command says. False: it is no receipt. */
static bool read_arguments(const struct cli *c, const char *text, struct arguments *a) {
  const char *file = value_of(text, "file"), *list = value_of(text, "arguments");
  if (strncmp(text, "{\"receipt\":1,", 13) != 0 || !file || !list || *list++ != '[') return false;
  add(a, read_string(&file));
  while (*list == '"') {
    char *argument = read_string(&list);
    if (!argument || strncmp(argument, "--", 2) != 0) {
      free(argument);
      return false;
    }
    if (is_left_out(argument))
      free(argument);
    else
      add(a, argument);
    list += *list == ',';
  }
  add_fact(a, text, "seed", "seed");
  add_fact(a, text, "towers", "towers");
  add_fact(a, text, "step", "steps");
  for (int i = 0; i < c->ngiven; i++)
    if (strncmp(c->given[i], "--receipt", 9) != 0) add(a, strdup(c->given[i]));
  return *list == ']' && a->count > 1 && value_of(text, "state") && value_of(text, "step");
}

/* What is not the same as it was; what it was made of explains what it has come to. */
static int compare(const struct cli *c, const char *was, const char *is) {
  static const struct {
    const char *key, *what;
  } made[] = {{"dgc", "the version of dgc"},      {"build", "the build of dgc"}, {"graph", "the model"},
              {"rows", "the number of rows"},     {"data", "the data"},          {"seed", "the seed"},
              {"towers", "the number of towers"}, {"batch", "the batch"}};
  bool same = same_fact(was, is, "state") && same_fact(was, is, "step");
  const char *step = value_of(is, "step");
  for (size_t i = 0; i < sizeof made / sizeof *made; i++)
    if (!same_fact(was, is, made[i].key))
      fprintf(stderr, "%s: %s differs from what it was\n", same ? "note" : "error", made[i].what);
  /* Of one placed graph one version makes the same kernels; those of a receipt that has none are not known. */
  if (same_fact(was, is, "placed") && value_of(was, "kernels") && !same_fact(was, is, "kernels"))
    fprintf(stderr, "%s: the kernels differ from what they were\n", same ? "note" : "error");
  if (same) {
    printf("%s: done again, %.*s steps: equal to the bit%s\n", c->receipt, (int)fact_length(step), step,
           same_fact(was, is, "placed") ? "" : ", placed otherwise");
    return DGC_OK;
  }
  const char *before = value_of(was, "state"), *after = value_of(is, "state");
  fprintf(stderr, "error: %s: done again, it has come to another result: %.*s, and it was %.*s\n", c->receipt,
          (int)fact_length(after), after, (int)fact_length(before), before);
  return DGC_MISMATCH;
}

static int run_again(struct cli *c, const char *was, struct arguments *a) {
  struct cli again = {.verb = verb_train(), .session = dgc_create(), .process = c->process};
  const char *facts;
  if (!again.session) return DGC_RUNTIME;
  int code = cli_parse(&again, a->count, a->all);
  if (!code) code = cli_status(&again, dgc_load(again.session, again.words[0]));
  if (!code) code = cli_status(&again, dgc_begin(again.session));
  if (!code) code = cli_status(&again, dgc_train(again.session));
  if (!code) code = cli_status(&again, dgc_receipt(again.session, &facts));
  if (!code) code = compare(c, was, facts);
  dgc_destroy(again.session);
  cli_forget(&again);
  return code;
}

int cli_receipt_verify(struct cli *c) {
  struct arguments a = {.count = 0};
  char *text = read_file(c->receipt);
  int code = DGC_INPUT;
  if (!text)
    fprintf(stderr, "error: cannot read %s: %s\n", c->receipt, strerror(errno));
  else if (!read_arguments(c, text, &a))
    fprintf(stderr, "error: %s is no receipt of a training\n", c->receipt);
  else
    code = run_again(c, text, &a);
  for (int i = 0; i < a.count; i++) free(a.all[i]);
  free(text);
  return code;
}
