/* SPDX-License-Identifier: Apache-2.0 */
/* Heaps of processes, slots of messages, and channels that are one or the library's. */
#include "runtime/mpi/shared.h"

#include "base/integer.h"
#include "base/line.h"
#include "runtime/mpi/watch.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

/* No system that dgc runs on has larger pages than PAGE. */
enum { PAGE = 1 << 16, HUGE_PAGE = 2 << 20, TAGS = 1 << 16 };

/* Of a message from one process to another, in the heap of each: the sender writes the first two in its own, the
 * receiver the third. They count messages. */
struct mail_slot {
  _Alignas(CACHE_LINE) _Atomic uint64_t sent;
  uint64_t offset; /* in the sender's heap, of the last one */
  _Atomic uint64_t taken;
};

/* At the beginning of a heap. Slots follow, by neighbour and tag, then what is allocated. */
struct head {
  unsigned char
      secret[16]; /* it is the heap that was spoken of, and not of another process with that number */
};

/* What a process tells of its heap; fd < 0: it has none. */
struct hello {
  int pid, fd;
  uint64_t bytes;
  unsigned char secret[16];
};

/* What is allocated of the heap, in its order. */
struct stretch {
  size_t begin, end; /* offsets */
  struct stretch *next;
};

static struct {
  struct transport library; /* what carries everything else */
  char *data;               /* NULL: there is none */
  size_t bytes;
  struct stretch *blocks; /* the first one holds the head and the slots */
  pthread_mutex_t lock;   /* of blocks */
  const char **others;    /* heaps of others, by process; NULL: not shared with that one */
  int *neighbour;         /* by process: its place among those of its host */
} shared = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct mail_slot *slot_of(const char *heap, int neighbour, int tag) {
  return (struct mail_slot *)(uintptr_t)(heap + PAGE) + (size_t)neighbour * TAGS + tag;
}

/* --- the heap --- */

static bool is_inside(const void *data) {
  return shared.data && (const char *)data >= shared.data && (const char *)data < shared.data + shared.bytes;
}

/* What a new one comes behind, at *begin; NULL: there is no room. */
static struct stretch *find_room(size_t bytes, size_t align, size_t *begin) {
  for (struct stretch *b = shared.blocks; b; b = b->next) {
    size_t end = b->next ? b->next->begin : shared.bytes;
    *begin = size_round_up(b->end, align);
    if (*begin <= end && bytes <= end - *begin) return b;
  }
  return NULL;
}

void *shared_alloc(size_t bytes) {
  size_t align = bytes >= HUGE_PAGE ? HUGE_PAGE : CACHE_LINE, begin = 0;
  if (!shared.data || bytes > shared.bytes) return NULL;
  struct stretch *b = malloc(sizeof *b);
  if (!b) return NULL;
  bytes = size_round_up(bytes ? bytes : 1, align);
  pthread_mutex_lock(&shared.lock);
  struct stretch *before = find_room(bytes, align, &begin);
  if (before) {
    *b = (struct stretch){begin, begin + bytes, before->next};
    before->next = b;
  }
  pthread_mutex_unlock(&shared.lock);
  if (!before) free(b);
  return before ? shared.data + begin : NULL;
}

/* Whole pages of what is free go back to the system. */
static void give_back(size_t begin, size_t end) {
  begin = size_round_up(begin, PAGE);
  end = end / PAGE * PAGE;
  if (begin < end) madvise(shared.data + begin, end - begin, MADV_REMOVE);
}

bool shared_free(void *data) {
  if (!is_inside(data)) return false;
  size_t begin = (size_t)((char *)data - shared.data);
  pthread_mutex_lock(&shared.lock);
  struct stretch *before = shared.blocks;
  while (before->next->begin != begin) before = before->next;
  struct stretch *b = before->next;
  before->next = b->next;
  give_back(before->end, b->next ? b->next->begin : size_round_up(b->end, PAGE));
  pthread_mutex_unlock(&shared.lock);
  free(b);
  return true;
}

/* As large as memory is: pages are taken when they are written to. */
static size_t heap_bytes(size_t slots) {
  struct rlimit file;
  long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  if (pages < 1 || page < 1) return 0;
  size_t bytes = slots + size_round_up((size_t)pages * (size_t)page, HUGE_PAGE);
  if (getrlimit(RLIMIT_FSIZE, &file) != 0 || (file.rlim_cur != RLIM_INFINITY && file.rlim_cur < bytes))
    return 0;
  return bytes;
}

static bool make_heap(int neighbours, struct hello *mine) {
  const char *wanted = getenv("DGC_SHARED");
  size_t slots = size_round_up(PAGE + (size_t)neighbours * TAGS * sizeof(struct mail_slot), HUGE_PAGE);
  *mine = (struct hello){.pid = getpid(), .fd = -1, .bytes = heap_bytes(slots)};
  struct stretch *first = malloc(sizeof *first);
  if (!first || !mine->bytes || neighbours < 2 || (wanted && strcmp(wanted, "off") == 0) ||
      getrandom(mine->secret, sizeof mine->secret, 0) != sizeof mine->secret) {
    free(first);
    return false;
  }
  int fd = memfd_create("dgc", MFD_CLOEXEC);
  void *data = MAP_FAILED;
  if (fd >= 0 && ftruncate(fd, (off_t)mine->bytes) == 0)
    data = mmap(NULL, mine->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (data == MAP_FAILED) {
    if (fd >= 0) close(fd);
    free(first);
    return false;
  }
  memcpy(((struct head *)data)->secret, mine->secret, sizeof mine->secret);
  *first = (struct stretch){.end = slots};
  shared.blocks = first;
  shared.bytes = mine->bytes;
  shared.data = data;
  mine->fd = fd;
  return true;
}

static const char *map_heap(const struct hello *h) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/fd/%d", h->pid, h->fd);
  int fd = h->fd < 0 ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* it may be anything */
  if (fd < 0) return NULL;
  unsigned char secret[sizeof h->secret];
  bool same =
      pread(fd, secret, sizeof secret, 0) == sizeof secret && memcmp(secret, h->secret, sizeof secret) == 0;
  void *data = same ? mmap(NULL, h->bytes, PROT_READ, MAP_SHARED | MAP_NORESERVE, fd, 0) : MAP_FAILED;
  close(fd);
  return data == MAP_FAILED ? NULL : data;
}

/* --- channels --- */

struct channel {
  void *library; /* its own; NULL: by slots */
  struct mail_slot *mine;
  const struct mail_slot *theirs;
  const char *heap; /* of the sender */
  void *data;
  size_t bytes;
  void *copy;      /* in the heap, of what lies elsewhere */
  uint64_t number; /* of the message that was sent last */
  bool sends, pending, taken;
  struct channel *next; /* receiver that is posted */
};

/* Posted, in this order: what has come for them is taken whenever anything is waited for, as a sender may wait for that
 * before it goes on to send what is asked for here. */
static struct channel *posted;

/* One message at a time is on its way under a tag. */
static void send_now(struct channel *c) {
  uint64_t sent = atomic_load_explicit(&c->mine->sent, memory_order_relaxed);
  if (atomic_load_explicit(&c->theirs->taken, memory_order_acquire) != sent) return;
  if (c->copy) memcpy(c->copy, c->data, c->bytes);
  c->mine->offset = (uint64_t)((char *)(c->copy ? c->copy : c->data) - shared.data);
  atomic_store_explicit(&c->mine->sent, sent + 1, memory_order_release);
  c->number = sent + 1;
  c->pending = false;
}

static bool is_taken(struct channel *c) {
  if (c->pending) send_now(c);
  return !c->pending && atomic_load_explicit(&c->theirs->taken, memory_order_acquire) >= c->number;
}

static bool take_now(struct channel *c) {
  uint64_t taken = atomic_load_explicit(&c->mine->taken, memory_order_relaxed);
  if (atomic_load_explicit(&c->theirs->sent, memory_order_acquire) == taken) return false;
  memcpy(c->data, c->heap + c->theirs->offset, c->bytes);
  atomic_store_explicit(&c->mine->taken, taken + 1, memory_order_release);
  return c->taken = true;
}

static void take_posted(void) {
  for (struct channel **at = &posted; *at;)
    if (take_now(*at))
      *at = (*at)->next;
    else
      at = &(*at)->next;
}

/* It may be posted, after a failure. */
static void unpost_receiver(const struct channel *c) {
  for (struct channel **at = &posted; *at; at = &(*at)->next)
    if (*at == c) {
      *at = c->next;
      return;
    }
}

static void post_receiver(struct channel *c) {
  struct channel **end = &posted;
  while (*end) end = &(*end)->next;
  *end = c;
  c->next = NULL;
  c->taken = false;
}

static struct channel *make_channel(const struct transport *t, void *data, size_t bytes, int other, int tag,
                                    bool sends) {
  struct channel *c = calloc(1, sizeof *c);
  if (!c) return NULL;
  *c = (struct channel){.data = data, .bytes = bytes, .sends = sends};
  const char *heap = shared.others[other];
  if (heap && tag >= TAG_MESSAGES && tag - TAG_MESSAGES < TAGS) {
    c->mine = slot_of(shared.data, shared.neighbour[other], tag - TAG_MESSAGES);
    c->theirs = slot_of(heap, shared.neighbour[t->rank], tag - TAG_MESSAGES);
    c->heap = heap;
    if (!sends || is_inside(data) || (c->copy = shared_alloc(bytes))) return c;
  } else {
    const struct transport *l = &shared.library;
    c->library = sends ? l->sender(t, data, bytes, other, tag) : l->receiver(t, data, bytes, other, tag);
    if (c->library) return c;
  }
  free(c);
  return NULL;
}

static void *sender(const struct transport *t, const void *data, size_t bytes, int to, int tag) {
  return make_channel(t, (void *)(uintptr_t)data, bytes, to, tag, true);
}

static void *receiver(const struct transport *t, void *data, size_t bytes, int from, int tag) {
  return make_channel(t, data, bytes, from, tag, false);
}

static void drop(void *channel) {
  struct channel *c = channel;
  if (!c->library && !c->sends && !c->taken) unpost_receiver(c);
  if (c->library) shared.library.drop(c->library);
  if (c->copy) shared_free(c->copy);
  free(c);
}

static void start(void *channel) {
  struct channel *c = channel;
  c->pending = c->sends;
  if (c->library)
    shared.library.start(c->library);
  else if (c->sends)
    send_now(c);
  else
    post_receiver(c);
}

static bool done(void *channel) {
  struct channel *c = channel;
  take_posted();
  if (c->library) return shared.library.done(c->library);
  return c->sends ? is_taken(c) : c->taken;
}

/* --- acquaintance --- */

/* Two processes tell each other so many bytes: the one with the lower number begins. */
static bool exchange(const struct transport *t, int other, const void *mine, void *theirs, size_t bytes) {
  if (t->rank < other)
    return transport_send(t, mine, bytes, other, TAG_TEXT) &&
           transport_receive(t, theirs, bytes, other, TAG_TEXT);
  return transport_receive(t, theirs, bytes, other, TAG_TEXT) &&
         transport_send(t, mine, bytes, other, TAG_TEXT);
}

/* All come to the others of their host in the order of their numbers, so that nobody waits for ever. */
static bool meet(const struct transport *t, int other, const struct hello *mine) {
  struct hello theirs;
  unsigned char opened, by_other;
  if (!exchange(t, other, mine, &theirs, sizeof theirs)) return false;
  const char *heap = shared.data ? map_heap(&theirs) : NULL;
  opened = heap != NULL;
  if (!exchange(t, other, &opened, &by_other, 1)) return false;
  if (heap && !by_other) munmap((void *)(uintptr_t)heap, theirs.bytes);
  shared.others[other] = by_other ? heap : NULL;
  return true;
}

bool shared_open(struct transport *t) {
  int neighbours = 0;
  struct hello mine;
  shared.others = calloc((size_t)t->size, sizeof *shared.others);
  shared.neighbour = calloc((size_t)t->size, sizeof *shared.neighbour);
  t->watch->no_memory = !shared.others || !shared.neighbour;
  if (t->watch->no_memory) return false;
  for (int i = 0; i < t->size; i++)
    shared.neighbour[i] = strcmp(t->host(t, i), t->host(t, t->rank)) == 0 ? neighbours++ : -1;
  make_heap(neighbours, &mine);
  for (int i = 0; i < t->size; i++)
    if (i != t->rank && shared.neighbour[i] >= 0 && !meet(t, i, &mine)) return false;
  shared.library = *t;
  t->sender = sender;
  t->receiver = receiver;
  t->drop = drop;
  t->start = start;
  t->done = done;
  return true;
}
