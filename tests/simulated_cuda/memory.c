/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of devices and pinned memory of the host.
 *
 * Each device has a range of addresses of its own, in which nothing is accessible but what memory_allow() has
 * opened: that holds while work of a device runs, so the host's code traps on a device's pointer, and a kernel
 * on memory of a device that its own has no access to. An allocation ends at the end of a page if 256-byte
 * alignment lets it, with inaccessible pages on both sides; what else lies in its own pages has a pattern that
 * is checked when it is freed. Addresses are not used again before the range is used up.
 *
 * Changing the protection of much memory takes long. So memory that a device may access is opened in chunks,
 * when a kernel faults on one, or ahead of C code that uses it. Memory that is not written yet reads as 0xff
 * bytes, a NaN; that, too, is seen to at a chunk's first access, so large unused memory costs nothing. */
#include "tests/simulated_cuda/simulated.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, CHUNK = 64 << 10, AHEAD = 32, ALIGN = 256, POISON = 0xff, CANARY = 0xa5, FREED = 256 };

static struct space {
  uintptr_t base, cursor, high; /* next free address; end of what was ever used */
  size_t bytes, used;
  struct allocation **list; /* by address */
  int count, room;
} spaces[MAX_DEVICES + 1];

static struct freed {
  uintptr_t begin;
  size_t bytes;
  int space;
} freed[FREED];
static unsigned nfreed;
static uint64_t open_devices;
static size_t limit;

void memory_open(int ndevices) {
  limit = (size_t)sim_number("MEMORY", 1 << 30);
  for (int i = 0; i <= MAX_DEVICES; i++) {
    if (i >= ndevices && i != HOST) continue;
    struct space *s = &spaces[i];
    size_t spare = i == HOST ? 0 : limit;
    s->bytes = 2 * spare + ((size_t)8 << 30);
    void *base = mmap(NULL, s->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) {
      perror("simulated GPU: address space");
      exit(2);
    }
    s->base = s->cursor = s->high = (uintptr_t)base;
  }
}

/* The first allocation that ends behind `address`. */
static int position(const struct space *s, uintptr_t address) {
  int low = 0, high = s->count;
  while (low < high) {
    int middle = (low + high) / 2;
    if (s->list[middle]->pages + s->list[middle]->page_bytes > address)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

static struct space *space_of(uintptr_t address) {
  for (int i = 0; i <= MAX_DEVICES; i++)
    if (address - spaces[i].base < spaces[i].bytes) return &spaces[i];
  return NULL;
}

bool memory_is_device(uintptr_t address) {
  struct space *s = space_of(address);
  return s && s != &spaces[HOST];
}

struct allocation *memory_find(uintptr_t address, size_t bytes) {
  struct space *s = space_of(address);
  if (!s) return NULL;
  int i = position(s, address);
  struct allocation *a = i < s->count ? s->list[i] : NULL;
  /* One behind an end that is also the end of a page. */
  if (bytes == 0 && i > 0 && s->list[i - 1]->begin + s->list[i - 1]->bytes == address) a = s->list[i - 1];
  return a && address >= a->begin && address - a->begin <= a->bytes &&
                 bytes <= a->bytes - (address - a->begin)
             ? a
             : NULL;
}

static void protect(uintptr_t begin, size_t bytes, int how) {
  if (bytes && mprotect((void *)begin, bytes, how) != 0) {
    perror("simulated GPU: mprotect");
    abort();
  }
}

/* --- opening chunks --- */

enum { TOUCHED = 1, OPEN = 2 }; /* of allocation.chunks */

static struct run {
  struct allocation *allocation;
  size_t first, count;
} * runs; /* the open chunks of devices */
static int nruns, room_runs;
static size_t window; /* how many chunks a fault opens: more each time */

static size_t chunk_end(const struct allocation *a, size_t chunk) {
  return (chunk + 1) * CHUNK < a->page_bytes ? (chunk + 1) * CHUNK : a->page_bytes;
}

/* As memset, which sanitizers replace: what theirs notes of each byte took a third of all pages of a training. */
static void fill(uintptr_t first, uintptr_t end, int byte) {
  if (first >= end) return;
#if defined(__x86_64__)
  size_t count = end - first;
  __asm__ volatile("rep stosb" : "+D"(first), "+c"(count) : "a"(byte) : "memory");
#else
  for (volatile char *p = (volatile char *)first; p < (volatile char *)end; p++) *p = (char)byte;
#endif
}

static void poison(struct allocation *a, size_t chunk) {
  uintptr_t first = a->pages + chunk * CHUNK, end = a->pages + chunk_end(a, chunk),
            behind = a->begin + a->bytes;
  fill(first, end, POISON);
  fill(first, end < a->begin ? end : a->begin, CANARY);
  fill(first < behind ? behind : first, end, CANARY);
  a->chunks[chunk] |= TOUCHED;
}

static void open_run(struct allocation *a, size_t first, size_t count) {
  protect(a->pages + first * CHUNK, chunk_end(a, first + count - 1) - first * CHUNK, PROT_READ | PROT_WRITE);
  for (size_t i = first; i < first + count; i++) {
    if (!(a->chunks[i] & TOUCHED)) poison(a, i);
    a->chunks[i] |= OPEN;
  }
  if (a->space == HOST) return;
  if (nruns == room_runs) runs = realloc(runs, (size_t)(room_runs = 2 * room_runs + 64) * sizeof *runs);
  runs[nruns++] = (struct run){a, first, count};
}

static void open_chunks(struct allocation *a, size_t first, size_t end) {
  while (first < end) {
    size_t last = first;
    while (last < end && !(a->chunks[last] & OPEN)) last++;
    if (last > first) open_run(a, first, last - first);
    first = last + 1;
  }
}

void memory_allow(uint64_t devices) {
  int kept = 0;
  for (int i = 0; i < nruns; i++) {
    struct run r = runs[i];
    if (devices >> r.allocation->space & 1) {
      runs[kept++] = r;
      continue;
    }
    protect(r.allocation->pages + r.first * CHUNK,
            chunk_end(r.allocation, r.first + r.count - 1) - r.first * CHUNK, PROT_NONE);
    for (size_t k = r.first; k < r.first + r.count; k++) r.allocation->chunks[k] &= (unsigned char)~OPEN;
  }
  nruns = kept;
  window = 1;
  open_devices = devices;
}

void memory_touch(uintptr_t address, size_t bytes) {
  struct allocation *a = memory_find(address, bytes);
  if (a && bytes) open_chunks(a, (address - a->pages) / CHUNK, (address + bytes - 1 - a->pages) / CHUNK + 1);
}

bool memory_fault(uintptr_t address) {
  struct space *s = space_of(address);
  if (!s || s == &spaces[HOST] || !(open_devices >> (s - spaces) & 1)) return false;
  int i = position(s, address);
  if (i == s->count || address < s->list[i]->pages) return false;
  struct allocation *a = s->list[i];
  size_t chunk = (address - a->pages) / CHUNK, end = chunk + 1;
  if (a->chunks[chunk] & OPEN) return false;
  while (end - chunk < window && end * CHUNK < a->page_bytes && a->chunks[end] == TOUCHED) end++;
  open_run(a, chunk, end - chunk);
  if (window < AHEAD) window *= 2;
  return true;
}

static const char *space_name(int space) {
  static char name[32];
  if (space == HOST) return "the host";
  snprintf(name, sizeof name, "simulated GPU %d", space);
  return name;
}

const char *memory_describe(uintptr_t address) {
  static char texts[2][256];
  static int turn;
  char *text = texts[turn ^= 1]; /* for two in one line */
  struct space *s = space_of(address);
  if (address < PAGE) return "near NULL";
  if (!s) return "memory of the host that is not pinned";
  int space = (int)(s - spaces), i = position(s, address);
  for (unsigned k = 0; k < FREED && k < nfreed; k++) {
    const struct freed *f = &freed[(nfreed - 1 - k) % FREED];
    if (address - f->begin < f->bytes && f->space == space && !memory_find(address, 0)) {
      snprintf(text, sizeof texts[0], "byte %zu of %zu bytes of %s that are freed",
               (size_t)(address - f->begin), f->bytes, space_name(space));
      return text;
    }
  }
  /* The allocation that it is in or behind, or else the one that it is before. */
  const struct allocation *in = i < s->count && address >= s->list[i]->begin ? s->list[i] : NULL;
  const struct allocation *near = in ? in : i > 0 ? s->list[i - 1] : i < s->count ? s->list[i] : NULL;
  if (!near)
    snprintf(text, sizeof texts[0], "in the address range of %s, which has no memory allocated",
             space_name(space));
  else if (address < near->begin)
    snprintf(text, sizeof texts[0], "%zu bytes before %zu bytes of %s", (size_t)(near->begin - address),
             near->bytes, space_name(space));
  else if (address - near->begin >= near->bytes)
    snprintf(text, sizeof texts[0], "%zu bytes behind the end of %zu bytes of %s",
             (size_t)(address - near->begin - near->bytes), near->bytes, space_name(space));
  else
    snprintf(text, sizeof texts[0], "byte %zu of %zu bytes of %s%s", (size_t)(address - near->begin),
             near->bytes, space_name(space),
             space == HOST || open_devices >> space & 1 ? "" : ", to which it has no access");
  return text;
}

/* --- allocation --- */

/* The address of `bytes` free bytes with a free page on either side, or 0: the first behind the last one that
 * was given, so that it takes long until an address is used again. */
static uintptr_t find_pages(struct space *s, size_t bytes) {
  uintptr_t begin = s->cursor, end = s->base + s->bytes;
  for (int i = position(s, begin), rounds = 0; rounds < 2; i++) {
    uintptr_t next = i < s->count ? s->list[i]->pages : end;
    if (next > begin && next - begin >= bytes + 2 * PAGE) {
      s->cursor = begin + PAGE + bytes;
      return begin + PAGE;
    }
    if (i < s->count)
      begin = s->list[i]->pages + s->list[i]->page_bytes;
    else
      begin = s->base, i = -1, rounds++;
  }
  return 0;
}

static struct allocation *allocate(int space, size_t bytes) {
  struct space *s = &spaces[space];
  size_t rounded = (bytes + ALIGN - 1) / ALIGN * ALIGN, page_bytes = (bytes + PAGE - 1) / PAGE * PAGE;
  if (bytes == 0 || page_bytes > s->bytes || (space != HOST && rounded > limit - s->used)) return NULL;
  uintptr_t pages = find_pages(s, page_bytes);
  if (!pages) return NULL;
  struct allocation *a = calloc(1, sizeof *a + page_bytes / CHUNK + 1);
  a->space = space;
  a->pages = pages;
  a->page_bytes = page_bytes;
  a->begin = pages + page_bytes - rounded;
  a->bytes = bytes;
  if (s->count == s->room) s->list = realloc(s->list, (s->room = 2 * s->room + 16) * sizeof *s->list);
  int i = position(s, pages);
  memmove(s->list + i + 1, s->list + i, (size_t)(s->count++ - i) * sizeof *s->list);
  s->list[i] = a;
  if (s->high < pages + page_bytes) s->high = pages + page_bytes;
  s->used += rounded;
  sim_begin(&a->object, space == HOST ? kind_host_memory : kind_memory, space == HOST ? -1 : space);
  if (space == HOST) open_chunks(a, 0, (page_bytes + CHUNK - 1) / CHUNK);
  return a;
}

/* Is what lies next to the allocation in its own pages as it was? */
static bool intact(struct allocation *a) {
  for (uintptr_t p = a->pages; p < a->pages + a->page_bytes; p++) {
    if (p == a->begin) p += a->bytes;
    if (p == a->pages + a->page_bytes) break;
    size_t chunk = (p - a->pages) / CHUNK;
    if (!(a->chunks[chunk] & TOUCHED)) continue;
    open_chunks(a, chunk, chunk + 1);
    if (*(unsigned char *)p != CANARY) {
      sim_complain("written %s", memory_describe(p));
      return false;
    }
  }
  return true;
}

static bool release(struct allocation *a) {
  struct space *s = &spaces[a->space];
  bool ok = intact(a);
  memory_allow(0); /* no run knows it any more */
  if (mmap((void *)a->pages, a->page_bytes, PROT_NONE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
    abort();
  int i = position(s, a->pages);
  memmove(s->list + i, s->list + i + 1, (size_t)(--s->count - i) * sizeof *s->list);
  s->used -= (a->bytes + ALIGN - 1) / ALIGN * ALIGN;
  freed[nfreed++ % FREED] = (struct freed){a->begin, a->bytes, a->space};
  object_end(&a->object);
  free(a);
  return ok;
}

static CUresult release_at(uintptr_t address, bool host) {
  struct allocation *a = memory_find(address, 1);
  if (!a || a->begin != address || (a->space == HOST) != host) {
    sim_complain("cannot free %p, which is %s", (void *)address, memory_describe(address));
    return CUDA_ERROR_INVALID_VALUE;
  }
  return release(a) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* --- entry points --- */

CUresult cuMemGetInfo(size_t *available, size_t *total) {
  CUresult r = sim_enter(__func__, 0);
  if (r) return r;
  *total = limit;
  *available = limit - spaces[sim_current()->device].used;
  return sim_leave(CUDA_SUCCESS);
}

CUresult cuDeviceTotalMem(size_t *bytes, CUdevice device) {
  CUresult r = sim_enter(__func__, NO_CONTEXT);
  if (r) return r;
  if (device < 0 || device >= sim_ndevices) return sim_leave(CUDA_ERROR_INVALID_DEVICE);
  *bytes = limit;
  return sim_leave(CUDA_SUCCESS);
}

CUresult cuMemAlloc(CUdeviceptr *data, size_t bytes) {
  CUresult r = sim_enter(__func__, UNSAFE);
  if (r) return r;
  if (bytes == 0) return sim_leave(CUDA_ERROR_INVALID_VALUE);
  struct allocation *a = allocate(sim_current()->device, bytes);
  if (!a) return sim_leave(CUDA_ERROR_OUT_OF_MEMORY);
  *data = a->begin;
  return sim_leave(CUDA_SUCCESS);
}

CUresult cuMemFree(CUdeviceptr data) {
  CUresult r = sim_enter(__func__, UNSAFE | DESTROYS);
  if (r || !data) return r ? r : sim_leave(r);
  return sim_leave(release_at((uintptr_t)data, false));
}

CUresult cuMemHostAlloc(void **data, size_t bytes, unsigned flags) {
  CUresult r = sim_enter(__func__, UNSAFE);
  if (r) return r;
  if (bytes == 0 || flags & ~(unsigned)CU_MEMHOSTALLOC_PORTABLE) return sim_leave(CUDA_ERROR_INVALID_VALUE);
  struct allocation *a = allocate(HOST, bytes);
  if (!a) return sim_leave(CUDA_ERROR_OUT_OF_MEMORY);
  *data = (void *)a->begin;
  return sim_leave(CUDA_SUCCESS);
}

CUresult cuMemFreeHost(void *data) {
  CUresult r = sim_enter(__func__, UNSAFE | DESTROYS);
  if (r) return r;
  return sim_leave(data ? release_at((uintptr_t)data, true) : CUDA_ERROR_INVALID_VALUE);
}
