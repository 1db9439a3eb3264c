/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DGC_TESTS_SUPPORT_NPY_FILE_H
#define DGC_TESTS_SUPPORT_NPY_FILE_H

#include "runtime/data/reader.h"
#include "tests/support/fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* An array of numpy's in the world's folder, of f32 or u8: what the source holds in memory. Its header is as long as a
 * byte says. */
static inline void write_npy(struct world *w, const char *name, const struct row_source *s) {
  struct str header = str_make(w->arena);
  str_printf(&header, "{'descr': '%s', 'fortran_order': False, 'shape': (%d,",
             s->row.dtype == DT_F32 ? "<f4" : "|u1", (int)s->rows);
  for (int i = 0; i < s->row.rank; i++) str_printf(&header, " %d,", (int)s->row.dim[i]);
  str_put(&header, ")}");
  size_t bytes = (size_t)(s->rows * type_bytes(&s->row));
  FILE *f = fopen(arena_printf(w->arena, "%s/%s", w->folder, name), "wb");
  assert_non_null(f);
  fwrite("\x93NUMPY\1\0", 1, 8, f);
  fputc((int)strlen(header.data), f);
  fputc(0, f);
  fputs(header.data, f);
  assert_int_equal(fwrite(s->data, 1, bytes, f), bytes);
  fclose(f);
}

#endif
