/* tick_lean.c: the change of slice. The collector advances the epoch; the first thread of a
 * process that notices, at a miss, flips the base of every thread of the process to its other
 * line cache. A hit therefore has no extra cost for slices, and a thread that only hits is moved
 * on too: its next access misses in the empty cache. */
#include "state.h"

struct hi_local *hi_locals[HI_MAX_THREADS]; /* threads of this process, by index */
static uint32_t lock;

void hi_tick_lock(void) { hi_spin_lock(&lock); }

void hi_tick_unlock(void) { hi_spin_unlock(&lock); }

static void turn(struct hi_local *t) {
  *t->base_slot = (uint64_t)(t->current == t->entries[0] ? t->entries[1] : t->entries[0]);
}

static void flip(struct hi_local *t) {
  if (__atomic_exchange_n(&t->shared->flipped, 1, __ATOMIC_ACQ_REL)) return; /* has not flushed since the last flip */
  turn(t);
}

/* Tracing was switched on or off within a slice: makes the next access of each thread of this
 * process miss. */
void hi_flip_all(void) {
  hi_tick_lock();
  for (uint32_t i = 1; i < HI_MAX_THREADS; i++)
    if (hi_locals[i]) flip(hi_locals[i]);
  hi_tick_unlock();
}

/* Moves the threads of this process that are in an older slice on to `epoch`. The calling
 * thread moves on even while another thread holds the lock: that thread may be descheduled
 * there, and flip() skips threads that have not flushed since their last flip. If the thread is
 * flipped twice as a result, it loses the contents of its line cache once. */
void hi_tick(struct hi_local *t, uint32_t epoch) {
  if (!__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE)) {
    uint32_t threads = __atomic_load_n(&hi_run.header->next_thread, __ATOMIC_RELAXED);
    for (uint32_t i = 1; i < threads && i < HI_MAX_THREADS; i++)
      if (hi_locals[i] && hi_locals[i]->shared->epoch != epoch) flip(hi_locals[i]);
    hi_tick_unlock();
  }
  if ((uint64_t)t->current == *t->base_slot) turn(t);
}
