/* SPDX-License-Identifier: Apache-2.0 */
/* A map as CUDA C, and what reductions share with it: indices, loads and the lines of a program.
 *
 * Elements are numbered with the vector loop the fastest, so that neighbouring threads touch neighbouring
 * memory. Arguments may be the same buffer: all values of a batch are read before the first one is written,
 * and no other thread reads them, but for the last element, which stands in for those behind it and is then
 * not stored. */
#include "runtime/cuda/emit.h"

#include <stdarg.h>
#include <string.h>

/* Instructions of a body that is not worth the time to compile it four times. */
#define HEAVY_BODY 64

void cuda_line(struct cuda_writer *w, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  const char *line = arena_vprintf(w->scratch, fmt, ap);
  va_end(ap);
  size_t len = strlen(line);
  if (line[0] == '}') w->indent--;
  for (int i = 0; line[0] != '#' && i < w->indent; i++) str_put(w->out, "  ");
  str_putn(w->out, line, len);
  str_putc(w->out, '\n');
  if (len && line[len - 1] == '{') w->indent++;
}

/* ---- programs ---- */

static bool is_leaf(enum sop op) { return op == S_CONST || op == S_ARG || op == S_INDEX || op == S_PARAM; }

int cuda_batch(const struct kernel *k) {
  struct arena_guard guard;
  struct arena *scratch = arena_create_guarded(&guard);
  int results = k->kind == KERNEL_MAP ? k->noutputs : 1, weight = 0;
  const bool *live = sprog_live(scratch, &k->body, k->result, results);
  for (int v = 0; v < k->body.count; v++) weight += live[v] && !is_leaf((enum sop)k->body.inst[v].op);
  arena_destroy_guarded(scratch, &guard);
  return weight < HEAVY_BODY ? CUDA_BATCH : 1;
}

uint32_t cuda_reads(struct arena *a, const struct sprog *p, const sval *results, int nresults) {
  const bool *live = sprog_live(a, p, results, nresults);
  uint32_t mask = 0;
  for (int v = 0; v < p->count; v++)
    if (live[v] && p->inst[v].op == S_ARG) mask |= UINT32_C(1) << p->inst[v].a;
  return mask;
}

/* What needs no line of its own. */
static const char *spell(struct cuda_writer *w, const struct sinst *i) {
  if (i->op == S_ARG) return w->value[i->a];
  if (i->op == S_INDEX) return w->index[i->a];
  if (i->op == S_PARAM) return arena_printf(w->scratch, "s.param[%d]", i->a);
  struct str s = str_make(w->scratch);
  cuda_constant(&s, (enum dtype)i->dtype, i->bits);
  return s.data;
}

void cuda_program_lines(struct cuda_writer *w, const struct sprog *p, const sval *results, int nresults,
                        const char **into) {
  const bool *live = sprog_live(w->scratch, p, results, nresults);
  const char **text = arena_new_array(w->scratch, (size_t)p->count + 1, const char *);
  for (int v = 0; v < p->count; v++) {
    const struct sinst *i = &p->inst[v];
    enum sop op = (enum sop)i->op;
    if (!live[v]) continue;
    if (is_leaf(op)) {
      text[v] = spell(w, i);
      continue;
    }
    enum dtype operand = s_dtype(p, op == S_SELECT ? i->b : i->a);
    text[v] = arena_printf(w->scratch, "v%d", v);
    cuda_line(w, "const %s v%d = %s;", cuda_type((enum dtype)i->dtype), v,
              cuda_expression(w->scratch, i, operand, text[i->a], text[i->b], text[i->c]));
  }
  for (int r = 0; r < nresults; r++) into[r] = text[results[r]];
}

/* ---- indices and addresses ---- */

void cuda_count(struct cuda_writer *w, const char *name, int first, int last) {
  struct str s = str_make(w->scratch);
  for (int l = first; l < last; l++) str_printf(&s, "%ss.extent[%d]", l > first ? " * " : "", l);
  cuda_line(w, "const long long %s = %s;", name, first < last ? s.data : "1");
}

void cuda_unflatten(struct cuda_writer *w, const char *at, const int *loops, int nloops, const char *suffix) {
  const char *declare = suffix[0] ? "" : "const long long ";
  for (int l = nloops - 1; l >= 0; l--) {
    int loop = loops[l];
    if (l == 0) {
      cuda_line(w, "%si%d%s = %s;", declare, loop, suffix, at);
      break;
    }
    cuda_line(w, "const long long over%d = quotient(%s, s.extent[%d]);", loop, at, loop);
    cuda_line(w, "%si%d%s = %s - over%d * s.extent[%d];", declare, loop, suffix, at, loop, loop);
    at = arena_printf(w->scratch, "over%d", loop);
  }
}

const char *cuda_element(struct cuda_writer *w, int a, int loops) {
  struct str s = str_make(w->scratch);
  for (int l = 0; l < loops; l++) {
    enum stride_class class = (enum stride_class)w->k->args[a].vector;
    if (l == w->k->vector && class == STRIDE_ZERO) continue;
    str_printf(&s, "%s%s", s.len ? " + " : "", w->index[l]);
    if (l != w->k->vector || class == STRIDE_ANY) str_printf(&s, " * s.stride[%d][%d]", a, l);
  }
  return arena_printf(w->scratch, "a%d[%s]", a, s.len ? s.data : "0");
}

/* ---- batches ---- */

static bool is_adjacent(const struct cuda_writer *w, int a) { return w->k->args[a].vector == STRIDE_ONE; }

static enum dtype arg_dtype(const struct cuda_writer *w, int a) { return (enum dtype)w->k->args[a].dtype; }

static const char *four(const struct cuda_writer *w, int a) {
  enum dtype d = arg_dtype(w, a);
  return dtype_name(d == DT_BOOL ? DT_U8 : d);
}

bool cuda_wide(struct cuda_writer *w, uint32_t args, int nloops) {
  struct str s = str_make(w->scratch);
  const struct kernel *k = w->k;
  bool any = false;
  if (nloops > 1) str_printf(&s, "s.extent[%d] %% %d == 0", k->vector, CUDA_BATCH);
  for (int a = 0; a < k->nargs; a++) {
    if (!(args >> a & 1) || !is_adjacent(w, a)) continue;
    any = true;
    int size = dtype_size(arg_dtype(w, a)), width = size < 4 ? 4 * size : 16;
    str_printf(&s, "%s(((unsigned long long)a%d", s.len ? " && " : "", a);
    for (int l = 0; l < k->rank; l++)
      if (l != k->vector) str_printf(&s, " | %dULL * s.stride[%d][%d]", size, a, l);
    str_printf(&s, ") & %d) == 0", width - 1);
  }
  if (any) cuda_line(w, "const int wide = %s;", s.data);
  return any;
}

static void index_batch(struct cuda_writer *w, const int *loops, int nloops, const char *suffix) {
  for (int l = 0; l < nloops; l++) w->index[loops[l]] = arena_printf(w->scratch, "i%d%s", loops[l], suffix);
}

static void for_batch(struct cuda_writer *w) {
  cuda_line(w, "#pragma unroll");
  cuda_line(w, "for (int j = 0; j < %d; j++) {", CUDA_BATCH);
}

/* The batch's indices and those of its arguments that lie next to each other; `loops[nloops - 1]` is the
 * vector loop. */
static void load_adjacent(struct cuda_writer *w, uint32_t reads, const int *loops, int nloops) {
  cuda_line(w, "if (full) {");
  cuda_unflatten(w, "first", loops, nloops, "[0]");
  for_batch(w);
  for (int l = 0; l + 1 < nloops; l++) cuda_line(w, "i%d[j] = i%d[0];", loops[l], loops[l]);
  cuda_line(w, "i%d[j] = i%d[0] + j;", w->k->vector, w->k->vector);
  cuda_line(w, "}");
  index_batch(w, loops, nloops, "[0]");
  for (int a = 0; a < w->k->nargs; a++)
    if (reads >> a & 1 && is_adjacent(w, a))
      cuda_line(w, "q%d = *(const struct four_%s *)&%s;", a, four(w, a), cuda_element(w, a, w->k->rank));
  cuda_line(w, "} else {");
}

static void load_scattered(struct cuda_writer *w, uint32_t reads) {
  for (int a = 0; a < w->k->nargs; a++)
    if (reads >> a & 1) cuda_line(w, "q%d.v[j] = %s;", a, cuda_element(w, a, w->k->rank));
}

void cuda_load_batch(struct cuda_writer *w, uint32_t reads, const int *loops, int nloops, bool can_be_wide) {
  uint32_t adjacent = 0;
  for (int l = 0; l < nloops; l++) cuda_line(w, "long long i%d[%d];", loops[l], CUDA_BATCH);
  for (int a = 0; a < w->k->nargs; a++) {
    if (!(reads >> a & 1)) continue;
    cuda_line(w, "struct four_%s q%d;", four(w, a), a);
    w->value[a] = arena_printf(w->scratch, "q%d.v[j]", a);
    if (can_be_wide && is_adjacent(w, a)) adjacent |= UINT32_C(1) << a;
  }
  if (can_be_wide) load_adjacent(w, reads, loops, nloops);
  for_batch(w);
  cuda_line(w, "const long long at = first + j * hop < limit ? first + j * hop : limit - 1;");
  cuda_unflatten(w, "at", loops, nloops, "[j]");
  index_batch(w, loops, nloops, "[j]");
  load_scattered(w, can_be_wide ? adjacent : reads);
  cuda_line(w, "}");
  if (!can_be_wide) return;
  cuda_line(w, "}");
  if (reads == adjacent) return;
  for_batch(w);
  load_scattered(w, reads & ~adjacent);
  cuda_line(w, "}");
}

void cuda_load_one(struct cuda_writer *w, uint32_t reads, int loops) {
  for (int a = 0; a < w->k->nargs; a++) {
    if (!(reads >> a & 1)) continue;
    cuda_line(w, "const %s q%d = %s;", cuda_type(arg_dtype(w, a)), a, cuda_element(w, a, loops));
    w->value[a] = arena_printf(w->scratch, "q%d", a);
  }
}

/* ---- maps ---- */

static void store_batch(struct cuda_writer *w, const int *loops, bool can_be_wide) {
  const struct kernel *k = w->k;
  if (can_be_wide) {
    cuda_line(w, "if (full) {");
    index_batch(w, loops, k->rank, "[0]");
    for (int a = k->nargs - k->noutputs; a < k->nargs; a++)
      if (is_adjacent(w, a))
        cuda_line(w, "*(struct four_%s *)&%s = q%d;", four(w, a), cuda_element(w, a, k->rank), a);
    cuda_line(w, "}");
  }
  index_batch(w, loops, k->rank, "[j]");
  for_batch(w);
  for (int a = k->nargs - k->noutputs; a < k->nargs; a++)
    cuda_line(w, "if (%sfirst + j * hop < limit) %s = q%d.v[j];",
              can_be_wide && is_adjacent(w, a) ? "!full && " : "", cuda_element(w, a, k->rank), a);
  cuda_line(w, "}");
}

static void map_batches(struct cuda_writer *w, uint32_t reads, const int *loops) {
  const struct kernel *k = w->k;
  const char *value[MAX_KERNEL_RESULTS];
  int ninputs = k->nargs - k->noutputs, tile = CUDA_BATCH * CUDA_MAP_THREADS;
  bool can_be_wide = cuda_wide(w, reads | ((UINT32_C(1) << k->nargs) - (UINT32_C(1) << ninputs)), k->rank);
  cuda_line(w, "const long long hop = %s%d;", can_be_wide ? "wide ? 1 : " : "", CUDA_MAP_THREADS);
  cuda_line(w, "for (long long base = blockIdx.x * %dLL; base < limit; base += gridDim.x * %dLL) {", tile,
            tile);
  cuda_line(w, "const long long first = base + threadIdx.x%s;", can_be_wide ? " * (wide ? 4 : 1)" : "");
  cuda_line(w, "if (first >= limit) break;");
  if (can_be_wide) cuda_line(w, "const int full = wide && first + %d <= limit;", CUDA_BATCH);
  cuda_load_batch(w, reads, loops, k->rank, can_be_wide);
  for (int a = ninputs; a < k->nargs; a++) cuda_line(w, "struct four_%s q%d;", four(w, a), a);
  for_batch(w);
  index_batch(w, loops, k->rank, "[j]");
  cuda_program_lines(w, &k->body, k->result, k->noutputs, value);
  for (int r = 0; r < k->noutputs; r++) cuda_line(w, "q%d.v[j] = %s;", ninputs + r, value[r]);
  cuda_line(w, "}");
  store_batch(w, loops, can_be_wide);
  cuda_line(w, "}");
}

static void map_elements(struct cuda_writer *w, uint32_t reads, const int *loops) {
  const struct kernel *k = w->k;
  const char *value[MAX_KERNEL_RESULTS];
  cuda_line(w, "for (long long at = blockIdx.x * %dLL + threadIdx.x; at < limit; at += gridDim.x * %dLL) {",
            CUDA_MAP_THREADS, CUDA_MAP_THREADS);
  cuda_unflatten(w, "at", loops, k->rank, "");
  index_batch(w, loops, k->rank, "");
  cuda_load_one(w, reads, k->rank);
  cuda_program_lines(w, &k->body, k->result, k->noutputs, value);
  for (int r = 0; r < k->noutputs; r++)
    cuda_line(w, "%s = %s;", cuda_element(w, k->nargs - k->noutputs + r, k->rank), value[r]);
  cuda_line(w, "}");
}

void cuda_map(struct cuda_writer *w) {
  const struct kernel *k = w->k;
  uint32_t reads = cuda_reads(w->scratch, &k->body, k->result, k->noutputs);
  int loops[MAX_RANK], n = 0;
  for (int l = 0; l < k->rank; l++)
    if (l != k->vector) loops[n++] = l;
  loops[n] = k->vector;
  cuda_count(w, "limit", 0, k->rank);
  if (cuda_batch(k) > 1)
    map_batches(w, reads, loops);
  else
    map_elements(w, reads, loops);
}
