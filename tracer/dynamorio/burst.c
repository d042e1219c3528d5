/* burst.c: --sample. Each block that touches memory exists twice: as it is, and with
 * probes. header.burst, which the collector sets for whole slices, decides at the head of
 * a block which copy runs, in all threads and processes at once, so that a traced slice
 * sees everything that is shared in it. Instructions are counted in both copies: their
 * ratio says how much a traced slice stands for, per thread. */
#include "host.h"
#include "drbbdup.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CASE_PLAIN = 0, CASE_TRACED = 1 };

/* The segment's first page, mapped where inline code can reach it. */
static char flags_page[HI_PAGE_BYTES] __attribute__((aligned(4096)));

_Static_assert(sizeof(struct hi_header) <= HI_PAGE_BYTES, "burst lies in the first page");

/* drbbdup says the same of blocks without any branch only, because it looks at the one that ends
 * them too; of the others it lets drreg restore every register before each instruction. Copies
 * share nothing: their jumps cross no reservation. */
dr_emit_flags_t burst_expand(void *dc, void *tag, instrlist_t *bb, bool for_trace, bool translating) {
  (void)tag, (void)for_trace, (void)translating;
  if (!insert_expand(dc, bb)) drreg_set_bb_properties(dc, DRREG_IGNORE_CONTROL_FLOW);
  return DR_EMIT_DEFAULT;
}

static bool touches_memory(instrlist_t *bb) {
  for (instr_t *in = instrlist_first_app(bb); in; in = instr_get_next_app(in))
    if (instr_reads_memory(in) || instr_writes_memory(in)) return true;
  return false;
}

static uintptr_t set_up(void *context, void *dc, void *tag, instrlist_t *bb, bool *duplicate, bool *dynamic,
                        void *data) {
  (void)dc, (void)tag, (void)data;
  *duplicate = touches_memory(bb);
  *dynamic = false;
  if (*duplicate) drbbdup_register_case_encoding(context, CASE_TRACED);
  return CASE_PLAIN;
}

/* A block with loops inside (an expanded string instruction) gets no merged windows. */
bool burst_has_loop(instrlist_t *bb) {
  for (instr_t *in = instrlist_first(bb); in; in = instr_get_next(in))
    if (instr_is_cti(in) && instr_num_srcs(in) && opnd_is_instr(instr_get_src(in, 0))) return true;
  return false;
}

static void analyse(void *dc, void *tag, instrlist_t *bb, uintptr_t which, void *data, void *block, void **out) {
  (void)tag, (void)which, (void)data, (void)block;
  *out = block_analyse(dc, bb, probe_can_split() && !burst_has_loop(bb));
}

static void forget(void *dc, uintptr_t which, void *data, void *block, void *analysis) {
  (void)which, (void)data, (void)block;
  if (analysis) block_free(dc, analysis);
}

static dr_emit_flags_t instrument(void *dc, void *tag, instrlist_t *bb, instr_t *in, instr_t *where, bool for_trace,
                                  bool translating, uintptr_t which, void *data, void *block, void *analysis) {
  (void)data, (void)block;
  dr_emit_flags_t flags = drwrap_invoke_insert(dc, tag, bb, in, where, for_trace, translating, NULL);
  struct host_block *b = analysis;
  bool last = false;
  if (!instr_is_app(in) || !b) return flags;
  drbbdup_is_last_instr(dc, in, &last);
  if (last) block_meet_last(b, in);
  int slot = which == CASE_TRACED ? SLOT_TRACED : b->n ? SLOT_UNTRACED : SLOT_INSTRUCTIONS;
  insert_count(dc, bb, where, b, slot, last);
  if (which == CASE_TRACED) insert_probes(dc, bb, in, where, b);
  return flags;
}

/* Maps the page and takes over instrumentation. `path` names the segment. */
void burst_init(const char *path) {
  int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
  void *page = mmap(flags_page, sizeof flags_page, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0);
  if (fd < 0 || page == MAP_FAILED) dr_abort();
  close(fd);
  uint64_t *burst = &((struct hi_header *)page)->burst;
  drbbdup_options_t options = {
      .struct_size = sizeof options,
      .set_up_bb_dups = set_up,
      .analyze_case = analyse,
      .destroy_case_analysis = forget,
      .instrument_instr_ex = instrument,
      .runtime_case_opnd = opnd_create_rel_addr(burst, OPSZ_PTR),
      .non_default_case_limit = 1,
      .max_case_encoding = CASE_TRACED,
      .never_enable_dynamic_handling = true,
  };
  drmgr_priority_t before = {.struct_size = sizeof before, .name = "hither-expand", .priority = -7000};
  if (!drmgr_register_bb_app2app_event(burst_expand, &before) || drbbdup_init(&options) != DRBBDUP_SUCCESS) dr_abort();
}
