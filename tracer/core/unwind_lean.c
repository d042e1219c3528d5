/* unwind_lean.c: the caller of a frame, by the unwind tables of its file (.eh_frame and .eh_frame_hdr of the Linux
 * Standard Base, call frame information of DWARF 5, 6.4).
 *
 * Of all that tables may say, what compilers say of functions: where the canonical frame address (CFA) is, counted
 * from the stack or the frame pointer, and where the frame pointer of the caller is. Nothing in a file is trusted: what
 * is read lies in one segment that may be read. */
#include "state.h"

enum { RBP = 6, RSP = 7, RETURN_ADDRESS = 16 };
/* Encodings of pointers. */
enum {
  ABSOLUTE_8 = 0x00,
  UNSIGNED_2 = 0x02,
  UNSIGNED_4 = 0x03,
  SIGNED_4 = 0x0b,
  FROM_HERE_4 = 0x1b,
  FROM_TABLE_4 = 0x3b
};
enum { BASE_RBP = 0x76, DEREFERENCE = 0x06 }; /* operations of an expression */

#define STATES 8u

/* The readable segment of a file that has its tables, and where .eh_frame_hdr is in it. */
struct tables {
  uint64_t start, end, header;
};

/* Bytes of an entry that are left. */
struct reader {
  const uint8_t *at, *end;
  bool failed;
};

/* Where the caller's frame begins (canonical frame address, CFA): an offset from a register, or what lies there. */
struct row {
  uint32_t cfa_register;
  int64_t cfa_offset;
  bool cfa_indirect;
  /* Where the caller's frame pointer is, from the CFA, or from the frame pointer itself. */
  enum { FP_SAME, FP_AT_CFA, FP_AT_FP } fp;
  int64_t fp_offset;
  bool outermost;
};

static uint64_t read_number(struct reader *r, uint32_t bytes) {
  uint64_t value = 0;
  if ((size_t)(r->end - r->at) < bytes) {
    r->failed = true;
    return 0;
  }
  for (uint32_t i = 0; i < bytes; i++) value |= (uint64_t)r->at[i] << 8 * i;
  r->at += bytes;
  return value;
}

static uint64_t read_uleb(struct reader *r) {
  uint64_t value = 0;
  for (uint32_t shift = 0;; shift += 7) {
    uint64_t b = read_number(r, 1);
    if (shift < 64) value |= (b & 0x7f) << shift;
    if (!(b & 0x80)) return value;
  }
}

static int64_t read_sleb(struct reader *r) {
  uint64_t value = 0, b;
  uint32_t shift = 0;
  do {
    b = read_number(r, 1);
    if (shift < 64) value |= (b & 0x7f) << shift;
    shift += 7;
  } while (b & 0x80);
  if (shift < 64 && b & 0x40) value |= ~0ull << shift;
  return (int64_t)value;
}

static struct reader read_block(struct reader *r) {
  uint64_t length = read_uleb(r);
  if (length > (uint64_t)(r->end - r->at)) r->failed = true, length = 0;
  struct reader block = {r->at, r->at + length, r->failed};
  r->at += length;
  return block;
}

static uint32_t encoded_bytes(uint32_t encoding) {
  switch (encoding & 0x0f) {
  case UNSIGNED_2: return 2;
  case UNSIGNED_4:
  case SIGNED_4: return 4;
  default: return 8;
  }
}

/* What a common information entry (CIE) says of all its functions. */
struct cie {
  uint64_t code_factor;
  int64_t data_factor;
  uint32_t encoding;
  bool has_data;
  struct reader program;
};

/* So many bytes of the tables. */
static struct reader read_tables(const struct tables *t, uint64_t address, uint64_t bytes) {
  bool inside = address >= t->start && address <= t->end && bytes <= t->end - address;
  const uint8_t *at = (const uint8_t *)(inside ? address : t->start);
  return (struct reader){at, at + (inside ? bytes : 0), !inside};
}

/* The bytes of an entry behind its length. */
static struct reader read_entry(const struct tables *t, uint64_t address) {
  struct reader head = read_tables(t, address, 4);
  return read_tables(t, address + 4, head.failed ? ~0ull : read_number(&head, 4));
}

static bool read_cie(const struct tables *t, uint64_t address, struct cie *c) {
  struct reader r = read_entry(t, address);
  *c = (struct cie){.encoding = ABSOLUTE_8};
  if (read_number(&r, 4) != 0) return false;
  uint64_t version = read_number(&r, 1);
  const char *kind = (const char *)r.at;
  while (read_number(&r, 1)) {}
  if (r.failed || (version != 1 && version != 3)) return false;
  c->code_factor = read_uleb(&r);
  c->data_factor = read_sleb(&r);
  if (version == 1) read_number(&r, 1);
  else read_uleb(&r);
  if (*kind == 'z') {
    struct reader data = read_block(&r);
    for (kind++; *kind; kind++) {
      if (*kind == 'R') c->encoding = (uint32_t)read_number(&data, 1);
      else if (*kind == 'L') read_number(&data, 1);
      else if (*kind == 'P') read_number(&data, encoded_bytes((uint32_t)read_number(&data, 1)));
      else return false; /* S: where a signal came, there was no call */
    }
    c->has_data = true;
    r.failed |= data.failed;
  } else if (*kind) return false;
  c->program = r;
  return !r.failed;
}

/* An expression of the form *(rbp + offset), or without `*`. */
static bool read_expression(struct reader *r, int64_t *offset, bool *indirect) {
  struct reader block = read_block(r);
  if (read_number(&block, 1) != BASE_RBP) return false;
  *offset = read_sleb(&block);
  *indirect = block.at < block.end && read_number(&block, 1) == DEREFERENCE;
  return !block.failed && block.at == block.end;
}

static void save(struct row *row, uint64_t which, int64_t offset) {
  if (which == RBP) row->fp = FP_AT_CFA, row->fp_offset = offset;
}

static void set_cfa(struct row *row, uint64_t base, int64_t offset) {
  row->cfa_register = (uint32_t)base;
  row->cfa_offset = offset;
  row->cfa_indirect = false;
}

static int64_t scaled(const struct cie *c, uint64_t value) { return (int64_t)(value * (uint64_t)c->data_factor); }

static void restore(struct row *row, uint64_t which, const struct row *first) {
  if (which == RBP) row->fp = first->fp, row->fp_offset = first->fp_offset;
}

/* An instruction that says something of the row. False where it is not known. */
static bool apply(uint32_t op, struct reader *r, const struct cie *c, const struct row *first, struct row *row) {
  enum { OFFSET = 2, RESTORE = 3 }; /* in the upper two bits, the register in the others */
  enum { NOP, OFFSET_EXTENDED = 5, RESTORE_EXTENDED, UNDEFINED, SAME_VALUE, DEF_CFA = 12, DEF_CFA_REGISTER };
  enum { DEF_CFA_OFFSET = 14, DEF_CFA_EXPRESSION, EXPRESSION, OFFSET_EXTENDED_SF, DEF_CFA_SF, DEF_CFA_OFFSET_SF };
  enum { VAL_EXPRESSION = 22, ARGUMENTS_SIZE = 46 };
  bool indirect = false;
  uint64_t which;
  if (op >> 6 == OFFSET) save(row, op & 63, scaled(c, read_uleb(r)));
  if (op >> 6 == RESTORE) restore(row, op & 63, first);
  if (op >> 6) return !r->failed;
  switch (op) {
  case NOP: break;
  case OFFSET_EXTENDED:
    which = read_uleb(r);
    save(row, which, scaled(c, read_uleb(r)));
    break;
  case OFFSET_EXTENDED_SF:
    which = read_uleb(r);
    save(row, which, scaled(c, (uint64_t)read_sleb(r)));
    break;
  case RESTORE_EXTENDED: restore(row, read_uleb(r), first); break;
  case UNDEFINED: row->outermost |= read_uleb(r) == RETURN_ADDRESS; break;
  case SAME_VALUE:
    if (read_uleb(r) == RBP) row->fp = FP_SAME;
    break;
  case DEF_CFA:
    which = read_uleb(r);
    set_cfa(row, which, (int64_t)read_uleb(r));
    break;
  case DEF_CFA_SF:
    which = read_uleb(r);
    set_cfa(row, which, scaled(c, (uint64_t)read_sleb(r)));
    break;
  case DEF_CFA_REGISTER: set_cfa(row, read_uleb(r), row->cfa_offset); break;
  case DEF_CFA_OFFSET: row->cfa_offset = (int64_t)read_uleb(r); break;
  case DEF_CFA_OFFSET_SF: row->cfa_offset = scaled(c, (uint64_t)read_sleb(r)); break;
  case DEF_CFA_EXPRESSION: row->cfa_register = RBP; return read_expression(r, &row->cfa_offset, &row->cfa_indirect);
  case EXPRESSION:
    if (read_uleb(r) != RBP) read_block(r);
    else if (!read_expression(r, &row->fp_offset, &indirect) || indirect) return false;
    else row->fp = FP_AT_FP;
    break;
  case VAL_EXPRESSION: read_uleb(r), read_block(r); break;
  case ARGUMENTS_SIZE: read_uleb(r); break;
  default: return false;
  }
  return !r->failed;
}

/* Follows a program up to `distance` bytes behind the function's start. */
static bool run(struct reader r, const struct cie *c, uint64_t distance, const struct row *first, struct row *row) {
  enum { ADVANCE = 1, ADVANCE_1 = 2, ADVANCE_4 = 4, REMEMBER = 10, RECALL };
  struct row states[STATES];
  uint32_t kept = 0;
  for (uint64_t at = 0; r.at < r.end;) {
    uint32_t op = (uint32_t)read_number(&r, 1);
    if (op >> 6 == ADVANCE) at += (op & 63) * c->code_factor;
    else if (op >= ADVANCE_1 && op <= ADVANCE_4) at += read_number(&r, 1u << (op - ADVANCE_1)) * c->code_factor;
    else if (op == REMEMBER && kept < STATES) states[kept++] = *row;
    else if (op == RECALL && kept > 0) *row = states[--kept];
    else if (!apply(op, &r, c, first, row)) return false;
    if (at > distance) break;
  }
  return !r.failed;
}

/* The frame description entry (FDE) of the function with an address, by the sorted table of its file; 0: none. */
static uint64_t find_fde(const struct tables *t, uint64_t address) {
  enum { HEAD = 12, ENTRY = 8 };
  struct reader head = read_tables(t, t->header, HEAD);
  uint64_t version = read_number(&head, 1), of_frames = read_number(&head, 1), of_count = read_number(&head, 1);
  uint64_t of_table = read_number(&head, 1);
  read_number(&head, 4);
  uint64_t count = read_number(&head, 4), table = t->header + HEAD, low = 0, high = count, entry = 0;
  bool known = version == 1 && of_frames == FROM_HERE_4 && of_count == UNSIGNED_4 && of_table == FROM_TABLE_4;
  if (head.failed || !known || read_tables(t, table, count * ENTRY).failed) return 0;
  while (low < high) {
    uint64_t middle = low + (high - low) / 2;
    struct reader r = read_tables(t, table + middle * ENTRY, ENTRY);
    int64_t start = (int32_t)read_number(&r, 4), at = (int32_t)read_number(&r, 4);
    if (start <= (int64_t)(address - t->header)) low = middle + 1, entry = t->header + (uint64_t)at;
    else high = middle;
  }
  return entry;
}

/* What the tables say of an address in the code of a file. */
static bool find_row(const struct tables *t, uint64_t address, struct row *row) {
  uint64_t entry = find_fde(t, address);
  if (!entry) return false;
  struct reader r = read_entry(t, entry);
  uint64_t back = read_number(&r, 4);
  struct cie c;
  if (r.failed || !back || !read_cie(t, entry + 4 - back, &c)) return false;
  uint32_t width = encoded_bytes(c.encoding);
  uint64_t start = read_number(&r, width);
  if (c.encoding == FROM_HERE_4) start = entry + 8 + (uint64_t)(int64_t)(int32_t)start;
  else if (c.encoding != ABSOLUTE_8 && c.encoding != UNSIGNED_4) return false;
  uint64_t length = read_number(&r, width);
  if (c.has_data) read_block(&r);
  if (r.failed || address < start || address - start >= length) return false;
  *row = (struct row){.cfa_register = RSP};
  struct row none = *row;
  if (!run(c.program, &c, 0, &none, row)) return false;
  struct row first = *row;
  return run(r, &c, address - start, &first, row);
}

/* Where the tables of the file with an address are. */
static struct tables tables_of(uint64_t address) {
  for (uint32_t i = 0; i < HI_CODE_RANGES && hi_code_ranges[i].start; i++) {
    const struct hi_code_range *range = &hi_code_ranges[i];
    uint64_t start = __atomic_load_n(&range->start, __ATOMIC_RELAXED);
    if (address >= start && address < __atomic_load_n(&range->end, __ATOMIC_ACQUIRE))
      return (struct tables){range->tables_start, range->tables_end, range->unwind_tables};
  }
  return (struct tables){0};
}

enum hi_unwound hi_unwind(struct hi_frame *f, hi_read_word *read, const void *stack) {
  struct row row;
  /* The return address may be that of the next function. */
  struct tables tables = tables_of(f->pc - 1);
  if (!tables.header || !find_row(&tables, f->pc - 1, &row)) return HI_UNWIND_UNKNOWN;
  if (row.outermost) return HI_UNWIND_OUTERMOST;
  if (row.cfa_register != RSP && (row.cfa_register != RBP || !f->knows_fp)) return HI_UNWIND_UNKNOWN;
  uint64_t cfa = (row.cfa_register == RSP ? f->sp : f->fp) + (uint64_t)row.cfa_offset, fp = f->fp;
  if (row.cfa_indirect && !read(stack, cfa, &cfa)) return HI_UNWIND_UNKNOWN;
  uint64_t saved = (row.fp == FP_AT_CFA ? cfa : f->fp) + (uint64_t)row.fp_offset, pc;
  bool knows_fp = f->knows_fp || row.fp == FP_AT_CFA;
  if (row.fp != FP_SAME) knows_fp = knows_fp && read(stack, saved, &fp);
  if (cfa <= f->sp || cfa % sizeof(uint64_t) || !read(stack, cfa - 8, &pc)) return HI_UNWIND_UNKNOWN;
  *f = (struct hi_frame){pc, cfa, fp, knows_fp};
  return HI_UNWIND_CALLER;
}
