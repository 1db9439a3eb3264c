/* SPDX-License-Identifier: Apache-2.0 */
/* dgc: the command line. Results go to standard output, everything else to standard error. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int print_version(bool verbose) {
  printf("dgc %s\n", dgc_version());
  if (verbose) {
    struct dgc_session *s = dgc_create();
    struct dgc_machine m = {.size = sizeof m};
    fputs(dgc_build(), stdout);
    if (s && !dgc_machine(s, &m)) printf("machine: %s, %d cores, %s\n", m.cpu, m.cores, m.vectors);
    dgc_destroy(s);
  }
  return DGC_OK;
}

static int too_much(const char *word) {
  fprintf(stderr, "dgc: error: '%s' is one argument too many: usage: dgc --version [--verbose]\n", word);
  return DGC_USAGE;
}

/* What other tools call a verb, and what it is here. */
static const char *verb_elsewhere(const char *word) {
  static const struct {
    const char *theirs, *here;
  } rows[] = {{"fit", "train MODEL"},
              {"run", "train MODEL"},
              {"evaluate", "eval MODEL"},
              {"validate", "eval MODEL"},
              {"infer", "predict MODEL"},
              {"serve", "predict MODEL"},
              {"sample", "predict MODEL"},
              {"generate", "predict MODEL"},
              {"lint", "check MODEL"},
              {"format", "compile MODEL --emit ast"},
              {"fmt", "compile MODEL --emit ast"},
              {"tensorboard", "train MODEL --log-dir DIR, or report LOG -o FILE"},
              {"export", "compile MODEL --emit stablehlo"},
              {"convert", "compile MODEL --emit stablehlo"},
              {"summary", "compile MODEL --emit summary"},
              {"plot", "report LOG -o FILE"}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (strcmp(rows[i].theirs, word) == 0) return rows[i].here;
  const char *dot = strrchr(word, '.');
  return dot && strcmp(dot, ".dsl") == 0 ? "check FILE, or train FILE" : NULL;
}

static int no_verb(const char *word) {
  char names[256] = "";
  for (const struct verb *v = verbs; v->name; v++) {
    if (*names) strcat(names, " ");
    strcat(names, v->name);
  }
  const char *closest = cli_closest(word, names), *here = verb_elsewhere(word);
  fprintf(stderr, "dgc: error: there is no verb '%s'\n", word);
  if (here)
    fprintf(stderr, "dgc: help: write dgc %s\n", here);
  else if (closest)
    fprintf(stderr, "dgc: help: did you mean '%s'?\n", closest);
  else
    fprintf(stderr, "dgc: help: verbs are %s\n", names);
  return DGC_USAGE;
}

int cli_run(const struct verb *v, int argc, char **argv) {
  struct cli c = {.verb = v, .session = dgc_create()};
  if (!c.session) {
    fputs("dgc: error: out of memory\n", stderr);
    return DGC_RUNTIME;
  }
  const char *no_color = getenv("NO_COLOR");
  c.color = isatty(STDERR_FILENO) && !(no_color && *no_color);
  c.argc = argc;
  c.argv = argv;
  int code = cli_parse(&c, argc, argv);
  c.process = dgc_process(c.session, NULL);
  c.evaluator = dgc_is_evaluator(c.session);
  if (!code && !c.help) code = cli_check_environment(&c);
  bool prints = c.process == 0 || c.evaluator;
  if (!prints && !freopen("/dev/null", "w", stdout)) code = DGC_RUNTIME;
  for (int i = 0; code && i < argc && strcmp(argv[i], "--") != 0; i++)
    c.json |= strcmp(argv[i], "--json") == 0;
  if (!code && c.help && c.json)
    cli_print_help_json(v);
  else if (!code && c.help)
    cli_print_help(v);
  else if (!code) {
    cli_set_look(&c);
    code = cli_use_files(&c);
    if (!code) code = v->run(&c);
  }
  if (c.json && !c.help) cli_tell(&c, code);
  dgc_destroy(c.session);
  cli_forget(&c);
  return code;
}

static int run(int argc, char **argv) {
  const char *first = argc > 1 ? argv[1] : NULL;
  if (!first) {
    cli_print_verbs(stderr);
    return DGC_USAGE;
  }
  if (strcmp(first, "--version") == 0 || strcmp(first, "-V") == 0) {
    bool verbose = argc > 2 && strcmp(argv[2], "--verbose") == 0;
    if (argc > 2 + verbose) return too_much(argv[2 + verbose]);
    return print_version(verbose);
  }
  if (strcmp(first, "--help") == 0 || strcmp(first, "-h") == 0 || strcmp(first, "help") == 0) {
    for (const struct verb *v = verbs; v->name; v++)
      if (argc > 2 && strcmp(argv[2], v->name) == 0) {
        cli_print_help(v);
        return DGC_OK;
      }
    if (argc > 2) return no_verb(argv[2]);
    cli_print_verbs(stdout);
    return DGC_OK;
  }
  for (const struct verb *v = verbs; v->name; v++)
    if (strcmp(first, v->name) == 0) return cli_run(v, argc - 2, argv + 2);
  return no_verb(first);
}

int main(int argc, char **argv) {
  cli_catch_signals();
  int code = run(argc, argv);
  if ((fflush(stdout) || ferror(stdout)) && !code) {
    fputs("dgc: error: cannot write to standard output\n", stderr);
    code = DGC_RUNTIME;
  }
  return cli_end(code);
}
