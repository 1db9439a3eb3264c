/* SPDX-License-Identifier: Apache-2.0 */
/* Loops: see plan.h. The steps of a body read what they are given where it is: the pointers to the elements of
 * sequences move on from step to step, those to carried values stay, as these are kept where the loop leaves them. What
 * a step makes is written where it belongs: what is stacked always, what is carried where nobody reads the old value
 * later; of one value that has several such places the others are copies. A device that works behind the host is given
 * all steps one after the other, each with the addresses of its turn. */
#include "runtime/scan.h"

#include "ir/ops/scan.h"

#include <string.h>

/* The address of one operand of a command inside. */
struct place {
  void **slot;
  int buffer;
  int64_t offset;
};

struct running_loop {
  const struct step *step;
  const struct plan *body;
  struct scan scan;
  int device, nsteps;
  const struct command *commands, *copies;
  const struct pieces *const *entered;
  const struct board *board;
  struct step_time *const *took;
  char *constants;
  struct place *places; /* first those that move on from step to step */
  int nplaces, moving;
  char **buffers; /* of the body: where each begins */
  int64_t *bytes; /* of one element of each operand and of each result */
  int *elements;  /* by operand: the buffer that holds it, -1: none */
  int *written;   /* by result: the buffer of the body that lies there, -1: it is copied */
};

static bool moves(const struct running_loop *l, int buffer) {
  for (int i = l->scan.carries; i < l->scan.carries + l->scan.sequences; i++)
    if (l->elements[i] == buffer) return true;
  for (int i = l->scan.carries; i < l->scan.carries + l->scan.stacks; i++)
    if (l->written[i] == buffer) return true;
  return false;
}

/* Whether the step may write `to` where `from` is, as far as it reads that. */
static bool step_overwrites(const struct step *s, int from, int to) {
  int reads = s->noperands - step_results(s);
  for (int i = 0; i < reads; i++)
    for (int k = reads; k < s->noperands; k++)
      if (s->operands[i].buffer == from && s->operands[k].buffer == to &&
          (s->operands[i].offset != s->operands[k].offset || !step_in_place(s, i, k)))
        return false;
  return true;
}

/* Whether `from` is read by nothing behind the first step that writes `to`. */
static bool body_overwrites(const struct running_loop *l, int from, int to) {
  const struct device_plan *dp = &l->body->devices[l->device];
  bool begun = false, good = true;
  for (int i = 0; i < dp->nsteps; i++) {
    const struct step *s = &dp->steps[i];
    int reads = s->noperands - step_results(s);
    for (int k = 0; k < reads; k++) good = good && !(begun && s->operands[k].buffer == from);
    good = good && step_overwrites(s, from, to);
    for (int k = reads; k < s->noperands; k++) begun = begun || s->operands[k].buffer == to;
  }
  return good;
}

static bool is_written(const struct running_loop *l, int buffer, int nresults) {
  for (int i = 0; i < nresults; i++)
    if (l->written[i] == buffer) return true;
  return false;
}

/* Which buffers of the body need no memory of their own, as all of what they hold at last is one result. */
static void find_written(struct arena *a, struct running_loop *l) {
  int nresults = l->scan.carries + l->scan.stacks;
  l->written = arena_new_array(a, (size_t)nresults + 1, int);
  for (int i = 0; i < nresults; i++) {
    const struct operand *o = &l->body->outputs[i].operand;
    const struct plan_buffer *b = &l->body->buffers[o->buffer];
    bool fits = b->region == REGION_ARENA && o->offset == 0 &&
                b->bytes == l->bytes[l->step->node->ninputs + i] && !is_written(l, o->buffer, i);
    if (i < l->scan.carries && l->elements[i] >= 0)
      fits = fits && body_overwrites(l, l->elements[i], o->buffer);
    l->written[i] = fits ? o->buffer : -1;
  }
}

static void find_places(struct arena *a, struct running_loop *l) {
  const struct device_plan *dp = &l->body->devices[l->device];
  int count = 0;
  for (int i = 0; i < dp->nsteps; i++) count += dp->steps[i].noperands;
  l->places = arena_new_array(a, (size_t)count + 1, struct place);
  for (int moving = 1; moving >= 0; moving--) {
    for (int i = 0; i < dp->nsteps; i++)
      for (int k = 0; k < dp->steps[i].noperands; k++) {
        const struct operand *o = &dp->steps[i].operands[k];
        if (moves(l, o->buffer) == moving)
          l->places[l->nplaces++] =
              (struct place){(void **)(uintptr_t)&l->commands[i].args[k], o->buffer, o->offset};
      }
    if (moving) l->moving = l->nplaces;
  }
}

const void *loop_make(struct arena *a, const struct step *s, int device, const struct command *commands,
                      const struct pieces *const *entered, const struct command *copies, void *constants,
                      const struct board *board, struct step_time *const *took) {
  struct running_loop *l = arena_new(a, struct running_loop);
  const struct node *n = s->node;
  *l = (struct running_loop){.step = s,
                             .body = s->loop->body,
                             .scan = scan_of(n),
                             .device = device,
                             .nsteps = s->loop->body->devices[device].nsteps,
                             .commands = commands,
                             .entered = entered,
                             .copies = copies,
                             .constants = constants,
                             .board = board,
                             .took = took};
  int results = node_results(n);
  l->buffers = arena_new_array(a, (size_t)l->body->nbuffers + 1, char *);
  l->bytes = arena_new_array(a, (size_t)(n->ninputs + results) + 1, int64_t);
  l->elements = arena_new_array(a, (size_t)n->ninputs + 1, int);
  struct node **inputs = scan_inputs(a, l->scan.body);
  for (int i = 0; i < n->ninputs; i++) {
    l->bytes[i] = type_bytes(&inputs[i]->type);
    l->elements[i] = s->loop->inputs[i];
  }
  for (int i = 0; i < results; i++)
    l->bytes[n->ninputs + i] = type_bytes(&l->scan.body->outputs[i].node->type);
  find_written(a, l);
  find_places(a, l);
  return l;
}

static void run_command(const struct command *c) {
  if (c->kind == COMMAND_KERNEL)
    c->kernel(c->args, c->sizes);
  else if (c->kind == COMMAND_CALL)
    c->call(c->args, c->state);
  else if (c->bytes)
    memmove(c->args[1], c->args[0], c->bytes);
}

static void run_commands(const struct running_loop *l) {
  struct step_time *took = *l->took;
  for (int i = 0; i < l->nsteps; i++) {
    struct step_time begin = {0};
    if (took) begin = board_time(l->board);
    run_command(&l->commands[i]);
    if (took) step_time_add(&took[l->commands[i].step], begin, board_time(l->board));
  }
}

static void copy(const struct command *c, void *to, void *from) {
  void **args = (void **)(uintptr_t)c->args;
  args[0] = from, args[1] = to;
  run_command(c);
}

static void set_places(const struct running_loop *l, int first, int end) {
  for (int i = first; i < end; i++)
    *l->places[i].slot = l->buffers[l->places[i].buffer] + l->places[i].offset;
}

/* Where everything is that does not move; what is carried begins where it will end. */
static void bind(const struct running_loop *l, void *const *args) {
  const struct node *n = l->step->node;
  char *arena = args[l->step->noperands - 1];
  for (int i = 0; i < l->body->nbuffers; i++) {
    const struct plan_buffer *b = &l->body->buffers[i];
    if (b->region == REGION_ARENA) l->buffers[i] = arena + b->offset;
    if (b->region == REGION_CONSTANT)
      l->buffers[i] = l->constants ? l->constants + b->offset : (char *)(uintptr_t)b->data;
  }
  for (int i = 0; i < n->ninputs; i++) {
    if (i < l->scan.carries) copy(&l->copies[i], args[n->ninputs + i], args[i]);
    if (l->elements[i] >= 0)
      l->buffers[l->elements[i]] = i < l->scan.carries ? args[n->ninputs + i] : args[i];
  }
  for (int i = 0; i < l->scan.carries; i++)
    if (l->written[i] >= 0) l->buffers[l->written[i]] = args[n->ninputs + i];
  set_places(l, l->moving, l->nplaces);
  for (int i = 0; i < l->nsteps; i++)
    if (l->entered[i]) l->entered[i]->enter(l->commands[i].args, l->entered[i]->state);
}

/* Where the results of step `at` are stacked. */
static char *stacked(const struct running_loop *l, void *const *args, int result, int64_t at) {
  int operand = l->step->node->ninputs + result;
  return (char *)args[operand] + at * l->bytes[operand];
}

void loop_run(void *const *args, const void *state) {
  const struct running_loop *l = state;
  const struct scan *s = &l->scan;
  int operands = l->step->node->ninputs, nresults = s->carries + s->stacks;
  bind(l, args);
  for (int64_t k = 0; k < s->length; k++) {
    int64_t at = s->reverse ? s->length - 1 - k : k;
    for (int i = s->carries; i < s->carries + s->sequences; i++)
      if (l->elements[i] >= 0) l->buffers[l->elements[i]] = (char *)args[i] + at * l->bytes[i];
    for (int i = s->carries; i < nresults; i++)
      if (l->written[i] >= 0) l->buffers[l->written[i]] = stacked(l, args, i, at);
    set_places(l, 0, l->moving);
    run_commands(l);
    for (int i = 0; i < nresults; i++) {
      const struct operand *o = &l->body->outputs[i].operand;
      if (l->written[i] >= 0) continue;
      copy(&l->copies[i], i < s->carries ? args[operands + i] : stacked(l, args, i, at),
           l->buffers[o->buffer] + o->offset);
    }
  }
}
