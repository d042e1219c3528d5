/* exec.c: the heap that the kernel keeps for every program, left to the program.
 *
 * DynamoRIO would emulate brk by a mapping that soon has neighbours and cannot grow; the C
 * library goes over to other mappings then, and the profile has regions that the next run
 * has not. The kernel's own heap does as well, since it lies far from DynamoRIO. DynamoRIO
 * leaves it alone where a variable says so, but does not pass that variable on. */
#include "host.h"
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOST_VARIABLES 65536

static const char keep_heap[] = "DYNAMORIO_NO_EMULATE_BRK=1";
/* On a page that DynamoRIO does not know: of what it does, it frees every variable that a
 * failed exec was given. */
static char *variable;
static int undo_slot;

/* What an exec that fails has to put back. */
struct undo {
  uint64_t given;
  char **copy;
  size_t size;
};

/* DynamoRIO moves the end of the heap by one byte to keep it. */
static void straighten(void) {
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

/* Gives the new image our variable too, unless it is left alone. */
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

/* The exec failed. */
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
  straighten();
  variable = mmap(NULL, HI_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (variable == MAP_FAILED) dr_abort();
  memcpy(variable, keep_heap, sizeof keep_heap);
  undo_slot = drmgr_register_tls_field();
  drmgr_register_thread_init_event(on_thread_init);
  drmgr_register_thread_exit_event(on_thread_exit);
}
