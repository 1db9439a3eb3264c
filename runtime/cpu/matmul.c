/* SPDX-License-Identifier: Apache-2.0 */
/* f32 goes to oneDNN, the other types to kernels/cpu/matmul.c.
 *
 * oneDNN has two ways: a plain call, good for most shapes, and primitives made for one shape, better where B is
 * transposed and where C is narrow. Of bfloat16 values it has primitives that multiply them as such and add up in f32:
 * these are taken where the CPU has units for it. */
#include "runtime/cpu/matmul.h"

#include "kernels/cpu/bf16.h"
#include "kernels/cpu/matmul.h"
#include "runtime/cpu/onednn.h"

#include <stdlib.h>
#include <string.h>

struct matmul_rows matmul_dense(const struct product *mm) {
  return (struct matmul_rows){mm->transpose_a ? mm->m : mm->k, mm->transpose_b ? mm->k : mm->n, mm->n};
}

static bool one_f32(const struct product *mm, const struct matmul_rows *rows, const void *a, const void *b,
                    void *c) {
  return dnnl_sgemm(mm->transpose_a ? 'T' : 'N', mm->transpose_b ? 'T' : 'N', mm->m, mm->n, mm->k, 1.0f, a,
                    rows->a, b, rows->b, 0.0f, c, rows->c) == dnnl_success;
}

static bool one_product(const struct product *mm, const struct matmul_rows *rows, const void *a,
                        const void *b, void *c) {
  int64_t m = mm->m, n = mm->n, k = mm->k, c_row = rows->c;
  int64_t a_row = mm->transpose_a ? 1 : rows->a, a_col = mm->transpose_a ? rows->a : 1;
  int64_t b_row = mm->transpose_b ? 1 : rows->b, b_col = mm->transpose_b ? rows->b : 1;
  switch (mm->dtype) {
  case DT_F32: return one_f32(mm, rows, a, b, c);
  case DT_F64: matmul_f64(m, n, k, a, a_row, a_col, b, b_row, b_col, c, c_row); return true;
  case DT_I64: matmul_u64(m, n, k, a, a_row, a_col, b, b_row, b_col, c, c_row); return true;
  case DT_I32: matmul_u32(m, n, k, a, a_row, a_col, b, b_row, b_col, c, c_row); return true;
  case DT_U8: matmul_u8(m, n, k, a, a_row, a_col, b, b_row, b_col, c, c_row); return true;
  case DT_BOOL:
  case DT_BF16:
  case DT_F16:
  case DT_COUNT: break;
  }
  return false;
}

static bool products(const struct product *mm, const struct matmul_rows *rows, const void *a, const void *b,
                     void *c) {
  int64_t size = dtype_size(mm->dtype);
  int64_t a_step = mm->m * mm->k * size, b_step = mm->k * mm->n * size, c_step = mm->m * mm->n * size;
  if (mm->batch == 0 || c_step == 0) return true;
  if (mm->k == 0) {
    for (int64_t i = 0; i < mm->batch * mm->m; i++)
      memset((char *)c + i * rows->c * size, 0, (size_t)(mm->n * size));
    return true;
  }
  for (int64_t i = 0; i < mm->batch; i++)
    if (!one_product(mm, rows, (const char *)a + i * a_step, (const char *)b + i * b_step,
                     (char *)c + i * c_step))
      return false;
  return true;
}

bool cpu_matmul(const struct product *mm, const void *a, const void *b, void *c) {
  struct matmul_rows rows = matmul_dense(mm);
  return products(mm, &rows, a, b, c);
}

/* ---- plans ---- */

struct cpu_matmul_plan {
  struct product size;
  struct matmul_rows rows;
  bool has_primitive;                   /* else cpu_matmul does it */
  bool halves;                          /* bfloat16 is multiplied, else f32 */
  void *packed[2];                      /* operands that lie otherwise in memory; else NULL */
  const struct cpu_matmul_plan *source; /* of engine and primitive; NULL: they are its own */
  dnnl_engine_t engine;
  dnnl_stream_t stream;
  dnnl_primitive_t primitive;
  dnnl_memory_t a, b, c, scratch; /* the scratch memory is the library's own, one per plan */
};

#if DNNL_VERSION_MAJOR == 2

static bool is_empty(const struct product *mm) {
  return mm->batch <= 0 || mm->m <= 0 || mm->n <= 0 || mm->k <= 0;
}

/* Measured with oneDNN 2.6 on AVX-512: 1.02 to 2.6 times as fast as the plain call within these bounds. */
static bool wants_primitive(const struct product *mm) {
  if (mm->dtype != DT_F32 || is_empty(mm) || mm->m < 32) return false;
  return mm->transpose_b || (!mm->transpose_a && mm->n <= 64);
}

static bool describe(dnnl_memory_desc_t *d, dnnl_data_type_t type, int64_t rows, int64_t columns,
                     bool transposed, int64_t apart) {
  dnnl_dims_t dims = {rows, columns}, strides = {transposed ? 1 : apart, transposed ? apart : 1};
  return dnnl_memory_desc_init_by_strides(d, 2, dims, type, strides) == dnnl_success;
}

static bool create_memory(struct cpu_matmul_plan *p, dnnl_primitive_desc_t desc, const dnnl_memory_desc_t *a,
                          const dnnl_memory_desc_t *b, const dnnl_memory_desc_t *c) {
  const dnnl_memory_desc_t *scratch = dnnl_primitive_desc_query_md(desc, dnnl_query_scratchpad_md, 0);
  return scratch != NULL && dnnl_memory_create(&p->a, a, p->engine, DNNL_MEMORY_NONE) == dnnl_success &&
         dnnl_memory_create(&p->b, b, p->engine, DNNL_MEMORY_NONE) == dnnl_success &&
         dnnl_memory_create(&p->c, c, p->engine, DNNL_MEMORY_NONE) == dnnl_success &&
         dnnl_memory_create(&p->scratch, scratch, p->engine, DNNL_MEMORY_ALLOCATE) == dnnl_success;
}

static bool is_fit(dnnl_data_type_t type, const char *way) {
  return type == dnnl_bf16 ? onednn_takes_units(way) : strncmp(way, "ref", 3) != 0;
}

static bool create_engine(struct cpu_matmul_plan *p, dnnl_status_t *status) {
  if (p->stream) return true;
  *status = dnnl_engine_create(&p->engine, dnnl_cpu, 0);
  if (*status == dnnl_success) *status = dnnl_stream_create(&p->stream, p->engine, dnnl_stream_default_flags);
  return *status == dnnl_success;
}

/* Sets `has_primitive` where the library has one for this shape and operands of this type. False if there is no memory:
 * what would be done instead has other bits. */
static bool create_primitive(struct cpu_matmul_plan *p, dnnl_data_type_t type) {
  const struct product *mm = &p->size;
  dnnl_status_t status = dnnl_success;
  dnnl_memory_desc_t a, b, c;
  dnnl_matmul_desc_t desc;
  dnnl_primitive_attr_t attr = NULL;
  dnnl_primitive_desc_t made = NULL;
#define DONE(call) ((status = (call)) == dnnl_success)
  bool known = describe(&a, type, mm->m, mm->k, mm->transpose_a, p->rows.a) &&
               describe(&b, type, mm->k, mm->n, mm->transpose_b, p->rows.b) &&
               describe(&c, dnnl_f32, mm->m, mm->n, false, p->rows.c) &&
               DONE(dnnl_matmul_desc_init(&desc, &a, &b, NULL, &c)) && create_engine(p, &status) &&
               DONE(dnnl_primitive_attr_create(&attr)) &&
               DONE(dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user)) &&
               DONE(dnnl_primitive_desc_create(&made, &desc, attr, p->engine, NULL)) &&
               is_fit(type, onednn_way(made));
  p->has_primitive =
      known && DONE(dnnl_primitive_create(&p->primitive, made)) && create_memory(p, made, &a, &b, &c);
#undef DONE
  if (made) dnnl_primitive_desc_destroy(made);
  if (attr) dnnl_primitive_attr_destroy(attr);
  return p->has_primitive || (!known && status != dnnl_out_of_memory);
}

static bool copy_memory(dnnl_memory_t *to, dnnl_memory_t from, dnnl_engine_t engine, void *data) {
  const dnnl_memory_desc_t *desc;
  return dnnl_memory_get_memory_desc(from, &desc) == dnnl_success &&
         dnnl_memory_create(to, desc, engine, data) == dnnl_success;
}

static bool create_again(void *plan) {
  struct cpu_matmul_plan *p = plan;
  const struct cpu_matmul_plan *from = p->source;
  return dnnl_stream_create(&p->stream, p->engine, dnnl_stream_default_flags) == dnnl_success &&
         copy_memory(&p->a, from->a, p->engine, DNNL_MEMORY_NONE) &&
         copy_memory(&p->b, from->b, p->engine, DNNL_MEMORY_NONE) &&
         copy_memory(&p->c, from->c, p->engine, DNNL_MEMORY_NONE) &&
         copy_memory(&p->scratch, from->scratch, p->engine, DNNL_MEMORY_ALLOCATE);
}

#else

static bool create_again(void *plan) {
  (void)plan;
  return true;
}

#endif

/* What is multiplied where it does not lie so in memory: bfloat16 of f32, or f32 of bfloat16. */
static bool create_packed(struct cpu_matmul_plan *p) {
  const struct product *mm = &p->size;
  size_t size = p->halves ? sizeof(uint16_t) : sizeof(float);
  p->packed[0] = malloc((size_t)(mm->batch * mm->m * mm->k) * size);
  p->packed[1] = malloc((size_t)(mm->batch * mm->k * mm->n) * size);
  return p->packed[0] && p->packed[1];
}

/* Where operands are packed, no other rows lie between theirs. */
static bool is_dense(const struct cpu_matmul_plan *p) {
  struct matmul_rows dense = matmul_dense(&p->size);
  return p->rows.a == dense.a && p->rows.b == dense.b;
}

static bool prepare(void *plan) {
  struct cpu_matmul_plan *p = plan;
#if DNNL_VERSION_MAJOR == 2
  if (p->size.bf16 && !is_empty(&p->size) && is_dense(p) && onednn_has_units()) {
    if (!create_primitive(p, dnnl_bf16)) return false;
    p->halves = p->has_primitive;
  }
  if (!p->halves && wants_primitive(&p->size) && !create_primitive(p, dnnl_f32)) return false;
#endif
  return !p->size.bf16 || p->halves == p->size.stored || create_packed(p);
}

struct cpu_matmul_plan *cpu_matmul_plan_create(const struct product *mm, const struct matmul_rows *rows) {
  struct cpu_matmul_plan *p = calloc(1, sizeof *p);
  if (p == NULL) return NULL;
  p->size = *mm;
  p->rows = *rows;
  if (mm->dtype != DT_F32 || onednn_make(p, true, prepare)) return p;
  cpu_matmul_plan_destroy(p);
  return NULL;
}

struct cpu_matmul_plan *cpu_matmul_plan_again(const struct cpu_matmul_plan *plan) {
  struct cpu_matmul_plan *p = calloc(1, sizeof *p);
  if (p == NULL) return NULL;
  *p = (struct cpu_matmul_plan){.size = plan->size,
                                .rows = plan->rows,
                                .has_primitive = plan->has_primitive,
                                .halves = plan->halves,
                                .source = plan,
                                .engine = plan->engine,
                                .primitive = plan->primitive};
  bool good = !plan->packed[0] || create_packed(p);
  if (good && (!p->has_primitive || onednn_make(p, true, create_again))) return p;
  cpu_matmul_plan_destroy(p);
  return NULL;
}

void cpu_matmul_plan_destroy(void *plan) {
  struct cpu_matmul_plan *p = plan;
  if (p == NULL) return;
  if (p->a) dnnl_memory_destroy(p->a);
  if (p->b) dnnl_memory_destroy(p->b);
  if (p->c) dnnl_memory_destroy(p->c);
  if (p->scratch) dnnl_memory_destroy(p->scratch);
  if (p->primitive && !p->source) dnnl_primitive_destroy(p->primitive);
  if (p->stream) dnnl_stream_destroy(p->stream);
  if (p->engine && !p->source) dnnl_engine_destroy(p->engine);
  for (int i = 0; i < 2; i++) free(p->packed[i]);
  free(p);
}

static bool run_primitive(const struct cpu_matmul_plan *p, const void *a, const void *b, void *c) {
  const dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, p->a},
                                  {DNNL_ARG_WEIGHTS, p->b},
                                  {DNNL_ARG_DST, p->c},
                                  {DNNL_ARG_SCRATCHPAD, p->scratch}};
  return onednn_data(p->a, a) && onednn_data(p->b, b) && onednn_data(p->c, c) &&
         dnnl_primitive_execute(p->primitive, p->stream, 4, args) == dnnl_success;
}

static void convert(const struct cpu_matmul_plan *p, int operand, const void *from, int64_t count) {
  if (p->halves)
    bf16_pack(from, p->packed[operand], count);
  else
    bf16_unpack(from, p->packed[operand], count);
}

bool cpu_matmul_plan_run(const struct cpu_matmul_plan *p, const void *a, const void *b, void *c) {
  const struct product *mm = &p->size;
  int64_t a_step = mm->m * mm->k, b_step = mm->k * mm->n, size = p->halves ? sizeof(uint16_t) : sizeof(float);
  if (p->packed[0]) {
    convert(p, 0, a, mm->batch * a_step);
    convert(p, 1, b, mm->batch * b_step);
    a = p->packed[0], b = p->packed[1];
  }
  if (!p->has_primitive) return products(mm, &p->rows, a, b, c);
  for (int64_t i = 0; i < mm->batch; i++)
    if (!run_primitive(p, (const char *)a + i * a_step * size, (const char *)b + i * b_step * size,
                       (float *)c + i * mm->m * mm->n))
      return false;
  return true;
}
