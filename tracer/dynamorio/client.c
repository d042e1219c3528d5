/* client.c: the DynamoRIO client: maps the segment, registers processes and threads, and starts
 * the instrumentation.
 *
 * One argument: the path of the run's segment. If it cannot be opened the run is over and the
 * program runs on untraced. There are no client threads: they make exits hang. */
#include "../core/object_map.h"
#include "host.h"
#include <elf.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

reg_id_t host_segment;
uint host_slots;
drvector_t host_registers;
static int local_slot;

/* What the compiler puts between a function's variables and its return address. */
__attribute__((visibility("hidden"))) uintptr_t __stack_chk_guard = 0x2ee5c0de0a0dff00;
__attribute__((visibility("hidden"), noreturn)) void __stack_chk_fail(void);

void __stack_chk_fail(void) {
  dr_abort();
  __builtin_unreachable();
}

struct thread_memory {
  struct hi_local local;
  struct host_vectors vectors;
  struct hi_recorder *recorder; /* NULL unless HI_FLAG_RECORD */
  struct hi_thread untraced;    /* in place of the slot in the segment */
  char *caches;                 /* of an untraced thread */
  char stack[HOST_STACK_BYTES] __attribute__((aligned(64)));
};
_Static_assert(offsetof(struct thread_memory, vectors) == HOST_VECTORS, "where the inline code stores them");

opnd_t host_slot(void *dc, int slot) {
  return dr_raw_tls_opnd(dc, host_segment, host_slots + (uint)slot * sizeof(void *));
}

struct hi_local *host_local(void *dc) {
  return drmgr_get_tls_field(dc, local_slot);
}

void *host_grow(void *dc, void *array, int n, int *capacity, size_t element) {
  enum { FIRST_CAPACITY = 32 };
  if (n < *capacity) return array;
  int old = *capacity;
  *capacity = old ? 2 * old : FIRST_CAPACITY;
  void *more = dr_thread_alloc(dc, (size_t)*capacity * element);
  if (old) {
    memcpy(more, array, (size_t)old * element);
    dr_thread_free(dc, array, (size_t)old * element);
  }
  return more;
}

static uint64_t volatile *slots_here(void) {
  return (uint64_t volatile *)(void *)((byte *)dr_get_dr_segment_base(host_segment) + host_slots);
}

static size_t caches_size(void) {
  size_t entries = 2 * ((size_t)hi_run.index_mask + 1);
  return hi_cache_bytes() + entries * (sizeof(struct hi_entry) + sizeof(struct hi_side));
}

/* A thread beyond the limits runs the inline code too: it gets line caches outside the segment. */
static void start_untraced(struct thread_memory *m, uint64_t volatile *slots) {
  struct hi_local *t = &m->local;
  m->caches = dr_raw_mem_alloc(caches_size(), DR_MEMPROT_READ | DR_MEMPROT_WRITE, NULL);
  if (!m->caches) dr_abort();
  memset(t, 0, sizeof *t);
  uint64_t aligned = hi_aligned((uint64_t)m->caches, hi_cache_bytes());
  hi_place_caches(t, (void *)aligned, 0);
  t->shared = &m->untraced;
  t->directory = hi_run.directory;
  t->comm = hi_run.comm;
  slots[SLOT_BLOCK] = HI_NO_BLOCK;
  t->base_slot = &slots[SLOT_BASE];
  t->instructions = &slots[SLOT_INSTRUCTIONS];
  slots[SLOT_BASE] = (uint64_t)t->current;
}

static void enter_thread(void *dc, struct thread_memory *m, uint32_t index, uint32_t creator, uint64_t stack_pointer) {
  uint64_t volatile *slots = slots_here();
  struct hi_local *t = &m->local;
  slots[SLOT_LOCAL] = (uint64_t)t;
  slots[SLOT_STACK] = (uint64_t)(m->stack + HOST_STACK_BYTES);
  slots[SLOT_IDLE] = 1; /* after a fork its value is the parent's */
  slots[SLOT_INSTRUCTIONS] = 0;
  slots[SLOT_PROGRAM_CALL] = 0;
  slots[SLOT_STACK_APP] = 0;
  slots[SLOT_FRAME_APP] = 0;
  slots[SLOT_UNDELIVERED] = 0;
  slots[SLOT_SELF_INTERRUPTS] = 0;
  bool traced = hi_run.process && index &&
                hi_thread_start(t, index, (int)dr_get_thread_id(dc), creator, stack_pointer, &slots[SLOT_BASE],
                                &slots[SLOT_INSTRUCTIONS]);
  if (!traced) start_untraced(m, slots);
  t->program_call = &slots[SLOT_PROGRAM_CALL];
  t->stack_pointer = &slots[SLOT_STACK_APP];
  t->frame_pointer = &slots[SLOT_FRAME_APP];
  drmgr_set_tls_field(dc, local_slot, t);
  if (traced && m->recorder) {
    slots[SLOT_RAW_END] = (uint64_t)(m->recorder->raw + HI_RAW_WORDS);
    hi_record_start(t, m->recorder, (struct hi_record_slots){&slots[SLOT_IDLE], &slots[SLOT_RAW]});
  }
  char name[16];
  if (traced && prctl(PR_GET_NAME, name) == 0) hi_thread_name(t, name);
}

static uint64_t stack_pointer_of(void *dc) {
  dr_mcontext_t mc = {.size = sizeof mc, .flags = DR_MC_CONTROL};
  return dr_get_mcontext(dc, &mc) ? mc.xsp : 0;
}

static bool recording(void) { return hi_run.header->flags & HI_FLAG_RECORD; }

static void on_thread_init(void *dc) {
  struct thread_memory *m = dr_raw_mem_alloc(sizeof *m, DR_MEMPROT_READ | DR_MEMPROT_WRITE, NULL);
  if (!m) dr_abort();
  host_set_blocked(~0ull); /* until process_signals_thread_starts */
  if (recording() && !(m->recorder = dr_raw_mem_alloc(sizeof *m->recorder, DR_MEMPROT_READ | DR_MEMPROT_WRITE, NULL)))
    dr_abort();
  uint64_t stack_pointer = stack_pointer_of(dc);
  uint32_t index = 0, creator = 0;
  if (hi_run.process && !regions_take_pending(stack_pointer, &index, &creator)) index = hi_thread_reserve(NULL);
  enter_thread(dc, m, index, creator, stack_pointer);
  thread_locals_enter(&m->local);
  process_signals_thread_starts(index, (int)dr_get_thread_id(dc));
}

/* False for a thread of the parent that DynamoRIO ends in the child of a fork: in the parent it
 * runs on. */
static bool is_of_this_process(const struct hi_local *t) {
  return hi_run.processes[t->shared->process].pid == getpid();
}

/* Reads a small file of /proc and terminates it with 0; returns its length. */
static size_t read_text(const char *path, char *to, size_t size) {
  file_t f = dr_open_file(path, DR_FILE_READ);
  size_t n = 0;
  if (f != INVALID_FILE) {
    for (ssize_t got; n + 1 < size && (got = dr_read_file(f, to + n, size - 1 - n)) > 0;) n += (size_t)got;
    dr_close_file(f);
  }
  to[n] = 0;
  return n;
}

/* The name of a thread, which only /proc tells of others than the one that asks. */
static void read_name(struct hi_local *t) {
  char path[64], name[32] = "";
  snprintf(path, sizeof path, "/proc/self/task/%d/comm", t->shared->tid);
  if (read_text(path, name, sizeof name) == 0) return;
  name[strcspn(name, "\n")] = 0;
  hi_thread_name(t, name);
}

static void on_thread_exit(void *dc) {
  struct hi_local *t = host_local(dc);
  if (t->index && is_of_this_process(t)) {
    read_name(t); /* at the exit of the process its last thread comes here for all that live */
    hi_thread_end(t);
    thread_locals_leave(t);
  } else if (!t->index) {
    dr_raw_mem_free(((struct thread_memory *)t)->caches, caches_size());
  } else if (hi_locals[t->index] == t) {
    /* A vfork'ed child shares this memory under another pid. Its counts stay in the segment for
     * the collector, but its base must not be flipped any more. */
    hi_tick_lock();
    hi_locals[t->index] = NULL;
    hi_tick_unlock();
  }
  /* Only for threads that end before the process: at its exit all memory is freed anyway. */
  struct thread_memory *m = (struct thread_memory *)t;
  uint64_t volatile *slots = slots_here(); /* of this thread or of one that ends all others */
  if (slots[SLOT_LOCAL] == (uint64_t)t) slots[SLOT_LOCAL] = 0;
  if (m->recorder) dr_raw_mem_free(m->recorder, sizeof *m->recorder);
  dr_raw_mem_free(m, sizeof *m);
}

/* The bounds of the main stack: the mapping [stack], extended down to its limit. */
static void main_stack(uint64_t *top, uint64_t *limit) {
  enum { MAPS_BYTES = 1 << 20, DEFAULT_STACK = 8 << 20 };
  *top = *limit = 0;
  char *maps = dr_raw_mem_alloc(MAPS_BYTES, DR_MEMPROT_READ | DR_MEMPROT_WRITE, NULL);
  if (!maps) return;
  read_text("/proc/self/maps", maps, MAPS_BYTES);
  char *line = strstr(maps, "[stack]");
  while (line && line > maps && line[-1] != '\n') line--;
  unsigned long start, end;
  if (line && sscanf(line, "%lx-%lx", &start, &end) == 2) {
    struct rlimit r;
    uint64_t room = getrlimit(RLIMIT_STACK, &r) == 0 && r.rlim_cur != RLIM_INFINITY ? r.rlim_cur : DEFAULT_STACK;
    *top = end;
    *limit = end - start > room ? start : end - room;
  }
  dr_raw_mem_free(maps, MAPS_BYTES);
}

/* Ends the process image that this pid had before an exec; returns its ordinal, 0 if none. */
static uint32_t replaced_image(int pid) {
  uint32_t found = 0, n = hi_run.header->next_process;
  for (uint32_t i = 1; i < n && i < HI_MAX_PROCESSES; i++)
    if (hi_run.processes[i].pid == pid && hi_run.processes[i].state == HI_PROCESS_LIVE) {
      hi_run.processes[i].end_ns = hi_now();
      __atomic_store_n(&hi_run.processes[i].state, HI_PROCESS_EXECED, __ATOMIC_RELEASE);
      found = i;
    }
  return found;
}

static void enter_process(uint32_t parent, bool forked) {
  uint64_t top, limit;
  main_stack(&top, &limit);
  const char *path = dr_get_application_name();
  module_data_t *main_module = dr_get_main_module();
  if (main_module && main_module->full_path) path = main_module->full_path;
  hi_process_start(getpid(), getppid(), parent, forked, path, top, limit);
  if (main_module) dr_free_module_data(main_module);
}

static void on_fork(void *dc) {
  uint32_t parent = hi_run.process;
  hi_process_wipe_map();
  hi_threads_forget();
  regions_forget_pending();
  modules_forget_lock();
  alloc_forget_lock();
  stub_forget_lock();
  split_forget_lock();
  if (parent) enter_process(parent, true);
  struct thread_memory *m = (struct thread_memory *)host_local(dc);
  uint32_t index = m->local.child_index; /* reserved before the fork: indices follow its order */
  uint64_t thread_pointer = m->local.thread_pointer;
  enter_thread(dc, m, hi_run.process ? index : 0, 0, stack_pointer_of(dc));
  thread_locals_after_fork(&m->local, thread_pointer);
  process_signals_after_fork(m->local.index, (int)dr_get_thread_id(dc));
  credentials_after_fork(dc);
}

/* Threads do not notice when another one names them (pthread_setname_np). */
static void read_names(void) {
  for (uint32_t i = 1; i < HI_MAX_THREADS; i++)
    if (hi_locals[i]) read_name(hi_locals[i]);
}

static void close_process(void *dc) {
  hi_record_end(host_local(dc));
  read_names();
  hi_threads_close(NULL);
}

/* The process runs on untraced. */
void host_leave_run(void *dc) {
  hi_switch(host_local(dc));
  hi_flush(host_local(dc)); /* in the slice in which others find what they share with it */
  close_process(dc);
  if (!sample_detach() || !hi_detach()) dr_abort();
}

static void on_process_exit(void) {
  if (!hi_run.process) return;
  close_process(dr_get_current_drcontext());
  hi_process_end(HI_PROCESS_EXITED);
  hi_emit(NULL, HI_EV_EXIT, 0, NULL, 0, NULL);
}

static void start_extensions(bool copies) {
  drreg_options_t registers = {.struct_size = sizeof registers, .num_spill_slots = 5, .conservative = false};
  drwrap_global_flags_t control = copies ? DRWRAP_INVERT_CONTROL : 0;
  drwrap_set_global_flags(DRWRAP_NO_FRILLS | DRWRAP_FAST_CLEANCALLS | DRWRAP_SAFE_READ_RETADDR | control);
  if (!drutil_init() || !drwrap_init() || !drx_init() || drreg_init(&registers) != DRREG_SUCCESS) dr_abort();
  drreg_init_and_fill_vector(&host_registers, true);
  drreg_set_vector_entry(&host_registers, DR_REG_XBP, false);
  if (!dr_raw_tls_calloc(&host_segment, &host_slots, SLOTS, 0)) dr_abort();
}

/* Hides the variables that started DynamoRIO from the program. DynamoRIO has read them and
 * passes them to exec'ed children itself. The auxiliary vector must follow the environment on
 * the stack, so it is moved down behind the variables that are left. */
static void hide_environment(void) {
  static const char prefix[] = "DYNAMORIO_";
  static const char blanked[] = "__disabled__"; /* how DynamoRIO overwrites a variable that it unsets */
  char **from = environ, **to = environ;
  if (!from) return;
  for (; *from; from++)
    if (strncmp(*from, prefix, sizeof prefix - 1) != 0 && strcmp(*from, blanked) != 0) *to++ = *from;
  if (to == from) return;
  uint64_t *words = (uint64_t *)(from + 1);
  size_t n = 0;
  while (words[n] != AT_NULL) n += 2;
  *to = NULL;
  memmove(to + 1, words, (n + 2) * sizeof *words);
}

/* Of what the kernel gives each program that it starts: the auxiliary vector follows the environment. */
static void choose_guard(void) {
  char **end = environ;
  if (!end) return;
  while (*end) end++;
  for (const uint64_t *word = (const uint64_t *)(end + 1); *word != AT_NULL; word += 2) {
    const uint64_t *random = (const uint64_t *)word[1];
    if (*word == AT_RANDOM) __stack_chk_guard = (random[0] * HI_HASH_MULTIPLIER ^ random[1]) << 8; /* no text has a 0 */
  }
}

DR_EXPORT __attribute__((no_stack_protector)) void dr_client_main(client_id_t id, int argc, const char *argv[]) {
  (void)id;
  choose_guard();
  hide_environment();
  if (!drmgr_init()) dr_abort();
  seccomp_init();
  signals_init();
  descriptors_init();
  kernel_writes_init();
  own_executable_init();
  if (argc < 2 || !hi_attach(argv[1])) return;
  uint32_t replaced = replaced_image(getpid());
  virtual_machines_leave();
  if (!hi_objects_init()) dr_abort();
  bool sampling = hi_run.header->flags & HI_FLAG_SAMPLE;
  start_extensions(sampling || recording());
  local_slot = drmgr_register_tls_field();
  probe_init();
  register_state_init();
  stub_init();
  split_init();
  signal_delivery_init();
  process_signals_init();
  alloc_init();
  creation_init();
  drmgr_register_thread_init_event(on_thread_init);
  exec_init();
  modules_init();
  regions_init();
  credentials_init(argv[1]);
  if (recording()) waits_init();
  drmgr_register_thread_exit_event(on_thread_exit);
  dr_register_fork_init_event(on_fork);
  dr_register_exit_event(on_process_exit);
  /* Process exit does not wait for other threads, nor call their exit events: their counts are
   * in the segment. */
  dr_set_process_exit_behavior(DR_EXIT_SKIP_THREAD_EXIT | DR_EXIT_MULTI_THREAD);
  if (sampling) sample_init(argv[1]);
  else if (recording()) burst_record_init();
  else drmgr_register_bb_instrumentation_ex_event(insert_app2app, insert_analysis, insert_instr, insert_done, NULL);
  enter_process(replaced, false);
}
