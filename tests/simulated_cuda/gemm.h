/* SPDX-License-Identifier: Apache-2.0 */
/* C = alpha * op(A) * op(B) + beta * C, column by column, for the types REAL (float or double). Every element
 * of C sums its products in order, each rounded, so the result does not depend on the blocking. Included by
 * cublas.c with REAL, NAME and TARGET; VECTOR is 32 bytes of REAL. */

/* One tile: LINES rows by COLUMNS columns; a and b are packed, k times so many values. */
TARGET static void NAME(tile)(int k, const REAL *a, const REAL *b, REAL *out) {
  VECTOR sum[COLUMNS][2];
  memset(sum, 0, sizeof sum);
  for (int i = 0; i < k; i++, a += LINES, b += COLUMNS) {
    VECTOR low, high;
    memcpy(&low, a, sizeof low);
    memcpy(&high, a + LINES / 2, sizeof high);
#pragma GCC unroll 8
    for (int j = 0; j < COLUMNS; j++) {
      sum[j][0] += low * b[j];
      sum[j][1] += high * b[j];
    }
  }
  memcpy(out, sum, sizeof sum);
}

/* Panels of `width` lines: element (line, i) of the operand is number line * line_step + i * step. */
TARGET static void NAME(pack)(const struct gemm *g, int type, const void *from, int lines,
                              long long line_step, long long step, int width, REAL *to) {
  bool as_it_is = type == (sizeof(REAL) == 8 ? CUDA_R_64F : CUDA_R_32F) && g->rounding == EXACT;
  for (int first = 0; first < lines; first += width) {
    int count = lines - first < width ? lines - first : width;
    for (int i = 0; i < g->k; i++, to += width) {
      long long at = first * line_step + i * step;
      for (int k = 0; as_it_is && k < count; k++) to[k] = ((const REAL *)from)[at + k * line_step];
      for (int k = 0; !as_it_is && k < count; k++)
        to[k] = (REAL)element(from, type, at + k * line_step, g->rounding);
      for (int k = count; k < width; k++) to[k] = 0;
    }
  }
}

static void NAME(gemm)(const struct gemm *g, const char *a, const char *b, char *c, REAL *room) {
  int rows = (g->m + LINES - 1) / LINES, columns = (g->n + COLUMNS - 1) / COLUMNS;
  REAL *pa = room, *pb = room + (size_t)rows * LINES * (size_t)g->k;
  bool ta = g->transa == CUBLAS_OP_T, tb = g->transb == CUBLAS_OP_T;
  NAME(pack)(g, g->a_type, a, g->m, ta ? g->lda : 1, ta ? 1 : g->lda, LINES, pa);
  NAME(pack)(g, g->b_type, b, g->n, tb ? 1 : g->ldb, tb ? g->ldb : 1, COLUMNS, pb);
  for (int row = 0; row < rows; row++)
    for (int column = 0; column < columns; column++) {
      REAL sum[COLUMNS][LINES];
      NAME(tile)
      (g->k, pa + (size_t)row * LINES * (size_t)g->k, pb + (size_t)column * COLUMNS * (size_t)g->k, sum[0]);
      for (int j = 0; j < COLUMNS && column * COLUMNS + j < g->n; j++)
        for (int i = 0; i < LINES && row * LINES + i < g->m; i++) {
          long long at = row * LINES + i + (column * COLUMNS + j) * (long long)g->ldc;
          REAL old = g->beta != 0 ? (REAL)element(c, g->c_type, at, EXACT) : 0;
          REAL product = (REAL)g->alpha * sum[j][i];
          store(c, g->c_type, at, g->beta != 0 ? product + (REAL)g->beta * old : product);
        }
    }
}
