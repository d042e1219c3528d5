/* notice.c: ids, processing units, threads and processes made in unusual ways; picks the
 * program that is asked for. */
#include "notice.h"
#include <sched.h>
#include <sys/ptrace.h>
#include <sys/stat.h>

long argument = 20;
_Atomic long *beats;

void *beat(void *number) {
  for (;;) atomic_fetch_add(&beats[(intptr_t)number], 1);
  return NULL;
}

char *anonymous(size_t size) {
  char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) abort();
  return p;
}

/* --- ids and processing units */

/* Said of itself in relation to who started it, who is the same natively. */
static int run_who(void) {
  char folder[4096], tty[64] = "none";
  ttyname_r(0, tty, sizeof tty);
  printf("parent's group %d session %d cwd %s tty %s\n", getpgrp() == getpgid(getppid()),
         getsid(0) == getsid(getppid()), getcwd(folder, sizeof folder), tty);
  printf("group of its session %d uid %d %d gid %d %d umask %o\n", getsid(0) == getsid(getpgrp()), (int)getuid(),
         (int)geteuid(), (int)getgid(), (int)getegid(), umask(0));
  return 0;
}

static void show_mask(const char *who, pid_t tid) {
  unsigned long mask[16] = {0};
  long got = syscall(SYS_sched_getaffinity, tid, sizeof mask, mask);
  printf("%s: %ld", who, got < 0 ? -errno : got);
  for (int i = 0; i < 16; i++)
    if (mask[i]) printf(" %d:%lx", i, mask[i]);
  putchar('\n');
  fflush(stdout);
}

static void *show_thread(void *main_thread) {
  show_mask("thread", 0);
  show_mask("thread by id", (pid_t)syscall(SYS_gettid));
  show_mask("main by id", (pid_t)(intptr_t)main_thread);
  return NULL;
}

static int run_affinity(void) {
  show_mask("main", 0);
  show_mask("main by id", getpid());
  show_mask("nobody", 1 << 29);
  pthread_t thread;
  pthread_create(&thread, NULL, show_thread, (void *)(intptr_t)getpid());
  pthread_join(thread, NULL);
  pid_t child = fork();
  if (child == 0) {
    show_mask("child", 0);
    show_mask("its parent", getppid());
    fflush(stdout);
    execl("/usr/bin/nproc", "nproc", (char *)NULL);
  }
  waitpid(child, NULL, 0);
  if ((child = fork()) == 0)
    for (;;) pause();
  show_mask("child from here", child);
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
  unsigned long one;
  long small = syscall(SYS_sched_getaffinity, 0, 1, &one);
  printf("small %ld %d", small, errno);
  long bad = syscall(SYS_sched_getaffinity, 0, 128, NULL);
  printf(" null %ld %d online %ld\n", bad, errno, sysconf(_SC_NPROCESSORS_ONLN));
  return 0;
}

static void *where(void *nothing) {
  show_mask("inherited", 0);
  return nothing;
}

/* Chooses its units itself, as libraries do that bind threads. */
static int run_pins(void) {
  cpu_set_t all, last;
  pthread_t thread;
  sched_getaffinity(0, sizeof all, &all);
  int cpu = CPU_SETSIZE - 1;
  while (!CPU_ISSET(cpu, &all)) cpu--;
  CPU_ZERO(&last);
  int empty = sched_setaffinity(0, sizeof last, &last);
  printf("empty %d %d\n", empty, errno);
  CPU_SET(cpu, &last);
  printf("last %d\n", sched_setaffinity(0, sizeof last, &last));
  show_mask("pinned", 0);
  printf("runs there %d\n", sched_getcpu() == cpu);
  pthread_create(&thread, NULL, where, NULL);
  pthread_join(thread, NULL);
  if (fork() == 0) {
    show_mask("child", 0);
    printf("runs there %d\n", sched_getcpu() == cpu);
    fflush(stdout);
    _exit(0);
  }
  wait(NULL);
  printf("all %d\n", sched_setaffinity(0, sizeof all, &all));
  show_mask("free", 0);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setaffinity_np(&attributes, sizeof last, &last);
  pthread_create(&thread, &attributes, where, NULL);
  pthread_join(thread, NULL);
  return 0;
}

static void show_allowed(const char *who) {
  char line[256], *name = "Cpus_allowed_list:\t";
  FILE *f = fopen("/proc/thread-self/status", "r");
  while (fgets(line, sizeof line, f))
    if (strncmp(line, name, strlen(name)) == 0) printf("%s %s", who, line + strlen(name));
  fclose(f);
  fflush(stdout);
}

static void child_shows(const char *who) {
  if (fork() == 0) {
    show_allowed(who);
    _exit(0);
  }
  wait(NULL);
}

static void *thread_shows(void *number) {
  char who[32];
  snprintf(who, sizeof who, "thread %ld", (long)(intptr_t)number);
  show_allowed(who);
  if ((intptr_t)number == 2) child_shows("child of thread 2");
  return NULL;
}

/* Where threads and children really may run, by the kernel's own account. */
static int run_masks(void) {
  pthread_t thread;
  show_allowed("main");
  for (intptr_t i = 1; i < 4; i++) {
    pthread_create(&thread, NULL, thread_shows, (void *)i);
    pthread_join(thread, NULL);
  }
  child_shows("child");
  execl("/bin/sh", "sh", "-c", "grep Cpus_allowed_list /proc/self/status", (char *)NULL);
  return 1;
}

/* --- threads and processes in unusual ways */

static int exit_five(void *folder) {
  (void)folder;
  anonymous(4 * MIB);
  _exit(5);
}

static void show_clone(const char *how, pid_t child, int options) {
  int status = -1;
  pid_t got = waitpid(child, &status, options);
  printf("%s: %d status %d\n", how, got == child, WEXITSTATUS(status));
}

static int run_clones(void) {
  char *stack = anonymous(MIB), *top = stack + MIB;
  show_clone("shared memory, vfork", clone(exit_five, top, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL), 0);
  show_clone("shared memory", clone(exit_five, top, CLONE_VM | SIGCHLD, NULL), 0);
  show_clone("no signal", clone(exit_five, top, 0, NULL), __WALL);
  signal(SIGUSR1, SIG_IGN);
  show_clone("another signal", clone(exit_five, top, SIGUSR1, NULL), __WALL);
  show_clone("untraced", clone(exit_five, top, CLONE_UNTRACED | SIGCHLD, NULL), 0);
  int pidfd = -1;
  uint64_t arguments[11] = {CLONE_PIDFD, (uintptr_t)&pidfd, 0, 0, SIGCHLD};
  long child = syscall(SYS_clone3, arguments, 64);
  if (child == 0) exit_five(NULL);
  show_clone("clone3", (pid_t)child, 0);
  printf("pidfd %d\n", pidfd >= 0);
  /* Its parent is ours, who did not ask for it. */
  child = clone(exit_five, top, CLONE_PARENT | CLONE_FILES | SIGCHLD, NULL);
  printf("sibling %d wait %d\n", child > 0, waitpid((pid_t)child, NULL, __WALL));
  return 0;
}

static void *exec_echo(void *left) {
  char number[32], self[4096];
  snprintf(number, sizeof number, "%ld", (long)(intptr_t)left - 1);
  ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
  self[n > 0 ? n : 0] = 0;
  if (left) execl(self, self, "exec-thread", number, (char *)NULL);
  else execl("/bin/echo", "echo", "replaced", (char *)NULL);
  return NULL;
}

/* A thread that is not the first replaces the program, again and again, while others run. */
static int run_exec_thread(void) {
  printf("first thread %d\n", getpid() == (pid_t)syscall(SYS_gettid));
  fflush(stdout);
  pthread_t thread;
  beats = (_Atomic long *)anonymous(PAGE);
  for (intptr_t i = 0; i < 2; i++) pthread_create(&thread, NULL, beat, (void *)i);
  pthread_create(&thread, NULL, exec_echo, (void *)(intptr_t)argument);
  pthread_join(thread, NULL);
  return 1;
}

static void *outlive(void *nothing) {
  usleep(100000);
  char *p = anonymous(4 * MIB);
  p[MIB] = 1;
  puts("outlived");
  exit(p[MIB] + 3);
  return nothing;
}

/* The first thread ends before the others. */
static int run_headless(void) {
  pthread_create(&(pthread_t){0}, NULL, outlive, NULL);
  pthread_exit(NULL);
}

static int run_traces(void) {
  pid_t child = fork();
  if (child == 0) {
    long asked = ptrace(PTRACE_TRACEME, 0, NULL, NULL);
    if (asked) _exit(10 + errno);
    execl("/bin/true", "true", (char *)NULL);
  }
  int status, stops = 0;
  while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
    stops++;
    ptrace(PTRACE_CONT, child, NULL, NULL);
  }
  printf("%d stops, status %d\n", stops, WEXITSTATUS(status));
  return 0;
}

static const struct {
  const char *name;
  int (*run)(void);
} programs[] = {
    {"fatal", run_fatal},       {"siginfo", run_siginfo},   {"sigwait", run_sigwait},
    {"stops", run_stops},       {"who", run_who},           {"affinity", run_affinity},
    {"pins", run_pins},         {"clones", run_clones},     {"exec-thread", run_exec_thread},
    {"headless", run_headless}, {"traces", run_traces},     {"joins", run_joins},
    {"bomb", run_bomb},         {"storm", run_storm},       {"daemon", run_daemon},
    {"count", run_count},       {"mappings", run_mappings}, {"registers", run_registers},
    {"lasting", run_lasting},   {"masks", run_masks},       {"filter", run_filter},
};

int main(int argc, char **argv) {
  if (argc > 2) argument = atol(argv[2]);
  for (size_t i = 0; argc > 1 && i < sizeof programs / sizeof programs[0]; i++)
    if (strcmp(argv[1], programs[i].name) == 0) return programs[i].run();
  return 99;
}
