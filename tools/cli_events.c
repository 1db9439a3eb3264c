/* SPDX-License-Identifier: Apache-2.0 */
/* The reports of a training as event files, which TensorBoard reads: figures by step, histograms of what is trained,
 * and the placed graph.
 *
 * A file is a row of records: eight bytes of length, a CRC-32C of these, the record, a CRC-32C of that (TensorFlow's
 * lib/io/record_writer.h). A record is an Event in the encoding of protocol buffers (util/event.proto,
 * framework/summary.proto, graph.proto). Each run has a file of its own; TensorBoard drops what older ones
 * have from the step on at which a newer one begins. */
#include "cli.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { BUCKETS = 40 };

static struct {
  int fd; /* -1: this process writes none */
  char path[4096];
  bool failed;
} events = {.fd = -1};

/* --- bytes --- */

struct bytes {
  unsigned char *data;
  size_t len, cap;
  bool failed; /* there is no memory */
};

static void put(struct bytes *b, const void *data, size_t len) {
  if (b->len + len > b->cap) {
    size_t cap = 2 * (b->len + len) + 64;
    unsigned char *more = realloc(b->data, cap);
    if (!more) b->failed = true;
    if (!more) return;
    b->data = more;
    b->cap = cap;
  }
  if (len) memcpy(b->data + b->len, data, len);
  b->len += len;
}

static void put_fixed(struct bytes *b, uint64_t value, int bytes) {
  unsigned char text[8];
  for (int i = 0; i < bytes; i++) text[i] = (unsigned char)(value >> 8 * i);
  put(b, text, (size_t)bytes);
}

static void put_varint(struct bytes *b, uint64_t value) {
  for (; value >= 0x80; value >>= 7) put_fixed(b, (value & 0x7f) | 0x80, 1);
  put_fixed(b, value, 1);
}

/* --- fields, by the numbers that the .proto files give them --- */

enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };

static void put_key(struct bytes *b, int field, int wire) { put_varint(b, (uint64_t)(field << 3 | wire)); }

static void put_integer(struct bytes *b, int field, int64_t value) {
  put_key(b, field, VARINT);
  put_varint(b, (uint64_t)value);
}

static void put_double(struct bytes *b, int field, double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  put_key(b, field, FIXED64);
  put_fixed(b, bits, 8);
}

static void put_float(struct bytes *b, int field, float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  put_key(b, field, FIXED32);
  put_fixed(b, bits, 4);
}

static void put_bytes(struct bytes *b, int field, const void *data, size_t len) {
  put_key(b, field, BYTES);
  put_varint(b, len);
  put(b, data, len);
}

static void put_message(struct bytes *b, int field, struct bytes *message) {
  put_bytes(b, field, message->data, message->len);
  b->failed |= message->failed;
  free(message->data);
}

static void put_doubles(struct bytes *b, int field, const double *values, int count) {
  put_key(b, field, BYTES);
  put_varint(b, 8 * (uint64_t)count);
  for (int i = 0; i < count; i++) {
    uint64_t bits;
    memcpy(&bits, &values[i], sizeof bits);
    put_fixed(b, bits, 8);
  }
}

/* --- records --- */

/* Castagnoli's polynomial, bits reflected; as TFRecord masks it. */
static uint32_t masked_crc(const unsigned char *data, size_t len) {
  uint32_t crc = 0xffffffff;
  for (size_t i = 0; i < len; i++) {
    crc ^= data[i];
    for (int k = 0; k < 8; k++) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
  }
  crc = ~crc;
  return (crc >> 15 | crc << 17) + 0xa282ead8;
}

static void fail(struct cli *c) {
  cli_clear_bar();
  if (!events.failed) fprintf(stderr, "error: cannot write %s: %s\n", events.path, strerror(errno));
  events.failed = c->failed = true;
  cli_events_close();
}

/* One write: whoever is killed leaves whole records. */
static void put_event(struct cli *c, int64_t step, int field, struct bytes *message) {
  struct bytes event = {0}, record = {0};
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  put_double(&event, 1, (double)now.tv_sec + (double)now.tv_nsec * 1e-9);
  put_integer(&event, 2, step);
  put_message(&event, field, message);
  put_fixed(&record, event.len, 8);
  put_fixed(&record, record.data ? masked_crc(record.data, 8) : 0, 4);
  put(&record, event.data, event.len);
  put_fixed(&record, event.data ? masked_crc(event.data, event.len) : 0, 4);
  bool ready = !event.failed && !record.failed;
  errno = ENOMEM;
  ssize_t n = ready ? write(events.fd, record.data, record.len) : -1;
  if (n >= 0 && n < (ssize_t)record.len) errno = ENOSPC;
  if (n < (ssize_t)record.len) fail(c);
  free(event.data);
  free(record.data);
}

/* --- the file --- */

/* A folder with events of another training, which these would be mixed with. */
static bool has_events(const char *folder) {
  DIR *d = opendir(folder);
  bool found = false;
  for (struct dirent *e; d && !found && (e = readdir(d));) found = strstr(e->d_name, ".tfevents.") != NULL;
  if (d) closedir(d);
  return found;
}

int cli_events_open(struct cli *c) {
  char host[256] = "";
  if (!c->log_dir || c->process > 0) return DGC_OK;
  bool made = mkdir(c->log_dir, 0777) == 0 || errno == EEXIST;
  if (made && !c->resumes && !c->overwrite && has_events(c->log_dir)) {
    cli_usage(c, "%s has the events of a training already", c->log_dir);
    fputs("dgc train: help: --resume goes on with them, --overwrite begins anew behind them\n", stderr);
    return DGC_USAGE;
  }
  gethostname(host, sizeof host - 1);
  errno = ENAMETOOLONG;
  int len = snprintf(events.path, sizeof events.path, "%s/events.out.tfevents.%lld.%s.%ld", c->log_dir,
                     (long long)time(NULL), host, (long)getpid());
  if (made && len > 0 && len < (int)sizeof events.path)
    events.fd = open(events.path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (events.fd >= 0) return DGC_OK;
  fprintf(stderr, "error: cannot write events to %s: %s\n", c->log_dir, strerror(errno));
  return DGC_RUNTIME;
}

/* --- the graph --- */

/* framework/types.proto; 0: none */
static int tensorflow_type(const char *dtype) {
  static const struct {
    const char *name;
    int number;
  } types[] = {{"f32", 1}, {"f64", 2},   {"i32", 3},   {"u8", 4},
               {"i64", 9}, {"bool", 10}, {"bf16", 14}, {"f16", 19}};
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (strcmp(types[i].name, dtype) == 0) return types[i].number;
  return 0;
}

/* An entry of a node's map of attributes; `value` is an AttrValue. */
static void put_attribute(struct bytes *node, const char *name, struct bytes *value) {
  struct bytes entry = {0};
  put_bytes(&entry, 1, name, strlen(name));
  put_message(&entry, 2, value);
  put_message(node, 5, &entry);
}

static void put_text(struct bytes *node, const char *name, const char *text) {
  struct bytes value = {0};
  if (!text || !*text) return;
  put_bytes(&value, 2, text, strlen(text));
  put_attribute(node, name, &value);
}

static void put_type(struct bytes *node, const char *dtype) {
  struct bytes value = {0};
  put_integer(&value, 6, tensorflow_type(dtype));
  put_attribute(node, "T", &value);
}

/* A list of one shape, which TensorBoard writes at the edges. */
static void put_shape(struct bytes *node, const struct dgc_tensor *t) {
  struct bytes value = {0}, list = {0}, shape = {0};
  for (int i = 0; i < t->rank; i++) {
    struct bytes size = {0};
    put_integer(&size, 1, t->shape[i]);
    put_message(&shape, 2, &size);
  }
  put_message(&list, 7, &shape);
  put_message(&value, 1, &list);
  put_attribute(node, "_output_shapes", &value);
}

/* "tower_1/h.kernel" is tower_1/h/kernel: TensorBoard folds by what stands between strokes. */
static char folded(char c) { return c == '.' ? '/' : c; }

static int compare_folded(const void *a, const void *b) {
  const char *x = (*(const struct dgc_node *const *)a)->result.name;
  const char *y = (*(const struct dgc_node *const *)b)->result.name;
  while (*x && folded(*x) == folded(*y)) x++, y++;
  return (unsigned char)folded(*x) - (unsigned char)folded(*y);
}

/* Whether no two names become one. */
static bool names_fold(const struct dgc_node *const *nodes, int count) {
  size_t size = (size_t)count * sizeof *nodes;
  const struct dgc_node **sorted = malloc(size + 1);
  bool folds = sorted != NULL;
  if (folds && count) memcpy(sorted, nodes, size);
  if (folds) qsort(sorted, (size_t)count, sizeof *sorted, compare_folded);
  for (int i = 1; folds && i < count; i++) folds = compare_folded(&sorted[i - 1], &sorted[i]) != 0;
  free(sorted);
  return folds;
}

static void put_name(struct bytes *node, int field, const char *name, bool folds) {
  put_bytes(node, field, name, strlen(name));
  if (node->failed) return;
  for (size_t i = node->len - strlen(name); folds && i < node->len; i++)
    node->data[i] = (unsigned char)folded((char)node->data[i]);
}

static void put_node(struct bytes *graph, const struct dgc_node *n, bool folds) {
  struct bytes node = {0};
  put_name(&node, 1, n->result.name, folds);
  put_bytes(&node, 2, n->op, strlen(n->op));
  for (int i = 0; i < n->ninputs; i++) put_name(&node, 3, n->inputs[i], folds);
  put_bytes(&node, 4, n->device, strlen(n->device));
  put_shape(&node, &n->result);
  put_text(&node, "distribution", n->distribution);
  put_text(&node, "rule", n->rule);
  put_text(&node, "where", n->where);
  put_type(&node, n->result.dtype);
  put_message(graph, 1, &node);
}

/* A GraphDef: nodes, and the version of the form. */
static void put_graph(struct cli *c) {
  const struct dgc_node *const *nodes;
  int count;
  struct bytes graph = {0}, versions = {0};
  if (dgc_graph(c->session, "train", &nodes, &count)) return;
  bool folds = names_fold(nodes, count);
  for (int i = 0; i < count; i++) put_node(&graph, nodes[i], folds);
  put_integer(&versions, 1, 22);
  put_message(&graph, 4, &versions);
  put_event(c, dgc_step(c->session), 4, &graph);
}

void cli_events_run(struct cli *c) {
  static const char version[] = "brain.Event:2";
  struct bytes text = {0}, begins = {0};
  int64_t step = dgc_step(c->session);
  if (events.fd < 0) return;
  put(&text, version, sizeof version - 1);
  put_event(c, 0, 3, &text); /* file_version */
  if (events.fd >= 0 && (c->resumes || c->overwrite)) {
    put_integer(&begins, 1, 1); /* SessionLog.START: what has this step or a later one is no longer so */
    put_event(c, step + 1, 7, &begins);
  }
  if (events.fd >= 0) put_graph(c);
}

void cli_events_close(void) {
  if (events.fd >= 0) close(events.fd);
  events.fd = -1;
}

/* --- figures --- */

static void put_scalar(struct bytes *summary, const char *prefix, const char *name, double number) {
  struct bytes value = {0};
  char tag[512];
  int len = snprintf(tag, sizeof tag, "%s%s", prefix, name);
  put_bytes(&value, 1, tag, len < (int)sizeof tag ? (size_t)len : sizeof tag - 1);
  put_float(&value, 2, (float)number);
  put_message(summary, 1, &value);
}

/* "val.loss" is val/loss: TensorBoard groups by what stands before a stroke. */
static void put_scalars(struct bytes *summary, const struct dgc_progress *p) {
  for (int i = 0; i < p->nlosses; i++) put_scalar(summary, "train/", p->losses[i].name, p->losses[i].value);
  if (p->nlosses != 1) put_scalar(summary, "", "loss", p->loss);
  for (int i = 0; i < p->nmetrics; i++)
    put_scalar(summary, "train/", p->metrics[i].name, p->metrics[i].value);
  for (int i = 0; p->evaluated && i < p->nvalidation; i++)
    put_scalar(summary, "val/", p->validation[i].name + strlen("val."), p->validation[i].value);
  for (int i = 0; i < p->nrates; i++)
    put_scalar(summary, p->nlosses == 1 ? "" : "rate/", p->nlosses == 1 ? "rate" : p->rates[i].name,
               p->rates[i].value);
  put_scalar(summary, "", "examples_per_second", p->examples_per_second);
}

/* --- histograms --- */

static int64_t elements_of(const struct dgc_tensor *t) {
  int64_t n = 1;
  for (int i = 0; i < t->rank; i++) n *= t->shape[i];
  return n;
}

static double element(const void *data, bool single, int64_t i) {
  return single ? (double)((const float *)data)[i] : ((const double *)data)[i];
}

/* Buckets of one width from the least to the greatest finite element; a NaN and what is infinite are in none. */
static void put_histogram(struct bytes *summary, const char *name, const void *data, bool single,
                          int64_t count) {
  double least = INFINITY, most = -INFINITY, sum = 0, squares = 0, limits[BUCKETS], counts[BUCKETS] = {0};
  int64_t finite = 0;
  for (int64_t i = 0; i < count; i++) {
    double x = element(data, single, i);
    if (!isfinite(x)) continue;
    finite++;
    sum += x;
    squares += x * x;
    if (x < least) least = x;
    if (x > most) most = x;
  }
  if (!finite) return;
  double width = (most - least) / BUCKETS;
  for (int k = 0; k < BUCKETS; k++) limits[k] = k + 1 < BUCKETS ? least + width * (k + 1) : most;
  for (int64_t i = 0; i < count; i++) {
    double x = element(data, single, i);
    if (!isfinite(x)) continue;
    int k = width > 0 ? (int)((x - least) / width) : BUCKETS - 1;
    counts[k < BUCKETS ? k : BUCKETS - 1]++;
  }
  struct bytes histogram = {0}, value = {0};
  put_double(&histogram, 1, least);
  put_double(&histogram, 2, most);
  put_double(&histogram, 3, (double)finite);
  put_double(&histogram, 4, sum);
  put_double(&histogram, 5, squares);
  put_doubles(&histogram, 6, limits, BUCKETS);
  put_doubles(&histogram, 7, counts, BUCKETS);
  char tag[512];
  int len = snprintf(tag, sizeof tag, "weights/%s", name);
  put_bytes(&value, 1, tag, len < (int)sizeof tag ? (size_t)len : sizeof tag - 1);
  put_message(&value, 5, &histogram);
  put_message(summary, 1, &value);
}

/* All processes of a cluster read them together; one writes. */
static void put_histograms(struct cli *c, struct bytes *summary) {
  struct dgc_tensor t;
  for (int i = 0; dgc_variable(c->session, i, &t); i++) {
    bool single = strcmp(t.dtype, "f32") == 0;
    if (!dgc_trained(c->session, t.name) || (!single && strcmp(t.dtype, "f64") != 0)) continue;
    size_t size = (size_t)elements_of(&t) * (single ? sizeof(float) : sizeof(double));
    void *data = malloc(size + 1);
    if (data && dgc_read(c->session, t.name, data, size) == DGC_OK && events.fd >= 0)
      put_histogram(summary, t.name, data, single, elements_of(&t));
    free(data);
  }
}

void cli_events_report(struct cli *c, const struct dgc_progress *p) {
  struct bytes summary = {0};
  if (!c->log_dir || !p->log_due || events.failed) return;
  put_scalars(&summary, p);
  if (p->epoch_end || p->end) put_histograms(c, &summary);
  if (events.fd >= 0)
    put_event(c, p->total_steps, 5, &summary);
  else
    free(summary.data);
}
