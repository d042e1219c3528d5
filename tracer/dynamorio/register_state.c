/* register_state.c: how much memory an instruction accesses that saves or restores register state.
 *
 * The components of the state that it saves are chosen by edx:eax, so the size of its operand, which is
 * that of all components of this processor, says too much: with AMX the area has 11 KiB, of which the
 * dynamic linker saves 2432 bytes. Intel's manual, volume 1, chapter 13 ("Managing state using the XSAVE
 * feature set"). That components in their initial state are not written is not taken into account. */
#include "host.h"

enum {
  CPUID_STATE = 0xd, /* leaf */
  CPUID_ECX_ALIGNED = 1 << 1,
  FIRST_EXTENDED = 2, /* x87 and SSE have their places in the legacy area */
  COMPONENTS = 64,
  LEGACY_BYTES = 512,
  HEADER_BYTES = 64,
  COMPACTION_AT = LEGACY_BYTES + 8, /* XCOMP_BV, in the header */
  COMPONENT_ALIGN = 64,
};
#define COMPACTED (1ull << 63)

static struct {
  uint32_t bytes, offset; /* in the standard format */
  bool aligned;           /* in the compacted format */
} components[COMPONENTS];
static uint64_t enabled;

void register_state_init(void) {
  if (!proc_has_feature(FEATURE_OSXSAVE)) return;
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  enabled = (uint64_t)high << 32 | low;
  for (int i = FIRST_EXTENDED; i < COMPONENTS; i++) {
    if (!(enabled >> i & 1)) continue;
    uint32_t flags = (uint32_t)i;
    uint32_t leaf = CPUID_STATE, edx;
    __asm__ volatile("cpuid" : "+a"(leaf), "=b"(components[i].offset), "+c"(flags), "=d"(edx));
    components[i].bytes = leaf;
    components[i].aligned = flags & CPUID_ECX_ALIGNED;
  }
}

static uint64_t standard_bytes(uint64_t saved) {
  uint64_t end = LEGACY_BYTES + HEADER_BYTES;
  for (int i = FIRST_EXTENDED; i < COMPONENTS; i++)
    if (saved >> i & 1 && components[i].offset + components[i].bytes > end)
      end = components[i].offset + components[i].bytes;
  return end;
}

/* Where components follow each other, the end of the last that is wanted. */
static uint64_t compacted_bytes(uint64_t all, uint64_t wanted) {
  uint64_t next = LEGACY_BYTES + HEADER_BYTES, end = next;
  for (int i = FIRST_EXTENDED; i < COMPONENTS; i++) {
    if (!(all >> i & 1)) continue;
    if (components[i].aligned) next = (next + COMPONENT_ALIGN - 1) & ~(uint64_t)(COMPONENT_ALIGN - 1);
    next += components[i].bytes;
    if (wanted >> i & 1) end = next;
  }
  return end;
}

/* The components in a saved area that is in the compacted format; 0 if it is not, or cannot be read. */
static uint64_t compaction_of(uint64_t area) {
  uint64_t components_saved = 0;
  if (!dr_safe_read((void *)(area + COMPACTION_AT), sizeof components_saved, &components_saved, NULL)) return 0;
  return components_saved & COMPACTED ? components_saved & ~COMPACTED : 0;
}

/* Bytes from `area` on that the instruction reads or writes. `requested`: edx:eax. */
uint64_t register_state_bytes(int opcode, uint64_t area, uint64_t requested) {
  uint64_t wanted = requested & enabled, compacted;
  switch (opcode) {
  case OP_fxsave32:
  case OP_fxsave64:
  case OP_fxrstor32:
  case OP_fxrstor64: return LEGACY_BYTES;
  case OP_xsavec32:
  case OP_xsavec64: return compacted_bytes(wanted, wanted);
  case OP_xrstor32:
  case OP_xrstor64:
    compacted = compaction_of(area);
    return compacted ? compacted_bytes(compacted, wanted) : standard_bytes(wanted);
  default: return standard_bytes(wanted);
  }
}

/* Calls `callee` before `in` with the address of its operand, edx:eax, its opcode, and two values. */
void register_state_insert_call(void *dc, instrlist_t *bb, instr_t *in, instr_t *where, opnd_t o, void *callee,
                                uint32_t a, uint32_t b) {
  reg_id_t r1, r2;
  drvector_t others;
  drreg_init_and_fill_vector(&others, true);
  drreg_set_vector_entry(&others, DR_REG_XAX, false);
  drreg_set_vector_entry(&others, DR_REG_XDX, false);
  drreg_set_vector_entry(&others, DR_REG_XBP, false);
  if (drreg_reserve_register(dc, bb, where, &others, &r1) != DRREG_SUCCESS ||
      drreg_reserve_register(dc, bb, where, &others, &r2) != DRREG_SUCCESS)
    dr_abort();
  drvector_delete(&others);
  stub_insert_stack_pointer(dc, bb, where);
  drreg_restore_app_values(dc, bb, where, opnd_create_reg(DR_REG_XAX), NULL);
  drreg_restore_app_values(dc, bb, where, opnd_create_reg(DR_REG_XDX), NULL);
  if (probe_address(dc, bb, where, o, 0, r1, r2))
    dr_insert_clean_call(dc, bb, where, callee, false, 6, opnd_create_reg(r1), opnd_create_reg(DR_REG_EAX),
                         opnd_create_reg(DR_REG_EDX), OPND_CREATE_INT32(instr_get_opcode(in)),
                         OPND_CREATE_INT32((int)a), OPND_CREATE_INT32((int)b));
  drreg_unreserve_register(dc, bb, where, r1);
  drreg_unreserve_register(dc, bb, where, r2);
}
