/* SPDX-License-Identifier: Apache-2.0 */
/* Where zlib is missing, compressed files are refused in words of use, and checksums are still checked. */
#include "runtime/data/decompress.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static int64_t any_size(const char *path, const uint8_t *head, int64_t len) {
  (void)path, (void)head, (void)len;
  return 0;
}

static void packed_files(void **state) {
  (void)state;
  struct arena *a = arena_create();
  struct diags d;
  struct content b;
  diags_init(&d, a);
  assert_false(content_open(&b, NULL, TEST_DATA "/labels.gz", any_size, NULL, LOC_NONE, &d));
  assert_int_equal(b.len, 0);
  const char *text = diags_text(&d, false);
  assert_non_null(strstr(text, "labels.gz is compressed, and this dgc was built without zlib"));
  assert_non_null(strstr(text, "gunzip"));
  assert_true(content_open(&b, NULL, TEST_DATA "/f4.npy", any_size, NULL, LOC_NONE, &d));
  content_close(&b);
  arena_destroy(a);
}

static void checksums(void **state) {
  (void)state;
  const uint8_t *check = (const uint8_t *)"123456789";
  assert_true(crc_add(0, check, 9) == 0xcbf43926); /* the check value of CRC-32 */
  assert_true(crc_add(crc_add(0, check, 4), check + 4, 5) == 0xcbf43926);
  assert_true(crc_add(0, check, 0) == 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(packed_files), cmocka_unit_test(checksums)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
