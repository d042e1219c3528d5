/* deny PROGRAM [ARGUMENT...]: runs it where ptrace is forbidden, as some containers do;
 * `deny -s` forbids filters of system calls too. */
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

#define CALL BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))
#define FIRST BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0]))
#define REFUSE_IF(value)                                                                                               \
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)

int main(int argc, char **argv) {
  struct sock_filter rules[] = {
      CALL,
      REFUSE_IF(SYS_ptrace),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      /* with -s the line above is replaced by a jump over it */
      REFUSE_IF(SYS_seccomp),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 3),
      FIRST,
      REFUSE_IF(PR_SET_SECCOMP),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  int strict = argc > 1 && strcmp(argv[1], "-s") == 0;
  if (argc < 2 + strict) return 2;
  if (strict) rules[3] = (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, 0);
  struct sock_fprog program = {sizeof rules / sizeof *rules, rules};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) != 0) {
    perror("deny");
    return 2;
  }
  execvp(argv[1 + strict], argv + 1 + strict);
  perror(argv[1 + strict]);
  return 127;
}
