/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks for the threads of a block, and traps.
 *
 * Kernels run on stacks of their own, each between inaccessible pages; a switch saves the registers that a call
 * keeps, and nothing else, so thousands of barriers cost little. A trap makes the signal handler return into
 * `landing`, still on the kernel's stack, which goes back to whoever started the kernel: so sanitizers, which
 * wrap handlers, see handlers that return and no jump. */
#include "tests/simulated_cuda/simulated.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { STACK = 256 << 10, PAGE = 4096, MAX_THREADS = 1024 };
enum { WAITS, ENDED };

static struct fiber {
  void *stack_pointer;
  int state, line;
} fibers[MAX_THREADS];
static char *stacks;   /* stack i lies behind the page i, which nobody may touch */
static unsigned ready; /* so many may be written: most kernels need one */
static void *home;     /* the stack pointer of whoever runs fibers */
static struct fiber *running;
static void (*body)(void *);
static void *body_argument;
static struct trap caught;
static pthread_t runner;
static volatile bool inside;

void sim_switch(void **save, void *to);
#if defined(__x86_64__)
__asm__(".text\n.hidden sim_switch\n.globl sim_switch\n.type sim_switch,@function\nsim_switch:\n"
        "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
        "  movq %rsp, (%rdi)\n  movq %rsi, %rsp\n"
        "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n  ret\n"
        ".size sim_switch,.-sim_switch\n");
enum { SAVED = 6, RETURN = 6, PAD = 2 };
#elif defined(__aarch64__)
__asm__(".text\n.hidden sim_switch\n.globl sim_switch\n.type sim_switch,%function\nsim_switch:\n"
        "  sub sp, sp, #160\n"
        "  stp x19, x20, [sp, #0]\n  stp x21, x22, [sp, #16]\n  stp x23, x24, [sp, #32]\n"
        "  stp x25, x26, [sp, #48]\n  stp x27, x28, [sp, #64]\n  stp x29, x30, [sp, #80]\n"
        "  stp d8, d9, [sp, #96]\n  stp d10, d11, [sp, #112]\n  stp d12, d13, [sp, #128]\n"
        "  stp d14, d15, [sp, #144]\n"
        "  mov x9, sp\n  str x9, [x0]\n  mov sp, x1\n"
        "  ldp x19, x20, [sp, #0]\n  ldp x21, x22, [sp, #16]\n  ldp x23, x24, [sp, #32]\n"
        "  ldp x25, x26, [sp, #48]\n  ldp x27, x28, [sp, #64]\n  ldp x29, x30, [sp, #80]\n"
        "  ldp d8, d9, [sp, #96]\n  ldp d10, d11, [sp, #112]\n  ldp d12, d13, [sp, #128]\n"
        "  ldp d14, d15, [sp, #144]\n"
        "  add sp, sp, #160\n  ret\n"
        ".size sim_switch,.-sim_switch\n");
enum { SAVED = 20, RETURN = 11, PAD = 2 };
#endif

static void landing(void) {
  void *nowhere;
  sim_switch(&nowhere, home);
  abort();
}

/* The threads of a block take turns from one barrier to the next: each switches to the one behind it, the last
 * one home. That begins only if no thread has ended, so each has its turn. */
static struct turns {
  void (*before)(void *, unsigned i);
  unsigned count, left, place, stride;
} turns;

/* Whose turn is it? False if all have had theirs. */
static bool next(void) {
  if (turns.left-- == 0) return false;
  unsigned i = turns.place;
  turns.place = i + turns.stride < turns.count ? i + turns.stride : i + turns.stride - turns.count;
  turns.before(body_argument, i);
  running = &fibers[i];
  return true;
}

static void fiber_main(void) {
  body(body_argument);
  struct fiber *self = running;
  self->state = ENDED;
  sim_switch(&self->stack_pointer, next() ? running->stack_pointer : home);
  abort();
}

void fiber_wait(int line) {
  struct fiber *self = running;
  self->state = WAITS;
  self->line = line;
  sim_switch(&self->stack_pointer, next() ? running->stack_pointer : home);
}

/* Runs `running` and those behind it until one switches home. */
static void enter(void) {
  caught.signal = 0;
  runner = pthread_self();
  inside = true;
  sim_switch(&home, running->stack_pointer);
  inside = false;
}

/* A stack that fiber_main starts on. Their ends differ modulo the page, lest all fall into the same cache
 * lines. */
static void prepare(unsigned i) {
  for (; ready <= i; ready++)
    if (mprotect(stacks + ready * (size_t)(STACK + PAGE) + PAGE, STACK, PROT_READ | PROT_WRITE)) abort();
  void **top = (void **)(stacks + (i + 1) * (STACK + PAGE) - (i % 31) * 128);
  void **frame = top - PAD - SAVED;
  memset(frame, 0, (PAD + SAVED) * sizeof *frame);
  void (*entry)(void) = fiber_main;
  memcpy(&frame[RETURN], &entry, sizeof entry);
  fibers[i] = (struct fiber){.stack_pointer = frame};
}

bool fiber_run(void (*function)(void *), void *argument, struct trap *trap) {
  body = function;
  body_argument = argument;
  turns.count = turns.left = 0;
  prepare(0);
  running = &fibers[0];
  enter();
  *trap = caught;
  return caught.signal == 0;
}

const char *fiber_run_many(void (*function)(void *), void (*before)(void *, unsigned i), void *argument,
                           unsigned count, struct trap *trap) {
  static char text[128];
  body = function;
  body_argument = argument;
  for (unsigned i = 0; i < count; i++) prepare(i);
  for (;;) { /* all threads from barrier to barrier, in another order each time */
    turns = (struct turns){before, count, count, (unsigned)sim_below(count), (unsigned)sim_stride(count)};
    next();
    enter();
    *trap = caught;
    if (caught.signal) return "trap";
    unsigned ended = 0;
    int line = 0, other = 0;
    for (unsigned i = 0; i < count; i++) {
      if (fibers[i].state == ENDED)
        ended++;
      else if (line == 0)
        line = fibers[i].line;
      else if (fibers[i].line != line)
        other = fibers[i].line;
    }
    if (ended == count) return NULL;
    if (ended) {
      snprintf(text, sizeof text,
               "%u of %u threads have ended while the others wait at the barrier in line %d", ended, count,
               line);
      return text;
    }
    if (other) {
      snprintf(text, sizeof text, "threads wait at different barriers, lines %d and %d", line, other);
      return text;
    }
  }
}

/* --- traps --- */

static struct sigaction previous[64];

static void on_signal(int number, siginfo_t *info, void *context) {
  uintptr_t address = (uintptr_t)info->si_addr;
  if (inside && pthread_equal(runner, pthread_self())) {
    if (number == SIGSEGV && memory_fault(address)) return;
    caught = (struct trap){number, address};
    ucontext_t *u = context;
#if defined(__x86_64__)
    u->uc_mcontext.gregs[REG_RSP] = ((u->uc_mcontext.gregs[REG_RSP] - 256) & ~15LL) - 8;
    u->uc_mcontext.gregs[REG_RIP] = (long long)(uintptr_t)landing;
#elif defined(__aarch64__)
    u->uc_mcontext.sp = (u->uc_mcontext.sp - 256) & ~15ULL;
    u->uc_mcontext.pc = (uintptr_t)landing;
#endif
    return;
  }
  if (number == SIGSEGV && memory_is_device(address))
    sim_complain("the host accesses %p, %s", (void *)address, memory_describe(address));
  /* Whoever handled it before does; or else it happens again, without a handler. */
  const struct sigaction *old = &previous[number];
  if (old->sa_flags & SA_SIGINFO)
    old->sa_sigaction(number, info, context);
  else if (old->sa_handler != SIG_DFL && old->sa_handler != SIG_IGN)
    old->sa_handler(number);
  else
    signal(number, SIG_DFL);
}

void fibers_open(void) {
  size_t bytes = PAGE + (size_t)MAX_THREADS * (STACK + PAGE);
  stacks = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (stacks == MAP_FAILED) abort();
  static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
  for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigemptyset(&action.sa_mask);
    sigaction(signals[i], &action, &previous[signals[i]]);
  }
}
