/* descriptors.c: close_range, by which runtimes close all descriptors before they execute another
 * program.
 *
 * close_range(3, ~0u) is a single call for the kernel. DynamoRIO closes the numbers one by one,
 * to spare its own descriptors, which takes minutes for four billion of them. So the range is
 * cut at the size of the process' descriptor table. */
#include "host.h"
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static int slot; /* the program's argument `last` of the call in progress */

static bool wanted(void *dc, int number) {
  (void)dc;
  return number == SYS_close_range;
}

/* Size of the process' descriptor table, 0 if it cannot be read. */
static uint64_t table_size(void) {
  char status[4096];
  /* Not open(): in a client that is DynamoRIO's own. */
  int fd = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/status", O_RDONLY | O_CLOEXEC);
  ssize_t n = fd < 0 ? 0 : syscall(SYS_read, fd, status, sizeof status - 1);
  if (fd >= 0) syscall(SYS_close, fd);
  status[n > 0 ? n : 0] = 0;
  const char *line = strstr(status, "\nFDSize:");
  return line ? strtoull(line + strlen("\nFDSize:"), NULL, 10) : 0;
}

static bool before_syscall(void *dc, int number) {
  if (number != SYS_close_range || seccomp_refused(dc)) return true;
  uint64_t first = dr_syscall_get_param(dc, 0), last = dr_syscall_get_param(dc, 1), size = table_size();
  drmgr_set_tls_field(dc, slot, (void *)last);
  if (size == 0 || (uint32_t)first > (uint32_t)last || (uint32_t)last < size) return true;
  dr_syscall_set_param(dc, 1, (uint32_t)first < size ? size - 1 : (uint32_t)first);
  return true;
}

/* A system call does not change its argument registers: restores the program's argument. */
static void after_syscall(void *dc, int number) {
  dr_mcontext_t mc = {.size = sizeof mc, .flags = DR_MC_INTEGER};
  if (number != SYS_close_range || !dr_get_mcontext(dc, &mc)) return;
  mc.xsi = (reg_t)drmgr_get_tls_field(dc, slot);
  dr_set_mcontext(dc, &mc);
}

void descriptors_init(void) {
  slot = drmgr_register_tls_field();
  dr_register_filter_syscall_event(wanted);
  drmgr_register_pre_syscall_event(before_syscall);
  drmgr_register_post_syscall_event(after_syscall);
}
