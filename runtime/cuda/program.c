/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a program: for each kernel the types of its parameters and its functions, in front of all what
 * they use. */
#include "runtime/cuda/program.h"

#include "runtime/cuda/emit.h"

#include <string.h>

enum { MAX_NAME = 48 };

/* Numbers make the names unique; the rest is for who reads a profile. */
static const char *kernel_name(struct arena *a, int number, const struct kernel *k) {
  char *name = arena_printf(a, "k%d%s%.*s", number, k->name ? "_" : "", MAX_NAME, k->name ? k->name : "");
  for (char *c = name; *c; c++) {
    bool fine = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9');
    if (!fine) *c = '_';
  }
  return name;
}

const char *cuda_entry_name(struct arena *a, const char *name, enum cuda_entry entry) {
  static const char *const suffix[] = {[CUDA_MAIN] = "", [CUDA_JOIN] = "_join", [CUDA_MANY] = "_many"};
  return arena_printf(a, "%s%s", name, suffix[entry]);
}

static void put_args(struct str *s, const struct kernel *k, const char *between) {
  for (int i = 0; i < k->nargs; i++)
    str_printf(s, "%s%s *a%d%s", k->args[i].output ? "" : "const ", cuda_memory((enum dtype)k->args[i].dtype),
               i, between);
}

static void declare_types(struct cuda_writer *w, bool many) {
  const struct kernel *k = w->k;
  struct str args = str_make(w->scratch);
  str_printf(&args, "long long extent[%d], stride[%d][%d]", k->rank, k->nargs, k->rank);
  if (k->nparams) str_printf(&args, ", param[%d]", k->nparams);
  cuda_line(w, "struct %s_sizes { %s; };", w->name, args.data);
  if (many) {
    struct str set = str_make(w->scratch);
    put_args(&set, k, "; ");
    cuda_line(w, "struct %s_set { %sstruct %s_sizes s; };", w->name, set.data, w->name);
  }
  if (k->kind != KERNEL_REDUCE) return;
  bool where = kernel_is_arg(k);
  cuda_line(w, "struct %s_piece { %s acc;%s };", w->name, cuda_memory(kernel_acc_dtype(k)),
            where ? " int where;" : "");
}

static void write_map(struct cuda_writer *w, const char *args, bool many) {
  struct str in = str_make(w->scratch), of_set = str_make(w->scratch);
  for (int i = 0; i < w->k->nargs; i++) {
    str_printf(&in, "a%d, ", i);
    str_printf(&of_set, "set.a%d, ", i);
  }
  const char *what = many ? "static __device__" : "extern \"C\" __global__";
  cuda_line(w, "%s void %s%s(%sconst struct %s_sizes s) {", what, w->name, many ? "_run" : "", args, w->name);
  cuda_map(w);
  cuda_line(w, "}");
  if (!many) return;
  cuda_line(w, "extern \"C\" __global__ void %s(%sconst struct %s_sizes s) {", w->name, args, w->name);
  cuda_line(w, "%s_run(%ss);", w->name, in.data);
  cuda_line(w, "}");
  cuda_line(w, "extern \"C\" __global__ void %s_many(const struct %s_set *sets) {", w->name, w->name);
  cuda_line(w, "const struct %s_set set = sets[blockIdx.y];", w->name);
  cuda_line(w, "%s_run(%sset.s);", w->name, of_set.data);
  cuda_line(w, "}");
}

static void write_reduce(struct cuda_writer *w, const char *args) {
  for (int join = 0; join < 2; join++) {
    cuda_line(w, "extern \"C\" __global__ void %s%s(%sstruct %s_piece *scratch, const struct %s_sizes s) {",
              w->name, join ? "_join" : "", args, w->name, w->name);
    if (join)
      cuda_join(w);
    else
      cuda_reduce(w);
    cuda_line(w, "}");
  }
}

static void write_kernel(struct cuda_writer *w, bool many) {
  struct str args = str_make(w->scratch);
  put_args(&args, w->k, ", ");
  str_putc(w->out, '\n');
  declare_types(w, many);
  if (w->k->kind == KERNEL_MAP)
    write_map(w, args.data, many);
  else
    write_reduce(w, args.data);
}

struct cuda_program cuda_program_text(struct arena *a, const struct kernel *const *kernels, int count,
                                      const bool *many) {
  struct arena_guard guard;
  struct arena *scratch = arena_create_guarded(&guard);
  struct arena_guard text_guard;
  struct arena *text = arena_create_guarded(&text_guard);
  const char **names = arena_new_array(a, (size_t)count, const char *);
  struct str body = str_make(text), out = str_make(a);
  for (int i = 0; i < count; i++) {
    names[i] = kernel_name(a, i, kernels[i]);
    struct cuda_writer *w = arena_new(scratch, struct cuda_writer);
    *w = (struct cuda_writer){.out = &body, .scratch = scratch, .k = kernels[i], .name = names[i]};
    write_kernel(w, many && many[i]);
    arena_reset(scratch);
  }
  cuda_helpers(&out, body.data);
  str_putn(&out, body.data, body.len);
  arena_destroy_guarded(text, &text_guard);
  arena_destroy_guarded(scratch, &guard);
  return (struct cuda_program){.text = out.data, .count = count, .names = names};
}
