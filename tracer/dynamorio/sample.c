/* sample.c: slice sampling (--sample). Each block that accesses memory has two copies: one
 * without and one with probes. header.slice_traced, which the collector sets for whole slices,
 * selects the copy at the head of a block, in all threads and processes at the same time, so
 * that all sharing within a traced slice is seen. Accesses are counted in both copies by their
 * instructions: their ratio is the sampling factor of a thread. (By instructions alone, code that
 * accesses much would count for too little, as tracing slows it most.) */
#include "copies.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CASE_PLAIN = 0, CASE_TRACED = 1 };

/* The segment's first page, mapped where inline code can address it. */
static char header_page[HI_PAGE_BYTES] __attribute__((aligned(4096)));

_Static_assert(sizeof(struct hi_header) <= HI_PAGE_BYTES, "slice_traced is in the first page");

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

static void analyse(void *dc, void *tag, instrlist_t *bb, uintptr_t which, void *data, void *block, void **out) {
  (void)tag, (void)which, (void)data, (void)block;
  *out = block_analyse(dc, bb, probe_can_split() && !block_has_loop(bb));
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
  if (last) block_set_last(b, in);
  insert_count(dc, bb, where, b, which == CASE_TRACED ? SLOT_TRACED : SLOT_UNTRACED, last);
  if (which == CASE_TRACED) insert_probes(dc, bb, in, where, b);
  insert_leave(dc, bb, in, where);
  return flags;
}

/* No slice is traced any more. False if the kernel refuses. */
bool sample_detach(void) {
  if (!(hi_run.header->flags & HI_FLAG_SAMPLE)) return true;
  int kind = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
  return mmap(header_page, sizeof header_page, PROT_READ, kind, -1, 0) != MAP_FAILED;
}

/* `path`: of the segment. */
void sample_init(const char *path) {
  int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
  void *page = mmap(header_page, sizeof header_page, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0);
  if (fd < 0 || page == MAP_FAILED) dr_abort();
  close(fd);
  uint64_t *slice_traced = &((struct hi_header *)page)->slice_traced;
  drbbdup_options_t options = {
      .set_up_bb_dups = set_up,
      .analyze_case = analyse,
      .destroy_case_analysis = forget,
      .instrument_instr_ex = instrument,
      .runtime_case_opnd = opnd_create_rel_addr(slice_traced, OPSZ_PTR),
  };
  copies_init(&options);
}
