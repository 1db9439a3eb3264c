/* SPDX-License-Identifier: Apache-2.0 */
/* What passes may know about devices. The runtime fills it in; a graph carries it in its header. */
#ifndef DGC_IR_TARGET_H
#define DGC_IR_TARGET_H

#include "base/diag.h"
#include "base/str.h"

#include <stdbool.h>

/* "/job:worker/task:0/gpu:1/0"; a field that is not given is NULL or -1. */
struct device_name {
  const char *job;  /* NULL = any */
  int task;         /* -1 = any */
  const char *kind; /* "cpu", "gpu", "pjrt", "tpu"; NULL = any */
  int index;        /* -1 = any */
  int part;         /* of a GPU that stands for several: "gpu:0/0" and "gpu:0/1" are one card; -1 = any */
};

struct device {
  struct device_name name;
  const char *text; /* canonical: "/cpu:0", "/job:ps/task:1/cpu:0" */
  int memory;       /* devices with equal numbers share one memory: no copy is needed between them */
  bool simulated;
  bool no_towers; /* it keeps variables, or splits batches; "(storage)" in texts */
};

enum { MAX_TARGET_DEVICES = 16384 };

struct target {
  struct device *devices;
  int ndevices;
  const char *plugin; /* the file of the PJRT plugin that has devices of these; NULL: none is named */
};

/* Reads "cpu:0", "/CPU:0", "/job:ps/task:3/device:GPU:0"; case does not matter. False if it is none. */
bool device_name_parse(struct arena *a, const char *text, struct device_name *out);
/* Whether several devices run one program, which another compiler makes: those of a PJRT plugin. */
bool target_shares_program(const struct target *t);
/* Whether `d` satisfies every field that `want` gives. */
bool device_matches(const struct device_name *want, const struct device_name *d);
/* Fields of `over` win, one by one. */
struct device_name device_name_merge(struct device_name base, struct device_name over);
const char *device_name_text(struct arena *a, struct device_name n);
/* "cpu:0-1,gpu:0", "cpu:0,cpu:3", "gpu:0/0-3", "/job:worker/task:0/cpu:0". An error in `d` (at `loc`) and false
 * if it is malformed, holds a device twice, a GPU whole and in parts, or more than MAX_TARGET_DEVICES. */
bool target_parse(struct arena *a, const char *list, struct target *out, struct diags *d, struct loc loc);
/* For each device the first one of the list whose memory it has, unless a text says otherwise: all CPUs of a task share
 * one, and all parts of a GPU. */
const int *target_usual_memories(struct arena *a, const struct target *t);
/* Adds /cpu:0 of the task of device `like`, which every machine has, behind the others, in an array of `a`, as
 * storage. Its number. */
int target_add_cpu(struct arena *a, struct target *t, int like);

/* Whether it is one of the job ps, which keeps variables; and whether towers may lie on it: that is no server, and not
 * there to keep something only. */
bool device_is_server(const struct device *d);
bool device_carries_towers(const struct device *d);

/* Which process runs each device when every task of the cluster is one: tasks are numbered as they come in the list,
 * devices of no task count as task 0's. `of` has room for all devices. How many processes. */
int target_processes(const struct target *t, int *of);

/* The numbers of tasks that a text lists: "1,2,8", "1..1024" (the powers of two times the first, and the last); in `a`.
 * What is wrong with it, in `a`, or NULL. */
const char *tasks_read(struct arena *a, const char *text, const int **tasks, int *count);

/* The process of a task, "worker:3", by that numbering; -1: there is no such task. */
int target_process(const struct target *t, const int *of, const char *task);

/* A copy that shares nothing with `t`. */
struct target target_copy(struct arena *a, const struct target *t);
/* The devices of a cluster: "worker=host:port,host:port;ps=host:port", or with numbers of tasks, "worker=2;ps=1". Each
 * worker has the devices of the list (NULL: cpu:0), each parameter server its /cpu:0; a list that names jobs is taken
 * as it is. An error in `d` and false if the specification is malformed. */
bool cluster_parse(struct arena *a, const char *spec, const char *devices, struct target *out,
                   struct diags *d);
/* The same cluster by the numbers of its tasks, "worker=2;ps=1", if the specification names hosts; NULL if it names
 * none, or is malformed (an error in `d`). */
const char *cluster_numbered(struct arena *a, const char *spec, struct diags *d);
/* By device, the number of the host that its task is on, as the specification names it, without a port; hosts are
 * numbered as devices come to them, and devices of no such task are on the first. NULL: they are on no two hosts. */
const int *cluster_hosts(struct arena *a, const char *spec, const struct target *t);

/* Towers over devices, law 4: contiguous blocks, the first towers mod devices get one more. The device index. */
int tower_device(int tower, int towers, int ndevices);
/* Rows over towers: the first rows mod towers get one more. */
int64_t tower_rows(int tower, int towers, int64_t rows);
int64_t tower_first_row(int tower, int towers, int64_t rows);
/* The fixed tree of sums over towers: how many of a range of so many, at least two, stand left of its cut. */
int tower_cut(int towers);

#endif
