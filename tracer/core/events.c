/* events.c: the event ring, in one total order over all processes. */
#include "state.h"
#include <string.h>
#include <time.h>

#define SLOT_MASK (HI_EVENTS - 1)
#define WAIT_TRIES 200 /* x 1 ms; the collector drains the ring every slice, so then it is gone */
#define SLOT_BYTES sizeof(struct hi_event)
#define MAX_TEXT_SLOTS 64u

static bool room_for(uint64_t slots) {
  struct hi_header *h = hi_run.header;
  for (int i = 0; i < WAIT_TRIES; i++) {
    uint64_t used =
        __atomic_load_n(&h->event_head, __ATOMIC_RELAXED) - __atomic_load_n(&h->event_tail, __ATOMIC_ACQUIRE);
    /* Leave room for threads that reserve at the same time. */
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

/* Appends one record. `text` may be NULL; what exceeds MAX_TEXT_SLOTS is cut off. */
void hi_emit(struct hi_local *t, uint8_t kind, uint16_t aux, const uint64_t *a, int n, const char *text) {
  size_t length = text ? strlen(text) : 0;
  if (length > MAX_TEXT_SLOTS * SLOT_BYTES) length = MAX_TEXT_SLOTS * SLOT_BYTES;
  uint64_t more = (length + SLOT_BYTES - 1) / SLOT_BYTES;
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
    size_t rest = length - i * SLOT_BYTES, part = rest < SLOT_BYTES ? rest : SLOT_BYTES;
    memcpy(to, text + i * SLOT_BYTES, part);
    memset(to + part, 0, SLOT_BYTES - part);
  }
  __atomic_store_n(&e->ready, HI_READY, __ATOMIC_RELEASE);
}
