/* state.h: the state of one traced process and its threads. Nothing in core/ depends on how
 * accesses are intercepted (by DynamoRIO today): dynamorio/ calls core/, never the other way
 * round.
 *
 * Lean code (files named *_lean.c) is called with only the general registers saved: it is
 * compiled without vector registers, allocates nothing, takes no lock that a descheduled
 * thread could hold for long, and makes no system call except to read clocks for recording. */
#ifndef HITHER_STATE_H
#define HITHER_STATE_H
#include "wire.h"
#include <stdbool.h>
#include <stddef.h>

#define HI_LIKELY(x) __builtin_expect(!!(x), 1)
#define HI_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define HI_ADDRESS_MASK ((1ull << 47) - 1)
#define HI_FOLD 10                               /* see hi_index */
#define HI_COUNT_RECORDING (1ull << 63)          /* flag in the first instruction counter, see hi_record_enable */
#define HI_HASH_MULTIPLIER 0x9e3779b97f4a7c15ull /* 2^64 / golden ratio: Fibonacci hashing */
#define HI_RED_ZONE 128                          /* below the stack pointer: the program may use it */
#define HI_STUB_STACK (HI_RED_ZONE + 8)          /* what a call of core takes of the program's stack */
#define HI_NO_BIT (~0u)
#define HI_LIST_HASHES 64u
#define HI_CONTENDED_LOG2 6u
#define HI_LARGE_CACHES 64u /* arenas with line caches of full size, see hi_arena_mask */
#define HI_PAGE_SHIFT 12
#define HI_PAGE_SPLIT (1u << 31) /* beside a page id in the page map, see page_users.h */
#define HI_PAGE_BYTES 4096ull

/* The segment as mapped in this process, and the process' own part of it. */
struct hi_run {
  struct hi_header *header;
  struct hi_thread *threads;
  struct hi_process *processes;
  struct hi_hook *hooks;
  struct hi_site *sites;
  struct hi_event *events;
  struct hi_sample *samples;
  struct hi_observation *observations;
  uint32_t *directory;
  struct hi_comm *comm;
  struct hi_page *pages;
  struct hi_chunk *chunks;
  struct hi_alias *aliases;
  struct hi_owner *owners;
  uint8_t *dirty;
  struct hi_block *blocks;
  struct hi_page_users *page_users;
  uint64_t *shadow;
  char *arenas;
  struct hi_record_block *record_blocks;
  char *record_bytes;
  struct hi_piece *pieces;
  struct hi_object *objects;
  struct hi_object_count *object_counts;
  uint64_t *object_used;
  uint64_t *ended;
  uint32_t *free_groups;
  uint64_t *site_words;
  struct hi_user_node *user_nodes;
  struct hi_line_use *user_counts; /* NULL without HI_FLAG_ORACLE */
  struct hi_entry *nothing; /* a line cache that stays empty, private and below 2 GiB; NULL: no block is sampled */
  void *substitute;         /* private memory of the segment's size, see hi_detach */
  uint64_t size;
  uint32_t *pagemap; /* page number -> page id, or id | HI_PAGE_SPLIT; private to the process, wiped on fork */
  uint64_t *mapped;  /* a bit for each extent of page numbers of which one has had an id; as private */
  uint64_t stack_top, stack_limit; /* of the main stack, which grows down to the limit; 0: not known */
  uint32_t line_log2;
  uint32_t index_mask; /* entries in the largest line cache - 1 */
  uint32_t fetch_sets;
  uint32_t process; /* ordinal of this process, 0: not traced */
};
extern struct hi_run hi_run;

/* The state of one thread. */
struct hi_local {
  struct hi_entry *current; /* the line cache in use... */
  struct hi_side *current_side;
  uint64_t volatile *base_slot; /* ...and where inline code reads its address; other threads may flip it */
  struct hi_comm *comm;         /* its comm row for the parity of the current slice */
  uint32_t *directory;
  struct hi_thread *shared;
  struct hi_object_count *object_counts; /* by the id in this process */
  uint64_t *object_used;
  /* Return address of the last call by which the thread left the program's own files, 0: none. */
  uint64_t volatile *program_call;
  /* Of the program, where core was called: its stack pointer, less HI_STUB_STACK, and its frame pointer. */
  uint64_t volatile *stack_pointer, *frame_pointer;
  uint64_t thread_pointer; /* beside which its thread-local variables are; 0: not known to the object map */
  uint32_t index, epoch;
  uint32_t index_mask;  /* entries in its line caches - 1 */
  uint32_t child_index; /* thread index reserved for the child of the fork in progress */
  uint32_t only_depth;  /* calls of --only-functions functions that have not returned */
  uint32_t sample_left; /* with HI_FLAG_ORACLE: accesses until the next that is sampled */
  /* See access_sample.h. In instructions: the mean time between sampled blocks, those that this one stands for, its
   * own, and how many the thread had executed when it began; accesses that it had, and which of them is kept. */
  uint32_t block_period, block_seen;
  uint64_t block_weight, block_size, block_begin;
  struct hi_sample block_sample;
  uint64_t string_left; /* lines of string instructions until one is drawn */
  uint32_t random;
  struct hi_sample *sample_sums; /* in the segment, see hi_sum_sample */
  uint64_t sums_used[HI_SAMPLE_SUMS / 64];
  int64_t shared_left;          /* accesses to shared lines until some are reported, see line_observation.h */
  uint32_t observations_left;   /* budget of line observations for this slice */
  uint32_t next_page, page_end; /* page ids that are reserved and not used yet */
  struct hi_entry *entries[2];
  struct hi_side *side[2];
  /* Lists of side records, see line_users.h; the end of the last, and where those with a hash are */
  uint16_t *lists;
  uint32_t lists_end;
  uint16_t list_at[HI_LIST_HASHES];
  struct hi_left_line *left;
  struct hi_line_use *continued; /* see hi_side; those in use are up to the end */
  uint32_t continued_end;
  struct hi_recorder *recorder; /* NULL unless HI_FLAG_RECORD */
  /* Four counters in thread-local storage: instructions, with HI_FLAG_SAMPLE the accesses of traced and of
   * untraced copies of blocks, and when a block is to be sampled: instructions until then, which is negative, afterwards
   * HI_BLOCK_UNIT times those of its block, and those that were counted since. */
  uint64_t volatile *instructions;
#define HI_BLOCK_COUNTER 3       /* the last of them */
#define HI_NO_BLOCK (1ull << 63) /* none ever is */
#define HI_BLOCK_UNIT (1u << 16)
  /* Lines with their versions, see private_cache.h: in the private cache, and contended ones by hash */
  uint64_t *cached, contended[1u << HI_CONTENDED_LOG2];
  int32_t fetches_left; /* until the next that is sampled */
};

static inline uint32_t hi_side_page(const struct hi_side *s) { return s->line & ((1u << HI_SIDE_SITE) - 1); }
static inline uint32_t hi_side_site(const struct hi_side *s) {
  return (uint32_t)(s->line >> HI_SIDE_SITE) & ((1u << (HI_SIDE_OBJECT - HI_SIDE_SITE)) - 1);
}
static inline uint32_t hi_side_object(const struct hi_side *s) { return (uint32_t)(s->line >> HI_SIDE_OBJECT); }

/* Reads in the low half, writes in the high half. */
typedef uint64_t hi_counts;
#define HI_READS(c) ((uint32_t)(c))
#define HI_WRITES(c) ((uint32_t)((c) >> 32))

static inline uint64_t hi_line_of(uint64_t address) { return address & ~((1ull << hi_run.line_log2) - 1); }

/* Index of a line in a line cache of that many entries, less one. Neighbouring lines have neighbouring entries.
 * The bits just above the index are folded into it, so that arrays a power of two apart do not conflict.
 * dynamorio/probe.c computes the same inline. */
static inline uint64_t hi_index_of(uint32_t mask, uint64_t line) {
  return ((line ^ line >> HI_FOLD) >> hi_run.line_log2) & mask;
}

static inline uint64_t hi_index(const struct hi_local *t, uint64_t line) { return hi_index_of(t->index_mask, line); }

/* Entries of a line cache in this arena, less one. The arenas with the lowest numbers are taken first: the first
 * HI_LARGE_CACHES threads that live at the same time have full ones, as many more have half of that, twice as many
 * more a quarter, and so on, so that those that each doubling adds take together as much memory as the first. */
static inline uint32_t hi_arena_mask(uint32_t arena) {
  uint32_t mask = hi_run.index_mask;
  for (uint32_t n = arena / HI_LARGE_CACHES; n && mask >= 2 * HI_GROUP - 1; n /= 2) mask /= 2;
  return mask;
}

/* The next multiple of a power of two. */
static inline uint64_t hi_aligned(uint64_t address, uint64_t to) { return (address + to - 1) & ~(to - 1); }

/* Bytes of the largest line cache, to which the memory of each is aligned. */
static inline uint64_t hi_cache_bytes(void) { return ((uint64_t)hi_run.index_mask + 1) * sizeof(struct hi_entry); }

/* Where in the memory for the largest line cache a smaller one begins: it is the end of it. The memory is aligned to
 * its size, so that this is an `or` of bits, by which inline code with one mask for all threads finds entries. */
static inline uint64_t hi_window(uint32_t mask) { return hi_run.index_mask - mask; }

/* Of an entry of the page map. */
static inline uint32_t hi_page_id(uint32_t mapped) { return mapped & (HI_PAGE_SPLIT - 1); }

static inline uint64_t *hi_shadow_word(uint32_t page, uint64_t address) {
  uint32_t lines_log2 = HI_PAGE_SHIFT - hi_run.line_log2;
  uint64_t line = (address & (HI_PAGE_BYTES - 1)) >> hi_run.line_log2;
  return &hi_run.shadow[((uint64_t)page << lines_log2) + line];
}

/* The set of the private cache in which a line is. */
static inline uint64_t *hi_cache_set(const struct hi_local *t, uint64_t line) {
  uint64_t group = line >> (hi_run.line_log2 + HI_FETCH_PERIOD_LOG2);
  return &t->cached[group % hi_run.fetch_sets * HI_FETCH_WAYS];
}

/* Whether this thread's accesses count now. Those of an untraced thread (index 0) never do. */
static inline bool hi_counting(const struct hi_local *t) {
  return t->index && (hi_run.header->active || t->only_depth) && !hi_run.header->closed;
}

static inline void hi_publish_instructions(struct hi_local *t) {
  t->shared->instructions = t->instructions[0] & ~HI_COUNT_RECORDING;
  t->shared->traced_accesses = t->instructions[1];
  t->shared->untraced_accesses = t->instructions[2];
}

static inline uint32_t hi_random(struct hi_local *t) {
  t->random = t->random * 1664525u + 1013904223u; /* Numerical Recipes' linear congruential generator */
  return t->random >> 16;
}

static inline void hi_spin_lock(uint32_t *lock) {
  while (__atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE)) __builtin_ia32_pause();
}

static inline void hi_spin_unlock(uint32_t *lock) { __atomic_store_n(lock, 0, __ATOMIC_RELEASE); }

/* Sets the first clear bit of a bitmap of the segment; returns its number, or HI_NO_BIT. */
static inline uint32_t hi_take_bit(uint64_t *bitmap, uint32_t words) {
  for (uint32_t word = 0; word < words; word++) {
    uint64_t bits = __atomic_load_n(&bitmap[word], __ATOMIC_RELAXED);
    while (~bits) {
      uint32_t bit = (uint32_t)__builtin_ctzll(~bits);
      if (__atomic_compare_exchange_n(&bitmap[word], &bits, bits | 1ull << bit, false, __ATOMIC_ACQ_REL,
                                      __ATOMIC_RELAXED))
        return word * 64 + bit;
    }
  }
  return HI_NO_BIT;
}

static inline void hi_give_bit(uint64_t *bitmap, uint32_t bit) {
  __atomic_and_fetch(&bitmap[bit / 64], ~(1ull << (bit % 64)), __ATOMIC_RELEASE);
}

/* segment.c */
bool hi_attach(const char *path);
bool hi_detach(void);
void *hi_reserve(uint64_t bytes);

/* process.c */
bool hi_process_start(int pid, int parent_pid, uint32_t parent, bool forked, const char *executable, uint64_t stack_top,
                      uint64_t stack_limit);
void hi_process_end(uint32_t state);
void hi_process_wipe_map(void);
uint64_t hi_now(void);

/* threads.c */
uint32_t hi_thread_reserve(struct hi_local *t);
void hi_thread_give_back(uint32_t index);
struct hi_creation {
  uint64_t call, start_routine, thread_pointer; /* see hi_thread */
};
void hi_thread_created(uint32_t index, struct hi_creation creation);
void hi_thread_joined(uint64_t thread_pointer);
void hi_place_caches(struct hi_local *t, void *memory, uint32_t arena);
bool hi_thread_start(struct hi_local *t, uint32_t index, int tid, uint32_t creator, uint64_t stack_pointer,
                     uint64_t volatile *base_slot, uint64_t volatile *instructions);
void hi_thread_end(struct hi_local *t);
void hi_threads_forget(void);
void hi_threads_close(const struct hi_local *only);
void hi_threads_reopen(const struct hi_local *only);
void hi_thread_name(struct hi_local *t, const char *name);

/* sites_lean.c */
uint32_t hi_site_new(struct hi_site site);
uint32_t hi_site_called(const struct hi_local *t, uint32_t code);

/* The site that an access counts for. `passed`: what its probe passed. */
static inline uint32_t hi_site_of(const struct hi_local *t, uint32_t passed) {
  uint32_t site = passed & ~HI_SITE_FLAGS;
  return HI_UNLIKELY(passed & HI_SITE_LIBRARY) ? hi_site_called(t, site) : site;
}

/* access_window_lean.c */
struct hi_window_access {
  int16_t after;  /* bytes of code from the window's first access to this one */
  uint8_t offset; /* from the lowest address of the window */
  bool write : 1, last : 1;
};
struct hi_drawn {
  uint32_t site;
  int16_t after;
  hi_counts counts;
};
void hi_window_new(uint32_t site, const struct hi_window_access *window, uint32_t n);
struct hi_drawn hi_window_draw(struct hi_local *t, uint64_t address, hi_counts counts, uint32_t passed);

/* touch_path_lean.c */
#define HI_CODE_RANGES 4096
struct hi_code_range {
  uint64_t start, end;
  uint64_t base, file; /* where the file lies, and what tells it from other files and versions; 0: not known */
  /* .eh_frame_hdr, 0: none; and the segment that it is in, all of which may be read */
  uint64_t unwind_tables, tables_start, tables_end;
};
extern struct hi_code_range hi_code_ranges[HI_CODE_RANGES]; /* code of files that are loaded, up to a start of 0 */
uint32_t hi_touch_path(const struct hi_local *t, uint32_t site);

/* unwind_lean.c: who called a function */
struct hi_frame {
  uint64_t pc, sp, fp; /* after the call that the function made has returned */
  bool knows_fp;
};
enum hi_unwound { HI_UNWIND_CALLER, HI_UNWIND_OUTERMOST, HI_UNWIND_UNKNOWN };
/* Reads a word of the stack; false if it may not be read. */
typedef bool hi_read_word(const void *stack, uint64_t address, uint64_t *word);
/* Makes a frame its caller. */
enum hi_unwound hi_unwind(struct hi_frame *frame, hi_read_word *read, const void *stack);

/* callers_lean.c */
struct hi_stack {
  hi_read_word *read;
  const void *of;      /* for read */
  uint64_t search_end; /* return addresses are looked for below it where there are no tables */
};
bool hi_follows_call(uint64_t pc);
void hi_find_callers(struct hi_frame f, const struct hi_stack *s, uint32_t most, uint64_t *pc, uint16_t *at);

/* cache_lean.c */
void hi_miss(struct hi_local *t, uint64_t address, hi_counts counts, uint32_t site);
void hi_flush(struct hi_local *t);
void hi_switch(struct hi_local *t);
void hi_catch_up(struct hi_local *t);
void hi_forget_page(struct hi_local *t, uint64_t page);
void hi_forget_lines(struct hi_local *t, uint64_t address, uint64_t bytes);
void hi_add_counts(struct hi_local *t, uint32_t page, uint32_t reads, uint32_t writes);
/* Of this process, by hash. uses: accesses of a thread in a slice, at most. */
extern struct hi_contended_line { uint64_t line, writes; } hi_contended_lines[1u << HI_CONTENDED_LOG2];
void hi_add_fetches(struct hi_local *t, uint32_t page, uint32_t fetches);
void hi_range(struct hi_local *t, uint64_t address, uint64_t bytes, bool write, uint32_t site);
void hi_string(struct hi_local *t, uint64_t address, uint64_t bytes, bool write, uint32_t site);

/* tick_lean.c */
extern struct hi_local *hi_locals[HI_MAX_THREADS];
void hi_tick(struct hi_local *t, uint32_t epoch);
void hi_flip_all(void);
void hi_tick_lock(void);
void hi_tick_unlock(void);

/* pages_lean.c */
uint32_t hi_new_page(struct hi_local *t, uint64_t page, uint32_t site);
struct hi_count *hi_new_block(struct hi_local *t, uint32_t page);
void hi_end_page(uint32_t page);
void hi_end_unused_pages(struct hi_local *t);
uint64_t hi_alias_of(uint32_t process, uint32_t chunk);

/* Programs reserve terabytes and touch little of them: entries of the page map where no page has an id are neither read
 * nor written, which takes time for each, and memory. An extent is as many entries as lie on a page. */
#define HI_EXTENT_SHIFT 10u

/* Call before a page gets its id. */
static inline void hi_mark_mapped(uint64_t page) {
  uint64_t extent = page >> HI_EXTENT_SHIFT, bit = 1ull << (extent % 64), *word = &hi_run.mapped[extent / 64];
  if (!(__atomic_load_n(word, __ATOMIC_RELAXED) & bit)) __atomic_or_fetch(word, bit, __ATOMIC_RELAXED);
}

/* The first page number from `page` on that is in such an extent; `end` if none is before that. */
static inline uint64_t hi_next_mapped(uint64_t page, uint64_t end) {
  while (page < end) {
    uint64_t extent = page >> HI_EXTENT_SHIFT;
    uint64_t left = __atomic_load_n(&hi_run.mapped[extent / 64], __ATOMIC_RELAXED) >> (extent % 64);
    if (left & 1) return page;
    page = (extent + (left ? (uint64_t)__builtin_ctzll(left) : 64 - extent % 64)) << HI_EXTENT_SHIFT;
  }
  return end;
}

/* Where its extent ends, or `end`. */
static inline uint64_t hi_extent_end(uint64_t page, uint64_t end) {
  uint64_t next = ((page >> HI_EXTENT_SHIFT) + 1) << HI_EXTENT_SHIFT;
  return next < end ? next : end;
}

/* The entry of the page map for an address. */
static inline uint32_t hi_page_of(struct hi_local *t, uint64_t address, uint32_t site) {
  uint32_t id = __atomic_load_n(&hi_run.pagemap[address >> HI_PAGE_SHIFT], __ATOMIC_RELAXED);
  return HI_LIKELY(id) ? id : hi_new_page(t, address >> HI_PAGE_SHIFT, site);
}

/* shared_lean.c: mappings of this process that other processes may share */
struct hi_shared_map {
  uint64_t page, pages, dev, ino, first;
};
void hi_shared_add(struct hi_shared_map map);
void hi_shared_remove(uint64_t page, uint64_t pages);
bool hi_shared_find(uint64_t page, struct hi_shared_map *out);
void hi_unmap_pages(struct hi_local *t, uint64_t address, uint64_t length);
void hi_move_pages(struct hi_local *t, uint64_t from, uint64_t to, uint64_t pages);

/* events.c */
void hi_emit(struct hi_local *t, uint8_t kind, uint16_t aux, const uint64_t *a, int n, const char *text);
uint32_t hi_bump_generation(void);

/* oracle_lean.c */
void hi_oracle_access(struct hi_local *t, uint64_t address, bool write, uint32_t site);
#endif
