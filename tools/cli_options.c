/* SPDX-License-Identifier: Apache-2.0 */
/* Options: a table of the tool's own, and those of the library. */
#include "cli.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct own_option {
  const char *name;
  const char *group; /* of help, and the section of the manual */
  size_t offset;     /* of a const char * or, for a flag, a bool */
  const char *value; /* NULL: a flag */
  const char *help;
  char letter;
  const char *words; /* that it may be; NULL: no list */
  int min, max;      /* of a number */
  enum dgc_file_use use;
  size_t given;                                 /* of a bool that says that it was set; 0: there is none */
  const char *sets, *to;                        /* an option of the library, to this, or to the same value */
  int (*set)(struct cli *c, const char *value); /* in the place of all this */
};

static int set_color(struct cli *c, const char *when) {
  if (strcmp(when, "always") == 0)
    c->color = true;
  else if (strcmp(when, "never") == 0)
    c->color = false;
  else if (strcmp(when, "auto") != 0)
    return cli_usage(c, "--color is always, never or auto, not '%s'", when);
  return DGC_OK;
}

#define AT(field) offsetof(struct cli, field)

#define TRAINING  "Training and its results"
#define PROCESSES "Processes"
#define TESTS     "Tests"
#define COMPILER  "Looking into the compiler"

enum { MOST_TASKS = 100000 };

static const struct own_option own_options[] = {
    {"emit", COMPILER, AT(emit), "STAGE",
     .help = "ast, summary, graph, grad, replicated, placed, fused, plan, memory, traffic, llvm, cuda, ptx, "
             "dot, json, html, stablehlo, module, strategies or scaling (default: placed); opt: graph "
             "(default), dot, json, html or stablehlo",
     .words = "ast summary graph grad replicated placed fused plan memory traffic llvm cuda ptx dot json "
              "html stablehlo module strategies scaling"},
    {"entry", COMPILER, AT(entry), "NAME",
     .help = "which graph of the model: train, eval, predict, init or metrics (default: the first there is)",
     .words = "train eval predict init metrics"},
    {"file", COMPILER, AT(file), "FILE", .help = "where the text goes (default: -, standard output)",
     .letter = 'o', .use = DGC_WRITES},
    {"passes", COMPILER, AT(passes), "LIST", .help = "passes to run, in this order, as simplify,place"},
    {"list-passes", COMPILER, AT(lists), NULL, .help = "the passes in their order, and what each does"},
    {"dump-dir", COMPILER, AT(dump_dir), "DIR", .help = "a numbered file with the graph after each pass",
     .use = DGC_WRITES_IN, .sets = "dump-passes", .to = "true"},
    {"checkpoint", TRAINING, AT(checkpoint), "FILE",
     .help = "where training saves, and where eval and predict find the variables",
     .use = DGC_TRAINING_WRITES, .sets = "checkpoint"},
    {"resume", TRAINING, AT(resume), "[FILE]",
     .help = "go on from this checkpoint, bit for bit (default: the one of --checkpoint, if it is there)",
     .use = DGC_READS, .given = AT(resumes)},
    {"processes", PROCESSES, AT(processes), "N", .help = "how many processes, each one task of the cluster",
     .letter = 'n', .min = 1, .max = MOST_TASKS},
    {"hosts", PROCESSES, AT(hosts), "FILE",
     .help = "a line for each machine: its name, and slots=N (default: this machine)", .use = DGC_READS},
    {"restarts", PROCESSES, AT(restarts), "K",
     .help = "how often to go on from the last checkpoint when a process has died (default: 0)",
     .max = MOST_TASKS},
    {"min-tasks", PROCESSES, AT(min_tasks), "M",
     .help = "each restart has one task less, down to so many (default: always as many)", .min = 1,
     .max = MOST_TASKS},
    {"overwrite", TRAINING, AT(overwrite), NULL,
     .help = "begin anew, or with other contents, though the files that are to be written are there: they "
             "are replaced",
     .sets = "overwrite", .to = "true"},
    {"log", TRAINING, AT(log), "FILE.jsonl|csv",
     .help = "a line for each report: losses, metrics, rate, speed, seconds; --resume appends to it",
     .use = DGC_WRITES},
    {"log-dir", TRAINING, AT(log_dir), "DIR",
     .help = "the same as an event file for TensorBoard, with histograms of what is trained",
     .use = DGC_WRITES_IN},
    {"receipt", TRAINING, AT(receipt), "FILE",
     .help = "train: writes what it was asked for, made of and has come to; verify: does that again, and "
             "compares",
     .use = DGC_TRAINING_WRITES},
    {"jobs", TESTS, AT(jobs), "N", .help = "how many files are tested at a time (default: one for each core)",
     .letter = 'j', .min = 1, .max = CLI_MOST_JOBS},
    {"seconds", TESTS, AT(seconds), "N", .help = "how long a command of a test may take (default: 60)",
     .min = 1, .max = 24 * 60 * 60},
    {"filter", TESTS, AT(filter), "TEXT", .help = "of the files in folders those whose paths hold this text"},
    {"define", TESTS, AT(define), "NAME=PATH", .help = "what %NAME is in lines RUN; may be repeated",
     .use = DGC_READS},
    {"update", TESTS, AT(update), NULL,
     .help = "whole-file goldens become what is printed now, and the change is shown"},
    {"junit", TESTS, AT(junit), "FILE", .help = "writes what came out as JUnit's XML, too",
     .use = DGC_WRITES},
    {"json", TRAINING, AT(json), NULL, .help = "results and messages as JSON"},
    {"markdown", TRAINING, AT(markdown), NULL, .help = "all of it as a page, which is docs/library.md"},
    {"quiet", TRAINING, AT(quiet), NULL, .help = "no progress", .letter = 'q'},
    {"color", TRAINING, 0, "WHEN", .help = "always, never or auto (default)", .words = "always never auto",
     .set = set_color},
    {"help", TRAINING, AT(help), NULL, .help = "this text", .letter = 'h'},
};
enum { NOWN = sizeof own_options / sizeof *own_options };

bool cli_in_list(const char *list, const char *name) {
  size_t len = strlen(name);
  for (const char *p = list; len && (p = strstr(p, name)); p += len)
    if ((p == list || p[-1] == ' ') && (p[len] == ' ' || !p[len])) return true;
  return false;
}

static bool takes(const struct verb *v, const char *name) {
  return cli_in_list(v->options, name) || strcmp(name, "help") == 0 || strcmp(name, "color") == 0;
}

static const struct own_option *find_own(const char *name, size_t len) {
  for (int i = 0; i < NOWN; i++)
    if (strlen(own_options[i].name) == len && strncmp(own_options[i].name, name, len) == 0)
      return &own_options[i];
  return NULL;
}

int cli_number_of(struct cli *c, const char *name, const char *text, int otherwise) {
  const struct own_option *o = find_own(name, strlen(name));
  if (!text) return otherwise;
  char *end;
  errno = 0;
  long value = strtol(text, &end, 10);
  if (!errno && end != text && !*end && value >= o->min && value <= o->max) return (int)value;
  cli_usage(c, "--%s is a number from %d to %d, not '%s'", name, o->min, o->max, text);
  return -1;
}

static bool find_library(const char *name, size_t len, struct dgc_option *out) {
  for (int i = 0; dgc_option(i, out); i++)
    if (strlen(out->name) == len && strncmp(out->name, name, len) == 0) return true;
  return false;
}

/* Edits from one word to the other, Levenshtein. */
static int distance(const char *a, const char *b, size_t blen) {
  enum { MAX = 32 };
  int row[MAX + 1];
  if (blen > MAX || strlen(a) > MAX) return MAX;
  for (size_t j = 0; j <= blen; j++) row[j] = (int)j;
  for (size_t i = 1; a[i - 1]; i++) {
    int diagonal = row[0];
    row[0] = (int)i;
    for (size_t j = 1; j <= blen; j++) {
      int change = diagonal + (a[i - 1] != b[j - 1]);
      int best = row[j] < row[j - 1] ? row[j] : row[j - 1];
      diagonal = row[j];
      row[j] = best + 1 < change ? best + 1 : change;
    }
  }
  return row[blen];
}

const char *cli_closest(const char *word, const char *candidates) {
  static char found[40];
  int best = (int)strlen(word) / 3 + 1; /* one slip in three letters is meant, and two in a short word */
  if (best < 3) best = 3;
  *found = 0;
  for (const char *p = candidates; *p; p += strspn(p, " ")) {
    size_t len = strcspn(p, " ");
    int d = distance(word, p, len);
    if (d < best && len < sizeof found) {
      best = d;
      memcpy(found, p, len);
      found[len] = 0;
    }
    p += len;
  }
  return *found ? found : NULL;
}

/* Which verbs have the option; false if there are none. */
static bool print_takers(const struct cli *c, const char *name) {
  int n = 0;
  for (const struct verb *v = verbs; v->name; v++) {
    if (!takes(v, name)) continue;
    if (n++)
      fprintf(stderr, ", dgc %s", v->name);
    else
      fprintf(stderr, "dgc %s: help: it is an option of dgc %s", c->verb->name, v->name);
  }
  if (n) fputc('\n', stderr);
  return n > 0;
}

static bool print_elsewhere(const struct cli *c, const char *word) {
  const char *option, *here;
  for (int i = 0; dgc_option_elsewhere(word, i, &option, &here); i++)
    if (!option || takes(c->verb, option))
      return fprintf(stderr, "dgc %s: help: write %s\n", c->verb->name, here) > 0;
  return false;
}

static int unknown(struct cli *c, const char *name, size_t len) {
  char word[40] = "";
  if (len < sizeof word) memcpy(word, name, len);
  const char *closest = cli_closest(word, c->verb->options);
  cli_usage(c, "there is no option --%.*s", (int)len, name);
  if (*word && (print_takers(c, word) || print_elsewhere(c, word))) return DGC_USAGE;
  if (closest)
    fprintf(stderr, "dgc %s: help: did you mean --%s?\n", c->verb->name, closest);
  else if (*word && takes(c->verb, "set"))
    fprintf(stderr, "dgc %s: help: a parameter of the model is set by --set %.*s=VALUE\n", c->verb->name,
            (int)len, name);
  return DGC_USAGE;
}

/* Whether a word of the command line is an option, and no value. */
static bool is_option(const char *word) {
  struct dgc_option library = {.size = sizeof library};
  size_t len = strncmp(word, "--", 2) == 0 ? strcspn(word + 2, "=") : 0;
  return len && (find_own(word + 2, len) || find_library(word + 2, len, &library));
}

/* -devices */
static int unknown_letter(struct cli *c, const char *text) {
  cli_usage(c, "there is no option %.2s", text);
  if (takes(c->verb, text + 1)) {
    fprintf(stderr, "dgc %s: help: did you mean -%s?\n", c->verb->name, text);
    return DGC_USAGE;
  }
  int n = 0;
  for (const char *p = c->verb->options; *p; p += strspn(p, " ")) {
    size_t len = strcspn(p, " ");
    if (*p == text[1]) {
      if (!n++) fprintf(stderr, "dgc %s: help: options that begin so are", c->verb->name);
      fprintf(stderr, "%s --%.*s", n > 1 ? "," : "", (int)len, p);
    }
    p += len;
  }
  if (n) fputc('\n', stderr);
  return DGC_USAGE;
}

static int set_own(struct cli *c, const struct own_option *o, const char *value) {
  char *options = (char *)c;
  if (o->set) return o->set(c, value);
  if (o->given) *(bool *)(options + o->given) = true;
  if (o->value)
    *(const char **)(options + o->offset) = value;
  else
    *(bool *)(options + o->offset) = true;
  return o->sets
             ? cli_status(c, dgc_set(c->session, o->sets, o->use == DGC_WRITES_IN || !value ? "true" : value))
             : DGC_OK;
}

/* For receipts. */
static void note_given(struct cli *c, const char *name, const char *value) {
  char **more = realloc(c->given, (size_t)(c->ngiven + 1) * sizeof *more);
  size_t size = strlen(name) + (value ? strlen(value) : 0) + 4;
  if (!more) return;
  c->given = more;
  more[c->ngiven] = malloc(size);
  if (more[c->ngiven])
    snprintf(more[c->ngiven++], size, "--%s%s%s", name, value ? "=" : "", value ? value : "");
}

void cli_forget(struct cli *c) {
  for (int i = 0; i < c->ngiven; i++) free(c->given[i]);
  free(c->given);
  free(c->diagnostics);
  free(c->message);
}

/* "--output" of a verb whose text goes into one file, as -o says. */
static bool is_output(const struct verb *v, const char *name, size_t len) {
  return len == strlen("output") && strncmp(name, "output", len) == 0 && !takes(v, "output") &&
         takes(v, "file");
}

/* One option at argv[*i]; moves *i over its value. */
static int parse_option(struct cli *c, int argc, char **argv, int *i) {
  const char *text = argv[*i], *name = text + 2;
  size_t len = strcspn(name, "=");
  const char *value = name[len] ? name + len + 1 : NULL;
  const struct own_option *own = NULL;
  if (text[1] != '-') {
    for (int k = 0; k < NOWN; k++)
      if (own_options[k].letter && own_options[k].letter == text[1]) own = &own_options[k];
    if (!own) return unknown_letter(c, text);
    name = own->name;
    value = text[2] ? text + 2 : NULL;
    if (text[1] == 'o' && takes(c->verb, "output")) own = NULL, name = "output"; /* of predictions */
    len = strlen(name);
    if (value && own && !own->value) return cli_usage(c, "-%c takes no value", own->letter);
  } else
    own = find_own(name, len);
  if (is_output(c->verb, name, len))
    own = find_own("file", strlen("file")), name = own->name, len = strlen(name);
  struct dgc_option library = {.size = sizeof library};
  if (!own && !find_library(name, len, &library)) return unknown(c, name, len);
  if (!takes(c->verb, own ? own->name : library.name)) return unknown(c, name, len);
  const char *wants = own ? own->value : library.value;
  bool optional = wants && *wants == '[';
  if (!wants && value && own) return cli_usage(c, "--%s takes no value", own->name);
  /* What may follow is a value only once the model has been named. */
  if (wants && !value && !optional && *i + 1 < argc && is_option(argv[*i + 1]))
    return cli_usage(c, "--%.*s needs a value, and '%s' is an option: %s", (int)len, name, argv[*i + 1],
                     wants);
  if (wants && !value && *i + 1 < argc && (!optional || (argv[*i + 1][0] != '-' && c->nwords)))
    value = argv[++*i];
  if (wants && !value && !optional) return cli_usage(c, "--%.*s needs a value: %s", (int)len, name, wants);
  if (value && !*value && own && own->use != DGC_NO_FILE)
    return cli_usage(c, "--%.*s wants a name, and this one is empty: %s", (int)len, name, wants);
  note_given(c, own ? own->name : library.name, value);
  if (own) return set_own(c, own, value);
  return cli_status(c, dgc_set(c->session, library.name, value ? value : "true"));
}

/* How many there must be: "[NAME]" may be left out. */
static int count_words(const char *words) {
  int n = *words && *words != '[';
  for (const char *p = words; *p; p++) n += *p == ' ';
  return n;
}

/* How many there may be. */
static int most_words(const char *words) {
  size_t len = strlen(words);
  return len > 3 && strcmp(words + len - 3, "...") == 0 ? MAX_WORDS : count_words(words) + (*words == '[');
}

/* "NAME=PATH" of an option that gives an input its file; NULL: the option is another. */
static const char *input_of(const char *given) {
  struct dgc_option o = {.size = sizeof o};
  size_t len = strcspn(given, "=");
  bool found = given[len] && find_library(given + 2, len - 2, &o);
  return found && o.value && strcmp(o.value, "NAME=PATH") == 0 ? given + len + 1 : NULL;
}

/* "--data=x=-": standard input, up to a ':'; a FIFO likewise. Who waits for a pipe should know for which. */
static void say_pipes(const struct cli *c) {
  char path[4096];
  struct stat st;
  for (int i = 0; i < c->ngiven && !c->quiet; i++) {
    const char *name = input_of(c->given[i]), *equals = name ? strchr(name, '=') : NULL;
    if (!equals || strlen(equals) >= sizeof path) continue;
    strcpy(path, equals + 1);
    bool input = path[0] == '-' && (!path[1] || path[1] == ':');
    for (char *colon = path; !input && colon && stat(path, &st) != 0;)
      if ((colon = strrchr(path, ':'))) *colon = 0;
    if (!input && (stat(path, &st) != 0 || !S_ISFIFO(st.st_mode))) continue;
    fprintf(stderr, "dgc %s: reading %s to its end\n", c->verb->name, input ? "standard input" : path);
  }
}

/* Of an input given twice the last file is read, as of other options the last value counts. */
static void say_given_twice(const struct cli *c) {
  for (int i = 0; i < c->ngiven; i++) {
    const char *given = c->given[i], *name = input_of(given), *file = name ? strchr(name, '=') : NULL;
    if (!file) continue;
    int len = (int)(file + 1 - given);
    for (int k = 0; k < i; k++) {
      const char *before = c->given[k];
      if (strncmp(given, before, (size_t)len) != 0) continue;
      fprintf(stderr,
              "dgc %s: warning: %.*s gives %.*s twice: %s is read, not %s; one behind the other they are "
              "%.*s%s,%s\n",
              c->verb->name, (int)(name - 1 - given), given, (int)(file - name), name, file + 1, before + len,
              (int)(file + 1 - name), name, before + len, file + 1);
      break;
    }
  }
}

static int too_many(struct cli *c, const char *text) {
  static const char suffix[] = ".safetensors";
  size_t n = strlen(text), m = sizeof suffix - 1;
  cli_usage(c, "'%s' is one argument too many: usage: dgc %s %s", text, c->verb->name, c->verb->words);
  if (n > m && strcmp(text + n - m, suffix) == 0 && takes(c->verb, "checkpoint"))
    fprintf(stderr, "dgc %s: help: write --checkpoint %s\n", c->verb->name, text);
  return DGC_USAGE;
}

int cli_parse(struct cli *c, int argc, char **argv) {
  bool only_words = false;
  int wanted = count_words(c->verb->words);
  for (int i = 0; i < argc; i++) {
    const char *text = argv[i];
    if (!only_words && strcmp(text, "--") == 0) {
      only_words = true;
      c->rest = argv + i + 1;
      if (takes(c->verb, "processes")) break;
    } else if (!only_words && text[0] == '-' && text[1]) {
      int code = parse_option(c, argc, argv, &i);
      if (code) return code;
    } else if (c->nwords == most_words(c->verb->words) && takes(c->verb, "processes"))
      return cli_usage(
          c, "'%s' stands behind --, with all that is started: dgc launch -n 4 -- train MODEL ...", text);
    else if (c->nwords == most_words(c->verb->words))
      return too_many(c, text);
    else
      c->words[c->nwords++] = text;
  }
  say_given_twice(c);
  say_pipes(c);
  bool by_receipt = c->receipt && strcmp(c->verb->name, "verify") == 0;
  if (!c->help && !by_receipt && !c->lists && c->nwords < wanted)
    return cli_usage(c, "something is missing: usage: dgc %s [OPTIONS] %s", c->verb->name, c->verb->words);
  return DGC_OK;
}

static enum dgc_file_use use_of(const struct verb *v, enum dgc_file_use use) {
  if (use != DGC_TRAINING_WRITES) return use;
  return strcmp(v->name, "train") == 0 ? DGC_WRITES : DGC_READS;
}

bool cli_option(const struct verb *v, int index, struct cli_option *out) {
  for (int i = 0; i < NOWN; i++) {
    const struct own_option *o = &own_options[i];
    if (!takes(v, o->name) || index--) continue;
    *out = (struct cli_option){o->letter, o->name, o->value, o->help, o->words, o->group, use_of(v, o->use)};
    return true;
  }
  struct dgc_option o = {.size = sizeof o};
  for (int i = 0; dgc_option(i, &o); i++) {
    if (!takes(v, o.name) || find_own(o.name, strlen(o.name)) || index--) continue;
    *out = (struct cli_option){strcmp(o.name, "output") == 0 ? 'o' : 0,
                               o.name,
                               o.value,
                               o.help,
                               o.choices,
                               o.group,
                               use_of(v, o.file)};
    return true;
  }
  return false;
}

/* ---- files ---- */

/* "FILE" of "WHAT FILE...": what the word at `index` stands for; empty: there can be none. */
static void word_name(const char *words, int index, char *out, size_t size) {
  const char *p = words;
  for (; index > 0 && strchr(p, ' '); index--) p = strchr(p, ' ') + 1;
  p += *p == '[';
  snprintf(out, size, "%.*s", (int)strcspn(p, " .]"), p);
}

/* The words that are no files. */
static bool is_file_word(const char *name) {
  static const char *const others[] = {"WHAT", "NODE", "NAME", "SHELL"};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (strcmp(name, others[i]) == 0) return false;
  return true;
}

/* Whether the option is given once more behind `index`: the last one holds. */
static bool comes_again(const struct cli *c, int index, size_t len) {
  for (int i = index + 1; i < c->ngiven; i++)
    if (strncmp(c->given[i], c->given[index], len) == 0 && strchr("=", c->given[i][len])) return true;
  return false;
}

/* The library knows those of its own options; what training writes, it knows when it trains. */
static int use_given(struct cli *c, int index) {
  const char *given = c->given[index], *equals = strchr(given, '=');
  size_t len = strcspn(given, "=");
  const struct own_option *o = equals ? find_own(given + 2, len - 2) : NULL;
  enum dgc_file_use use = o ? use_of(c->verb, o->use) : DGC_NO_FILE;
  char what[64];
  if (!use) return DGC_OK;
  bool many = strncmp(o->value, "NAME=", 5) == 0;
  const char *path = many ? strchr(equals + 1, '=') : equals;
  if (!path || (!many && comes_again(c, index, len))) return DGC_OK;
  snprintf(what, sizeof what, strcmp(o->name, "file") == 0 ? "-o" : "--%s", o->name);
  return cli_status(c, dgc_uses(c->session, what, path + 1, use));
}

int cli_use_files(struct cli *c) {
  char what[32];
  int code = DGC_OK;
  for (int i = 0; !code && i < c->ngiven; i++) code = use_given(c, i);
  for (int i = 0; !code && i < c->nwords; i++) {
    word_name(c->verb->words, i, what, sizeof what);
    if (!is_file_word(what)) continue;
    const char *name = strcmp(what, "MODEL") == 0 ? "the model" : what;
    code = cli_status(c, dgc_uses(c->session, name, c->words[i], DGC_READS));
  }
  return code;
}
