/* SPDX-License-Identifier: Apache-2.0 */
/* The options of a session: one table that dgc_set, the tool and the manual read. */
#include "session/option_table.h"

/* ---- what several rows share ---- */

#define MODEL    "The model and its devices"
#define DATA     "Data"
#define TRAINING "Training and its results"
#define COMPILER "Looking into the compiler"

static const struct option_units bytes = {"500MB, 2GB or 512MiB",
                                          {{"kB", 1000},
                                           {"KB", 1000},
                                           {"MB", 1000000},
                                           {"GB", 1000000000},
                                           {"KiB", 1 << 10},
                                           {"MiB", 1 << 20},
                                           {"GiB", 1 << 30}}};
const struct option_units units_of_time = {"30s, 10m or 1h", {{"s", 1}, {"m", 60}, {"h", 3600}}};

#define ROW(name, ...) #name " "
#define STRATEGY       ROW
#define CROSS_DEVICE   ROW
#define BACKEND        ROW
#define PASS           ROW
static const char strategies[] =
#include "ir/strategies.def"
    "auto ";
static const char cross_devices[] =
#include "ir/cross_device.def"
    "auto ";
static const char backends[] =
#include "runtime/backends.def"
    ;
static const char passes[] =
#include "passes/passes.def"
    ;
static const char passes_or_all[] =
#include "passes/passes.def"
    "all ";
#undef STRATEGY
#undef CROSS_DEVICE
#undef BACKEND
#undef PASS
#undef ROW

/* ---- the table ---- */

#define AT(field) offsetof(struct options, field)

const struct option_row option_table[] = {
    {"set", MODEL, LIST, AT(set), "NAME=VALUE", .help = "a parameter of the model; may be repeated",
     .check = check_assignment, .until = UNTIL_LOADED},
    {"model", MODEL, TEXT, AT(model), "NAME", .help = "which model of a file that has several",
     .until = UNTIL_LOADED},
    {"graph", COMPILER, TEXT, AT(graph), "NAME",
     .help = "which graph of a text that holds several (default: all)"},
    {"source", COMPILER, TEXT, AT(source_path), "FILE",
     .help = "verify: graph text that holds the sources of the placed graphs", .use = DGC_READS},
    {"numeric", COMPILER, FLAG, AT(numeric), NULL,
     .help = "verify: also compute both graphs on random numbers"},
    {"devices", MODEL, TEXT, AT(devices), "LIST",
     .help = "devices to use, as cpu:0-3, gpu:0,gpu:2, gpu:0/0-1 (two on one card), pjrt:0-3 or tpu:0-7 "
             "(those of a PJRT plugin); gpu is every GPU, cpu is cpu:0, all is both (default cpu:0)",
     .until = UNTIL_RUN, .remakes = DEVICES},
    {"cluster", MODEL, TEXT, AT(cluster), "JOBS",
     .help = "tasks by job, as worker=2;ps=1, or with their hosts; each is a process that mpirun has "
             "started, or all are in this one; each worker has the devices of --devices; evaluator=1: one "
             "more process evaluates each checkpoint",
     .until = UNTIL_RUN, .remakes = DEVICES},
    {"task", MODEL, TEXT, AT(task), "JOB:N",
     .help = "which task of the cluster this process is (default: as mpirun numbers them, chief and workers "
             "first); evaluator:0 needs no other process: it evaluates what comes to --checkpoint until "
             "training ends",
     .until = UNTIL_RUN, .remakes = DEVICES},
    {"towers", MODEL, INTEGER, AT(towers), "N",
     .help = "copies of the model on slices of the batch (default: one per device)", .min = 1, .max = 16384,
     .remakes = GRAPHS},
    {"strategy", MODEL, TEXT, AT(strategy), "NAME",
     .help =
#define STRATEGY(name, ...) #name ", "
#include "ir/strategies.def"
#undef STRATEGY
         "or auto (default: mirrored, on one device one_device)",
     .words = strategies, .check = check_strategy, .remakes = GRAPHS},
    {"parameter-device", MODEL, TEXT, AT(parameter_device), "DEVICE",
     .help = "where central_storage keeps variables", .remakes = GRAPHS},
    {"staleness", MODEL, STALENESS, AT(staleness), "S|free[:N]",
     .help = "parameter_server: workers apply their own gradients in turn, computed with variables at most S "
             "updates old; free: as they come, so that no bits are promised, and none begins more than N "
             "steps (default 16) while another is in one",
     .max = 16384, .remakes = GRAPHS},
    {"min-part-bytes", MODEL, INTEGER, AT(min_part_bytes), "N",
     .help = "parameter_server: cut large variables into parts of at least N bytes (default 262144)",
     .min = 1, .max = INT64_C(1) << 40, .units = &bytes, .remakes = GRAPHS},
    {"balance", MODEL, TEXT, AT(balance), "HOW",
     .help = "size: variables go to the device that holds least, the largest first (default: in turn)",
     .words = "size ", .remakes = GRAPHS},
    {"uneven", MODEL, FLAG, AT(uneven), NULL,
     .help = "strategy replicate: give the first towers one row more where the batch does not divide",
     .remakes = GRAPHS},
    {"loss-scaling", MODEL, TEXT, AT(loss_scaling), "HOW",
     .help = "strategy replicate: per_tower: each tower divides its own loss and gradient by the number of "
             "towers (default: exact)",
     .words = "exact per_tower ", .remakes = GRAPHS},
    {"consolidation-device", MODEL, TEXT, AT(consolidation_device), "DEVICE",
     .help = "where batches are split and results gathered", .remakes = GRAPHS},
    {"cross-device", MODEL, TEXT, AT(cross_device), "NAME",
     .help = "how sums over towers travel: "
#define CROSS_DEVICE(name, ...) #name ", "
#include "ir/cross_device.def"
#undef CROSS_DEVICE
             "or auto, by a prediction (default: between processes auto, else reduce_to_one)",
     .words = cross_devices, .remakes = GRAPHS},
    {"link", MODEL, TEXT, AT(link), "RATE,DELAY",
     .help = "predictions: what a task's network can do each way, as 25GB/s,5us (default 1.25GB/s,50us)",
     .check = check_link},
    {"speed", MODEL, TEXT, AT(speed), "RATE,RATE",
     .help = "predictions: what a task computes, and reads and writes, as dgc bench says (default "
             "100GFLOP/s,20GB/s)",
     .check = check_speed},
    {"tasks", COMPILER, TEXT, AT(tasks), "LIST",
     .help = "--emit scaling: for how many tasks, as 1..1024 or 1,2,3 (default 1..64)", .check = check_tasks},
    {"packs", MODEL, INTEGER, AT(packs), "N", .help = "sum gradients as N arrays of equal size", .min = 1,
     .max = 4096, .remakes = GRAPHS},
    {"bytes-per-pack", MODEL, INTEGER, AT(bytes_per_pack), "N",
     .help = "sum gradients as arrays that end once they are larger than N bytes", .min = 1,
     .max = INT64_C(1) << 40, .units = &bytes, .remakes = GRAPHS},
    {"memory-limit", MODEL, INTEGER, AT(memory_limit), "BYTES",
     .help = "what a training step may need on a device, variables and all: activations are computed again "
             "where it is more (default: no limit)",
     .min = 1, .max = INT64_C(1) << 60, .units = &bytes, .remakes = GRAPHS},
    {"soft-placement", MODEL, FLAG, AT(soft_placement), NULL,
     .help = "use another device where the annotated one is missing", .remakes = GRAPHS},
    {"batch", MODEL, INTEGER, AT(batch), "N",
     .help = "rows of the global batch (default: the model's, else 128)", .min = 1, .max = INT64_C(1) << 32},
    {"batch-is", MODEL, TEXT, AT(batch_is), "WHOSE",
     .help = "global (default), or per_replica: the batch is N rows for each tower",
     .words = "global per_replica ", .check = check_word},
    {"seed", MODEL, INTEGER, AT(seed), "N",
     .help = "of initial values, random ops and the order of the data (default 0)", .max = INT64_MAX,
     .until = UNTIL_LOADED, .given = AT(seed_given)},
    {"threads", MODEL, INTEGER, AT(threads), "N",
     .help = "threads, all devices of the CPU together (default: the cores that this process may use, of "
             "which it has its share where others of its cluster run on this machine)",
     .min = 1, .max = 1024, .until = UNTIL_RUN},
    {"tf32", MODEL, FLAG, AT(tf32), NULL,
     .help = "GPUs: let f32 matrix products round their factors to 11 bits (TF32), which is faster",
     .until = UNTIL_RUN},
    {"bits", MODEL, TEXT, AT(bits), "WHICH",
     .help = "fast: bf16 in each processor's own order of sums where that is faster (default), or portable: "
             "one order for all, so that every CPU computes the same bits",
     .words = "fast portable ", .check = check_word, .until = UNTIL_RUN},
    {"backend", MODEL, TEXT, AT(backend), "NAME", .help = "what runs the plan; see dgc devices",
     .words = backends, .until = UNTIL_RUN},
    {"pjrt-plugin", MODEL, TEXT, AT(pjrt_plugin), "FILE",
     .help =
         "the library that has the devices pjrt:0, pjrt:1 ... (default: DGC_PJRT_PLUGIN; of tpu:0 libtpu.so)",
     .use = DGC_READS},
    {"emit", COMPILER, TEXT, AT(emit), "FORM", .help = "opt: graph (default), dot, json, html or stablehlo",
     .words = "graph dot json html stablehlo "},
    {"arch", COMPILER, TEXT, AT(arch), "ARCH", .help = "compile: the GPUs to show PTX for (default sm_90)"},
    {"timeout", MODEL, INTEGER, AT(timeout), "SECONDS",
     .help = "give up when a step does not end within this time, and say who waits for whom (default: never)",
     .max = 86400, .units = &units_of_time, .remakes = GRAPHS},
    {"data", DATA, LIST, AT(data), "NAME=PATH",
     .help = "the file of an input; a folder alone: where the model's own files are; a file alone: in the "
             "place of the one that the model reads all its inputs from; may be repeated",
     .use = DGC_READS, .path = PATH_OF_INPUT},
    {"allow-path", DATA, LIST, AT(allow_path), "DIR",
     .help = "a model may read files of this folder, not only of its own; may be repeated"},
    {"rows", DATA, TEXT, AT(rows), "A:B", .help = "use these rows of the data only", .check = check_range},
    {"eval-data", DATA, LIST, AT(eval_data), "NAME=PATH", .help = "as --data, for evaluation and prediction",
     .use = DGC_READS, .path = PATH_OF_INPUT},
    {"eval-rows", DATA, TEXT, AT(eval_rows), "A:B", .help = "rows of the data to evaluate on",
     .check = check_range},
    {"auto-shard", DATA, TEXT, AT(auto_shard), "HOW",
     .help = "what the workers of a cluster train on: data (default), file, auto or off",
     .words = "data file auto off ", .check = check_word},
    {"no-shuffle", DATA, FLAG, AT(no_shuffle), NULL, .help = "train on rows in the order of the files"},
    {"epochs", TRAINING, INTEGER, AT(epochs), "N",
     .help = "train until this many epochs are done (default 1)", .max = INT64_C(1) << 40,
     .fraction = "a part of an epoch is so many steps: --steps N", .given = AT(epochs_given)},
    {"steps", TRAINING, INTEGER, AT(steps), "N",
     .help = "train until this many steps are done; bench: how many are timed (default 100)",
     .max = INT64_C(1) << 40, .given = AT(steps_given)},
    {"profile", TRAINING, FLAG, AT(profile), NULL,
     .help = "bench: what takes the time, by kernel and line of the model; of several devices, what one "
             "alone would take"},
    {"trace", TRAINING, TEXT, AT(trace), "FILE",
     .help = "what each device did and waited for, and when, for Perfetto, Chrome and dgc trace",
     .use = DGC_WRITES, .path = PATH_OF_EACH_PROCESS},
    {"checkpoint", TRAINING, TEXT, AT(checkpoint), "FILE",
     .help = "where training saves, where other verbs read variables", .use = DGC_TRAINING_WRITES},
    {"names", TRAINING, TEXT, AT(names), "FILE",
     .help = "lines `old = new`: what a checkpoint calls variables, or begins their names with, and what the "
             "model does",
     .use = DGC_READS},
    {"overwrite", TRAINING, FLAG, AT(overwrite), NULL,
     .help = "begin anew, though the files that are to be written are there: they are replaced"},
    {"allow-nan", TRAINING, FLAG, AT(allow_nan), NULL,
     .help = "train on where a loss, or a variable that is saved, is not a number or infinite"},
    {"checkpoint-every", TRAINING, STEPS_OR_TIME, AT(checkpoint_every), "N|TIME",
     .help = "save also after every N steps, or behind the step at which so much time has passed, as 30s, "
             "10m or 1h",
     .min = 1, .max = INT64_C(1) << 40, .needs = AT(checkpoint),
     .needs_why = "there is no --checkpoint FILE to save to"},
    {"eval-every", TRAINING, EVERY, AT(eval_every), "Ne|N",
     .help = "evaluate during training, every N epochs (1e) or N steps (500), beside the training loss"},
    {"init-from", TRAINING, LIST, AT(init_from), "FILE[:old=new]",
     .help = "train: first values out of this checkpoint, for what fits, with names (or their first parts, "
             "up to a dot) replaced; may be repeated",
     .use = DGC_READS, .path = PATH_BEFORE_NAMES},
    {"to", TRAINING, TEXT, AT(to), "TYPE",
     .help = "checkpoint cast: how f32 is to be stored: f16, bf16 or f32", .words = "f16 bf16 f32 "},
    {"dump-batch", TRAINING, INTEGER, AT(dump_batch), "N",
     .help =
         "train: write what step N reads to batch-N.npz, as the model sees it, with the numbers of its rows",
     .min = 1, .max = INT64_C(1) << 40, .use = DGC_WRITES, .path = PATH_OF_STEP,
     .not_free = "with staleness free no process knows which step reads a batch"},
    {"keep-best", TRAINING, TEXT, AT(keep_best), "FILE",
     .help = "save there what was evaluated best so far (evaluates every epoch unless --eval-every says "
             "otherwise)",
     .use = DGC_WRITES},
    {"metric-to-watch", TRAINING, TEXT, AT(metric_to_watch), "val.NAME:min|max",
     .help = "which metric of the evaluation is to be best, min or max; of a loss min may be left out "
             "(default: the first loss)"},
    {"patience", TRAINING, INTEGER, AT(patience), "N",
     .help = "end the training when N evaluations in a row have not been better than the best before",
     .min = 1, .max = INT64_C(1) << 40},
    {"train-metrics", TRAINING, FLAG, AT(train_metrics), NULL,
     .help = "the model's metrics of what is trained on, too, beside the loss: of the epoch so far",
     .until = UNTIL_LOADED, .not_free = "with staleness free only losses are added up"},
    {"log-every", TRAINING, EVERY, AT(log_every), "Ne|N",
     .help = "--log, --log-dir: a line every N epochs or steps (default 1e), and one for each evaluation"},
    {"eval-timeout", DATA, INTEGER, AT(eval_timeout), "SECONDS",
     .help = "the task evaluator: give up when no new checkpoint has come for so long (default: never)",
     .max = INT64_C(1) << 31, .units = &units_of_time},
    {"output", TRAINING, LIST, AT(output), "NAME=FILE",
     .help = "where a prediction goes: .npy, .csv, .txt (u8, as the bytes of a line), or - for CSV on "
             "standard output; a FILE.csv alone has all of them, side by side",
     .use = DGC_WRITES, .path = PATH_OF_OUTPUT},
    {"sums", TRAINING, FLAG, AT(sums), NULL,
     .help = "dgc_run: give the sum and the count of each metric, too"},
    {"verify-each", COMPILER, FLAG, AT(verify_each), NULL, .help = "check all invariants after each pass"},
    {"disable-pass", COMPILER, TEXT, AT(disable_pass), "LIST", .help = "skip these passes", .words = passes,
     .check = check_passes, .remakes = GRAPHS},
    {"print-after", COMPILER, TEXT, AT(print_after), "PASS",
     .help = "print the graph after this pass, or all", .words = passes_or_all, .check = check_pass_or_all},
    {"dump-passes", COMPILER, FLAG, AT(dump_passes), NULL, .help = "report the graph after each pass"},
    {"time-passes", COMPILER, FLAG, AT(time_passes), NULL, .help = "print the time of each pass"},
    {"no-origins", COMPILER, FLAG, AT(no_origins), NULL,
     .help = "graph text without the lines of the model: where only they have moved, the text is the same"},
    {"stress", COMPILER, TEXT, AT(stress), "WHAT",
     .help = "roundtrip: print and read back the graph after each pass", .words = "roundtrip ",
     .check = check_word},
    {"color", TRAINING, FLAG, AT(color), NULL, .help = "colours in messages"},
    {"columns", TRAINING, INTEGER, AT(columns), "N",
     .help = "messages are for a screen of so many columns (default: 0, no screen: 100 of a source line)",
     .max = 10000},
};
const int option_count = sizeof option_table / sizeof *option_table;
