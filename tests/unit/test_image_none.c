/* SPDX-License-Identifier: Apache-2.0 */
/* Where libpng and libjpeg are missing, images are refused in words of use, when they are to be decoded. */
#include "runtime/data/data.h"
#include "tests/support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* What is said of a file that begins with these bytes. */
static void refused(const char *name, const void *bytes, size_t len, const char *words) {
  struct arena *a = arena_create();
  struct diags d;
  const struct batch *b;
  char path[220];
  assert_true(scratch_make());
  snprintf(path, sizeof path, "%s/%s", scratch_path, name);
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(bytes, 1, len, f), len);
  fclose(f);
  diags_init(&d, a);
  struct data_spec spec = {.name = "x", .path = path};
  struct dataset *ds = dataset_open(a, NULL, &spec, 1, NULL, &d);
  assert_non_null(ds);
  struct loader_options o = {.batch = 1, .decoders = 2};
  struct loader *l = loader_create(a, ds, &o, &d);
  assert_non_null(l);
  assert_int_equal(loader_next(l, &b, &d), LOADER_ERROR);
  assert_non_null(strstr(diags_text(&d, false), words));
  loader_destroy(l);
  dataset_close(ds);
  arena_destroy(a);
}

static void images(void **state) {
  (void)state;
  refused("x.png", "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\2\0\0\0\3\b\2\0\0\0", 29,
          "built without libpng; build it with -Dpng=enabled");
  refused("x.jpg", "\xff\xd8\xff\xc0\0\x11\b\0\2\0\3\3", 12,
          "built without libjpeg; build it with -Djpeg=enabled");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(images)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
