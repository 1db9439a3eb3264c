/* SPDX-License-Identifier: Apache-2.0 */
/* Which launches become one: a group's members run at once unless one writes what another one reads or writes,
 * and its table follows their addresses. The device is made of stubs that write down what they are given. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runtime/cuda/many.c"

static struct cuda_device device;
static struct cuda_engine engine = {.devices = &device, .ndevices = 1};
static int64_t memory[1 << 14]; /* of the device */
static int writes, nlaunches;
static struct {
  int many, sets;
  const int64_t *table;
} launches[16];

void *cuda_alloc(void *self, int d, size_t bytes) {
  (void)self, (void)d;
  assert_true(bytes <= sizeof memory);
  return memory;
}
void cuda_no_work_space(struct cuda_engine *e, int d, size_t bytes, struct diags *diags) {
  (void)e, (void)d, (void)bytes, (void)diags;
}
bool cuda_use(struct cuda_engine *e, int d) { return e == &engine && d == 0; }
bool cuda_write(struct cuda_engine *e, int d, void *to, const void *from, size_t bytes) {
  (void)e, (void)d;
  memcpy(to, from, bytes);
  writes++;
  return true;
}
void cuda_add_set(struct cuda_launch *many, const struct cuda_launch *one) {
  *many = (struct cuda_launch){CUDA_MANY, {one->grid[0], many->grid[1] + 1, 1}, {1, 1, 1}};
}
bool cuda_launch(struct cuda_engine *e, int d, CUfunction f, const struct cuda_launch *l, void **params) {
  (void)e, (void)d, (void)f;
  launches[nlaunches].many = l->entry == CUDA_MANY;
  launches[nlaunches].sets = (int)l->grid[1];
  launches[nlaunches++].table =
      l->entry == CUDA_MANY ? (int64_t *)(uintptr_t) * (CUdeviceptr *)params[0] : NULL;
  return true;
}

/* out[i] = f(in[i]) over 8 floats. */
static const struct kernel kernel = {.kind = KERNEL_MAP,
                                     .rank = 1,
                                     .nargs = 2,
                                     .noutputs = 1,
                                     .args = {{.dtype = DT_F32}, {.dtype = DT_F32, .output = true}}};
static const int64_t forward[] = {8, 1, 1}, backward[] = {8, 1, -1};
static const struct cuda_launch alone = {CUDA_MAIN, {1, 1, 1}, {1, 1, 1}};

static float at[256];

/* A group of maps, each from one offset to another; the launches of its run. */
static int run(struct arena *a, void *(*args)[2], const int64_t *const *sizes, int count) {
  struct cuda_group *g = cuda_group_create(&engine, a, 0, &kernel, NULL, NULL);
  for (int i = 0; i < count; i++) assert_true(cuda_group_join(g, args[i], sizes[i], &alone, NULL, NULL));
  nlaunches = writes = 0;
  cuda_run_group(NULL, g);
  assert_int_equal(writes, 1);
  int once = nlaunches;
  cuda_run_group(NULL, g);
  assert_int_equal(writes, 1); /* the table stands */
  assert_int_equal(nlaunches, 2 * once);
  args[0][0] = at + 255 - 8; /* elsewhere */
  cuda_run_group(NULL, g);
  assert_int_equal(writes, 2);
  nlaunches = once;
  return once;
}

static void groups(void **state) {
  (void)state;
  struct arena *a = arena_create();
  engine.arena = a;
  const int64_t *const sizes[] = {forward, forward, forward, forward};

  void *apart[][2] = {{at, at + 8}, {at + 16, at + 24}, {at + 32, at + 40}, {at, at + 48}};
  assert_int_equal(run(a, apart, sizes, 4), 1);
  assert_true(launches[0].many && launches[0].sets == 4);
  assert_ptr_equal((void *)(uintptr_t)launches[0].table[5], apart[1][0]); /* two args, three sizes */
  assert_int_equal(launches[0].table[7], 8);

  /* The third reads what the second writes: it runs behind it. */
  void *chain[][2] = {{at, at + 8}, {at + 16, at + 24}, {at + 24, at + 40}, {at, at + 48}};
  assert_int_equal(run(a, chain, sizes, 4), 2);
  assert_true(launches[0].many && launches[0].sets == 2 && launches[1].many && launches[1].sets == 2);
  assert_ptr_equal(launches[1].table, launches[0].table + 2 * 5);

  /* One that overwrites what an earlier one reads; one byte is enough. */
  void *over[][2] = {{at, at + 8}, {at + 16, (char *)(at + 7) + 3}};
  assert_int_equal(run(a, over, sizes, 2), 2);
  assert_true(!launches[0].many && !launches[1].many);

  /* In its own place: that is no conflict with itself. */
  void *inside[][2] = {{at, at}, {at + 8, at + 8}};
  assert_int_equal(run(a, inside, sizes, 2), 1);

  /* Backwards from where it points: into the first one's output. */
  const int64_t *const reversed[] = {forward, backward};
  void *back[][2] = {{at, at + 8}, {at + 32, at + 22}};
  assert_int_equal(run(a, back, reversed, 2), 2);
  arena_destroy(a);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(groups)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
