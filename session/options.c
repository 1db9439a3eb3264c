/* SPDX-License-Identifier: Apache-2.0 */
/* The options of a session: one table that dgc_set, the tool and the manual read. */
#include "session/options.h"

#include "base/file.h"
#include "ir/speeds.h"
#include "passes/strategy/strategy.h"
#include "runtime/data/loader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum option_kind { FLAG, TEXT, INTEGER, LIST, EVERY };

struct option_row {
  const char *name;
  enum option_kind kind;
  size_t offset; /* into struct options */
  int64_t min, max;
  const char *value, *help;
  enum dgc_file_use use; /* of a file that the value names */
};

#define AT(field) offsetof(struct options, field)

static const struct option_row option_table[] = {
    {"set", LIST, AT(set), 0, 0, "NAME=VALUE", "a parameter of the model; may be repeated", DGC_NO_FILE},
    {"model", TEXT, AT(model), 0, 0, "NAME", "which model of a file that has several", DGC_NO_FILE},
    {"graph", TEXT, AT(graph), 0, 0, "NAME", "which graph of a text that holds several (default: all)",
     DGC_NO_FILE},
    {"source", TEXT, AT(source_path), 0, 0, "FILE",
     "verify: graph text that holds the sources of the placed graphs", DGC_READS},
    {"numeric", FLAG, AT(numeric), 0, 0, NULL, "verify: also compute both graphs on random numbers",
     DGC_NO_FILE},
    {"devices", TEXT, AT(devices), 0, 0, "LIST",
     "devices to use, as cpu:0-3, gpu:0,gpu:2, gpu:0/0-1 (two on one card), pjrt:0-3 or tpu:0-7 (those of a "
     "PJRT "
     "plugin); gpu is every GPU, cpu is cpu:0, all is both (default cpu:0)",
     DGC_NO_FILE},
    {"cluster", TEXT, AT(cluster), 0, 0, "JOBS",
     "tasks by job, as worker=2;ps=1, or with their hosts; each is a process that mpirun has started, or all "
     "are in this one; each worker has the devices of --devices; evaluator=1: one more process evaluates "
     "each checkpoint",
     DGC_NO_FILE},
    {"task", TEXT, AT(task), 0, 0, "JOB:N",
     "which task of the cluster this process is (default: as mpirun numbers them, chief and workers first); "
     "evaluator:0 needs no other process: it evaluates what comes to --checkpoint until training ends",
     DGC_NO_FILE},
    {"towers", INTEGER, AT(towers), 1, 16384, "N",
     "copies of the model on slices of the batch (default: one per device)", DGC_NO_FILE},
    {"strategy", TEXT, AT(strategy), 0, 0, "NAME",
#define STRATEGY(name, ...) #name ", "
#include "ir/strategies.def"
#undef STRATEGY
     "or auto (default: mirrored, on one device one_device)", DGC_NO_FILE},
    {"parameter-device", TEXT, AT(parameter_device), 0, 0, "DEVICE", "where central_storage keeps variables",
     DGC_NO_FILE},
    {"staleness", INTEGER, AT(staleness), 0, 16384, "S|free[:N]",
     "parameter_server: workers apply their own gradients in turn, computed with variables at most S updates "
     "old; free: as they come, so that no bits are promised, and none begins more than N steps (default 16) "
     "while another is in one",
     DGC_NO_FILE},
    {"min-part-bytes", INTEGER, AT(min_part_bytes), 1, INT64_C(1) << 40, "N",
     "parameter_server: cut large variables into parts of at least N bytes (default 262144)", DGC_NO_FILE},
    {"balance", TEXT, AT(balance), 0, 0, "HOW",
     "size: variables go to the device that holds least, the largest first (default: in turn)", DGC_NO_FILE},
    {"uneven", FLAG, AT(uneven), 0, 0, NULL,
     "strategy replicate: give the first towers one row more where the batch does not divide", DGC_NO_FILE},
    {"loss-scaling", TEXT, AT(loss_scaling), 0, 0, "HOW",
     "strategy replicate: per_tower: each tower divides its own loss and gradient by the number of towers "
     "(default: exact)",
     DGC_NO_FILE},
    {"consolidation-device", TEXT, AT(consolidation_device), 0, 0, "DEVICE",
     "where batches are split and results gathered", DGC_NO_FILE},
    {"cross-device", TEXT, AT(cross_device), 0, 0, "NAME",
     "how sums over towers travel: "
#define CROSS_DEVICE(name, ...) #name ", "
#include "ir/cross_device.def"
#undef CROSS_DEVICE
     "or auto, by a prediction (default: between processes auto, else reduce_to_one)",
     DGC_NO_FILE},
    {"link", TEXT, AT(link), 0, 0, "RATE,DELAY",
     "predictions: what a task's network can do each way, as 25GB/s,5us (default 1.25GB/s,50us)",
     DGC_NO_FILE},
    {"speed", TEXT, AT(speed), 0, 0, "RATE,RATE",
     "predictions: what a task computes, and reads and writes, as dgc bench says (default "
     "100GFLOP/s,20GB/s)",
     DGC_NO_FILE},
    {"tasks", TEXT, AT(tasks), 0, 0, "LIST",
     "--emit scaling: for how many tasks, as 1..1024 or 1,2,3 (default 1..64)", DGC_NO_FILE},
    {"packs", INTEGER, AT(packs), 1, 4096, "N", "sum gradients as N arrays of equal size", DGC_NO_FILE},
    {"bytes-per-pack", INTEGER, AT(bytes_per_pack), 1, INT64_C(1) << 40, "N",
     "sum gradients as arrays that end once they are larger than N bytes", DGC_NO_FILE},
    {"memory-limit", INTEGER, AT(memory_limit), 1, INT64_C(1) << 60, "BYTES",
     "what a training step may need on a device, variables and all: activations are computed again where it "
     "is "
     "more (default: no limit)",
     DGC_NO_FILE},
    {"soft-placement", FLAG, AT(soft_placement), 0, 0, NULL,
     "use another device where the annotated one is missing", DGC_NO_FILE},
    {"batch", INTEGER, AT(batch), 1, INT64_C(1) << 32, "N",
     "rows of the global batch (default: the model's, else 128)", DGC_NO_FILE},
    {"batch-is", TEXT, AT(batch_is), 0, 0, "WHOSE",
     "global (default), or per_replica: the batch is N rows for each tower", DGC_NO_FILE},
    {"seed", INTEGER, AT(seed), 0, INT64_MAX, "N",
     "of initial values, random ops and the order of the data (default 0)", DGC_NO_FILE},
    {"threads", INTEGER, AT(threads), 1, 1024, "N",
     "threads, all devices of the CPU together (default: the cores that this process may use, of which it "
     "has its share where others of its cluster run on this machine)",
     DGC_NO_FILE},
    {"tf32", FLAG, AT(tf32), 0, 0, NULL,
     "GPUs: let f32 matrix products round their factors to 11 bits (TF32), which is faster", DGC_NO_FILE},
    {"bits", TEXT, AT(bits), 0, 0, "WHICH",
     "fast: bf16 in each processor's own order of sums where that is faster (default), or "
     "portable: one order for all, so that every CPU computes the same bits",
     DGC_NO_FILE},
    {"backend", TEXT, AT(backend), 0, 0, "NAME", "what runs the plan; see dgc devices", DGC_NO_FILE},
    {"pjrt-plugin", TEXT, AT(pjrt_plugin), 0, 0, "FILE",
     "the library that has the devices pjrt:0, pjrt:1 ... (default: DGC_PJRT_PLUGIN; of tpu:0 libtpu.so)",
     DGC_READS},
    {"emit", TEXT, AT(emit), 0, 0, "FORM", "opt: graph (default), dot, json, html or stablehlo", DGC_NO_FILE},
    {"arch", TEXT, AT(arch), 0, 0, "ARCH", "compile: the GPUs to show PTX for (default sm_90)", DGC_NO_FILE},
    {"timeout", INTEGER, AT(timeout), 0, 86400, "SECONDS",
     "give up when a step does not end within this time, and say who waits for whom (default: never)",
     DGC_NO_FILE},
    {"data", LIST, AT(data), 0, 0, "NAME=PATH",
     "the file of an input; a folder alone: where the model's own files are; a file alone: in the place of "
     "the one "
     "that the model reads all its inputs from; may be repeated",
     DGC_READS},
    {"allow-path", LIST, AT(allow_path), 0, 0, "DIR",
     "a model may read files of this folder, not only of its own; may be repeated", DGC_NO_FILE},
    {"rows", TEXT, AT(rows), 0, 0, "A:B", "use these rows of the data only", DGC_NO_FILE},
    {"eval-data", LIST, AT(eval_data), 0, 0, "NAME=PATH", "as --data, for evaluation and prediction",
     DGC_READS},
    {"eval-rows", TEXT, AT(eval_rows), 0, 0, "A:B", "rows of the data to evaluate on", DGC_NO_FILE},
    {"auto-shard", TEXT, AT(auto_shard), 0, 0, "HOW",
     "what the workers of a cluster train on: data (default), file, auto or off", DGC_NO_FILE},
    {"no-shuffle", FLAG, AT(no_shuffle), 0, 0, NULL, "train on rows in the order of the files", DGC_NO_FILE},
    {"epochs", INTEGER, AT(epochs), 0, INT64_C(1) << 40, "N",
     "train until this many epochs are done (default 1)", DGC_NO_FILE},
    {"steps", INTEGER, AT(steps), 0, INT64_C(1) << 40, "N",
     "train until this many steps are done; bench: how many are timed (default 100)", DGC_NO_FILE},
    {"profile", FLAG, AT(profile), 0, 0, NULL,
     "bench: what takes the time, by kernel and line of the model; of several devices, what one alone would "
     "take",
     DGC_NO_FILE},
    {"trace", TEXT, AT(trace), 0, 0, "FILE",
     "what each device did and waited for, and when, for Perfetto, Chrome and dgc trace", DGC_WRITES},
    {"checkpoint", TEXT, AT(checkpoint), 0, 0, "FILE",
     "where training saves, where other verbs read variables", DGC_TRAINING_WRITES},
    {"names", TEXT, AT(names), 0, 0, "FILE",
     "lines `old = new`: what a checkpoint calls variables, or begins their names with, and what the model "
     "does",
     DGC_READS},
    {"overwrite", FLAG, AT(overwrite), 0, 0, NULL,
     "begin anew, though the files that are to be written are there: they are replaced", DGC_NO_FILE},
    {"allow-nan", FLAG, AT(allow_nan), 0, 0, NULL,
     "train on where a loss, or a variable that is saved, is not a number or infinite", DGC_NO_FILE},
    {"checkpoint-every", INTEGER, AT(checkpoint_every), 1, INT64_C(1) << 40, "N|TIME",
     "save also after every N steps, or behind the step at which so much time has passed, as 30s, 10m or 1h",
     DGC_NO_FILE},
    {"eval-every", EVERY, AT(eval_every), 0, 0, "Ne|N",
     "evaluate during training, every N epochs (1e) or N steps (500), beside the training loss", DGC_NO_FILE},
    {"init-from", LIST, AT(init_from), 0, 0, "FILE[:old=new]",
     "train: first values out of this checkpoint, for what fits, with names (or their first parts, up to a "
     "dot) "
     "replaced; may be repeated",
     DGC_READS},
    {"to", TEXT, AT(to), 0, 0, "TYPE", "checkpoint cast: how f32 is to be stored: f16, bf16 or f32",
     DGC_NO_FILE},
    {"dump-batch", INTEGER, AT(dump_batch), 1, INT64_C(1) << 40, "N",
     "train: write what step N reads to batch-N.npz, as the model sees it, with the numbers of its rows",
     DGC_WRITES},
    {"keep-best", TEXT, AT(keep_best), 0, 0, "FILE",
     "save there what was evaluated best so far (evaluates every epoch unless --eval-every says otherwise)",
     DGC_WRITES},
    {"metric-to-watch", TEXT, AT(metric_to_watch), 0, 0, "val.NAME:min|max",
     "which metric of the evaluation is to be best, min or max; of a loss min may be left out (default: the "
     "first loss)",
     DGC_NO_FILE},
    {"patience", INTEGER, AT(patience), 1, INT64_C(1) << 40, "N",
     "end the training when N evaluations in a row have not been better than the best before", DGC_NO_FILE},
    {"train-metrics", FLAG, AT(train_metrics), 0, 0, NULL,
     "the model's metrics of what is trained on, too, beside the loss: of the epoch so far", DGC_NO_FILE},
    {"log-every", EVERY, AT(log_every), 0, 0, "Ne|N",
     "--log, --log-dir: a line every N epochs or steps (default 1e), and one for each evaluation",
     DGC_NO_FILE},
    {"eval-timeout", INTEGER, AT(eval_timeout), 0, INT64_C(1) << 31, "SECONDS",
     "the task evaluator: give up when no new checkpoint has come for so long (default: never)", DGC_NO_FILE},
    {"output", LIST, AT(output), 0, 0, "NAME=FILE",
     "where a prediction goes: .npy, .csv, .txt (u8, as the bytes of a line), or - for CSV on standard "
     "output; a FILE.csv alone has all of them, side by side",
     DGC_WRITES},
    {"sums", FLAG, AT(sums), 0, 0, NULL, "dgc_run: give the sum and the count of each metric, too",
     DGC_NO_FILE},
    {"verify-each", FLAG, AT(verify_each), 0, 0, NULL, "check all invariants after each pass", DGC_NO_FILE},
    {"disable-pass", TEXT, AT(disable_pass), 0, 0, "LIST", "skip these passes", DGC_NO_FILE},
    {"print-after", TEXT, AT(print_after), 0, 0, "PASS", "print the graph after this pass, or all",
     DGC_NO_FILE},
    {"dump-passes", FLAG, AT(dump_passes), 0, 0, NULL, "report the graph after each pass", DGC_NO_FILE},
    {"time-passes", FLAG, AT(time_passes), 0, 0, NULL, "print the time of each pass", DGC_NO_FILE},
    {"no-origins", FLAG, AT(no_origins), 0, 0, NULL,
     "graph text without the lines of the model: where only they have moved, the text is the same",
     DGC_NO_FILE},
    {"stress", TEXT, AT(stress), 0, 0, "WHAT", "roundtrip: print and read back the graph after each pass",
     DGC_NO_FILE},
    {"color", FLAG, AT(color), 0, 0, NULL, "colours in messages", DGC_NO_FILE},
};
enum { NOPTIONS = sizeof option_table / sizeof *option_table };

/* What an option may be where that is a list of words, each with a blank behind it. */
static const struct {
  const char *option, *words;
} choices[] = {
#define ROW(name, ...) #name " "
#define STRATEGY       ROW
#define CROSS_DEVICE   ROW
#define BACKEND        ROW
#define PASS           ROW
    {"strategy",
#include "ir/strategies.def"
     "auto "},
    {"cross-device",
#include "ir/cross_device.def"
     "auto "},
    {
        "backend",
#include "runtime/backends.def"
    },
    {
        "disable-pass",
#include "passes/passes.def"
    },
    {"print-after",
#include "passes/passes.def"
     "all "},
#undef STRATEGY
#undef CROSS_DEVICE
#undef BACKEND
#undef PASS
#undef ROW
    {"balance", "size "},
    {"loss-scaling", "exact per_tower "},
    {"batch-is", "global per_replica "},
    {"bits", "fast portable "},
    {"emit", "graph dot json html stablehlo "},
    {"auto-shard", "data file auto off "},
    {"to", "f16 bf16 f32 "},
    {"stress", "roundtrip "},
};

static const char *choices_of(const char *option) {
  for (size_t i = 0; i < sizeof choices / sizeof *choices; i++)
    if (strcmp(choices[i].option, option) == 0) return choices[i].words;
  return NULL;
}

bool dgc_option(int index, struct dgc_option *out) {
  if (index < 0 || index >= NOPTIONS || !session_can_give(out)) return false;
  const struct option_row *r = &option_table[index];
  struct dgc_option whole = {
      .name = r->name, .value = r->value, .help = r->help, .choices = choices_of(r->name), .file = r->use};
  session_give(out, &whole, sizeof whole);
  return true;
}

static const struct option_row *find(const char *name) {
  for (int i = 0; i < NOPTIONS; i++)
    if (strcmp(option_table[i].name, name) == 0) return &option_table[i];
  return NULL;
}

static enum dgc_status unknown(struct dgc_session *s, const char *name) {
  const char *names[NOPTIONS];
  for (int i = 0; i < NOPTIONS; i++) names[i] = option_table[i].name;
  session_fail(s, DGC_USAGE, "there is no option '%s'", name);
  diag_closest(&s->diags, LOC_NONE, name, names, NOPTIONS, NULL);
  return DGC_USAGE;
}

static bool is_among(const struct option_row *r, const size_t *offsets, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (r->offset == offsets[i]) return true;
  return false;
}
#define IS_AMONG(r, ...) \
  is_among((r), (const size_t[]){__VA_ARGS__}, sizeof((const size_t[]){__VA_ARGS__}) / sizeof(size_t))

/* What may stand behind the number of an option: "2GB", "30s". */
struct option_unit {
  const char *name;
  int64_t times;
};
static const struct option_unit bytes[] = {{"kB", 1000},       {"KB", 1000},     {"MB", 1000000},
                                           {"GB", 1000000000}, {"KiB", 1 << 10}, {"MiB", 1 << 20},
                                           {"GiB", 1 << 30},   {NULL, 0}};
static const struct option_unit times[] = {{"s", 1}, {"m", 60}, {"h", 3600}, {NULL, 0}};

static const struct option_unit *units_of(const struct option_row *r) {
  if (IS_AMONG(r, AT(memory_limit), AT(min_part_bytes), AT(bytes_per_pack))) return bytes;
  return IS_AMONG(r, AT(timeout), AT(eval_timeout)) ? times : NULL;
}

/* Whether a unit that the option has, or nothing, stands behind its number. */
static bool in_units(const struct option_unit *units, const char *text, long long *number) {
  for (; *text && units && units->name; units++)
    if (strcmp(units->name, text) == 0) return !__builtin_mul_overflow(*number, units->times, number);
  return !*text;
}

static enum dgc_status set_integer(struct dgc_session *s, const struct option_row *r, const char *value,
                                   int64_t *out) {
  const struct option_unit *units = units_of(r);
  char *end;
  errno = 0;
  long long number = strtoll(value, &end, 10);
  if (end == value || errno || !in_units(units, end, &number) || number < r->min || number > r->max) {
    session_fail(s, DGC_USAGE, "%s: expected an integer from %lld to %lld, not '%s'", r->name,
                 (long long)r->min, (long long)r->max, value);
    if (r->offset == AT(epochs) && strchr(value, '.'))
      diag_help(&s->diags, LOC_NONE, "a part of an epoch is so many steps: --steps N");
    if (r->offset == AT(checkpoint_every))
      diag_help(&s->diags, LOC_NONE, "it is a number of steps, as 500, or a time, as 30s, 10m or 1h");
    if (units)
      diag_help(&s->diags, LOC_NONE, "it may have a unit: %s",
                units == bytes ? "500MB, 2GB or 512MiB" : "30s, 10m or 1h");
    return DGC_USAGE;
  }
  *out = number;
  return DGC_OK;
}

/* Steps, or a time: the last one holds. */
static enum dgc_status set_every(struct dgc_session *s, const struct option_row *r, const char *value) {
  static const struct {
    char letter;
    int64_t seconds;
  } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}};
  struct options *o = &s->options;
  size_t len = strlen(value);
  for (int i = 0; i < 3; i++) {
    if (!len || value[len - 1] != units[i].letter) continue;
    int64_t count;
    enum dgc_status status = set_integer(s, r, arena_strndup(s->call, value, len - 1), &count);
    if (status) return status;
    o->checkpoint_seconds = count * units[i].seconds;
    o->checkpoint_every = 0;
    return DGC_OK;
  }
  o->checkpoint_seconds = 0;
  return set_integer(s, r, value, &o->checkpoint_every);
}

/* "500", "1e" */
static enum dgc_status set_often(struct dgc_session *s, const struct option_row *r, const char *value,
                                 struct every *out) {
  size_t len = strlen(value);
  char *end;
  errno = 0;
  long long count = strtoll(value, &end, 10);
  bool epochs = strcmp(end, "e") == 0;
  if (!len || end == value || (*end && !epochs) || errno || count < 1 || count > INT64_C(1) << 40)
    return session_fail(s, DGC_USAGE, "%s: write a number of steps, as 500, or of epochs, as 1e, not '%s'",
                        r->name, value);
  *out = (struct every){.steps = epochs ? 0 : count, .epochs = epochs ? count : 0};
  return DGC_OK;
}

bool every_due(const struct every *e, const struct position *p) {
  if (e->epochs) return p->index == 0 && p->epoch % e->epochs == 0;
  return e->steps && p->step % e->steps == 0;
}

bool options_portable(const struct options *o) { return o->bits && strcmp(o->bits, "portable") == 0; }

const char *free_bound_of(const char *staleness) {
  static const char word[] = "free";
  size_t len = sizeof word - 1;
  if (strncmp(staleness, word, len) != 0) return NULL;
  return !staleness[len] ? "16" : staleness[len] == ':' ? staleness + len + 1 : NULL;
}

/* "2", "free", "free:4" */
static enum dgc_status set_staleness(struct dgc_session *s, const struct option_row *r, const char *value) {
  struct options *o = &s->options;
  const char *bound = free_bound_of(value);
  o->free = bound != NULL;
  o->asynchronous = !o->free;
  if (!o->free) return set_integer(s, r, value, &o->staleness);
  o->staleness = 0;
  return set_integer(s, r, bound, &o->free_bound);
}

static enum dgc_status set_flag(struct dgc_session *s, const struct option_row *r, const char *value,
                                bool *out) {
  bool yes = strcmp(value, "true") == 0 || strcmp(value, "1") == 0;
  if (!yes && strcmp(value, "false") != 0 && strcmp(value, "0") != 0)
    return session_fail(s, DGC_USAGE, "%s: expected true or false, not '%s'", r->name, value);
  *out = yes;
  return DGC_OK;
}

/* "simplify,fuse": all of them must be passes. */
static enum dgc_status check_passes(struct dgc_session *s, const char *list) {
#define PASS(name, from, to, help) #name,
  static const char *const names[] = {
#include "passes/passes.def"
  };
#undef PASS
  enum { COUNT = sizeof names / sizeof *names };
  for (const char *p = list; *p; p += *p == ',') {
    size_t len = strcspn(p, ",");
    const char *word = arena_strndup(s->call, p, len);
    bool known = false;
    for (int i = 0; i < COUNT; i++) known |= strcmp(word, names[i]) == 0;
    p += len;
    if (known) continue;
    session_fail(s, DGC_USAGE, "there is no pass '%s'", word);
    diag_closest(&s->diags, LOC_NONE, word, names, COUNT, NULL);
    return DGC_USAGE;
  }
  return DGC_OK;
}

/* A strategy, or auto, which is none of a graph. */
static enum dgc_status check_strategy(struct dgc_session *s, const char *value) {
  if (strcmp(value, "auto") == 0 || strategy_find(value)) return DGC_OK;
  strategy_unknown(value, "auto", LOC_NONE, &s->diags);
  return DGC_USAGE;
}

static enum dgc_status check_prediction(struct dgc_session *s, const struct option_row *r,
                                        const char *value) {
  struct speeds unused;
  const int *tasks;
  int count;
  const char *wrong = r->offset == AT(link)    ? speeds_read_link(s->call, value, &unused)
                      : r->offset == AT(speed) ? speeds_read_speed(s->call, value, &unused)
                                               : tasks_read(s->call, value, &tasks, &count);
  return wrong ? session_fail(s, DGC_USAGE, "%s: %s", r->name, wrong) : DGC_OK;
}

/* "0:8000", ":-100", "8000:" */
static bool is_range(const char *value) {
  static const char digits[] = "0123456789";
  const char *p = value + (*value == '-');
  p += strspn(p, digits);
  if (*p++ != ':') return false;
  p += *p == '-';
  return !p[strspn(p, digits)];
}

/* Values that are wrong whatever the model is. */
static enum dgc_status check_text(struct dgc_session *s, const struct option_row *r, const char *value) {
  if (r->use != DGC_NO_FILE && !*value && !IS_AMONG(r, AT(data), AT(eval_data)))
    return session_fail(s, DGC_USAGE, "%s: the name is empty", r->name);
  if (r->offset == AT(set) && !strchr(value, '='))
    return session_fail(s, DGC_USAGE, "a parameter is set by NAME=VALUE, in one word, not by '%s'", value);
  if (r->offset == AT(stress) && strcmp(value, "roundtrip") != 0)
    return session_fail(s, DGC_USAGE, "stress: 'roundtrip' is all there is, not '%s'", value);
  if (IS_AMONG(r, AT(rows), AT(eval_rows)) && !is_range(value))
    return session_fail(s, DGC_USAGE, "%s: write begin:end as in 0:8000, :-100 or 8000:, not '%s'", r->name,
                        value);
  if (r->offset == AT(batch_is) && strcmp(value, "global") != 0 && strcmp(value, "per_replica") != 0)
    return session_fail(s, DGC_USAGE, "batch-is: global or per_replica, not '%s'", value);
  if (r->offset == AT(bits) && strcmp(value, "fast") != 0 && strcmp(value, "portable") != 0)
    return session_fail(s, DGC_USAGE, "bits: fast or portable, not '%s'", value);
  if (r->offset == AT(auto_shard) && !shard_find(value, NULL))
    return session_fail(s, DGC_USAGE, "auto-shard: expected auto, file, data or off, not '%s'", value);
  if (r->offset == AT(strategy)) return check_strategy(s, value);
  if (IS_AMONG(r, AT(link), AT(speed), AT(tasks))) return check_prediction(s, r, value);
  if (r->offset == AT(disable_pass)) return check_passes(s, value);
  if (r->offset == AT(print_after) && strcmp(value, "all") != 0) return check_passes(s, value);
  return DGC_OK;
}

/* Whether graphs are compiled for it, in one way for a session: each call has a batch of its own. */
static bool in_config(const struct option_row *r) {
  static const char *const fields[] = {
#define NUMBER(type, name, most) #name,
#define WORD(name)               #name,
#define TEXT(name)               #name,
#define FLAG(name)               #name,
#include "ir/graph/config.def"
  };
  if (strcmp(r->name, "batch") == 0) return false;
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
    size_t k = 0;
    while (r->name[k] && (r->name[k] == '-' ? '_' : r->name[k]) == fields[i][k]) k++;
    if (!r->name[k] && !fields[i][k]) return true;
  }
  return false;
}

/* What has been made of the old value goes, or the change is refused. */
static enum dgc_status prepare_change(struct dgc_session *s, const struct option_row *r) {
  if (s->source && IS_AMONG(r, AT(set), AT(model), AT(seed), AT(train_metrics)))
    return session_fail(s, DGC_USAGE, "%s must be set before the model is loaded", r->name);
  if (s->store &&
      IS_AMONG(r, AT(devices), AT(cluster), AT(task), AT(backend), AT(threads), AT(tf32), AT(bits)))
    return session_fail(s, DGC_USAGE, "%s must be set before anything runs", r->name);
  if (IS_AMONG(r, AT(devices), AT(cluster), AT(task))) s->listed = (struct target){0};
  if (in_config(r) || IS_AMONG(r, AT(devices), AT(disable_pass), AT(timeout), AT(memory_limit)))
    session_unsettle(s);
  return DGC_OK;
}

enum dgc_status options_set(struct dgc_session *s, const char *name, const char *value) {
  const struct option_row *r = find(name);
  if (!r) return unknown(s, name);
  enum dgc_status status = prepare_change(s, r);
  if (status) return status;
  void *field = (char *)&s->options + r->offset;
  if (!value) value = "true";
  if (r->kind == FLAG) return set_flag(s, r, value, field);
  if (r->offset == AT(seed)) s->options.seed_given = true;
  if (r->offset == AT(epochs)) s->options.epochs_given = true;
  if (r->offset == AT(steps)) s->options.steps_given = true;
  if (r->offset == AT(staleness)) return set_staleness(s, r, value);
  if (r->offset == AT(checkpoint_every)) return set_every(s, r, value);
  if (r->kind == INTEGER) return set_integer(s, r, value, field);
  if (r->kind == EVERY) return set_often(s, r, value, field);
  status = check_text(s, r, value);
  if (status) return status;
  if (r->kind == LIST)
    list_append(s->arena, field, value);
  else
    *(const char **)field = arena_strdup(s->arena, value);
  return DGC_OK;
}

const char *data_alone(const struct list *l) {
  for (int i = 0; i < l->count; i++) {
    const char *path = l->items[i];
    if (strchr(path, '=')) continue;
    if (strcmp(path, "-") == 0 || (access(path, F_OK) == 0 && !file_is_folder(path))) return path;
  }
  return NULL;
}

/* Of "NAME=PATH" what stands behind NAME=; NULL: it is a folder, or another one is given for the name. */
static const char *path_of(const struct option_row *r, const struct list *l, int i) {
  const char *equals = strchr(l->items[i], '=');
  if (strncmp(r->value, "NAME=", 5) != 0) return l->items[i];
  if (!equals) return r->use == DGC_READS && l->items[i] != data_alone(l) ? NULL : l->items[i];
  for (int k = i + 1; r->use == DGC_READS && k < l->count; k++)
    if (strncmp(l->items[i], l->items[k], (size_t)(equals - l->items[i]) + 1) == 0) return NULL;
  return equals + 1;
}

void options_files(struct dgc_session *s, void (*tell)(void *user, const struct option_file *f), void *user) {
  struct options *o = &s->options;
  for (int i = 0; i < NOPTIONS; i++) {
    const struct option_row *r = &option_table[i];
    void *field = (char *)o + r->offset;
    struct option_file f = {.name = r->name,
                            .use = r->use,
                            .data = IS_AMONG(r, AT(data), AT(eval_data)),
                            .renames = r->offset == AT(init_from),
                            .of_each_process = r->offset == AT(trace)};
    if (r->use == DGC_NO_FILE) continue;
    for (int k = 0; r->kind == LIST && k < ((struct list *)field)->count; k++)
      if ((f.path = path_of(r, field, k))) tell(user, &f);
    if (r->kind == TEXT && (f.path = *(const char **)field)) tell(user, &f);
    if (r->offset == AT(dump_batch) && o->dump_batch)
      f.path = batch_file(s->call, o->dump_batch), tell(user, &f);
  }
}

const char *batch_file(struct arena *a, int64_t step) {
  return arena_printf(a, "batch-%lld.npz", (long long)step);
}

void options_drop_strategy(struct options *o) {
#define NUMBER(type, name, most) o->name = 0;
#define WORD(name)               o->name = NULL;
#define TEXT(name)               o->name = NULL;
#define FLAG(name)               o->name = false;
#include "ir/graph/config.def"
}

struct goal options_goal(const struct options *o) {
  struct goal g = {.epochs = o->epochs_given ? o->epochs : -1, .steps = o->steps_given ? o->steps : -1};
  if (g.epochs < 0 && g.steps < 0) g.epochs = 1;
  return g;
}

bool goal_is_reached(const struct goal *g, const struct position *p) {
  return (g->epochs >= 0 && p->epoch >= g->epochs) || (g->steps >= 0 && p->step >= g->steps);
}
