/* depend.c: data dependences in a block: which reads the addresses and the registers at its end
 * depend on. The simulator lets an access wait for the read that its address comes from. A value
 * computed from several reads depends on the latest; the stack pointer, vector registers and
 * flags count as known. */
#include "host.h"

static int slot_of(reg_id_t reg) {
  if (!reg_is_gpr(reg)) return -1;
  reg_id_t whole = reg_to_pointer_sized(reg);
  return whole == DR_REG_RSP ? -1 : (int)(whole - DR_REG_START_64);
}

static struct depend later(struct depend a, struct depend b) {
  if (a.read || b.read) return (struct depend){.read = a.read > b.read ? a.read : b.read};
  return (struct depend){.registers = a.registers | b.registers};
}

static struct depend of_register(const struct depend *now, reg_id_t reg) {
  int slot = slot_of(reg);
  return slot < 0 ? (struct depend){0} : now[slot];
}

static struct depend of_address(const struct depend *now, opnd_t o) {
  struct depend d = {0};
  if (opnd_is_base_disp(o)) d = later(of_register(now, opnd_get_base(o)), of_register(now, opnd_get_index(o)));
  return d;
}

/* xor r, r or sub r, r: depends on nothing. */
static bool makes_zero(instr_t *in) {
  int op = instr_get_opcode(in);
  return (op == OP_xor || op == OP_sub) && opnd_is_reg(instr_get_src(in, 0)) &&
         opnd_same(instr_get_src(in, 0), instr_get_src(in, 1));
}

/* What the result of the instruction depends on: its operands and its accesses [first, end). */
static struct depend result_of(instr_t *in, const struct plan *p, int first, int end, const struct depend *now) {
  struct depend d = {0};
  int op = instr_get_opcode(in);
  if (makes_zero(in) || op == OP_syscall || op == OP_cpuid || op == OP_rdtsc) return d;
  for (int i = first; i < end; i++)
    if (!p->accesses[i].write) d = later(d, (struct depend){.read = (uint32_t)i + 1});
  for (int i = 0; i < instr_num_srcs(in); i++) {
    opnd_t o = instr_get_src(in, i);
    if (opnd_is_reg(o)) d = later(d, of_register(now, opnd_get_reg(o)));
    else if (op == OP_lea) d = later(d, of_address(now, o));
  }
  return d;
}

/* An instruction with a predicate, or one that writes 8 or 16 bits, keeps the old dependence too. */
static void set(instr_t *in, struct depend d, struct depend *now) {
  for (int i = 0; i < instr_num_dsts(in); i++) {
    opnd_t o = instr_get_dst(in, i);
    int slot = opnd_is_reg(o) ? slot_of(opnd_get_reg(o)) : -1;
    if (slot < 0) continue;
    bool keeps = instr_is_predicated(in) || opnd_size_in_bytes(opnd_get_size(o)) < 4;
    now[slot] = keeps ? later(now[slot], d) : d;
  }
  if (instr_get_opcode(in) == OP_syscall) now[DR_REG_RAX - DR_REG_START_64] = (struct depend){0};
}

void depend_follow(instrlist_t *bb, const struct plan *p, struct depend *of_access, struct depend *now) {
  for (int r = 0; r < REGISTERS; r++) now[r] = (struct depend){.registers = 1u << r};
  int first = 0;
  for (instr_t *in = instrlist_first_app(bb); in; in = instr_get_next_app(in)) {
    int end = first;
    for (; end < p->n && p->accesses[end].instr == in; end++)
      of_access[end] = of_address(now, p->accesses[end].operand);
    set(in, result_of(in, p, first, end, now), now);
    first = end;
  }
}
