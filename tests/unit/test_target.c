/* SPDX-License-Identifier: Apache-2.0 */
/* Device names and lists; towers over devices and rows over towers. */
#include "ir/target.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct arena *arena;

static int setup(void **state) {
  (void)state;
  arena = arena_create();
  return 0;
}

static int teardown(void **state) {
  (void)state;
  arena_destroy(arena);
  return 0;
}

/* The canonical spelling, or NULL. */
static const char *canonical(const char *text) {
  struct device_name name;
  return device_name_parse(arena, text, &name) ? device_name_text(arena, name) : NULL;
}

static void names(void **state) {
  (void)state;
  assert_string_equal(canonical("cpu:0"), "/cpu:0");
  assert_string_equal(canonical("/CPU:0"), "/cpu:0");
  assert_string_equal(canonical("/device:GPU:3"), "/gpu:3");
  assert_string_equal(canonical("/job:PS/task:3/device:GPU:0"), "/job:ps/task:3/gpu:0");
  assert_string_equal(canonical("gpu:*"), "/gpu");
  assert_string_equal(canonical("gpu:2/1"), "/gpu:2/1");
  assert_string_equal(canonical("gpu:0/*"), "/gpu:0");
  assert_string_equal(canonical("/device:GPU:0/3/job:w"), "/job:w/gpu:0/3");
  assert_string_equal(canonical("/job:worker"), "/job:worker");
  static const char *const wrong[] = {
      "",         "/",         "cpu:",        "cpu:0x",       "cpu:-1",
      "npu:0",    "cpu:0/",    "//cpu:0",     "/task:",       "cpu:99999999999",
      "cpu:0-1",  "/job:",     "cpu:0/gpu:0", "cpux",         "cpu:0/0",
      "gpu/0",    "gpu:*/0",   "gpu:0/",      "gpu:0/0/0",    "gpu:0/x",
      "gpu:0//0", "gpu:0/0-1", "gpu:0/-1",    "/job:a/job:b", "/task:1/task:2",
      " cpu:0"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) assert_null(canonical(wrong[i]));
}

static bool matches(const char *want, const char *device) {
  struct device_name w, d;
  assert_true(device_name_parse(arena, want, &w) && device_name_parse(arena, device, &d));
  return device_matches(&w, &d);
}

static void matching(void **state) {
  (void)state;
  assert_true(matches("gpu:1", "/job:worker/task:0/gpu:1"));
  assert_true(matches("/GPU:*", "/gpu:7"));
  assert_true(matches("/task:2", "/job:a/task:2/cpu:0"));
  assert_false(matches("/job:ps", "/gpu:1"));
  assert_false(matches("gpu:1", "/gpu:0"));
  assert_false(matches("cpu", "/gpu:0"));
  assert_true(matches("gpu:0", "/gpu:0/1"));
  assert_true(matches("gpu:0/1", "/gpu:0/1"));
  assert_false(matches("gpu:0/0", "/gpu:0/1"));
  assert_false(matches("gpu:0/0", "/gpu:0"));
  assert_false(matches("gpu:1/1", "/gpu:0/1"));
}

static void merging(void **state) {
  (void)state;
  struct device_name base, over;
  device_name_parse(arena, "/job:worker/task:1/cpu:0", &base);
  device_name_parse(arena, "/task:2/gpu", &over);
  assert_string_equal(device_name_text(arena, device_name_merge(base, over)), "/job:worker/task:2/gpu:0");
  device_name_parse(arena, "/task:1/gpu:3/1", &base);
  device_name_parse(arena, "/gpu:2", &over);
  assert_string_equal(device_name_text(arena, device_name_merge(base, over)), "/task:1/gpu:2/1");
  device_name_parse(arena, "/gpu:2/0", &over);
  assert_string_equal(device_name_text(arena, device_name_merge(base, over)), "/task:1/gpu:2/0");
}

static bool parse(const char *list, struct target *t, const char **error) {
  struct diags d;
  diags_init(&d, arena);
  bool ok = target_parse(arena, list, t, &d, LOC_NONE);
  assert_int_equal(d.nerrors, ok ? 0 : 1);
  *error = diags_text(&d, false);
  return ok;
}

static void lists(void **state) {
  (void)state;
  struct target t;
  const char *error;
  assert_true(parse("cpu:0-1, GPU:0,/gpu:1", &t, &error));
  assert_int_equal(t.ndevices, 4);
  static const char *const texts[] = {"/cpu:0", "/cpu:1", "/gpu:0", "/gpu:1"};
  static const int memories[] = {0, 0, 2, 3};
  for (int i = 0; i < 4; i++) {
    assert_string_equal(t.devices[i].text, texts[i]);
    assert_int_equal(t.devices[i].memory, memories[i]);
    assert_false(t.devices[i].simulated);
  }
  assert_true(parse("/job:w/task:0/cpu:0,/job:w/task:1/cpu:0-1", &t, &error));
  assert_int_equal(t.devices[0].memory, 0);
  assert_int_equal(t.devices[1].memory, 1);
  assert_int_equal(t.devices[2].memory, 1);
  assert_true(parse("gpu:0/0-1,cpu:0,gpu:1/3,gpu:2,/task:1/gpu:0/0,gpu:0/7", &t, &error));
  static const char *const parts[] = {"/gpu:0/0", "/gpu:0/1",        "/cpu:0",  "/gpu:1/3",
                                      "/gpu:2",   "/task:1/gpu:0/0", "/gpu:0/7"};
  static const int shared[] = {0, 0, 2, 3, 4, 5, 0};
  assert_int_equal(t.ndevices, 7);
  for (int i = 0; i < 7; i++) {
    assert_string_equal(t.devices[i].text, parts[i]);
    assert_int_equal(t.devices[i].memory, shared[i]);
  }
  assert_true(parse("cpu:0-16383", &t, &error));
  assert_int_equal(t.ndevices, 16384);
}

static void wrong_lists(void **state) {
  (void)state;
  struct target t;
  const char *error;
  assert_false(parse("cpu:0,cpu:0", &t, &error));
  assert_string_equal(error, "error: device /cpu:0 is listed twice\n");
  assert_false(parse("cpu:0,/CPU:0", &t, &error));
  assert_false(parse("cpu:3-1", &t, &error));
  assert_string_equal(error, "error: the range of 'cpu:3-1' is empty\n");
  assert_false(parse("gpu:0,gpu:0/1", &t, &error));
  assert_string_equal(error, "error: /gpu:0/1 is a part of /gpu:0: list the whole card or its parts\n");
  assert_false(parse("gpu:1,gpu:0/1,gpu:0", &t, &error));
  assert_string_equal(error, "error: /gpu:0/1 is a part of /gpu:0: list the whole card or its parts\n");
  assert_false(parse("gpu:0/0,gpu:0/0", &t, &error));
  assert_string_equal(error, "error: device /gpu:0/0 is listed twice\n");
  assert_false(parse("gpu:0/1-0", &t, &error));
  assert_string_equal(error, "error: the range of 'gpu:0/1-0' is empty\n");
  assert_false(parse("cpu:0/1", &t, &error));
  assert_string_equal(error,
                      "error: 'cpu:0/1' is not a device: expected something like cpu:0, gpu:0-3, gpu:0/1 or "
                      "/job:worker/task:0/cpu:0\n");
  assert_false(parse("cpu:0-16384", &t, &error));
  assert_string_equal(error, "error: more than 16384 devices\n");
  assert_false(parse("cpu:0-999999999", &t, &error));
  static const char *const wrong[] = {
      "",        ",",       "cpu:0,",  "cpu",       "/job:w/task:0", "cpu:0 cpu:1", "cpu:*",
      "cpu:0-*", "cpu:*-3", "gpu:0/*", "gpu:0-1/0", "gpu:0/0-*",     "npu:0"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) assert_false(parse(wrong[i], &t, &error));
}

static void implied_cpu(void **state) {
  (void)state;
  struct target t;
  const char *error;
  assert_true(parse("/job:w/task:1/gpu:3/1,/job:w/task:1/gpu:0", &t, &error));
  assert_int_equal(target_add_cpu(arena, &t, 1), 2);
  assert_string_equal(t.devices[2].text, "/job:w/task:1/cpu:0");
  assert_int_equal(t.devices[2].memory, 2);
}

/* By device; NULL: on no two hosts. What is not among the devices has no number. */
static void hosts(void **state) {
  (void)state;
  static const struct {
    const char *spec, *devices, *hosts;
  } cases[] = {
      {NULL, "cpu:0-1", NULL},
      {"worker=2", "/job:worker/task:0/cpu:0,/job:worker/task:1/cpu:0", NULL},
      {"worker=a:1,a:2", "/job:worker/task:0/cpu:0,/job:worker/task:1/cpu:0", NULL},
      {"worker=a:1,b:1", "/job:worker/task:0/cpu:0-1,/job:worker/task:1/cpu:0", "001"},
      {"worker=a:1,b:1,a:2", "/job:worker/task:0/cpu:0,/job:worker/task:1/cpu:0,/job:worker/task:2/cpu:0",
       "010"},
      {"ps=c;worker=[::1]:1,[::1]:2,[::2]",
       "/job:worker/task:0/cpu:0,/job:worker/task:1/cpu:0,/job:worker/task:2/cpu:0,/job:ps/task:0/cpu:0",
       "0012"},
      {"worker=a,b,c,d,e,f", "/job:worker/task:4/cpu:0,/job:worker/task:5/cpu:0", "01"},
      {"worker=a,b,c,d,e,f", "/job:worker/task:5/cpu:0,/job:worker/task:6/cpu:0,/job:worker/task:4/cpu:0",
       "001"},
      {"worker=a,b,c,d,e,f", "/job:worker/task:7/cpu:0,/job:worker/task:5/cpu:0", NULL},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct target t;
    const char *error;
    assert_true(parse(cases[i].devices, &t, &error));
    const int *got = cluster_hosts(arena, cases[i].spec, &t);
    assert_int_equal(got == NULL, cases[i].hosts == NULL);
    if (!got) continue;
    assert_int_equal(t.ndevices, strlen(cases[i].hosts));
    for (int k = 0; k < t.ndevices; k++) assert_int_equal(got[k], cases[i].hosts[k] - '0');
  }
}

/* Every tower and every row has one place, blocks are contiguous and differ by at most one. */
static void blocks(void **state) {
  (void)state;
  for (int towers = 1; towers < 12; towers++)
    for (int devices = 1; devices < 12; devices++) {
      int count[12] = {0}, last = 0;
      for (int t = 0; t < towers; t++) {
        int d = tower_device(t, towers, devices);
        assert_true(d == last || d == last + 1);
        assert_true(d < devices);
        count[d]++, last = d;
      }
      for (int d = 0; d < devices; d++) assert_int_equal(count[d], towers / devices + (d < towers % devices));
    }
  for (int towers = 1; towers < 9; towers++)
    for (int64_t rows = 0; rows < 20; rows++) {
      int64_t next = 0;
      for (int t = 0; t < towers; t++) {
        assert_int_equal(tower_first_row(t, towers, rows), next);
        next += tower_rows(t, towers, rows);
      }
      assert_int_equal(next, rows);
    }
  assert_int_equal(tower_rows(0, 2, 3), 2);
  assert_int_equal(tower_rows(4, 5, 4), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(names),       cmocka_unit_test(matching),    cmocka_unit_test(merging),
      cmocka_unit_test(lists),       cmocka_unit_test(wrong_lists), cmocka_unit_test(blocks),
      cmocka_unit_test(implied_cpu), cmocka_unit_test(hosts),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
