/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of sessions that come at a bad time: from progress and passes, between two steps, while a training is asked to
 * stop, and when memory runs out. With a backend as argument: only that, of trainings, too, on this backend, which may
 * need GPUs; else one batch on the interpreter. BACKEND N: at each Nth request for memory. */
#include "base/arena.h"
#include "tests/unit/session.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct listener {
  struct dgc_session *s;
  const char *path;
  int epochs, told;
  double error;
};

/* Looks at the model after each epoch, keeps it, and then tries what would pull the rug out. */
static const char x_path[] = "x.npy", y_path[] = "y.npy";

static const char warned[] = "warning: rows 0:7, which are evaluated on, are trained on, too\n";

/* Before the first step, and what there is no more of at the end. */
static void hear(void *user, const char *text) {
  struct listener *l = user;
  assert_string_equal(text, warned);
  assert_int_equal(l->epochs, 0);
  l->told++;
}

static bool listen(void *user, const struct dgc_progress *p) {
  struct listener *l = user;
  const struct dgc_metric *metrics;
  int count;
  int64_t rows;
  if (!p->epoch_end) return true;
  l->epochs++;
  assert_int_equal(dgc_evaluate(l->s, &metrics, &count, &rows), DGC_OK);
  assert_int_equal(rows, ROWS);
  l->error = metrics[count - 1].value;
  assert_int_equal(dgc_save(l->s, l->path), DGC_OK);
  assert_int_equal(dgc_train(l->s), DGC_USAGE);
  assert_int_equal(dgc_restore(l->s, l->path), DGC_USAGE);
  assert_non_null(strstr(dgc_message(l->s), "training"));
  return true;
}

static void calls_from_progress(void **state) {
  (void)state;
  char option[64], path[] = "file-XXXXXX";
  const struct dgc_metric *metrics;
  int count, fd = mkstemp(path);
  float kernel[15], saved[15];
  assert_true(fd >= 0);
  close(fd);
  write_npy(x_path, x, 3);
  write_npy(y_path, y, 1);
  struct listener l = {.path = path};
  for (int listens = 0; listens < 2; listens++) {
    struct dgc_session *s = l.s = open_with("cpu:0-1", "2");
    dgc_set(s, "batch", "3");
    dgc_set(s, "epochs", "3");
    for (int i = 0; i < 2; i++) {
      snprintf(option, sizeof option, "x=%s", x_path);
      assert_int_equal(dgc_set(s, i ? "eval-data" : "data", option), DGC_OK);
      snprintf(option, sizeof option, "y=%s", y_path);
      assert_int_equal(dgc_set(s, i ? "eval-data" : "data", option), DGC_OK);
    }
    if (listens) dgc_on_progress(s, listen, &l);
    if (listens) dgc_on_message(s, hear, &l);
    assert_int_equal(dgc_train(s), DGC_OK);
    struct dgc_diagnostic d = {.size = sizeof d};
    assert_int_equal(l.told, listens);
    assert_string_equal(dgc_message(s), listens ? "" : warned);
    assert_true(dgc_diagnostic(s, 0, &d) && strcmp(d.severity, "warning") == 0);
    assert_int_equal(dgc_read(s, "h.kernel", listens ? kernel : saved, sizeof kernel), DGC_OK);
    if (listens) {
      assert_int_equal(l.epochs, 3);
      assert_memory_equal(kernel, saved, sizeof kernel);
      assert_int_equal(dgc_evaluate(s, &metrics, &count, NULL), DGC_OK);
      assert_true(metrics[count - 1].value == l.error);
      assert_int_equal(dgc_restore(s, path), DGC_OK);
      assert_int_equal(dgc_read(s, "h.kernel", kernel, sizeof kernel), DGC_OK);
      assert_memory_equal(kernel, saved, sizeof kernel);
    }
    dgc_destroy(s);
  }
}

/* How the work is shared out may change between two steps, and no bit with it; what has been built in may not. */
static void changed_options(void **state) {
  (void)state;
  struct dgc_session *s = open_with("cpu:0-1", "2");
  float whole = loss_after(s, 9), kernel[15], other[15];
  assert_int_equal(dgc_read(s, "h.kernel", kernel, sizeof kernel), DGC_OK);
  dgc_destroy(s);

  s = dgc_create();
  assert_int_equal(dgc_set(s, "devices", "cpu:0"), DGC_OK);
  const char *device;
  assert_true(dgc_device(s, 0, &device));
  assert_false(dgc_device(s, 1, &device));
  assert_int_equal(dgc_set(s, "devices", "cpu:0-1"), DGC_OK);
  assert_true(dgc_device(s, 1, &device));
  assert_int_equal(dgc_load_text(s, "small", small_model, strlen(small_model)), DGC_OK);
  loss_after(s, 3);
  assert_int_equal(dgc_set(s, "strategy", "central_storage"), DGC_OK);
  loss_after(s, 3);
  assert_int_equal(dgc_set(s, "strategy", "round_robin"), DGC_OK); /* variables move with their values */
  loss_after(s, 1);
  assert_int_equal(dgc_set(s, "strategy", "replicate"), DGC_OK);
  assert_int_equal(dgc_set(s, "uneven", "true"), DGC_OK);
  assert_int_equal(dgc_read(s, "h.kernel", other, sizeof other), DGC_OK);
  loss_after(s, 1);
  assert_int_equal(dgc_set(s, "strategy", "mirrored"), DGC_OK);
  assert_int_equal(dgc_set(s, "uneven", "false"), DGC_OK);
  float rest = loss_after(s, 1);
  assert_memory_equal(&whole, &rest, sizeof rest);
  assert_int_equal(dgc_read(s, "h.kernel", other, sizeof other), DGC_OK);
  assert_memory_equal(kernel, other, sizeof kernel);

  static const char *const fixed[][2] = {{"seed", "3"},        {"set", "hidden=7"}, {"model", "small"},
                                         {"devices", "cpu:0"}, {"threads", "1"},    {"backend", "interp"}};
  for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
    assert_int_equal(dgc_set(s, fixed[i][0], fixed[i][1]), DGC_USAGE);
  dgc_destroy(s);
}

static void call_while_compiling(void *user, const char *pass, const char *text) {
  (void)pass, (void)text;
  assert_int_equal(dgc_set(user, "batch", "5"), DGC_USAGE);
}

static void calls_from_passes(void **state) {
  (void)state;
  struct dgc_session *s = open_with("cpu:0", "1");
  const char *text;
  assert_int_equal(dgc_set(s, "print-after", "all"), DGC_OK);
  dgc_on_pass(s, call_while_compiling, s);
  assert_int_equal(dgc_emit(s, "train", "placed", &text), DGC_OK);
  assert_string_equal(dgc_message(s), "");
  dgc_destroy(s);
}

/* Every request for memory fails once, or one of so many: the call says so, and the session goes on as if nothing had
 * been. */
static void fail_each(const char *on, long step, enum dgc_status (*call)(struct dgc_session *)) {
  int failures = 0;
  for (long n = 0;; n += step) {
    struct dgc_session *s = dgc_create();
    assert_non_null(s);
    dgc_set(s, "devices", strcmp(on, "cuda") == 0 ? "gpu:0-1" : "cpu:0-1");
    dgc_set(s, "backend", on);
    dgc_set(s, "batch", "3");
    dgc_set(s, "steps", "4");
    arena_fail_after(n);
    enum dgc_status status = dgc_load_text(s, "small", small_model, strlen(small_model));
    bool loaded = status == DGC_OK;
    if (loaded) status = call(s);
    arena_fail_after(-1);
    if (status) {
      assert_int_equal(status, DGC_RUNTIME);
      assert_non_null(strstr(dgc_message(s), "out of memory"));
      if (loaded) assert_int_equal(call(s), DGC_OK);
      failures++;
    }
    dgc_destroy(s);
    if (!status) break;
  }
  assert_true(failures > 5);
}

static enum dgc_status one_batch(struct dgc_session *s) { return run(s, "train", ROWS, NULL); }

static enum dgc_status give_data(struct dgc_session *s, const char *option) {
  char value[64];
  snprintf(value, sizeof value, "x=%s", x_path);
  enum dgc_status status = dgc_set(s, option, value);
  snprintf(value, sizeof value, "y=%s", y_path);
  return status ? status : dgc_set(s, option, value);
}

/* Also of what a thread reads ahead. */
static enum dgc_status training(struct dgc_session *s) {
  enum dgc_status status = give_data(s, "data");
  return status ? status : dgc_train(s);
}

/* After three epochs, in the midst of a look at the model. */
static bool stop(void *user, const struct dgc_progress *p) {
  if (p->epoch < 2 || !p->epoch_end) return true;
  dgc_stop(user);
  assert_int_equal(dgc_evaluate(user, NULL, NULL, NULL), DGC_STOPPED);
  return true;
}

static bool shows(struct dgc_session *s, const char *text) { return strstr(dgc_message(s), text) != NULL; }

/* One call answers one request: a training with the steps that it has done, all else without results. */
static void stopped(void **state) {
  (void)state;
  char path[] = "file-XXXXXX";
  float kernel[15], other[15];
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  close(fd);
  write_npy(x_path, x, 3);
  write_npy(y_path, y, 1);
  struct dgc_session *s = open_with("cpu:0", "1");
  dgc_set(s, "epochs", "1000000");
  give_data(s, "eval-data");
  dgc_stop(s);
  assert_int_equal(training(s), DGC_STOPPED);
  assert_true(shows(s, "stopped before step 1: nothing is lost"));
  dgc_on_progress(s, stop, s);
  assert_int_equal(training(s), DGC_STOPPED);
  assert_true(shows(s, "stopped after step 3: nothing was saved"));
  dgc_destroy(s);

  s = open_with("cpu:0", "1");
  dgc_set(s, "epochs", "1000000");
  give_data(s, "eval-data");
  dgc_set(s, "checkpoint", path);
  dgc_on_progress(s, stop, s);
  assert_int_equal(training(s), DGC_STOPPED);
  assert_true(shows(s, "stopped after step 3, saved: --resume file-"));
  assert_int_equal(dgc_read(s, "h.kernel", kernel, sizeof kernel), DGC_OK);
  dgc_destroy(s);

  s = open_with("cpu:0", "1");
  dgc_set(s, "epochs", "3");
  give_data(s, "eval-data");
  assert_int_equal(dgc_restore(s, path), DGC_OK);
  dgc_stop(s);
  assert_int_equal(training(s), DGC_STOPPED);
  assert_int_equal(training(s), DGC_OK);
  assert_int_equal(dgc_read(s, "h.kernel", other, sizeof other), DGC_OK);
  assert_memory_equal(kernel, other, sizeof kernel);
  dgc_stop(s);
  assert_int_equal(dgc_evaluate(s, NULL, NULL, NULL), DGC_STOPPED);
  assert_int_equal(dgc_evaluate(s, NULL, NULL, NULL), DGC_OK);
  struct dgc_bench b = {.size = sizeof b};
  dgc_stop(s);
  assert_int_equal(dgc_benchmark(s, &b), DGC_STOPPED);
  assert_int_equal(dgc_benchmark(s, &b), DGC_OK);
  int64_t rows;
  char never[sizeof path + 4];
  snprintf(never, sizeof never, "%s.csv", path); /* the name beside it is nobody else's */
  dgc_set(s, "output", never);
  dgc_stop(s);
  assert_int_equal(dgc_predict(s, &rows), DGC_STOPPED);
  assert_int_equal(access(never, F_OK), -1);
  dgc_destroy(s);
}

static const char *backend;
static long share = 1;

static void out_of_memory(void **state) {
  (void)state;
  const char *name, *help;
  struct dgc_session *s = NULL;
  for (long n = 0; !s; n++) {
    arena_fail_after(n);
    s = dgc_create();
    arena_fail_after(-1);
    assert_true(s == NULL || n > 0);
  }
  dgc_destroy(s);
  write_npy(x_path, x, 3);
  write_npy(y_path, y, 1);
  bool found = false;
  for (int i = 0; dgc_backend(i, &name, &help); i++) {
    if (strcmp(name, backend ? backend : "interp") != 0) continue;
    found = true;
    fail_each(name, (backend ? 1 : 4) * share, one_batch);
    if (backend) fail_each(name, share, training);
  }
  assert_true(found);
}

int main(int argc, char **argv) {
  const struct CMUnitTest memory[] = {cmocka_unit_test(out_of_memory)};
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(stopped),
      cmocka_unit_test(calls_from_progress),
      cmocka_unit_test(calls_from_passes),
      cmocka_unit_test(changed_options),
  };
  backend = argv[1];
  if (argc > 2) share = strtol(argv[2], NULL, 10);
  int wrong = argc > 1 ? 0 : cmocka_run_group_tests(tests, fill, NULL);
  return wrong + cmocka_run_group_tests(memory, fill, NULL);
}
