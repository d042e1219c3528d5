/* thread_locals.c: thread-local variables, as objects of the object map: all copies of one are one object.
 *
 * A thread has its copies of those of the program and of the libraries that are loaded with it below its thread
 * pointer, in all threads at the same distance from it (variant II of "ELF Handling For Thread-Local Storage").
 * Above it is the thread control block. What a library that is loaded later has for a thread is a heap block. */
#include "../core/object_map.h"
#include "elf_file.h"
#include <link.h>

#define MOST_FILES 128u
#define MOST_LINKS 4096u           /* files that are loaded with the program */
#define MOST_VARIABLES 256u        /* of a file */
#define MOST_PLACES 2048u          /* of all files */
#define FARTHEST (1ull << 30)      /* bytes below a thread pointer */
#define LARGEST_CONTROL (1u << 16) /* bytes of a thread control block */

/* Files with thread-local variables: where they begin in memory, and where their blocks are in the first thread. */
static struct block { uint64_t file, start, size; } blocks[MOST_FILES];
static uint32_t nblocks;

/* Where an object lies in each thread. */
static struct {
  int64_t from; /* the thread pointer */
  uint64_t size;
  uint32_t object;
} places[MOST_PLACES];
static uint32_t nplaces;

static uint64_t first_thread_pointer; /* 0: not set yet */
static uint32_t begins_left = 2, polls_left = 1000;
static uint64_t control_size; /* of the C library's thread control block; 0: not known */

void thread_locals_wrap(const struct exports *exports) {
  uint32_t size;
  app_pc at = exports_find_symbol(exports, "_thread_db_sizeof_pthread", STT_OBJECT); /* there for debuggers */
  if (at && dr_safe_read(at, sizeof size, &size, NULL) && size <= LARGEST_CONTROL) control_size = size;
}

static bool is_thread_local(const struct block *b, const Elf64_Sym *s) {
  return ELF64_ST_TYPE(s->st_info) == STT_TLS && s->st_shndx != SHN_UNDEF && s->st_size && s->st_value < b->size &&
         s->st_size <= b->size - s->st_value;
}

/* Finds the largest variables of a block, sorted, in the first thread; returns how many. */
static uint32_t find_variables(const struct block *b, const struct elf_file *f, struct variable *to) {
  const Elf64_Shdr *table = elf_symbols(f);
  const Elf64_Sym *symbols = table ? elf_at(f, table->sh_offset, table->sh_size) : NULL;
  uint64_t count = symbols ? table->sh_size / sizeof *symbols : 0;
  uint32_t n = 0;
  for (uint64_t i = 0; i < count; i++) {
    struct variable v = {b->start + symbols[i].st_value, symbols[i].st_size};
    if (is_thread_local(b, &symbols[i])) n = variables_add(to, n, MOST_VARIABLES, v);
  }
  return variables_sort(to, variables_largest(to, n, MOST_VARIABLES));
}

/* A granule in which a block begins is that block's: those of libraries are below that of the program. */
static uint64_t clipped(uint64_t address, uint64_t size) {
  uint64_t end = address + size, last = end & -(1ull << HI_GRANULE_SHIFT);
  for (uint32_t i = 0; i < nblocks; i++)
    if (blocks[i].start >= end && blocks[i].start >> HI_GRANULE_SHIFT == end >> HI_GRANULE_SHIFT)
      return last > address ? last - address : 0;
  return size;
}

static void add_place(struct hi_object object, uint64_t address, uint64_t size) {
  size = clipped(address, size);
  if (!size) return;
  object.kind = HI_OBJECT_THREAD_LOCAL;
  if (nplaces == MOST_PLACES) return;
  uint32_t id = hi_object_new(object, 0);
  if (!id) return;
  places[nplaces].from = (int64_t)(address - first_thread_pointer);
  places[nplaces].size = size;
  places[nplaces++].object = id;
}

static void place_variable(void *data, struct variable what, uint64_t from, uint64_t to) {
  const struct block *b = data;
  struct hi_object o = {.address = b->file, .size = what.size, .frames = {what.address - b->start}};
  add_place(o, from, to - from);
}

static void add_block(struct block b, const char *path) {
  if (nblocks == MOST_FILES) return;
  blocks[nblocks] = b;
  add_place((struct hi_object){.address = b.file}, b.start, b.size);
  struct elf_file f;
  struct variable *variables = dr_global_alloc(2 * MOST_VARIABLES * sizeof *variables);
  if (elf_open(path, &f)) {
    variables_lay_out(variables, find_variables(&b, &f, variables), place_variable, &blocks[nblocks]);
    elf_close(&f);
  }
  dr_global_free(variables, 2 * MOST_VARIABLES * sizeof *variables);
  nblocks++;
}

static void report_thread(struct hi_local *t) {
  uint64_t a[] = {t->thread_pointer};
  bool created = t->thread_pointer != first_thread_pointer;
  hi_emit(t, HI_EV_THREAD_LOCALS, created, a, 1, NULL);
}

/* Large copies are told one by one, as heap blocks are. */
static void report_copy(struct hi_local *t, uint64_t address, uint64_t size, uint32_t object) {
  uint32_t record = hi_objects.record[object];
  uint64_t a[] = {address, size, record};
  if (hi_run.objects[record].size && size >= hi_run.header->alloc_min) hi_emit(t, HI_EV_ALLOC, 0, a, 3, NULL);
}

/* The places from the `first` one on are in this thread's memory. */
static void enter(struct hi_local *t, uint32_t first) {
  for (uint32_t i = first; i < nplaces; i++) {
    uint64_t address = t->thread_pointer + (uint64_t)places[i].from;
    hi_forget_lines(t, address, places[i].size);
    hi_object_place_beside(address, places[i].size, places[i].object);
    hi_object_allocated(places[i].object, places[i].size);
    report_copy(t, address, places[i].size, places[i].object);
  }
}

/* The thread ends: its memory may become that of another. */
void thread_locals_leave(struct hi_local *t) {
  for (uint32_t i = 0; t->thread_pointer && i < nplaces; i++) {
    hi_object_place_beside(t->thread_pointer + (uint64_t)places[i].from, places[i].size, HI_OBJECT_NONE);
    hi_object_freed(places[i].object, places[i].size);
  }
}

/* Where the block of the program is, below the thread pointer. */
static uint64_t program_block(const Elf64_Phdr *part) {
  uint64_t align = part->p_align ? part->p_align : 1, residue = -(part->p_vaddr & (align - 1)) & (align - 1);
  return hi_aligned(part->p_memsz - residue, align) + residue;
}

/* The first thread has got its thread pointer, before its program begins; musl's linker gives it another for
 * itself before. */
void thread_locals_begin(struct hi_local *t, uint64_t thread_pointer) {
  if (!t->index || t->thread_pointer != first_thread_pointer || !begins_left) return;
  begins_left--;
  thread_locals_leave(t);
  nplaces = nblocks = 0;
  t->shared->thread_pointer = t->thread_pointer = first_thread_pointer = thread_pointer;
  report_thread(t);
  Elf64_Phdr part;
  module_data_t *program = dr_get_main_module();
  if (!program) return;
  uint64_t start = (uint64_t)program->start;
  if (modules_program_header(start, PT_TLS, &part)) {
    struct block b = {start, thread_pointer - program_block(&part), part.p_memsz};
    add_block(b, program->full_path ? program->full_path : "");
    enter(t, 0);
  }
  dr_free_module_data(program);
}

/* The list of files that the dynamic linker keeps for debuggers, of which the first is the program; 0: none. */
static uint64_t first_link(const module_data_t *program) {
  uint64_t list = 0, head, shift = (uint64_t)(program->start - program->preferred_base);
  Elf64_Phdr part;
  if (!modules_program_header((uint64_t)program->start, PT_DYNAMIC, &part)) return 0;
  Elf64_Dyn entry;
  for (uint64_t at = part.p_vaddr + shift, end = at + part.p_memsz; at < end; at += sizeof entry)
    if (dr_safe_read((void *)at, sizeof entry, &entry, NULL) && entry.d_tag == DT_DEBUG) list = entry.d_un.d_ptr;
  bool read = list && dr_safe_read((void *)(list + offsetof(struct r_debug, r_map)), sizeof head, &head, NULL);
  return read ? head : 0;
}

/* Whether a block may begin there. */
static bool fits(uint64_t start, uint64_t size, const struct block *others, uint32_t n) {
  uint64_t end = first_thread_pointer;
  if (start >= end || end - start > FARTHEST || end - start < size) return false;
  for (uint32_t i = 0; i < n; i++)
    if (start < others[i].start + others[i].size && others[i].start < start + size) return false;
  return true;
}

/* Reads from the dynamic thread vector of the first thread where the blocks of libraries are, and the entries of
 * these in the linker's list; returns how many. 0 while it is not filled, or if it is that of another C library.
 * The vector's entries are in the order in which the files were loaded. */
static uint32_t read_vector(struct block *found, struct link_map *links) {
  enum { ENTRY = 16 };
  module_data_t *program = dr_get_main_module();
  uint64_t vector, start, link = program ? first_link(program) : 0;
  if (program) dr_free_module_data(program);
  if (!dr_safe_read((void *)(first_thread_pointer + 8), sizeof vector, &vector, NULL)) return 0;
  vector += nblocks * ENTRY; /* the program's is known */
  uint32_t n = 0;
  struct link_map l = {.l_next = NULL};
  Elf64_Phdr part;
  for (uint32_t i = 0; link && i < MOST_LINKS; link = (uint64_t)l.l_next, i++) {
    if (!dr_safe_read((void *)link, sizeof l, &l, NULL)) return 0;
    if (i == 0 || !modules_program_header(l.l_addr, PT_TLS, &part)) continue;
    if (n == MOST_FILES) break;
    if (!dr_safe_read((void *)(vector += ENTRY), sizeof start, &start, NULL) ||
        !fits(start, part.p_memsz, blocks, nblocks) || !fits(start, part.p_memsz, found, n))
      return 0;
    links[n] = l;
    found[n++] = (struct block){l.l_addr, start, part.p_memsz};
  }
  return n;
}

static void read_path(const char *from, char *to, size_t size) {
  size_t n = 0;
  while (n + 1 < size && dr_safe_read(from + n, 1, to + n, NULL) && to[n]) n++;
  to[n] = 0;
}

/* Call from time to time: the vector is filled after the thread pointer is set, and before there are more threads. */
void thread_locals_poll(struct hi_local *t) {
  if (!polls_left || !t->thread_pointer || t->thread_pointer != first_thread_pointer) return;
  polls_left--;
  struct scratch {
    struct block found[MOST_FILES];
    struct link_map links[MOST_FILES];
    char path[4096];
  } *s = dr_global_alloc(sizeof *s);
  uint32_t n = read_vector(s->found, s->links), first = nplaces;
  for (uint32_t i = 0; i < n; i++) {
    read_path(s->links[i].l_name, s->path, sizeof s->path);
    add_block(s->found[i], s->path);
  }
  dr_global_free(s, sizeof *s);
  if (!n) return;
  if (control_size) add_place((struct hi_object){0}, first_thread_pointer, control_size);
  enter(t, first);
  polls_left = 0;
}

/* DynamoRIO tells that a file is loaded when its code is about to run: its objects may be older. */
void thread_locals_load(uint64_t file) {
  uint32_t generation = __atomic_load_n(&hi_run.processes[hi_run.process].generation, __ATOMIC_SEQ_CST);
  for (uint32_t i = 0; i < nplaces; i++) {
    struct hi_object *o = &hi_run.objects[hi_objects.record[places[i].object]];
    if (o->address == file) __atomic_store_n(&o->generation, generation, __ATOMIC_RELAXED);
  }
}

/* A thread starts. Where its stack is part of a structure of the program's, the variables are too. */
void thread_locals_enter(struct hi_local *t) {
  uint64_t at = t->index ? t->shared->thread_pointer : 0;
  if (!at || !nplaces || (hi_object_at(at) & (HI_PROCESS_OBJECTS - 1)) > HI_OBJECT_FREE) return;
  t->thread_pointer = at;
  report_thread(t);
  enter(t, 0);
}

/* The first thread of a forked process has what the one that forked had. */
void thread_locals_after_fork(struct hi_local *t, uint64_t thread_pointer) {
  if (!t->index || !thread_pointer) return;
  t->shared->thread_pointer = t->thread_pointer = thread_pointer;
  report_thread(t);
}
