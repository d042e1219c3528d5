/* burst_record_lean.c: burst recording of a thread: when it enters and leaves a window, and the
 * encoding of its raw buffer into pieces.
 *
 * crates/profile/src/bursts/decode.rs defines the code; encode.rs there is the same encoder. */
#include "burst_record.h"
#include <sys/syscall.h>
#include <time.h>

#define NONE (~0u)
#define PIECE_ACCESSES 4096u
#define PIECE_EXECUTIONS (1u << 16)
#define ESCAPE 31u
#define MAX_DELTA (1ull << 61)
#define MAX_VARINT 10u /* bytes */
#define MAX_RUN_IN_TAG 7u

static uint64_t clock_ns(long id) {
  struct timespec now = {0, 0};
  long result;
  /* Not the C library's clock_gettime, which may use vector registers. */
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"((long)SYS_clock_gettime), "D"(id), "S"(&now)
                   : "rcx", "r11", "memory");
  return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

uint64_t hi_record_now(void) { return clock_ns(CLOCK_MONOTONIC); }

/* --- the code of a piece */

static void put_byte(struct hi_piece *p, uint32_t byte) { p->code[p->length++] = (uint8_t)byte; }

static void put(struct hi_piece *p, uint64_t value) {
  for (; value >= 0x80; value >>= 7) put_byte(p, (uint32_t)value | 0x80);
  put_byte(p, (uint32_t)value);
}

static void put_delta(struct hi_piece *p, uint64_t delta) {
  bool eighth = (delta & 7) == 0;
  int64_t value = eighth ? (int64_t)delta >> 3 : (int64_t)delta;
  uint64_t zigzag = (uint64_t)value << 1 ^ (uint64_t)(value >> 63);
  put(p, eighth ? zigzag << 1 : zigzag << 1 | 1);
}

/* The length of the run of executions as predicted, and what follows it. */
static void put_tag(struct hi_recorder *r, uint32_t what) {
  put_byte(r->piece, what << 3 | (r->run < MAX_RUN_IN_TAG ? r->run : MAX_RUN_IN_TAG));
  if (r->run >= MAX_RUN_IN_TAG) put(r->piece, r->run - MAX_RUN_IN_TAG);
  r->run = 0;
}

/* Empties the tables of blocks and sites, as the decoder does at a piece marked FRESH. */
static void reset_tables(struct hi_recorder *r) {
  for (uint32_t i = 0; i < r->nlocals; i++) r->local_of[r->locals[i].block] = 0;
  r->nlocals = r->nsites = 0;
  r->last = NONE;
  r->stack = 0;
  r->fresh = true;
}

/* --- pieces */

static struct hi_piece *take_piece(void) {
  uint32_t free = hi_take_bit(hi_run.header->piece_busy, HI_PIECES / 64);
  if (free == HI_NO_BIT) {
    __atomic_add_fetch(&hi_run.header->lost_pieces, 1, __ATOMIC_RELAXED);
    return NULL;
  }
  struct hi_piece *p = &hi_run.pieces[free];
  p->process = hi_run.process; /* at whose end the collector frees it */
  __atomic_store_n(&p->state, HI_PIECE_FILLING, __ATOMIC_RELEASE);
  return p;
}

static void give_piece(struct hi_piece *p) {
  __atomic_store_n(&p->state, HI_PIECE_FREE, __ATOMIC_RELAXED);
  hi_give_bit(hi_run.header->piece_busy, (uint32_t)(p - hi_run.pieces));
}

static void begin_piece(struct hi_local *t, uint64_t start) {
  struct hi_recorder *r = t->recorder;
  struct hi_piece *p = r->piece;
  p->thread = t->index;
  p->window = r->window;
  p->sequence = r->sequence++;
  p->flags = (r->waited ? HI_PIECE_WAITED : 0u) | (r->fresh ? HI_PIECE_FRESH : 0u) | (r->gap ? HI_PIECE_CUT : 0u);
  p->accesses = p->instructions = p->length = 0;
  p->start_ns = start;
  r->reach = 0;
  r->waited = r->fresh = r->gap = false;
}

/* Hands the piece over to the collector and, with `more`, takes the next. If none is free the
 * piece is marked as CUT. Returns whether there is a piece to go on with. */
static bool end_piece(struct hi_recorder *r, uint64_t end, bool more) {
  struct hi_piece *p = r->piece;
  if (r->run) put_tag(r, 0);
  r->executions = 0;
  p->end_ns = end;
  r->piece = more ? take_piece() : NULL;
  if (more && !r->piece) p->flags |= HI_PIECE_CUT;
  __atomic_store_n(&p->state, HI_PIECE_WHOLE, __ATOMIC_RELEASE);
  return r->piece;
}

/* --- one block */

/* Enters a block in the tables; false when they are full. */
static bool enter(struct hi_recorder *r, uint32_t block, uint32_t sites) {
  if (r->nlocals == HI_LOCALS || r->nsites + sites > HI_LOCAL_SITES) return false;
  uint32_t next = r->nlocals++;
  r->locals[next] = (struct hi_record_local){block, NONE, r->nsites};
  for (uint32_t i = 0; i < sites; i++) {
    struct hi_record_site *s = &r->sites[r->nsites + i];
    s->last = s->stride = s->before = 0;
    __asm__ volatile("" : : : "memory"); /* keeps the compiler from calling memset */
  }
  r->nsites += sites;
  r->local_of[block] = next + 1;
  return true;
}

/* Compares the values of the sites with their predictions; fills mask and deltas, and returns
 * how many differ. */
static uint32_t compare(struct hi_recorder *r, const struct hi_record_block *b, struct hi_record_site *site,
                        const uint64_t *values, uint8_t *mask, uint64_t *deltas) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < b->sites; i++, site++) {
    bool stack = i == 0 && b->has_stack;
    uint64_t predicted = stack ? r->stack + (uint64_t)b->stack : site->last + site->stride;
    uint64_t value = values[i], delta = value - predicted;
    if (i % 8 == 0) mask[i / 8] = 0;
    if (HI_UNLIKELY(delta + MAX_DELTA > 2 * MAX_DELTA)) value = predicted;
    if (value != predicted) {
      mask[i / 8] |= (uint8_t)(1u << (i % 8));
      deltas[n++] = delta;
    }
    uint64_t step = value - site->last;
    if (step == site->before) site->stride = step;
    site->before = step;
    site->last = value;
    if (stack) r->stack = value - (uint64_t)b->stack;
  }
  r->stack += (uint64_t)b->moves_stack;
  return n;
}

/* Whether at most the first four sites differ: the tag then holds the mask. */
static bool only_first_four(const struct hi_record_block *b, const uint8_t *mask) {
  if (b->sites && mask[0] >= 16) return false;
  for (uint32_t i = 1; i < (b->sites + 7u) / 8; i++)
    if (mask[i]) return false;
  return true;
}

/* Encodes one execution of a block in the tables; `entered`: this is its first. */
static void execute(struct hi_recorder *r, const struct hi_record_block *b, uint32_t next, const uint64_t *values,
                    bool entered) {
  uint8_t mask[(HI_RECORD_SITES + 7) / 8];
  uint64_t deltas[HI_RECORD_SITES];
  struct hi_record_local *local = &r->locals[next];
  uint32_t n = compare(r, b, &r->sites[local->first_site], values, mask, deltas);
  bool other = r->last == NONE || r->locals[r->last].next != next;
  if (other && r->last != NONE) r->locals[r->last].next = next;
  r->last = next;
  if (HI_LIKELY(!other && n == 0)) {
    r->run++;
    return;
  }
  struct hi_piece *p = r->piece;
  bool brief = only_first_four(b, mask);
  uint32_t what = (brief && b->sites ? (uint32_t)mask[0] << 1 : 0) | other;
  if (what == ESCAPE) brief = false;
  put_tag(r, brief ? what : ESCAPE);
  if (!brief) put_byte(p, other);
  if (other) {
    put(p, next);
    if (entered) put(p, local->block);
  }
  if (!brief)
    for (uint32_t i = 0; i < (b->sites + 7u) / 8; i++) put_byte(p, mask[i]);
  for (uint32_t i = 0; i < n; i++) put_delta(p, deltas[i]);
}

static uint32_t accesses_made(const struct hi_record_block *b, const uint64_t *values) {
  uint32_t n = b->accesses;
  for (uint32_t i = b->sites - b->lengths; i < b->sites; i++) n -= values[i] == 0;
  return n;
}

/* Bytes that the accesses with a length touch; cuts lengths beyond the limit. */
static uint64_t reach_of(const struct hi_record_block *b, uint64_t *values) {
  uint64_t bytes = 0;
  for (uint32_t i = b->sites - b->lengths; i < b->sites; i++) {
    if (values[i] > HI_RECORD_REACH - bytes) values[i] = HI_RECORD_REACH - bytes;
    bytes += values[i];
  }
  return bytes;
}

/* --- the raw buffer */

/* Encodes [raw, head), recorded between r->since and `end`. False when no piece is left. */
static bool encode(struct hi_local *t, uint64_t end) {
  struct hi_recorder *r = t->recorder;
  uint64_t *at = r->raw, *stop = (uint64_t *)*r->slots.head;
  uint64_t total = (uint64_t)(stop - at), span = end > r->since ? end - r->since : 0;
  while (at < stop) {
    uint32_t block = (uint32_t)at[0];
    const struct hi_record_block *b = &hi_run.record_blocks[block];
    uint64_t *values = at + 1;
    uint64_t now = r->since + span * (uint64_t)(at - r->raw) / total;
    uint64_t reach = reach_of(b, values);
    uint32_t made = accesses_made(b, values);
    uint32_t local = r->local_of[block];
    bool tables_full = !local && (r->nlocals == HI_LOCALS || r->nsites + b->sites > HI_LOCAL_SITES);
    if (r->executions) {
      struct hi_piece *p = r->piece;
      uint64_t room = sizeof p->code - p->length, worst = 5 * MAX_VARINT + b->sites * (MAX_VARINT + 1ull);
      bool full = (p->accesses && p->accesses + made > PIECE_ACCESSES) || r->executions >= PIECE_EXECUTIONS ||
                  r->reach + reach > HI_RECORD_REACH;
      if ((full || tables_full || room < worst) && !end_piece(r, now, true)) return false;
    }
    if (tables_full) {
      reset_tables(r);
      local = 0;
    }
    if (!r->executions) begin_piece(t, now);
    bool entered = !local && enter(r, block, b->sites);
    execute(r, b, r->local_of[block] - 1, values, entered);
    r->executions++;
    r->reach += reach;
    r->piece->accesses += made;
    r->piece->instructions += b->instructions;
    at = values + b->sites;
  }
  r->since = end;
  return true;
}

/* --- windows
 *
 * The lock protects the piece. It is taken by the thread itself, and by the thread that ends
 * the process. A thread that cannot take it drops the contents of its raw buffer. */

static bool is_open(void) { return __atomic_load_n(&hi_run.header->record_open, __ATOMIC_ACQUIRE); }

static bool is_newest(const struct hi_recorder *r) {
  return r->window == __atomic_load_n(&hi_run.header->record_window, __ATOMIC_RELAXED);
}

static void empty(struct hi_recorder *r) { *r->slots.head = (uint64_t)r->raw; }

static bool try_lock(struct hi_recorder *r) { return !__atomic_exchange_n(&r->lock, 1, __ATOMIC_ACQUIRE); }

static void unlock(struct hi_recorder *r) { __atomic_store_n(&r->lock, 0, __ATOMIC_RELEASE); }

/* Takes the lock, or empties the raw buffer; called between two blocks. */
static bool lock_or_drop(struct hi_recorder *r) {
  if (try_lock(r)) return true;
  if (r->pause == HI_RUNNING) {
    empty(r);
    r->gap = true;
  }
  return false;
}

/* Enters the newest window, if a piece is free. */
static void begin(struct hi_local *t) {
  struct hi_recorder *r = t->recorder;
  struct hi_header *h = hi_run.header;
  r->window = __atomic_load_n(&h->record_window, __ATOMIC_ACQUIRE);
  t->shared->recorded = 2 * r->window;
  r->piece = take_piece();
  if (!r->piece) {
    t->shared->recorded = 2 * r->window + 1;
    return;
  }
  reset_tables(r);
  r->sequence = r->executions = r->run = 0;
  r->waited = r->gap = false;
  r->since = hi_record_now();
  r->share_end = h->record_ns ? clock_ns(CLOCK_THREAD_CPUTIME_ID) + h->record_ns : ~0ull;
  empty(r);
  hi_record_enable(t, true);
}

/* Hands the piece over to the collector, or frees it if it is empty. */
static void hand_over(struct hi_recorder *r) {
  if (r->piece && r->executions) end_piece(r, r->since, false);
  else if (r->piece) give_piece(r->piece);
  r->piece = NULL;
}

/* Leaves the window; records that are not encoded are lost. */
static void leave(struct hi_local *t) {
  struct hi_recorder *r = t->recorder;
  hi_record_enable(t, false);
  r->pause = HI_RUNNING;
  empty(r);
  hand_over(r);
  t->shared->recorded = 2 * r->window + 1;
}

/* Encodes the records up to `end`, or up to the pause; called between two blocks. False when
 * the thread has left its window because no piece was free. */
static bool encode_pending(struct hi_local *t, uint64_t end) {
  struct hi_recorder *r = t->recorder;
  bool more = r->piece;
  if (r->pause == HI_STOPPING) {
    *r->slots.head = (uint64_t)r->stop;
    more = more && encode(t, r->stopped) && (!r->executions || end_piece(r, r->stopped, true));
    r->pause = HI_PAUSED;
  } else if (r->pause == HI_RUNNING) {
    more = more && encode(t, end);
  }
  empty(r);
  if (!more) leave(t);
  return more;
}

/* Tracing was switched off (--until): the records that follow do not count. May be called
 * within a block whose copy goes on recording. */
static void stop_recording(struct hi_local *t) {
  struct hi_recorder *r = t->recorder;
  r->stop = (uint64_t *)*r->slots.head;
  r->stopped = hi_record_now();
  r->pause = HI_STOPPING;
  hi_record_enable(t, false);
}

/* Goes on in the same window. The next piece is marked as WAITED: it comes after the pieces of
 * other threads from the time of the pause. */
static void resume(struct hi_local *t) {
  struct hi_recorder *r = t->recorder;
  if (!encode_pending(t, 0)) return;
  r->pause = HI_RUNNING;
  r->waited = true;
  r->since = hi_record_now();
  hi_record_enable(t, true);
}

void hi_record_start(struct hi_local *t, struct hi_recorder *r, struct hi_record_slots slots) {
  t->recorder = r;
  r->slots = slots;
  r->lock = 0;
  r->closed = false;
  r->pause = HI_RUNNING;
  r->window = 0;
  r->piece = NULL; /* after a fork the piece is the parent's */
  hi_record_enable(t, false);
  *slots.head = (uint64_t)r->raw;
  hi_record_update(t);
}

/* Enters, pauses, resumes or leaves a window where that is due; called at a change of slice,
 * within a block. */
void hi_record_update(struct hi_local *t) {
  struct hi_recorder *r = t->recorder;
  bool open = is_open(), newest = is_newest(r);
  if (hi_recording(t)) {
    if (!hi_counting(t)) stop_recording(t);
    return;
  }
  bool stopping_here = r->pause == HI_STOPPING && *r->slots.head == (uint64_t)r->stop;
  bool over = r->pause != HI_RUNNING && (!open || !newest);
  bool starts = open && hi_counting(t) && (r->pause != HI_RUNNING || !newest);
  if (stopping_here || !(over || starts) || !try_lock(r)) return;
  if (over && encode_pending(t, 0)) leave(t);
  if (starts && r->pause != HI_RUNNING) resume(t);
  else if (starts && !newest) begin(t);
  unlock(r);
}

/* Called when the raw buffer is full, between two blocks. */
void hi_record_flush(struct hi_local *t) {
  struct hi_recorder *r = t->recorder;
  if (!lock_or_drop(r)) return;
  if (encode_pending(t, hi_record_now()) && hi_recording(t)) {
    if (!is_open() || !is_newest(r) || clock_ns(CLOCK_THREAD_CPUTIME_ID) >= r->share_end) {
      leave(t);
    } else if (!hi_counting(t)) {
      hi_record_enable(t, false);
      r->pause = HI_PAUSED;
    }
  }
  unlock(r);
  if (!hi_recording(t)) hi_record_update(t);
}

/* Encodes the raw buffer before a system call that may block or not return. */
void hi_record_encode(struct hi_local *t) {
  struct hi_recorder *r = t->recorder;
  if (!r || !r->piece || !lock_or_drop(r)) return;
  encode_pending(t, hi_record_now());
  unlock(r);
}

/* The thread waited in the kernel from `from` to `to`; its raw buffer is empty. Ends the piece,
 * so that the order of accesses is right: those that follow come after what others did
 * meanwhile. */
void hi_record_waited(struct hi_local *t, uint64_t from, uint64_t to) {
  struct hi_recorder *r = t->recorder;
  if (!hi_recording(t) || !lock_or_drop(r)) return;
  bool more = r->piece && (!r->executions || end_piece(r, from, true));
  r->waited = true;
  r->since = to;
  if (!more) leave(t);
  unlock(r);
  if (hi_recording(t)) hi_record_flush(t);
}

/* Called at the end of the thread. */
void hi_record_end(struct hi_local *t) {
  struct hi_recorder *r = t->recorder;
  if (!r || !r->piece || !lock_or_drop(r)) return;
  if (encode_pending(t, hi_record_now())) leave(t);
  unlock(r);
}

/* Called at the end of the process, while the thread may still run: hands its piece over and
 * keeps the lock, so that the thread can encode nothing more. */
void hi_record_close(struct hi_local *t) {
  struct hi_recorder *r = t->recorder;
  if (!r || !try_lock(r)) return;
  r->closed = true;
  hand_over(r);
}

/* Undoes hi_record_close after an exec that failed. A thread that gets no piece leaves its
 * window later. */
void hi_record_reopen(struct hi_local *t) {
  struct hi_recorder *r = t->recorder;
  if (!r || !r->closed) return;
  r->closed = false;
  if (hi_recording(t) || r->pause != HI_RUNNING) r->piece = take_piece();
  unlock(r);
}
