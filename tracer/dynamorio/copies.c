/* copies.c: what slice sampling (sample.c) and burst recording (burst_record.c) share. drbbdup
 * makes two copies of each block, instrumented by the caller, and tests at the head of the
 * block which of them runs. */
#include "copies.h"

enum { EXPAND_PRIORITY = -7000 }; /* before drbbdup, which copies the block */

/* Where the expansion adds no branches, nothing but the branch at the end leaves the block, and
 * drreg may keep registers reserved across instructions. drbbdup says so itself only for blocks
 * without any branch, the one at the end included; in all others drreg would restore every
 * register before each instruction. No jump from one copy to the other crosses a reservation. */
static dr_emit_flags_t expand(void *dc, void *tag, instrlist_t *bb, bool for_trace, bool translating) {
  (void)tag, (void)for_trace, (void)translating;
  if (!insert_expand(dc, bb)) drreg_set_bb_properties(dc, DRREG_IGNORE_CONTROL_FLOW);
  return DR_EMIT_DEFAULT;
}

/* The caller has set its callbacks and the operand that is tested, which is 0 or 1. */
void copies_init(drbbdup_options_t *options) {
  options->struct_size = sizeof *options;
  options->non_default_case_limit = 1;
  options->max_case_encoding = 1;
  options->never_enable_dynamic_handling = true;
  drmgr_priority_t first = {.struct_size = sizeof first, .name = "hither-expand", .priority = EXPAND_PRIORITY};
  if (!drmgr_register_bb_app2app_event(expand, &first) || drbbdup_init(options) != DRBBDUP_SUCCESS) dr_abort();
}
