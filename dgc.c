/* The public functions: each is one call into the parts of the library. */
#include "dgc_internal.h"

#include "runtime/devices.h"

#include <stdlib.h>
#include <string.h>

const char *dgc_version(void) { return DGC_VERSION; }

const char *dgc_build(void) {
  return "compiler: "
#ifdef __clang__
         "clang " __clang_version__
#else
         "gcc " __VERSION__
#endif
         "\nbackends: "
#ifdef DGC_WITH_LLVM
         "cpu (LLVM " DGC_LLVM_VERSION ", oneDNN), "
#endif
         "interp"
#ifdef DGC_DEBUG
         "\nchecks: on"
#endif
         "\n";
}

/* --- calls --- */

static void fresh_call(struct dgc_session *s) {
  arena_reset(s->call);
  diags_init(&s->diags, s->call);
  s->message = "";
}

void session_begin(struct dgc_session *s, jmp_buf *point) {
  s->outer = arena_on_failure(point);
  fresh_call(s);
}

enum dgc_status session_end(struct dgc_session *s, enum dgc_status status) {
  s->message = diags_text(&s->diags, s->options.color);
  arena_on_failure(s->outer);
  return status;
}

enum dgc_status session_out_of_memory(struct dgc_session *s) {
  arena_on_failure(s->outer);
  arena_destroy(s->building);
  s->building = NULL;
  s->message = "error: out of memory\n";
  return DGC_RUNTIME;
}

enum dgc_status session_fail(struct dgc_session *s, enum dgc_status status, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  diag_error(&s->diags, LOC_NONE, "%s", arena_vprintf(s->call, fmt, ap));
  va_end(ap);
  return status;
}

struct str session_text(struct dgc_session *s) {
  arena_reset(s->text);
  return str_make(s->text);
}

/* --- sessions --- */

static struct dgc_session *create(void) {
  struct arena *a = arena_create();
  struct dgc_session *s = arena_new(a, struct dgc_session);
  s->arena = a;
  s->call = arena_create();
  s->text = arena_create();
  fresh_call(s);
  return s;
}

struct dgc_session *dgc_create(void) {
  jmp_buf point, *outer = arena_on_failure(&point);
  struct dgc_session *s = setjmp(point) ? NULL : create();
  arena_on_failure(outer);
  return s;
}

void dgc_destroy(struct dgc_session *s) {
  if (!s) return;
  session_close(s);
  arena_destroy(s->building);
  arena_destroy(s->text);
  arena_destroy(s->call);
  arena_destroy(s->arena);
}

const char *dgc_message(const struct dgc_session *s) { return s->message; }

enum dgc_status dgc_set(struct dgc_session *s, const char *option, const char *value) {
  CALL(s, options_set(s, option, value));
}

void dgc_on_pass(struct dgc_session *s, dgc_pass_fn *fn, void *user) {
  s->on_pass = fn;
  s->on_pass_user = user;
}

void dgc_on_progress(struct dgc_session *s, dgc_progress_fn *fn, void *user) {
  s->on_progress = fn;
  s->on_progress_user = user;
}
