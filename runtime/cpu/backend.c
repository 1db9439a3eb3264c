/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU backend: kernels as machine code, leaves by a library or kernels/cpu, memory of the host. */
#include "runtime/backend.h"

#include "ir/graph/graph.h"
#include "ir/ops/op.h"
#include "ir/ops/op_id.h"
#include "runtime/cpu/gemm.h"
#include "runtime/cpu/jit.h"
#include "runtime/cpu/leaf.h"
#include "runtime/cpu/onednn.h"
#include "runtime/cpu/scratch.h"
#include "runtime/host_memory.h"

#include <stdlib.h>
#include <string.h>

static void *cpu_open(const struct target *target, struct diags *d) {
  (void)target;
  struct cpu_jit *jit = cpu_jit_create(d);
  if (jit == NULL) return NULL;
  struct cpu *cpu = calloc(1, sizeof *cpu);
  if (cpu == NULL) {
    diag_failure(d, LOC_NONE, "cpu: no memory");
    cpu_jit_destroy(jit);
    return NULL;
  }
  cpu->jit = jit;
  return cpu;
}

static void cpu_close(void *self) {
  struct cpu *cpu = self;
  if (cpu == NULL) return;
  cpu_destroy_owned(cpu);
  cpu_destroy_rooms(cpu);
  cpu_jit_destroy(cpu->jit);
  free(cpu);
}

static bool cpu_compile(void *self, const struct kernel *const *kernels, int count, kernel_fn **out,
                        struct diags *d) {
  struct cpu *cpu = self;
  return cpu_jit_compile(cpu->jit, kernels, count, out, d);
}

static void cpu_foresee(void *self, const struct kernel *const *kernels, int count) {
  struct cpu *cpu = self;
  cpu_jit_foresee(cpu->jit, kernels, count);
}

static cpu_leaf_fn *const leaves[OP_COUNT] = {
#define OP(name, spread)
#define LEAF(name, spread)   [OP_##name] = cpu_leaf_##name,
#define KERNEL(name, spread) [OP_##name] = cpu_leaf_kernel,
#include "ir/ops/ops.def"
#undef OP
};

/* Without a fused multiply-add the sums of products have the order of a library, or one of our own. */
static bool has_own_bits(const struct node *n) {
  bool sums = n->op == OP_matmul || n->op == OP_conv;
  return sums && dtype_is_float((enum dtype)n->type.dtype) && !gemm_can();
}

/* What `eval` of the step's op does; `state` is the step. */
static void cpu_eval(void *const *args, const void *state) {
  leaf_eval(((const struct step *)state)->node, args);
}

static bool cpu_prepare(void *self, struct arena *a, const struct step *step, int device, struct command *c,
                        struct diags *d) {
  struct cpu *cpu = self;
  cpu->device = device;
  c->kind = COMMAND_CALL;
  if (cpu->portable && has_own_bits(step->node)) {
    c->call = cpu_eval;
    c->state = step;
    return true;
  }
  return leaves[step->node->op](self, a, step, c, d);
}

static bool cpu_finish(void *self, struct diags *d) {
  struct cpu *cpu = self;
  return cpu_jit_finish(cpu->jit, d);
}

static const char *cpu_emit(struct arena *a, const struct kernel *const *kernels, int count, const char *form,
                            const char *arch, struct diags *d) {
  struct str text = str_make(a);
  (void)arch;
  if (strcmp(form, "llvm") != 0) {
    diag_error(d, LOC_NONE, "the cpu backend shows its kernels as llvm, not as %s", form);
    return NULL;
  }
  for (int i = 0; i < count; i++) {
    const char *one = cpu_kernel_llvm(a, kernels[i], NULL, d);
    if (one == NULL) return NULL;
    str_printf(&text, "%s\n", one);
  }
  return text.data;
}

static void cpu_enter(void *self) {
  (void)self;
  onednn_use_one_thread();
  if (gemm_can()) cpu_scratch_enter();
}

static const char *cpu_bf16_units(void *self) {
  const struct cpu *cpu = self;
  return cpu->portable ? NULL : onednn_units();
}

static void cpu_portable_bits(void *self, bool wanted) {
  struct cpu *cpu = self;
  cpu->portable = wanted;
}

const struct backend backend_cpu = {
    .name = "cpu",
    .help = "machine code for this processor, and oneDNN for some of bfloat16",
    .kind = "cpu",
    .host = true,
    .open = cpu_open,
    .close = cpu_close,
    .alloc = host_device_alloc,
    .free = host_device_free,
    .copy = host_device_copy,
    .portable_bits = cpu_portable_bits,
    .bf16_units = cpu_bf16_units,
    .compile = cpu_compile,
    .foresee = cpu_foresee,
    .prepare = cpu_prepare,
    .finish = cpu_finish,
    .emit = cpu_emit,
    .enter = cpu_enter,
};
