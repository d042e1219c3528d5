/* threads.c: a thread's slot and its line caches, from birth to end. */
#include "record.h"
#include "reveal.h"
#include <string.h>
#include <sys/mman.h>

#define NO_ARENA (~0u)

/* Index for a thread that is about to be created; 0 when the run has too many. */
uint32_t hi_thread_reserve(void) {
  struct hi_header *h = hi_run.header;
  uint32_t index = __atomic_fetch_add(&h->next_thread, 1, __ATOMIC_SEQ_CST);
  if (index < HI_MAX_THREADS) return index;
  __atomic_store_n(&h->next_thread, HI_MAX_THREADS, __ATOMIC_SEQ_CST);
  __atomic_add_fetch(&h->lost_threads, 1, __ATOMIC_RELAXED);
  return 0;
}

static uint32_t take_arena(void) {
  uint64_t *busy = hi_run.header->arena_busy;
  for (uint32_t word = 0; word < (HI_MAX_THREADS + 63) / 64; word++) {
    uint64_t bits = __atomic_load_n(&busy[word], __ATOMIC_RELAXED);
    while (~bits) {
      uint32_t bit = (uint32_t)__builtin_ctzll(~bits);
      if (word * 64 + bit >= HI_MAX_THREADS) return NO_ARENA;
      if (__atomic_compare_exchange_n(&busy[word], &bits, bits | 1ull << bit, false, __ATOMIC_ACQ_REL,
                                      __ATOMIC_RELAXED))
        return word * 64 + bit;
    }
  }
  return NO_ARENA;
}

static void give_arena(uint32_t arena) {
  __atomic_and_fetch(&hi_run.header->arena_busy[arena / 64], ~(1ull << (arena % 64)), __ATOMIC_RELEASE);
}

/* The caches of a new arena are zero, those of a used one were emptied by its thread. */
static void place_caches(struct hi_local *t, uint32_t arena) {
  uint64_t entries = (uint64_t)hi_run.index_mask + 1;
  char *base = hi_run.arenas + hi_run.header->arena_size * arena;
  t->entries[0] = (struct hi_entry *)base;
  t->entries[1] = t->entries[0] + entries;
  t->side[0] = (struct hi_side *)(t->entries[1] + entries);
  t->side[1] = t->side[0] + entries;
  t->current = t->entries[0];
  t->current_side = t->side[0];
}

/* Makes `t` thread `index`. False when there is no room for its line caches. */
bool hi_thread_start(struct hi_local *t, uint32_t index, int tid, uint32_t creator, uint64_t stack_pointer,
                     uint64_t volatile *base_slot, uint64_t volatile *instructions) {
  memset(t, 0, sizeof *t);
  uint32_t arena = take_arena();
  if (arena == NO_ARENA) {
    __atomic_add_fetch(&hi_run.header->lost_threads, 1, __ATOMIC_RELAXED);
    return false;
  }
  place_caches(t, arena);
  t->index = index;
  t->base_slot = base_slot;
  t->instructions = instructions;
  t->directory = hi_run.directory + (uint64_t)index * (HI_MAX_PAGES / HI_BLOCK_PAGES);
  t->epoch = __atomic_load_n(&hi_run.header->epoch, __ATOMIC_RELAXED);
  t->comm = &hi_run.comm[HI_COMM_ROW(index, t->epoch & 1)];
  t->random = index * 2654435761u + 1;
  t->sample_left = 1 + t->random % HI_SAMPLE_PERIOD;
  t->shared_left = 1 + t->random % HI_SHARED_PERIOD;
  hi_reveal_slice(t);
  struct hi_thread *s = t->shared = &hi_run.threads[index];
  s->process = hi_run.process;
  s->creator = creator;
  s->tid = tid;
  s->start_ns = hi_now();
  s->stack_pointer = stack_pointer;
  s->arena = arena;
  s->cache = 0;
  s->owns_arena = 1;
  instructions[0] = instructions[1] = instructions[2] = 0;
  *base_slot = (uint64_t)t->current;
  __atomic_store_n(&s->epoch, t->epoch, __ATOMIC_RELEASE);
  __atomic_store_n(&s->state, HI_THREAD_LIVE, __ATOMIC_RELEASE);
  hi_tick_lock();
  hi_locals[index] = t;
  hi_tick_unlock();
  return true;
}

/* Flushes both line caches and gives them back. */
void hi_thread_end(struct hi_local *t) {
  hi_tick_lock();
  hi_locals[t->index] = NULL;
  hi_tick_unlock();
  struct hi_thread *s = t->shared;
  hi_record_end(t);
  hi_switch(t); /* flushes the old cache if another thread flipped us */
  hi_flush(t);
  hi_publish_instructions(t);
  __atomic_store_n(&s->epoch, 0, __ATOMIC_RELEASE);
  s->end_ns = hi_now();
  s->owns_arena = 0;
  __atomic_store_n(&s->state, HI_THREAD_ENDED, __ATOMIC_RELEASE);
  give_arena(s->arena);
}

/* After a fork the child has none of its parent's threads. */
void hi_threads_forget(void) {
  memset(hi_locals, 0, sizeof hi_locals);
  hi_tick_unlock();
}

/* The process is leaving with threads running: publish what only they knew. Their line
 * caches stay behind in the segment, where the collector empties them. `only`: nobody but
 * that thread leaves, a child of vfork. NULL: all. */
void hi_threads_close(const struct hi_local *only) {
  hi_tick_lock();
  uint64_t now = hi_now();
  for (uint32_t i = 1; i < HI_MAX_THREADS; i++)
    if (hi_locals[i] && (!only || hi_locals[i] == only)) {
      hi_publish_instructions(hi_locals[i]);
      hi_record_close(hi_locals[i]);
      hi_locals[i]->shared->end_ns = now;
    }
  hi_tick_unlock();
}

/* They stay after all. */
void hi_threads_reopen(const struct hi_local *only) {
  hi_tick_lock();
  for (uint32_t i = 1; i < HI_MAX_THREADS; i++)
    if (hi_locals[i] && (!only || hi_locals[i] == only)) {
      hi_record_reopen(hi_locals[i]);
      hi_locals[i]->shared->end_ns = 0;
    }
  hi_tick_unlock();
}

void hi_thread_name(struct hi_local *t, const char *name) {
  char *to = t->shared->name;
  size_t n = strnlen(name, sizeof t->shared->name - 1);
  memcpy(to, name, n);
  memset(to + n, 0, sizeof t->shared->name - n);
}
