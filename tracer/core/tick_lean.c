/* tick_lean.c: the change of slice. The collector advances the epoch; the first thread
 * of a process that notices (at a miss) flips the base of every thread of the process to
 * its other line cache. A hit therefore pays nothing for slices, and a thread that only
 * hits is moved on too: its next access misses in the empty cache. */
#include "state.h"

struct hi_local *hi_locals[HI_MAX_THREADS]; /* threads of this process, by index */
static uint32_t lock, seen_epoch;

void hi_tick_lock(void) {
  while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE)) __builtin_ia32_pause();
}

void hi_tick_unlock(void) { __atomic_store_n(&lock, 0, __ATOMIC_RELEASE); }

static void flip(struct hi_local *t) {
  if (__atomic_load_n(&t->shared->flipped, __ATOMIC_ACQUIRE)) return; /* still busy with the last flip */
  t->shared->flipped = 1;
  *t->base_slot = (uint64_t)(t->current == t->entries[0] ? t->entries[1] : t->entries[0]);
}

/* Moves this process' threads on; `force`: also within a slice (tracing was switched). */
void hi_tick(uint32_t epoch, bool force) {
  if (force) hi_tick_lock();
  else if (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE)) return;
  if (force || seen_epoch != epoch) {
    seen_epoch = epoch;
    uint32_t threads = __atomic_load_n(&hi_run.header->next_thread, __ATOMIC_RELAXED);
    for (uint32_t i = 1; i < threads && i < HI_MAX_THREADS; i++)
      if (hi_locals[i]) flip(hi_locals[i]);
  }
  hi_tick_unlock();
}
