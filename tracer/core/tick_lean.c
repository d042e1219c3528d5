/* tick_lean.c: the change of slice. The collector advances the epoch; the first thread
 * of a process that notices (at a miss) flips the base of every thread of the process to
 * its other line cache. A hit therefore pays nothing for slices, and a thread that only
 * hits is moved on too: its next access misses in the empty cache. */
#include "state.h"

struct hi_local *hi_locals[HI_MAX_THREADS]; /* threads of this process, by index */
static uint32_t lock;

void hi_tick_lock(void) {
  while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE)) __builtin_ia32_pause();
}

void hi_tick_unlock(void) { __atomic_store_n(&lock, 0, __ATOMIC_RELEASE); }

static void turn(struct hi_local *t) {
  *t->base_slot = (uint64_t)(t->current == t->entries[0] ? t->entries[1] : t->entries[0]);
}

static void flip(struct hi_local *t) {
  if (__atomic_exchange_n(&t->shared->flipped, 1, __ATOMIC_ACQ_REL)) return; /* still busy with the last flip */
  turn(t);
}

/* Moves this process' threads on within a slice: tracing was switched. */
void hi_flip_all(void) {
  hi_tick_lock();
  for (uint32_t i = 1; i < HI_MAX_THREADS; i++)
    if (hi_locals[i]) flip(hi_locals[i]);
  hi_tick_unlock();
}

/* Moves on the threads of this process that are in an older slice, and this one though
 * others do so now: they may wait for a processor in the middle of it, and whoever was busy
 * with a flip was left out. A flip that comes twice so costs a thread its line cache once. */
void hi_tick(struct hi_local *t, uint32_t epoch) {
  if (!__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE)) {
    uint32_t threads = __atomic_load_n(&hi_run.header->next_thread, __ATOMIC_RELAXED);
    for (uint32_t i = 1; i < threads && i < HI_MAX_THREADS; i++)
      if (hi_locals[i] && hi_locals[i]->shared->epoch != epoch) flip(hi_locals[i]);
    hi_tick_unlock();
  }
  if ((uint64_t)t->current == *t->base_slot) turn(t);
}
