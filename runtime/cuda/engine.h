/* SPDX-License-Identifier: Apache-2.0 */
/* The open CUDA backend: cards, the devices on them, and what belongs to each.
 *
 * A device has one stream for its work (QUEUE_WORK): whatever is given to it happens in that order. Its second
 * stream moves bytes beside that work: from and to the host, and in runs what it copies from other devices
 * (QUEUE_COPIES). Between two runs nothing of a run is left there that the first stream has not waited for, or
 * that of another device, which is the same once all have met. Devices on one card share its
 * context and memory. Everything made here is destroyed by cuda_close; inside of a run nothing is freed, and nothing
 * made but slots of rings (struct cuda_ring) and the threads that fill them. */
#ifndef DGC_RUNTIME_CUDA_ENGINE_H
#define DGC_RUNTIME_CUDA_ENGINE_H

#include "runtime/backend.h"
#include "runtime/cuda/library.h"
#include "runtime/cuda/program.h"

#include <pthread.h>

struct cuda_card {
  int ordinal; /* the driver's number for it, /gpu:N */
  CUdevice handle;
  CUcontext context; /* its primary one; NULL: not retained */
  int arch;          /* 10 * major + minor */
};

/* Bytes on their way from the host: in pinned memory, then beside the device's work in memory of the card. */
struct cuda_slot {
  void *pinned;
  CUdeviceptr staged; /* 0: small ones go straight to their place */
  CUevent arrived, done;
  bool taken; /* and not sent yet */
  struct cuda_slot *next;
};

struct cuda_ring {
  struct cuda_slot *slots; /* room for `most` */
  struct cuda_slot *last;  /* the one that was taken last: behind it comes the one that has waited longest */
  int count, most;
  size_t bytes;        /* of each */
  bool pinned, staged; /* what each has */
};

/* Memory of the host that somebody has for copies to the cards. */
struct cuda_pinned {
  char *data; /* NULL: none */
  size_t bytes;
  bool used; /* else kept for the next one who asks */
  struct cuda_pinned *next;
};

/* Pinned memory that bytes pass through in pieces, in turns. */
struct cuda_pieces {
  void *pinned[2];
  CUevent filled[2], emptied[2];
};

/* What is read later. */
struct cuda_deferred {
  char (*pinned)[DEFERRED_BYTES]; /* DEFERRED_READS of them; made on need, as the events are */
  CUevent arrived[DEFERRED_READS];
  bool taken[DEFERRED_READS]; /* not ended yet */
};

/* Memory of a device for one step at a time. */
enum cuda_scratch_use { SCRATCH_A, SCRATCH_B, SCRATCH_C, SCRATCH_REDUCE, SCRATCH_COUNT };

struct cuda_outgrown {
  CUdeviceptr data;
  struct cuda_outgrown *next;
};

/* The kernel step that was prepared last, which the next one may join. */
struct cuda_last {
  const struct step *step;
  const void *code; /* NULL: it cannot be joined */
  struct arena *arena;
  struct command *command;  /* of the group's first step */
  struct cuda_group *group; /* NULL: it is alone */
};

struct cuda_device {
  const char *text;
  struct cuda_card *card;                  /* NULL: a device of another backend */
  CUstream stream, copies;                 /* QUEUE_WORK, QUEUE_COPIES */
  CUevent met;                             /* for meetings of all devices */
  CUevent began, ended;                    /* of a timed run */
  bool loose;                              /* was given work since all devices met */
  bool read_by_host;                       /* in runs, by means of the second stream */
  struct cuda_ring small, large, straight; /* from the host; what is pinned already */
  CUevent read;                            /* when the last of that has been read; NULL: it has */
  pthread_mutex_t reading;                 /* one reader at a time */
  struct cuda_pieces reader;               /* to the host */
  struct cuda_deferred deferred;           /* likewise */
  struct cuda_pieces **from; /* by device: from a card whose memory this one cannot reach; made on need */
  struct {
    CUdeviceptr data;
    size_t bytes;
  } scratch[SCRATCH_COUNT];
  struct cuda_outgrown *outgrown;
  CUdeviceptr sets; /* memory for the tables of many.c: the present slab */
  size_t sets_used, sets_bytes;
  struct cuda_last last;
  cublasHandle_t blas; /* made on need */
  CUdeviceptr workspace;
};

struct cuda_event {
  CUevent event;
  CUstream stream; /* where it is recorded */
  struct cuda_engine *engine;
  int device;
  struct cuda_event *next;
};

struct cuda_engine {
  struct arena *arena;
  struct cuda_card *cards;
  int ncards;
  struct cuda_device *devices; /* as in the target */
  int ndevices, first;         /* the first of ours */
  bool tf32;
  int limit;                   /* seconds that are waited for a device outside of runs; 0: for ever */
  _Atomic bool *lost;          /* that was too long; NULL without a limit */
  bool timed, replayed;        /* the present run */
  bool *peers;                 /* [a * ncards + b]: card a reaches the memory of card b, and b that of a */
  struct cuda_event *events;   /* all marks */
  struct cuda_code *code;      /* see code.c */
  struct cuda_leaf *leaves;    /* see leaves.c; made on need */
  struct cuda_clique *cliques; /* see nccl.c; made on need */
  struct cuda_pinned *pinned;
  struct workers *movers; /* see fill.c; made on need, */
  bool no_movers;         /* unless there are none to be had */
  pthread_mutex_t moving; /* one that they work for at a time */
  bool recording;         /* failures end the recording, not the engine */
  bool unrecorded;        /* one has */
  _Atomic bool failed;
  pthread_mutex_t lock; /* of the messages */
  char message[512];    /* the first failure */
  /* What ended a recording, until the run that took its place is over, and the name of the error. */
  char cause[512], cause_name[64]; /* "": nothing */
};

/* --- context.c --- */

/* Keeps a failed call as the engine's failure if it is the first. A recording is only ended by it: then the run is
 * issued call by call, and if that fails with the same error, it is the recording's call that is reported. True: it
 * has not failed. */
bool cuda_check(struct cuda_engine *e, int device, const char *call, CUresult result);
void cuda_fail(struct cuda_engine *e, int device, const char *call, const char *name, const char *text);
static inline bool cuda_failed(const struct cuda_engine *e) {
  return atomic_load_explicit(&e->failed, memory_order_relaxed) || e->unrecorded;
}
/* A call of the driver for a device, unless something has failed: whether all is well. */
#define CUDA(e, device, name, ...) \
  (cuda_failed(e) ? false : cuda_check((e), (device), #name, cuda.name(__VA_ARGS__)))

/* Reports the failure: see struct backend. */
bool cuda_status(void *self, struct diags *d);

/* Makes the card of `device` this thread's current one, and remembers that it is. */
bool cuda_use(struct cuda_engine *e, int device);
/* The thread may have changed it meanwhile: called wherever the program comes in. */
void cuda_come_in(void);

/* Cards and devices of the target. False after an error in `d`. */
bool cuda_open_cards(struct cuda_engine *e, const struct target *target, struct diags *d);
/* Gives up the cards; nothing may run there. */
void cuda_close_cards(struct cuda_engine *e);
int cuda_list(struct arena *a, const char *plugin, struct device_info **out, const char **why_none);
/* The first device on the card. */
int cuda_device_on(const struct cuda_engine *e, const struct cuda_card *card);
/* Whether the two devices' cards reach each other's memory: one card does. */
bool cuda_peers(const struct cuda_engine *e, int a, int b);

/* --- stream.c --- */

bool cuda_event_create(struct cuda_engine *e, int device, unsigned flags, CUevent *out);
bool cuda_open_streams(struct cuda_engine *e, int device);
void cuda_close_streams(struct cuda_engine *e, int device);
/* Later work of each device waits for what all have been given. */
bool cuda_meet(struct cuda_engine *e);
/* Later work of stream `to` (of device `device`) waits for what `from` has been given, by means of `event`. */
bool cuda_order(struct cuda_engine *e, int device, CUstream to, int from_device, CUstream from,
                CUevent event);
/* The host waits until a card, or all of them, have done what they were given. */
void cuda_wait(struct cuda_engine *e, const struct cuda_card *card);
/* Until the event has come. False: a failure; also when it takes longer than the limit. */
bool cuda_await(struct cuda_engine *e, int device, CUevent event);
/* Whether a device was waited for too long: nothing that it may still work with is freed. */
bool cuda_lost(const struct cuda_engine *e);

bool cuda_mark(void *self, struct arena *a, int device, enum queue queue, struct command *c, void **event,
               struct diags *d);
bool cuda_follow(void *self, struct arena *a, int device, enum queue queue, void *event, struct command *c,
                 struct diags *d);
bool cuda_reached(void *event);
bool cuda_begin(void *self, bool timed);
bool cuda_end(void *self, bool wait);
uint64_t cuda_busy(void *self, int device);

/* In the device's order. */
bool cuda_launch(struct cuda_engine *e, int device, CUfunction function, const struct cuda_launch *l,
                 void **params);
void cuda_run_nothing(void *const *args, const void *state);

/* --- graph.c --- */

void *cuda_record(void *self, void (*issue)(void *arg), void *arg);
bool cuda_replay(void *self, void *recording);
void cuda_forget(void *self, void *recording);

/* --- fill.c --- */

/* What goes into pinned memory: `bytes` from `from` on in `count` pieces, of which the last one may be shorter, each to
 * a place of its own. The caller's thread calls `send` for them in their order, each as soon as it is filled; false: a
 * failure, and the others are left. */
enum { FILLED_AT_ONCE = 16 };
struct cuda_filling {
  const char *from;
  size_t bytes, piece; /* of all, of each */
  int count;
  void *places[FILLED_AT_ONCE];
  bool (*send)(void *arg, int piece);
  void *arg;
};
/* By several threads where that is faster: while one piece is sent and travels, the next ones are filled. False: a send
 * has failed. */
bool cuda_fill(struct cuda_engine *e, const struct cuda_filling *p);
void cuda_close_fill(struct cuda_engine *e);

/* --- memory.c --- */

bool cuda_open_memory(struct cuda_engine *e, int device);
void cuda_close_memory(struct cuda_engine *e, int device);
void *cuda_alloc(void *self, int device, size_t bytes);
void cuda_free(void *self, int device, void *data, size_t bytes);
bool cuda_free_memory(void *self, int device, size_t *available, size_t *total);
/* Reports that there is none, or the failure that is the cause. */
void cuda_no_work_space(struct cuda_engine *e, int device, size_t bytes, struct diags *d);
/* At least this much for steps of the device. False after an error in `d`. */
bool cuda_scratch(struct cuda_engine *e, int device, enum cuda_scratch_use use, size_t bytes,
                  struct diags *d);
bool cuda_copy(void *self, void *to, int to_device, const void *from, int from_device, size_t bytes);
/* See pinned_alloc of struct backend. */
void *cuda_pinned_alloc(void *self, size_t bytes);
void cuda_pinned_free(void *self, void *data);
/* Frees what is left of it; nothing may read it any more. */
void cuda_close_pinned(const struct cuda_engine *e);
/* Waits until what was written from there to the device has been read. False: a failure. */
bool cuda_await_read(struct cuda_engine *e, int device);
bool cuda_read_begin(void *self, int device, const void *from, size_t bytes, unsigned *number);
bool cuda_read_end(void *self, int device, unsigned number, void *to, size_t bytes);
/* From the host, as cuda_copy, in the order of the device's work. */
bool cuda_write(struct cuda_engine *e, int device, void *to, const void *from, size_t bytes);
bool cuda_prepare_copy(void *self, struct arena *a, int to, int from, size_t bytes, struct command *c,
                       struct diags *d);

/* --- code.c --- */

bool cuda_compile(void *self, const struct kernel *const *kernels, int count, kernel_fn **out,
                  struct diags *d);
bool cuda_prepare_kernel(struct cuda_engine *e, struct arena *a, const struct step *step, int device,
                         struct command *c, struct diags *d);
void cuda_close_code(struct cuda_engine *e);
/* The program's module on each card, to stay until the end. False after an error in `d`. */
bool cuda_load_program(struct cuda_engine *e, const struct cuda_program *p, CUmodule *out, struct diags *d);
bool cuda_find_function(struct cuda_engine *e, int card, CUmodule module, const char *name, CUfunction *out,
                        struct diags *d);

/* --- many.c --- */

/* Launches of one map as one; it lives in `a`. */
struct cuda_group *cuda_group_create(struct cuda_engine *e, struct arena *a, int device,
                                     const struct kernel *k, CUfunction one, CUfunction many);
bool cuda_group_full(const struct cuda_group *g);
/* All but `d` must outlive the group. False after an error. */
bool cuda_group_join(struct cuda_group *g, void *const *args, const int64_t *sizes,
                     const struct cuda_launch *launch, void **params, struct diags *d);
/* The call of a group's first command: the work of all. */
void cuda_run_group(void *const *args, const void *group);

/* --- blas.c --- */

void cuda_close_blas(struct cuda_engine *e, int device);

/* --- nccl.c --- */

void *cuda_rendezvous(void *self, struct arena *a, const struct collective *collective,
                      const struct company *company, struct diags *d);
bool cuda_arrive(void *self, struct arena *a, void *rendezvous, int rank, struct command *c, struct diags *d);
bool cuda_rendezvous_complete(void *state);
const char *cuda_no_rendezvous(void *self);
/* All communicators. After a failure this also ends what still runs there; else nothing may run. */
void cuda_close_nccl(struct cuda_engine *e);

static inline CUdeviceptr cuda_address(const void *p) { return (CUdeviceptr)(uintptr_t)p; }

#endif
