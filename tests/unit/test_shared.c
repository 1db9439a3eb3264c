/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that processes share, between two processes that a pair of sockets joins: what messages of plans carry, when
 * their senders are done, and that whoever cannot share sends them as all else is sent. */
#include "runtime/mpi/shared.h"
#include "runtime/mpi/watch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/* --- a library: messages go through a socket, each when it is asked for --- */

struct line {
  void *data;
  size_t bytes;
  int tag;
  bool sends;
};

static int wire = -1;
static int plan_messages; /* channels for them that were asked of the library */
static bool confuses;     /* the last byte of what is sent first */

static void *make_line(void *data, size_t bytes, int tag, bool sends) {
  struct line *l = malloc(sizeof *l);
  if (l) *l = (struct line){data, bytes, tag, sends};
  plan_messages += tag >= TAG_MESSAGES;
  return l;
}

static void *wire_sender(const struct transport *t, const void *data, size_t bytes, int to, int tag) {
  (void)t, (void)to;
  return make_line((void *)(uintptr_t)data, bytes, tag, true);
}

static void *wire_receiver(const struct transport *t, void *data, size_t bytes, int from, int tag) {
  (void)t, (void)from;
  return make_line(data, bytes, tag, false);
}

static void wire_start(void *line) {
  struct line *l = line;
  char *copy = l->sends ? malloc(l->bytes) : NULL;
  if (!copy) return;
  memcpy(copy, l->data, l->bytes);
  if (confuses) copy[l->bytes - 1] ^= 1;
  confuses = false;
  for (size_t at = 0; at < l->bytes;) {
    ssize_t n = write(wire, copy + at, l->bytes - at);
    if (n < 1) _exit(90);
    at += (size_t)n;
  }
  free(copy);
}

static bool wire_done(void *line) {
  struct line *l = line;
  for (size_t at = 0; !l->sends && at < l->bytes;) {
    ssize_t n = read(wire, (char *)l->data + at, l->bytes - at);
    if (n < 1) _exit(91);
    at += (size_t)n;
  }
  return true;
}

static bool wire_take(const struct transport *t, void *data, size_t bytes, int tag) {
  (void)t, (void)data, (void)bytes, (void)tag;
  return false;
}

static const char *host_of(const struct transport *t, int process) {
  (void)t, (void)process;
  return "here";
}

/* --- two processes --- */

static void must(bool good, int line) {
  if (!good) _exit(line % 80 + 10);
}
#define MUST(good) must(good, __LINE__)

typedef void process_fn(struct transport *t);

static void be(int rank, process_fn *fn) {
  static struct watch watch;
  static uint64_t waiting[2];
  static struct tally tally = {.waiting = waiting};
  struct transport t = {.rank = rank,
                        .size = 2,
                        .library = "a wire",
                        .sender = wire_sender,
                        .receiver = wire_receiver,
                        .drop = free,
                        .start = wire_start,
                        .done = wire_done,
                        .take = wire_take,
                        .host = host_of,
                        .watch = &watch,
                        .tally = &tally};
  fn(&t);
  _exit(0);
}

/* Each of the two in a process of its own, which must not end by MUST. */
static void run_two(process_fn *fn) {
  int ends[2];
  pid_t pids[2];
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  for (int i = 0; i < 2; i++) {
    pids[i] = fork();
    assert_true(pids[i] >= 0);
    if (pids[i]) continue;
    wire = ends[i];
    close(ends[1 - i]);
    be(i, fn);
  }
  close(ends[0]);
  close(ends[1]);
  for (int i = 0; i < 2; i++) {
    int status;
    assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
    if (status) fail_msg("process %d ends with %x: MUST of line ..%d", i, status, (status >> 8) - 10);
  }
}

/* A minute of the process's own time is for ever. */
static void await(const struct transport *t, void *channel) {
  while (!t->done(channel)) MUST(clock() < 60 * CLOCKS_PER_SEC);
}

/* What blocks are filled with comes round after PERIOD bytes, and a seed begins elsewhere in it. */
enum { PERIOD = 251 * 256 };

static const unsigned char *pattern(void) {
  static unsigned char bytes[PERIOD];
  if (!bytes[1])
    for (size_t i = 0; i < PERIOD; i++) bytes[i] = (unsigned char)(i * 7 + i / 251);
  return bytes;
}

/* Bytes of the pattern that lie side by side, from the one of element i. */
static size_t run_of(size_t i, size_t bytes, int seed, const unsigned char **run) {
  size_t at = (i + 257 * (size_t)seed) % PERIOD, left = PERIOD - at;
  *run = pattern() + at;
  return left < bytes - i ? left : bytes - i;
}

static void fill(unsigned char *data, size_t bytes, int seed) {
  const unsigned char *run;
  for (size_t i = 0, n; i < bytes; i += n) {
    n = run_of(i, bytes, seed, &run);
    memcpy(data + i, run, n);
  }
}

static bool is_filled(const unsigned char *data, size_t bytes, int seed) {
  const unsigned char *run;
  for (size_t i = 0, n; i < bytes; i += n) {
    n = run_of(i, bytes, seed, &run);
    if (memcmp(data + i, run, n) != 0) return false;
  }
  return true;
}

enum { SIZES = 7, ROUNDS = 70, TAG = TAG_MESSAGES };
static const size_t sizes[SIZES] = {1, 4, 63, 4096, 65537, 300000, (4 << 20) + 12};

/* What process 0 sends comes back from 1: of the heap, and of other memory, again and again under one tag. */
static void there_and_back(struct transport *t) {
  MUST(shared_open(t));
  void *channels[SIZES][2][2];
  unsigned char *data[SIZES][2];
  for (int i = 0; i < SIZES; i++)
    for (int heap = 0; heap < 2; heap++) {
      data[i][heap] = heap ? shared_alloc(sizes[i]) : malloc(sizes[i]);
      MUST(data[i][heap] != NULL);
      channels[i][heap][t->rank] = t->sender(t, data[i][heap], sizes[i], 1 - t->rank, TAG + heap);
      channels[i][heap][1 - t->rank] = t->receiver(t, data[i][heap], sizes[i], 1 - t->rank, TAG + heap);
      MUST(channels[i][heap][0] && channels[i][heap][1]);
    }
  MUST(plan_messages == 0);
  for (int k = 0; k < ROUNDS; k++) {
    int i = k % SIZES, heap = k / SIZES % 2, seed = k + 1;
    void *there = channels[i][heap][0], *back = channels[i][heap][1];
    if (t->rank == 0) fill(data[i][heap], sizes[i], seed);
    t->start(there);
    await(t, there);
    MUST(t->rank == 0 || is_filled(data[i][heap], sizes[i], seed));
    if (t->rank == 1) fill(data[i][heap], sizes[i], seed + 1);
    t->start(back);
    await(t, back);
    MUST(t->rank == 1 || is_filled(data[i][heap], sizes[i], seed + 1));
  }
  for (int i = 0; i < SIZES; i++)
    for (int heap = 0; heap < 2; heap++) {
      t->drop(channels[i][heap][0]);
      t->drop(channels[i][heap][1]);
      if (heap)
        MUST(shared_free(data[i][heap]));
      else
        MUST(!shared_free(data[i][heap])), free(data[i][heap]);
    }
}

static void messages_are_read_where_they_lie(void **state) {
  (void)state;
  run_two(there_and_back);
}

/* Until the other one has it, a sender is not done, and what comes next under the tag is not sent. */
static void one_after_the_other(struct transport *t) {
  MUST(shared_open(t));
  unsigned char *a = shared_alloc(100), *b = shared_alloc(100), go = 1;
  if (t->rank == 0) {
    void *first = t->sender(t, a, 100, 1, TAG), *second = t->sender(t, b, 100, 1, TAG);
    fill(a, 100, 1);
    fill(b, 100, 2);
    t->start(first);
    t->start(second);
    MUST(!t->done(first) && !t->done(second));
    MUST(transport_send(t, &go, 1, 1, TAG_TEXT));
    MUST(transport_receive(t, &go, 1, 1, TAG_TEXT)); /* it has the first */
    MUST(t->done(first));
    MUST(!t->done(second)); /* it is sent now */
    MUST(transport_send(t, &go, 1, 1, TAG_TEXT));
    await(t, second);
  } else {
    void *first = t->receiver(t, a, 100, 0, TAG), *second = t->receiver(t, b, 100, 0, TAG);
    t->start(first);
    MUST(transport_receive(t, &go, 1, 0, TAG_TEXT));
    await(t, first);
    MUST(is_filled(a, 100, 1));
    t->start(second);
    MUST(!t->done(second));
    MUST(transport_send(t, &go, 1, 0, TAG_TEXT) && transport_receive(t, &go, 1, 0, TAG_TEXT));
    await(t, second);
    MUST(is_filled(b, 100, 2));
  }
}

static void a_tag_has_one_message_at_a_time(void **state) {
  (void)state;
  run_two(one_after_the_other);
}

/* Each waits first until the other one has what it sends: what is posted comes meanwhile. */
static void each_other(struct transport *t) {
  MUST(shared_open(t));
  unsigned char *out = shared_alloc(1000), *in = shared_alloc(1000);
  void *sends = t->sender(t, out, 1000, 1 - t->rank, TAG),
       *receives = t->receiver(t, in, 1000, 1 - t->rank, TAG);
  for (int k = 0; k < 20; k++) {
    fill(out, 1000, k + t->rank);
    t->start(receives);
    t->start(sends);
    await(t, sends);
    await(t, receives);
    MUST(is_filled(in, 1000, k + 1 - t->rank));
  }
}

static void what_is_posted_comes_while_one_waits(void **state) {
  (void)state;
  run_two(each_other);
}

/* A plan that has failed drops what it has posted: the message is another one's, and the rest stays posted. */
static void dropped_while_posted(struct transport *t) {
  MUST(shared_open(t));
  unsigned char *data = shared_alloc(100), *others = shared_alloc(100), *wrong = shared_alloc(100);
  if (t->rank == 0) {
    void *first = t->sender(t, data, 100, 1, TAG), *other = t->sender(t, others, 100, 1, TAG + 1);
    fill(data, 100, 1);
    fill(others, 100, 2);
    t->start(first);
    t->start(other);
    await(t, first);
    await(t, other);
  } else {
    void *dropped[2], *other = t->receiver(t, others, 100, 0, TAG + 1);
    for (int i = 0; i < 2; i++) dropped[i] = t->receiver(t, wrong, 100, 0, TAG);
    t->start(dropped[0]);
    t->start(other);
    t->start(dropped[1]);
    for (int i = 0; i < 2; i++) t->drop(dropped[i]);
    void *first = t->receiver(t, data, 100, 0, TAG);
    t->start(first);
    await(t, first);
    await(t, other);
    MUST(is_filled(data, 100, 1) && is_filled(others, 100, 2));
  }
}

static void what_is_dropped_takes_nothing(void **state) {
  (void)state;
  run_two(dropped_while_posted);
}

/* By the library, what is sent and received. */
static void by_library(struct transport *t) {
  MUST(shared_open(t));
  unsigned char data[100];
  void *c = t->rank ? t->receiver(t, data, 100, 0, TAG) : t->sender(t, data, 100, 1, TAG);
  MUST(plan_messages == 1);
  if (t->rank == 0) fill(data, 100, 3);
  t->start(c);
  await(t, c);
  MUST(is_filled(data, 100, 3));
  t->drop(c);
}

static void one_that_is_told_not_to(struct transport *t) {
  if (t->rank == 1) setenv("DGC_SHARED", "off", 1);
  by_library(t);
}

static void one_whose_heap_is_another(struct transport *t) {
  confuses = t->rank == 0;
  by_library(t);
}

static const char *two_hosts(const struct transport *t, int process) {
  return process == t->rank ? "here" : "there";
}

static void two_of_two_hosts(struct transport *t) {
  t->host = two_hosts;
  by_library(t);
}

static void who_cannot_share_sends_by_the_library(void **state) {
  (void)state;
  run_two(one_that_is_told_not_to);
  run_two(one_whose_heap_is_another);
  run_two(two_of_two_hosts);
}

/* qemu-user says that it has taken memory back, and has not. */
static bool system_takes_back(void) {
  size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
  char *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  MUST(page != MAP_FAILED);
  page[0] = 1;
  bool taken = madvise(page, bytes, MADV_REMOVE) == 0 && page[0] == 0;
  munmap(page, bytes);
  return taken;
}

/* Blocks are apart, aligned, and empty again when they have been given back. */
static void use_heap(struct transport *t) {
  enum { BLOCKS = 64 };
  static unsigned char *blocks[BLOCKS];
  static size_t bytes[BLOCKS];
  uint32_t random = 1;
  MUST(shared_open(t));
  for (int k = 0; k < 2000; k++) {
    random = random * 1664525u + 1013904223u;
    int i = (int)(random >> 8) % BLOCKS;
    if (blocks[i]) {
      MUST(is_filled(blocks[i], bytes[i], i));
      MUST(shared_free(blocks[i]));
      blocks[i] = NULL;
      continue;
    }
    bytes[i] = (random >> 16) % 7 ? (random >> 10) % 5000 : (random >> 10) % (3 << 20);
    blocks[i] = shared_alloc(bytes[i]);
    MUST(blocks[i] && (uintptr_t)blocks[i] % 64 == 0);
    fill(blocks[i], bytes[i], i);
  }
  for (int i = 0; i < BLOCKS; i++) MUST(!blocks[i] || shared_free(blocks[i]));
  unsigned char *all = shared_alloc(1 << 20);
  if (system_takes_back())
    for (int i = 0; i < 1 << 20; i++) MUST(all[i] == 0);
  MUST(!shared_alloc(SIZE_MAX / 8));
}

static void memory_that_is_free_is_given_back(void **state) {
  (void)state;
  run_two(use_heap);
}

static void without_others_there_is_no_heap(void **state) {
  (void)state;
  assert_null(shared_alloc(100));
  assert_false(shared_free(state));
}

/* MPI counts in int, bytes or numbers of eight. */
static void what_is_carried(void **state) {
  (void)state;
  size_t most = INT_MAX;
  assert_true(transport_carries(0) && transport_carries(most) && transport_carries(most + 1));
  assert_false(transport_carries(most + 2) || transport_carries(8 * most + 8));
  assert_true(transport_carries(8 * most));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_carried),
      cmocka_unit_test(messages_are_read_where_they_lie),
      cmocka_unit_test(a_tag_has_one_message_at_a_time),
      cmocka_unit_test(what_is_posted_comes_while_one_waits),
      cmocka_unit_test(what_is_dropped_takes_nothing),
      cmocka_unit_test(who_cannot_share_sends_by_the_library),
      cmocka_unit_test(memory_that_is_free_is_given_back),
      cmocka_unit_test(without_others_there_is_no_heap),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
