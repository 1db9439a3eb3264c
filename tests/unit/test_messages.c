/* SPDX-License-Identifier: Apache-2.0 */
/* Plans for processes: random graphs over the tasks of a cluster, run with messages that are taken early or late,
 * against the plain evaluation of the graph. */
#include "ir/plan/posts.h"
#include "message_case.h"

/* Whether a run with this receive posted one step earlier shows it. */
static bool too_early_shows(struct subject *s, const struct plan *p, int **posts, int device, int step) {
  bool seen = false;
  posts[device][step]--;
  for (uint64_t i = 0; i < 4 && !seen; i++)
    seen = run_posted(&s->f, s->g, s->want, p, posts, s->seed * 5 + i) != NULL;
  posts[device][step]++;
  return seen;
}

struct posted {
  int receives, early, tried, seen, variables;
};

/* From where they are posted, messages may come; one step earlier, somebody would see that in many a plan: the others
 * are sent later, or what they overwrite is not read again. */
static void receives_are_posted_early(struct subject *s, const struct plan *p, struct posted *all) {
  int **posts = arena_new_array(s->f.arena, (size_t)p->ndevices, int *);
  for (int d = 0; d < p->ndevices; d++) posts[d] = plan_posts(s->f.arena, p, d);
  for (uint64_t k = 0; k < 4; k++) {
    const char *wrong = run_posted(&s->f, s->g, s->want, p, posts, s->seed * 5 + k);
    if (wrong) {
      show(&s->f, s->fused, p);
      fail_msg("seed %d, posted early: %s differs", (int)s->seed, wrong);
    }
  }
  for (int d = 0; d < p->ndevices; d++)
    for (int k = 0; k < p->devices[d].nsteps; k++) {
      const struct step *step = &p->devices[d].steps[k];
      if (step->kind != STEP_RECEIVE) {
        assert_int_equal(posts[d][k], k);
        continue;
      }
      assert_in_range(posts[d][k], 0, k);
      all->receives++;
      all->early += posts[d][k] < k;
      all->variables += posts[d][k] < k && p->buffers[step->operands[0].buffer].region == REGION_VARIABLE;
      if (posts[d][k] == 0 || step->bytes == 0) continue;
      all->tried++;
      all->seen += too_early_shows(s, p, posts, d, k);
    }
}

static int first_seed = 0, end_seed = 50;

static void plans_for_processes_are_right(void **state) {
  (void)state;
  int messages = 0;
  struct posted all = {0};
  for (int i = first_seed; i < end_seed; i++) {
    struct subject s;
    struct plan *p = begin_random(&s, (uint64_t)i, NULL);
    messages += p->nmessages;
    must_be_right(&s, p, "as planned");
    receives_are_posted_early(&s, p, &all);
    drop_meetings(&s.f, p);
    end(&s.f);
  }
  print_message("%d plans, %d messages\n", end_seed - first_seed, messages);
  print_message(
      "%d receives, %d posted early, %d of them to variables; one step before that: %d of %d seen\n",
      all.receives, all.early, all.variables, all.seen, all.tried);
  assert_true(messages > end_seed - first_seed);
  if (end_seed - first_seed < 100) return;
  assert_true(all.early > all.receives / 2 && all.variables > 0);
  assert_true(all.seen > all.tried / 4);
}

/* Of one task there is nothing to send: the plan is that of one process, step by step. */
static void one_process_needs_no_messages(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < 40; seed++) {
    struct subject s;
    struct plan *p = begin_random(&s, seed, "/job:worker/task:0/cpu:0-2");
    struct plan *alone = plan_build(s.f.arena, s.fused, &s.f.diags);
    struct str a = str_make(s.f.arena), b = str_make(s.f.arena);
    plan_print(&a, p);
    plan_print(&b, alone);
    assert_int_equal(p->nmessages, 0);
    assert_string_equal(a.data, b.data);
    end(&s.f);
  }
}

/* test_messages [FIRST END]: seeds */
int main(int argc, char **argv) {
  if (argc > 2) first_seed = atoi(argv[1]), end_seed = atoi(argv[2]);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(plans_for_processes_are_right),
      cmocka_unit_test(one_process_needs_no_messages),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
