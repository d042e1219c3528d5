/* host.h: declarations shared by the files of the DynamoRIO client. */
#ifndef HITHER_HOST_H
#define HITHER_HOST_H
#include "../core/burst_record.h"
#include "../core/state.h"
#define DR_DO_NOT_DEFINE_bool /* stdbool.h's is the same type */
#include "dr_api.h"
#include "drmgr.h"
#include "drreg.h"
#include "drutil.h"
#include "drwrap.h"
#include "drx.h"
#include <elf.h>
#include <signal.h>
#include <string.h>

/* Slots of raw thread-local storage, accessed relative to a segment register. SLOT_INSTRUCTIONS to
 * SLOT_BLOCK are the counters that hi_local.instructions points to. */
enum {
  SLOT_BASE,
  SLOT_LOCAL,
  SLOT_STACK,
  SLOT_STACK_APP, /* hi_local.stack_pointer points to it */
  SLOT_FRAME_APP, /* hi_local.frame_pointer points to it */
  SLOT_SAVE1,
  SLOT_SAVE2,
  SLOT_ADDRESS,
  SLOT_PROGRAM_CALL, /* hi_local.program_call points to it */
  SLOT_COUNTS,
  SLOT_INSTRUCTIONS,
  SLOT_TRACED,
  SLOT_UNTRACED,
  SLOT_BLOCK,
  SLOT_IDLE, /* SLOT_IDLE and SLOT_RAW: hi_record_slots points to them */
  SLOT_RAW,
  SLOT_RAW_END,
  SLOT_UNDELIVERED,     /* while a signal is not delivered: misses until the thread interrupts itself */
  SLOT_TRIES,           /* how often it has done so for this signal */
  SLOT_SELF_INTERRUPTS, /* of these, how many are not delivered either */
  SLOT_BLOCKED,         /* the signals that the program blocks in this thread */
  SLOTS
};
extern reg_id_t host_segment;
extern uint host_slots;
extern drvector_t host_registers; /* that code which leads to core may use: the frame pointer stays the program's */
opnd_t host_slot(void *dc, int slot);

#define HOST_STACK_BYTES (64u << 10) /* the private stack that stubs switch to */

/* The calling thread. Never NULL: a thread beyond the limits has the state of an untraced one. */
struct hi_local *host_local(void *dc);

void host_leave_run(void *dc);

/* Makes room for an element n in an array allocated by dr_thread_alloc; returns the array. */
void *host_grow(void *dc, void *array, int n, int *capacity, size_t element);

/* block.c: the memory accesses of a basic block, grouped by those that one probe can count */
#define REGISTERS 16 /* general registers */
#define SAME_PLACE 3 /* accesses of one kind at one displacement that a split can count */
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
  uint32_t generation; /* identifies the values of base and index that it uses */
  int window;
};
struct host_window {
  int leader; /* its first access in program order: the probe is inserted there */
  uint32_t reads, writes;
  int64_t low, high; /* displacements */
};
struct host_block {
  struct host_access *accesses;
  struct host_window *windows;
  int n, nwindows, capacity;
  uint32_t instructions;
  int64_t moves_stack; /* constant that it adds to the stack pointer, 0 if unknown */
  instr_t *last;
  bool counted;
};
struct host_block *block_analyse(void *dc, instrlist_t *bb, bool merge);
void block_set_last(struct host_block *b, instr_t *last);
void block_free(void *dc, struct host_block *b);
void block_masks(const struct host_block *b, int window, struct hi_site *site);
bool block_same_key(const struct host_access *a, const struct host_access *b);
bool block_has_loop(instrlist_t *bb);
bool block_on_stack(const struct host_access *a);
bool block_is_string(instr_t *in);
bool block_is_wide(instr_t *in);

/* raw_code.c: instructions as bytes */
enum { RAW_XOR = 0x31, RAW_MOV = 0x89, RAW_JBE = 0x76, RAW_JMP = 0xeb };
struct raw_code {
  uint8_t bytes[64];
  uint32_t n;
};
void raw_byte(struct raw_code *c, uint8_t byte);
void raw_rorx(struct raw_code *c, reg_id_t to, reg_id_t from, uint8_t by);
void raw_registers(struct raw_code *c, uint8_t opcode, reg_id_t to, reg_id_t from);
void raw_shr(struct raw_code *c, reg_id_t reg, uint8_t by);
void raw_and_32(struct raw_code *c, reg_id_t reg, uint32_t mask);
void raw_cmp(struct raw_code *c, reg_id_t reg, int32_t with);
void raw_or_slot(struct raw_code *c, reg_id_t reg, int slot);
void raw_sub_memory(struct raw_code *c, reg_id_t reg, reg_id_t base);
void raw_add_to_memory(struct raw_code *c, reg_id_t base, int8_t offset, uint32_t by);
void raw_test_eax(struct raw_code *c, uint32_t value);
void raw_lower_stack_pointer(struct raw_code *c);
void raw_jump(struct raw_code *c, uint8_t opcode, uint32_t over);
instr_t *raw_instruction(void *dc, struct raw_code *c);

/* probe.c: the inline code */
void probe_init(void);
bool probe_can_split(void);
void probe_window(void *dc, instrlist_t *bb, instr_t *where, struct host_block *b, int window, uint32_t site);
bool probe_address(void *dc, instrlist_t *bb, instr_t *where, opnd_t operand, int64_t shift, reg_id_t r1, reg_id_t r2);
void probe_find_entry(struct raw_code *c, reg_id_t r1, reg_id_t r2);
void probe_compare(struct raw_code *c, reg_id_t r1, reg_id_t r2, int span);
void probe_call(void *dc, instrlist_t *bb, instr_t *where, byte *stub, uint32_t site);

/* split.c: windows in two lines */
void split_init(void);
void split_forget_lock(void);
byte *split_stub(void *dc, const struct host_block *b, int window, reg_id_t r1, reg_id_t r2);
void split_insert(void *dc, instrlist_t *bb, instr_t *where, const struct host_block *b, int window, reg_id_t r1,
                  reg_id_t r2, uint32_t site);

/* stub.c: code through which inline code calls hi_miss and hi_record_flush */
void stub_init(void);
void stub_forget_lock(void);
void stub_exit(void);
bool stub_contains(const byte *pc);
byte *stub_record(void);
void stub_insert_call(void *dc, instrlist_t *bb, instr_t *where, byte *stub);
void stub_insert_stack_pointer(void *dc, instrlist_t *bb, instr_t *where);
byte *stub_append(void *dc, instrlist_t *il);
byte *stub_nested(void *dc, reg_id_t address, reg_id_t entry, reg_id_t counts, bool upper);
byte *stub_for(void *dc, reg_id_t address, reg_id_t entry, reg_id_t counts, uint32_t reads, uint32_t writes);

/* insert.c: instruments a block */
dr_emit_flags_t insert_app2app(void *dc, void *tag, instrlist_t *bb, bool for_trace, bool translating, void **data);
dr_emit_flags_t insert_analysis(void *dc, void *tag, instrlist_t *bb, bool for_trace, bool translating, void *data);
dr_emit_flags_t insert_instr(void *dc, void *tag, instrlist_t *bb, instr_t *in, bool for_trace, bool translating,
                             void *data);
dr_emit_flags_t insert_done(void *dc, void *tag, instrlist_t *bb, bool for_trace, bool translating, void *data);

void insert_probes(void *dc, instrlist_t *bb, instr_t *in, instr_t *where, struct host_block *b);
void insert_count(void *dc, instrlist_t *bb, instr_t *where, struct host_block *b, int slot, bool last);
void insert_leave(void *dc, instrlist_t *bb, instr_t *in, instr_t *where);
bool insert_expand(void *dc, instrlist_t *bb);

/* sample.c: slice sampling (--sample): two copies of each block, one of which has probes */
void sample_init(const char *path);
bool sample_detach(void);

/* plan.c: the sites of a recorded block, and its description */
#define NO_SITE (-1)
struct plan_access {
  instr_t *instr;
  opnd_t operand;
  bool write, string, wide;
  enum host_key key;
  uint32_t bytes;  /* 0: the value of site `length` */
  uint32_t number; /* of its instruction, from 1 */
  int site, length;
  int64_t offset;
  const struct host_access *same; /* the access in the host_block; NULL for string and wide instructions */
};
struct plan_text {
  uint8_t *bytes;
  size_t n, size;
};
struct plan {
  struct plan_access *accesses;
  int n, capacity, sites, lengths;
  int *leaders; /* for each site that is an address: the access that has this address */
  bool has_stack;
  uint32_t instructions;
  int64_t stack, moves_stack;
  struct plan_text text; /* the description */
};
struct plan *plan_make(void *dc, instrlist_t *bb, const struct host_block *b, bool loops);
void plan_free(void *dc, struct plan *plan);
uint32_t plan_publish(const struct plan *plan);

/* depend.c: data dependences from the block's reads to addresses and registers */
struct depend {
  uint32_t read;      /* 1 + the access that is waited for, 0: none */
  uint32_t registers; /* without a read: bit per register, by its value at the block's entry */
};
void depend_follow(instrlist_t *bb, const struct plan *plan, struct depend *of_access, struct depend *at_end);

/* burst_record.c: burst recording (--bursts, --full): two copies of each block, one of which
 * records */
void burst_record_init(void);

/* waits.c: time that recorded threads wait in the kernel */
void waits_init(void);

/* dispatch.c: the choice between the copies of a recorded block */
void dispatch_init(void);

/* register_state.c: the memory of instructions that save or restore register state */
void register_state_init(void);
uint64_t register_state_bytes(int opcode, uint64_t area, uint64_t requested);
void register_state_insert_call(void *dc, instrlist_t *bb, instr_t *in, instr_t *where, opnd_t o, void *callee,
                                uint32_t a, uint32_t b);

/* strings.c: instructions that access a range */
void strings_insert(void *dc, instrlist_t *bb, instr_t *in, instr_t *where, uint32_t site);
/* An access for each line of a range. */
/* What has to be known of a gather or scatter to count its accesses; as one argument of a call. */
union host_gather {
  struct {
    uint32_t mask : 5, index : 5, base : 5, scale : 4, elements : 5;
    uint32_t index_is_64 : 1, value_bytes : 4, writes : 1;
    uint32_t in_vector : 1; /* the mask: the signs of a vector's elements, as of AVX2 */
  };
  uint32_t word;
};

/* Its index, and its mask, of the thread that executes it; they follow its hi_local. */
struct host_vectors {
  uint64_t index[8], mask[8];
};
#define HOST_VECTORS sizeof(struct hi_local)

void gathers_count(struct hi_local *t, uint64_t base, uint32_t word, int displacement, uint32_t site);
void strings_count(struct hi_local *t, uint64_t address, uint64_t bytes, bool write, uint32_t site);

/* gathers.c, gathers_lean.c */
bool gathers_is_gather(instr_t *in);
void gathers_insert(void *dc, instrlist_t *bb, instr_t *in, instr_t *where, uint32_t site);

/* regions.c: system calls that change the address space, create threads or replace the image */
void regions_init(void);
bool regions_take_pending(uint64_t stack, uint32_t *index, uint32_t *creator);
void regions_forget_pending(void);

/* descriptors.c: close_range */
void descriptors_init(void);

/* own_executable.c: /proc/self/exe */
void own_executable_init(void);

/* kernel_writes.c: system calls that write to pages with code */
void kernel_writes_init(void);

/* signals.c: signals that the program ignores stay ignored across execve */
#define SIGNALS 64
struct signal_action { /* struct sigaction as the kernel has it on x86-64 */
  void *handler;
  uint64_t flags;
  void *restorer;
  uint64_t mask;
};
void signals_init(void);
bool signals_action(int signal, const struct signal_action *new, struct signal_action *old);
void signals_exec_failed(void *dc);

/* process_signals.c: signals for the process reach a thread that can take them */
void process_signals_init(void);
void process_signals_after_fork(uint32_t index, int tid);
void process_signals_inherit(uint32_t index);
void process_signals_thread_starts(uint32_t index, int tid);
bool process_signals_hold(int signal, siginfo_t *info, uint64_t blocked, uint32_t index);

/* signal_delivery_lean.c: signals that arrive while core runs */
void signal_delivery_init(void);
void signal_delivery_watch(int signal);
void signal_delivery_remind(void);
uint64_t host_blocked(void); /* the signals that the program blocks in the calling thread */
void host_set_blocked(uint64_t signals);

/* seccomp.c: the program's filters; whether the system call in progress is skipped. The callbacks
 * before it are called all the same, and must then do nothing, as no callback comes after it. */
void seccomp_init(void);
bool seccomp_refused(void *dc);

/* exec.c: the brk heap, across execve too */
void exec_init(void);

void exec_before(void *dc, int number);
void exec_after(void *dc, int number);

/* credentials.c: leaves the run when the process gives up rights */
void credentials_init(const char *segment_path);
void credentials_after_fork(void *dc);
int64_t credentials_exec(void *dc, int number, const uint64_t *a);

/* virtual_machines.c: leaves those that a traced program executes to themselves */
void virtual_machines_leave(void);

/* exports.c: the functions that a loaded ELF file exports */
struct exports {
  uint64_t start, end, shift;                /* of the file in memory, and against the addresses in it */
  uint64_t symbols, strings, gnu_hash, hash; /* addresses of its tables; 0: none */
};
struct exports exports_of(const module_data_t *module);
app_pc exports_find(const struct exports *exports, const char *function); /* NULL: none */
app_pc exports_find_symbol(const struct exports *exports, const char *name, uint32_t type);

/* modules.c: loaded ELF files */
void modules_init(void);
void modules_forget_lock(void);
bool modules_contain(uint64_t address, uint64_t length);
bool modules_executable(uint64_t address);
bool modules_system(uint64_t address);
bool modules_program_header(uint64_t start, uint32_t kind, Elf64_Phdr *found); /* of a file in memory; false: none */

/* alloc.c: heap blocks */
void alloc_init(void);
void alloc_forget_lock(void);
void alloc_wrap(const module_data_t *module, const struct exports *exports);
void alloc_wrap_hook(app_pc function, uint32_t which);
/* With a HI_ALLOC_*: what callers that have the rest of an allocation function within their own code call. Small
 * blocks are often taken and given back without it, so that only those of more than HI_INLINED_MOST bytes are
 * counted, which are not (jemalloc 5.3: SC_SMALL_MAXCLASS is 14 KiB with pages of 4 KiB). */
#define HI_ALLOC_OUT_OF_LINE 0x100u
#define HI_INLINED_MOST (14u << 10)
struct allocation_function {
  const char *name;
  uint32_t which; /* HI_ALLOC_* */
};
#define ALLOCATION_FUNCTIONS 13
extern const struct allocation_function allocation_functions[ALLOCATION_FUNCTIONS]; /* of C and C++ */
/* And those under names of its own that it may not export. */
void linked_allocators_wrap(const module_data_t *module);
void alloc_mapped(void *dc, uint64_t address, uint64_t size);
void alloc_shared(void *dc, uint64_t address, uint64_t size);
void alloc_remapped(void *dc, uint64_t from, uint64_t old_size, uint64_t to, uint64_t size);

/* creation.c: by what call a thread is created, and who waits for its end */
void creation_init(void);
void creation_wrap(const struct exports *exports);
struct hi_creation creation_in_progress(void *dc, const struct hi_local *t, int number, const uint64_t *a);

/* variables.c: the variables of loaded ELF files */
void variables_load(const module_data_t *module);
void variables_unload(const module_data_t *module);

/* thread_locals.c: thread-local variables */
void thread_locals_load(uint64_t file);
void thread_locals_wrap(const struct exports *exports);
void thread_locals_begin(struct hi_local *t, uint64_t thread_pointer);
void thread_locals_poll(struct hi_local *t);
void thread_locals_enter(struct hi_local *t);
void thread_locals_after_fork(struct hi_local *t, uint64_t thread_pointer);
void thread_locals_leave(struct hi_local *t);

/* functions.c: functions that switch tracing or are synchronisation points */
void functions_wrap(const module_data_t *module, const struct exports *exports);
void functions_hook(app_pc function, const struct hi_hook *hook);
#endif
