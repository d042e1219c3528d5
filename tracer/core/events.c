/* events.c: the ring of events, in one total order over all processes. */
#include "state.h"
#include <string.h>
#include <time.h>

#define SLOT_MASK (HI_EVENTS - 1)
#define WAIT_TRIES 200 /* x 1 ms: the collector drains every slice; later it is gone */

static bool room_for(uint64_t slots) {
  struct hi_header *h = hi_run.header;
  for (int i = 0; i < WAIT_TRIES; i++) {
    uint64_t used =
        __atomic_load_n(&h->event_head, __ATOMIC_RELAXED) - __atomic_load_n(&h->event_tail, __ATOMIC_ACQUIRE);
    /* Headroom for threads that reserve at the same moment. */
    if (used + slots + HI_MAX_THREADS < HI_EVENTS) return true;
    if (__atomic_load_n(&h->closed, __ATOMIC_RELAXED)) return false;
    struct timespec ms = {0, 1000000};
    nanosleep(&ms, NULL);
  }
  return false;
}

uint32_t hi_bump_generation(void) {
  return __atomic_add_fetch(&hi_run.processes[hi_run.process].generation, 1, __ATOMIC_SEQ_CST);
}

/* Appends one record. `text` may be NULL; longer than 255 slots of 64 bytes it is cut. */
void hi_emit(struct hi_local *t, uint8_t kind, uint16_t aux, const uint64_t *a, int n, const char *text) {
  size_t length = text ? strlen(text) : 0;
  if (length > 64 * 64) length = 64 * 64;
  uint64_t more = (length + 63) / 64;
  struct hi_header *h = hi_run.header;
  if (h->closed) return;
  if (!room_for(1 + more)) {
    __atomic_add_fetch(&h->lost_events, 1, __ATOMIC_RELAXED);
    return;
  }
  uint64_t slot = __atomic_fetch_add(&h->event_head, 1 + more, __ATOMIC_SEQ_CST);
  struct hi_event *e = &hi_run.events[slot & SLOT_MASK];
  e->kind = kind;
  e->more = (uint8_t)more;
  e->process = (uint16_t)hi_run.process;
  e->thread = t ? (uint16_t)t->index : 0;
  e->aux = aux;
  e->generation = __atomic_load_n(&hi_run.processes[hi_run.process].generation, __ATOMIC_SEQ_CST);
  for (int i = 0; i < 6; i++) e->a[i] = i < n ? a[i] : 0;
  for (uint64_t i = 0; i < more; i++) {
    char *to = (char *)&hi_run.events[(slot + 1 + i) & SLOT_MASK];
    size_t rest = length - i * 64, part = rest < 64 ? rest : 64;
    memcpy(to, text + i * 64, part);
    memset(to + part, 0, 64 - part);
  }
  __atomic_store_n(&e->ready, HI_READY, __ATOMIC_RELEASE);
}
