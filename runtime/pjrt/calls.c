/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of a plugin: the first that fails is noted, and what is waited for longer than the limit is given up. */
#include "base/clock.h"
#include "runtime/pjrt/engine.h"

#include <stdio.h>
#include <time.h>

void pjrt_fail(struct pjrt_engine *e, int device, const char *call, const char *text) {
  pthread_mutex_lock(&e->lock);
  if (!e->failed) {
    snprintf(e->message, sizeof e->message, "%s on %s: %s", call, e->devices[device].text, text);
    e->failed = true;
  }
  pthread_mutex_unlock(&e->lock);
}

bool pjrt_do(struct pjrt_engine *e, int device, enum pjrt_call call, const char *name, void *args) {
  if (e->failed) return false;
  if (!pjrt_has(e->plugin, call)) {
    pjrt_fail(e, device, name, "the plugin has no such call");
    return false;
  }
  void *error = pjrt_invoke(e->plugin, call, args);
  if (!error) return true;
  struct arena_guard guard;
  struct arena *a = arena_create_guarded(&guard);
  pjrt_fail(e, device, name, pjrt_error_text(a, e->plugin, error));
  arena_destroy_guarded(a, &guard);
  return false;
}

static void forget_event(struct pjrt_engine *e, void *event) {
  struct pjrt_Event_Destroy args = PJRT_ARGS(Event_Destroy, .event = event);
  if (event) pjrt_invoke(e->plugin, CALL_Event_Destroy, &args);
}

static bool is_ready(struct pjrt_engine *e, int device, void *event) {
  struct pjrt_Event_IsReady args = PJRT_ARGS(Event_IsReady, .event = event);
  return !PJRT(e, device, Event_IsReady, &args) || args.is_ready;
}

/* Within the limit; else the device is given up. */
static bool await_limited(struct pjrt_engine *e, int device, void *event) {
  static const struct timespec pause = {0, 20000};
  uint64_t end = clock_ns() + (uint64_t)e->limit * 1000000000u;
  bool ready = is_ready(e, device, event);
  while (!ready && clock_ns() < end) {
    nanosleep(&pause, NULL);
    ready = is_ready(e, device, event);
  }
  if (ready) return true;
  char text[64];
  snprintf(text, sizeof text, "no answer within %d s", e->limit);
  pjrt_fail(e, device, "waiting", text);
  *e->lost = true;
  return false;
}

bool pjrt_await(struct pjrt_engine *e, int device, void *event) {
  if (!event) return !e->failed;
  if (e->limit && !await_limited(e, device, event)) return false;
  struct pjrt_Event_Await args = PJRT_ARGS(Event_Await, .event = event);
  bool good = PJRT(e, device, Event_Await, &args);
  forget_event(e, event);
  return good;
}
