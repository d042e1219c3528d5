/* credentials.c: a process that gives up rights leaves the run.
 *
 * Whoever has the segment mapped can change what the collector and the tracers in other processes
 * work with. They may have more rights than a process that has become another user's. So such a
 * process gets memory of its own in place of the segment before the program goes on with its new
 * rights, and runs on uncounted. What it executes then could not open the segment, as the kernel
 * asks for the collector's rights; it runs without DynamoRIO, whose files it may not be able to read. */
#include "host.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Supplementary groups are none of them: who may drop them may set them back. */
struct rights {
  uint32_t users[3], groups[3]; /* real, effective, saved */
  uint64_t permitted, bounding; /* capabilities, a bit each */
  uint64_t name_space;          /* of the users, 0: not known */
};

static struct rights at_start;
static char segment_path[64];
static void *lock;

static struct rights rights_now(void) {
  struct rights r = {0};
  syscall(SYS_getresuid, &r.users[0], &r.users[1], &r.users[2]);
  syscall(SYS_getresgid, &r.groups[0], &r.groups[1], &r.groups[2]);
  struct __user_cap_header_struct of = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {0};
  if (syscall(SYS_capget, &of, sets) == 0) r.permitted = (uint64_t)sets[1].permitted << 32 | sets[0].permitted;
  int in_set;
  for (unsigned long c = 0; c < 64 && (in_set = prctl(PR_CAPBSET_READ, c, 0, 0, 0)) >= 0; c++)
    r.bounding |= (uint64_t)in_set << c;
  struct stat st;
  if (stat("/proc/self/ns/user", &st) == 0) r.name_space = st.st_ino;
  return r;
}

static bool has(const struct rights *r, unsigned capability) { return r->permitted >> capability & 1; }

static bool keeps(const uint32_t ids[3], const uint32_t now[3]) {
  for (int i = 0; i < 3; i++)
    if (ids[i] != now[0] && ids[i] != now[1] && ids[i] != now[2]) return false;
  return true;
}

/* Whether this process has less than at its start. What it can take back it still has. */
static bool has_less(void) {
  struct rights now = rights_now();
  bool moved = now.name_space && at_start.name_space && now.name_space != at_start.name_space;
  bool here = now.name_space != 0; /* else its capabilities may be of another name space */
  bool another = (!keeps(at_start.users, now.users) && !(here && has(&now, CAP_SETUID))) ||
                 (!keeps(at_start.groups, now.groups) && !(here && has(&now, CAP_SETGID)));
  return moved || another || at_start.permitted & ~now.permitted || at_start.bounding & ~now.bounding;
}

static void tell(struct hi_local *t) {
  uint64_t a[] = {HI_LOST_RIGHTS};
  hi_emit(t, HI_EV_LOST, 0, a, 1, NULL);
}

/* A child of vfork runs in the memory of its parent, who goes on with all its rights. */
static bool in_vfork(void) { return hi_run.process && hi_run.processes[hi_run.process].pid != getpid(); }

static void leave(void *dc) {
  if (in_vfork()) return;
  dr_mutex_lock(lock);
  if (hi_run.process) {
    tell(host_local(dc));
    host_leave_run(dc);
  }
  dr_mutex_unlock(lock);
}

static bool wanted(void *dc, int number) {
  (void)dc;
  switch (number) {
  case SYS_setuid:
  case SYS_setgid:
  case SYS_setreuid:
  case SYS_setregid:
  case SYS_setresuid:
  case SYS_setresgid:
  case SYS_capset:
  case SYS_prctl:
  case SYS_unshare:
  case SYS_setns: return true;
  default: return false;
  }
}

/* Before the thread executes anything of the program with its new rights. */
static void after_syscall(void *dc, int number) {
  if (!hi_run.process || !wanted(dc, number) || (int64_t)dr_syscall_get_result(dc) < 0) return;
  dr_mcontext_t mc = {.size = sizeof mc, .flags = DR_MC_INTEGER};
  if (number == SYS_prctl && (!dr_get_mcontext(dc, &mc) || mc.xdi != PR_CAPBSET_DROP)) return;
  if (has_less()) leave(dc);
}

/* In the child: it may be in a name space of its own, and another thread may have held the lock. */
void credentials_after_fork(void *dc) {
  lock = dr_mutex_create();
  if (hi_run.process && has_less()) leave(dc);
}

/* Whether a program that is executed now could open the segment, as this process can. Its capabilities do not
 * exceed the bounding set, those that this process has kept as another user it loses. */
static bool may_attach(void) {
  struct rights now = rights_now();
  if (at_start.bounding & ~now.bounding || (now.users[1] && now.users[1] != at_start.users[1])) return false;
  int fd = (int)syscall(SYS_openat, AT_FDCWD, segment_path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return errno != EACCES && errno != EPERM;
  syscall(SYS_close, fd);
  return true;
}

/* What this process executes with these arguments is executed without DynamoRIO if it could not be traced.
 * Returns the call's error; 0 if it remains to be made. */
int64_t credentials_exec(void *dc, int number, const uint64_t *a) {
  if (!(hi_run.header->flags & HI_FLAG_FOLLOW) || may_attach()) return 0;
  /* Not for the folders that execvp tries in vain. */
  bool there = number != SYS_execve || access((const char *)a[0], X_OK) == 0;
  if (in_vfork()) {
    if (there) tell(host_local(dc));
    return 0; /* DynamoRIO has to know that this process is gone */
  }
  if (there) leave(dc);
  syscall(number, a[0], a[1], a[2], a[3], a[4]);
  return -errno;
}

void credentials_init(const char *path) {
  dr_snprintf(segment_path, sizeof segment_path, "%s", path); /* arguments do not live on */
  segment_path[sizeof segment_path - 1] = 0;
  at_start = rights_now();
  lock = dr_mutex_create();
  dr_register_filter_syscall_event(wanted);
  drmgr_register_post_syscall_event(after_syscall);
}
