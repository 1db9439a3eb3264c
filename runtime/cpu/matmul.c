/* f32 goes to oneDNN, the other types to kernels/cpu/matmul.c. */
#include "runtime/cpu/matmul.h"

#include "kernels/cpu/matmul.h"

#include <dlfcn.h>
#include <oneapi/dnnl/dnnl.h>
#include <string.h>

/* The library counts the threads of OpenMP, if it was built with it: the call is looked up, as nothing here is. */
void cpu_thread_init(void) {
  void (*set_threads)(int);
  void *symbol = dlsym(RTLD_DEFAULT, "omp_set_num_threads");
  if (symbol == NULL) return;
  memcpy(&set_threads, &symbol, sizeof symbol);
  set_threads(1);
}

static bool one_f32(const struct matmul *mm, const void *a, const void *b, void *c) {
  return dnnl_sgemm(mm->transpose_a ? 'T' : 'N', mm->transpose_b ? 'T' : 'N', mm->m, mm->n, mm->k, 1.0f, a,
                    mm->transpose_a ? mm->m : mm->k, b, mm->transpose_b ? mm->k : mm->n, 0.0f, c,
                    mm->n) == dnnl_success;
}

static bool one_product(const struct matmul *mm, const void *a, const void *b, void *c) {
  int64_t m = mm->m, n = mm->n, k = mm->k;
  int64_t a_row = mm->transpose_a ? 1 : k, a_col = mm->transpose_a ? m : 1;
  int64_t b_row = mm->transpose_b ? 1 : n, b_col = mm->transpose_b ? k : 1;
  switch (mm->dtype) {
  case DT_F32: return one_f32(mm, a, b, c);
  case DT_F64: matmul_f64(m, n, k, a, a_row, a_col, b, b_row, b_col, c); return true;
  case DT_I64: matmul_u64(m, n, k, a, a_row, a_col, b, b_row, b_col, c); return true;
  case DT_I32: matmul_u32(m, n, k, a, a_row, a_col, b, b_row, b_col, c); return true;
  case DT_U8: matmul_u8(m, n, k, a, a_row, a_col, b, b_row, b_col, c); return true;
  default: return false;
  }
}

bool cpu_matmul(const struct matmul *mm, const void *a, const void *b, void *c) {
  int64_t size = dtype_size(mm->dtype);
  int64_t a_step = mm->m * mm->k * size, b_step = mm->k * mm->n * size, c_step = mm->m * mm->n * size;
  if (mm->batch == 0 || c_step == 0) return true;
  if (mm->k == 0) {
    memset(c, 0, (size_t)(mm->batch * c_step));
    return true;
  }
  for (int64_t i = 0; i < mm->batch; i++)
    if (!one_product(mm, (const char *)a + i * a_step, (const char *)b + i * b_step, (char *)c + i * c_step))
      return false;
  return true;
}
