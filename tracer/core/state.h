/* state.h: what one traced process knows. Nothing here depends on how accesses are
 * caught (DynamoRIO today); dynamorio/ calls into core/, never the other way round.
 *
 * Lean code (files named *_lean.c) is reached from code that saved only the general
 * registers: it is compiled without vector registers, allocates nothing, takes no lock
 * that a descheduled thread could hold for long, and makes no system call except where
 * a page is seen for the first time. */
#ifndef HITHER_STATE_H
#define HITHER_STATE_H
#include "wire.h"
#include <stdbool.h>
#include <stddef.h>

#define HI_LIKELY(x) __builtin_expect(!!(x), 1)
#define HI_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define HI_ADDRESS_MASK ((1ull << 47) - 1)
#define HI_FOLD 10                      /* see hi_index */
#define HI_COUNT_RECORDING (1ull << 63) /* in the first counter of instructions, see hi_record_turn */
#define HI_PAGE_SHIFT 12
#define HI_PAGE_BYTES 4096ull

/* The segment, seen from this process, and this process' part in it. */
struct hi_run {
  struct hi_header *header;
  struct hi_thread *threads;
  struct hi_process *processes;
  struct hi_hook *hooks;
  struct hi_site *sites;
  struct hi_event *events;
  struct hi_sample *samples;
  struct hi_seen *seen;
  uint32_t *directory;
  uint64_t *comm;
  struct hi_page *pages;
  struct hi_chunk *chunks;
  struct hi_alias *aliases;
  struct hi_owner *owners;
  uint8_t *dirty;
  struct hi_block *blocks;
  uint64_t *shadow;
  char *arenas;
  struct hi_record_block *record_blocks;
  char *record_bytes;
  struct hi_piece *pieces;
  uint32_t *pagemap; /* page number -> page id; private to the process, wiped on fork */
  uint32_t line_log2;
  uint32_t index_mask; /* entries in a line cache - 1 */
  uint32_t process;    /* ordinal of this process, 0: not traced */
};
extern struct hi_run hi_run;

/* What a thread knows of itself. */
struct hi_local {
  struct hi_entry *current; /* the line cache that counts now... */
  struct hi_side *current_side;
  uint64_t volatile *base_slot; /* ...and where inline code finds it; another thread may flip it */
  uint64_t *comm;               /* row of the current slice's parity */
  uint32_t *directory;
  struct hi_thread *shared;
  uint32_t index, epoch;
  uint32_t child_index; /* reserved for the child of the fork in progress */
  uint32_t only_depth;  /* functions of --only-functions it is inside of */
  uint32_t sample_left;
  uint32_t random;
  int64_t shared_left;          /* accesses to shared lines until one is kept, see reveal.h */
  uint32_t reveals_left;        /* in this slice */
  uint32_t next_page, page_end; /* page ids reserved and not used yet */
  struct hi_entry *entries[2];
  struct hi_side *side[2];
  struct hi_recorder *recorder; /* NULL unless HI_FLAG_RECORD */
  uint64_t volatile
      *instructions; /* three counters in thread-local storage: blocks that exist once; traced; not traced */
};

/* Reads in the low half, writes in the high half. */
typedef uint64_t hi_counts;
#define HI_READS(c) ((uint32_t)(c))
#define HI_WRITES(c) ((uint32_t)((c) >> 32))

static inline uint64_t hi_line_of(uint64_t address) { return address & ~((1ull << hi_run.line_log2) - 1); }

/* Where a line lives in a line cache. Neighbouring lines are neighbours there too, but
 * arrays a power of two apart are not stacked on one another: the bits just above the
 * index are folded into it. probe.c computes the same inline. */
static inline uint64_t hi_index(uint64_t line) {
  return ((line ^ line >> HI_FOLD) >> hi_run.line_log2) & hi_run.index_mask;
}

static inline uint64_t *hi_shadow_word(uint32_t page, uint64_t address) {
  uint32_t lines_log2 = HI_PAGE_SHIFT - hi_run.line_log2;
  uint64_t line = (address & (HI_PAGE_BYTES - 1)) >> hi_run.line_log2;
  return &hi_run.shadow[((uint64_t)page << lines_log2) + line];
}

/* May this thread's accesses count now? Those of a mute thread, whose index is 0, never do. */
static inline bool hi_counting(const struct hi_local *t) {
  return t->index && (hi_run.header->active || t->only_depth) && !hi_run.header->closed;
}

static inline void hi_publish_instructions(struct hi_local *t) {
  t->shared->instructions = (t->instructions[0] & ~HI_COUNT_RECORDING) + t->instructions[1] + t->instructions[2];
  t->shared->traced_instructions = t->instructions[1];
  t->shared->untraced_instructions = t->instructions[2];
}

/* segment.c */
bool hi_attach(const char *path);

/* process.c */
bool hi_process_start(int pid, int parent_pid, uint32_t parent, bool forked, const char *executable, uint64_t stack_top,
                      uint64_t stack_limit);
void hi_process_end(uint32_t state);
void hi_process_wipe_map(void);
uint64_t hi_now(void);

/* threads.c */
uint32_t hi_thread_reserve(void);
bool hi_thread_start(struct hi_local *t, uint32_t index, int tid, uint32_t creator, uint64_t stack_pointer,
                     uint64_t volatile *base_slot, uint64_t volatile *instructions);
void hi_thread_end(struct hi_local *t);
void hi_threads_forget(void);
void hi_threads_close(const struct hi_local *only);
void hi_threads_reopen(const struct hi_local *only);
void hi_thread_name(struct hi_local *t, const char *name);

/* cache_lean.c */
void hi_miss(struct hi_local *t, uint64_t address, hi_counts counts, uint32_t site);
void hi_flush(struct hi_local *t);
void hi_switch(struct hi_local *t);
void hi_forget_page(struct hi_local *t, uint64_t page);
void hi_add_counts(struct hi_local *t, uint32_t page, uint32_t reads, uint32_t writes);
void hi_range(struct hi_local *t, uint64_t address, uint64_t bytes, bool write, uint32_t site);

/* tick_lean.c */
extern struct hi_local *hi_locals[HI_MAX_THREADS];
void hi_tick(struct hi_local *t, uint32_t epoch);
void hi_flip_all(void);
void hi_tick_lock(void);
void hi_tick_unlock(void);

/* pages_lean.c */
uint32_t hi_new_page(struct hi_local *t, uint64_t page);
struct hi_count *hi_new_block(struct hi_local *t, uint32_t page);
uint64_t hi_alias_of(uint32_t process, uint32_t chunk);

static inline uint32_t hi_page_of(struct hi_local *t, uint64_t address) {
  uint32_t id = __atomic_load_n(&hi_run.pagemap[address >> HI_PAGE_SHIFT], __ATOMIC_RELAXED);
  return HI_LIKELY(id) ? id : hi_new_page(t, address >> HI_PAGE_SHIFT);
}

/* shared_lean.c: the mappings of this process that other processes may share */
struct hi_shared_map {
  uint64_t page, pages, dev, ino, first;
};
void hi_shared_add(struct hi_shared_map map);
void hi_shared_remove(uint64_t page, uint64_t pages);
bool hi_shared_find(uint64_t page, struct hi_shared_map *out);
void hi_unmap_pages(struct hi_local *t, uint64_t address, uint64_t length);

/* events.c */
void hi_emit(struct hi_local *t, uint8_t kind, uint16_t aux, const uint64_t *a, int n, const char *text);
uint32_t hi_bump_generation(void);

/* oracle_lean.c */
void hi_oracle_access(struct hi_local *t, uint64_t address, bool write, uint32_t site);
#endif
