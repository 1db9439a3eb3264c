/* SPDX-License-Identifier: Apache-2.0 */
/* What several verbs print as JSON. */
#include "cli.h"

#include <math.h>
#include <stdlib.h>

void cli_json_number(FILE *f, double value) {
  if (!isfinite(value)) {
    fputs("null", f);
    return;
  }
  for (int digits = 6; digits <= 17; digits++) {
    char text[40];
    snprintf(text, sizeof text, "%.*g", digits, value);
    if (digits < 17 && strtod(text, NULL) != value) continue;
    fputs(text, f);
    return;
  }
}

void cli_json_string(FILE *f, const char *text) {
  fputc('"', f);
  for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
    if (*p == '"' || *p == '\\')
      fprintf(f, "\\%c", *p);
    else if (*p < 0x20)
      fprintf(f, "\\u%04x", *p);
    else
      fputc(*p, f);
  }
  fputc('"', f);
}

void cli_print_tasks_json(struct dgc_session *s) {
  int count;
  const struct dgc_task *tasks = dgc_tasks(s, &count);
  for (int i = 0; i < count; i++) {
    const struct dgc_task *t = &tasks[i];
    const struct {
      const char *name;
      double value;
    } numbers[] = {{"computing", t->computing}, {"waiting", t->waiting}, {"other", t->other},
                   {"longest", t->longest},     {"slower", t->slower},   {"sent", (double)t->sent},
                   {"followers", t->followers}};
    fputs(i ? ",{\"task\":" : ",\"tasks\":[{\"task\":", stdout);
    cli_json_string(stdout, t->name);
    fputs(",\"waits_for\":", stdout);
    if (t->waits_for < 0)
      fputs("null", stdout);
    else
      cli_json_string(stdout, tasks[t->waits_for].name);
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
      fprintf(stdout, ",\"%s\":", numbers[k].name);
      cli_json_number(stdout, numbers[k].value);
    }
    fputs(i + 1 < count ? "}" : "}]", stdout);
  }
}
