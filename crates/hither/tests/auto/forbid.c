/* forbid CALL... -- PROGRAM [ARGUMENT...]: runs it where system calls are refused with
 * EPERM, as profiles of containers do. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
  const char *name;
  unsigned number;
} calls[] = {
    {"perf_event_open", SYS_perf_event_open},
    {"process_madvise", 440},
    {"userfaultfd", SYS_userfaultfd},
    {"ptrace", SYS_ptrace},
    {"bpf", SYS_bpf},
    {"move_pages", SYS_move_pages},
    {"sched_setaffinity", SYS_sched_setaffinity},
};
enum { KNOWN = sizeof calls / sizeof *calls };

int main(int argc, char **argv) {
  struct sock_filter rules[2 + 2 * KNOWN];
  unsigned short length = 0;
  rules[length++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
  int at = 1;
  for (; at < argc && strcmp(argv[at], "--"); at++) {
    int found = -1;
    for (int i = 0; i < KNOWN; i++)
      if (!strcmp(argv[at], calls[i].name)) found = i;
    if (found < 0 || length + 2 > 2 * KNOWN) return 2;
    rules[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[found].number, 0, 1);
    rules[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
  }
  rules[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  struct sock_fprog program = {length, rules};
  if (at + 1 >= argc) return 2;
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) != 0) {
    perror("forbid");
    return 2;
  }
  execvp(argv[at + 1], argv + at + 1);
  perror(argv[at + 1]);
  return 127;
}
