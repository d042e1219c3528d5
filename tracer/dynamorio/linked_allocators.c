/* linked_allocators.c: allocation functions under names that begin with the allocator's: those of jemalloc and
 * mimalloc where they are linked into a program or library, which need not export them, and of oneTBB's
 * libtbbmalloc. Without them, all blocks of such an allocator are one mapping. */
#include "elf_file.h"

#define MOST_FOUND 64u
#define LONGEST_NAME 48u

/* Beside those of C. */
static const struct allocation_function own[] = {
    /* jemalloc: with flags */
    {"mallocx", HI_ALLOC_MALLOC},
    {"rallocx", HI_ALLOC_REALLOC},
    {"dallocx", HI_ALLOC_FREE},
    {"sdallocx", HI_ALLOC_FREE},
    /* jemalloc: what is left of malloc, free and sdallocx where they were made part of the code that calls them, as
     * by optimisation when linking */
    {"malloc_default", HI_ALLOC_MALLOC | HI_ALLOC_OUT_OF_LINE},
    {"free_default", HI_ALLOC_FREE},
    {"sdallocx_default", HI_ALLOC_FREE},
    /* mimalloc and oneTBB: the alignment comes last */
    {"zalloc", HI_ALLOC_MALLOC},
    {"malloc_aligned", HI_ALLOC_MALLOC},
    {"zalloc_aligned", HI_ALLOC_MALLOC},
    {"calloc_aligned", HI_ALLOC_CALLOC},
    {"realloc_aligned", HI_ALLOC_REALLOC},
    {"free_size", HI_ALLOC_FREE},
    {"free_aligned", HI_ALLOC_FREE},
    {"free_size_aligned", HI_ALLOC_FREE},
    {"aligned_malloc", HI_ALLOC_MALLOC},
    {"aligned_realloc", HI_ALLOC_REALLOC},
    {"aligned_free", HI_ALLOC_FREE},
};

/* An allocation function: what its name begins with, and the rest of it. */
struct found {
  const char *name;
  size_t prefix;
  uint32_t which;
  uint64_t address;
};

static bool ends_in(const char *text, size_t length, const char *end) {
  size_t n = strlen(end);
  return length >= n && memcmp(text + length - n, end, n) == 0;
}

/* Who builds jemalloc chooses what its names begin with: `je_` by custom, `_rjem_` in Rust, `duckdb_je_`. */
static bool is_prefix(const char *name, size_t length) {
  if (ends_in(name, length, "je_") || ends_in(name, length, "jem_")) return true;
  return (length == 3 && memcmp(name, "mi_", 3) == 0) || (length == 9 && memcmp(name, "scalable_", 9) == 0);
}

/* One of these that a name of so many bytes at most is; NULL: none. */
static const struct allocation_function *named(const struct allocation_function *all, size_t n, const char *name,
                                               size_t bytes) {
  for (size_t i = 0; i < n; i++) {
    size_t length = strlen(all[i].name) + 1;
    if (length <= bytes && memcmp(name, all[i].name, length) == 0) return &all[i];
  }
  return NULL;
}

/* A name that ends within so many bytes. */
static bool is_allocator(const char *name, size_t bytes, struct found *f) {
  if (bytes > LONGEST_NAME) bytes = LONGEST_NAME;
  for (size_t length = 1; length <= bytes && name[length - 1]; length++) {
    if (name[length - 1] != '_' || !is_prefix(name, length)) continue;
    const char *rest = name + length;
    const struct allocation_function *function =
        named(allocation_functions, ALLOCATION_FUNCTIONS, rest, bytes - length);
    if (!function) function = named(own, sizeof own / sizeof *own, rest, bytes - length);
    if (!function) continue;
    *f = (struct found){.name = name, .prefix = length, .which = function->which};
    return true;
  }
  return false;
}

static uint32_t find(const module_data_t *m, const struct elf_file *f, struct found *found) {
  const Elf64_Shdr *table = elf_symbols(f), *text = table ? elf_section(f, table->sh_link) : NULL;
  if (!text || text->sh_type != SHT_STRTAB) return 0;
  const Elf64_Sym *symbols = elf_at(f, table->sh_offset, table->sh_size);
  const char *names = elf_at(f, text->sh_offset, text->sh_size);
  uint32_t n = 0;
  for (uint64_t i = 0; i < table->sh_size / sizeof *symbols && n < MOST_FOUND; i++) {
    const Elf64_Sym *s = &symbols[i];
    uint64_t at = (uint64_t)(m->start - m->preferred_base) + s->st_value;
    if (ELF64_ST_TYPE(s->st_info) != STT_FUNC || s->st_shndx == SHN_UNDEF) continue;
    if (s->st_name >= text->sh_size || at < (uint64_t)m->start || at >= (uint64_t)m->end) continue;
    if (is_allocator(names + s->st_name, text->sh_size - s->st_name, &found[n])) found[n++].address = at;
  }
  return n;
}

/* Whether one with the same beginning does this. */
static bool has(const struct found *found, uint32_t n, const struct found *like, uint32_t which) {
  for (uint32_t i = 0; i < n; i++)
    if ((found[i].which & ~HI_ALLOC_OUT_OF_LINE) == which && found[i].prefix == like->prefix &&
        memcmp(found[i].name, like->name, like->prefix) == 0)
      return true;
  return false;
}

void linked_allocators_wrap(const module_data_t *m) {
  struct elf_file f;
  struct found found[MOST_FOUND];
  if (!elf_open(m->full_path ? m->full_path : "", &f)) return;
  uint32_t n = find(m, &f, found);
  /* A function of another kind may happen to have such a name; an allocator has both. */
  for (uint32_t i = 0; i < n; i++)
    if (has(found, n, &found[i], HI_ALLOC_MALLOC) && has(found, n, &found[i], HI_ALLOC_FREE))
      alloc_wrap_hook((app_pc)found[i].address, found[i].which);
  elf_close(&f);
}
