/* creation.c: by what call of the program a thread is created, and who waits for its end: which threads
 * follow one another in the same role is told by that. */
#include "host.h"
#include <linux/sched.h>
#include <sys/syscall.h>

#define STACK_WORDS 512 /* searched for return addresses: 4 KiB */

static int routine_slot; /* the start routine of the pthread_create in progress */

/* The thread pointer that the call gives the new thread; 0: none. */
static uint64_t thread_pointer(int number, const uint64_t *a) {
  struct clone_args args = {.flags = a[0], .tls = a[4]};
  size_t got, size = a[1] < sizeof args ? a[1] : sizeof args;
  if (number == SYS_clone3 && !dr_safe_read((void *)a[0], size, &args, &got)) return 0;
  return args.flags & CLONE_SETTLS ? args.tls : 0;
}

/* The innermost return address on the stack that is in the program's own files: that of the call by which
 * it left them last, if it is there, since not all that looks like one is one. */
static uint64_t program_call(void *dc, const struct hi_local *t) {
  uint64_t words[STACK_WORDS];
  dr_mcontext_t mc = {.size = sizeof mc, .flags = DR_MC_CONTROL};
  if (!dr_get_mcontext(dc, &mc)) return 0;
  size_t n = sizeof words, to_page_end = HI_PAGE_BYTES - (mc.xsp & (HI_PAGE_BYTES - 1));
  size_t got;
  if (!dr_safe_read((void *)mc.xsp, n, words, &got) && !dr_safe_read((void *)mc.xsp, n = to_page_end, words, &got))
    return 0;
  uint64_t first = 0;
  for (size_t i = 0; i < n / sizeof *words; i++) {
    if (words[i] == *t->program_call && words[i]) return words[i];
    if (!first && hi_follows_call(words[i]) && !modules_system(words[i])) first = words[i];
  }
  return first;
}

/* Call before a system call that creates a thread. */
struct hi_creation creation_in_progress(void *dc, const struct hi_local *t, int number, const uint64_t *a) {
  uint64_t routine = (uint64_t)drmgr_get_tls_field(dc, routine_slot);
  drmgr_set_tls_field(dc, routine_slot, NULL);
  return (struct hi_creation){program_call(dc, t), routine, thread_pointer(number, a)};
}

static void before_create(void *wrap, void **data) {
  (void)data;
  drmgr_set_tls_field(drwrap_get_drcontext(wrap), routine_slot, drwrap_get_arg(wrap, 2));
}

static void before_join(void *wrap, void **data) {
  (void)data;
  if (hi_run.process) hi_thread_joined((uint64_t)drwrap_get_arg(wrap, 0));
}

void creation_wrap(const struct exports *exports) {
  static const char *const joins[] = {"pthread_join", "pthread_tryjoin_np", "pthread_timedjoin_np",
                                      "pthread_clockjoin_np"};
  app_pc create = exports_find(exports, "pthread_create");
  if (create) drwrap_wrap_ex(create, before_create, NULL, NULL, 0);
  for (size_t i = 0; i < sizeof joins / sizeof joins[0]; i++) {
    app_pc join = exports_find(exports, joins[i]);
    if (join) drwrap_wrap_ex(join, before_join, NULL, NULL, 0);
  }
}

void creation_init(void) { routine_slot = drmgr_register_tls_field(); }
