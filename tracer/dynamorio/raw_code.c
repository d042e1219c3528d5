/* raw_code.c: instructions as bytes, several in what DynamoRIO takes for one.
 *
 * DynamoRIO searches for the encoding of an instruction from its operands, and does so twice, for
 * its length and for its bytes: for the code of probes that took 40 % of the time in which blocks
 * are translated. Nothing looks into these instructions afterwards. */
#include "host.h"

enum { RM_SIB = 4, RM_DISP32 = 5, SIB_BASE_ONLY = 0x24, SIB_DISP32 = 0x25, MOD_DISP8 = 0x40, MOD_REGISTER = 0xc0 };

void raw_byte(struct raw_code *c, uint8_t byte) {
  if (c->n == sizeof c->bytes) dr_abort();
  c->bytes[c->n++] = byte;
}

static void dword(struct raw_code *c, uint32_t value) {
  for (int i = 0; i < 4; i++) raw_byte(c, (uint8_t)(value >> 8 * i));
}

static int number(reg_id_t reg) { return reg - DR_REG_START_64; }

/* The prefix that holds the fourth bits of the registers, if it is needed. */
static void rex(struct raw_code *c, bool wide, int reg, int rm) {
  uint8_t bits = (uint8_t)(wide << 3 | reg >> 3 << 2 | rm >> 3);
  if (bits) raw_byte(c, 0x40 | bits);
}

static void both_registers(struct raw_code *c, int reg, int rm) {
  raw_byte(c, (uint8_t)(MOD_REGISTER | (reg & 7) << 3 | (rm & 7)));
}

static void memory(struct raw_code *c, int reg, int base, int8_t displacement) {
  raw_byte(c, (uint8_t)(MOD_DISP8 | (reg & 7) << 3 | (base & 7)));
  if ((base & 7) == RM_SIB) raw_byte(c, SIB_BASE_ONLY);
  raw_byte(c, (uint8_t)displacement);
}

static void immediate(struct raw_code *c, bool small, int32_t value) {
  if (small) raw_byte(c, (uint8_t)value);
  else dword(c, (uint32_t)value);
}

/* to = from, rotated */
void raw_rorx(struct raw_code *c, reg_id_t to, reg_id_t from, uint8_t by) {
  int reg = number(to), rm = number(from);
  raw_byte(c, 0xc4);
  raw_byte(c, (uint8_t)((reg < 8) << 7 | 1 << 6 | (rm < 8) << 5 | 3));
  raw_byte(c, 0xfb);
  raw_byte(c, 0xf0);
  both_registers(c, reg, rm);
  raw_byte(c, by);
}

/* An operation on two registers. */
void raw_registers(struct raw_code *c, uint8_t opcode, reg_id_t to, reg_id_t from) {
  rex(c, true, number(from), number(to));
  raw_byte(c, opcode);
  both_registers(c, number(from), number(to));
}

void raw_shr(struct raw_code *c, reg_id_t reg, uint8_t by) {
  rex(c, true, 0, number(reg));
  raw_byte(c, 0xc1);
  both_registers(c, 5, number(reg));
  raw_byte(c, by);
}

void raw_and_32(struct raw_code *c, reg_id_t reg, uint32_t mask) {
  rex(c, false, 0, number(reg));
  raw_byte(c, 0x81);
  both_registers(c, 4, number(reg));
  dword(c, mask);
}

void raw_cmp(struct raw_code *c, reg_id_t reg, int32_t with) {
  bool small = with == (int8_t)with;
  rex(c, true, 0, number(reg));
  raw_byte(c, small ? 0x83 : 0x81);
  both_registers(c, 7, number(reg));
  immediate(c, small, with);
}

/* reg |= a slot of the thread */
void raw_or_slot(struct raw_code *c, reg_id_t reg, int slot) {
  raw_byte(c, 0x65); /* gs: signal_delivery_init makes sure of it */
  rex(c, true, number(reg), 0);
  raw_byte(c, 0x0b);
  raw_byte(c, (uint8_t)((number(reg) & 7) << 3 | RM_SIB));
  raw_byte(c, SIB_DISP32);
  dword(c, host_slots + (uint32_t)slot * (uint32_t)sizeof(uint64_t));
}

/* reg -= what `base` points to */
void raw_sub_memory(struct raw_code *c, reg_id_t reg, reg_id_t base) {
  rex(c, true, number(reg), number(base));
  raw_byte(c, 0x2b);
  memory(c, number(reg), number(base), 0);
}

/* The 32 bits at `base` + `offset` += by */
void raw_add_to_memory(struct raw_code *c, reg_id_t base, int8_t offset, uint32_t by) {
  bool small = by <= INT8_MAX;
  rex(c, false, 0, number(base));
  raw_byte(c, small ? 0x83 : 0x81);
  memory(c, 0, number(base), offset);
  immediate(c, small, (int32_t)by);
}

void raw_test_eax(struct raw_code *c, uint32_t value) {
  raw_byte(c, 0xa9);
  dword(c, value);
}

/* Skips the application's red zone. */
void raw_lower_stack_pointer(struct raw_code *c) {
  const uint8_t lea[] = {0x48, 0x8d, 0x64, SIB_BASE_ONLY, (uint8_t)-HI_RED_ZONE};
  for (size_t i = 0; i < sizeof lea; i++) raw_byte(c, lea[i]);
}

/* Over so many bytes behind it. */
void raw_jump(struct raw_code *c, uint8_t opcode, uint32_t over) {
  if (over > INT8_MAX) dr_abort();
  raw_byte(c, opcode);
  raw_byte(c, (uint8_t)over);
}

/* For DynamoRIO an instruction of which all is known. */
instr_t *raw_instruction(void *dc, struct raw_code *c) {
  instr_t *in = instr_create(dc);
  instr_set_opcode(in, OP_nop);
  instr_set_num_opnds(dc, in, 0, 0);
  instr_allocate_raw_bits(dc, in, c->n);
  instr_set_raw_bytes(in, c->bytes, c->n);
  instr_set_operands_valid(in, true);
  c->n = 0;
  return in;
}
