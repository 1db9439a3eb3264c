/* The interpreter: the slow and obvious backend that the others are compared with. */
#include "runtime/backend.h"

#include <string.h>

static int nothing;

static void *interp_open(const struct target *target, struct diags *d) {
  for (int i = 0; i < target->ndevices; i++)
    if (strcmp(target->devices[i].name.kind, "cpu") != 0) {
      diag_error(d, LOC_NONE, "the interp backend has no device %s", target->devices[i].text);
      return NULL;
    }
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

static void interp_copy(void *self, void *to, int to_device, const void *from, int from_device,
                        size_t bytes) {
  (void)self, (void)to_device, (void)from_device;
  if (bytes) memcpy(to, from, bytes);
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

static bool interp_prepare(void *self, struct arena *a, const struct step *step, struct command *c,
                           struct diags *d) {
  (void)self, (void)a, (void)d;
  c->kind = COMMAND_CALL;
  c->call = step->kind == STEP_KERNEL ? run_kernel : run_matmul;
  c->state = step;
  return true;
}

const struct backend backend_interp = {
    .name = "interp",
    .help = "kernels and matrix products element by element: slow, for comparison",
    .open = interp_open,
    .close = interp_close,
    .alloc = interp_alloc,
    .free = interp_free,
    .copy = interp_copy,
    .prepare = interp_prepare,
};
