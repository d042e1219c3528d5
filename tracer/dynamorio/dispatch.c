/* dispatch.c: the choice between the two copies of a block.
 *
 * drbbdup makes
 *
 *     mov  gs:[spilled], rcx ; mov rcx, gs:[SLOT_IDLE]
 *     jrcxz recorded ; jmp counted
 *   recorded:
 *     mov  rcx, gs:[spilled] ; add gs:[SLOT_INSTRUCTIONS], n ; ...
 *   counted:
 *     mov  rcx, gs:[spilled] ; add gs:[SLOT_INSTRUCTIONS], n ; ...
 *
 * and leaves out the moves of rcx if rcx is dead. If both copies start with the count, so that
 * the flags are dead too, the sign of the counter can be tested instead of SLOT_IDLE, see
 * hi_record_enable:
 *
 *     add  gs:[SLOT_INSTRUCTIONS], n ; jns counted
 *
 * Other blocks are left as drbbdup made them. */
#include "host.h"

/* The instructions above; `spill` and `restores` are NULL if rcx is dead. */
struct dispatch {
  instr_t *spill, *load, *test, *jump;
  instr_t *restores[2], *counts[2];
};

static instr_t *code_from(instr_t *in) {
  while (in && instr_is_label(in)) in = instr_get_next(in);
  return in;
}

static instr_t *code_after(instr_t *in) { return code_from(instr_get_next(in)); }

static bool is_meta(instr_t *in, int opcode) { return in && instr_is_meta(in) && instr_get_opcode(in) == opcode; }

static bool loads(instr_t *in, opnd_t from) { return is_meta(in, OP_mov_ld) && opnd_same(instr_get_src(in, 0), from); }

static bool find_copy(void *dc, struct dispatch *d, int copy, instr_t *in) {
  d->restores[copy] = NULL;
  if (d->spill) {
    if (!loads(in, instr_get_dst(d->spill, 0))) return false;
    d->restores[copy] = in;
    in = code_after(in);
  }
  d->counts[copy] = in;
  return is_meta(in, OP_add) && opnd_same(instr_get_dst(in, 0), host_slot(dc, SLOT_INSTRUCTIONS));
}

static bool find(void *dc, instrlist_t *bb, struct dispatch *d) {
  d->load = code_from(instrlist_first(bb));
  d->spill = NULL;
  if (is_meta(d->load, OP_mov_st)) {
    d->spill = d->load;
    d->load = code_after(d->spill);
  }
  if (!loads(d->load, host_slot(dc, SLOT_IDLE))) return false;
  d->test = code_after(d->load);
  if (!is_meta(d->test, OP_jecxz)) return false;
  d->jump = code_after(d->test);
  if (!is_meta(d->jump, OP_jmp) || !opnd_is_instr(instr_get_target(d->jump))) return false;
  return find_copy(dc, d, 0, code_after(d->jump)) &&
         find_copy(dc, d, 1, code_from(opnd_get_instr(instr_get_target(d->jump)))) &&
         opnd_same(instr_get_src(d->counts[0], 0), instr_get_src(d->counts[1], 0));
}

static void drop(void *dc, instrlist_t *bb, instr_t *in) {
  if (!in) return;
  instrlist_remove(bb, in);
  instr_destroy(dc, in);
}

static dr_emit_flags_t shorten(void *dc, void *tag, instrlist_t *bb, bool for_trace, bool translating) {
  (void)tag, (void)for_trace, (void)translating;
  struct dispatch d;
  if (!find(dc, bb, &d)) return DR_EMIT_DEFAULT;
  instrlist_remove(bb, d.counts[0]);
  instrlist_meta_preinsert(bb, d.load, d.counts[0]);
  instrlist_meta_preinsert(bb, d.load, INSTR_CREATE_jcc(dc, OP_jns, instr_get_target(d.jump)));
  drop(dc, bb, d.spill);
  drop(dc, bb, d.load);
  drop(dc, bb, d.test);
  drop(dc, bb, d.jump);
  drop(dc, bb, d.restores[0]);
  drop(dc, bb, d.restores[1]);
  drop(dc, bb, d.counts[1]);
  return DR_EMIT_DEFAULT;
}

void dispatch_init(void) {
  if (!drmgr_register_bb_instru2instru_event(shorten, NULL)) dr_abort();
}
