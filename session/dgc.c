/* SPDX-License-Identifier: Apache-2.0 */
/* Public calls that need no model: create and destroy a session, set its options, read its messages, the build. */
#include "session/options.h"
#include "session/run.h"
#include "session/state/calls.h"
#include "session/state/handlers.h"

const char *dgc_version(void) { return DGC_VERSION; }

const char *dgc_build(void) {
  return "compiler: "
#ifdef __clang__
         "clang " __clang_version__
#else
         "gcc " __VERSION__
#endif
         "\nbackends:"
#define BACKEND(name) " " #name
#include "runtime/backends.def"
#undef BACKEND
#ifdef DGC_WITH_LLVM
         "\nlibraries: LLVM " DGC_LLVM_VERSION ", oneDNN"
#endif
#ifdef DGC_DEBUG
         "\nchecks: on"
#endif
         "\n";
}

struct dgc_session *dgc_create(void) {
  jmp_buf point, *outer = arena_on_failure(&point);
  struct dgc_session *s = setjmp(point) ? NULL : session_create();
  arena_on_failure(outer);
  return s;
}

void dgc_destroy(struct dgc_session *s) {
  if (!s || session_forked(s)) return; /* what it waits for would never come */
  session_close(s);
  arena_destroy(s->building);
  arena_destroy(s->text);
  arena_destroy(s->calls->inner);
  arena_destroy(s->call);
  arena_destroy(s->arena);
}

const char *dgc_message(const struct dgc_session *s) { return s->message; }

enum dgc_status dgc_set(struct dgc_session *s, const char *option, const char *value) {
  CALL(s, options_set(s, option, value));
}

enum dgc_status dgc_unset(struct dgc_session *s, const char *option) { CALL(s, options_unset(s, option)); }

void dgc_on_pass(struct dgc_session *s, dgc_pass_fn *fn, void *user) {
  s->handlers->pass = fn;
  s->handlers->pass_user = user;
}

void dgc_on_message(struct dgc_session *s, dgc_message_fn *fn, void *user) {
  s->handlers->message = fn;
  s->handlers->message_user = user;
}

void dgc_on_progress(struct dgc_session *s, dgc_progress_fn *fn, void *user) {
  s->handlers->progress = fn;
  s->handlers->progress_user = user;
}
