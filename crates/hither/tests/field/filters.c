/* filters CASE: a program that forbids itself system calls. Each case prints what it sees. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define COUNT(a) (unsigned short)(sizeof(a) / sizeof *(a))
#define NUMBER BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))
#define FIRST BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0]))
#define UNLESS(value, skipped) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), 0, (skipped))
#define RETURN(value) BPF_STMT(BPF_RET | BPF_K, (value))

static void say(const char *text, long value) {
  char line[100];
  int n = snprintf(line, sizeof line, "%s %ld\n", text, value);
  if (write(1, line, (size_t)n) < 0) _exit(9);
}

/* 1, or the error. */
static long asked(long number, long argument) { return syscall(number, argument) < 0 ? -errno : 1; }

/* Something to count, so that the program is not its system calls alone. */
static long work(void) {
  static volatile long numbers[4096];
  long sum = 0;
  for (long i = 0; i < 4096; i++) numbers[i] = i;
  for (long i = 0; i < 4096; i++) sum += numbers[i];
  return sum;
}

static long install(struct sock_filter *code, unsigned short length, unsigned flags) {
  struct sock_fprog program = {length, code};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program) < 0 ? -errno : 0;
}

/* Only what is needed to go on: no mapping, no futex, no signal mask. */
static void allow_few(unsigned otherwise) {
  struct sock_filter few[] = {NUMBER,
                              UNLESS(SYS_write, 1),
                              RETURN(SECCOMP_RET_ALLOW),
                              UNLESS(SYS_exit_group, 1),
                              RETURN(SECCOMP_RET_ALLOW),
                              UNLESS(SYS_rt_sigreturn, 1),
                              RETURN(SECCOMP_RET_ALLOW),
                              RETURN(otherwise)};
  say("installed", install(few, COUNT(few), 0));
}

static void refuse(long number, unsigned how, unsigned flags) {
  struct sock_filter one[] = {NUMBER, UNLESS((unsigned)number, 1), RETURN(how), RETURN(SECCOMP_RET_ALLOW)};
  say("installed", install(one, COUNT(one), flags));
}

static void on_trap(int signal, siginfo_t *info, void *context) {
  say("signal", signal);
  say("code", info->si_code);
  say("call", info->si_syscall);
  say("data", info->si_errno);
  ((ucontext_t *)context)->uc_mcontext.gregs[REG_RAX] = 4711;
}

static int gate[2];

static void *ask(void *none) {
  char byte;
  if (read(gate[0], &byte, 1) != 1) _exit(9);
  say("parent in a thread", asked(SYS_getppid, 0));
  return none;
}

static void errors(void) {
  allow_few(SECCOMP_RET_ERRNO | EPERM);
  say("parent", asked(SYS_getppid, 0));
  say("mapped", mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? -errno : 0);
  say("sum", work());
}

static void ended(void) {
  allow_few(SECCOMP_RET_KILL_PROCESS);
  say("sum", work());
  getppid();
  say("not reached", 0);
}

static void traps(void) {
  struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
  sigaction(SIGSYS, &action, NULL);
  allow_few(SECCOMP_RET_TRAP | 42);
  say("answer", syscall(SYS_getppid));
}

static void strict(void) {
  prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
  say("sum", work());
  syscall(SYS_exit, 5);
}

/* By its argument, and two filters of which the sharper counts. */
static void several(void) {
  struct sock_filter small[] = {NUMBER,
                                UNLESS(SYS_dup, 4),
                                FIRST,
                                BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xfe),
                                BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, 3, 0, 1),
                                RETURN(SECCOMP_RET_ERRNO | ENOTTY),
                                RETURN(SECCOMP_RET_ALLOW)};
  say("installed", install(small, COUNT(small), 0));
  refuse(SYS_getppid, SECCOMP_RET_ERRNO | EXDEV, 0);
  refuse(SYS_getppid, SECCOMP_RET_ERRNO | ENOMSG, 0);
  refuse(SYS_getppid, SECCOMP_RET_LOG, 0);
  say("parent", asked(SYS_getppid, 0));
  say("small", asked(SYS_dup, 1));
  say("large", asked(SYS_dup, 700));
  say("mode", prctl(PR_GET_SECCOMP));
}

static void wrong(void) {
  struct sock_filter endless[] = {NUMBER};
  struct sock_filter beyond[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 4096), RETURN(SECCOMP_RET_ALLOW)};
  say("no end", install(endless, 1, 0));
  say("beyond", install(beyond, 2, 0));
  say("empty", install(beyond, 0, 0));
  say("nowhere", syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, 8) < 0 ? -errno : 0);
  say("flags", install(beyond, 2, 1u << 20));
  say("mode", prctl(PR_GET_SECCOMP));
}

static void inherit(void) {
  pthread_t before, after;
  if (pipe(gate) != 0 || pthread_create(&before, NULL, ask, NULL) != 0) _exit(9);
  refuse(SYS_getppid, SECCOMP_RET_ERRNO | EXDEV, SECCOMP_FILTER_FLAG_TSYNC);
  if (write(gate[1], "a", 1) != 1) _exit(9);
  pthread_join(before, NULL);
  pthread_create(&after, NULL, ask, NULL);
  if (write(gate[1], "b", 1) != 1) _exit(9);
  pthread_join(after, NULL);
  if (fork() == 0) {
    say("parent in a child", asked(SYS_getppid, 0));
    refuse(SYS_getuid, SECCOMP_RET_ERRNO | EXDEV, 0);
    _exit(0);
  }
  int status;
  wait(&status);
  say("child", status);
  say("user", asked(SYS_getuid, 0));
  /* In vain in the first folder. */
  setenv("PATH", "/nowhere:/usr/bin:/bin", 1);
  execlp("sh", "sh", "-c", "grep ^Seccomp: /proc/self/status; grep ^NoNewPrivs /proc/self/status", (char *)NULL);
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    void (*run)(void);
  } cases[] = {{"errors", errors},   {"ended", ended}, {"traps", traps},    {"strict", strict},
               {"several", several}, {"wrong", wrong}, {"inherit", inherit}};
  for (unsigned i = 0; i < COUNT(cases); i++)
    if (argc == 2 && strcmp(argv[1], cases[i].name) == 0) cases[i].run();
  _exit(argc == 2 ? 3 : 2);
}
