/* SPDX-License-Identifier: Apache-2.0 */
/* Modules, and launches of their kernels. Blocks run one after the other in a random order. The threads of a
 * block do so, too, unless the kernel has barriers: then each is a fiber. */
#include "tests/simulated_cuda/simulated.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MAX_THREADS = 1024, MAX_SHARED = 48 << 10, POISON = 0xff };

/* --- modules --- */

/* tcc makes no sections that can be written but its own. */
static void let_write(const char *begin, const char *end) {
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = (uintptr_t)begin & ~(page - 1);
  if (begin < end) mprotect((void *)first, (uintptr_t)end - first, PROT_READ | PROT_WRITE);
}

/* The dynamic loader knows libraries by their paths, so the file stays open as long as its library. */
static bool load(struct CUmod_st *m, const void *code, size_t bytes) {
  static void *libm; /* what kernels call; they are linked with nothing */
  if (!libm) libm = dlopen("libm.so.6", RTLD_LAZY | RTLD_GLOBAL);
  m->file = memfd_create("simulated_module", MFD_CLOEXEC);
  if (m->file < 0 || write(m->file, code, bytes) != (ssize_t)bytes) return false;
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", m->file);
  m->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!m->library) {
    sim_complain("cuModuleLoadData: %s", dlerror());
    return false;
  }
  m->info = dlsym(m->library, "simulated_module");
  if (!m->info) return false;
  size_t count = 0;
  const struct simulated_kernel *k = m->info->kernels;
  for (; k[count].name; count++)
    if (k[count].shared_end - k[count].shared_begin + (m->info->shared_end - m->info->shared_begin) >
        MAX_SHARED) {
      sim_complain("kernel %s uses too much shared memory", k[count].name);
      return false;
    }
  let_write(m->info->shared_begin, m->info->shared_end);
  for (size_t i = 0; i < count; i++) let_write(k[i].shared_begin, k[i].shared_end);
  m->functions = calloc(count + 1, sizeof *m->functions);
  for (size_t i = 0; i < count; i++) m->functions[i] = (struct CUfunc_st){m, &k[i]};
  *m->info->barrier = fiber_wait;
  return true;
}

void module_release(struct CUmod_st *m) {
  if (--m->users) return;
  if (m->library) dlclose(m->library);
  if (m->file >= 0) close(m->file);
  m->library = NULL;
  /* As long as the module itself, which a function that is used too late leads to. */
  static struct CUfunc_st *buried[1024];
  static unsigned place;
  free(buried[place % 1024]);
  buried[place++ % 1024] = m->functions;
  object_bury(&m->object);
}

static CUresult load_image(struct CUmod_st *m, const char *image) {
  struct cubin head;
  if (strncmp(image, SIM_PTX, strlen(SIM_PTX)) == 0) {
    if (atoi(image + strlen(SIM_PTX)) > sim_arch) return CUDA_ERROR_NO_BINARY_FOR_GPU;
    size_t bytes;
    char *log;
    void *code = sim_compile(image, false, &bytes, &log);
    if (!code) sim_complain("cuModuleLoadData: %s", log);
    bool ok = code && load(m, code, bytes);
    free(code);
    free(log);
    return ok ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
  }
  if (strncmp(image, SIM_CUBIN, sizeof head.magic) != 0) return CUDA_ERROR_INVALID_IMAGE;
  memcpy(&head, image, sizeof head);
  if ((int)head.arch / 10 != sim_arch / 10 || (int)head.arch > sim_arch) {
    sim_complain("cuModuleLoadData: code for sm_%u does not run on sm_%d", head.arch, sim_arch);
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
  }
  return load(m, image + sizeof head, head.bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image) {
  CUresult r = sim_enter(__func__, UNSAFE);
  if (r) return r;
  if (!image) return sim_leave(CUDA_ERROR_INVALID_VALUE);
  if ((uintptr_t)image % 16) {
    sim_complain("cuModuleLoadData: the image at %p is not aligned to 16 bytes", image);
    return sim_leave(CUDA_ERROR_INVALID_VALUE);
  }
  struct CUmod_st *m = calloc(1, sizeof *m);
  m->users = 1;
  m->file = -1;
  sim_begin(&m->object, kind_module, sim_current()->device);
  r = load_image(m, image);
  if (r) {
    object_end(&m->object);
    free(m->functions);
    m->functions = NULL;
    module_release(m);
  } else
    *module = m;
  return sim_leave(r);
}

CUresult cuModuleUnload(CUmodule m) {
  CUresult r = sim_enter(__func__, UNSAFE | DESTROYS);
  if (r) return r;
  if (!sim_valid(&m->object, kind_module)) return sim_leave(CUDA_ERROR_INVALID_HANDLE);
  object_end(&m->object);
  module_release(m);
  return sim_leave(CUDA_SUCCESS);
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule m, const char *name) {
  CUresult r = sim_enter(__func__, 0);
  if (r) return r;
  if (!sim_valid(&m->object, kind_module)) return sim_leave(CUDA_ERROR_INVALID_HANDLE);
  for (struct CUfunc_st *f = m->functions; f->kernel; f++)
    if (strcmp(f->kernel->name, name) == 0) {
      *function = f;
      return sim_leave(CUDA_SUCCESS);
    }
  return sim_leave(CUDA_ERROR_NOT_FOUND);
}

/* --- launches --- */

static CUresult check_launch(CUfunction f, const unsigned *grid, const unsigned *block, unsigned shared,
                             CUstream stream, void **params, void **extra) {
  if (!f || !sim_valid(&f->module->object, kind_module)) {
    sim_complain("cuLaunchKernel: the function's module is unloaded");
    return CUDA_ERROR_INVALID_HANDLE;
  }
  CUresult r = stream_check(stream);
  if (r) return r;
  const struct simulated_kernel *k = f->kernel;
  if (f->module->object.device != stream->object.device || sim_current() != stream->context) {
    sim_complain("cuLaunchKernel: %s: module, stream and current context are not of the same device",
                 k->name);
    return CUDA_ERROR_INVALID_HANDLE;
  }
  const char *wrong = NULL;
  if (!grid[0] || !grid[1] || !grid[2] || grid[0] > 0x7fffffff || grid[1] > 65535 || grid[2] > 65535)
    wrong = "grid";
  if (!block[0] || !block[1] || !block[2] || block[0] > 1024 || block[1] > 1024 || block[2] > 64 ||
      block[0] * block[1] * block[2] > (k->max_threads ? k->max_threads : MAX_THREADS))
    wrong = "block";
  if (shared > MAX_SHARED - (k->shared_end - k->shared_begin)) wrong = "shared memory";
  if (extra || (!params && k->kinds[0])) wrong = "parameters";
  if (!wrong) return CUDA_SUCCESS;
  sim_complain("cuLaunchKernel: %s: %s: grid (%u,%u,%u), block (%u,%u,%u), %u bytes of shared memory",
               k->name, wrong, grid[0], grid[1], grid[2], block[0], block[1], block[2], shared);
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuLaunchKernel(CUfunction f, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                        unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream,
                        void **params, void **extra) {
  CUresult r = sim_enter(__func__, 0);
  if (r) return r;
  unsigned grid[3] = {grid_x, grid_y, grid_z}, block[3] = {block_x, block_y, block_z};
  r = check_launch(f, grid, block, shared_bytes, stream, params, extra);
  if (r) return sim_leave(r);
  struct work *w = work_new(WORK_KERNEL, stream->context);
  w->function = f;
  f->module->users++;
  memcpy(w->grid, grid, sizeof grid);
  memcpy(w->block, block, sizeof block);
  w->devices |= stream->context->peers;
  size_t count = strlen(f->kernel->kinds), bytes = count * sizeof(void *);
  for (size_t i = 0; i < count; i++) bytes += (f->kernel->bytes[i] + 15u) / 16 * 16;
  bytes += 16;
  w->parameters = malloc(bytes);
  char *at = (char *)(((uintptr_t)(w->parameters + count) + 15) / 16 * 16);
  for (size_t i = 0; i < count; i++) {
    w->parameters[i] = memcpy(at, params[i], f->kernel->bytes[i]);
    at += (f->kernel->bytes[i] + 15u) / 16 * 16;
  }
  return sim_leave(stream_add(stream, w));
}

/* Pointers must be NULL or point to memory that the device may use. */
static bool check_pointers(const struct work *w) {
  const struct simulated_kernel *k = w->function->kernel;
  for (size_t i = 0; k->kinds[i]; i++) {
    uintptr_t p;
    if (k->kinds[i] != 'p') continue;
    memcpy(&p, w->parameters[i], sizeof p);
    struct allocation *a = p ? memory_find(p, 0) : NULL;
    if (!p || (a && (a->space == HOST || w->devices >> a->space & 1))) continue;
    memory_allow(w->devices); /* for the description */
    sim_complain("simulated GPU %d: kernel %s: parameter %zu is %p, which is %s", w->device, k->name, i + 1,
                 (void *)p, memory_describe(p));
    return false;
  }
  return true;
}

struct run {
  const struct work *work;
  const struct simulated_kernel *kernel;
  const struct simulated_module *info;
  struct simulated_dims threads[MAX_THREADS];
};

static void set_block(const struct run *r, uint64_t i) {
  const unsigned *grid = r->work->grid;
  *r->info->block = (struct simulated_dims){(unsigned)(i % grid[0]), (unsigned)(i / grid[0] % grid[1]),
                                            (unsigned)(i / grid[0] / grid[1])};
  if (r->kernel->shared_end > r->kernel->shared_begin)
    memset(r->kernel->shared_begin, POISON, (size_t)(r->kernel->shared_end - r->kernel->shared_begin));
  if (r->info->shared_end > r->info->shared_begin)
    memset(r->info->shared_begin, POISON, (size_t)(r->info->shared_end - r->info->shared_begin));
}

static void run_blocks(void *argument) { /* on one fiber: all threads of all blocks */
  const struct run *r = argument;
  const struct work *w = r->work;
  unsigned threads = w->block[0] * w->block[1] * w->block[2];
  uint64_t blocks = (uint64_t)w->grid[0] * w->grid[1] * w->grid[2];
  uint64_t stride = sim_stride(blocks), block = sim_below(blocks);
  for (uint64_t i = 0; i < blocks; i++, block = (block + stride) % blocks) {
    set_block(r, block);
    r->kernel->block(w->parameters, threads, (unsigned)sim_below(threads), (unsigned)sim_stride(threads));
  }
}

static void run_thread(void *argument) {
  const struct run *r = argument;
  r->kernel->thread(r->work->parameters);
}

static void set_thread(void *argument, unsigned i) {
  const struct run *r = argument;
  *r->info->thread = r->threads[i];
}

static void explain(const struct run *r, const struct trap *trap, const char *wrong) {
  const struct simulated_dims *b = r->info->block;
  const char *what = trap->signal == SIGFPE   ? "an integer is divided by zero"
                     : trap->signal == SIGILL ? "an address is no multiple of what its access asks for"
                                              : wrong;
  if (trap->signal == SIGSEGV || trap->signal == SIGBUS)
    sim_complain("simulated GPU %d: kernel %s, block (%u,%u,%u): access to %p, which is %s", r->work->device,
                 r->kernel->name, b->x, b->y, b->z, (void *)trap->address, memory_describe(trap->address));
  else
    sim_complain("simulated GPU %d: kernel %s, block (%u,%u,%u): %s", r->work->device, r->kernel->name, b->x,
                 b->y, b->z, what);
}

CUresult kernel_run(const struct work *w) {
  struct CUmod_st *m = w->function->module;
  static struct run r;
  r.work = w;
  r.kernel = w->function->kernel;
  r.info = m->info;
  struct trap trap = {0};
  if (!sim_valid(&m->object, kind_module)) {
    sim_complain("kernel %s: its module was unloaded before it ran", r.kernel->name);
    return CUDA_ERROR_LAUNCH_FAILED;
  }
  if (!check_pointers(w)) return CUDA_ERROR_ILLEGAL_ADDRESS;
  memory_allow(w->devices);
  *m->info->grid_dim = (struct simulated_dims){w->grid[0], w->grid[1], w->grid[2]};
  *m->info->block_dim = (struct simulated_dims){w->block[0], w->block[1], w->block[2]};
  *m->info->thread = (struct simulated_dims){0, 0, 0};
  const char *wrong = NULL;
  if (!r.kernel->barriers) {
    if (!fiber_run(run_blocks, &r, &trap)) wrong = "trap";
  } else {
    uint64_t blocks = (uint64_t)w->grid[0] * w->grid[1] * w->grid[2];
    uint64_t stride = sim_stride(blocks), block = sim_below(blocks);
    unsigned threads = w->block[0] * w->block[1] * w->block[2];
    for (unsigned i = 0; i < threads; i++)
      r.threads[i] = (struct simulated_dims){i % w->block[0], i / w->block[0] % w->block[1],
                                             i / w->block[0] / w->block[1]};
    for (uint64_t i = 0; i < blocks && !wrong; i++, block = (block + stride) % blocks) {
      set_block(&r, block);
      wrong = fiber_run_many(run_thread, set_thread, &r, threads, &trap);
    }
  }
  if (!wrong) return CUDA_SUCCESS;
  explain(&r, &trap, wrong);
  return trap.signal == SIGSEGV || trap.signal == SIGBUS ? CUDA_ERROR_ILLEGAL_ADDRESS
                                                         : CUDA_ERROR_LAUNCH_FAILED;
}
