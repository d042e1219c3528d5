/* abuse.c: small programs, one per name, that do what tracers trip over. Each prints what
 * it found and ends as its name says; traced and native output must be the same. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096
#define THREADS 4

static void *fill(void *argument) {
  volatile long *cell = argument;
  for (long i = 0; i < 100000; i++) cell[i % 512] += i;
  return NULL;
}

static int run_threads(void) {
  static long page[THREADS][512] __attribute__((aligned(PAGE)));
  pthread_t thread[THREADS];
  for (int i = 0; i < THREADS; i++) pthread_create(&thread[i], NULL, fill, page[i]);
  for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
  printf("%ld\n", page[3][7]);
  return 0;
}

static void tree(int depth) {
  for (int i = 0; depth && i < 3; i++)
    if (fork() == 0) {
      volatile long own[512] = {0};
      fill((void *)own);
      tree(depth - 1);
      _exit(depth + i);
    }
  for (int status; wait(&status) > 0;)
    if (!WIFEXITED(status)) abort();
}

static int run_fork(void) {
  tree(2);
  puts("forked");
  return 0;
}

static int run_vfork(void) {
  extern char **environ;
  static int sum, status, i; /* a vfork'ed child shares the stack */
  for (; i < 5; i++) {
    pid_t child = vfork();
    if (child == 0) {
      execl("/bin/sh", "sh", "-c", "exit 3", (char *)NULL);
      _exit(127);
    }
    if (waitpid(child, &status, 0) == child) sum += WEXITSTATUS(status);
    char *command[] = {"sh", "-c", "exit 4", NULL};
    if (posix_spawn(&child, "/bin/sh", NULL, NULL, command, environ) != 0) return 1;
    if (waitpid(child, &status, 0) == child) sum += WEXITSTATUS(status);
    if (vfork() == 0) _exit(0);
    wait(NULL);
  }
  printf("%d %d\n", sum, system("exit 5") >> 8);
  return 0;
}

static atomic_long alarms;
static void on_alarm(int signal) {
  (void)signal;
  atomic_fetch_add(&alarms, 1);
}

static int run_alarm(void) {
  struct itimerval ms = {{0, 1000}, {0, 1000}};
  signal(SIGALRM, on_alarm);
  setitimer(ITIMER_REAL, &ms, NULL);
  unsigned long sum = 0;
  for (long rounds = 0; atomic_load(&alarms) < 200; rounds++) {
    unsigned long a = 1;
    for (long i = 0; i < 1000; i++) a = a * 6364136223846793005ul + 1442695040888963407ul;
    sum = a;
  }
  printf("%lu\n", sum);
  return 0;
}

static sigjmp_buf back;
static void on_fault(int signal, siginfo_t *info, void *context) {
  (void)context;
  siglongjmp(back, signal == SIGSEGV && info->si_addr == (void *)64 ? 2 : 3);
}

static int run_segv(void) {
  struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER};
  sigaction(SIGSEGV, &action, NULL);
  volatile int right = 0;
  for (volatile int i = 0; i < 300; i++) {
    int got = sigsetjmp(back, 1);
    if (got == 0) *(volatile int *)64 = i;
    right = right + (got == 2);
  }
  printf("%d faults\n", right);
  return 0;
}

static void on_write_fault(int signal, siginfo_t *info, void *context) {
  (void)signal, (void)context;
  mprotect((void *)((uintptr_t)info->si_addr & ~(uintptr_t)(PAGE - 1)), PAGE, PROT_READ | PROT_WRITE);
}

/* The access is done again after the handler: registers must be the program's own. */
static int run_guard(void) {
  struct sigaction action = {.sa_sigaction = on_write_fault, .sa_flags = SA_SIGINFO};
  sigaction(SIGSEGV, &action, NULL);
  long *pages = mmap(NULL, 64 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  long sum = 0;
  for (int i = 0; i < 64 * 512; i++) pages[i] = i;
  for (int i = 0; i < 64 * 512; i++) sum += pages[i];
  printf("%ld\n", sum);
  return 0;
}

/* Stores around one that faults, with room for the tracer's work in between: first where nobody
 * needs the flags, then where they say that two values are equal. Each register but the pointers
 * and rsp holds 0x100 + its number in gregs. Returns their sum. */
long registers_kept(long *room, long *pages);
__asm__("registers_kept:\n"
        "  push %rbx\n push %rbp\n push %r12\n push %r13\n push %r14\n push %r15\n"
        "  mov $0x100, %r8d\n mov $0x101, %r9d\n mov $0x102, %r10d\n mov $0x103, %r11d\n mov $0x104, %r12d\n"
        "  mov $0x105, %r13d\n mov $0x106, %r14d\n mov $0x107, %r15d\n mov $0x10a, %ebp\n mov $0x10b, %ebx\n"
        "  mov $0x10c, %edx\n mov $0x10d, %eax\n mov $0x10e, %ecx\n jmp 1f\n"
        "1: addq $1, (%rdi)\n addq $1, 192(%rdi)\n addq $1, (%rsi)\n addq $1, 384(%rdi)\n cmp %rax, %rax\n jmp 2f\n"
        "2: mov %rax, (%rdi)\n mov %rcx, 192(%rdi)\n mov %rax, 4096(%rsi)\n mov %rdx, 384(%rdi)\n jne 3f\n"
        "  add %r8, %rax\n add %r9, %rax\n add %r10, %rax\n add %r11, %rax\n add %r12, %rax\n add %r13, %rax\n"
        "  add %r14, %rax\n add %r15, %rax\n add %rbp, %rax\n add %rbx, %rax\n add %rdx, %rax\n add %rcx, %rax\n"
        "3: pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbp\n pop %rbx\n ret\n");

static int wrong_registers, second_page;
static void on_register_fault(int signal, siginfo_t *info, void *context) {
  greg_t *gregs = ((ucontext_t *)context)->uc_mcontext.gregs;
  for (int i = REG_R8; i <= REG_RCX; i++)
    if (i != REG_RDI && i != REG_RSI) wrong_registers += gregs[i] != 0x100 + i;
  if (second_page) wrong_registers += !(gregs[REG_EFL] & 0x40);
  second_page = !second_page;
  on_write_fault(signal, info, context);
}

static int run_registers(void) {
  struct sigaction action = {.sa_sigaction = on_register_fault, .sa_flags = SA_SIGINFO};
  sigaction(SIGSEGV, &action, NULL);
  long room[64], sum = 0;
  long *pages = mmap(NULL, 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  for (int i = 0; i < 3000; i++) {
    mprotect(pages, 2 * PAGE, PROT_NONE);
    sum += registers_kept(room, pages);
  }
  printf("%ld, %ld, %d wrong\n", sum, pages[0], wrong_registers);
  return 0;
}

static int run_mmap(void) {
  long sum = 0;
  for (int i = 0; i < 20000; i++) {
    long *p = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    p[i % 2048] = i;
    sum += p[i % 2048] + p[0];
    munmap(p, 4 * PAGE);
  }
  printf("%ld\n", sum);
  return 0;
}

static int run_mremap(void) {
  size_t size = PAGE;
  long *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), sum = 0;
  for (int i = 0; i < 500; i++, size += PAGE) {
    p[size / 8 - 1] = i;
    p = mremap(p, size, size + PAGE, MREMAP_MAYMOVE);
  }
  for (size_t i = 511; i < size / 8; i += 512) sum += p[i];
  p = mremap(p, size, PAGE, 0);
  printf("%ld %ld\n", sum, p[511]);
  return 0;
}

static int run_brk(void) {
  char *start = sbrk(0);
  long sum = 0;
  for (int i = 0; i < 2000; i++) {
    char *p = sbrk(PAGE);
    p[i % PAGE] = (char)i;
    sum += p[i % PAGE] + p[PAGE - 1];
  }
  sbrk(-1000 * PAGE);
  long left = (long)((char *)sbrk(0) - start);
  /* Again, and farther than anybody would have kept for it. */
  char *more = sbrk(100 << 20);
  if (more != (void *)-1) more[(100 << 20) - 1] = 1;
  printf("%ld %ld %d %ld\n", sum, left, more != (void *)-1, (long)start % PAGE);
  return 0;
}

/* Nothing but accesses: DynamoRIO, which stops a thread only at an instruction of the program's
 * own, takes seconds until it finds each of these at one, on a busy machine up to a minute. */
static void *spin(void *argument) {
  volatile long *cell = argument;
  for (;;) ++*cell;
  return NULL;
}

/* An access now and then, as programs have them. */
static void *work(void *argument) {
  volatile long *cell = argument;
  for (;;) {
    ++*cell;
    for (int i = 0; i < 100; i++) __asm__ volatile("" : "+r"(i));
  }
  return NULL;
}

/* Returns once each thread has really worked, however busy the machine is. */
static int with_threads(void *(*routine)(void *)) {
  static volatile long cells[THREADS][8];
  pthread_t thread;
  for (int i = 0; i < THREADS; i++) pthread_create(&thread, NULL, routine, (void *)cells[i]);
  for (int i = 0; i < THREADS; i++)
    while (cells[i][0] < 100000) usleep(1000);
  puts("spinning");
  fflush(stdout);
  return 7;
}

static int run_spin(void) { exit(with_threads(spin)); }
static int run_work(void) { exit(with_threads(work)); }

/* Works until a signal ends it, and says by the file `up` that it does. */
static int run_wait(void) {
  with_threads(work);
  fclose(fopen("up", "w"));
  for (;;) pause();
}

static int run_abort(void) {
  with_threads(work);
  abort();
}

static int run_kill(void) {
  with_threads(work);
  raise(SIGKILL);
  return 1;
}

static int run_term(void) {
  with_threads(work);
  raise(SIGTERM);
  return 1;
}

/* The image is replaced while other threads run. */
static int run_exec(void) {
  with_threads(work);
  execl("/bin/echo", "echo", "replaced", (char *)NULL);
  return 1;
}

/* Whether the link to it leads to it, by all names, and stays a link. */
static void print_own_executable(const char *path) {
  struct stat own, linked, opened;
  char names[3][64] = {"/proc/self/exe", "/proc/thread-self/exe"};
  snprintf(names[2], sizeof names[2], "/proc/%d/exe", getpid());
  stat(path, &own);
  for (int i = 0; i < 3; i++) {
    int fd = open(names[i], O_RDONLY), unfollowed = open(names[i], O_RDONLY | O_NOFOLLOW);
    stat(names[i], &linked);
    fstat(fd, &opened);
    printf("exe %d %d %d", linked.st_ino == own.st_ino, opened.st_ino == own.st_ino, unfollowed < 0);
    lstat(names[i], &linked);
    printf(" %d\n", S_ISLNK(linked.st_mode));
    close(fd);
  }
}

/* What a process can find out about itself. Numbers that differ from run to run are left out. */
static int run_self(void) {
  char text[4096], name[16];
  ssize_t n = readlink("/proc/self/exe", text, sizeof text - 1);
  printf("exe %.*s\n", (int)n, text);
  text[n] = 0;
  print_own_executable(text);
  prctl(PR_GET_NAME, name);
  printf("name %s argv0 %s cwd %s\n", name, program_invocation_name, getcwd(text, sizeof text));
  const char *files[] = {"/proc/self/comm", "/proc/self/cmdline", "/proc/self/cgroup"};
  for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
    FILE *f = fopen(files[i], "r");
    for (int c; (c = fgetc(f)) != EOF;) putchar(c ? c : ' ');
    putchar('\n');
    fclose(f);
  }
  mode_t mask = umask(0);
  printf("umask %o nice %d dumpable %d\n", mask, getpriority(PRIO_PROCESS, 0), prctl(PR_GET_DUMPABLE));
  for (int fd = 0; fd < 256; fd++)
    if (fcntl(fd, F_GETFD) >= 0) printf("fd %d\n", fd);
  for (int resource = 0; resource < RLIMIT_NLIMITS; resource++) {
    if (resource == RLIMIT_NOFILE) continue; /* its hard limit may be lower: DynamoRIO keeps some files for itself */
    struct rlimit r;
    getrlimit(resource, &r);
    printf("limit %d %lx %lx\n", resource, r.rlim_cur, r.rlim_max);
  }
  for (int signal = 1; signal < 32; signal++) {
    struct sigaction action;
    sigaction(signal, NULL, &action);
    if (action.sa_handler != SIG_DFL) printf("signal %d\n", signal);
  }
  sigset_t blocked;
  sigprocmask(SIG_BLOCK, NULL, &blocked);
  for (int signal = 1; signal < 32; signal++)
    if (sigismember(&blocked, signal)) printf("blocked %d\n", signal);
  return 0;
}

static atomic_int named;
static void *fill_once_named(void *page) {
  while (!atomic_load(&named)) usleep(1000);
  return fill(page);
}

static void *stay(void *page) {
  fill(page);
  atomic_store(&named, 2);
  for (;;) pause();
}

static int run_names(void) {
  prctl(PR_SET_NAME, "renamed");
  pthread_t thread;
  static long page[512];
  pthread_create(&thread, NULL, fill_once_named, page);
  pthread_setname_np(thread, "helper");
  atomic_store(&named, 1);
  pthread_join(thread, NULL);
  pthread_create(&thread, NULL, stay, page);
  pthread_setname_np(thread, "stays");
  while (atomic_load(&named) != 2) usleep(1000);
  FILE *f = fopen("/proc/self/comm", "r");
  char name[32];
  puts(fgets(name, sizeof name, f));
  return 0;
}

/* Valgrind's question whether it is there (RUNNING_ON_VALGRIND), which does nothing elsewhere. */
static int run_valgrind(void) {
  volatile uintptr_t request[6] = {0x1001};
  uintptr_t answer = 0;
  __asm__ volatile("rolq $3, %%rdi; rolq $13, %%rdi; rolq $61, %%rdi; rolq $51, %%rdi; xchgq %%rbx, %%rbx"
                   : "+d"(answer)
                   : "a"(request)
                   : "cc", "memory");
  printf("%d\n", (int)answer);
  return 0;
}

static int run_group(void) {
  pid_t child = fork();
  int status;
  if (child == 0) {
    setpgid(0, 0);
    raise(SIGSTOP);
    _exit(getpgrp() == getpid() ? 9 : 1);
  }
  waitpid(child, &status, WUNTRACED);
  printf("stopped %d\n", WIFSTOPPED(status));
  kill(child, SIGCONT);
  waitpid(child, &status, 0);
  printf("ended %d\n", WEXITSTATUS(status));
  return 0;
}

static int run_files(void) {
  FILE *f = fopen("large", "w");
  static char block[1 << 16];
  for (int i = 0; i < 64 && fwrite(block, 1, sizeof block, f) == sizeof block; i++)
    ;
  puts("written");
  return 0;
}

static int run_ignored(void) {
  for (int signal = 1; signal <= SIGRTMAX; signal++) {
    struct sigaction action;
    if (sigaction(signal, NULL, &action) == 0 && action.sa_handler == SIG_IGN) printf(" %d", signal);
  }
  puts(" are ignored");
  return 0;
}

static volatile sig_atomic_t caught;
static void on_caught(int signal) { caught = caught * 100 + signal; }

static void *fail_to_exec(void *nothing) {
  execl("/nonexistent", "nonexistent", (char *)NULL);
  return nothing;
}

/* Ignored signals stay ignored in what a program executes, and only those; one that fails
 * to execute something is left as it was, and so is the parent of a child that changes. */
static int run_ignoring(void) {
  extern char **environ;
  char *self = program_invocation_name, *command[] = {self, "ignored", NULL};
  pid_t child;
  pthread_t thread;
  setbuf(stdout, NULL);
  signal(SIGUSR1, SIG_IGN);
  signal(SIGRTMIN + 3, SIG_IGN);
  signal(SIGTSTP, SIG_IGN);
  signal(SIGHUP, SIG_IGN);
  signal(SIGHUP, SIG_DFL);
  signal(SIGUSR2, on_caught);
  if (posix_spawn(&child, self, NULL, NULL, command, environ) == 0) waitpid(child, NULL, 0);
  if ((child = fork()) == 0) {
    signal(SIGALRM, SIG_IGN);
    execv(self, command);
  }
  waitpid(child, NULL, 0);
  if ((child = vfork()) == 0) {
    signal(SIGUSR1, SIG_DFL);
    signal(SIGUSR2, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    fail_to_exec(NULL);
    raise(SIGTERM);
    execv(self, command);
    _exit(1);
  }
  waitpid(child, NULL, 0);
  fail_to_exec(NULL);
  pthread_create(&thread, NULL, fail_to_exec, NULL);
  pthread_join(thread, NULL);
  raise(SIGUSR1);
  raise(SIGUSR2);
  signal(SIGUSR1, on_caught);
  raise(SIGUSR1);
  printf("caught %d\n", caught);
  signal(SIGUSR1, SIG_IGN);
  execv(self, command);
  return 1;
}

/* Closes all that is open, as runtimes do before exec, in the time one system call takes. */
static int run_closing(void) {
  long first = 3, last = ~0u, result;
  int high = dup2(1, 300);
  alarm(30);
  __asm__ volatile("syscall"
                   : "=a"(result), "+S"(last)
                   : "0"(436L), "D"(first), "d"(0L)
                   : "rcx", "r11", "memory"); /* close_range */
  printf("%ld %lx %d %d\n", result, last, high, fcntl(high, F_GETFD));
  return 0;
}

static const struct {
  const char *name;
  int (*run)(void);
} programs[] = {
    {"threads", run_threads},     {"fork", run_fork},         {"vfork", run_vfork},
    {"alarm", run_alarm},         {"segv", run_segv},         {"guard", run_guard},
    {"mmap", run_mmap},           {"mremap", run_mremap},     {"brk", run_brk},
    {"spin", run_spin},           {"work", run_work},         {"abort", run_abort},
    {"kill", run_kill},           {"term", run_term},         {"exec", run_exec},
    {"self", run_self},           {"names", run_names},       {"valgrind", run_valgrind},
    {"group", run_group},         {"files", run_files},       {"wait", run_wait},
    {"ignored", run_ignored},     {"ignoring", run_ignoring}, {"closing", run_closing},
    {"registers", run_registers},
};

int main(int argc, char **argv) {
  for (size_t i = 0; argc > 1 && i < sizeof programs / sizeof programs[0]; i++)
    if (strcmp(argv[1], programs[i].name) == 0) return programs[i].run();
  return 99;
}
