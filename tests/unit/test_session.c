/* Sessions through dgc.h: batches of the caller's own, variables, checkpoints, threads, and memory that runs out. */
#include "base/arena.h"
#include "include/dgc.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const char program[] = "use nn\n"
                              "model small(hidden = 5) {\n"
                              "  input x : f32[B, 3]\n"
                              "  input y : f32[B, 1]\n"
                              "  h = nn.dense(x, units = hidden, activation = tanh)\n"
                              "  p = nn.dense(h, units = 1)\n"
                              "  train mean(square(p - y)) with adam(rate = 0.01)\n"
                              "  metric error = mean(abs(p - y))\n"
                              "  predict guess = p\n"
                              "}\n";

enum { ROWS = 7 };
static float x[ROWS * 3], y[ROWS];

static int fill(void **state) {
  (void)state;
  for (int i = 0; i < ROWS * 3; i++) x[i] = (float)(i % 5) / 5;
  for (int i = 0; i < ROWS; i++) y[i] = x[3 * i] - x[3 * i + 1];
  return 0;
}

static struct dgc_session *open_with(const char *devices, const char *towers) {
  struct dgc_session *s = dgc_create();
  assert_non_null(s);
  assert_int_equal(dgc_set(s, "devices", devices), DGC_OK);
  assert_int_equal(dgc_set(s, "towers", towers), DGC_OK);
  enum dgc_status status = dgc_load_text(s, "small", program, strlen(program));
  assert_string_equal(dgc_message(s), "");
  assert_int_equal(status, DGC_OK);
  return s;
}

static enum dgc_status run(struct dgc_session *s, const char *entry, int rows, void *const *outputs) {
  const void *inputs[2];
  struct dgc_tensor t;
  for (int i = 0; dgc_input(s, entry, i, &t); i++) inputs[i] = strcmp(t.name, "x") == 0 ? x : y;
  return dgc_run(s, entry, rows, inputs, outputs);
}

static float loss_after(struct dgc_session *s, int steps) {
  float loss = -1;
  void *outputs[] = {&loss};
  for (int i = 0; i < steps; i++) assert_int_equal(run(s, "train", ROWS, outputs), DGC_OK);
  return loss;
}

static void descriptions(void **state) {
  (void)state;
  struct dgc_session *s = open_with("cpu:0", "1");
  struct dgc_tensor t;
  assert_true(dgc_input(s, "train", 0, &t));
  assert_string_equal(t.name, "x");
  assert_string_equal(t.dtype, "f32");
  assert_int_equal(t.rank, 2);
  assert_int_equal(t.shape[0], -1);
  assert_int_equal(t.shape[1], 3);
  assert_true(dgc_output(s, "predict", 0, &t));
  assert_string_equal(t.name, "guess");
  assert_false(dgc_output(s, "predict", 1, &t));
  assert_false(dgc_input(s, "nothing", 0, &t));
  int count = 0;
  bool kernel = false;
  for (; dgc_variable(s, count, &t); count++)
    kernel |= strcmp(t.name, "h.kernel") == 0 && t.shape[0] == 3 && t.shape[1] == 5;
  assert_true(kernel);
  assert_true(count >= 4);
  dgc_destroy(s);
}

static void learning(void **state) {
  (void)state;
  struct dgc_session *s = open_with("cpu:0-1", "2");
  float before = loss_after(s, 1), after = loss_after(s, 200);
  assert_true(after < before / 2);
  float guess[ROWS];
  void *outputs[] = {guess};
  assert_int_equal(run(s, "predict", 3, outputs), DGC_OK); /* another batch size is another plan */
  float again = guess[0];
  assert_int_equal(run(s, "predict", ROWS, outputs), DGC_OK);
  assert_true(guess[0] - again < 1e-5f && again - guess[0] < 1e-5f);
  dgc_destroy(s);
}

static void variables(void **state) {
  (void)state;
  struct dgc_session *s = open_with("cpu:0-2", "3");
  float kernel[15], other[15];
  assert_int_equal(dgc_read(s, "h.kernel", kernel, sizeof kernel), DGC_OK);
  for (int i = 0; i < 15; i++) kernel[i] += 1;
  assert_int_equal(dgc_write(s, "h.kernel", kernel, sizeof kernel), DGC_OK);
  assert_int_equal(dgc_read(s, "h.kernel", other, sizeof other), DGC_OK);
  assert_memory_equal(kernel, other, sizeof kernel);
  assert_int_equal(dgc_read(s, "h.kernel", kernel, 4), DGC_USAGE);
  assert_int_equal(dgc_read(s, "h.kernal", kernel, sizeof kernel), DGC_USAGE);
  assert_non_null(strstr(dgc_message(s), "did you mean 'h.kernel'?"));
  dgc_destroy(s);
}

/* Ten steps are five, a checkpoint, and five more on other devices. */
static void checkpoints(void **state) {
  (void)state;
  char path[] = "/tmp/dgc-session-XXXXXX";
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  close(fd);
  struct dgc_session *s = open_with("cpu:0-1", "4");
  loss_after(s, 5);
  assert_int_equal(dgc_save(s, path), DGC_OK);
  float whole = loss_after(s, 5);
  dgc_destroy(s);
  s = open_with("cpu:0-2", "4");
  assert_int_equal(dgc_restore(s, path), DGC_OK);
  float rest = loss_after(s, 5);
  assert_memory_equal(&whole, &rest, sizeof rest);
  dgc_destroy(s);

  s = dgc_create();
  assert_int_equal(dgc_set(s, "set", "hidden=6"), DGC_OK);
  assert_int_equal(dgc_load_text(s, "small", program, strlen(program)), DGC_OK);
  assert_int_equal(dgc_restore(s, path), DGC_MISMATCH);
  /* It goes on as if nothing had been tried: its steps are its own. */
  loss_after(s, 2);
  const char *text;
  assert_int_equal(dgc_save(s, path), DGC_OK);
  assert_int_equal(dgc_inspect(s, path, false, &text), DGC_OK);
  assert_non_null(strstr(text, "# step: 2\n"));
  dgc_destroy(s);
  unlink(path);
}

/* What a checkpoint that does not fit says of seed and towers is forgotten with it. */
static void checkpoint_that_does_not_fit(void **state) {
  (void)state;
  static const char text[] = "model m(hidden = 2) {\n"
                             "  input x : f32[B, 3]\n"
                             "  input y : f32[B, 1]\n"
                             "  var w : f32[3, hidden] = normal()\n"
                             "  var v : f32[hidden, 1] = normal()\n"
                             "  train mean(square(x @ w @ v - y)) with sgd(0.1)\n"
                             "}\n";
  char path[] = "/tmp/dgc-session-XXXXXX";
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  close(fd);
  struct dgc_session *s = dgc_create();
  assert_int_equal(dgc_set(s, "seed", "7"), DGC_OK);
  assert_int_equal(dgc_set(s, "towers", "3"), DGC_OK);
  assert_int_equal(dgc_load_text(s, "m", text, strlen(text)), DGC_OK);
  assert_int_equal(dgc_save(s, path), DGC_OK);
  dgc_destroy(s);
  float want[3], got[3], before;
  for (int tried = 0; tried < 3; tried++) { /* not at all, before the variables have values, and after */
    s = dgc_create();
    assert_int_equal(dgc_set(s, "set", "hidden=1"), DGC_OK);
    assert_int_equal(dgc_set(s, "devices", "cpu:0-1"), DGC_OK);
    assert_int_equal(dgc_load_text(s, "m", text, strlen(text)), DGC_OK);
    if (tried == 2) before = loss_after(s, 1);
    if (tried) assert_int_equal(dgc_restore(s, path), DGC_MISMATCH);
    if (tried < 2) before = loss_after(s, 1);
    const char *graph;
    assert_int_equal(dgc_emit(s, "train", "placed", &graph), DGC_OK);
    assert_non_null(strstr(graph, "towers 2\n"));
    assert_int_equal(dgc_read(s, "w", tried ? got : want, sizeof want), DGC_OK);
    if (tried) assert_memory_equal(got, want, sizeof want);
    assert_true(before >= 0);
    dgc_destroy(s);
  }
  unlink(path);
}

/* The weights alone, as another program writes them: momentum and `step` begin anew, in a session that has trained. */
static void weights_alone(void **state) {
  (void)state;
  static const char plain[] = "model m() {\n"
                              "  input x : f32[B, 3]\n"
                              "  input y : f32[B, 1]\n"
                              "  var w : f32[3, 1] = ones()\n"
                              "  predict p = x @ w + 0 * y\n"
                              "}\n";
  static const char trained[] = "model m() {\n"
                                "  input x : f32[B, 3]\n"
                                "  input y : f32[B, 1]\n"
                                "  var w : f32[3, 1] = normal()\n"
                                "  train mean(square(x @ w - y)) with adam(rate = 0.1)\n"
                                "}\n";
  char path[] = "/tmp/dgc-session-XXXXXX";
  const char *name;
  float after[2][3];
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  close(fd);
  struct dgc_session *s = dgc_create();
  assert_int_equal(dgc_load_text(s, "m", plain, strlen(plain)), DGC_OK);
  assert_int_equal(dgc_save(s, path), DGC_OK);
  dgc_destroy(s);
  for (int steps = 0; steps < 2; steps++) { /* done before */
    s = dgc_create();
    assert_int_equal(dgc_load_text(s, "m", trained, strlen(trained)), DGC_OK);
    loss_after(s, 3 * steps);
    assert_false(dgc_starts_anew(s, 0, &name));
    assert_int_equal(dgc_restore(s, path), DGC_OK);
    assert_string_equal(dgc_message(s), "");
    int count = 0;
    while (dgc_starts_anew(s, count, &name)) count++;
    assert_int_equal(count, 3); /* m, v and step */
    loss_after(s, 2);
    assert_int_equal(dgc_read(s, "w", after[steps], sizeof after[steps]), DGC_OK);
    dgc_destroy(s);
  }
  assert_memory_equal(after[0], after[1], sizeof after[0]);
  unlink(path);
}

static void misuse(void **state) {
  (void)state;
  struct dgc_session *s = dgc_create();
  const char *text;
  assert_int_equal(dgc_train(s), DGC_USAGE);
  assert_int_equal(dgc_emit(s, NULL, "graph", &text), DGC_USAGE);
  assert_int_equal(dgc_set(s, "devises", "cpu:0"), DGC_USAGE);
  assert_non_null(strstr(dgc_message(s), "did you mean 'devices'?"));
  assert_int_equal(dgc_set(s, "batch", "-1"), DGC_USAGE);
  assert_int_equal(dgc_load_text(s, "wrong", "model", 5), DGC_INPUT);
  assert_int_equal(dgc_load_text(s, "small", program, strlen(program)), DGC_OK);
  assert_int_equal(dgc_train(s), DGC_USAGE); /* no data */
  assert_int_equal(dgc_run(s, "train", 0, NULL, NULL), DGC_USAGE);
  assert_int_equal(dgc_run(s, "train", ROWS, NULL, NULL), DGC_USAGE); /* no arrays */
  assert_non_null(strstr(dgc_message(s), "no array for input 'x'"));
  assert_int_equal(dgc_emit(s, "train", "nothing", &text), DGC_USAGE);
  dgc_destroy(s);
  dgc_destroy(NULL);
}

/* Class numbers of the caller's are checked as those in files. */
static void classes(void **state) {
  (void)state;
  static const char text[] = "model m() {\n"
                             "  input x : f32[B, 3]\n"
                             "  input label : u8[B]\n"
                             "  var w : f32[3, 4] = ones()\n"
                             "  train mean(softmax_cross_entropy(x @ w, label)) with sgd(0.1)\n"
                             "  predict p = x @ w\n"
                             "}\n";
  struct dgc_session *s = dgc_create();
  assert_int_equal(dgc_load_text(s, "m", text, strlen(text)), DGC_OK);
  uint8_t label[ROWS] = {0, 1, 2, 3, 4, 0, 0};
  const void *inputs[] = {x, label};
  float before[12], after[12];
  assert_int_equal(dgc_read(s, "w", before, sizeof before), DGC_OK);
  assert_int_equal(dgc_run(s, "train", ROWS, inputs, NULL), DGC_INPUT);
  assert_non_null(strstr(dgc_message(s), "row 4 of input 'label': its values must be from 0 to 3"));
  assert_int_equal(dgc_read(s, "w", after, sizeof after), DGC_OK);
  assert_memory_equal(before, after, sizeof before);
  label[4] = 3;
  assert_int_equal(dgc_run(s, "train", ROWS, inputs, NULL), DGC_OK);
  dgc_destroy(s);
}

static void *one_thread(void *arg) {
  struct dgc_session *s = open_with("cpu:0-1", "2");
  *(float *)arg = loss_after(s, 20);
  dgc_destroy(s);
  return NULL;
}

static void sessions_in_threads(void **state) {
  (void)state;
  pthread_t threads[4];
  float losses[4];
  for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&threads[i], NULL, one_thread, &losses[i]), 0);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  for (int i = 1; i < 4; i++) assert_memory_equal(&losses[i], &losses[0], sizeof losses[0]);
}

static void write_npy(char *path, const float *data, int columns);

struct listener {
  struct dgc_session *s;
  const char *path;
  int epochs;
  double error;
};

/* Looks at the model after each epoch, keeps it, and then tries what would pull the rug out. */
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
  char xs[] = "/tmp/dgc-session-x-XXXXXX", ys[] = "/tmp/dgc-session-y-XXXXXX", option[64];
  char path[] = "/tmp/dgc-session-XXXXXX";
  const struct dgc_metric *metrics;
  int count, fd = mkstemp(path);
  float kernel[15], saved[15];
  assert_true(fd >= 0);
  close(fd);
  write_npy(xs, x, 3);
  write_npy(ys, y, 1);
  struct listener l = {.path = path};
  for (int listens = 0; listens < 2; listens++) {
    struct dgc_session *s = l.s = open_with("cpu:0-1", "2");
    dgc_set(s, "batch", "3");
    dgc_set(s, "epochs", "3");
    for (int i = 0; i < 2; i++) {
      snprintf(option, sizeof option, "x=%s", xs);
      assert_int_equal(dgc_set(s, i ? "eval-data" : "data", option), DGC_OK);
      snprintf(option, sizeof option, "y=%s", ys);
      assert_int_equal(dgc_set(s, i ? "eval-data" : "data", option), DGC_OK);
    }
    if (listens) dgc_on_progress(s, listen, &l);
    assert_int_equal(dgc_train(s), DGC_OK);
    assert_string_equal(dgc_message(s), "");
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
  unlink(xs);
  unlink(ys);
  unlink(path);
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
  assert_int_equal(dgc_load_text(s, "small", program, strlen(program)), DGC_OK);
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

/* Every request for memory fails once: the call says so, and the session goes on as if nothing had been. */
static void fail_each(const char *backend, enum dgc_status (*call)(struct dgc_session *)) {
  int failures = 0;
  for (long n = 0;; n++) {
    struct dgc_session *s = dgc_create();
    assert_non_null(s);
    dgc_set(s, "devices", strcmp(backend, "cuda") == 0 ? "gpu:0-1" : "cpu:0-1");
    dgc_set(s, "backend", backend);
    dgc_set(s, "batch", "3");
    dgc_set(s, "steps", "4");
    arena_fail_after(n);
    enum dgc_status status = dgc_load_text(s, "small", program, strlen(program));
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

static void write_npy(char *path, const float *data, int columns) {
  char header[128];
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  FILE *f = fdopen(fd, "wb");
  assert_non_null(f);
  int len = snprintf(header, sizeof header,
                     "\x93NUMPY%c%c%c%c{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d)}", 1, 0,
                     118, 0, ROWS, columns);
  memset(header + len, ' ', sizeof header - (size_t)len);
  header[sizeof header - 1] = '\n';
  assert_int_equal(fwrite(header, 1, sizeof header, f), sizeof header);
  assert_int_equal(fwrite(data, sizeof *data, (size_t)(ROWS * columns), f), ROWS * columns);
  assert_int_equal(fclose(f), 0);
}

static char x_path[] = "/tmp/dgc-session-x-XXXXXX", y_path[] = "/tmp/dgc-session-y-XXXXXX";

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
  char path[] = "/tmp/dgc-session-XXXXXX";
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
  assert_true(shows(s, "stopped after step 3, saved: --resume /tmp/dgc-session-"));
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
  struct dgc_bench b;
  dgc_stop(s);
  assert_int_equal(dgc_benchmark(s, &b), DGC_STOPPED);
  assert_int_equal(dgc_benchmark(s, &b), DGC_OK);
  int64_t rows;
  dgc_set(s, "output", "/tmp/dgc-session-never.csv");
  dgc_stop(s);
  assert_int_equal(dgc_predict(s, &rows), DGC_STOPPED);
  assert_int_equal(access("/tmp/dgc-session-never.csv", F_OK), -1);
  dgc_destroy(s);
  unlink(path);
  unlink(x_path);
  unlink(y_path);
  memcpy(x_path + strlen(x_path) - 6, "XXXXXX", 6);
  memcpy(y_path + strlen(y_path) - 6, "XXXXXX", 6);
}

/* A text in memory has no folder, whatever its name: it reads what options give. */
static void files_of_a_text(void **state) {
  static const char text[] = "model m() {\n"
                             "  input x : f32[B, 3]\n"
                             "  var w : f32[3, 1] = 0\n"
                             "  train mean(x @ w) with sgd(rate = 0.1)\n"
                             "  data train { x = \"x.npy\" }\n"
                             "}\n";
  char folder[] = "/tmp/dgc_session_XXXXXX", fresh[64], file[64], name[64];
  (void)state;
  assert_non_null(mkdtemp(folder));
  snprintf(fresh, sizeof fresh, "%s/XXXXXX", folder);
  snprintf(file, sizeof file, "%s/x.npy", folder);
  snprintf(name, sizeof name, "%s/m.dsl", folder);
  write_npy(fresh, x, 3);
  assert_int_equal(rename(fresh, file), 0);
  for (int allowed = 0; allowed <= 2; allowed++) {
    struct dgc_session *s = dgc_create();
    if (allowed == 1) assert_int_equal(dgc_set(s, "allow-path", folder), DGC_OK);
    if (allowed == 2) assert_int_equal(dgc_set(s, "data", folder), DGC_OK);
    assert_int_equal(dgc_load_text(s, name, text, strlen(text)), DGC_OK);
    assert_int_equal(dgc_train(s), allowed ? DGC_OK : DGC_INPUT);
    if (!allowed) assert_non_null(strstr(dgc_message(s), "--allow-path"));
    dgc_destroy(s);
  }
  unlink(file);
  rmdir(folder);
}

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
  for (int i = 0; dgc_backend(i, &name, &help); i++) {
    if (strcmp(name, "cuda") == 0 && !getenv("DGC_CUDA_PATH")) continue; /* there may be no GPU */
    fail_each(name, one_batch);
    fail_each(name, training);
  }
  unlink(x_path);
  unlink(y_path);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(descriptions),
      cmocka_unit_test(learning),
      cmocka_unit_test(variables),
      cmocka_unit_test(checkpoints),
      cmocka_unit_test(checkpoint_that_does_not_fit),
      cmocka_unit_test(weights_alone),
      cmocka_unit_test(misuse),
      cmocka_unit_test(classes),
      cmocka_unit_test(sessions_in_threads),
      cmocka_unit_test(stopped),
      cmocka_unit_test(files_of_a_text),
      cmocka_unit_test(out_of_memory),
      cmocka_unit_test(calls_from_progress),
      cmocka_unit_test(calls_from_passes),
      cmocka_unit_test(changed_options),
  };
  return cmocka_run_group_tests(tests, fill, NULL);
}
