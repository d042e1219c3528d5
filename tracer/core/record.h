/* record.h: --bursts and --full: a thread's accesses as they happen.
 *
 * While a window is open, blocks run in a copy that appends to the thread's raw buffer: the
 * block's number, then the values of its sites (crates/profile/src/bursts/block.rs: mostly
 * addresses). A full buffer is encoded into a piece of the segment, which the collector
 * fetches; no thread ever waits for it: without a free piece its part of the window ends. */
#ifndef HITHER_RECORD_H
#define HITHER_RECORD_H
#include "state.h"

#define HI_RAW_WORDS 4096u /* of the raw buffer, up to which it is full */
#define HI_LOCALS (1u << 16)
#define HI_LOCAL_SITES (1u << 18)

/* A block as one thread knows it, numbered in the order in which it ran first. */
struct hi_record_local {
  uint32_t block, next, first_site;
};
/* The predictor of one site: the value grows by `stride`. */
struct hi_record_site {
  uint64_t last, stride, before;
};

/* What inline code uses: in thread-local storage. */
struct hi_record_slots {
  uint64_t volatile *idle; /* 0: the recording copies run, see hi_record_turn */
  uint64_t volatile *head; /* where the next record goes */
};

/* While accesses do not count (--until) a thread stays in its window, see hi_record_notice. */
enum hi_pause {
  HI_RUNNING,
  HI_STOPPING, /* from `stop` on nothing counts; what is before is not encoded yet */
  HI_PAUSED,
};

struct hi_recorder {
  struct hi_record_slots slots;
  uint32_t lock; /* 1 while somebody uses the piece; for long while the process has closed it */
  bool closed;
  enum hi_pause pause;
  uint64_t *stop;
  uint64_t stopped; /* when */
  uint32_t window, sequence;
  uint32_t nlocals, nsites, last;
  uint64_t share_end; /* of the thread's processor time */
  uint64_t since;     /* when the first record of the raw buffer was made */
  uint64_t stack;
  struct hi_piece *piece;  /* being filled */
  uint32_t executions;     /* in it */
  uint64_t reach;          /* bytes of its accesses with a length */
  uint32_t run;            /* blocks just as predicted, not told yet */
  bool waited, fresh, gap; /* what the next piece has to say */
  uint64_t raw[HI_RAW_WORDS + HI_RECORD_SITES + 1];
  struct hi_record_local locals[HI_LOCALS];
  struct hi_record_site sites[HI_LOCAL_SITES];
  uint32_t local_of[HI_RECORD_BLOCKS]; /* + 1; 0: unknown */
};

/* record_lean.c */
void hi_record_start(struct hi_local *t, struct hi_recorder *r, struct hi_record_slots slots);
void hi_record_notice(struct hi_local *t);
void hi_record_flush(struct hi_local *t);
void hi_record_encode(struct hi_local *t);
void hi_record_waited(struct hi_local *t, uint64_t from, uint64_t to);
void hi_record_end(struct hi_local *t);
void hi_record_close(struct hi_local *t);
void hi_record_reopen(struct hi_local *t);
uint64_t hi_record_now(void);

static inline bool hi_recording(const struct hi_local *t) { return t->recorder && !*t->recorder->slots.idle; }

/* Which copies the thread's next blocks run in. A block asks its slot or the counter, whichever
 * is cheaper for it, see dynamorio/dispatch.c. */
static inline void hi_record_turn(struct hi_local *t, bool on) {
  *t->recorder->slots.idle = !on;
  if (on) *t->instructions |= HI_COUNT_RECORDING;
  else *t->instructions &= ~HI_COUNT_RECORDING;
}
#endif
