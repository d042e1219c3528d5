/* crowds.c: many threads, many processes, and processes that stay. */
#include "notice.h"
#include <fcntl.h>
#include <sys/stat.h>

#define CROWD 256
#define CHILDREN 500

static pthread_barrier_t together;
static atomic_long sum;

static void *be_there(void *number) {
  pthread_barrier_wait(&together);
  atomic_fetch_add(&sum, (intptr_t)number);
  return NULL;
}

/* CROWD threads that are all there at once, again and again. */
int run_joins(void) {
  static pthread_t thread[CROWD];
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 64 << 10);
  pthread_barrier_init(&together, NULL, CROWD);
  for (long round = 0; round < argument; round++) {
    for (intptr_t i = 0; i < CROWD; i++)
      if (pthread_create(&thread[i], &attributes, be_there, (void *)(i + round)) != 0) return 1;
    for (int i = 0; i < CROWD; i++) pthread_join(thread[i], NULL);
  }
  printf("%ld\n", atomic_load(&sum));
  return 0;
}

/* CHILDREN processes that are all there at once; each has memory and a child of its own. */
int run_bomb(void) {
  int gate[2], ready[2], total = 0, made = 0;
  char byte;
  if (pipe(gate) != 0 || pipe(ready) != 0) return 2;
  for (; made < CHILDREN; made++) {
    pid_t child = fork();
    if (child < 0) break;
    if (child == 0) {
      close(gate[1]);
      anonymous(2 * MIB)[MIB] = 1;
      if (fork() == 0) _exit(0);
      if (write(ready[1], "r", 1) != 1) _exit(99);
      _exit(read(gate[0], &byte, 1) == 0 ? made % 7 : 99);
    }
  }
  for (int i = 0; i < made; i++)
    if (read(ready[0], &byte, 1) != 1) return 2;
  close(gate[1]);
  for (int status; wait(&status) > 0;) total += WEXITSTATUS(status);
  printf("%d children, %d\n", made, total);
  return 0;
}

static void *map_for_ever(void *nothing) {
  for (int i = 0;; i++) {
    char *p = anonymous(MIB);
    p[i % MIB] = 1;
    munmap(p, MIB);
  }
  return nothing;
}

static void *nothing_much(void *nothing) { return nothing; }

static void *thread_for_ever(void *nothing) {
  for (pthread_t thread;;)
    if (pthread_create(&thread, NULL, nothing_much, NULL) == 0) pthread_join(thread, NULL);
  return nothing;
}

static void *fork_for_ever(void *nothing) {
  for (pid_t child;; waitpid(child, NULL, 0))
    if ((child = fork()) == 0) _exit(0);
  return nothing;
}

static void stormy(int how) {
  pthread_t thread;
  for (int i = 0; i < 3; i++) pthread_create(&thread, NULL, map_for_ever, NULL);
  pthread_create(&thread, NULL, thread_for_ever, NULL);
  pthread_create(&thread, NULL, fork_for_ever, NULL);
  usleep(3000 + 700 * (unsigned)how);
  switch (how % 4) {
  case 0: _exit(9);
  case 1: abort();
  case 2: execl("/bin/sh", "sh", "-c", "exit 8", (char *)NULL); _exit(1);
  default: kill(getpid(), SIGKILL);
  }
}

/* Processes end in all ways while their threads map, and make threads and processes. */
int run_storm(void) {
  for (int i = 0; i < argument; i++) {
    pid_t child = fork();
    if (child == 0) stormy(i);
    int status;
    waitpid(child, &status, 0);
    printf("%d %d\n", WIFSIGNALED(status) ? WTERMSIG(status) : 0, WEXITSTATUS(status));
    fflush(stdout);
  }
  return 0;
}

static int exists(const char *name) {
  struct stat found;
  return stat(name, &found) == 0;
}

/* What is left of the daemon: works on once the file `go` is there, says so in `done`. */
static void stay(void) {
  while (!exists("go")) usleep(10000);
  long touched = 0;
  for (int i = 0; i < 500; i++) {
    char *p = anonymous(MIB);
    for (int k = 0; k < MIB; k += 64 * PAGE) touched += p[k] + 1;
    munmap(p, MIB);
  }
  pthread_t thread;
  int created = pthread_create(&thread, NULL, nothing_much, NULL);
  int joined = pthread_join(thread, NULL);
  unsigned long mask[16];
  long known = syscall(SYS_sched_getaffinity, 0, sizeof mask, mask);
  FILE *out = fopen("written", "w");
  fprintf(out, "touched %ld thread %d %d mask %d shell %d\n", touched, created, joined, known > 0,
          system("exit 4") >> 8);
  fclose(out);
  rename("written", "done");
  _exit(0);
}

/* Forks away from whoever started it, as daemons do. */
int run_daemon(void) {
  pid_t child = fork();
  if (child == 0) {
    setsid();
    if (fork() == 0) {
      int null = open("/dev/null", O_RDWR);
      for (int fd = 0; fd < 3; fd++) dup2(null, fd);
      stay();
    }
    _exit(0);
  }
  waitpid(child, NULL, 0);
  puts("started");
  return 6;
}

/* Counts in the file `count`, so that all can see whether it is stopped. */
int run_count(void) {
  for (long i = 1; i <= argument; i++) {
    FILE *out = fopen("count.new", "w");
    fprintf(out, "%ld\n", i);
    fclose(out);
    rename("count.new", "count");
    usleep(20000);
  }
  printf("counted to %ld\n", argument);
  return 5;
}
