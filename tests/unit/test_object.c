/* SPDX-License-Identifier: Apache-2.0 */
/* References between functions of an object that is loaded: how far each kind reaches, and what is refused. Test `cpu`
 * has the objects that LLVM makes. */
#include "runtime/cpu/object.h"

#include "ir/scalar/kernel.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#if defined(__x86_64__) || defined(__aarch64__)

/* `first` returns 7, `second` is one instruction that goes on at what a reference says. */
static const struct {
  unsigned char code[16];
  int machine, second, field; /* where it is, and what is written */
} jumping = {
#ifdef __x86_64__
    {0xb8, 7, 0, 0, 0, 0xc3, 0, 0, 0xe9},
    EM_X86_64,
    8,
    9,
#else
    {0xe0, 0, 0x80, 0x52, 0xc0, 3, 0x5f, 0xd6, 0, 0, 0, 0x14},
    EM_AARCH64,
    8,
    8,
#endif
};

/* The file of the two: `second` refers to `addend` bytes behind `first`. NULL if it is not loaded. */
static struct object *load_jumping(uint32_t type, int64_t addend) {
  static const char names[] = "\0first\0second";
  struct {
    Elf64_Ehdr header;
    Elf64_Shdr section[5];
    Elf64_Sym symbol[3];
    Elf64_Rela reference;
    unsigned char code[sizeof jumping.code];
    char names[sizeof names];
  } file = {
      .header = {.e_type = ET_REL,
                 .e_shoff = sizeof file.header,
                 .e_shentsize = sizeof *file.section,
                 .e_shnum = 5},
      .symbol = {{0},
                 {.st_name = 1, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), .st_shndx = 1},
                 {.st_name = 7, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), .st_shndx = 1}},
      .reference = {(Elf64_Addr)jumping.field, ELF64_R_INFO(1, type), addend},
  };
  const char *base = (const char *)&file;
  memcpy(file.header.e_ident, ELFMAG, SELFMAG);
  file.header.e_ident[EI_CLASS] = ELFCLASS64;
  file.header.e_machine = (Elf64_Half)jumping.machine;
  file.symbol[2].st_value = (Elf64_Addr)jumping.second;
  memcpy(file.code, jumping.code, sizeof file.code);
  memcpy(file.names, names, sizeof names);
  file.section[1] = (Elf64_Shdr){.sh_type = SHT_PROGBITS,
                                 .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
                                 .sh_addralign = 16,
                                 .sh_offset = (Elf64_Off)((char *)file.code - base),
                                 .sh_size = sizeof file.code};
  file.section[2] = (Elf64_Shdr){.sh_type = SHT_RELA,
                                 .sh_link = 3,
                                 .sh_info = 1,
                                 .sh_offset = (Elf64_Off)((char *)&file.reference - base),
                                 .sh_size = sizeof file.reference};
  file.section[3] = (Elf64_Shdr){.sh_type = SHT_SYMTAB,
                                 .sh_link = 4,
                                 .sh_offset = (Elf64_Off)((char *)file.symbol - base),
                                 .sh_size = sizeof file.symbol};
  file.section[4] = (Elf64_Shdr){
      .sh_type = SHT_STRTAB, .sh_offset = (Elf64_Off)(file.names - base), .sh_size = sizeof names};
  return object_load(base, sizeof file);
}

/* From one function to another: as far as the instruction can, no further, and to instructions only. */
KERNEL_CALLER static void references(void **state) {
  static const struct {
    uint32_t type;
    int64_t addend;
    bool fits;
  } cases[] = {
#ifdef __x86_64__
      {R_X86_64_PLT32, -4, true},
      {R_X86_64_PC32, -4, true},
      {R_X86_64_PLT32, INT32_MAX + INT64_C(9), true},
      {R_X86_64_PLT32, INT32_MAX + INT64_C(10), false},
      {R_X86_64_PLT32, INT32_MIN + INT64_C(9), true},
      {R_X86_64_PLT32, INT32_MIN + INT64_C(8), false},
      {R_X86_64_32S, -4, false},
#else
      {R_AARCH64_JUMP26, 0, true},
      {R_AARCH64_CALL26, 0, true},
      {R_AARCH64_CALL26, 2, false},
      {R_AARCH64_JUMP26, (1 << 27) + 4, true},
      {R_AARCH64_JUMP26, (1 << 27) + 8, false},
      {R_AARCH64_CALL26, -(1 << 27) + 8, true},
      {R_AARCH64_CALL26, -(1 << 27) + 4, false},
      {R_AARCH64_ABS32, 0, false},
#endif
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct object *o = load_jumping(cases[i].type, cases[i].addend);
    assert_int_equal(o != NULL, cases[i].fits);
    if (i < 2) { /* to the first one's beginning */
      void *address = object_find(o, "second");
      int (*second)(void);
      memcpy(&second, &address, sizeof second);
      assert_int_equal(second(), 7);
    }
    object_unload(o);
  }
}

#else

static void references(void **state) {
  (void)state;
  skip();
}

#endif

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(references),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
