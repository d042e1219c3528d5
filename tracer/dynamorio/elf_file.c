/* elf_file.c: an ELF file in memory, and where its variables lie. */
#include "elf_file.h"
#include "../core/object_map.h"
#include <stdlib.h>

bool elf_open(const char *path, struct elf_file *f) {
  uint64 size;
  file_t file = *path ? dr_open_file(path, DR_FILE_READ) : INVALID_FILE;
  *f = (struct elf_file){0};
  if (file == INVALID_FILE) return false;
  if (dr_file_size(file, &size)) {
    f->size = size;
    f->bytes = dr_map_file(file, &f->size, 0, NULL, DR_MEMPROT_READ, DR_MAP_PRIVATE);
  }
  dr_close_file(file);
  if (f->bytes && f->size > size) f->size = size;
  return f->bytes != NULL;
}

void elf_close(const struct elf_file *f) { dr_unmap_file((void *)f->bytes, f->size); }

const void *elf_at(const struct elf_file *f, uint64_t offset, uint64_t bytes) {
  return offset <= f->size && bytes <= f->size - offset ? f->bytes + offset : NULL;
}

static const Elf64_Shdr *sections(const struct elf_file *f, uint32_t *count) {
  const Elf64_Ehdr *head = elf_at(f, 0, sizeof *head);
  if (!head || memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 || head->e_ident[EI_CLASS] != ELFCLASS64) return NULL;
  if (head->e_shentsize != sizeof(Elf64_Shdr) || head->e_shoff % 8) return NULL;
  *count = head->e_shnum;
  return elf_at(f, head->e_shoff, (uint64_t)head->e_shnum * sizeof(Elf64_Shdr));
}

const Elf64_Shdr *elf_section(const struct elf_file *f, uint32_t number) {
  uint32_t count = 0;
  const Elf64_Shdr *all = sections(f, &count);
  return all && number < count && elf_at(f, all[number].sh_offset, all[number].sh_size) ? &all[number] : NULL;
}

/* The section of a kind; NULL if the file has none, or not all of it. */
static const Elf64_Shdr *section(const struct elf_file *f, uint32_t kind) {
  uint32_t count = 0;
  const Elf64_Shdr *all = sections(f, &count);
  for (uint32_t i = 0; all && i < count; i++)
    if (all[i].sh_type == kind && all[i].sh_offset % 8 == 0 && elf_at(f, all[i].sh_offset, all[i].sh_size))
      return &all[i];
  return NULL;
}

const Elf64_Shdr *elf_symbols(const struct elf_file *f) {
  const Elf64_Shdr *all = section(f, SHT_SYMTAB);
  return all ? all : section(f, SHT_DYNSYM);
}

/* By address; of those at one address the largest first. */
static int compare(const void *left, const void *right) {
  const struct variable *a = left, *b = right;
  if (a->address != b->address) return a->address < b->address ? -1 : 1;
  return a->size > b->size ? -1 : a->size < b->size;
}

static int compare_sizes(const void *left, const void *right) {
  const struct variable *a = left, *b = right;
  return a->size > b->size ? -1 : a->size < b->size;
}

uint32_t variables_largest(struct variable *v, uint32_t n, uint32_t most) {
  if (n <= most) return n;
  qsort(v, n, sizeof *v, compare_sizes);
  return most;
}

uint32_t variables_add(struct variable *v, uint32_t n, uint32_t most, struct variable what) {
  if (n == 2 * most) n = variables_largest(v, n, most);
  v[n] = what;
  return n + 1;
}

uint32_t variables_sort(struct variable *v, uint32_t n) {
  uint32_t kept = 0;
  qsort(v, n, sizeof *v, compare);
  for (uint32_t i = 0; i < n; i++)
    if (kept == 0 || v[i].address + v[i].size > v[kept - 1].address + v[kept - 1].size) v[kept++] = v[i];
  return kept;
}

void variables_lay_out(const struct variable *v, uint32_t n, variables_place *place, void *data) {
  const uint64_t granule = 1u << HI_GRANULE_SHIFT;
  uint64_t shared = 0; /* the last such granule */
  for (uint32_t i = 0; i < n; i++) {
    uint64_t end = v[i].address + v[i].size, next = i + 1 < n ? v[i + 1].address & -granule : ~0ull;
    bool begins_shared = shared && shared == (v[i].address & -granule), ends_shared = next < end;
    uint64_t from = begins_shared ? shared + granule : v[i].address;
    uint64_t to = ends_shared ? next : end;
    if (from < to) place(data, v[i], from, to);
    if (!ends_shared || next == shared) continue;
    shared = next;
    place(data, (struct variable){shared, granule}, shared, shared + granule);
  }
}
