/* SPDX-License-Identifier: Apache-2.0 */
/* Logs of trainings as one page: their text, in a page that draws it. */
#include "session/session.h"

#include "base/embed.h"
#include "runtime/data/json.h"

#include <string.h>

enum { MAX_LOG = 64 << 20 };

extern const struct embedded report_files[];

/* A string of JSON inside of a page: nothing in it ends the script that it stands in. */
static void put_string(struct dgc_session *s, struct str *out, const char *text) {
  struct str quoted = str_make(s->call);
  json_quote(&quoted, text);
  for (size_t i = 0; i < quoted.len; i++)
    if (quoted.data[i] == '<')
      str_put(out, "\\u003c");
    else
      str_putc(out, quoted.data[i]);
}

static enum dgc_status add_log(struct dgc_session *s, struct str *out, const char *path) {
  const struct source *log = source_read(s->call, path, MAX_LOG, &s->diags);
  if (!log) return session_unread(s);
  bool csv = strncmp(log->text, "step,", 5) == 0;
  if (!csv && *log->text != '{')
    return session_fail(s, DGC_INPUT, "%s is no log of a training: dgc train --log writes one", path);
  if (!utf8_valid(log->text, log->len) || strlen(log->text) != log->len || !utf8_valid(path, strlen(path)))
    return session_fail(s, DGC_INPUT, "%s: it is no text of UTF-8", path);
  const char *whole = strrchr(log->text, '\n'); /* what somebody who was killed has left is no line */
  str_put(out, "{\"name\":");
  put_string(s, out, path);
  str_printf(out, ",\"csv\":%s,\"text\":", csv ? "true" : "false");
  put_string(s, out, arena_strndup(s->call, log->text, whole ? (size_t)(whole + 1 - log->text) : 0));
  str_putc(out, '}');
  return DGC_OK;
}

static enum dgc_status report(struct dgc_session *s, const char *const *logs, int count, const char **text) {
  static const char mark[] = "/*LOGS*/";
  const char *page = report_files[0].text, *at = strstr(page, mark);
  struct str out = session_text(s);
  str_putn(&out, page, (size_t)(at - page));
  str_putc(&out, '[');
  for (int i = 0; i < count; i++) {
    if (i) str_putc(&out, ',');
    enum dgc_status status = add_log(s, &out, logs[i]);
    if (status) return status;
  }
  str_putc(&out, ']');
  str_put(&out, at + sizeof mark - 1);
  *text = out.data;
  return DGC_OK;
}

enum dgc_status dgc_report(struct dgc_session *s, const char *const *logs, int count, const char **text) {
  *text = "";
  CALL(s, report(s, logs, count, text));
}
