/* creation CASE [THREADS]: threads that are created in unusual ways, or not at all. Each case prints
 * how many of its threads ran. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST 10000
#define RAW_FLAGS (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM)

static atomic_long ran, open_gate;
static volatile long work[8] __attribute__((aligned(64)));

static void *pass(void *none) {
  ran++;
  return none;
}

static void *wait_at_gate(void *none) {
  ran++;
  while (!open_gate) usleep(1000);
  return none;
}

static void create(pthread_t *thread, void *(*routine)(void *)) {
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 64 << 10);
  if (pthread_create(thread, &small, routine, NULL) != 0) _exit(9);
}

/* As many as asked for, created without waiting for any to start. Where its rights allow it the
 * creator takes their only processor to itself, so that none does. */
static void crowd(long threads) {
  static pthread_t thread[MOST];
  const struct sched_param first = {1}, none = {0};
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  sched_setaffinity(0, sizeof one, &one);
  int alone = sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &first) == 0;
  for (long i = 0; i < threads; i++) create(&thread[i], wait_at_gate);
  if (alone && ran > threads / 4) _exit(11);
  sched_setscheduler(0, SCHED_OTHER, &none);
  open_gate = 1;
  for (long i = 0; i < threads; i++) pthread_join(thread[i], NULL);
}

static void in_turn(long threads) {
  for (long i = 0; i < threads; i++) {
    pthread_t thread;
    create(&thread, pass);
    pthread_join(thread, NULL);
  }
}

static void forks(long processes) {
  for (long i = 0; i < processes; i++) {
    pid_t child = fork();
    if (child == 0) {
      for (int j = 0; j < 1000; j++) work[0] = j;
      _exit(0);
    }
    if (child < 0 || waitpid(child, NULL, 0) != child) _exit(10);
    ran++;
  }
}

/* Without CLONE_SIGHAND the kernel creates no thread. */
static void fail_raw(void) {
  static char stack[4096] __attribute__((aligned(64)));
  struct clone_args args = {.flags = CLONE_VM | CLONE_THREAD, .stack = (uintptr_t)stack, .stack_size = sizeof stack};
  if (syscall(SYS_clone, CLONE_VM | CLONE_THREAD, stack + sizeof stack, 0, 0, 0) != -1 || errno != EINVAL) _exit(8);
  if (syscall(SYS_clone3, &args, sizeof args) != -1 || errno != EINVAL) _exit(7);
  if (syscall(SYS_clone3, (void *)8, sizeof args) != -1 || errno != EFAULT) _exit(6);
  if (syscall(SYS_clone, CLONE_SIGHAND | SIGCHLD, 0, 0, 0, 0) != -1 || errno != EINVAL) _exit(5);
}

static void refused(long threads) {
  for (long i = 0; i < threads; i++) {
    fail_raw();
    in_turn(1);
  }
  fail_raw();
}

/* The new thread has no thread-local storage: it only counts itself and ends. */
static long raw_clone3(const struct clone_args *args) {
  long result = SYS_clone3;
  __asm__ volatile("syscall\n\t"
                   "test %%rax, %%rax\n\t"
                   "jnz 1f\n\t"
                   "lock incq %3\n\t"
                   "mov %4, %%eax\n\t"
                   "xor %%edi, %%edi\n\t"
                   "syscall\n"
                   "1:"
                   : "+a"(result)
                   : "D"(args), "S"(sizeof *args), "m"(ran), "i"(SYS_exit)
                   : "rcx", "r11", "memory");
  return result;
}

static void raw(long threads) {
  static char stack[16][16 << 10] __attribute__((aligned(64)));
  for (long i = 0; i < threads && i < 16; i++) {
    struct clone_args args = {.flags = RAW_FLAGS, .stack = (uintptr_t)stack[i], .stack_size = sizeof stack[i]};
    if (raw_clone3(&args) <= 0) _exit(4);
  }
  while (ran < threads) usleep(1000);
}

/* As Docker's filter answers. The program that is executed then has it in the kernel. */
static void without_clone3(const char *threads) {
  struct sock_filter code[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                               BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
                               BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
                               BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  struct sock_fprog program = {sizeof code / sizeof *code, code};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) _exit(3);
  execl("/proc/self/exe", "creation", "crowd", threads, NULL);
}

int main(int argc, char **argv) {
  if (argc != 3 || atol(argv[2]) > MOST) return 2;
  long threads = atol(argv[2]);
  if (strcmp(argv[1], "without-clone3") == 0) without_clone3(argv[2]);
  static const struct {
    const char *name;
    void (*run)(long);
  } cases[] = {{"crowd", crowd}, {"in-turn", in_turn}, {"forks", forks}, {"refused", refused}, {"raw", raw}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    if (strcmp(argv[1], cases[i].name) == 0) cases[i].run(threads);
  printf("%ld ran\n", (long)ran);
  return ran != threads;
}
