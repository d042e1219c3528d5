/* host.h: what the parts of the DynamoRIO client share. */
#ifndef HITHER_HOST_H
#define HITHER_HOST_H
#include "../core/record.h"
#include "../core/state.h"
#define DR_DO_NOT_DEFINE_bool /* stdbool.h's is the same type */
#include "dr_api.h"
#include "drmgr.h"
#include "drreg.h"
#include "drutil.h"
#include "drwrap.h"
#include "drx.h"
#include <string.h>

/* Slots of raw thread-local storage, reached by one segment-relative access. From
 * SLOT_INSTRUCTIONS on there are the three counters hi_local.instructions points to. */
enum {
  SLOT_BASE,
  SLOT_LOCAL,
  SLOT_STACK,
  SLOT_STACK_APP,
  SLOT_SAVE1,
  SLOT_SAVE2,
  SLOT_ADDRESS,
  SLOT_COUNTS,
  SLOT_INSTRUCTIONS,
  SLOT_TRACED,
  SLOT_UNTRACED,
  SLOT_IDLE, /* what hi_record_slots points to */
  SLOT_RAW,
  SLOT_RAW_END,
  SLOTS
};
extern reg_id_t host_segment;
extern uint host_slots;
opnd_t host_slot(void *dc, int slot);

/* The calling thread. Never NULL: a thread beyond the limits gets a mute one. */
struct hi_local *host_local(void *dc);

/* block.c: where a basic block touches memory, and which accesses one probe can count */
#define SAME_PLACE 3 /* accesses of one kind at one displacement that a split can tell apart */
enum host_key { KEY_ALONE, KEY_ABSOLUTE, KEY_RELATIVE };
struct host_access {
  instr_t *instr;
  opnd_t operand;
  bool write;
  enum host_key key;
  reg_id_t base, index;
  int scale;
  uint32_t bytes;
  int64_t disp;        /* relative to the registers' values at the start of the block */
  uint32_t generation; /* which values of base and index it uses */
  int window;
};
struct host_window {
  int leader; /* its first access in program order: the probe stands there */
  uint32_t reads, writes;
  int64_t low, high; /* displacements */
};
struct host_block {
  struct host_access *accesses;
  struct host_window *windows;
  int n, nwindows, capacity;
  uint32_t instructions;
  int64_t moves_stack; /* what it adds to the stack pointer, 0 if that is not known */
  instr_t *last;
  bool counted;
};
struct host_block *block_analyse(void *dc, instrlist_t *bb, bool merge);
void block_meet_last(struct host_block *b, instr_t *last);
void block_free(void *dc, struct host_block *b);
void block_masks(const struct host_block *b, int window, struct hi_site *site);
bool block_same_key(const struct host_access *a, const struct host_access *b);
bool block_on_stack(const struct host_access *a);
bool block_is_string(instr_t *in);
bool block_is_wide(instr_t *in);

/* probe.c: the inline code */
void probe_init(void);
bool probe_can_split(void);
void probe_window(void *dc, instrlist_t *bb, instr_t *where, struct host_block *b, int window, uint32_t site);
bool probe_address(void *dc, instrlist_t *bb, instr_t *where, opnd_t operand, int64_t shift, reg_id_t r1, reg_id_t r2);

/* stub.c: from inline code to hi_miss */
void stub_init(void);
void stub_forget_lock(void);
void stub_exit(void);
byte *stub_record(void);
byte *stub_for(void *dc, reg_id_t address, reg_id_t entry, reg_id_t counts, uint32_t reads, uint32_t writes);

/* insert.c: instruments a block */
dr_emit_flags_t insert_app2app(void *dc, void *tag, instrlist_t *bb, bool for_trace, bool translating, void **data);
dr_emit_flags_t insert_analysis(void *dc, void *tag, instrlist_t *bb, bool for_trace, bool translating, void *data);
dr_emit_flags_t insert_instr(void *dc, void *tag, instrlist_t *bb, instr_t *in, bool for_trace, bool translating,
                             void *data);
dr_emit_flags_t insert_done(void *dc, void *tag, instrlist_t *bb, bool for_trace, bool translating, void *data);

void insert_probes(void *dc, instrlist_t *bb, instr_t *in, instr_t *where, struct host_block *b);
void insert_count(void *dc, instrlist_t *bb, instr_t *where, struct host_block *b, int slot, bool last);
bool insert_expand(void *dc, instrlist_t *bb);

/* burst.c: with --sample, two copies of each block */
void burst_init(const char *path);
dr_emit_flags_t burst_expand(void *dc, void *tag, instrlist_t *bb, bool for_trace, bool translating);
bool burst_has_loop(instrlist_t *bb);

/* plan.c: what a recorded execution of a block says, and the description of the rest */
#define NO_SITE (-1)
struct plan_access {
  instr_t *instr;
  opnd_t operand;
  bool write, string;
  enum host_key key;
  uint32_t bytes;  /* 0: site `length` says */
  uint32_t number; /* of its instruction, from 1 */
  int site, length;
  int64_t offset;
  const struct host_access *same; /* NULL for those that no probe counts */
};
struct plan_text {
  uint8_t *bytes;
  size_t n, size;
};
struct plan {
  struct plan_access *accesses;
  int n, capacity, sites, lengths;
  int *leaders; /* by site that is an address: the access whose address it is */
  bool has_stack;
  uint32_t instructions;
  int64_t stack, moves_stack;
  struct plan_text text; /* the description */
};
struct plan *plan_make(void *dc, instrlist_t *bb, const struct host_block *b, bool loops);
void plan_free(void *dc, struct plan *plan);
uint32_t plan_publish(const struct plan *plan);

/* depend.c: which registers hold what the block's accesses read */
struct depend {
  uint32_t read;      /* 1 + the access, 0 none */
  uint32_t registers; /* else a bit for each register at the block's entry */
};
void depend_follow(instrlist_t *bb, const struct plan *plan, struct depend *of_access, struct depend *at_end);

/* record.c: --bursts and --full, two copies of each block, one of which records */
void record_init(void);
void record_wait_init(void);

/* dispatch.c: the choice between them */
void dispatch_init(void);

/* strings.c: instructions that touch a range */
void strings_insert(void *dc, instrlist_t *bb, instr_t *in, instr_t *where, uint32_t site);

/* regions.c: system calls that change the address space, create threads or replace the image */
void regions_init(void);
void regions_initial(void);
uint32_t regions_take_pending(uint64_t stack_pointer, uint32_t *creator);
void regions_forget_pending(void);

/* descriptors.c */
void descriptors_init(void);

/* signals.c: signals that the program ignores stay ignored across execve */
void signals_init(void);

/* modules.c */
void exec_init(void);
void exec_before(void *dc, int number);
void exec_after(void *dc, int number);

void modules_init(void);
void modules_forget_lock(void);
bool modules_contain(uint64_t address, uint64_t length);
bool modules_executable(uint64_t address);

/* alloc.c */
void alloc_init(void);
void alloc_forget_lock(void);
void alloc_wrap(const module_data_t *module);
void alloc_wrap_hook(app_pc function, uint32_t which);

/* functions.c: functions that switch tracing or are synchronisation points */
void functions_wrap(const module_data_t *module);
void functions_hook(app_pc function, const struct hi_hook *hook);
#endif
