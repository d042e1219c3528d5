/* threads.c: a thread's slot and line caches, from its start to its end. */
#include "burst_record.h"
#include "access_sample.h"
#include "line_observation.h"
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define FREE_TRIES 1000 /* x 1 ms; slots are freed a few slices after their threads have ended */

/* An index that is free again; 0: none. */
static uint32_t take_given_back(struct hi_header *h) {
  for (uint32_t word = 0; word < HI_MAX_THREADS / 64; word++) {
    uint64_t bits = __atomic_load_n(&h->given_back[word], __ATOMIC_RELAXED);
    while (bits)
      if (__atomic_compare_exchange_n(&h->given_back[word], &bits, bits & (bits - 1), false, __ATOMIC_ACQ_REL,
                                      __ATOMIC_RELAXED))
        return word * 64 + (uint32_t)__builtin_ctzll(bits);
  }
  return 0;
}

static uint32_t free_index(struct hi_header *h) {
  uint32_t index = take_given_back(h);
  if (index) return index;
  index = __atomic_fetch_add(&h->next_thread, 1, __ATOMIC_SEQ_CST);
  if (index < HI_MAX_THREADS) return index;
  __atomic_store_n(&h->next_thread, HI_MAX_THREADS, __ATOMIC_SEQ_CST);
  return 0;
}

static bool some_have_ended(void) {
  for (uint32_t i = 1; i < HI_MAX_THREADS; i++)
    if (__atomic_load_n(&hi_run.threads[i].state, __ATOMIC_RELAXED) == HI_THREAD_ENDED) return true;
  return false;
}

/* Index for a thread that `t` (NULL: not known) is about to create; 0 when all are in use. The collector
 * frees those of threads that have ended, but is behind when thousands are created at once: then it is
 * waited for. It cannot free those with which `t` may have shared lines, so `t` counts what it has. */
uint32_t hi_thread_reserve(struct hi_local *t) {
  struct hi_header *h = hi_run.header;
  uint32_t index = free_index(h);
  for (int i = 0; !index && i < FREE_TRIES && !h->closed && !(h->flags & HI_FLAG_RECORD) && some_have_ended(); i++) {
    struct timespec ms = {0, 1000000};
    if (t && t->index) hi_catch_up(t);
    nanosleep(&ms, NULL);
    index = free_index(h);
  }
  if (index) hi_run.threads[index].serial = __atomic_fetch_add(&h->next_serial, 1, __ATOMIC_SEQ_CST);
  else __atomic_add_fetch(&h->lost_threads, 1, __ATOMIC_RELAXED);
  return index;
}

/* What is known of the creation of a thread whose index is reserved. */
void hi_thread_created(uint32_t index, struct hi_creation creation) {
  if (!index) return;
  struct hi_thread *s = &hi_run.threads[index];
  s->process = hi_run.process;
  s->created_at = creation.call;
  s->start_routine = creation.start_routine;
  s->thread_pointer = creation.thread_pointer;
}

/* A thread of this process waits until the one with this thread pointer has ended. Of several, which
 * followed one another in the same memory, the last is meant. */
void hi_thread_joined(uint64_t thread_pointer) {
  uint32_t next = __atomic_load_n(&hi_run.header->next_thread, __ATOMIC_ACQUIRE);
  struct hi_thread *last = NULL;
  for (uint32_t i = next < HI_MAX_THREADS ? next : HI_MAX_THREADS; i-- > 1;) {
    struct hi_thread *s = &hi_run.threads[i];
    if (s->thread_pointer != thread_pointer || s->process != hi_run.process) continue;
    if (!last || s->serial > last->serial) last = s;
  }
  if (!last) return;
  __atomic_store_n(&last->joined, __atomic_load_n(&hi_run.header->next_serial, __ATOMIC_ACQUIRE), __ATOMIC_RELAXED);
}

/* The thread that hi_thread_reserve was called for could not be created. */
void hi_thread_give_back(uint32_t index) {
  struct hi_header *h = hi_run.header;
  hi_thread_created(index, (struct hi_creation){0});
  if (index) __atomic_or_fetch(&h->given_back[index / 64], 1ull << (index % 64), __ATOMIC_RELEASE);
  else __atomic_sub_fetch(&h->lost_threads, 1, __ATOMIC_RELAXED);
}

_Static_assert(HI_MAX_THREADS % 64 == 0, "every bit of arena_busy is an arena");

/* Lays out the line caches of arena number `arena` in `memory`, which is zero: so is a new arena, and the
 * last thread of a used one has emptied it. */
void hi_place_caches(struct hi_local *t, void *memory, uint32_t arena) {
  uint64_t entries = (uint64_t)hi_run.index_mask + 1;
  t->index_mask = hi_arena_mask(arena);
  t->entries[0] = (struct hi_entry *)memory + hi_window(t->index_mask);
  t->entries[1] = t->entries[0] + entries;
  struct hi_side *sides = (struct hi_side *)((struct hi_entry *)memory + 2 * entries);
  t->side[0] = sides + hi_window(t->index_mask);
  t->side[1] = t->side[0] + entries;
  t->cached = (uint64_t *)(sides + 2 * entries);
  t->lists = (uint16_t *)(t->cached + (uint64_t)hi_run.fetch_sets * HI_FETCH_WAYS);
  t->left = (struct hi_left_line *)((char *)memory + hi_run.header->left_in_arena);
  t->continued = hi_continued_uses(t->left);
  t->current = t->entries[0];
  t->current_side = t->side[0];
}

/* Makes `t` thread `index`. False when there is no room for its line caches. */
bool hi_thread_start(struct hi_local *t, uint32_t index, int tid, uint32_t creator, uint64_t stack_pointer,
                     uint64_t volatile *base_slot, uint64_t volatile *instructions) {
  memset(t, 0, sizeof *t);
  struct hi_header *h = hi_run.header;
  uint32_t arena = hi_take_bit(h->arena_busy, HI_MAX_THREADS / 64);
  if (arena == HI_NO_BIT) {
    __atomic_add_fetch(&h->lost_threads, 1, __ATOMIC_RELAXED);
    return false;
  }
  hi_place_caches(t, hi_run.arenas + h->arena_size * arena, arena);
  t->index = index;
  t->base_slot = base_slot;
  t->instructions = instructions;
  t->directory = hi_run.directory + (uint64_t)index * (HI_MAX_PAGES / HI_BLOCK_PAGES);
  t->object_counts = hi_run.object_counts + (uint64_t)index * HI_PROCESS_OBJECTS;
  t->object_used = hi_run.object_used + (uint64_t)index * (HI_PROCESS_OBJECTS / HI_OBJECT_GROUP / 64);
  t->epoch = __atomic_load_n(&h->epoch, __ATOMIC_RELAXED);
  t->comm = &hi_run.comm[HI_COMM_ROW(index, t->epoch & 1)];
  t->random = index * 2654435761u + 1;
  t->shared_left = 1 + t->random % HI_SHARED_PERIOD;
  t->fetches_left = 1 + (int32_t)(t->random % HI_SAMPLE_PERIOD);
  hi_observe_slice(t);
  struct hi_thread *s = t->shared = &hi_run.threads[index];
  t->sample_left = 1 + hi_random(t) % HI_SAMPLE_PERIOD;
  t->block_period = HI_BLOCK_PERIOD_SHORT;
  t->string_left = hi_random(t) % (HI_BLOCK_PERIOD_SHORT / HI_STRING_LINES);
  instructions[HI_BLOCK_COUNTER] = -(uint64_t)(1 + hi_random(t) % HI_BLOCK_PERIOD_SHORT);
  t->sample_sums = hi_run.samples + HI_MAX_THREADS * HI_SAMPLES + index * HI_SAMPLE_SUMS;
  memset(t->sample_sums, 0, HI_SAMPLE_SUMS * sizeof *t->sample_sums);
  memset(t->sums_used, 0, sizeof t->sums_used);
  s->process = hi_run.process;
  s->creator = creator;
  s->tid = tid;
  s->start_ns = hi_now();
  s->stack_pointer = stack_pointer;
  s->counter = (uint64_t)instructions;
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
  hi_flush(t); /* in the thread's own slice, where others find what they share with it */
  hi_end_unused_pages(t);
  memset(t->cached, 0, (size_t)hi_run.fetch_sets * HI_FETCH_WAYS * sizeof *t->cached);
  hi_publish_instructions(t);
  __atomic_store_n(&s->epoch, 0, __ATOMIC_RELEASE);
  s->end_ns = hi_now();
  s->ended = __atomic_load_n(&hi_run.header->next_serial, __ATOMIC_ACQUIRE);
  s->owns_arena = 0;
  __atomic_store_n(&s->state, HI_THREAD_ENDED, __ATOMIC_RELEASE);
  hi_give_bit(hi_run.header->arena_busy, s->arena);
}

/* In the child of a fork: its parent's threads do not exist there. */
void hi_threads_forget(void) {
  memset(hi_locals, 0, sizeof hi_locals);
  hi_tick_unlock();
}

/* The process exits or execs while its threads run: publishes the counts that are not in the
 * segment yet. The entries of the line caches remain in the segment, unflushed; the collector
 * counts them. `only`: the one thread that leaves, for a child of vfork; NULL: all. */
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

/* Undoes hi_threads_close after an exec that failed. */
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
