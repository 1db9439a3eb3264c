/* SPDX-License-Identifier: Apache-2.0 */
/* An allocator to be preloaded that ends the process when it is given back what it did not give. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct block {
  size_t size, lead; /* the bytes asked for; those before them */
  uint64_t mark;
  uint64_t unused;
};
#define MARK UINT64_C(0x5ca1ab1e0ddba115)

void *__libc_memalign(size_t align, size_t size);
void __libc_free(void *p);
int posix_memalign(void **out, size_t align, size_t size);
void *aligned_alloc(size_t align, size_t size);
void *memalign(size_t align, size_t size);
size_t malloc_usable_size(void *p);

static struct block *block_of(void *p) {
  struct block *b = (struct block *)p - 1;
  if (b->mark == MARK) return b;
  static const char text[] = "freed, but not given by this allocator\n";
  if (write(2, text, sizeof text - 1) < 0) _exit(99);
  abort();
}

void *memalign(size_t align, size_t size) {
  size_t lead = align > sizeof(struct block) ? align : sizeof(struct block);
  char *base = __libc_memalign(lead, size + lead);
  if (base == NULL) return NULL;
  ((struct block *)(void *)(base + lead))[-1] = (struct block){size, lead, MARK, 0};
  return base + lead;
}

void free(void *p) {
  if (p == NULL) return;
  struct block *b = block_of(p);
  b->mark = 0;
  __libc_free((char *)p - b->lead);
}

void *malloc(size_t size) { return memalign(0, size); }
void *aligned_alloc(size_t align, size_t size) { return memalign(align, size); }
size_t malloc_usable_size(void *p) { return p ? block_of(p)->size : 0; }

int posix_memalign(void **out, size_t align, size_t size) {
  *out = memalign(align, size);
  return *out ? 0 : 12;
}

void *calloc(size_t n, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(n, size, &bytes)) return NULL;
  void *p = memalign(0, bytes);
  return p ? memset(p, 0, bytes) : NULL;
}

void *realloc(void *p, size_t size) {
  void *fresh = memalign(0, size);
  if (p == NULL || fresh == NULL) return fresh;
  size_t old = block_of(p)->size;
  memcpy(fresh, p, old < size ? old : size);
  free(p);
  return fresh;
}
