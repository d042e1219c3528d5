/* plan.c: which values are recorded at each execution of a block.
 *
 * The addresses of accesses whose registers have the same values differ by constants, so one
 * recorded value, a site, gives the addresses of all of them; absolute addresses need no site.
 * String instructions, those that save register state, and accesses in a loop inside the block have
 * a second site for their length, which is 0 if they were not executed. What is the same in all executions is in the
 * block's description, which crates/profile/src/bursts/block.rs reads. */
#include "host.h"

/* Upper bounds of the parts of a description. */
enum { HEADER_BYTES = 128, ACCESS_BYTES = 40, REGISTER_BYTES = 12 };

static struct plan_access *add(void *dc, struct plan *p, struct plan_access a) {
  if (p->n == (int)HI_RECORD_ACCESSES || p->sites + p->lengths + 2 > (int)HI_RECORD_SITES) return NULL;
  p->accesses = host_grow(dc, p->accesses, p->n, &p->capacity, sizeof *p->accesses);
  p->accesses[p->n] = a;
  return &p->accesses[p->n++];
}

/* Gives the access the site of an access with the same registers, or a new one (always if
 * `alone`). */
static void give_site(struct plan *p, struct plan_access *a, bool alone) {
  if (a->key == KEY_ABSOLUTE && !alone) {
    a->site = NO_SITE;
    a->offset = a->same->disp;
    return;
  }
  for (struct plan_access *o = p->accesses; !alone && a->same && o < a; o++)
    if (o->same && o->site != NO_SITE && block_same_key(o->same, a->same)) {
      a->site = o->site;
      a->offset = a->same->disp - p->accesses[p->leaders[o->site]].same->disp;
      return;
    }
  bool stack = p->has_stack && a->same && block_on_stack(a->same);
  a->site = stack ? 0 : p->sites++;
  p->leaders[a->site] = (int)(a - p->accesses);
}

static void add_normal(void *dc, struct plan *p, const struct host_access *h, uint32_t number, bool loops) {
  struct plan_access *a = add(dc, p,
                              (struct plan_access){.instr = h->instr,
                                                   .operand = h->operand,
                                                   .write = h->write,
                                                   .key = h->key,
                                                   .bytes = loops ? 0 : h->bytes,
                                                   .number = number,
                                                   .same = h});
  if (!a) return;
  give_site(p, a, loops);
  if (loops) p->lengths++;
}

static void add_operand(void *dc, struct plan *p, instr_t *in, opnd_t o, bool write, uint32_t number) {
  if (!opnd_is_memory_reference(o)) return;
  struct plan_access *a = add(dc, p,
                              (struct plan_access){.instr = in,
                                                   .operand = o,
                                                   .write = write,
                                                   .string = block_is_string(in),
                                                   .wide = block_is_wide(in),
                                                   .key = KEY_ALONE,
                                                   .number = number});
  if (!a) return;
  give_site(p, a, true);
  p->lengths++;
}

/* Numbers the sites that are lengths after those that are addresses. */
static void number_lengths(struct plan *p) {
  int next = p->sites;
  for (int i = 0; i < p->n; i++)
    if (!p->accesses[i].bytes) p->accesses[i].length = next++;
}

/* --- the description */

static void put(struct plan_text *t, uint64_t value) {
  for (; value >= 0x80; value >>= 7) t->bytes[t->n++] = (uint8_t)(value | 0x80);
  t->bytes[t->n++] = (uint8_t)value;
}

static void put_signed(struct plan_text *t, int64_t value) { put(t, (uint64_t)value << 1 ^ (uint64_t)(value >> 63)); }

/* A read, or up to two registers; further registers are left out. */
static void put_sources(struct plan_text *t, struct depend d) {
  if (d.read) {
    put(t, REGISTERS + d.read);
    put(t, 0);
    return;
  }
  uint32_t rest = d.registers & (d.registers - 1);
  put(t, d.registers ? 1 + (uint32_t)__builtin_ctz(d.registers) : 0);
  if (d.registers) put(t, rest ? 1 + (uint32_t)__builtin_ctz(rest) : 0);
}

static void put_access(struct plan_text *t, const struct plan_access *a, uint32_t after, struct depend from) {
  put(t, after);
  put(t, (uint64_t)(a->site + 1));
  put_signed(t, a->offset);
  put(t, (uint64_t)a->bytes << 1 | a->write);
  if (!a->bytes) put(t, (uint64_t)a->length);
  put_sources(t, from);
}

static bool unchanged(struct depend d, int reg) { return !d.read && d.registers == 1u << reg; }

static void describe(struct plan_text *t, const struct plan *p, const struct depend *of_access,
                     const struct depend *at_end) {
  put(t, p->instructions);
  put(t, (uint64_t)(p->sites + p->lengths));
  put(t, (uint64_t)p->lengths);
  put(t, p->has_stack);
  put_signed(t, p->stack);
  put_signed(t, p->moves_stack);
  put(t, (uint64_t)p->n);
  uint32_t before = 0;
  for (int i = 0; i < p->n; i++) {
    put_access(t, &p->accesses[i], p->accesses[i].number - before, of_access[i]);
    before = p->accesses[i].number;
  }
  uint64_t changes = 0;
  for (int r = 0; r < REGISTERS; r++) changes += !unchanged(at_end[r], r);
  put(t, changes);
  for (int r = 0; r < REGISTERS; r++)
    if (!unchanged(at_end[r], r)) {
      put(t, (uint64_t)r);
      put_sources(t, at_end[r]);
    }
}

static void describe_whole(void *dc, struct plan *p, instrlist_t *bb) {
  size_t n = (size_t)p->n * sizeof(struct depend);
  struct depend *of_access = n ? dr_thread_alloc(dc, n) : NULL, at_end[REGISTERS];
  p->text.size = HEADER_BYTES + (size_t)p->n * ACCESS_BYTES + REGISTERS * REGISTER_BYTES;
  p->text.bytes = dr_thread_alloc(dc, p->text.size);
  depend_follow(bb, p, of_access, at_end);
  describe(&p->text, p, of_access, at_end);
  if (n) dr_thread_free(dc, of_access, n);
}

struct plan *plan_make(void *dc, instrlist_t *bb, const struct host_block *b, bool loops) {
  struct plan *p = dr_thread_alloc(dc, sizeof *p);
  memset(p, 0, sizeof *p);
  p->leaders = dr_thread_alloc(dc, HI_RECORD_SITES * sizeof *p->leaders);
  p->instructions = b->instructions;
  p->moves_stack = b->moves_stack;
  /* Site 0 is the stack pointer if an access uses it: its value is predicted from block to block. */
  for (int i = 0; i < b->n && !p->has_stack && !loops; i++)
    if (block_on_stack(&b->accesses[i])) {
      p->has_stack = true;
      p->stack = b->accesses[i].disp;
      p->sites = 1;
    }
  uint32_t number = 0;
  int next = 0;
  for (instr_t *in = instrlist_first_app(bb); in; in = instr_get_next_app(in)) {
    number++;
    if (block_is_string(in) || block_is_wide(in)) {
      for (int i = 0; i < instr_num_srcs(in); i++) add_operand(dc, p, in, instr_get_src(in, i), false, number);
      for (int i = 0; i < instr_num_dsts(in); i++) add_operand(dc, p, in, instr_get_dst(in, i), true, number);
    }
    for (; next < b->n && b->accesses[next].instr == in; next++) add_normal(dc, p, &b->accesses[next], number, loops);
  }
  number_lengths(p);
  describe_whole(dc, p, bb);
  return p;
}

void plan_free(void *dc, struct plan *p) {
  dr_thread_free(dc, p->text.bytes, p->text.size);
  if (p->capacity) dr_thread_free(dc, p->accesses, (size_t)p->capacity * sizeof *p->accesses);
  dr_thread_free(dc, p->leaders, HI_RECORD_SITES * sizeof *p->leaders);
  dr_thread_free(dc, p, sizeof *p);
}

static uint32_t reserve(void) {
  uint32_t number = __atomic_fetch_add(&hi_run.header->next_record_block, 1, __ATOMIC_RELAXED);
  if (number < HI_RECORD_BLOCKS) return number;
  __atomic_store_n(&hi_run.header->next_record_block, HI_RECORD_BLOCKS, __ATOMIC_RELAXED);
  return 0;
}

/* Writes the block into the segment; returns its number, or 0 if the areas are full. */
uint32_t plan_publish(const struct plan *p) {
  const struct plan_text *t = &p->text;
  uint64_t offset = __atomic_fetch_add(&hi_run.header->record_top, t->n, __ATOMIC_RELAXED);
  uint32_t number = offset + t->n <= HI_RECORD_BYTES ? reserve() : 0;
  if (!number) {
    __atomic_add_fetch(&hi_run.header->lost_record_blocks, 1, __ATOMIC_RELAXED);
    return 0;
  }
  memcpy(hi_run.record_bytes + offset, t->bytes, t->n);
  struct hi_record_block *b = &hi_run.record_blocks[number];
  b->offset = offset;
  b->stack = p->stack;
  b->moves_stack = p->moves_stack;
  b->length = (uint32_t)t->n;
  b->instructions = p->instructions;
  b->sites = (uint16_t)(p->sites + p->lengths);
  b->lengths = (uint16_t)p->lengths;
  b->accesses = (uint16_t)p->n;
  b->has_stack = p->has_stack;
  __atomic_store_n(&b->ready, 1, __ATOMIC_RELEASE);
  return number;
}
