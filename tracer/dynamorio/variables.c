/* variables.c: the variables of loaded ELF files, from their symbol tables, as objects of the
 * object map. What lies between them is an object of its own for each segment: constants
 * without a name, or data. */
#include "../core/object_map.h"
#include "elf_file.h"

#define MAX_VARIABLES 8192u /* of the program; of a file with more, small ones are left out */
/* Variables have half of the ids, so that allocations find some after hundreds of libraries. */
#define MOST_VARIABLES (HI_PROCESS_OBJECTS / 2)
#define LIBRARY_PART 16 /* a library has at most this part of what is left of them */

static uint32_t placed; /* variables of this process */

static bool is_constant(const module_data_t *m, uint64_t address) {
  for (uint i = 0; i < m->num_segments; i++)
    if (address >= (uint64_t)m->segments[i].start && address < (uint64_t)m->segments[i].end)
      return !(m->segments[i].prot & DR_MEMPROT_WRITE);
  return false;
}

/* Whether all of it is in the file as it was loaded. */
static bool is_variable(const module_data_t *m, const Elf64_Sym *s) {
  uint64_t at = (uint64_t)(m->start - m->preferred_base) + s->st_value, end = (uint64_t)m->end;
  if (at < (uint64_t)m->start || at >= end || s->st_size > end - at) return false;
  return ELF64_ST_TYPE(s->st_info) == STT_OBJECT && s->st_shndx != SHN_UNDEF && s->st_shndx < SHN_LORESERVE &&
         s->st_size;
}

/* Finds the largest variables; returns how many. Constants smaller than a granule are left out: literals without a
 * name lie in the same granule. */
static uint32_t find(const module_data_t *m, const struct elf_file *f, const Elf64_Shdr *table, struct variable *to) {
  uint64_t bias = (uint64_t)(m->start - m->preferred_base);
  const Elf64_Sym *symbols = elf_at(f, table->sh_offset, table->sh_size);
  uint32_t n = 0;
  for (uint64_t i = 0; i < table->sh_size / sizeof *symbols; i++) {
    struct variable v = {bias + symbols[i].st_value, symbols[i].st_size};
    if (is_variable(m, &symbols[i]) && (v.size >= 1u << HI_GRANULE_SHIFT || !is_constant(m, v.address)))
      n = variables_add(to, n, MAX_VARIABLES, v);
  }
  return variables_sort(to, variables_largest(to, n, MAX_VARIABLES));
}

static uint32_t most_variables(const module_data_t *m) {
  uint32_t left = placed < MOST_VARIABLES ? MOST_VARIABLES - placed : 0;
  module_data_t *program = dr_get_main_module();
  bool is_program = program && program->start == m->start;
  if (program) dr_free_module_data(program);
  return is_program ? (left < MAX_VARIABLES ? left : MAX_VARIABLES) : left / LIBRARY_PART;
}

/* An object of `what` lies at [from, to). */
static void place(uint32_t kind, struct variable what, uint64_t from, uint64_t to) {
  uint32_t object = hi_object_new((struct hi_object){.kind = kind, .address = what.address, .size = what.size}, 0);
  if (object) hi_object_place(from, to - from, object);
  placed += kind == HI_OBJECT_VARIABLE;
}

static void place_variable(void *data, struct variable what, uint64_t from, uint64_t to) {
  (void)data;
  place(HI_OBJECT_VARIABLE, what, from, to);
}

static void place_file(const module_data_t *m, const struct elf_file *f) {
  const Elf64_Shdr *table = elf_symbols(f);
  size_t bytes = 2 * MAX_VARIABLES * sizeof(struct variable);
  struct variable *v = table ? dr_raw_mem_alloc(bytes, DR_MEMPROT_READ | DR_MEMPROT_WRITE, NULL) : NULL;
  if (!v) return;
  uint32_t n = find(m, f, table, v), most = most_variables(m);
  if (n > most) n = variables_sort(v, variables_largest(v, n, most));
  variables_lay_out(v, n, place_variable, NULL);
  dr_raw_mem_free(v, bytes);
}

/* Each segment is one object, in which the variables are placed afterwards. */
static void place_segments(const module_data_t *m) {
  for (uint i = 0; i < m->num_segments; i++) {
    uint64_t from = (uint64_t)m->segments[i].start, to = (uint64_t)m->segments[i].end;
    to = (to + HI_PAGE_BYTES - 1) & -HI_PAGE_BYTES;
    bool data = m->segments[i].prot & DR_MEMPROT_WRITE;
    if (from < to) place(data ? HI_OBJECT_UNNAMED : HI_OBJECT_CONSTANTS, (struct variable){from, to - from}, from, to);
  }
}

void variables_load(const module_data_t *m) {
  place_segments(m);
  struct elf_file f;
  if (!elf_open(m->full_path ? m->full_path : "", &f)) return;
  place_file(m, &f);
  elf_close(&f);
}

void variables_unload(const module_data_t *m) { hi_object_clear((uint64_t)m->start, (uint64_t)(m->end - m->start)); }
