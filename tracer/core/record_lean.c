/* record_lean.c: windows of a thread, and its raw buffer -> the code of a piece.
 *
 * The code is that of crates/profile/src/bursts/decode.rs; encode.rs there does the same. */
#include "record.h"
#include <time.h>

#define NONE (~0u)
#define PIECE_ACCESSES 4096u
#define PIECE_EXECUTIONS (1u << 16)
#define ESCAPE 31u
#define TOO_FAR (1ull << 61)
#define VARINT 10u /* bytes at most */

static uint64_t clock_ns(long id) {
  struct timespec now = {0, 0};
  long result;
  /* Not the C library's, which may use vector registers. */
  __asm__ volatile("syscall" : "=a"(result) : "a"(228L), "D"(id), "S"(&now) : "rcx", "r11", "memory");
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

/* Tells of the run so far and what comes after it. */
static void put_tag(struct hi_recorder *r, uint32_t what) {
  put_byte(r->piece, what << 3 | (r->run < 7 ? r->run : 7));
  if (r->run >= 7) put(r->piece, r->run - 7);
  r->run = 0;
}

static void forget(struct hi_recorder *r) {
  for (uint32_t i = 0; i < r->nlocals; i++) r->local_of[r->locals[i].block] = 0;
  r->nlocals = r->nsites = 0;
  r->last = NONE;
  r->stack = 0;
  r->fresh = true;
}

/* --- pieces */

static struct hi_piece *take_piece(void) {
  uint64_t *busy = hi_run.header->piece_busy;
  for (uint32_t word = 0; word < HI_PIECES / 64; word++) {
    uint64_t bits = __atomic_load_n(&busy[word], __ATOMIC_RELAXED);
    while (~bits) {
      uint32_t bit = (uint32_t)__builtin_ctzll(~bits);
      if (!__atomic_compare_exchange_n(&busy[word], &bits, bits | 1ull << bit, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_RELAXED))
        continue;
      struct hi_piece *p = &hi_run.pieces[word * 64 + bit];
      __atomic_store_n(&p->state, HI_PIECE_FILLING, __ATOMIC_RELAXED);
      return p;
    }
  }
  __atomic_add_fetch(&hi_run.header->lost_pieces, 1, __ATOMIC_RELAXED);
  return NULL;
}

static void give_piece(struct hi_piece *p) {
  uint32_t at = (uint32_t)(p - hi_run.pieces);
  __atomic_store_n(&p->state, HI_PIECE_FREE, __ATOMIC_RELAXED);
  __atomic_and_fetch(&hi_run.header->piece_busy[at / 64], ~(1ull << (at % 64)), __ATOMIC_RELEASE);
}

static void begin_piece(struct hi_local *t, uint64_t start) {
  struct hi_recorder *r = t->recorder;
  struct hi_piece *p = r->piece;
  p->thread = t->index;
  p->process = hi_run.process;
  p->window = r->window;
  p->sequence = r->sequence++;
  p->flags = (r->waited ? HI_PIECE_WAITED : 0u) | (r->fresh ? HI_PIECE_FRESH : 0u);
  p->accesses = p->instructions = p->length = 0;
  p->start_ns = start;
  r->waited = r->fresh = false;
}

/* Hands the piece over and takes the next. False: there is none, and this one says so. */
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

static bool enter(struct hi_recorder *r, uint32_t block, uint32_t sites) {
  if (r->nlocals == HI_LOCALS || r->nsites + sites > HI_LOCAL_SITES) return false;
  uint32_t next = r->nlocals++;
  r->locals[next] = (struct hi_record_local){block, NONE, r->nsites};
  for (uint32_t i = 0; i < sites; i++) {
    struct hi_record_site *s = &r->sites[r->nsites + i];
    s->last = s->stride = s->before = 0;
    __asm__ volatile("" : : : "memory"); /* no call of memset */
  }
  r->nsites += sites;
  r->local_of[block] = next + 1;
  return true;
}

/* Compares the sites' values with what is predicted; fills mask and deltas, and returns how
 * many are different. */
static uint32_t compare(struct hi_recorder *r, const struct hi_record_block *b, struct hi_record_site *site,
                        const uint64_t *values, uint8_t *mask, uint64_t *deltas) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < b->sites; i++, site++) {
    bool stack = i == 0 && b->has_stack;
    uint64_t predicted = stack ? r->stack + (uint64_t)b->stack : site->last + site->stride;
    uint64_t value = values[i], delta = value - predicted;
    if (i % 8 == 0) mask[i / 8] = 0;
    if (HI_UNLIKELY(delta + TOO_FAR > 2 * TOO_FAR)) value = predicted;
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

static bool only_first_four(const struct hi_record_block *b, const uint8_t *mask) {
  if (b->sites && mask[0] >= 16) return false;
  for (uint32_t i = 1; i < (b->sites + 7u) / 8; i++)
    if (mask[i]) return false;
  return true;
}

/* One execution of a block the thread knows; `entered`: since now. */
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

/* --- the raw buffer */

/* Encodes [raw, head), made between r->since and `end`. False when there is no piece left. */
static bool encode(struct hi_local *t, uint64_t end) {
  struct hi_recorder *r = t->recorder;
  const uint64_t *at = r->raw, *stop = (const uint64_t *)*r->slots.head;
  uint64_t total = (uint64_t)(stop - at), span = end > r->since ? end - r->since : 0;
  while (at < stop) {
    uint32_t block = (uint32_t)at[0];
    const struct hi_record_block *b = &hi_run.record_blocks[block];
    const uint64_t *values = at + 1;
    uint64_t now = r->since + span * (uint64_t)(at - r->raw) / total;
    uint32_t made = accesses_made(b, values);
    uint32_t local = r->local_of[block];
    bool tables_full = !local && (r->nlocals == HI_LOCALS || r->nsites + b->sites > HI_LOCAL_SITES);
    if (r->executions) {
      struct hi_piece *p = r->piece;
      uint64_t room = sizeof p->code - p->length, worst = 5 * VARINT + b->sites * (VARINT + 1ull);
      bool full = (p->accesses && p->accesses + made > PIECE_ACCESSES) || r->executions >= PIECE_EXECUTIONS;
      if ((full || tables_full || room < worst) && !end_piece(r, now, true)) return false;
    }
    if (tables_full) {
      forget(r);
      local = 0;
    }
    if (!r->executions) begin_piece(t, now);
    bool entered = !local && enter(r, block, b->sites);
    execute(r, b, r->local_of[block] - 1, values, entered);
    r->executions++;
    r->piece->accesses += made;
    r->piece->instructions += b->instructions;
    at = values + b->sites;
  }
  r->since = end;
  return true;
}

/* --- windows */

static bool window_is_on(const struct hi_local *t) {
  const struct hi_header *h = hi_run.header;
  return __atomic_load_n(&h->record_open, __ATOMIC_ACQUIRE) && hi_counting(t);
}

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
  forget(r);
  r->sequence = r->executions = r->run = 0;
  r->waited = false;
  r->since = hi_record_now();
  r->share_end = h->record_ns ? clock_ns(CLOCK_THREAD_CPUTIME_ID) + h->record_ns : ~0ull;
  *r->slots.head = (uint64_t)r->raw;
  *r->slots.on = 1;
}

/* The thread leaves its window; what was not encoded is lost. */
static void leave(struct hi_local *t) {
  struct hi_recorder *r = t->recorder;
  *r->slots.on = 0;
  *r->slots.head = (uint64_t)r->raw;
  if (r->piece && r->executions) end_piece(r, r->since, false);
  else if (r->piece) give_piece(r->piece);
  r->piece = NULL;
  t->shared->recorded = 2 * r->window + 1;
}

static bool try_lock(struct hi_recorder *r) { return !__atomic_exchange_n(&r->lock, 1, __ATOMIC_ACQUIRE); }

static void unlock(struct hi_recorder *r) { __atomic_store_n(&r->lock, 0, __ATOMIC_RELEASE); }

/* False once the process has closed the thread's recording. */
static bool encode_until(struct hi_local *t, uint64_t end) {
  struct hi_recorder *r = t->recorder;
  if (!try_lock(r)) {
    *r->slots.on = 0;
    *r->slots.head = (uint64_t)r->raw;
    return false;
  }
  if (!encode(t, end)) leave(t);
  *r->slots.head = (uint64_t)r->raw;
  unlock(r);
  return true;
}

void hi_record_start(struct hi_local *t, struct hi_recorder *r, struct hi_record_slots slots) {
  t->recorder = r;
  r->slots = slots;
  r->lock = 0;
  r->window = 0;
  r->piece = NULL; /* after a fork it is the parent's */
  *slots.on = 0;
  *slots.head = (uint64_t)r->raw;
  hi_record_notice(t);
}

/* Called where a thread looks at the slice: is there a window it has not seen yet? */
void hi_record_notice(struct hi_local *t) {
  struct hi_recorder *r = t->recorder;
  if (*r->slots.on || r->lock || !window_is_on(t)) return;
  if (r->window != __atomic_load_n(&hi_run.header->record_window, __ATOMIC_RELAXED)) begin(t);
}

/* Called with a full raw buffer, between two blocks. */
void hi_record_flush(struct hi_local *t) {
  struct hi_recorder *r = t->recorder;
  if (!encode_until(t, hi_record_now()) || !*r->slots.on) return;
  bool same = r->window == __atomic_load_n(&hi_run.header->record_window, __ATOMIC_RELAXED);
  if (same && window_is_on(t) && clock_ns(CLOCK_THREAD_CPUTIME_ID) < r->share_end) return;
  leave(t);
  hi_record_notice(t);
}

/* Encodes what there is, in case the thread does not come back soon. */
void hi_record_encode(struct hi_local *t) {
  if (hi_recording(t)) encode_until(t, hi_record_now());
}

/* The thread was in the kernel that long; its raw buffer is empty. */
void hi_record_waited(struct hi_local *t, uint64_t from, uint64_t to) {
  struct hi_recorder *r = t->recorder;
  if (!hi_recording(t) || !try_lock(r)) return;
  if (r->executions && !end_piece(r, from, true)) leave(t);
  r->waited = true;
  r->since = to;
  unlock(r);
  if (hi_recording(t)) hi_record_flush(t);
}

/* The thread ends. */
void hi_record_end(struct hi_local *t) {
  if (!hi_recording(t)) return;
  if (encode_until(t, hi_record_now()) && hi_recording(t)) leave(t);
}

/* The process ends while the thread may still run: what it has encoded is handed over. It
 * finds the lock taken and records no more. */
void hi_record_close(struct hi_local *t) {
  struct hi_recorder *r = t->recorder;
  if (!r || !r->piece || !try_lock(r)) return;
  if (r->executions) end_piece(r, r->since, false);
}
