/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the simulated driver. One lock guards everything: an entry point takes it with sim_enter() and
 * gives it back with sim_leave(). */
#ifndef SIMULATED_SIMULATED_H
#define SIMULATED_SIMULATED_H

#include "runtime/cuda/abi.h"
#include "tests/simulated_cuda/common.h"
#include "tests/simulated_cuda/module.h"

#include <pthread.h>

enum { MAX_DEVICES = 64, HOST = MAX_DEVICES /* the space of pinned host memory */ };

enum { /* what abi.h does not need */
       CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
       CUDA_ERROR_NOT_SUPPORTED = 801,
       CUDA_ERROR_STREAM_CAPTURE_MERGE = 902,
       CUDA_ERROR_STREAM_CAPTURE_UNMATCHED = 903,
       CUDA_ERROR_STREAM_CAPTURE_UNJOINED = 904,
       CUDA_ERROR_STREAM_CAPTURE_ISOLATION = 905,
       CUDA_ERROR_CAPTURED_EVENT = 907,
       CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD = 908
};

#define DRIVER(result, name, version, arguments) result name arguments;
#include "runtime/cuda/syms.def"

/* --- driver.c: entry and exit, devices, contexts --- */

struct CUctx_st { /* a device's primary context */
  struct object object;
  int device, users;
  unsigned generation; /* counts how often it came to its end; what belongs to an older one is dead */
  uint64_t peers;      /* devices whose memory it may access */
  CUresult failed; /* the first error of work on the device: every later call returns it, as on hardware */
};

extern struct CUctx_st sim_contexts[MAX_DEVICES];
extern int sim_ndevices, sim_arch;
extern bool sim_delay;

enum {
  ANY_TIME = 1,   /* needs no cuInit */
  NO_CONTEXT = 2, /* needs no current context */
  UNSAFE = 4,     /* not while this thread captures a stream */
  DESTROYS = 8    /* does its work on a failed device, too */
};
CUresult sim_enter(const char *entry_point, unsigned traits);
CUresult sim_leave(CUresult r);
_Noreturn void sim_hang(void); /* for a call that waits for a device that never answers */
/* Calls `some` again and again, as an entry point would, until it says false. */
void sim_go_on(bool (*some)(void));
struct CUctx_st *sim_current(void);
void sim_make_current(int device);
void sim_fail(int device, CUresult r);
uint64_t sim_random(void);
uint64_t sim_below(uint64_t n);  /* a random number below n */
uint64_t sim_stride(uint64_t n); /* a random one with which steps modulo n reach every number below n */
uint64_t sim_now(void);          /* ns */
/* Is it alive, of this kind, and its context too? */
bool sim_valid(const struct object *o, const char *kind);
void sim_begin(struct object *o, const char *kind, int device);

/* --- memory.c --- */

struct allocation {
  struct object object;
  int space; /* a device, or HOST */
  uintptr_t begin, pages;
  size_t bytes, page_bytes;
  unsigned char chunks[]; /* whether they are in use, and open */
};

void memory_open(int ndevices);
/* Makes the memory of these devices accessible, and no other device's. */
void memory_allow(uint64_t devices);
/* For a fault at `address`: true if the page is fine now. */
bool memory_fault(uintptr_t address);
/* Of which allocation are all these bytes part? `bytes` may be 0: then one behind the end will do. */
struct allocation *memory_find(uintptr_t address, size_t bytes);
/* Poisons what has not been touched: called before C code of the simulation uses it. */
void memory_touch(uintptr_t address, size_t bytes);
bool memory_is_device(uintptr_t address);
const char *memory_describe(uintptr_t address);

/* --- fiber.c: what runs kernels, on stacks of its own, and what catches their traps --- */

struct trap {
  int signal; /* 0: none */
  uintptr_t address;
};

void fibers_open(void);
/* Calls function(argument) on a fiber's stack; false after a trap. */
bool fiber_run(void (*function)(void *), void *argument, struct trap *trap);
/* The same for count threads that may wait for each other with fiber_wait(line). before(argument, i) is called
 * each time that thread i goes on. Returns a line on what went wrong, or NULL. */
const char *fiber_run_many(void (*function)(void *), void (*before)(void *, unsigned i), void *argument,
                           unsigned count, struct trap *trap);
void fiber_wait(int line);

/* --- kernel.c --- */

struct CUfunc_st {
  struct CUmod_st *module;
  const struct simulated_kernel *kernel;
};

struct CUmod_st {
  struct object object;
  int users; /* the handle, and work that launches its functions */
  void *library;
  int file;
  const struct simulated_module *info;
  struct CUfunc_st *functions;
};

void module_release(struct CUmod_st *m);

/* --- stream.c --- */

enum work_kind { WORK_KERNEL, WORK_COPY, WORK_FILL, WORK_CALL };

struct work { /* what a stream or a graph does on a device; shared by both */
  enum work_kind kind;
  int users, device;
  uint64_t devices; /* whose memory it may access */
  CUfunction function;
  unsigned grid[3], block[3];
  void **parameters; /* pointers into the same malloc */
  uintptr_t to, from;
  size_t bytes;
  unsigned char value;
  CUresult (*call)(void *);
  void *argument;
};

struct moment { /* one record of an event, or the end of a graph's launch */
  int users;
  bool done;
  uint64_t time;
  CUstream stream; /* that will reach it; meaningless when done */
  /* Or another process will, and this says when; the argument is freed with the moment. */
  bool (*come)(void *argument);
  void *argument;
};

enum op_kind { OP_WORK, OP_RECORD, OP_WAIT, OP_GRAPH };

struct op {
  struct op *next;
  enum op_kind kind;
  struct work *work;
  struct moment *moment;
  uint64_t issued;
  CUgraphExec exec;
  int left, nready, *missing, *ready; /* OP_GRAPH: nodes that are not done; those that could be next */
  bool newest;                        /* of these, the last to become so goes first */
  int late;                           /* a node that others go before; negative: none */
  uint64_t *finish;
};

struct CUstream_st {
  struct object object;
  struct CUctx_st *context;
  struct op *head, *tail;
  bool stuck;     /* its first operation never ends */
  uint64_t clock; /* when its work is done, if devices really ran side by side */
  struct capture *capture;
  int *frontier, nfrontier; /* nodes of the capture that come before the stream's next one */
};

struct CUevent_st {
  struct object object;
  struct CUctx_st *context;
  unsigned flags;
  struct moment *last;
  uint64_t capture; /* number of the capture that it was last recorded in, or 0 */
  int *frontier, nfrontier;
};

struct work *work_new(enum work_kind kind, struct CUctx_st *context);
void work_drop(struct work *w);
CUresult work_run(struct work *w);
/* Asked once before each piece of work is run. */
bool work_stuck(const struct work *w);
const char *work_name(const struct work *w);
/* NULL if it is a stream to use now; complains. */
CUresult stream_check(CUstream s);
/* Adds work (and takes it over) to a stream or to the graph that it is captured into. */
CUresult stream_add(CUstream s, struct work *w);
struct op *stream_push(CUstream s, enum op_kind kind);
struct moment *moment_new(CUstream s);
void moment_drop(struct moment *m);
void stream_some(void); /* runs what the mood says */
void stream_one(void);  /* one operation that may run, if there is any */
void streams_finish(int device);

/* --- capture.c --- */

struct node {
  struct work *work;
  int *before, nbefore; /* nodes that come first */
};

struct CUgraph_st {
  struct object object;
  struct node *nodes;
  int count;
};

struct CUgraphExec_st {
  struct object object;
  int users; /* the handle, and launches */
  struct node *nodes;
  int count;
  int **after, *nafter; /* the edges the other way */
  struct moment *last;  /* end of its last launch: launches follow each other */
};

bool capture_active(uint64_t number);
bool capture_here(void); /* does this thread capture? */
void capture_invalidate_here(void);
CUresult capture_add(CUstream s, struct work *w);
CUresult capture_record(CUstream s, CUevent e);
CUresult capture_wait(CUstream s, CUevent e);
void capture_forget_stream(CUstream s);
void exec_release(CUgraphExec e);
void graph_start(struct op *op);
/* Runs one node of the launch; true when all are done. */
bool graph_step(CUstream s, struct op *op);

CUresult kernel_run(const struct work *w);

/* --- what cuBLAS uses; exported --- */

EXPORT CUresult sim_blas_enter(const char *entry_point, unsigned traits);
EXPORT CUresult sim_blas_leave(CUresult r);
EXPORT int sim_blas_device(void); /* of the current context */
EXPORT int sim_blas_stream_device(CUstream s);
/* Is [address, address + bytes) of one allocation of the device? */
EXPORT bool sim_blas_range(int device, const void *address, size_t bytes);
/* The same, and it is about to be used: see memory_touch(). */
EXPORT bool sim_blas_touch(int device, const void *address, size_t bytes);
EXPORT CUresult sim_blas_call(CUstream s, CUresult (*call)(void *), void *argument);
EXPORT void sim_blas_begin(struct object *o);
EXPORT void sim_blas_end(struct object *o);
EXPORT bool sim_blas_is(const struct object *o);
EXPORT void sim_blas_complain(const char *why);

/* --- what NCCL uses beside that; exported: ranks.c --- */

/* As sim_enter; refuses and spoils a capture. */
EXPORT CUresult sim_nccl_enter(const char *entry_point, unsigned traits);
EXPORT int sim_nccl_version(void);
/* Is this a device that a context is retained of? */
EXPORT bool sim_nccl_device(int device);
EXPORT void sim_nccl_begin(struct object *o, int device);
EXPORT void sim_nccl_end(struct object *o);
EXPORT bool sim_nccl_is(const struct object *o);
EXPORT void sim_nccl_complain(const char *why);
/* One rank's part of a sum. */
struct sim_rank {
  CUstream stream;
  const void *from;
  void *to;
};
/* Are these bytes memory of the device? */
EXPORT bool sim_nccl_range(int device, const void *address, size_t bytes);
/* In each stream, at its time, the rank's share is taken; when all have been taken, each stream at its time is given
 * the sum: the first rank's share, to which the others are added in their order. `a` is what it adds to. */
EXPORT void sim_nccl_sum(const struct sim_rank *ranks, int count, size_t bytes,
                         void (*add)(void *a, const void *b, size_t bytes));
/* The same for the ranks of this process, where there are others: the sum of this number, from 0 on, that the processes
 * of the board make. */
struct board;
EXPORT void sim_nccl_sum_among(const struct sim_rank *ranks, const int *numbers, int count,
                               struct board *board, uint64_t sum, size_t bytes,
                               void (*add)(void *a, const void *b, size_t bytes));
/* Makes a random one of them current, as a library may that does not say what it leaves. */
EXPORT void sim_nccl_wander(const int *devices, int count);

/* --- board.c: what the processes of a communicator share --- */

enum { SIM_ID_BYTES = 128 };
/* Makes an empty one, and what it is called. */
EXPORT bool board_new(char path[SIM_ID_BYTES]);
/* For so many ranks; NULL: there is none of this name. */
EXPORT struct board *board_open(const char *path, int count);
EXPORT struct board *board_use(struct board *b);
EXPORT void board_drop(struct board *b);
/* A rank comes; returns when all have, and the devices go on meanwhile: another process may need what they do first. */
EXPORT void board_join(struct board *b);
EXPORT void board_await(const struct board *b);
/* Whether the shares of a sum may be given: all ranks have read those of the last but one; whether all are there. */
bool board_is_free(const struct board *b, uint64_t sum);
bool board_is_full(const struct board *b, uint64_t sum);
/* False: too many bytes; not as many as the others'. */
bool board_give(struct board *b, int rank, uint64_t sum, const void *data, size_t bytes);
bool board_take(struct board *b, int rank, uint64_t sum, void *to, size_t bytes,
                void (*add)(void *a, const void *b, size_t bytes));

#endif
