/* burst_record.h: burst recording (--bursts and --full): every access of a thread, in order.
 *
 * While a burst window is open, a thread runs copies of blocks that append to its raw buffer:
 * the block's number, then the values of its sites (mostly addresses, see
 * crates/profile/src/bursts/block.rs). A full buffer is encoded into a piece of the segment,
 * which the collector drains. A thread never waits for the collector: if no piece is free it
 * leaves the window. */
#ifndef HITHER_BURST_RECORD_H
#define HITHER_BURST_RECORD_H
#include "state.h"

#define HI_RAW_WORDS 4096u /* the raw buffer is full from here on; one more record fits */
#define HI_LOCALS (1u << 16)
#define HI_LOCAL_SITES (1u << 18)

/* A block in the tables of one thread, numbered by the order of first execution. `next` is the
 * one that followed it last time. */
struct hi_record_local {
  uint32_t block, next, first_site;
};
/* The predictor of one site: last value + `stride`. `before` is the previous difference. */
struct hi_record_site {
  uint64_t last, stride, before;
};

/* Slots of thread-local storage that inline code uses. */
struct hi_record_slots {
  uint64_t volatile *idle; /* 0: the thread runs recording copies, see hi_record_enable */
  uint64_t volatile *head; /* where the next record goes */
};

/* While tracing is switched off (--until) a thread pauses in its window, see hi_record_update. */
enum hi_pause {
  HI_RUNNING,
  HI_STOPPING, /* records from `stop` on do not count; those before are not encoded yet */
  HI_PAUSED,
};

struct hi_recorder {
  struct hi_record_slots slots;
  uint32_t lock; /* 1 while a thread uses the piece, and from hi_record_close on */
  bool closed;
  enum hi_pause pause;
  uint64_t *stop;
  uint64_t stopped; /* time of the stop */
  uint32_t window, sequence;
  uint32_t nlocals, nsites, last;
  uint64_t share_end;      /* processor time of the thread at which its share of the window ends */
  uint64_t since;          /* time of the first record of the raw buffer */
  uint64_t stack;          /* predicted stack pointer */
  struct hi_piece *piece;  /* being filled */
  uint32_t executions;     /* in the piece */
  uint64_t reach;          /* bytes that the piece's accesses with a length touch */
  uint32_t run;            /* executions as predicted that are not in the code yet */
  bool waited, fresh, gap; /* flags of the next piece */
  uint64_t raw[HI_RAW_WORDS + HI_RECORD_SITES + 1];
  struct hi_record_local locals[HI_LOCALS];
  struct hi_record_site sites[HI_LOCAL_SITES];
  uint32_t local_of[HI_RECORD_BLOCKS]; /* index in `locals` + 1; 0: none */
};

/* burst_record_lean.c */
void hi_record_start(struct hi_local *t, struct hi_recorder *r, struct hi_record_slots slots);
void hi_record_update(struct hi_local *t);
void hi_record_flush(struct hi_local *t);
void hi_record_encode(struct hi_local *t);
void hi_record_waited(struct hi_local *t, uint64_t from, uint64_t to);
void hi_record_end(struct hi_local *t);
void hi_record_close(struct hi_local *t);
void hi_record_reopen(struct hi_local *t);
uint64_t hi_record_now(void);

static inline bool hi_recording(const struct hi_local *t) { return t->recorder && !*t->recorder->slots.idle; }

/* Switches the thread between recording and other copies of blocks. A block tests the slot or
 * the sign of the counter, whichever is cheaper there, see dynamorio/dispatch.c. */
static inline void hi_record_enable(struct hi_local *t, bool on) {
  *t->recorder->slots.idle = !on;
  if (on) *t->instructions |= HI_COUNT_RECORDING;
  else *t->instructions &= ~HI_COUNT_RECORDING;
}
#endif
