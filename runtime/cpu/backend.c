/* The CPU backend: kernels as machine code, matrix products by a library, memory of the host. */
#include "runtime/backend.h"

#include "runtime/cpu/jit.h"
#include "runtime/cpu/matmul.h"
#include "runtime/cpu/rows.h"

#include <stdlib.h>
#include <string.h>

struct cpu {
  struct cpu_jit *jit;
  struct product *products; /* prepared so far */
};

struct product {
  struct cpu_matmul_plan *plan;
  struct product *next;
};

static void *cpu_open(const struct target *target, struct diags *d) {
  (void)target;
  struct cpu_jit *jit = cpu_jit_create(d);
  struct cpu *cpu = jit ? calloc(1, sizeof *cpu) : NULL;
  if (cpu == NULL)
    cpu_jit_destroy(jit);
  else
    cpu->jit = jit;
  return cpu;
}

static void cpu_close(void *self) {
  struct cpu *cpu = self;
  if (cpu == NULL) return;
  while (cpu->products) {
    struct product *p = cpu->products;
    cpu->products = p->next;
    cpu_matmul_plan_destroy(p->plan);
    free(p);
  }
  cpu_jit_destroy(cpu->jit);
  free(cpu);
}

static void *cpu_alloc(void *self, int device, size_t bytes) {
  (void)self, (void)device;
  return host_alloc(bytes);
}

static void cpu_free(void *self, int device, void *data, size_t bytes) {
  (void)self, (void)device, (void)bytes;
  host_free(data);
}

static bool cpu_copy(void *self, void *to, int to_device, const void *from, int from_device, size_t bytes) {
  (void)self, (void)to_device, (void)from_device;
  if (bytes) memcpy(to, from, bytes);
  return true;
}

static bool cpu_compile(void *self, const struct kernel *const *kernels, int count, kernel_fn **out,
                        struct diags *d) {
  struct cpu *cpu = self;
  return cpu_jit_compile(cpu->jit, kernels, count, out, d);
}

static void run_matmul(void *const *args, const void *state) {
  cpu_matmul_plan_run(state, args[0], args[1], args[2]);
}

/* Prepared products live until the backend is closed. */
static bool cpu_prepare(void *self, struct arena *a, const struct step *step, int device, struct command *c,
                        struct diags *d) {
  struct cpu *cpu = self;
  if (step->kind == STEP_GATHER || step->kind == STEP_SCATTER) {
    c->kind = COMMAND_CALL;
    c->call = step->kind == STEP_GATHER ? cpu_gather : cpu_scatter;
    c->state = &step->rows;
    return true;
  }
  const struct matmul_size *m = &step->matmul;
  struct matmul mm = {m->dtype, m->batch, m->m, m->n, m->k, m->transpose_a, m->transpose_b};
  struct product *p = malloc(sizeof *p);
  struct cpu_matmul_plan *plan = p ? cpu_matmul_plan_create(&mm) : NULL;
  (void)a, (void)device;
  if (plan == NULL) {
    free(p);
    diag_error(d, LOC_NONE, "cpu: out of memory");
    return false;
  }
  *p = (struct product){plan, cpu->products};
  cpu->products = p;
  c->kind = COMMAND_CALL;
  c->call = run_matmul;
  c->state = plan;
  return true;
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
  cpu_thread_init();
}

const struct backend backend_cpu = {
    .name = "cpu",
    .help = "machine code for this processor, matrix products by oneDNN",
    .kind = "cpu",
    .host = true,
    .open = cpu_open,
    .close = cpu_close,
    .alloc = cpu_alloc,
    .free = cpu_free,
    .copy = cpu_copy,
    .compile = cpu_compile,
    .prepare = cpu_prepare,
    .emit = cpu_emit,
    .enter = cpu_enter,
};
