/* modules.c: the ELF files that the process has loaded. */
#include "host.h"
#include <sys/stat.h>

#define MAX_MODULES HI_CODE_RANGES
static struct {
  uint64_t start, end, code_start, code_end;
  bool system;
} modules[MAX_MODULES];
static uint32_t nmodules;
static void *lock;

/* Bounds of the executable segments, by which return addresses are recognised. */
static void code_bounds(const module_data_t *m, uint64_t *start, uint64_t *end) {
  *start = ~0ull, *end = 0;
  for (uint i = 0; i < m->num_segments; i++) {
    if (!(m->segments[i].prot & DR_MEMPROT_EXEC)) continue;
    uint64_t s = (uint64_t)m->segments[i].start, e = (uint64_t)m->segments[i].end;
    if (s < *start) *start = s;
    if (e > *end) *end = e;
  }
}

bool modules_program_header(uint64_t start, uint32_t kind, Elf64_Phdr *found) {
  Elf64_Ehdr file;
  if (!dr_safe_read((void *)start, sizeof file, &file, NULL) || memcmp(file.e_ident, ELFMAG, SELFMAG) != 0)
    return false;
  for (uint32_t i = 0; i < file.e_phnum && file.e_phentsize == sizeof *found; i++) {
    uint64_t at = start + file.e_phoff + i * sizeof *found;
    if (!dr_safe_read((void *)at, sizeof *found, found, NULL)) return false;
    if (found->p_type == kind) return found->p_memsz > 0;
  }
  return false;
}

/* Where .eh_frame_hdr is. A segment that is longer than its file cannot be read to its end. */
static void find_unwind_tables(const module_data_t *m, uint64_t file_size, struct hi_code_range *code) {
  Elf64_Phdr part;
  if (!modules_program_header((uint64_t)m->start, PT_GNU_EH_FRAME, &part)) return;
  uint64_t at = (uint64_t)(m->start - m->preferred_base) + part.p_vaddr;
  for (uint i = 0; i < m->num_segments; i++) {
    uint64_t start = (uint64_t)m->segments[i].start, end = (uint64_t)m->segments[i].end;
    bool whole = m->segments[i].offset <= file_size && end - start <= file_size - m->segments[i].offset;
    if (at < start || at >= end || !(m->segments[i].prot & DR_MEMPROT_READ) || !whole) continue;
    code->unwind_tables = at;
    code->tables_start = start;
    code->tables_end = end;
  }
}

/* The largest segment of code that may be read, which is nearly always the only one: between two there
 * may be nothing. */
static struct hi_code_range readable_code(const module_data_t *m, uint64_t file) {
  struct hi_code_range code = {0};
  for (uint i = 0; i < m->num_segments; i++) {
    uint64_t s = (uint64_t)m->segments[i].start, e = (uint64_t)m->segments[i].end;
    uint wanted = DR_MEMPROT_EXEC | DR_MEMPROT_READ;
    if ((m->segments[i].prot & wanted) == wanted && e - s > code.end - code.start)
      code = (struct hi_code_range){.start = s, .end = e, .base = (uint64_t)m->start, .file = file};
  }
  /* A start of 0 ends the list. */
  return code.end ? code : (struct hi_code_range){.start = 1};
}

static void set_code_range(uint32_t i, struct hi_code_range code) {
  __atomic_store_n(&hi_code_ranges[i].end, 0, __ATOMIC_RELEASE);
  hi_code_ranges[i].base = code.base;
  hi_code_ranges[i].file = code.file;
  hi_code_ranges[i].unwind_tables = code.unwind_tables;
  hi_code_ranges[i].tables_start = code.tables_start;
  hi_code_ranges[i].tables_end = code.tables_end;
  __atomic_store_n(&hi_code_ranges[i].start, code.start, __ATOMIC_RELEASE);
  __atomic_store_n(&hi_code_ranges[i].end, code.end, __ATOMIC_RELEASE);
}

/* Whether a file is a library of the system, where users change nothing; frame_filter.rs has the same
 * rule, and more names. */
static bool is_system(const char *path) {
  bool folder = strncmp(path, "/lib", 4) == 0 || strncmp(path, "/usr/lib", 8) == 0;
  const char *name = strrchr(path, '/');
  return folder && strstr(name, ".so");
}

/* What tells a file from others, and from what it was before it was written anew; 0: not known. */
static uint64_t file_identity(const struct stat *st) {
  const uint64_t parts[] = {st->st_dev, st->st_ino, (uint64_t)st->st_size, (uint64_t)st->st_mtim.tv_sec,
                            (uint64_t)st->st_mtim.tv_nsec};
  uint64_t hash = 0;
  for (uint32_t i = 0; i < sizeof parts / sizeof *parts; i++) hash = (hash ^ parts[i]) * HI_HASH_MULTIPLIER;
  return st->st_ino ? hash : 0;
}

static void on_load(void *dc, const module_data_t *m, bool loaded) {
  (void)loaded;
  struct stat st = {0};
  const char *path = m->full_path ? m->full_path : "";
  if (*path && stat(path, &st) != 0) memset(&st, 0, sizeof st);
  dr_mutex_lock(lock);
  if (nmodules < MAX_MODULES) {
    modules[nmodules].start = (uint64_t)m->start;
    modules[nmodules].end = (uint64_t)m->end;
    modules[nmodules].system = m->full_path && is_system(m->full_path);
    code_bounds(m, &modules[nmodules].code_start, &modules[nmodules].code_end);
    struct hi_code_range code = readable_code(m, file_identity(&st));
    find_unwind_tables(m, (uint64_t)st.st_size, &code);
    set_code_range(nmodules, code);
    __atomic_store_n(&nmodules, nmodules + 1, __ATOMIC_RELEASE);
  }
  dr_mutex_unlock(lock);
  hi_bump_generation();
  uint64_t a[] = {(uint64_t)m->start, (uint64_t)m->end, st.st_dev, st.st_ino, (uint64_t)(m->start - m->preferred_base)};
  hi_emit(dc ? host_local(dc) : NULL, HI_EV_MODULE, 0, a, 5, path);
  variables_load(m);
  thread_locals_load((uint64_t)m->start);
  struct exports exports = exports_of(m);
  alloc_wrap(m, &exports);
  linked_allocators_wrap(m);
  creation_wrap(&exports);
  thread_locals_wrap(&exports);
  functions_wrap(m, &exports);
}

static void on_unload(void *dc, const module_data_t *m) {
  (void)dc;
  variables_unload(m);
  dr_mutex_lock(lock);
  for (uint32_t i = 0; i < nmodules; i++)
    if (modules[i].start == (uint64_t)m->start) {
      modules[i] = modules[--nmodules];
      set_code_range(i, hi_code_ranges[nmodules]);
      set_code_range(nmodules, (struct hi_code_range){0});
    }
  dr_mutex_unlock(lock);
}

/* In the child of a fork: the thread that may have held the lock does not exist here. */
void modules_forget_lock(void) { lock = dr_mutex_create(); }

void modules_init(void) {
  lock = dr_mutex_create();
  drmgr_register_module_load_event(on_load);
  drmgr_register_module_unload_event(on_unload);
}

/* Whether the range is part of a loaded ELF file, whose segments are not reported as mappings. */
bool modules_contain(uint64_t address, uint64_t length) {
  bool found = false;
  dr_mutex_lock(lock);
  for (uint32_t i = 0; i < nmodules && !found; i++)
    found = address >= modules[i].start &&
            address + length <= ((modules[i].end + HI_PAGE_BYTES - 1) & ~(HI_PAGE_BYTES - 1));
  dr_mutex_unlock(lock);
  return found;
}

/* The module whose code has the address, or MAX_MODULES. Reads without the lock: an error only affects
 * what an access is named after. */
static uint32_t module_with(uint64_t address) {
  uint32_t n = __atomic_load_n(&nmodules, __ATOMIC_ACQUIRE);
  for (uint32_t i = 0; i < n; i++)
    if (address >= modules[i].code_start && address < modules[i].code_end) return i;
  return MAX_MODULES;
}

/* Whether the address is in code. */
bool modules_executable(uint64_t address) { return module_with(address) < MAX_MODULES; }

/* Whether the address is in the code of a library of the system. */
bool modules_system(uint64_t address) {
  uint32_t module = module_with(address);
  return module < MAX_MODULES && modules[module].system;
}
