/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs. */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TARGET_OPTIONS                                                                                   \
  "devices cluster task towers strategy parameter-device staleness min-part-bytes balance uneven "       \
  "loss-scaling "                                                                                        \
  "consolidation-device cross-device link speed packs bytes-per-pack memory-limit soft-placement batch " \
  "batch-is"
#define MODEL_OPTIONS "set model " TARGET_OPTIONS " seed backend pjrt-plugin tf32 bits allow-path"
#define PASS_OPTIONS  "verify-each disable-pass print-after time-passes stress dump-dir no-origins"
#define DATA_OPTIONS  "data rows threads timeout"

/* --- compiling --- */

/* Nothing waits for the other end of a pipe that lies in the place of a dump. */
static bool write_dump(const char *path, const char *text) {
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666);
  FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;
  if (!f && fd >= 0) close(fd);
  bool written = f && fputs(text, f) >= 0;
  return f && fclose(f) == 0 && written;
}

/* Dumps go to their folder, all else to standard error. */
static void on_pass(void *user, const char *pass, const char *text) {
  struct cli *c = user;
  bool graph = strcmp(pass, "time") != 0 && strcmp(pass, "strategies") != 0;
  if (!c->dump_dir || !graph) {
    if (graph) fprintf(stderr, "# after %s\n", pass);
    fputs(text, stderr);
    return;
  }
  char path[4096];
  errno = ENAMETOOLONG;
  if (c->failed || (snprintf(path, sizeof path, "%s/%s.dg", c->dump_dir, pass) < (int)sizeof path &&
                    write_dump(path, text)))
    return;
  c->failed = true;
  fprintf(stderr, "error: cannot write %s/%s.dg: %s\n", c->dump_dir, pass, strerror(errno));
}

/* The folder of the dumps is there and can be written to before any work is done. */
static int make_dump_dir(struct cli *c) {
  if (!c->dump_dir) return DGC_OK;
  struct stat st;
  bool made = mkdir(c->dump_dir, 0777) == 0 || errno == EEXIST;
  bool there = made && stat(c->dump_dir, &st) == 0;
  if (there && !S_ISDIR(st.st_mode)) errno = ENOTDIR, there = false;
  if (there && access(c->dump_dir, W_OK | X_OK) == 0) return DGC_OK;
  fprintf(stderr, "error: cannot %s %s: %s\n", made ? "write to" : "make", c->dump_dir, strerror(errno));
  return DGC_RUNTIME;
}

static int start(struct cli *c) {
  dgc_on_pass(c->session, on_pass, c);
  return make_dump_dir(c);
}

/* Only who knows the model knows all files that are read; until then none is made. */
static int load(struct cli *c) {
  dgc_on_pass(c->session, on_pass, c);
  int code = cli_status(c, dgc_load(c->session, c->words[0]));
  return code ? code : make_dump_dir(c);
}

static int put_text(struct cli *c, const char *text) {
  c->told = true;
  if (c->file && strcmp(c->file, "-") != 0) return cli_status(c, dgc_write_file(c->session, c->file, text));
  fputs(text, stdout);
  return DGC_OK;
}

static bool has_given(const struct cli *c, const char *option) {
  size_t len = strlen(option);
  for (int i = 0; i < c->ngiven; i++)
    if (strncmp(c->given[i], option, len) == 0) return true;
  return false;
}

static int check_model(struct cli *c) {
  static const char *const entries[] = {"init", "train", "eval", "predict"};
  int code = load(c);
  const char *text;
  struct dgc_tensor t;
  for (int i = 0; !code && i < 4; i++)
    if (dgc_input(c->session, entries[i], 0, &t) || dgc_output(c->session, entries[i], 0, &t))
      code = cli_status(c, dgc_emit(c->session, entries[i], "placed", &text));
  bool data = has_given(c, "--data=") || has_given(c, "--rows=") || has_given(c, "--eval-data=") ||
              has_given(c, "--eval-rows=");
  return !code && data ? cli_status(c, dgc_check_data(c->session)) : code;
}

/* Each of several models, by a session of its own with the same options. */
static int check_models(struct cli *c, const char *const *names, int count) {
  int code = DGC_OK;
  for (int i = 0; i < count; i++) {
    struct cli one = {.verb = c->verb, .session = dgc_create(), .color = c->color, .process = c->process};
    if (!one.session) return DGC_RUNTIME;
    int wrong = cli_parse(&one, c->argc, c->argv);
    if (!wrong) wrong = cli_use_files(&one);
    cli_set_look(&one);
    if (!wrong) wrong = cli_status(&one, dgc_set(one.session, "model", names[i]));
    if (!wrong) wrong = check_model(&one);
    if (!wrong && !c->json) printf("%s: model %s: ok\n", c->words[0], names[i]);
    if (wrong) code = wrong;
    cli_take_diagnostics(c, &one);
    dgc_destroy(one.session);
    free(one.message);
  }
  return code;
}

static int check(struct cli *c) {
  const char *const *names;
  int code, count = 0;
  struct stat st; /* what is read twice is a file */
  bool several = !has_given(c, "--model=") && stat(c->words[0], &st) == 0 && S_ISREG(st.st_mode) &&
                 dgc_models(c->session, c->words[0], &names, &count) == DGC_OK && count > 1;
  code = several ? check_models(c, names, count) : check_model(c);
  if (!code && !several && !c->json) printf("%s: ok\n", c->words[0]);
  return code;
}

static int compile(struct cli *c) {
  int code = load(c);
  const char *text, *emit = c->emit ? c->emit : "placed";
  char stage[64];
  if (snprintf(stage, sizeof stage, "%s%s", emit, c->json ? "-json" : "") < (int)sizeof stage) emit = stage;
  if (!code) code = cli_status(c, dgc_emit(c->session, c->entry, emit, &text));
  return code ? code : put_text(c, text);
}

static int opt(struct cli *c) {
  const char *text;
  if (c->lists) {
    int listed = cli_status(c, dgc_passes(c->session, &text));
    return listed ? listed : put_text(c, text);
  }
  int code = start(c);
  const char *emit = c->emit ? c->emit : c->json ? "json" : NULL;
  if (!code && emit) code = cli_status(c, dgc_set(c->session, "emit", emit));
  if (!code) code = cli_status(c, dgc_opt(c->session, c->words[0], c->passes, &text));
  return code ? code : put_text(c, text);
}

static int explain(struct cli *c) {
  int code = load(c);
  const char *text;
  if (!code) code = cli_status(c, dgc_explain(c->session, c->entry, c->words[1], c->json, &text));
  return code ? code : put_text(c, text);
}

/* {"ok":true,"claims":["...",...]}: the lines of the text, to the file of -o or standard output. */
static int put_claims(struct cli *c, int code, const char *text) {
  char *json = NULL;
  size_t size;
  FILE *f = open_memstream(&json, &size);
  if (!f) return DGC_RUNTIME;
  fprintf(f, "{\"ok\":%s,\"claims\":[", code ? "false" : "true");
  for (const char *line = text, *before = ""; *line; before = ",") {
    size_t len = strcspn(line, "\n");
    char *one = strndup(line, len);
    fputs(before, f);
    cli_json_string(f, one ? one : "");
    free(one);
    line += len + (line[len] != 0);
  }
  fprintf(f, "],\"diagnostics\":[%s]}\n", c->diagnostics ? c->diagnostics : "");
  int written = fclose(f) == 0 ? put_text(c, json) : DGC_RUNTIME;
  free(json);
  return written;
}

/* What has been proved is worth reading even where something has not. */
static int verify(struct cli *c) {
  const char *text;
  if (c->receipt) return cli_receipt_verify(c);
  int code = start(c);
  if (code) return code;
  code = cli_status(c, dgc_verify(c->session, c->words[0], c->entry, &text));
  int written = c->json ? put_claims(c, code, text) : put_text(c, text);
  return code ? code : written;
}

/* What differs is the answer, not an error. */
static int diff(struct cli *c) {
  const char *text;
  int code = start(c);
  if (code) return code;
  code = cli_status(c, dgc_diff(c->session, c->words[0], c->words[1], c->json, &text));
  int written = code == DGC_OK || code == DGC_MISMATCH ? put_text(c, text) : code;
  return code ? code : written;
}

/* --- running --- */

static int restore(struct cli *c) {
  const char *from = c->resume ? c->resume : c->checkpoint;
  if (!c->resumes) return DGC_OK;
  if (!from) return cli_usage(c, "--resume needs a file, or --checkpoint");
  if (!c->resume && access(from, F_OK)) {
    fprintf(stderr, "note: no %s yet: training begins at the first step\n", from);
    return DGC_OK;
  }
  return cli_status(c, dgc_restore(c->session, from));
}

static int evaluate(struct cli *c) {
  const struct dgc_metric *metrics;
  int count;
  int64_t rows;
  int code = cli_status(c, dgc_evaluate(c->session, &metrics, &count, &rows));
  if (!code) cli_print_metrics(c, metrics, count, rows);
  return code;
}

/* What is said of a checkpoint is said when it comes. */
static int evaluate_each(struct cli *c) {
  int code = load(c);
  const struct dgc_metric *metrics;
  int count;
  int64_t rows, step = 0;
  cli_evaluating(c->session);
  while (!code) {
    code = cli_status(c, dgc_next_checkpoint(c->session, &step));
    if (code || step < 0) break;
    code = cli_status(c, dgc_evaluate(c->session, &metrics, &count, &rows));
    if (!code) cli_print_step(c, step, metrics, count, rows);
  }
  cli_evaluating(NULL);
  return code;
}

static int train_model(struct cli *c) {
  int code = cli_receipt_may(c);
  if (!code) code = load(c);
  if (!code) code = cli_log_open(c);
  if (!code) code = cli_events_open(c);
  if (!code) code = restore(c);
  if (code) return code;
  code = cli_status(c, dgc_begin(c->session));
  if (code) return code;
  if (!c->checkpoint && !c->quiet && !c->process)
    fputs("note: there is no --checkpoint FILE: what is learned is lost at the end\n", stderr);
  cli_log_run(c);
  cli_events_run(c);
  dgc_on_progress(c->session, cli_progress, c);
  if (!c->process) dgc_on_message(c->session, cli_message, c);
  signal(SIGPIPE, SIG_IGN); /* who reads the progress may go: the training stays */
  code = cli_status(c, dgc_train(c->session));
  cli_training(NULL);
  cli_clear_bar();
  cli_log_close();
  cli_events_close();
  if (code || c->refused) return code ? code : DGC_USAGE;
  return cli_receipt_write(c);
}

static int train(struct cli *c) {
  const struct dgc_metric *metrics = NULL;
  int count = 0;
  int64_t rows = 0;
  if (c->evaluator) return evaluate_each(c);
  int code = train_model(c);
  if (!code && dgc_can_evaluate(c->session))
    code = cli_status(c, dgc_evaluate(c->session, &metrics, &count, &rows));
  else if (!code)
    code = cli_status(c, DGC_OK);
  if (c->json)
    cli_print_result(c, code, code ? NULL : metrics, count, rows);
  else if (!code && metrics)
    cli_print_metrics(c, metrics, count, rows);
  return code;
}

/* Of processes that were started together, the evaluator has no part in this. */
static int refuse_evaluator(struct cli *c) {
  int count;
  dgc_process(c->session, &count);
  if (!c->evaluator || count == 1) return DGC_OK;
  return cli_usage(c, "the task evaluator is one of dgc train");
}

/* Whether there is more than the number of the step, by which random numbers are drawn. */
static bool has_variables(struct cli *c) {
  struct dgc_tensor t;
  for (int i = 0; dgc_variable(c->session, i, &t); i++)
    if (strcmp(t.name, "step") != 0) return true;
  return false;
}

/* The variables of --checkpoint; a model that has none needs no file. */
static int load_trained(struct cli *c) {
  int code = refuse_evaluator(c);
  if (!code) code = load(c);
  if (!code && c->checkpoint) return cli_status(c, dgc_restore(c->session, c->checkpoint));
  if (!code && has_variables(c)) return cli_usage(c, "--checkpoint FILE says which variables to use");
  return code;
}

static int eval(struct cli *c) {
  int code = load_trained(c);
  return code ? code : evaluate(c);
}

static int predict(struct cli *c) {
  if (c->json && !has_given(c, "--output="))
    return cli_usage(c, "--json wants --output NAME=FILE: predictions are on standard output already");
  int code = load_trained(c);
  int64_t rows;
  if (!code) code = cli_status(c, dgc_predict(c->session, &rows));
  if (!code && c->json) {
    printf("{\"rows\":%lld", (long long)rows);
    cli_print_diagnostics(c);
    fputs("}\n", stdout);
  } else if (!code && !c->quiet && !c->process)
    fprintf(stderr, "%lld row%s\n", (long long)rows, rows == 1 ? "" : "s");
  return code;
}

static int bench(struct cli *c) {
  int code = refuse_evaluator(c);
  if (!code) code = load(c);
  struct dgc_bench b = {.size = sizeof b};
  if (!code) code = cli_status(c, dgc_benchmark(c->session, &b));
  if (!code) cli_print_bench(c, &b);
  return code;
}

/* --- looking --- */

static void print_gpus(const struct cli *c, const struct dgc_gpu *gpus, int count, const char *why_none) {
  for (int i = 0; i < count; i++) {
    const struct dgc_gpu *g = &gpus[i];
    if (c->json) {
      printf("%s{\"device\":\"%s\",\"name\":", i ? "," : "", g->device);
      cli_json_string(stdout, g->name);
      printf(",\"arch\":\"%s\",\"memory\":%lld,\"simulated\":%s}", g->arch, (long long)g->memory,
             g->simulated ? "true" : "false");
    } else
      printf("%s: %s, %s, %.1f GiB%s\n", g->device, g->name, g->arch, (double)g->memory / (1 << 30),
             g->simulated ? ", simulated" : "");
  }
  if (!c->json && !count) printf("no GPU: %s\n", why_none ? why_none : "the driver knows of none");
}

static void print_plugin(const struct cli *c, const struct dgc_plugin_device *all, int count,
                         const char *why_none) {
  for (int i = 0; i < count; i++) {
    const struct dgc_plugin_device *p = &all[i];
    if (c->json) {
      printf("%s{\"device\":\"%s\",\"name\":", i ? "," : "", p->device);
      cli_json_string(stdout, p->name);
      fputs(",\"platform\":", stdout);
      cli_json_string(stdout, p->platform);
      printf(",\"memory\":%lld}", (long long)p->memory);
    } else if (p->memory)
      printf("%s: %s, platform %s, %.1f GiB\n", p->device, p->name, p->platform,
             (double)p->memory / (1 << 30));
    else
      printf("%s: %s, platform %s\n", p->device, p->name, p->platform);
  }
  if (!c->json && why_none) printf("no device of a plugin: %s\n", why_none);
}

static int devices(struct cli *c) {
  struct dgc_machine m = {.size = sizeof m};
  const struct dgc_gpu *gpus;
  const struct dgc_plugin_device *of_plugin;
  int count;
  const char *name, *help, *why_none;
  int code = cli_status(c, dgc_machine(c->session, &m));
  if (!code) code = cli_status(c, dgc_gpus(c->session, &gpus, &count, &why_none));
  if (code) return code;
  c->told = true;
  if (c->json) {
    fputs("{\"cpu\":", stdout);
    cli_json_string(stdout, m.cpu);
    printf(",\"cores\":%d,\"vectors\":\"%s\",\"memory\":%lld,\"devices\":[", m.cores, m.vectors,
           (long long)m.memory);
    for (int i = 0; i < m.cores; i++) printf("%s\"/cpu:%d\"", i ? "," : "", i);
    fputs("],\"gpus\":[", stdout);
    print_gpus(c, gpus, count, why_none);
    code = cli_status(c, dgc_plugin_devices(c->session, &of_plugin, &count, &why_none));
    fputs("],\"plugin\":[", stdout);
    print_plugin(c, of_plugin, count, why_none);
    fputs("],\"backends\":[", stdout);
    for (int i = 0; dgc_backend(i, &name, &help); i++) printf("%s\"%s\"", i ? "," : "", name);
    fputs("]}\n", stdout);
    return code;
  }
  printf("%s, %d cores, %s, %.1f GiB\n", m.cpu, m.cores, m.vectors, (double)m.memory / (1 << 30));
  for (int i = 0; i < m.cores; i++) printf("/cpu:%d\n", i);
  fputs("CPU devices are logical: there may be more of them than cores.\n", stdout);
  print_gpus(c, gpus, count, why_none);
  code = cli_status(c, dgc_plugin_devices(c->session, &of_plugin, &count, &why_none));
  print_plugin(c, of_plugin, count, why_none);
  for (int i = 0; dgc_backend(i, &name, &help); i++) printf("backend %-7s %s\n", name, help);
  return code;
}

static int inspect(struct cli *c) {
  const char *text;
  int code = cli_status(c, dgc_inspect(c->session, c->words[0], c->json, &text));
  if (!code) c->told = fputs(text, stdout) >= 0;
  return code;
}

/* A difference is worth reading. */
static int checkpoint(struct cli *c) {
  const char *text;
  const char *const *files = c->words + 1;
  bool shows = strcmp(c->words[0], "show") == 0 || strcmp(c->words[0], "diff") == 0;
  int code = cli_status(c, dgc_checkpoint(c->session, c->words[0], files, c->nwords - 1,
                                          shows ? NULL : c->file, c->json, &text));
  int written = shows && *text ? put_text(c, text) : DGC_OK;
  return code ? code : written;
}

static int weights(struct cli *c) {
  const char *text;
  int code = cli_status(c, dgc_checkpoint(c->session, "show", c->words, 1, NULL, c->json, &text));
  return code ? code : put_text(c, text);
}

static int trace(struct cli *c) {
  const char *text;
  int code = cli_status(c, dgc_trace(c->session, c->words[0], c->json, &text));
  return code ? code : put_text(c, text);
}

static int report(struct cli *c) {
  const char *text;
  int code = c->file ? DGC_OK : cli_usage(c, "-o FILE says where the page goes; - is standard output");
  if (!code) code = cli_status(c, dgc_report(c->session, c->words, c->nwords, &text));
  return code ? code : put_text(c, text);
}

static int doc(struct cli *c) {
  const char *text;
  int code = cli_status(c, dgc_doc(c->session, c->nwords ? c->words[0] : NULL, c->markdown, &text));
  if (code || !c->json) return code ? code : put_text(c, text);
  fputs("{\"ok\":true,\"text\":", stdout);
  cli_json_string(stdout, text);
  fputs("}\n", stdout);
  return DGC_OK;
}

const struct verb verbs[] = {
    {"check", "MODEL", "says what is wrong with a model, and with the data that are given",
     MODEL_OPTIONS " data rows eval-data eval-rows " PASS_OPTIONS " json", check},
    {"compile", "MODEL", "shows what a model becomes: a graph, a plan, LLVM IR, CUDA C, PTX",
     MODEL_OPTIONS " " PASS_OPTIONS " emit tasks arch entry file json", compile},
    {"opt", "GRAPH", "runs passes over graph text, and prints it",
     TARGET_OPTIONS " passes list-passes emit graph file json " PASS_OPTIONS, opt},
    {"train", "MODEL", "trains a model, then evaluates it if there is test data",
     MODEL_OPTIONS " " DATA_OPTIONS
                   " epochs steps eval-data eval-rows eval-timeout auto-shard no-shuffle checkpoint "
                   "checkpoint-every resume names overwrite allow-nan eval-every train-metrics keep-best "
                   "metric-to-watch patience init-from log log-dir log-every dump-batch receipt trace"
                   " json quiet " PASS_OPTIONS,
     train},
    {"eval", "MODEL", "prints loss and metrics of a trained model",
     MODEL_OPTIONS " " DATA_OPTIONS " eval-data eval-rows checkpoint names trace json quiet " PASS_OPTIONS,
     eval},
    {"predict", "MODEL", "writes what a trained model predicts",
     MODEL_OPTIONS " " DATA_OPTIONS " eval-data eval-rows checkpoint names output json quiet " PASS_OPTIONS,
     predict},
    {"launch", "", "starts a cluster's processes: dgc launch -n 4 -- train MODEL ...",
     "processes hosts restarts min-tasks json", cli_launch},
    {"bench", "MODEL", "times training steps, and compares with the machine's peak",
     MODEL_OPTIONS " " DATA_OPTIONS " steps profile trace json " PASS_OPTIONS, bench},
    {"devices", "", "lists devices and backends", "pjrt-plugin json", devices},
    {"inspect", "FILE", "lists the tensors of a checkpoint or data file", "json", inspect},
    {"weights", "FILE",
     "tells each tensor of a checkpoint with its least, greatest and mean element: checkpoint show", "json",
     weights},
    {"checkpoint", "WHAT FILE...",
     "show FILE, diff A B, or with -o FILE: rename, average A B..., to-npz, cast --to f16",
     "file names to overwrite json", checkpoint},
    {"report", "LOG...",
     "draws the curves of trainings beside each other, as a page: report a.jsonl b.csv -o r.html",
     "file json", report},
    {"test", "FILE...", "tests what files say of themselves in lines RUN, CHECK, EXPECT: test FOLDER",
     "jobs update filter define seconds junit json quiet", cli_test},
    {"new", "NAME", "makes a folder with a first model, its data, and a test of it", "json", cli_new},
    {"doctor", "", "says what this machine has for dgc, what it lacks, and what to do", "json", cli_doctor},
    {"trace", "FILE", "says where the time of traced steps went, in ten lines: train --trace FILE",
     "file json", trace},
    {"verify", "FILE", "proves that placed graphs compute what their model says",
     MODEL_OPTIONS " " PASS_OPTIONS
                   " entry file graph source numeric receipt data eval-data threads timeout json",
     verify},
    {"diff", "BEFORE AFTER", "says what the graphs of one text have that those of another have not",
     "file json", diff},
    {"explain", "MODEL NODE", "says why a node of the placed graph is where it is",
     MODEL_OPTIONS " " PASS_OPTIONS " entry file json", explain},
    {"doc", "[NAME]",
     "says what a function, layer or optimizer of the library does: doc nn.lstm; without a name: what there "
     "is",
     "markdown file json", doc},
    {"completion", "SHELL", "prints what bash, zsh or fish complete the words of dgc by", "json",
     cli_completion},
    {0},
};
