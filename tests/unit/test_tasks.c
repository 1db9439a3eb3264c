/* SPDX-License-Identifier: Apache-2.0 */
/* Which task of a cluster is slow, and who waits for it, from what each has done with its time. */
#include "session/tasks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define W(i)  "/job:worker/task:" #i
#define PS(i) "/job:ps/task:" #i

/* A cluster by its tasks: what is given, and what is to come of it. */
static const struct {
  const char *what;
  int slowest; /* which is so many times slower, and whom so many tasks wait for */
  double slower;
  int followers, count;
  struct dgc_task tasks[6];
} clusters[] = {
    {"three workers and a slow one",
     3,
     1.8,
     3,
     4,
     {{W(0), 50, 40, 0, 3, 40, 0, 0, 0},
      {W(1), 50, 40, 0, 3, 30, 0, 0, 0},
      {W(2), 48, 40, 2, 3, 40, 0, 0, 0},
      {W(3), 90, 0, 0, -1, 0, 0, 0, 0}}},
    {"a ring: who waits for one that waits",
     0,
     2,
     3,
     4,
     {{W(0), 80, 4, 16, 3, 4, 0, 0, 0},
      {W(1), 40, 50, 10, 0, 50, 0, 0, 0},
      {W(2), 40, 50, 10, 1, 50, 0, 0, 0},
      {W(3), 39, 50, 11, 2, 50, 0, 0, 0}}},
    {"servers compute less than workers, and are not slow for that",
     1,
     1.5,
     3,
     4,
     {{W(0), 40, 20, 0, 2, 20, 0, 0, 0},
      {W(1), 60, 0, 0, -1, 0, 0, 0, 0},
      {PS(0), 1, 50, 9, 1, 50, 0, 0, 0},
      {PS(1), 1, 50, 9, 1, 50, 0, 0, 0}}},
    {"one that nobody waits for: its time is its own",
     1,
     2,
     0,
     3,
     {{W(0), 40, 5, 55, 1, 5, 0, 0, 0}, {W(1), 80, 0, 20, -1, 0, 0, 0, 0}, {W(2), 40, 9, 51, 1, 9, 0, 0, 0}}},
    {"others wait for somebody else, two of them for each other",
     0,
     2,
     1,
     4,
     {{W(0), 80, 0, 20, -1, 0, 0, 0, 0},
      {W(1), 40, 50, 10, 0, 50, 0, 0, 0},
      {W(2), 40, 50, 10, 3, 50, 0, 0, 0},
      {W(3), 40, 50, 10, 2, 50, 0, 0, 0}}},
    {"task 1 is no relative of task 10",
     2,
     3,
     1,
     3,
     {{"/job:w/task:0", 10, 20, 0, 2, 20, 0, 0, 0},
      {"/job:worker/task:0", 20, 1, 0, -1, 0, 0, 0, 0},
      {"/job:worker/task:1", 60, 1, 0, -1, 0, 0, 0, 0}}},
    {"one task", 0, 0, 0, 1, {{W(0), 50, 0, 0, -1, 0, 0, 0, 0}}},
};

static void the_slowest_is_found(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof clusters / sizeof *clusters; i++) {
    struct arena *a = arena_create();
    struct dgc_task tasks[6];
    int count = clusters[i].count;
    memcpy(tasks, clusters[i].tasks, sizeof tasks);
    tasks_judge(a, tasks, count);
    for (int k = 0; k < count; k++) {
      bool slowest = k == clusters[i].slowest;
      int followers = slowest ? clusters[i].followers : 0;
      if (slowest &&
          !(tasks[k].slower > clusters[i].slower - 1e-9 && tasks[k].slower < clusters[i].slower + 1e-9))
        fail_msg("%s: %s is %g times slower", clusters[i].what, tasks[k].name, tasks[k].slower);
      if (!slowest && tasks[k].slower > clusters[i].slower)
        fail_msg("%s: %s is slower", clusters[i].what, tasks[k].name);
      if (tasks[k].followers != followers)
        fail_msg("%s: %d wait for %s", clusters[i].what, tasks[k].followers, tasks[k].name);
    }
    arena_destroy(a);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_slowest_is_found)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
