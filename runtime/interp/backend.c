/* The interpreter: the slow and obvious backend that the others are compared with. */
#include "runtime/backend.h"

#include <string.h>

static int nothing;

static void *interp_open(const struct target *target, struct diags *d) {
  (void)target, (void)d;
  return &nothing;
}

static void interp_close(void *self) { (void)self; }

static void *interp_alloc(void *self, int device, size_t bytes) {
  (void)self, (void)device;
  return host_alloc(bytes);
}

static void interp_free(void *self, int device, void *data, size_t bytes) {
  (void)self, (void)device, (void)bytes;
  host_free(data);
}

static bool interp_copy(void *self, void *to, int to_device, const void *from, int from_device,
                        size_t bytes) {
  (void)self, (void)to_device, (void)from_device;
  if (bytes) memcpy(to, from, bytes);
  return true;
}

static void run_kernel(void *const *args, const void *state) {
  const struct step *s = state;
  kernel_eval(s->kernel, args, s->sizes);
}

/* c[i,j] = sum over l, in order, of a[i,l] b[l,j]; integers wrap. */
#define MATMUL(T, ACC)                                                                     \
  static void matmul_##T(void *const *args, const struct matmul_size *s) {                 \
    const T *a = args[0], *b = args[1];                                                    \
    T *c = args[2];                                                                        \
    int64_t row_a = s->transpose_a ? 1 : s->k, column_a = s->transpose_a ? s->m : 1;       \
    int64_t row_b = s->transpose_b ? 1 : s->n, column_b = s->transpose_b ? s->k : 1;       \
    for (int64_t batch = 0; batch < s->batch; batch++, a += s->m * s->k, b += s->k * s->n) \
      for (int64_t i = 0; i < s->m; i++)                                                   \
        for (int64_t j = 0; j < s->n; j++) {                                               \
          ACC sum = 0;                                                                     \
          for (int64_t l = 0; l < s->k; l++)                                               \
            sum += (ACC)a[i * row_a + l * column_a] * (ACC)b[l * row_b + j * column_b];    \
          *c++ = (T)sum;                                                                   \
        }                                                                                  \
  }
MATMUL(float, float)
MATMUL(double, double)
MATMUL(int32_t, uint32_t)
MATMUL(int64_t, uint64_t)
MATMUL(uint8_t, uint32_t)

static void run_matmul(void *const *args, const void *state) {
  const struct matmul_size *m = &((const struct step *)state)->matmul;
  switch (m->dtype) {
  case DT_F32: matmul_float(args, m); break;
  case DT_F64: matmul_double(args, m); break;
  case DT_I32: matmul_int32_t(args, m); break;
  case DT_I64: matmul_int64_t(args, m); break;
  default: matmul_uint8_t(args, m); break;
  }
}

/* The row that number i names, or -1: none. */
static int64_t row_at(const struct rows_size *r, const void *index, int64_t i) {
  int64_t row = r->index == DT_U8    ? ((const uint8_t *)index)[i]
                : r->index == DT_I32 ? ((const int32_t *)index)[i]
                                     : ((const int64_t *)index)[i];
  return row >= 0 && row < r->rows ? row : -1;
}

static void run_gather(void *const *args, const void *state) {
  const struct rows_size *r = &((const struct step *)state)->rows;
  const char *table = args[0];
  char *out = args[2];
  int64_t bytes = r->width * dtype_size(r->dtype);
  for (int64_t i = 0; i < r->count; i++) {
    int64_t row = row_at(r, args[1], i);
    for (int64_t k = 0; k < bytes; k++) *out++ = row < 0 ? 0 : table[row * bytes + k];
  }
}

/* Integers wrap. */
#define ADD_ROW(T)                                                       \
  do {                                                                   \
    T *to = (T *)args[3] + row * r->width;                               \
    const T *from = (const T *)args[2] + i * r->width;                   \
    for (int64_t k = 0; k < r->width; k++) to[k] = (T)(to[k] + from[k]); \
  } while (0)

static void run_scatter(void *const *args, const void *state) {
  const struct rows_size *r = &((const struct step *)state)->rows;
  int64_t bytes = step_rows_bytes(state, 0);
  if (args[0] != args[3] && bytes) memcpy(args[3], args[0], (size_t)bytes);
  for (int64_t i = 0; i < r->count; i++) {
    int64_t row = row_at(r, args[1], i);
    if (row < 0) continue;
    switch (r->dtype) {
    case DT_F32: ADD_ROW(float); break;
    case DT_F64: ADD_ROW(double); break;
    case DT_I32: ADD_ROW(uint32_t); break;
    case DT_I64: ADD_ROW(uint64_t); break;
    default: ADD_ROW(uint8_t); break;
    }
  }
}

static bool interp_prepare(void *self, struct arena *a, const struct step *step, int device,
                           struct command *c, struct diags *d) {
  (void)self, (void)a, (void)device, (void)d;
  c->kind = COMMAND_CALL;
  switch (step->kind) {
  case STEP_KERNEL: c->call = run_kernel; break;
  case STEP_GATHER: c->call = run_gather; break;
  case STEP_SCATTER: c->call = run_scatter; break;
  default: c->call = run_matmul; break;
  }
  c->state = step;
  return true;
}

const struct backend backend_interp = {
    .name = "interp",
    .help = "kernels and matrix products element by element: slow, for comparison",
    .kind = "cpu",
    .host = true,
    .open = interp_open,
    .close = interp_close,
    .alloc = interp_alloc,
    .free = interp_free,
    .copy = interp_copy,
    .prepare = interp_prepare,
};
