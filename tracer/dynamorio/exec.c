/* exec.c: keeps the kernel's brk heap, also across execve.
 *
 * DynamoRIO would emulate brk by a mapping that soon has neighbours and cannot grow. The C
 * library then falls back to other mappings, so that the profile would have regions that the
 * next run does not have. The kernel's own heap can be used, since it is far from DynamoRIO's
 * memory. A variable makes DynamoRIO leave brk alone, but DynamoRIO does not pass it on to
 * exec'ed programs. */
#include "host.h"
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOST_VARIABLES 65536

static const char keep_heap[] = "DYNAMORIO_NO_EMULATE_BRK=1";
/* On a page of its own: after a failed exec DynamoRIO frees every variable of the environment
 * that lies in its memory. */
static char *variable;
static int undo_slot;

/* What to restore after an exec that failed. */
struct undo {
  uint64_t given;
  char **copy;
  size_t size;
};

/* Undoes DynamoRIO's move of the program break by one byte. */
static void restore_break(void) {
  uint64_t end = (uint64_t)syscall(SYS_brk, 0);
  if ((end & (HI_PAGE_BYTES - 1)) == 1) syscall(SYS_brk, end - 1);
}

static size_t variables(char *const *environment) {
  size_t n = 0;
  char *one;
  size_t got;
  while (n < MOST_VARIABLES && dr_safe_read(environment + n, sizeof one, &one, &got) && one) n++;
  return n;
}

static int environment_argument(int number) { return number == SYS_execve ? 2 : 3; }

/* Adds the variable to the environment of the new image, if exec'ed programs are traced. */
void exec_before(void *dc, int number) {
  if (!(hi_run.header->flags & HI_FLAG_FOLLOW)) return;
  struct undo *undo = drmgr_get_tls_field(dc, undo_slot);
  int at = environment_argument(number);
  undo->given = dr_syscall_get_param(dc, at);
  char *const *environment = (char *const *)undo->given;
  size_t n = environment ? variables(environment) : 0;
  undo->size = (n + 2) * sizeof(char *);
  undo->copy = dr_thread_alloc(dc, undo->size);
  size_t got = 0;
  if (n && !dr_safe_read(environment, n * sizeof(char *), undo->copy, &got)) n = 0;
  undo->copy[n] = variable;
  undo->copy[n + 1] = NULL;
  dr_syscall_set_param(dc, at, (reg_t)undo->copy);
}

/* Called after an exec that failed: restores its argument. */
void exec_after(void *dc, int number) {
  struct undo *undo = drmgr_get_tls_field(dc, undo_slot);
  if (!undo->copy) return;
  dr_thread_free(dc, undo->copy, undo->size);
  undo->copy = NULL;
  dr_mcontext_t mc = {.size = sizeof mc, .flags = DR_MC_INTEGER};
  if (!dr_get_mcontext(dc, &mc)) return;
  if (number == SYS_execve) mc.xdx = undo->given;
  else mc.r10 = undo->given;
  dr_set_mcontext(dc, &mc);
}

static void on_thread_init(void *dc) {
  struct undo *undo = dr_thread_alloc(dc, sizeof *undo);
  *undo = (struct undo){0};
  drmgr_set_tls_field(dc, undo_slot, undo);
}

static void on_thread_exit(void *dc) { dr_thread_free(dc, drmgr_get_tls_field(dc, undo_slot), sizeof(struct undo)); }

void exec_init(void) {
  restore_break();
  variable = mmap(NULL, HI_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (variable == MAP_FAILED) dr_abort();
  memcpy(variable, keep_heap, sizeof keep_heap);
  undo_slot = drmgr_register_tls_field();
  drmgr_register_thread_init_event(on_thread_init);
  drmgr_register_thread_exit_event(on_thread_exit);
}
