/* SPDX-License-Identifier: Apache-2.0 */
/* dgc: compile a model, train it, evaluate it, predict with it.
 *
 *   struct dgc_session *s = dgc_create();
 *   dgc_set(s, "devices", "cpu:0-1");
 *   if (dgc_load(s, "digits.dsl") || dgc_train(s)) fprintf(stderr, "%s", dgc_message(s));
 *   dgc_destroy(s);
 *
 * There is no global state: sessions are independent, and each may be used by one thread at a time. One that has run
 * something belongs to its process: in another that is forked from it, its calls are DGC_USAGE. A session
 * holds one model, its variables and its compiled plans. Calls return a status; dgc_message says what was wrong.
 * The library installs no handlers of signals, and its own threads block them all. A handler that may run on a thread
 * while that is in a call must be installed with SA_ONSTACK, and the thread have an alternate stack: matrix products
 * keep numbers below the stack pointer.
 * The binary interface grows: a struct that a call fills in for its caller begins with `size`, which the caller sets to
 * the sizeof of its own, and gains fields at its end only. The library writes what both know, and zeros into what it
 * does not know; a size of none of its versions is DGC_USAGE, or false. What it hands out itself grows likewise
 * (dgc_progress, dgc_command), but elements of arrays, as dgc_metric, never change, nor does dgc_tensor.
 * Texts that a call hands out live until the next call that hands out a text, or the end of the session. */
#ifndef DGC_H
#define DGC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define DGC_API __attribute__((visibility("default")))
#else
#define DGC_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

enum dgc_status {
  DGC_OK = 0,
  DGC_INPUT = 1,    /* the model, the data or a file is wrong */
  DGC_USAGE = 2,    /* the call or an option is wrong */
  DGC_RUNTIME = 3,  /* a device, memory or the system failed */
  DGC_MISMATCH = 4, /* two things that should fit do not: a checkpoint and a model; or a loss is no number */
  DGC_STOPPED = 5   /* dgc_stop was called */
};

struct dgc_session;

/* Which of the tasks of a cluster this process is, if a launcher has started several (mpirun, srun): 0 is the first
 * one, which writes what is to be written. *count (NULL is allowed): how many there are, 1 without a launcher. All of
 * them make the same calls in the same order. `s` knows its options "cluster" and "task" already. */
DGC_API int dgc_process(struct dgc_session *s, int *count);

/* "0.1.0" */
DGC_API const char *dgc_version(void);
/* Compiler, backends and libraries of this build, a line each. */
DGC_API const char *dgc_build(void);

/* --- sessions --- */

/* NULL when the host is out of memory. */
DGC_API struct dgc_session *dgc_create(void);
/* NULL is allowed. */
DGC_API void dgc_destroy(struct dgc_session *s);
/* Errors, warnings and notes of the last call, each with its place and source line; "" if there were none. What a
 * function of dgc_on_message has been given is not among them. */
DGC_API const char *dgc_message(const struct dgc_session *s);
/* Called by dgc_train with what dgc_message would say at its end, as soon as that is known: before the first step, and
 * then behind the step in which it arose. The text lives until the function returns, which must not call the session.
 * NULL: all of it is said at the end. */
typedef void dgc_message_fn(void *user, const char *text);
DGC_API void dgc_on_message(struct dgc_session *s, dgc_message_fn *fn, void *user);

/* The same one by one, until the next call: false behind the last. */
struct dgc_diagnostic {
  size_t size;          /* of the caller's struct */
  const char *severity; /* "error", "warning"; "note" and "help" belong to the one before them */
  const char *file;     /* NULL: it is about no place of a text */
  int line, column;     /* from 1; columns are bytes */
  int end_column;       /* behind the last one; where the text goes on on other lines, the line's end */
  const char *message;
  const char *wrong,
      *fix; /* of a help: a word in the place of its error, and what to write instead; else NULL */
};
DGC_API bool dgc_diagnostic(const struct dgc_session *s, int index, struct dgc_diagnostic *out);

/* Options; see dgc_option. Those that the model depends on must be set before dgc_load, devices, threads, tf32
 * and backend before anything runs. "set" and "data" and "output" may be given several times. Flags take "true"
 * or "false". */
DGC_API enum dgc_status dgc_set(struct dgc_session *s, const char *option, const char *value);
/* Takes back all values that the option was given: it is as if it never had been. As long as it may be set. */
DGC_API enum dgc_status dgc_unset(struct dgc_session *s, const char *option);

/* What is done with a file. */
enum dgc_file_use {
  DGC_NO_FILE = 0,
  DGC_READS = 1,
  DGC_WRITES = 2,
  DGC_WRITES_IN = 3,      /* a folder, in which files are made */
  DGC_TRAINING_WRITES = 4 /* written by dgc_train, read by others */
};
/* The options there are: false behind the last one. `value` names what it takes; NULL for a flag. `choices`: the words
 * that it may be, each with a blank behind it; NULL where there is no such list. `group`: the section of dgc(1). */
struct dgc_option {
  size_t size; /* of the caller's struct */
  const char *name, *value, *help, *choices;
  enum dgc_file_use file; /* what is done with the file that the value names */
  const char *group;
};
DGC_API bool dgc_option(int index, struct dgc_option *out);
/* What options are here that other tools know by this word: the one of that index, in *option (NULL: it is none), and
 * how it is written on the command line, in *here; false behind the last. Some options are the command line's alone. */
DGC_API bool dgc_option_elsewhere(const char *word, int index, const char **option, const char **here);
/* Tells the session of a file that its caller reads, writes or makes files in, beside those of options; `what` is how
 * messages call it, as "--log". No file is written that is also read, or written for something else, whatever the paths
 * look like (links are followed): dgc_uses, dgc_load, dgc_train, dgc_predict, and what writes a trace, are DGC_USAGE
 * then, before anything is written. Checkpoints that the session has restored may be replaced by those that it saves.
 * Devices, pipes and standard output may be named as often as one likes. */
DGC_API enum dgc_status dgc_uses(struct dgc_session *s, const char *what, const char *path,
                                 enum dgc_file_use use);

/* --- models --- */

/* Compiles the model in a file ("-" = standard input) or in memory. A model from a file may read files of that file's
 * folder and below; one from standard input or memory, whatever its name, none. Both may read what the options data
 * and eval-data name, and the folders of data and allow-path, which must be set before. */
DGC_API enum dgc_status dgc_load(struct dgc_session *s, const char *path);
DGC_API enum dgc_status dgc_load_text(struct dgc_session *s, const char *name, const char *text, size_t len);
/* The models of a file, in its order, none of which is loaded: their names, until the session is destroyed. */
DGC_API enum dgc_status dgc_models(struct dgc_session *s, const char *path, const char *const **names,
                                   int *count);
/* What the compiler makes of it. `entry`: "train", "eval", "predict" or "init"; NULL = the first there is. `stage`:
 * ast, graph, grad, replicated, placed, fused, plan, memory, traffic, llvm, cuda, ptx, dot, json, html, stablehlo,
 * module (of all entries, where `entry` is NULL) or strategies (a table of what each needs); with "-json" behind a
 * graph, memory or traffic. */
DGC_API enum dgc_status dgc_emit(struct dgc_session *s, const char *entry, const char *stage,
                                 const char **text);
/* Why a node of the placed graph is where it is: who asked for what, the rule that won, the lines that it comes from,
 * what it costs, its copies, inputs and readers. */
DGC_API enum dgc_status dgc_explain(struct dgc_session *s, const char *entry, const char *node, bool json,
                                    const char **text);
/* Reads graphs as text, runs passes over each, or over the one that the option graph names ("simplify,place"; NULL or
 * "" = none), verifies, prints, in the form that the option emit names. */
DGC_API enum dgc_status dgc_opt(struct dgc_session *s, const char *path, const char *passes,
                                const char **text);
/* Proves claim by claim that the placed graphs of a model compute what the model says, or those of a graph text what
 * its source does (option source): a line per claim, and numbers. `entry`: NULL = all. DGC_MISMATCH if one does not. */
DGC_API enum dgc_status dgc_verify(struct dgc_session *s, const char *path, const char *entry,
                                   const char **text);
/* Compares the graphs of two texts by structure: what was added, removed, renamed, moved to another device and why,
 * changed. DGC_MISMATCH where there is a difference, with the text; else DGC_OK. */
DGC_API enum dgc_status dgc_diff(struct dgc_session *s, const char *before, const char *after, bool json,
                                 const char **text);
/* The passes in their order with what they do, a line each. */
DGC_API enum dgc_status dgc_passes(struct dgc_session *s, const char **text);
/* Called with what the options print-after, dump-passes and time-passes ask for, and with the table ("strategies")
 * that strategy auto chooses by; must not call the session. */
typedef void dgc_pass_fn(void *user, const char *pass, const char *text);
DGC_API void dgc_on_pass(struct dgc_session *s, dgc_pass_fn *fn, void *user);

/* What the library of the language says of `name`, as "nn.lstm" or "softmax"; of NULL or "" a list of all, or as `page`
 * the whole of docs/library.md. DGC_USAGE where there is no such function. */
DGC_API enum dgc_status dgc_doc(struct dgc_session *s, const char *name, bool page, const char **text);

/* --- training, evaluation, prediction over files --- */

struct dgc_metric {
  const char *name;
  double value;
};

/* Later versions add fields behind these. */
struct dgc_progress {
  int64_t epoch, epochs;      /* the present one from 0; 0 epochs = not limited */
  int64_t step, steps;        /* within the epoch: done, and all */
  int64_t total_steps;        /* done since the model's first */
  double loss;                /* mean over the epoch so far; of several losses the sum */
  double seconds;             /* since the call */
  double examples_per_second; /* over the epoch so far, without its evaluations */
  bool epoch_end;
  bool end;       /* of the training, inside an epoch */
  bool evaluated; /* behind this step, by the options eval-every, keep-best or patience */
  bool improved;  /* and the metric to watch is the best so far */
  bool log_due;   /* by the option log-every (default: each epoch), and where `evaluated` or `end` holds */
  double epoch_seconds; /* in this epoch, without its evaluations */
  double seconds_to_go; /* until the end, by what the steps of the call took; a NaN: not known */
  int nlosses;          /* by name, means over the epoch so far; none where staleness free adds up several */
  int nmetrics;         /* with the option train-metrics: the same of the model's metrics */
  int nvalidation;      /* "val.loss": what evaluation gives; NaN where `evaluated` does not hold */
  int nrates;           /* by the losses' names, of this step: those that are functions of `step` alone */
  const struct dgc_metric *losses, *metrics, *validation, *rates;
  int64_t goal_steps; /* that total_steps is to be in the end, by the option steps; 0: not limited */
};
/* Called after steps, not more often than ten times a second, and whenever one of the flags above holds. False stops
 * the training. The session may be called from there, to evaluate or to save, but not to train or to restore. */
typedef bool dgc_progress_fn(void *user, const struct dgc_progress *p);
DGC_API void dgc_on_progress(struct dgc_session *s, dgc_progress_fn *fn, void *user);

/* Asks the call of dgc_train, dgc_evaluate, dgc_predict or dgc_benchmark that is going on, else the next one, to end
 * and to return DGC_STOPPED: a training behind the present step, and when it has saved to the option checkpoint; the
 * others without results, and without a file. Any thread and handlers of signals may call it. One call answers one
 * request. */
DGC_API void dgc_stop(struct dgc_session *s);

/* Rows that the caller has, for an input of the model, in place of files: of the option data, for training, or of
 * eval-data, for evaluation and prediction, with the meaning that files have there; files that these options name for
 * the same input are not looked at. `rows` is the input's name, the type of the elements, and the shape, whose first
 * axis counts the rows. DGC_USAGE if there can be no such rows, or the model that is loaded has no
 * such input; whether they fit is said when they are read.
 * An array lies dense in row-major order, is not copied, and must stay as it is until it is replaced, is taken away by
 * a `data` of NULL, or the session ends; none of that from on_progress, as the training reads it. */
struct dgc_tensor;
DGC_API enum dgc_status dgc_set_rows(struct dgc_session *s, const char *option, const struct dgc_tensor *rows,
                                     const void *data);
/* The same with a function that writes the rows from `first` to before `first + count` to `out`, dense, in the type
 * that the model's input has, and returns whether it could. A row must be the same whenever it is asked for. In a
 * cluster of processes each asks for the rows of its own towers only. The function is called from a thread of the
 * library, never twice at once for one input, and must not call the session. */
typedef bool dgc_rows_fn(void *user, int64_t first, int64_t count, void *out);
DGC_API enum dgc_status dgc_set_source(struct dgc_session *s, const char *option,
                                       const struct dgc_tensor *rows, dgc_rows_fn *fn, void *user);

/* What a task of a cluster of processes has done with its time, which is in seconds. */
struct dgc_task {
  const char *name;                 /* "/job:worker/task:1" */
  double computing, waiting, other; /* in steps; for other tasks; reading data, saving and the rest */
  int waits_for;                    /* the task, in the list, that it has waited for longest; -1: for none */
  double longest;                   /* how long that was */
  int64_t sent;                     /* bytes, in steps */
  double slower; /* how many times as long as the other tasks of its job it computes; 0: it has none */
  int followers; /* of the slowest: how many wait for it, or for one that does, and so on; else 0 */
};
/* Of the epoch of a training that has ended last, or of what was done of one. Of the first process only: elsewhere, and
 * where tasks are no processes, there are none. Until the next epoch ends. */
DGC_API const struct dgc_task *dgc_tasks(struct dgc_session *s, int *count);

/* Trains until as many epochs or steps are done as these options say (0: none; neither given: one epoch), on the option
 * data or what the model declares; with checkpoint, saves there after each epoch and at its end. Before the first step:
 * DGC_RUNTIME if nothing can be written there, DGC_USAGE if there is a file that the session has neither restored nor
 * saved (unless the option overwrite is set). DGC_MISMATCH where a loss is infinite or not a number, or a trained
 * variable is so when it is to be saved: the message names the step, what is in the file was saved before it, and the
 * session keeps the variables as they are (with the option allow-nan: DGC_OK, and training goes on). With the options
 * eval-every, keep-best, metric-to-watch or patience it evaluates as it goes, which changes no bit of what is trained;
 * with patience it may end before the options say: DGC_OK, and a message. */
DGC_API enum dgc_status dgc_train(struct dgc_session *s);
/* Training steps that the model has done since its first, those before the checkpoint that was restored with them. */
DGC_API int64_t dgc_step(const struct dgc_session *s);
/* The best that the metric to watch has been in this training, with what came before its checkpoint, and the step
 * behind which that was. False: nothing was evaluated. */
DGC_API bool dgc_best(struct dgc_session *s, struct dgc_metric *metric, int64_t *step);
/* First values out of the files of the option init-from, for what fits: notes tell what does not. None are read where a
 * checkpoint has been restored: what starts anew beside that is told. dgc_train does so, too, if it has not been done,
 * and the notes come at its end. DGC_MISMATCH if nothing of a file fits. */
DGC_API enum dgc_status dgc_begin(struct dgc_session *s);
/* Reads the data of each entry, as it would run over it, and runs nothing: what is wrong with its files' headers,
 * shapes and types is an error, and so are integers beyond those that the model expects, numbers that do not fit into
 * their input's type, and images that cannot be decoded. All rows are read, once. A note tells how many an entry has.
 * DGC_USAGE where there is data for none. */
DGC_API enum dgc_status dgc_check_data(struct dgc_session *s);
/* Whether there is data to evaluate on: files are named for each input. What is wrong with them dgc_evaluate says. */
DGC_API bool dgc_can_evaluate(struct dgc_session *s);
/* Mean loss and metrics over all rows, the last partial batch included exactly. What is not wanted may be NULL. */
DGC_API enum dgc_status dgc_evaluate(struct dgc_session *s, const struct dgc_metric **metrics, int *count,
                                     int64_t *rows);
/* Writes predictions to the files of the option output, in the order of the rows. */
DGC_API enum dgc_status dgc_predict(struct dgc_session *s, int64_t *rows);

/* Variables, optimizer state, step and the position in the data. A checkpoint replaces an older one whole or
 * not at all: DGC_RUNTIME if it cannot be written, DGC_INPUT if it cannot be read, DGC_MISMATCH if it is another
 * model's, or if a variable that is trained is to be saved and holds what is no finite number (option allow-nan: it
 * is saved), DGC_USAGE if a training is writing that file; then nothing has changed. A file may hold the variables
 * alone, as other programs write them: what only training needs, the variables of optimizers and `step`, then has its
 * first value. */
DGC_API enum dgc_status dgc_save(struct dgc_session *s, const char *path);
DGC_API enum dgc_status dgc_restore(struct dgc_session *s, const char *path);
/* The variables that the file restored last does not hold, so that they start anew: false behind the last one. */
DGC_API bool dgc_starts_anew(struct dgc_session *s, int index, const char **name);

/* --- the evaluator of a cluster --- */

/* Whether this process is the task evaluator:0, by the option task, by TF_CONFIG, or as the last process of a
 * launcher where the option cluster has evaluator=1. It is none of the tasks of the cluster, has the devices of the
 * option devices, and makes other calls than they: dgc_next_checkpoint and dgc_evaluate in turn, until there is no
 * other. */
DGC_API bool dgc_is_evaluator(struct dgc_session *s);
/* Waits until the file of the option checkpoint holds another one than the last, and restores it; it is of training
 * step *step. -1: there will be no other, as the training, which has the same options, has come to its end, or has
 * ended. What is there at the first call is taken, too, unless the option overwrite is set; then DGC_USAGE where it
 * cannot be known whose it is. DGC_RUNTIME after so many seconds of the option eval-timeout; DGC_STOPPED as
 * dgc_evaluate. Of a launcher's processes, dgc_destroy waits for the end of the training. */
DGC_API enum dgc_status dgc_next_checkpoint(struct dgc_session *s, int64_t *step);

/* --- batches of the caller's own --- */

/* Elements lie dense in row-major order. */
struct dgc_tensor {
  const char *name;
  const char *dtype; /* "f32", "f64", "i32", "i64", "u8", "bool" */
  int rank;
  int64_t shape[8]; /* -k stands for k rows of the batch */
};
/* Inputs and outputs of an entry, "train", "eval" or "predict": false behind the last one. Names live as long as the
 * session. What there is, of one batch:
 *   train    each loss, scalar, as the model defines it: a mean is divided. By its name, as "loss"
 *   eval     each loss and metric, scalar, by its name: what dgc_evaluate gives for these rows. First those that are
 *            one mean or sum over the rows, then those that are formulas of several, in f64. With the option sums,
 *            behind all of them, for each that is one mean: NAME.sum, of the same type, and NAME.count, f64, what it is
 *            divided by; and the sums of the formulas, f64, by their names in the entry "metrics". Over several batches
 *            these add up; a metric of one sum does so itself
 *   predict  each prediction, a row for each row of the batch */
DGC_API bool dgc_input(struct dgc_session *s, const char *entry, int index, struct dgc_tensor *out);
DGC_API bool dgc_output(struct dgc_session *s, const char *entry, int index, struct dgc_tensor *out);
/* Runs an entry once on a batch of `rows`: a training step, say. inputs[i] and outputs[i] belong to dgc_input and
 * dgc_output i: arrays of the caller, as large as their descriptions say for so many rows; outputs may be NULL, or
 * single ones. Each number of rows is compiled once. DGC_INPUT for class numbers that the model cannot use, and
 * DGC_USAGE for an array that is missing: then nothing is run. A loss that is not a number is no error here: the
 * caller has it. */
DGC_API enum dgc_status dgc_run(struct dgc_session *s, const char *entry, int64_t rows,
                                const void *const *inputs, void *const *outputs);
/* The same for one of several batches: its first row is row number `first` of them all, from 0 on, as that of dgc_run
 * is row 0. What eval and predict draw at random for a row is drawn by its number: no two rows have the same numbers,
 * and each has its own in batches of any size. Training draws by its steps. */
DGC_API enum dgc_status dgc_run_from(struct dgc_session *s, const char *entry, int64_t first, int64_t rows,
                                     const void *const *inputs, void *const *outputs);

/* Variables, each once however many copies there are: false behind the last one. */
DGC_API bool dgc_variable(struct dgc_session *s, int index, struct dgc_tensor *out);
/* Whether it is one that a loss trains: no state of an optimizer, nor of the model's own. */
DGC_API bool dgc_trained(struct dgc_session *s, const char *variable);
/* `bytes` is the size of the caller's array and must be the variable's. In a cluster of processes all of them read or
 * write. */
DGC_API enum dgc_status dgc_read(struct dgc_session *s, const char *variable, void *out, size_t bytes);
DGC_API enum dgc_status dgc_write(struct dgc_session *s, const char *variable, const void *data,
                                  size_t bytes);

/* --- the graph --- */

/* A node of the placed graph. Later versions add fields behind these. */
struct dgc_node {
  struct dgc_tensor result;  /* with the node's name; dtype may be "bf16" or "f16", too */
  const char *op;            /* "matmul" */
  const char *device;        /* "/cpu:0", "/job:worker/task:1/cpu:0" */
  const char *distribution;  /* "mirrored", "per_replica", "partial(sum)" */
  const char *rule, *where;  /* why it is there, and "digits.dsl:9 (nn.dense, nn.dsl:7)"; NULL: not known */
  const char *const *inputs; /* names of nodes */
  int ninputs;
};
/* All nodes of an entry (as dgc_emit has it), inputs before users: the list lives as a text does. */
DGC_API enum dgc_status dgc_graph(struct dgc_session *s, const char *entry,
                                  const struct dgc_node *const **nodes, int *count);

/* --- the machine and its files --- */

struct dgc_machine {
  size_t size; /* of the caller's struct */
  const char *cpu, *vectors;
  int cores;
  int64_t memory;
};
DGC_API enum dgc_status dgc_machine(struct dgc_session *s, struct dgc_machine *out);
/* The GPUs that can be used: "/gpu:0" first. `why_none` (NULL is allowed) is a line that says why there is none. */
struct dgc_gpu {
  const char *device; /* "/gpu:0" */
  const char *name;   /* "NVIDIA H100 80GB HBM3" */
  const char *arch;   /* "sm_90" */
  int64_t memory;     /* bytes */
  bool simulated;     /* by a stand-in for the driver: nothing to measure */
};
DGC_API enum dgc_status dgc_gpus(struct dgc_session *s, const struct dgc_gpu **gpus, int *count,
                                 const char **why_none);
/* The devices of the PJRT plugin that the option pjrt-plugin or DGC_PJRT_PLUGIN names: none, and *why_none NULL, where
 * none is named; else *why_none is a line that says why there are none. */
struct dgc_plugin_device {
  const char *device;   /* "/pjrt:0" */
  const char *name;     /* "TPU v4" */
  const char *platform; /* "tpu" */
  int64_t memory;       /* bytes; 0: the plugin does not say */
};
DGC_API enum dgc_status dgc_plugin_devices(struct dgc_session *s, const struct dgc_plugin_device **devices,
                                           int *count, const char **why_none);
/* By what the processes of a cluster would reach each other: *module is the file of dgc's for an MPI library,
 * "dgc-mpi.so"; NULL where there is none or its library is not there, and *why_none (NULL is allowed) is a line that
 * says why. MPI is loaded, and not started. */
DGC_API enum dgc_status dgc_mpi(struct dgc_session *s, const char **module, const char **why_none);
/* Devices of the option devices (default: one), "/cpu:0": false behind the last one. */
DGC_API bool dgc_device(struct dgc_session *s, int index, const char **name);
/* Backends of this build, the default first. */
DGC_API bool dgc_backend(int index, const char **name, const char **help);
/* Tensors and texts of a checkpoint or data file, a line each, or as JSON. */
DGC_API enum dgc_status dgc_inspect(struct dgc_session *s, const char *path, bool json, const char **text);

/* What can be done with checkpoints without a model. `what`:
 *   show     what a file holds, with the least, greatest and mean of each tensor, and how many are NaN
 *   diff     in what two differ; DGC_MISMATCH if they do
 *   rename   writes one with the names that the option names says
 *   average  writes the mean of several, each element by f64; what is no float is the last one's, and so are texts
 *   to-npz   writes the tensors as numpy's arrays
 *   cast     writes one whose f32 are stored as the option to says: "f16", "bf16", or "f32"
 * `out`: the file that is written, which must not be there unless the option overwrite is set; else NULL. */
DGC_API enum dgc_status dgc_checkpoint(struct dgc_session *s, const char *what, const char *const *paths,
                                       int count, const char *out, bool json, const char **text);

/* What the training of the session was made of and has come to, as JSON: digests of the model's graph, of the data as
 * the model sees it, of the placed graph, of each distinct kernel and of all variables, seed, towers, batch, devices,
 * steps. Equal digests of the variables are equal bits. */
DGC_API enum dgc_status dgc_receipt(struct dgc_session *s, const char **text);
/* Logs that the tool's train --log has written, as one page of HTML that needs nothing else: curves of all figures, the
 * trainings beside each other, and the settings in which they differ. */
DGC_API enum dgc_status dgc_report(struct dgc_session *s, const char *const *logs, int count,
                                   const char **text);

/* --- tests as files: docs/testing.md --- */

/* A verb of the tool, with what follows it. */
struct dgc_command {
  const char *const *words; /* "train", "x.dsl", "--steps", "3" */
  int count;
  const char *input; /* what it reads as standard input, and its length */
  size_t input_size;
  bool joined; /* standard error goes where standard output does */
};
struct dgc_outcome {
  int code;           /* the exit code; -1: it has none, and `errors` says why */
  const char *output; /* until the next command; and its length */
  size_t output_size;
  const char *errors; /* what went to standard error */
};
/* Carries a command out in the folder of the test. False: it must not be, and `errors` says why. */
typedef bool dgc_command_fn(void *user, const struct dgc_command *command, struct dgc_outcome *out);
struct dgc_test {
  const char *scratch;        /* an empty folder, from the root: %t is a name in it */
  const char *const *defines; /* "NAME=VALUE": what %NAME is */
  int ndefines;
  bool update; /* whole-file goldens that differ are replaced */
  dgc_command_fn *run;
  void *user;
};
enum dgc_test_end {
  DGC_TEST_PASSED,
  DGC_TEST_FAILED,
  DGC_TEST_SKIPPED,        /* it requires what there is not */
  DGC_TEST_XFAILED,        /* as its XFAIL says */
  DGC_TEST_XPASSED,        /* though its XFAIL says otherwise */
  DGC_TEST_UPDATED,        /* and passed otherwise */
  DGC_TEST_NOTHING_TO_TEST /* a file without lines for tests */
};
struct dgc_test_result {
  size_t size; /* of the caller's struct */
  enum dgc_test_end end;
  const char *text; /* why; of updated ones, what has changed */
};
/* Tests a file of the current folder, where it is. DGC_OK whatever has come out; DGC_INPUT if it cannot be read. */
DGC_API enum dgc_status dgc_test(struct dgc_session *s, const char *path, const struct dgc_test *test,
                                 struct dgc_test_result *out);
/* Whether a text is as the lines CHECK of the file `path` say: DGC_MISMATCH if not, with a message. `prefixes`, as
 * "CHECK,ERROR", NULL: CHECK. */
DGC_API enum dgc_status dgc_check_lines(struct dgc_session *s, const char *path, const char *prefixes,
                                        const char *text, size_t len);

/* What a file that the option trace has written says, in ten lines, or its sums as JSON (microseconds). */
DGC_API enum dgc_status dgc_trace(struct dgc_session *s, const char *path, bool json, const char **text);

struct dgc_bench_device {
  const char *name;
  bool simulated;
  int64_t arena, high_water; /* bytes: planned, reached */
  double busy;               /* share of a step inside of kernels */
};
/* What the steps read: of the option data, or numbers made up from `low` to `high`, evenly, the same in each run. */
struct dgc_bench_input {
  const char *name;
  bool given;        /* by the option data: nothing below holds */
  int64_t low, high; /* of what is made up */
  const char *why;   /* what says so: "the model's range" */
};
/* With the option profile: what does the same for the same line, of all devices that are CPUs of this process. */
struct dgc_bench_line {
  const char *what; /* the first of the nodes: "h.matmul" */
  const char *how; /* "kernel", "copy", or the op: "matmul"; "conv by oneDNN" where another library does it */
  const char *where; /* "digits.dsl:9 (nn.dense, nn.dsl:7)"; NULL: it is not known */
  int depth; /* 0; else it is in so many loops, and a part of the last line before it that has one less */
  int count; /* in a step */
  double seconds;        /* of a step, summed up */
  double flops, traffic; /* operations, and bytes read and written, in a step */
  double roof; /* seconds that one thread would take that reaches the peak and the bandwidth below */
};
/* Of several devices or threads, and for a line of the model: seconds of a step, the mean of the threads. */
struct dgc_bench_place {
  const char *where; /* "digits.dsl:9"; "copies"; "outside kernels: …"; NULL: what has no line */
  double seconds;    /* here */
  double alone;      /* where one thread of the first device does all */
};
struct dgc_bench {
  size_t size; /* of the caller's struct */
  int64_t batch;
  int towers, threads, kernels, plan_steps, signals, steps;
  double compile_seconds; /* source to a loaded plan */
  double step_seconds;    /* median */
  double flops;           /* of one step */
  double peak;      /* f32 operations a second that the threads in use reach on this machine, measured now */
  double bandwidth; /* bytes a second that they read and write, measured now */
  /* Share of the threads' time outside of kernels: executor and waiting. Not a number: another compiler runs it
   * all, and nothing is known of that, nor of the arenas and of what is busy on `devices`. */
  double outside;
  int ndevices;
  const struct dgc_bench_device *devices;
  int ninputs;
  const struct dgc_bench_input *inputs;
  int nlines; /* without the option profile, none; the one that takes longest stands first */
  const struct dgc_bench_line *lines;
  /* A step by one thread of the first device, median; 0: that is all there is, or there are other processes. */
  double alone_seconds;
  int nplaces; /* 0 likewise; the one stands first that costs most over its share of `alone` */
  const struct dgc_bench_place *places;
  double
      bf16_peak; /* as `peak`, of products of bfloat16 added up in f32; 0: this machine has no units for them */
  /* Seconds of a step whose parts, one by one, took what their operations need at the peak or their bytes at the
   * bandwidth, whichever is longer: caches are faster, so it is a measure, no bound. Not a number: as `outside`. */
  double roof;
  const double *line_threads; /* by line: seconds of a step that threads have been at it, of all of them */
};
/* Times the option steps (default 100) of training on the option data, or on numbers made up. */
DGC_API enum dgc_status dgc_benchmark(struct dgc_session *s, struct dgc_bench *out);

/* Writes a text to a file that appears whole or not at all; "-" is standard output. */
DGC_API enum dgc_status dgc_write_file(struct dgc_session *s, const char *path, const char *text);

#ifdef __cplusplus
}
#endif

#endif
