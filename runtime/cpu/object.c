/* SPDX-License-Identifier: Apache-2.0 */
/* ELF for x86-64 and AArch64, relocatable. Code comes first, constants follow on pages of their own; nothing is
 * writable once it can be run. Every offset is checked: the file was kept on disk. */
#include "runtime/cpu/object.h"

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* No system that dgc runs on has larger pages. */
#ifdef __aarch64__
#define PAGE 65536
#else
#define PAGE 4096
#endif
#define LEAD         64 /* readable bytes before the first function: sanitizers look there before a call */
#define MAX_SECTIONS 64

struct object {
  char *base;
  size_t size, code_size; /* whole pages */
  int nfunctions;
  struct object_function {
    char *name;
    void *address;
  } function[]; /* names are behind */
};

/* ---- references ---- */

/* What is at `at`, `place` bytes behind the base, gets to refer to what lies `target` bytes behind it. False if it
 * cannot, and for references of other kinds than kernels have. */
#if defined(__x86_64__)

#define MACHINE EM_X86_64

static bool put_reference(char *at, uint32_t type, uint64_t target, uint64_t place) {
  int64_t distance = (int64_t)(target - place);
  int32_t word = (int32_t)distance;
  if ((type != R_X86_64_PC32 && type != R_X86_64_PLT32) || word != distance) return false;
  memcpy(at, &word, sizeof word);
  return true;
}

#elif defined(__aarch64__)

#define MACHINE EM_AARCH64

/* Writes the lowest `bits` of `value` over those of the instruction from bit `low` on. */
static void put_bits(uint32_t *word, int low, int bits, int64_t value) {
  uint32_t mask = (UINT32_C(1) << bits) - 1;
  *word = (*word & ~(mask << low)) | ((uint32_t)value & mask) << low;
}

/* Pages of 4 KB from one to the other, whatever the system's are: two bits here, the others there. */
static bool put_pages(uint32_t *word, uint64_t target, uint64_t place) {
  int64_t pages = ((int64_t)target >> 12) - ((int64_t)place >> 12);
  put_bits(word, 29, 2, pages);
  put_bits(word, 5, 19, pages >> 2);
  return pages >= -(1 << 20) && pages < 1 << 20;
}

/* Where in its page it lies, counted in what is loaded: 2^shift bytes. */
static bool put_in_page(uint32_t *word, int shift, uint64_t target) {
  put_bits(word, 10, 12, (int64_t)(target & 0xfff) >> shift);
  return target % (UINT64_C(1) << shift) == 0;
}

/* A call, or a jump in its place, counted in instructions. */
static bool put_call(uint32_t *word, uint64_t target, uint64_t place) {
  int64_t distance = (int64_t)(target - place);
  put_bits(word, 0, 26, distance >> 2);
  return distance % 4 == 0 && distance >= -(1 << 27) && distance < 1 << 27;
}

/* Kernels load constants of 8 and of 16 bytes, and call what they share; ORC links what refers to anything else. */
static bool put_reference(char *at, uint32_t type, uint64_t target, uint64_t place) {
  uint32_t word;
  memcpy(&word, at, sizeof word);
  bool fits = type == R_AARCH64_ADR_PREL_PG_HI21                     ? put_pages(&word, target, place)
              : type == R_AARCH64_LDST64_ABS_LO12_NC                 ? put_in_page(&word, 3, target)
              : type == R_AARCH64_LDST128_ABS_LO12_NC                ? put_in_page(&word, 4, target)
              : type == R_AARCH64_CALL26 || type == R_AARCH64_JUMP26 ? put_call(&word, target, place)
                                                                     : false;
  if (fits) memcpy(at, &word, sizeof word);
  return fits;
}

#endif

/* ---- loading ---- */

#ifdef MACHINE

/* A file while it is loaded. */
struct object_loader {
  const char *data;
  size_t size;
  Elf64_Shdr section[MAX_SECTIONS];
  int nsections;
  bool placed[MAX_SECTIONS];
  size_t at[MAX_SECTIONS]; /* where a placed section lies behind `base` */
  char *base;
  size_t total, code_size;
  int symbols; /* the section of symbols; 0 if there is none */
};

static bool inside(const struct object_loader *l, uint64_t offset, uint64_t size) {
  return offset <= l->size && size <= l->size - offset;
}

static bool read_sections(struct object_loader *l) {
  Elf64_Ehdr h;
  if (l->size < sizeof h) return false;
  memcpy(&h, l->data, sizeof h);
  if (memcmp(h.e_ident, ELFMAG, SELFMAG) != 0 || h.e_ident[EI_CLASS] != ELFCLASS64 || h.e_type != ET_REL ||
      h.e_machine != MACHINE || h.e_shentsize != sizeof(Elf64_Shdr) || h.e_shnum > MAX_SECTIONS)
    return false;
  l->nsections = h.e_shnum;
  size_t bytes = (size_t)l->nsections * sizeof(Elf64_Shdr);
  if (!inside(l, h.e_shoff, bytes)) return false;
  memcpy(l->section, l->data + h.e_shoff, bytes);
  for (int i = 0; i < l->nsections; i++) {
    const Elf64_Shdr *s = &l->section[i];
    if (s->sh_type != SHT_NOBITS && !inside(l, s->sh_offset, s->sh_size)) return false;
    if (s->sh_type == SHT_SYMTAB) l->symbols = i;
  }
  return true;
}

/* Lays out the sections with these flags from `total` on. */
static bool place(struct object_loader *l, uint64_t flags) {
  const uint64_t known = SHF_ALLOC | SHF_EXECINSTR | SHF_MERGE | SHF_STRINGS;
  for (int i = 0; i < l->nsections; i++) {
    const Elf64_Shdr *s = &l->section[i];
    uint64_t align = s->sh_addralign > 1 ? s->sh_addralign : 1;
    if (!(s->sh_flags & SHF_ALLOC) || (s->sh_flags & SHF_EXECINSTR) != flags) continue;
    if (s->sh_type != SHT_PROGBITS || (s->sh_flags & ~known) || align > PAGE || (align & (align - 1)))
      return false;
    l->at[i] = (l->total + align - 1) & ~(align - 1);
    l->total = l->at[i] + s->sh_size;
    l->placed[i] = true;
  }
  l->total = (l->total + PAGE - 1) & ~(size_t)(PAGE - 1);
  return true;
}

static int count_symbols(const struct object_loader *l) {
  const Elf64_Shdr *s = &l->section[l->symbols];
  if (!l->symbols || s->sh_link >= (unsigned)l->nsections || s->sh_size / sizeof(Elf64_Sym) > INT32_MAX)
    return 0;
  return (int)(s->sh_size / sizeof(Elf64_Sym));
}

static bool read_symbol(const struct object_loader *l, uint64_t number, Elf64_Sym *out) {
  if (number >= (uint64_t)count_symbols(l)) return false;
  memcpy(out, l->data + l->section[l->symbols].sh_offset + number * sizeof *out, sizeof *out);
  return out->st_shndx < l->nsections && l->placed[out->st_shndx] &&
         out->st_value <= l->section[out->st_shndx].sh_size;
}

/* Its name, or NULL. */
static const char *name_of(const struct object_loader *l, const Elf64_Sym *s) {
  const Elf64_Shdr *names = &l->section[l->section[l->symbols].sh_link];
  if (names->sh_type != SHT_STRTAB || s->st_name >= names->sh_size) return NULL;
  const char *name = l->data + names->sh_offset + s->st_name;
  return memchr(name, 0, names->sh_size - s->st_name) ? name : NULL;
}

static bool relocate(struct object_loader *l, int section, const Elf64_Rela *r) {
  uint64_t size = l->section[section].sh_size;
  Elf64_Sym symbol;
  if (size < 4 || r->r_offset > size - 4 || !read_symbol(l, ELF64_R_SYM(r->r_info), &symbol)) return false;
  size_t place = l->at[section] + r->r_offset;
  uint64_t target = l->at[symbol.st_shndx] + symbol.st_value + (uint64_t)r->r_addend;
  return put_reference(l->base + place, ELF64_R_TYPE(r->r_info), target, place);
}

static bool relocate_all(struct object_loader *l) {
  for (int i = 0; i < l->nsections; i++) {
    const Elf64_Shdr *s = &l->section[i];
    if (s->sh_type != SHT_RELA && s->sh_type != SHT_REL) continue;
    if (s->sh_info >= (unsigned)l->nsections) return false;
    if (!l->placed[s->sh_info]) continue;
    if (s->sh_type == SHT_REL || s->sh_link != (unsigned)l->symbols) return false;
    for (size_t n = 0; n < s->sh_size / sizeof(Elf64_Rela); n++) {
      Elf64_Rela r;
      memcpy(&r, l->data + s->sh_offset + n * sizeof r, sizeof r);
      if (!relocate(l, (int)s->sh_info, &r)) return false;
    }
  }
  return true;
}

static bool is_function(const struct object_loader *l, int number, Elf64_Sym *s) {
  return read_symbol(l, (uint64_t)number, s) && ELF64_ST_TYPE(s->st_info) == STT_FUNC &&
         (l->section[s->st_shndx].sh_flags & SHF_EXECINSTR) && name_of(l, s) != NULL;
}

static struct object *list_functions(const struct object_loader *l) {
  int count = 0;
  size_t names = 0;
  Elf64_Sym s;
  for (int i = 0; i < count_symbols(l); i++)
    if (is_function(l, i, &s)) count++, names += strlen(name_of(l, &s)) + 1;
  struct object *o = malloc(sizeof *o + (size_t)count * sizeof o->function[0] + names);
  if (o == NULL) return NULL;
  *o = (struct object){.base = l->base, .size = l->total, .code_size = l->code_size};
  char *text = (char *)&o->function[count];
  for (int i = 0; i < count_symbols(l); i++)
    if (is_function(l, i, &s)) {
      struct object_function *f = &o->function[o->nfunctions++];
      *f = (struct object_function){text, l->base + l->at[s.st_shndx] + s.st_value};
      text = stpcpy(text, name_of(l, &s)) + 1;
    }
  return o;
}

/* Nothing of what lies there can be written any longer. */
static bool seal(char *base, size_t size, size_t code_size) {
  __builtin___clear_cache(base, base + code_size);
  return mprotect(base, code_size, PROT_READ | PROT_EXEC) == 0 &&
         (size == code_size || mprotect(base + code_size, size - code_size, PROT_READ) == 0);
}

static char *map(size_t size) {
  char *base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return base == MAP_FAILED ? NULL : base;
}

static struct object *load(struct object_loader *l) {
  for (int i = 0; i < l->nsections; i++)
    if (l->placed[i]) memcpy(l->base + l->at[i], l->data + l->section[i].sh_offset, l->section[i].sh_size);
  return relocate_all(l) && seal(l->base, l->total, l->code_size) ? list_functions(l) : NULL;
}

struct object *object_load(const char *data, size_t size) {
  struct object_loader l = {.data = data, .size = size, .total = LEAD};
  if (!read_sections(&l) || !place(&l, SHF_EXECINSTR)) return NULL;
  l.code_size = l.total;
  if (!place(&l, 0)) return NULL;
  l.base = map(l.total);
  if (l.base == NULL) return NULL;
  struct object *o = load(&l);
  if (o == NULL) munmap(l.base, l.total);
  return o;
}

struct object *object_of_code(const char *code, size_t size, const char **base) {
  size_t all = (LEAD + size + PAGE - 1) & ~(size_t)(PAGE - 1);
  struct object *o = malloc(sizeof *o);
  char *at = o ? map(all) : NULL;
  if (at == NULL) {
    free(o);
    return NULL;
  }
  memcpy(at + LEAD, code, size);
  *o = (struct object){.base = at, .size = all, .code_size = all};
  *base = at + LEAD;
  if (seal(at, all, all)) return o;
  object_unload(o);
  return NULL;
}

#else

struct object *object_load(const char *data, size_t size) {
  (void)data, (void)size;
  return NULL;
}

struct object *object_of_code(const char *code, size_t size, const char **base) {
  (void)code, (void)size, (void)base;
  return NULL;
}

#endif

void *object_find(const struct object *o, const char *name) {
  for (int i = 0; i < o->nfunctions; i++)
    if (strcmp(o->function[i].name, name) == 0) return o->function[i].address;
  return NULL;
}

void object_unload(struct object *o) {
  if (o == NULL) return;
  munmap(o->base, o->size);
  free(o);
}
