/* descriptors.c: closing all descriptors above some number, as runtimes do before they
 * execute another program.
 *
 * close_range(3, ~0u) is one call for the kernel. DynamoRIO goes through the numbers one by
 * one to spare its own, which takes minutes for four billion; so they end here where the
 * process' table does. */
#include "host.h"
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static int slot; /* the last number that the program asked for */

static bool wanted(void *dc, int number) {
  (void)dc;
  return number == SYS_close_range;
}

/* Descriptors that the process' table has room for, 0 if that cannot be told. */
static uint64_t table_size(void) {
  char status[4096];
  /* Inside a client the C library's open() is DynamoRIO's. */
  int fd = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/status", O_RDONLY | O_CLOEXEC);
  ssize_t n = fd < 0 ? 0 : syscall(SYS_read, fd, status, sizeof status - 1);
  if (fd >= 0) syscall(SYS_close, fd);
  status[n > 0 ? n : 0] = 0;
  const char *line = strstr(status, "\nFDSize:");
  return line ? strtoull(line + strlen("\nFDSize:"), NULL, 10) : 0;
}

static bool before_syscall(void *dc, int number) {
  if (number != SYS_close_range) return true;
  uint64_t first = dr_syscall_get_param(dc, 0), last = dr_syscall_get_param(dc, 1), size = table_size();
  drmgr_set_tls_field(dc, slot, (void *)last);
  if (size == 0 || (uint32_t)first > (uint32_t)last || (uint32_t)last < size) return true;
  dr_syscall_set_param(dc, 1, (uint32_t)first < size ? size - 1 : (uint32_t)first);
  return true;
}

/* A system call leaves its arguments in their registers. */
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
