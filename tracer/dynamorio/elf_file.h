/* elf_file.h: an ELF file in memory, and where its variables lie. Nothing in a file is trusted. */
#ifndef HITHER_ELF_FILE_H
#define HITHER_ELF_FILE_H
#include "host.h"

struct elf_file {
  const byte *bytes;
  size_t size;
};

/* Of one process, or of one thread. */
struct variable {
  uint64_t address, size;
};

/* Maps a file; false if that cannot be. */
bool elf_open(const char *path, struct elf_file *f);
void elf_close(const struct elf_file *f);
/* The bytes at an offset of the file; NULL if it does not have all of them. */
const void *elf_at(const struct elf_file *f, uint64_t offset, uint64_t bytes);
/* A section by its number; NULL if the file has none, or not all of it. */
const Elf64_Shdr *elf_section(const struct elf_file *f, uint32_t number);
/* Its symbols, of a stripped file those that it exports; NULL: none. */
const Elf64_Shdr *elf_symbols(const struct elf_file *f);

/* Adds a variable to `n` others, of which the `most` largest are kept, with room for twice as many; returns how many
 * there are now. */
uint32_t variables_add(struct variable *v, uint32_t n, uint32_t most, struct variable what);
/* Keeps the `most` largest; returns how many are left. */
uint32_t variables_largest(struct variable *v, uint32_t n, uint32_t most);
/* Sorts by address and drops other names for a variable and for parts of it; returns how many are left. */
uint32_t variables_sort(struct variable *v, uint32_t n);
/* Tells where variables lie that are sorted: `what` at [from, to). A granule that two of them share is a
 * variable of its own. */
typedef void variables_place(void *data, struct variable what, uint64_t from, uint64_t to);
void variables_lay_out(const struct variable *v, uint32_t n, variables_place *place, void *data);

#endif
