/* exports.c: the functions that a loaded ELF file exports, by name.
 *
 * DynamoRIO has this too (dr_get_proc_address), but reads where the tables are when the loader has mapped the
 * file as a whole and its segments are not yet in their places. Files whose tables were moved to a segment
 * of their own (patchelf does it to many libraries in Python wheels) have something else there
 * then: no function was found, or the search left the file. The tables are the program's and may hold
 * anything, so every read of them may fail. */
#include "host.h"
#include <elf.h>

enum { MAX_HEADERS = 64, MAX_ENTRIES = 256, MAX_CHAIN = 1 << 16, MAX_NAME = 64, WORD_BITS = 64 };

static bool read_at(const struct exports *e, uint64_t address, void *to, size_t size) {
  size_t got;
  return address >= e->start && size <= e->end - e->start && address <= e->end - size &&
         dr_safe_read((const void *)address, size, to, &got) && got == size;
}

/* The loaders of glibc write addresses in place of what the file has, others do not. */
static uint64_t table_address(const struct exports *e, uint64_t value) {
  return value >= e->start && value < e->end ? value : value + e->shift;
}

static void note_table(struct exports *e, const Elf64_Dyn *entry) {
  switch (entry->d_tag) {
  case DT_SYMTAB: e->symbols = table_address(e, entry->d_un.d_ptr); break;
  case DT_STRTAB: e->strings = table_address(e, entry->d_un.d_ptr); break;
  case DT_GNU_HASH: e->gnu_hash = table_address(e, entry->d_un.d_ptr); break;
  case DT_HASH: e->hash = table_address(e, entry->d_un.d_ptr); break;
  default: break;
  }
}

struct exports exports_of(const module_data_t *m) {
  struct exports e = {
      .start = (uint64_t)m->start, .end = (uint64_t)m->end, .shift = (uint64_t)(m->start - m->preferred_base)};
  Elf64_Ehdr file;
  Elf64_Phdr segment;
  if (!read_at(&e, e.start, &file, sizeof file) || file.e_phentsize != sizeof segment) return e;
  for (int i = 0; i < file.e_phnum && i < MAX_HEADERS; i++) {
    if (!read_at(&e, e.start + file.e_phoff + (uint64_t)i * sizeof segment, &segment, sizeof segment)) return e;
    if (segment.p_type != PT_DYNAMIC) continue;
    Elf64_Dyn entry = {.d_tag = DT_NULL};
    for (int k = 0; k < MAX_ENTRIES; k++) {
      if (!read_at(&e, segment.p_vaddr + e.shift + (uint64_t)k * sizeof entry, &entry, sizeof entry) ||
          entry.d_tag == DT_NULL)
        break;
      note_table(&e, &entry);
    }
  }
  return e;
}

/* What is looked for. */
struct wanted {
  const char *name;
  size_t length;
  uint32_t type;
};

/* The address of symbol `index` if it is what is wanted. */
static app_pc match(const struct exports *e, uint32_t index, const struct wanted *w) {
  Elf64_Sym symbol;
  char found[MAX_NAME];
  if (!read_at(e, e->symbols + (uint64_t)index * sizeof symbol, &symbol, sizeof symbol)) return NULL;
  if (symbol.st_shndx == SHN_UNDEF || symbol.st_value == 0 || ELF64_ST_TYPE(symbol.st_info) != w->type) return NULL;
  if (!read_at(e, e->strings + symbol.st_name, found, w->length + 1) || memcmp(found, w->name, w->length + 1) != 0)
    return NULL;
  uint64_t address = symbol.st_value + e->shift;
  return address >= e->start && address < e->end ? (app_pc)address : NULL;
}

/* The table of DT_GNU_HASH: four words, a Bloom filter of 64-bit words, buckets, chains. */
static app_pc find_gnu(const struct exports *e, const struct wanted *w) {
  uint32_t h = 5381, head[4]; /* buckets, first symbol, words of the filter, second shift of the filter */
  for (size_t i = 0; i < w->length; i++) h = h * 33 + (uint8_t)w->name[i];
  if (!read_at(e, e->gnu_hash, head, sizeof head) || !head[0] || !head[2]) return NULL;
  uint64_t filter = e->gnu_hash + sizeof head, buckets = filter + (uint64_t)head[2] * sizeof(uint64_t), word;
  if (!read_at(e, filter + h / WORD_BITS % head[2] * sizeof word, &word, sizeof word)) return NULL;
  if (!(word >> h % WORD_BITS & word >> (h >> head[3] % 32) % WORD_BITS & 1)) return NULL;
  uint32_t index, of_symbol;
  if (!read_at(e, buckets + h % head[0] * sizeof index, &index, sizeof index) || index < head[1]) return NULL;
  uint64_t chains = buckets + (uint64_t)head[0] * sizeof index;
  for (int n = 0; n < MAX_CHAIN; n++, index++) {
    if (!read_at(e, chains + (uint64_t)(index - head[1]) * sizeof of_symbol, &of_symbol, sizeof of_symbol)) return NULL;
    app_pc found = (of_symbol ^ h) >> 1 ? NULL : match(e, index, w);
    if (found || of_symbol & 1) return found;
  }
  return NULL;
}

/* The table of DT_HASH: the number of buckets and of symbols, buckets, chains. */
static app_pc find_sysv(const struct exports *e, const struct wanted *w) {
  uint32_t h = 0, head[2], index;
  for (size_t i = 0; i < w->length; i++) {
    h = (h << 4) + (uint8_t)w->name[i];
    h = (h ^ (h >> 24 & 0xf0)) & 0x0fffffff;
  }
  if (!read_at(e, e->hash, head, sizeof head) || !head[0]) return NULL;
  uint64_t buckets = e->hash + sizeof head, chains = buckets + (uint64_t)head[0] * sizeof index;
  uint64_t next = buckets + h % head[0] * sizeof index;
  for (int n = 0; n < MAX_CHAIN && read_at(e, next, &index, sizeof index) && index; n++) {
    app_pc found = match(e, index, w);
    if (found) return found;
    next = chains + (uint64_t)index * sizeof index;
  }
  return NULL;
}

app_pc exports_find_symbol(const struct exports *e, const char *name, uint32_t type) {
  struct wanted w = {name, strlen(name), type};
  if (!e->symbols || !e->strings || w.length >= MAX_NAME) return NULL;
  if (e->gnu_hash) return find_gnu(e, &w);
  return e->hash ? find_sysv(e, &w) : NULL;
}

app_pc exports_find(const struct exports *e, const char *function) {
  return exports_find_symbol(e, function, STT_FUNC);
}
