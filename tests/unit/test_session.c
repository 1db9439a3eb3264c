/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions through dgc.h: batches of the caller's own, variables, checkpoints, threads, and texts with files. */
#include "tests/unit/session.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* Callers that were built with another dgc.h: an older one has shorter structs, a newer one longer ones. */
static void structs_grow(void **state) {
  (void)state;
  enum { OLD = offsetof(struct dgc_machine, cores), UNSET = 0x5a };
  union {
    struct dgc_machine m;
    char bytes[sizeof(struct dgc_machine) + 24];
  } out;
  struct dgc_session *s = open_with("cpu:0", "1");
  static const size_t sizes[] = {OLD, sizeof(struct dgc_machine), sizeof out};
  for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
    memset(&out, UNSET, sizeof out);
    out.m.size = sizes[k];
    assert_int_equal(dgc_machine(s, &out.m), DGC_OK);
    assert_int_equal(out.m.size, sizes[k]);
    assert_true(strlen(out.m.cpu) > 0 && strlen(out.m.vectors) > 0);
    if (sizes[k] != OLD) assert_true(out.m.cores > 0 && out.m.memory > 0);
    for (size_t i = sizeof out.m; i < sizeof out; i++)
      assert_int_equal(out.bytes[i], i < sizes[k] ? 0 : UNSET);
    for (size_t i = sizes[k]; i < sizeof out; i++) assert_int_equal(out.bytes[i], UNSET);
  }
  static const size_t wrong[] = {0, sizeof(size_t), (size_t)-1};
  for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
    struct dgc_bench b = {.size = wrong[k]};
    struct dgc_option o = {.size = wrong[k]};
    out.m.size = wrong[k];
    assert_int_equal(dgc_machine(s, &out.m), DGC_USAGE);
    assert_non_null(strstr(dgc_message(s), "size"));
    assert_int_equal(dgc_benchmark(s, &b), DGC_USAGE);
    assert_false(dgc_option(0, &o));
  }
  dgc_destroy(s);
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

/* What other tools call options, the library knows as the command line does: none is taken for another that looks like
 * it. */
static void words_of_others(void **state) {
  (void)state;
  static const char *const said[][2] = {
      {"batch-size", "help: it is 'batch' here: --batch N\n"},
      {"batch_size", "help: it is 'batch' here: --batch N\n"},
      {"lr", "help: it is 'set' here: --set rate=X, if the model has a parameter `rate`\n"},
      {"num-epochs", "help: it is 'epochs' here: --epochs N\n"},
      {"val-data", "help: it is 'eval-data' here: --eval-data NAME=FILE\n"},
      {"out", "help: it is 'output' here: --output NAME=FILE\n"},
      {"optimizer", "help: write the optimizer in the model: `train loss with adam(1e-3)`\n"},
      {"restore",
       "help: it is 'checkpoint' here: --checkpoint FILE\n"}, /* resume is the command line's alone */
      {"batc", "help: did you mean 'batch'?\n"},
  };
  struct dgc_session *s = dgc_create();
  for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
    assert_int_equal(dgc_set(s, said[i][0], "1"), DGC_USAGE);
    if (!strstr(dgc_message(s), said[i][1])) fail_msg("%s: %s", said[i][0], dgc_message(s));
  }
  const char *option, *here;
  assert_true(dgc_option_elsewhere("tensorboard", 0, &option, &here));
  assert_string_equal(option, "log-dir");
  assert_false(dgc_option_elsewhere("tensorboard", 1, &option, &here));
  assert_false(dgc_option_elsewhere("", 0, &option, &here) ||
               dgc_option_elsewhere("batch", 0, &option, &here));
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
  char path[] = "file-XXXXXX";
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
  assert_int_equal(dgc_load_text(s, "small", small_model, strlen(small_model)), DGC_OK);
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
  char path[] = "file-XXXXXX";
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
  char path[] = "file-XXXXXX";
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
  assert_int_equal(dgc_load_text(s, "small", small_model, strlen(small_model)), DGC_OK);
  assert_int_equal(dgc_train(s), DGC_USAGE); /* no data */
  assert_int_equal(dgc_run(s, "train", 0, NULL, NULL), DGC_USAGE);
  assert_int_equal(dgc_run(s, "train", ROWS, NULL, NULL), DGC_USAGE); /* no arrays */
  assert_non_null(strstr(dgc_message(s), "no array for input 'x'"));
  assert_int_equal(dgc_emit(s, "train", "nothing", &text), DGC_USAGE);
  dgc_destroy(s);
  dgc_destroy(NULL);
}

/* Class numbers of the caller's are checked as those in files. */
/* Without a model there is nothing to save, also where loading one has failed. */
static void nothing_to_save(void **state) {
  (void)state;
  struct dgc_session *s = dgc_create();
  assert_non_null(s);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(dgc_save(s, "nothing.safetensors"), DGC_USAGE);
    assert_non_null(strstr(dgc_message(s), "no model has been loaded"));
    assert_int_equal(dgc_load_text(s, "m", "model", 5), DGC_INPUT);
  }
  assert_int_equal(access("nothing.safetensors", F_OK), -1);
  dgc_destroy(s);
}

/* What a session has started is not in a process that is forked later: it says so, and waits for nothing. */
static void forked(void **state) {
  (void)state;
  struct dgc_session *s = open_with("cpu:0-1", "2"), *idle = open_with("cpu:0", "1");
  assert_int_equal(dgc_set(s, "threads", "2"), DGC_OK);
  assert_int_equal(run(s, "train", ROWS, NULL), DGC_OK);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    alarm(60);
    bool told = run(s, "train", ROWS, NULL) == DGC_USAGE && strstr(dgc_message(s), "forked");
    dgc_destroy(s);
    _exit(told && dgc_step(idle) == 0 && dgc_set(idle, "steps", "1") == DGC_OK ? 0 : 1);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  assert_int_equal(run(s, "train", ROWS, NULL), DGC_OK);
  dgc_destroy(s);
  dgc_destroy(idle);
}

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

/* A text in memory has no folder, whatever its name: it reads what options give. */
static void files_of_a_text(void **state) {
  static const char text[] = "model m() {\n"
                             "  input x : f32[B, 3]\n"
                             "  var w : f32[3, 1] = 0\n"
                             "  train mean(x @ w) with sgd(rate = 0.1)\n"
                             "  data train { x = \"x.npy\" }\n"
                             "}\n";
  char folder[] = "folder-XXXXXX", file[64], name[64];
  (void)state;
  assert_non_null(mkdtemp(folder));
  snprintf(file, sizeof file, "%s/x.npy", folder);
  snprintf(name, sizeof name, "%s/m.dsl", folder);
  write_npy(file, x, 3);
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

static bool says(const struct dgc_session *s, const char *what) {
  return strstr(dgc_message(s), what) != NULL;
}

/* No file is two things, whichever call learns of it first. */
static void one_file(void **state) {
  static const char text[] = "model m() {\n"
                             "  input x : f32[B, 3]\n"
                             "  var w : f32[3, 1] = 0\n"
                             "  train mean(x @ w) with sgd(rate = 0.1)\n"
                             "  predict p = x @ w\n"
                             "}\n";
  char folder[] = "folder-XXXXXX", data[64], model[64], given[80], output[80], other[96];
  (void)state;
  assert_non_null(mkdtemp(folder));
  snprintf(data, sizeof data, "%s/x.npy", folder);
  snprintf(model, sizeof model, "%s/m.dsl", folder);
  snprintf(given, sizeof given, "x=%s", data);
  snprintf(output, sizeof output, "p=%s", data);
  snprintf(other, sizeof other, "%s/./none/../x.npy", folder);
  write_npy(data, x, 3);
  struct dgc_session *s = dgc_create();
  assert_int_equal(dgc_write_file(s, model, text), DGC_OK);
  assert_int_equal(dgc_uses(s, "--log", model, DGC_WRITES), DGC_OK);
  assert_int_equal(dgc_load(s, model), DGC_USAGE);
  assert_true(says(s, "--log and the model both name"));
  dgc_destroy(s);

  s = dgc_create();
  assert_int_equal(dgc_uses(s, "--log", data, DGC_NO_FILE), DGC_USAGE);
  assert_int_equal(dgc_set(s, "data", given), DGC_OK);
  assert_int_equal(dgc_load(s, model), DGC_OK);
  assert_int_equal(dgc_save(s, data), DGC_USAGE);
  assert_int_equal(dgc_save(s, model), DGC_USAGE);
  assert_int_equal(dgc_write_file(s, model, ""), DGC_USAGE);
  assert_int_equal(dgc_set(s, "overwrite", "true"), DGC_OK);
  assert_int_equal(dgc_set(s, "checkpoint", data), DGC_OK);
  assert_int_equal(dgc_train(s), DGC_USAGE);
  assert_true(says(s, "--data and --checkpoint both name"));
  assert_int_equal(dgc_set(s, "checkpoint", "/dev/null"), DGC_OK);
  assert_int_equal(dgc_set(s, "trace", data), DGC_OK);
  assert_int_equal(dgc_train(s), DGC_USAGE);
  assert_int_equal(dgc_set(s, "trace", "/dev/null"), DGC_OK);
  assert_int_equal(dgc_train(s), DGC_OK);
  assert_int_equal(dgc_set(s, "output", output), DGC_OK);
  assert_int_equal(dgc_predict(s, NULL), DGC_USAGE);
  assert_true(says(s, "--output"));
  assert_int_equal(dgc_uses(s, "--log", other, DGC_WRITES), DGC_USAGE);
  dgc_destroy(s);
  unlink(data);
  unlink(model);
  rmdir(folder);
}

/* The steps that are left of an epoch when its first ones have been done with batches of another size. */
static bool count_steps(void *user, const struct dgc_progress *p) {
  *(int64_t *)user = p->total_steps;
  return true;
}

static void another_batch(void **state) {
  (void)state;
  for (int restored = 0; restored < 2; restored++) {
    char xs[] = "x.npy", ys[] = "y.npy", path[] = "file-XXXXXX", option[64];
    int64_t steps = 0;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    write_npy(xs, x, 3);
    write_npy(ys, y, 1);
    struct dgc_session *s = open_with("cpu:0", "1");
    for (int often = 0; often < 2; often++) {
      if (often && restored) {
        assert_int_equal(dgc_save(s, path), DGC_OK);
        dgc_destroy(s);
        s = open_with("cpu:0", "1");
        assert_int_equal(dgc_restore(s, path), DGC_OK); /* and then learns of its batches */
      }
      snprintf(option, sizeof option, "x=%s", xs);
      assert_int_equal(dgc_set(s, "data", option), DGC_OK);
      snprintf(option, sizeof option, "y=%s", ys);
      assert_int_equal(dgc_set(s, "data", option), DGC_OK);
      assert_int_equal(dgc_set(s, "batch", often ? "1" : "3"), DGC_OK);
      assert_int_equal(dgc_set(s, "steps", often ? "100" : "1"), DGC_OK);
      assert_int_equal(dgc_set(s, "epochs", "1"), DGC_OK);
      dgc_on_progress(s, count_steps, &steps);
      assert_int_equal(dgc_train(s), DGC_OK);
      assert_int_equal(steps, often ? 1 + ROWS - 3 : 1);
    }
    dgc_destroy(s);
  }
}

static int opened(int events) {
  char all[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
  ssize_t bytes = read(events, all, sizeof all);
  int count = 0;
  for (ssize_t at = 0; at < bytes;) {
    const struct inotify_event *e = (const void *)(all + at);
    count += (e->mask & IN_OPEN) != 0;
    at += (ssize_t)(sizeof *e + e->len);
  }
  return count;
}

/* A training opens what it evaluates on once, whether it does so as it goes or its caller does behind it. */
static void evaluation_data(void **state) {
  (void)state;
  for (int often = 0; often < 2; often++) {
    char xs[] = "x.npy", ys[] = "y.npy", evaluated[] = "e.npy", option[64];
    struct dgc_session *s = open_with("cpu:0", "1");
    write_npy(xs, x, 3);
    write_npy(ys, y, 1);
    write_npy(evaluated, y, 1);
    for (int i = 0; i < 4; i++) {
      snprintf(option, sizeof option, "%s=%s", i % 2 ? "x" : "y", i % 2 ? xs : i ? evaluated : ys);
      assert_int_equal(dgc_set(s, i / 2 ? "eval-data" : "data", option), DGC_OK);
    }
    assert_int_equal(dgc_set(s, "batch", "3"), DGC_OK);
    assert_int_equal(dgc_set(s, "steps", "3"), DGC_OK);
    if (often) assert_int_equal(dgc_set(s, "eval-every", "1"), DGC_OK);
    /* Of this file alone, as two opens that no close comes between would count as one. */
    int events = inotify_init1(IN_NONBLOCK);
    assert_true(events >= 0 && inotify_add_watch(events, evaluated, IN_OPEN | IN_CLOSE) >= 0);
    assert_int_equal(dgc_train(s), DGC_OK);
    assert_int_equal(opened(events), 1);
    close(events);
    dgc_destroy(s);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(descriptions),    cmocka_unit_test(structs_grow),
      cmocka_unit_test(words_of_others), cmocka_unit_test(structs_grow),
      cmocka_unit_test(learning),        cmocka_unit_test(variables),
      cmocka_unit_test(checkpoints),     cmocka_unit_test(checkpoint_that_does_not_fit),
      cmocka_unit_test(weights_alone),   cmocka_unit_test(misuse),
      cmocka_unit_test(classes),         cmocka_unit_test(sessions_in_threads),
      cmocka_unit_test(files_of_a_text), cmocka_unit_test(one_file),
      cmocka_unit_test(another_batch),   cmocka_unit_test(evaluation_data),
      cmocka_unit_test(nothing_to_save), cmocka_unit_test(forked),
  };
  return cmocka_run_group_tests(tests, fill, NULL);
}
