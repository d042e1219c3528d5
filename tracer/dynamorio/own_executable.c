/* own_executable.c: /proc/self/exe, which a program opens to read what it carries or its own symbols.
 *
 * The kernel has executed DynamoRIO's library. DynamoRIO gives the program's name where the link is read or
 * executed; here it is given where the link is followed. */
#include "host.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LONGEST 64 /* of a name of the link */

/* The arguments of a call that follows links: its path, and the flags with the bit by which it does not. */
struct follows {
  int number, path, flags;
  uint32_t unless;
};

static const struct follows calls[] = {
    {SYS_open, 0, 1, O_NOFOLLOW},
    {SYS_openat, 1, 2, O_NOFOLLOW},
    {SYS_stat, 0, 0, 0},
    {SYS_newfstatat, 1, 3, AT_SYMLINK_NOFOLLOW},
    {SYS_statx, 1, 2, AT_SYMLINK_NOFOLLOW},
    {SYS_access, 0, 0, 0},
    {SYS_faccessat, 1, 0, 0},
};

static char executable[4096];
static int slot; /* the path as the program has it, while the call is made with another one */

static const struct follows *followed_by(int number) {
  for (unsigned i = 0; i < sizeof calls / sizeof *calls; i++)
    if (calls[i].number == number) return &calls[i];
  return NULL;
}

static bool wanted(void *dc, int number) {
  (void)dc;
  return followed_by(number) != NULL;
}

/* /proc/self/exe, and with the number of the process or of a thread of it. */
static bool is_own_link(const char *path) {
  static const char leader[] = "/proc/", name[] = "/exe";
  if (strncmp(path, leader, sizeof leader - 1) != 0) return false;
  const char *who = path + sizeof leader - 1, *end = strchr(who, '/');
  if (!end || strcmp(end, name) != 0) return false;
  if (strncmp(who, "self/", 5) == 0 || strncmp(who, "thread-self/", 12) == 0) return true;
  char task[LONGEST];
  char *rest;
  unsigned long tid = strtoul(who, &rest, 10);
  if (rest != end || tid == 0) return false;
  snprintf(task, sizeof task, "/proc/self/task/%lu", tid);
  return syscall(SYS_access, task, F_OK) == 0;
}

static bool before_syscall(void *dc, int number) {
  const struct follows *call = followed_by(number);
  char path[LONGEST] = "";
  size_t got;
  if (!call || seccomp_refused(dc)) return true;
  if (call->unless && (dr_syscall_get_param(dc, call->flags) & call->unless)) return true;
  const void *given = (const void *)dr_syscall_get_param(dc, call->path);
  if (!given || (!dr_safe_read(given, sizeof path - 1, path, &got) && !got) || !is_own_link(path)) return true;
  /* Without a file of this name, as it was replaced, the link is better. */
  if (syscall(SYS_access, executable, F_OK) != 0) return true;
  drmgr_set_tls_field(dc, slot, (void *)given);
  dr_syscall_set_param(dc, call->path, (reg_t)executable);
  return true;
}

static void after_syscall(void *dc, int number) {
  const struct follows *call = followed_by(number);
  void *given = drmgr_get_tls_field(dc, slot);
  if (!call || !given) return;
  drmgr_set_tls_field(dc, slot, NULL);
  dr_syscall_set_param(dc, call->path, (reg_t)given);
}

void own_executable_init(void) {
  module_data_t *program = dr_get_main_module();
  if (program && program->full_path) snprintf(executable, sizeof executable, "%s", program->full_path);
  if (program) dr_free_module_data(program);
  slot = drmgr_register_tls_field();
  dr_register_filter_syscall_event(wanted);
  drmgr_register_pre_syscall_event(before_syscall);
  drmgr_register_post_syscall_event(after_syscall);
}
