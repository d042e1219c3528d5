/* block.c: finds the memory accesses of a basic block and groups those that start within 64
 * bytes of each other, so that one probe counts them all.
 *
 * Within a block, registers are tracked symbolically: the value of a register is (generation,
 * delta), and adding a constant changes only the delta. The addresses of accesses with the same
 * registers in the same generations differ by constants; sorted by these, the accesses are cut
 * into windows of at most WINDOW_BYTES. A window may still straddle two lines at run time:
 * probe.c then splits the counts exactly. */
#include "host.h"

#define WINDOW_BYTES 64
#define MASK_BYTES (8 * sizeof((struct hi_site *)0)->reads)
#define FIRST_GENERATION 100 /* of values computed in the block; below: those at its entry */

struct symbolic {
  uint32_t generation[REGISTERS + 1];
  int64_t delta[REGISTERS + 1];
  uint32_t next;
};

/* String instructions with a rep prefix whose range is known before they execute. */
bool block_is_string(instr_t *in) {
  switch (instr_get_opcode(in)) {
  case OP_rep_movs:
  case OP_rep_stos:
  case OP_rep_lods: return true;
  default: return false;
  }
}

/* Instructions that save or restore register state: their operands are larger than a window. */
bool block_is_wide(instr_t *in) {
  switch (instr_get_opcode(in)) {
  case OP_fxsave32:
  case OP_fxsave64:
  case OP_fxrstor32:
  case OP_fxrstor64:
  case OP_xsave32:
  case OP_xsave64:
  case OP_xsavec32:
  case OP_xsavec64:
  case OP_xsaveopt32:
  case OP_xsaveopt64:
  case OP_xrstor32:
  case OP_xrstor64: return true;
  default: return false;
  }
}

static int slot_of(reg_id_t reg) {
  if (reg == DR_REG_NULL) return REGISTERS;
  return reg >= DR_REG_START_64 && reg < DR_REG_START_64 + REGISTERS ? (int)(reg - DR_REG_START_64) : -1;
}

static uint32_t generation_of(uint32_t base, uint32_t index) { return base * 100003u + index; }

static void classify(struct host_access *a, const struct symbolic *s) {
  opnd_t o = a->operand;
  a->key = KEY_ALONE;
  if (opnd_is_near_rel_addr(o) || opnd_is_near_abs_addr(o)) {
    a->key = KEY_ABSOLUTE;
    a->disp = (int64_t)opnd_get_addr(o);
    a->base = a->index = DR_REG_NULL;
    a->scale = 0;
    a->generation = 0;
    return;
  }
  if (!opnd_is_near_base_disp(o)) return;
  a->base = opnd_get_base(o);
  a->index = opnd_get_index(o);
  a->scale = opnd_get_scale(o);
  int base = slot_of(a->base), index = slot_of(a->index);
  if (base < 0 || index < 0) return;
  a->key = KEY_RELATIVE;
  a->disp = opnd_get_disp(o) + s->delta[base] + (a->index == DR_REG_NULL ? 0 : s->delta[index] * a->scale);
  a->generation = generation_of(s->generation[base], s->generation[index]);
}

static void add_access(void *dc, struct host_block *b, instr_t *in, opnd_t o, bool write, const struct symbolic *s) {
  if (!opnd_is_memory_reference(o)) return;
  if (opnd_is_base_disp(o) && reg_is_simd(opnd_get_index(o))) return; /* gathers.c */
  b->accesses = host_grow(dc, b->accesses, b->n, &b->capacity, sizeof *b->accesses);
  struct host_access *a = &b->accesses[b->n++];
  uint32_t bytes = drutil_opnd_mem_size_in_bytes(o, in);
  *a = (struct host_access){.instr = in, .operand = o, .write = write, .bytes = bytes ? bytes : 1, .window = -1};
  classify(a, s);
}

/* Whether all that `in` does to `reg` is to add a constant. */
static bool adds_constant(instr_t *in, reg_id_t reg, int64_t *by) {
  int op = instr_get_opcode(in);
  bool first_dst =
      instr_num_dsts(in) > 0 && opnd_is_reg(instr_get_dst(in, 0)) && opnd_get_reg(instr_get_dst(in, 0)) == reg;
  if ((op == OP_add || op == OP_sub) && first_dst && opnd_is_immed_int(instr_get_src(in, 0))) {
    int64_t value = opnd_get_immed_int(instr_get_src(in, 0));
    *by = op == OP_add ? value : -value;
    return true;
  }
  if ((op == OP_inc || op == OP_dec) && first_dst) {
    *by = op == OP_inc ? 1 : -1;
    return true;
  }
  if (reg == DR_REG_RSP && (op == OP_push || op == OP_push_imm) && opnd_get_size(instr_get_src(in, 0)) != OPSZ_2) {
    *by = -8;
    return true;
  }
  if (reg == DR_REG_RSP && (op == OP_call || op == OP_call_ind)) {
    *by = -8;
    return true;
  }
  if (reg == DR_REG_RSP && op == OP_ret && !opnd_is_immed_int(instr_get_src(in, 0))) {
    *by = 8;
    return true;
  }
  if (reg == DR_REG_RSP && op == OP_pop && !first_dst && opnd_get_size(instr_get_dst(in, 0)) == OPSZ_8) {
    *by = 8;
    return true;
  }
  return false;
}

static void follow(struct symbolic *s, instr_t *in) {
  for (int r = 0; r < REGISTERS; r++) {
    reg_id_t reg = (reg_id_t)(DR_REG_START_64 + r);
    if (!instr_writes_to_reg(in, reg, DR_QUERY_INCLUDE_ALL)) continue;
    int64_t by;
    if (adds_constant(in, reg, &by)) {
      s->delta[r] += by;
    } else {
      s->generation[r] = s->next++;
      s->delta[r] = 0;
    }
  }
}

static void collect(void *dc, struct host_block *b, instrlist_t *bb) {
  struct symbolic s = {.next = FIRST_GENERATION};
  for (uint32_t i = 0; i <= REGISTERS; i++) s.generation[i] = i;
  for (instr_t *in = instrlist_first_app(bb); in; in = instr_get_next_app(in)) {
    b->instructions++;
    bool touches = (instr_reads_memory(in) || instr_writes_memory(in)) && !instr_is_nop(in) && !instr_is_prefetch(in) &&
                   instr_get_opcode(in) != OP_lea;
    if (touches && !block_is_string(in) && !block_is_wide(in)) {
      for (int i = 0; i < instr_num_srcs(in); i++) add_access(dc, b, in, instr_get_src(in, i), false, &s);
      for (int i = 0; i < instr_num_dsts(in); i++) add_access(dc, b, in, instr_get_dst(in, i), true, &s);
    }
    follow(&s, in);
    b->last = in;
  }
  int rsp = DR_REG_RSP - DR_REG_START_64;
  b->moves_stack = s.generation[rsp] == (uint32_t)rsp ? s.delta[rsp] : 0;
}

/* drbbdup removes the last instruction of a copy between analysis and instrumentation: `last` is
 * its replacement. */
void block_set_last(struct host_block *b, instr_t *last) {
  for (int i = 0; i < b->n; i++)
    if (b->accesses[i].instr == b->last) b->accesses[i].instr = last;
  b->last = last;
}

/* Whether the block has a loop inside (an expanded string instruction). Its accesses are then not
 * merged into windows. */
bool block_has_loop(instrlist_t *bb) {
  for (instr_t *in = instrlist_first(bb); in; in = instr_get_next(in))
    if (instr_is_cti(in) && instr_num_srcs(in) && opnd_is_instr(instr_get_src(in, 0))) return true;
  return false;
}

/* Whether its address is the stack pointer at the block's entry plus a constant. */
bool block_on_stack(const struct host_access *a) {
  int rsp = DR_REG_RSP - DR_REG_START_64;
  return a->key == KEY_RELATIVE && a->base == DR_REG_RSP && a->index == DR_REG_NULL &&
         a->generation == generation_of((uint32_t)rsp, REGISTERS);
}

bool block_same_key(const struct host_access *a, const struct host_access *b) {
  return a->key == b->key && a->key != KEY_ALONE && a->base == b->base && a->index == b->index &&
         a->scale == b->scale && a->generation == b->generation;
}

static bool fits(const struct host_window *w, const struct host_access *a) {
  if (a->disp - w->low >= WINDOW_BYTES) return false;
  if (a->key == KEY_ABSOLUTE) return ((w->low ^ a->disp) >> hi_run.line_log2) == 0;
  return true;
}

/* Cuts the accesses order[0..n), which have the same key and are sorted by displacement, into
 * windows. */
static void cut_windows(struct host_block *b, const int *order, int n) {
  for (int i = 0; i < n;) {
    struct host_window *w = &b->windows[b->nwindows];
    const struct host_access *first = &b->accesses[order[i]];
    *w = (struct host_window){.leader = order[i], .low = first->disp, .high = first->disp};
    int j = i;
    while (j < n && fits(w, &b->accesses[order[j]])) {
      int end = j;
      uint32_t reads = 0, writes = 0;
      for (; end < n && b->accesses[order[end]].disp == b->accesses[order[j]].disp; end++) {
        if (b->accesses[order[end]].write) writes++;
        else reads++;
      }
      bool crowded = reads > SAME_PLACE || writes > SAME_PLACE;
      if (crowded && j > i) break;
      for (int k = j; k < end; k++) {
        b->accesses[order[k]].window = b->nwindows;
        if (order[k] < w->leader) w->leader = order[k];
      }
      w->reads += reads;
      w->writes += writes;
      w->high = b->accesses[order[j]].disp;
      j = end;
      if (crowded) break;
    }
    b->nwindows++;
    i = j;
  }
}

static void group(void *dc, struct host_block *b, bool merge) {
  int *order = dr_thread_alloc(dc, (size_t)b->n * sizeof *order);
  for (int i = 0; i < b->n; i++) {
    if (b->accesses[i].window >= 0) continue;
    int n = 0;
    order[n++] = i;
    for (int k = i + 1; merge && k < b->n; k++) {
      if (b->accesses[k].window >= 0 || !block_same_key(&b->accesses[i], &b->accesses[k])) continue;
      int at = n++;
      while (at > 0 && b->accesses[order[at - 1]].disp > b->accesses[k].disp) {
        order[at] = order[at - 1];
        at--;
      }
      order[at] = k;
    }
    cut_windows(b, order, n);
  }
  dr_thread_free(dc, order, (size_t)b->n * sizeof *order);
}

struct host_block *block_analyse(void *dc, instrlist_t *bb, bool merge) {
  struct host_block *b = dr_thread_alloc(dc, sizeof *b);
  memset(b, 0, sizeof *b);
  collect(dc, b, bb);
  if (b->n) {
    b->windows = dr_thread_alloc(dc, (size_t)b->n * sizeof *b->windows);
    group(dc, b, merge);
  }
  return b;
}

/* Fills the site's masks: the bytes that the accesses of a window cover. */
void block_masks(const struct host_block *b, int window, struct hi_site *site) {
  const struct host_window *w = &b->windows[window];
  site->span = (uint32_t)(w->high - w->low);
  for (int i = 0; i < b->n; i++) {
    const struct host_access *a = &b->accesses[i];
    if (a->window != window) continue;
    uint64_t *mask = a->write ? site->writes : site->reads;
    uint64_t first = (uint64_t)(a->disp - w->low);
    for (uint64_t at = first; at < first + a->bytes && at < MASK_BYTES; at++) mask[at / 64] |= 1ull << (at % 64);
  }
}

void block_free(void *dc, struct host_block *b) {
  if (b->n) dr_thread_free(dc, b->windows, (size_t)b->n * sizeof *b->windows);
  if (b->capacity) dr_thread_free(dc, b->accesses, (size_t)b->capacity * sizeof *b->accesses);
  dr_thread_free(dc, b, sizeof *b);
}
