/* SPDX-License-Identifier: Apache-2.0 */
/* What a training step may not do: allocate, or call the system. A perceptron on two logical devices, driven by
 * one thread; with more threads the only calls are those that park and wake idle workers between steps. */
#include "include/dgc.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* Every allocation of the process passes here. */
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *p, size_t size);
extern void *__libc_memalign(size_t align, size_t size);
void *aligned_alloc(size_t align, size_t size);
int posix_memalign(void **out, size_t align, size_t size);
static _Atomic long allocations;
void *malloc(size_t size) {
  allocations++;
  return __libc_malloc(size);
}
void *calloc(size_t count, size_t size) {
  allocations++;
  return __libc_calloc(count, size);
}
void *realloc(void *p, size_t size) {
  allocations++;
  return __libc_realloc(p, size);
}
void *aligned_alloc(size_t align, size_t size) {
  allocations++;
  return __libc_memalign(align, size);
}
int posix_memalign(void **out, size_t align, size_t size) {
  *out = aligned_alloc(align, size);
  return *out ? 0 : 12;
}

enum { ROWS = 64, INPUTS = 96, WARM_UP = 3, STEPS = 50 };

static const char program[] = "use nn\n"
                              "model net() {\n"
                              "  input x : f32[B, 96]\n"
                              "  input label : i32[B]\n"
                              "  h = nn.dense(x, 128, relu)\n"
                              "  train mean(softmax_cross_entropy(nn.dense(h, 10), label)) with adam()\n"
                              "}\n";

struct run {
  struct dgc_session *session;
  const void *inputs[2];
  void *outputs[1];
  float x[ROWS][INPUTS], loss;
  int32_t label[ROWS];
};

static void steps(struct run *r, int count) {
  for (int i = 0; i < count; i++)
    if (dgc_run(r->session, "train", ROWS, r->inputs, r->outputs)) fail_msg("%s", dgc_message(r->session));
}

static struct run *start(void) {
  struct run *r = test_calloc(1, sizeof *r);
  for (int i = 0; i < ROWS; i++) {
    r->label[i] = i % 10;
    for (int k = 0; k < INPUTS; k++) r->x[i][k] = (float)((i * 31 + k * 7) % 17) / 17;
  }
  r->session = dgc_create();
  assert_int_equal(dgc_set(r->session, "devices", "cpu:0-1"), DGC_OK);
  assert_int_equal(dgc_set(r->session, "threads", "1"), DGC_OK);
  if (dgc_load_text(r->session, "net", program, strlen(program))) fail_msg("%s", dgc_message(r->session));
  struct dgc_tensor t;
  for (int i = 0; dgc_input(r->session, "train", i, &t); i++)
    r->inputs[i] = strcmp(t.name, "x") == 0 ? (void *)r->x : (void *)r->label;
  r->outputs[0] = &r->loss;
  steps(r, WARM_UP);
  return r;
}

static void finish(struct run *r) {
  dgc_destroy(r->session);
  test_free(r);
}

static void allocates_nothing(void **state) {
  (void)state;
  struct run *r = start();
  long before = allocations;
  assert_true(before > 0); /* they are counted */
  steps(r, STEPS);
  long after = allocations;
  finish(r);
  assert_int_equal(after - before, 0);
}

/* From here on any system call but leaving kills the process. */
static bool forbid_calls(void) {
  struct sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
  };
  struct sock_fprog filter = {.len = sizeof rules / sizeof *rules, .filter = rules};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

static void calls_no_system(void **state) {
  (void)state;
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    struct run *r = start();
    if (!forbid_calls()) _exit(77);
    steps(r, STEPS);
    _exit(0);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) skip(); /* no seccomp here */
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(allocates_nothing), cmocka_unit_test(calls_no_system)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
