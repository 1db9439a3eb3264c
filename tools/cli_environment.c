/* SPDX-License-Identifier: Apache-2.0 */
/* What is misspelt in the environment: unlike an option, it would be ignored without a word. */
#include "cli.h"

#include <string.h>
#include <unistd.h>

enum switch_kind { ON_OFF, COUNT, ANY };

static const struct switch_row {
  const char *name;
  enum switch_kind kind;
} variables[] = {
#define SWITCH(name, kind) {#name, kind},
#define OTHER(name)        {#name, ANY},
#include "cli_environment.def"
};
#undef SWITCH
#undef OTHER

#define SWITCH(name, kind) #name " "
#define OTHER(name)        #name " "
static const char names[] =
#include "cli_environment.def"
    ;

/* As other wrong values are: refused. Of DGC_SIMULATED_ the simulated devices read what they like. */
static int check_value(struct cli *c, const struct switch_row *v, const char *value) {
  if (v->kind == ON_OFF && *value && strcmp(value, "on") != 0 && strcmp(value, "off") != 0) {
    cli_usage(c, "%s in the environment is on or off, not '%s'", v->name, value);
    if (strcmp(v->name, "DGC_CACHE") == 0)
      fprintf(stderr, "dgc %s: help: XDG_CACHE_HOME names the folder\n", c->verb->name);
    return DGC_USAGE;
  }
  if (v->kind == COUNT && value[strspn(value, "0123456789")])
    return cli_usage(c, "%s in the environment is a number of bytes, not '%s'", v->name, value);
  return DGC_OK;
}

static int check_one(struct cli *c, const char *entry) {
  size_t len = strcspn(entry, "=");
  char name[40] = "";
  for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
    if (strlen(variables[i].name) == len && memcmp(variables[i].name, entry, len) == 0)
      return check_value(c, &variables[i], entry[len] ? entry + len + 1 : "");
  if (c->process || strncmp(entry, "DGC_SIMULATED_", 14) == 0) return DGC_OK;
  if (len < sizeof name) memcpy(name, entry, len);
  const char *closest = *name ? cli_closest(name, names) : NULL;
  fprintf(stderr, "dgc %s: warning: nothing reads %.*s in the environment%s%s%s\n", c->verb->name, (int)len,
          entry, closest ? ": did you mean " : "", closest ? closest : "", closest ? "?" : "");
  return DGC_OK;
}

int cli_check_environment(struct cli *c) {
  int code = DGC_OK;
  for (char **entry = environ; *entry; entry++)
    if (strncmp(*entry, "DGC_", 4) == 0 && check_one(c, *entry)) code = DGC_USAGE;
  return code;
}
