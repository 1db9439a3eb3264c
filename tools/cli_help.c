/* SPDX-License-Identifier: Apache-2.0 */
/* Help and completion: verbs, and options by what they are for, out of the tables that the tool parses with. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

/* ---- what options are for ---- */

static const char common[] =
    "set batch devices strategy data epochs checkpoint resume eval-data output emit file json help";

/* The sections of the manual: an option stands in one of them. */
static const char *const groups[] = {
    "The model and its devices", "Data", "Training and its results", "Processes", "Tests",
    "Looking into the compiler"};
enum { NGROUPS = sizeof groups / sizeof *groups };

/* ---- help ---- */

enum { WIDTH = 80, LEFT = 26, VERBS = 13 };

/* `text` from column `from` on, broken at blanks; `at` columns of the line are taken: where that is too many, below. */
static void print_wrapped(FILE *f, int at, int from, const char *text) {
  if (at && at >= from) fputc('\n', f), at = 0;
  while (*text) {
    size_t room = WIDTH - (size_t)from, n = strlen(text);
    if (n > room)
      for (n = room; n > 0 && text[n] != ' ';) n--;
    if (!n) n = strcspn(text, " "); /* a word that is longer than a line */
    fprintf(f, "%*s%.*s\n", from - at, "", (int)n, text);
    text += n + strspn(text + n, " ");
    at = 0;
  }
}

static void print_option(const struct cli_option *o) {
  char left[64];
  int n = o->letter ? snprintf(left, sizeof left, "  -%c, --%s%s%s", o->letter, o->name, o->value ? " " : "",
                               o->value ? o->value : "")
                    : snprintf(left, sizeof left, "  --%s%s%s", o->name, o->value ? " " : "",
                               o->value ? o->value : "");
  fputs(left, stdout);
  print_wrapped(stdout, n, LEFT, o->help);
}

/* Those of the verb that are in the group; NULL: the common ones, which stand in none else. */
static void print_group(const struct verb *v, const char *group) {
  struct cli_option o;
  bool any = false;
  for (int i = 0; cli_option(v, i, &o); i++) {
    bool is_common = cli_in_list(common, o.name);
    if (group ? is_common || strcmp(o.group, group) != 0 : !is_common) continue;
    if (!any) printf("\n%s:\n", group ? group : "Common options");
    any = true;
    print_option(&o);
  }
}

void cli_print_help(const struct verb *v) {
  printf("usage: dgc %s [OPTIONS]%s%s\n\n", v->name, *v->words ? " " : "", v->words);
  print_wrapped(stdout, 0, 0, v->help);
  print_group(v, NULL);
  for (int i = 0; i < NGROUPS; i++) print_group(v, groups[i]);
}

static void put_member(const char *before, const char *text) {
  printf("%s", before);
  if (text)
    cli_json_string(stdout, text);
  else
    fputs("null", stdout);
}

void cli_print_help_json(const struct verb *v) {
  static const char *const uses[] = {
      [DGC_READS] = "reads", [DGC_WRITES] = "writes", [DGC_WRITES_IN] = "writes in"};
  struct cli_option o;
  put_member("{\"ok\":true,\"verb\":", v->name);
  put_member(",\"words\":", v->words);
  put_member(",\"help\":", v->help);
  fputs(",\"options\":[", stdout);
  for (int i = 0; cli_option(v, i, &o); i++) {
    put_member(i ? ",{\"name\":" : "{\"name\":", o.name);
    put_member(",\"value\":", o.value);
    put_member(",\"file\":", uses[o.use]);
    put_member(",\"choices\":", o.choices);
    put_member(",\"help\":", o.help);
    putchar('}');
  }
  fputs("]}\n", stdout);
}

void cli_print_verbs(FILE *f) {
  fputs("usage: dgc VERB [OPTIONS] ...\n\n", f);
  for (const struct verb *v = verbs; v->name; v++)
    print_wrapped(f, fprintf(f, "  %s", v->name), VERBS, v->help);
  fputs("\ndgc help VERB says more. dgc --version [--verbose].\n"
        "exit codes: 0 ok, 1 the input is wrong, 2 usage, 3 device or runtime,\n"
        "            4 mismatch, or a loss that is no number\n",
        f);
}

/* ---- completion ---- */

/* In single quotes, for a shell; in zsh's lists of options, brackets and colons mean something, too. */
static void put_quoted(const char *text, const char *escaped) {
  for (; *text; text++) {
    if (*text == '\'')
      fputs("'\\''", stdout);
    else {
      if (strchr(escaped, *text)) putchar('\\');
      putchar(*text);
    }
  }
}

static void put_verbs(const char *before) {
  for (const struct verb *v = verbs; v->name; v++) printf("%s%s", v == verbs ? "" : before, v->name);
}

static void complete_bash(void) {
  struct cli_option o;
  fputs("# bash completion of dgc\n_dgc() {\n"
        "  local options current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
        "  [ \"$current\" = = ] && current=\n"
        "  [ \"$before\" = = ] && before=${COMP_WORDS[COMP_CWORD-2]}\n"
        "  if [ \"$COMP_CWORD\" = 1 ]; then\n    mapfile -t COMPREPLY < <(compgen -W \"",
        stdout);
  put_verbs(" ");
  fputs("\" -- \"$current\")\n    return\n  fi\n  case \"${COMP_WORDS[1]} $before\" in\n", stdout);
  for (const struct verb *v = verbs; v->name; v++)
    for (int i = 0; cli_option(v, i, &o); i++)
      if (o.choices) printf("  '%s --%s') options='%s' ;;\n", v->name, o.name, o.choices);
  fputs("  *)\n    [[ $current == -* ]] || return\n    case ${COMP_WORDS[1]} in\n", stdout);
  for (const struct verb *v = verbs; v->name; v++) {
    printf("    %s) options=\"", v->name);
    for (int i = 0; cli_option(v, i, &o); i++) printf("%s--%s", i ? " " : "", o.name);
    fputs("\" ;;\n", stdout);
  }
  fputs("    help) options= ;;\n    esac ;;\n  esac\n  mapfile -t COMPREPLY < <(compgen -W \"$options\" -- "
        "\"$current\")\n}\n"
        "complete -o default -F _dgc dgc\n",
        stdout);
}

static void complete_zsh(void) {
  struct cli_option o;
  fputs("#compdef dgc\n# zsh completion of dgc\nif (( CURRENT == 2 )); then\n  local -a verbs=(\n", stdout);
  for (const struct verb *v = verbs; v->name; v++) {
    printf("    '%s:", v->name);
    put_quoted(v->help, ":");
    fputs("'\n", stdout);
  }
  fputs("  )\n  _describe verb verbs\n  return\nfi\ncase $words[2] in\n", stdout);
  for (const struct verb *v = verbs; v->name; v++) {
    printf("%s) _arguments \\\n", v->name);
    for (int i = 0; cli_option(v, i, &o); i++) {
      printf("  '*--%s[", o.name);
      put_quoted(o.help, "[]:\\");
      fputs(o.value ? *o.value == '[' ? "]::value:" : "]:value:" : "]", stdout);
      if (o.value) printf(o.choices ? "(%s)" : "_files", o.choices);
      fputs("' \\\n", stdout);
    }
    fputs("  '*:file:_files' ;;\n", stdout);
  }
  fputs("esac\n", stdout);
}

static void complete_fish(void) {
  struct cli_option o;
  fputs("# fish completion of dgc\n", stdout);
  for (const struct verb *v = verbs; v->name; v++) {
    printf("complete -c dgc -f -n __fish_use_subcommand -a %s -d '", v->name);
    put_quoted(v->help, "\\");
    fputs("'\n", stdout);
    for (int i = 0; cli_option(v, i, &o); i++) {
      printf("complete -c dgc -n '__fish_seen_subcommand_from %s' -l %s%s", v->name, o.name,
             o.choices ? " -x"
             : o.value ? " -r"
                       : "");
      if (o.choices) printf(" -a '%s'", o.choices);
      fputs(" -d '", stdout);
      put_quoted(o.help, "\\");
      fputs("'\n", stdout);
    }
  }
}

/* {"ok":true,"text":"..."} */
static int as_json(void (*print)(void)) {
  char *text = NULL;
  size_t size;
  FILE *out = stdout, *kept = open_memstream(&text, &size);
  if (!kept) return DGC_RUNTIME;
  stdout = kept;
  print();
  stdout = out;
  bool good = fclose(kept) == 0;
  fputs("{\"ok\":true,\"text\":", stdout);
  cli_json_string(stdout, good ? text : "");
  fputs("}\n", stdout);
  free(text);
  return good ? DGC_OK : DGC_RUNTIME;
}

int cli_completion(struct cli *c) {
  static const struct {
    const char *shell;
    void (*print)(void);
  } shells[] = {{"bash", complete_bash}, {"zsh", complete_zsh}, {"fish", complete_fish}};
  for (size_t i = 0; i < sizeof shells / sizeof *shells; i++)
    if (strcmp(c->words[0], shells[i].shell) == 0) {
      if (c->json) return as_json(shells[i].print);
      shells[i].print();
      return DGC_OK;
    }
  return cli_usage(c, "there is completion for bash, zsh and fish, not for '%s'", c->words[0]);
}
