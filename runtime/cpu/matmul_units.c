/* SPDX-License-Identifier: Apache-2.0 */
/* oneDNN has primitives, made for one shape, that multiply bfloat16 values as such and add up in f32. */
#include "runtime/cpu/matmul_units.h"

#include "runtime/cpu/onednn.h"

#include <stdlib.h>

struct matmul_units {
  struct product size;
  const struct matmul_units *source; /* of engine and primitive; NULL: they are its own */
  dnnl_engine_t engine;
  dnnl_stream_t stream;
  dnnl_primitive_t primitive;     /* NULL: none takes the units */
  dnnl_memory_t a, b, c, scratch; /* the scratch memory is the library's own, one for each thread */
};

#if DNNL_VERSION_MAJOR == 2

static bool describe(dnnl_memory_desc_t *d, dnnl_data_type_t type, int64_t rows, int64_t columns,
                     bool transposed) {
  dnnl_dims_t dims = {rows, columns}, strides = {transposed ? 1 : columns, transposed ? rows : 1};
  return dnnl_memory_desc_init_by_strides(d, 2, dims, type, strides) == dnnl_success;
}

static bool create_memory(struct matmul_units *p, dnnl_primitive_desc_t desc, const dnnl_memory_desc_t *a,
                          const dnnl_memory_desc_t *b, const dnnl_memory_desc_t *c) {
  const dnnl_memory_desc_t *scratch = dnnl_primitive_desc_query_md(desc, dnnl_query_scratchpad_md, 0);
  return scratch != NULL && dnnl_memory_create(&p->a, a, p->engine, DNNL_MEMORY_NONE) == dnnl_success &&
         dnnl_memory_create(&p->b, b, p->engine, DNNL_MEMORY_NONE) == dnnl_success &&
         dnnl_memory_create(&p->c, c, p->engine, DNNL_MEMORY_NONE) == dnnl_success &&
         dnnl_memory_create(&p->scratch, scratch, p->engine, DNNL_MEMORY_ALLOCATE) == dnnl_success;
}

/* Sets `primitive` where the library has one. False if there is no memory: what would be done instead has other
 * bits. */
static bool create(void *units) {
  struct matmul_units *p = units;
  const struct product *mm = &p->size;
  dnnl_status_t status = dnnl_success;
  dnnl_memory_desc_t a, b, c;
  dnnl_matmul_desc_t desc;
  dnnl_primitive_attr_t attr = NULL;
  dnnl_primitive_desc_t made = NULL;
#define DONE(call) ((status = (call)) == dnnl_success)
  bool known = describe(&a, dnnl_bf16, mm->m, mm->k, mm->transpose_a) &&
               describe(&b, dnnl_bf16, mm->k, mm->n, mm->transpose_b) &&
               describe(&c, dnnl_f32, mm->m, mm->n, false) &&
               DONE(dnnl_matmul_desc_init(&desc, &a, &b, NULL, &c)) &&
               DONE(dnnl_engine_create(&p->engine, dnnl_cpu, 0)) &&
               DONE(dnnl_stream_create(&p->stream, p->engine, dnnl_stream_default_flags)) &&
               DONE(dnnl_primitive_attr_create(&attr)) &&
               DONE(dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user)) &&
               DONE(dnnl_primitive_desc_create(&made, &desc, attr, p->engine, NULL)) &&
               onednn_takes_units(onednn_way(made));
  bool good = known ? DONE(dnnl_primitive_create(&p->primitive, made)) && create_memory(p, made, &a, &b, &c)
                    : status != dnnl_out_of_memory;
#undef DONE
  if (made) dnnl_primitive_desc_destroy(made);
  if (attr) dnnl_primitive_attr_destroy(attr);
  return good;
}

bool matmul_units_create(const struct product *mm, struct matmul_units **made) {
  *made = NULL;
  if (mm->m <= 0 || mm->n <= 0 || mm->k <= 0 || !onednn_units()) return true;
  struct matmul_units *p = calloc(1, sizeof *p);
  if (p == NULL) return false;
  p->size = *mm;
  bool good = onednn_make(p, create);
  if (good && p->primitive)
    *made = p;
  else
    matmul_units_destroy(p);
  return good;
}

static bool copy_memory(dnnl_memory_t *to, dnnl_memory_t from, dnnl_engine_t engine, void *data) {
  const dnnl_memory_desc_t *desc;
  return dnnl_memory_get_memory_desc(from, &desc) == dnnl_success &&
         dnnl_memory_create(to, desc, engine, data) == dnnl_success;
}

static bool create_again(void *units) {
  struct matmul_units *p = units;
  const struct matmul_units *from = p->source;
  return dnnl_stream_create(&p->stream, p->engine, dnnl_stream_default_flags) == dnnl_success &&
         copy_memory(&p->a, from->a, p->engine, DNNL_MEMORY_NONE) &&
         copy_memory(&p->b, from->b, p->engine, DNNL_MEMORY_NONE) &&
         copy_memory(&p->c, from->c, p->engine, DNNL_MEMORY_NONE) &&
         copy_memory(&p->scratch, from->scratch, p->engine, DNNL_MEMORY_ALLOCATE);
}

struct matmul_units *matmul_units_again(const struct matmul_units *units) {
  struct matmul_units *p = calloc(1, sizeof *p);
  if (p == NULL) return NULL;
  *p = (struct matmul_units){
      .size = units->size, .source = units, .engine = units->engine, .primitive = units->primitive};
  if (onednn_make(p, create_again)) return p;
  matmul_units_destroy(p);
  return NULL;
}

#else

bool matmul_units_create(const struct product *mm, struct matmul_units **made) {
  (void)mm;
  *made = NULL;
  return true;
}

struct matmul_units *matmul_units_again(const struct matmul_units *units) {
  (void)units;
  return NULL;
}

#endif

void matmul_units_destroy(void *units) {
  struct matmul_units *p = units;
  if (p == NULL) return;
  if (p->a) dnnl_memory_destroy(p->a);
  if (p->b) dnnl_memory_destroy(p->b);
  if (p->c) dnnl_memory_destroy(p->c);
  if (p->scratch) dnnl_memory_destroy(p->scratch);
  if (p->primitive && !p->source) dnnl_primitive_destroy(p->primitive);
  if (p->stream) dnnl_stream_destroy(p->stream);
  if (p->engine && !p->source) dnnl_engine_destroy(p->engine);
  free(p);
}

bool matmul_units_run(const struct matmul_units *p, const uint16_t *a, const uint16_t *b, float *c) {
  const dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, p->a},
                                  {DNNL_ARG_WEIGHTS, p->b},
                                  {DNNL_ARG_DST, p->c},
                                  {DNNL_ARG_SCRATCHPAD, p->scratch}};
  return onednn_data(p->a, a) && onednn_data(p->b, b) && onednn_data(p->c, c) &&
         dnnl_primitive_execute(p->primitive, p->stream, 4, args) == dnnl_success;
}
