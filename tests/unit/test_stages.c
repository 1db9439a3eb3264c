/* SPDX-License-Identifier: Apache-2.0 */
/* Stages of random plans for processes. What a step writes is told by a checksum of the step and of what it reads,
 * byte by byte, so that memory tells where everything came from. Whatever a stage sends, run alone in memory that
 * holds anything, is what the whole plan sends; and so is what the last stage sends to others, and leaves in
 * variables. */
#include "ir/plan/stages.h"
#include "message_case.h"

#include <string.h>

struct tracer {
  struct arena *arena;
  const struct plan *p; /* the whole */
  int device;
  uint64_t *regions[REGION_COUNT]; /* each byte: where it comes from */
  uint64_t *sent;                  /* by message: what left, 0: nothing did */
};

static uint64_t mix(uint64_t h, uint64_t x) {
  h = (h ^ x) * UINT64_C(0x9e3779b97f4a7c15);
  return h ^ h >> 29;
}

/* `salt`: what lies in memory before; inputs, constants and variables hold what they have to. */
static void reset(struct tracer *c, uint64_t salt) {
  const struct device_plan *dp = &c->p->devices[c->device];
  for (int r = 0; r < REGION_COUNT; r++) {
    c->regions[r] = arena_new_array(c->arena, (size_t)dp->bytes[r] + 1, uint64_t);
    for (int64_t i = 0; i < dp->bytes[r]; i++)
      c->regions[r][i] = mix(mix(r == REGION_ARENA ? salt : 7, (uint64_t)r), (uint64_t)i);
  }
  for (int i = 0; i < c->p->ninputs; i++) {
    const struct plan_buffer *b = &c->p->buffers[c->p->inputs[i].operand.buffer];
    for (int64_t k = 0; k < b->bytes && b->device == c->device; k++)
      c->regions[b->region][b->offset + k] = mix(mix(11, (uint64_t)i), (uint64_t)k);
  }
  c->sent = arena_new_array(c->arena, (size_t)c->p->nmessages + 1, uint64_t);
}

/* The bytes of an element of an operand, `at` bytes from where the operand begins. */
static uint64_t *byte_at(const struct tracer *c, const struct operand *o, int64_t at) {
  const struct plan_buffer *b = &c->p->buffers[o->buffer];
  assert_int_equal(b->device, c->device);
  return &c->regions[b->region][b->offset + o->offset + at];
}

/* Reads into *h, or writes h with where each byte is. */
static void touch_bytes(const struct tracer *c, const struct operand *o, int64_t at, int64_t bytes,
                        bool writes, uint64_t *h) {
  for (int64_t i = at; i < at + bytes; i++) {
    uint64_t *byte = byte_at(c, o, i);
    if (writes)
      *byte = mix(*h, (uint64_t)i);
    else
      *h = mix(*h, *byte);
  }
}

/* Each element of a kernel's argument, over the loops from `loop` on. */
static void touch_elements(const struct tracer *c, const struct step *s, int operand, int loop, int64_t at,
                           bool writes, uint64_t *h) {
  const struct kernel *k = s->kernel;
  int64_t size = dtype_size((enum dtype)k->args[operand].dtype);
  bool reduced = writes && operand < k->nargs - k->nmapped;
  if (loop == k->rank - (reduced ? k->nreduce : 0)) { /* a result is there, too, where nothing is reduced */
    touch_bytes(c, &s->operands[operand], at * size, size, writes, h);
    return;
  }
  for (int64_t i = 0; i < s->sizes[loop]; i++)
    touch_elements(c, s, operand, loop + 1, at + i * s->sizes[k->rank + operand * k->rank + loop], writes, h);
}

static void touch(const struct tracer *c, const struct step *s, int operand, bool writes, uint64_t *h) {
  if (s->kind == STEP_KERNEL)
    touch_elements(c, s, operand, 0, 0, writes, h);
  else
    touch_bytes(c, &s->operands[operand], 0, step_extent(s, operand), writes, h);
}

static void run_step(const struct tracer *c, const struct step *s, int number) {
  if (s->kind == STEP_SIGNAL || s->kind == STEP_WAIT || s->kind == STEP_SENT) return;
  int results = step_results(s);
  uint64_t h = s->kind == STEP_RECEIVE ? mix(3, (uint64_t)s->message->number) : mix(5, (uint64_t)number);
  for (int i = 0; i < s->noperands - results; i++) touch(c, s, i, false, &h);
  for (int i = s->noperands - results; i < s->noperands; i++) touch(c, s, i, true, &h);
  if (s->kind == STEP_SEND) c->sent[s->message->number] = h | 1;
}

/* How many steps of the device do anything. */
static int run_plan(const struct tracer *c, const struct plan *p) {
  int work = 0;
  for (int i = 0; i < p->devices[c->device].nsteps; i++) {
    const struct step *s = &p->devices[c->device].steps[i];
    work += s->kind != STEP_SIGNAL;
    run_step(c, s, i);
  }
  return work;
}

static bool goes_to(const struct plan *p, const struct message *m, int peer) {
  return plan_process(p, m->to) == peer;
}

/* What is sent before the end changes no variable. */
static int run_stage(struct tracer *c, const struct plan *p, uint64_t salt) {
  reset(c, salt);
  size_t bytes = (size_t)c->p->devices[c->device].bytes[REGION_VARIABLE] * sizeof(uint64_t);
  const void *before = arena_copy(c->arena, c->regions[REGION_VARIABLE], bytes);
  int work = run_plan(c, p);
  assert_memory_equal(before, c->regions[REGION_VARIABLE], bytes);
  return work;
}

/* All that the stage has sent is right; what that is, is added to `seen`. */
static void compare_sent(const struct tracer *whole, const struct tracer *stage, int *seen) {
  for (int i = 0; i < whole->p->nmessages; i++) {
    if (!stage->sent[i]) continue;
    assert_true(stage->sent[i] == whole->sent[i]);
    seen[i]++;
  }
}

struct found {
  int first, asked, refused;
};

static void check_stages(struct fixture *f, const struct plan *p, int device, int peer, struct found *found) {
  struct plan_stages all;
  struct tracer whole = {.arena = f->arena, .p = p, .device = device}, part = whole;
  if (!plan_stages(f->arena, p, plan_process(p, device), peer, &all)) {
    assert_non_null(all.wrong);
    assert_int_equal(all.device, device);
    found->refused++;
    return;
  }
  int *seen = arena_new_array(f->arena, (size_t)p->nmessages + 1, int);
  reset(&whole, 1);
  run_plan(&whole, p);
  int steps = run_stage(&part, &all.first, 2);
  compare_sent(&whole, &part, seen);
  for (int i = 0; i < all.first.devices[device].nsteps; i++)
    assert_int_not_equal(all.first.devices[device].steps[i].kind, STEP_RECEIVE);
  found->first += steps > 0;
  for (int k = 0; k < all.nasked; k++) {
    assert_true(run_stage(&part, &all.asked[k], 3 + (uint64_t)k) > 1);
    compare_sent(&whole, &part, seen);
    found->asked++;
  }
  reset(&part, 99);
  run_plan(&part, &all.last);
  compare_sent(&whole, &part, seen);
  const struct device_plan *dp = &p->devices[device];
  assert_memory_equal(part.regions[REGION_VARIABLE], whole.regions[REGION_VARIABLE],
                      (size_t)dp->bytes[REGION_VARIABLE] * sizeof(uint64_t));
  for (int i = 0; i < p->nmessages; i++) { /* once, and to the peer before the end */
    assert_int_equal(seen[i], p->messages[i].from == device);
    assert_false(p->messages[i].from == device && goes_to(p, &p->messages[i], peer) && part.sent[i]);
  }
}

static void stages_send_what_the_whole_sends(void **state) {
  (void)state;
  struct found found = {0};
  int rounds = number("PLAN_ROUNDS", 150);
  for (int i = 0; i < rounds; i++) {
    static const char *const clusters[] = {
        "/job:worker/task:0/cpu:0,/job:worker/task:1/cpu:0",
        "/job:worker/task:0/cpu:0,/job:worker/task:1/cpu:0,/job:worker/task:2/cpu:0"};
    struct subject s;
    struct plan *p = begin_random(&s, (uint64_t)i, clusters[i % 2]);
    for (int d = 0; d < p->ndevices; d++)
      for (int peer = 0; peer < p->nprocesses; peer++)
        if (peer != plan_process(p, d)) check_stages(&s.f, p, d, peer, &found);
    end(&s.f);
  }
  print_message("%d first stages, %d asked, %d refused\n", found.first, found.asked, found.refused);
  assert_true(found.first > rounds / 4 && found.asked > rounds / 4 && found.refused > rounds / 4);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(stages_send_what_the_whole_sends)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
