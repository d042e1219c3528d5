/* A program that gives up root's rights while it is traced, and tries to reach the memory that tracers share.
   drops MODE, with MODE: fork: a child gives them up; threads: the process itself, which has two threads;
   exec PROGRAM...: the process itself, then it executes a program; vfork PROGRAM...: a child of vfork, likewise;
   back: it takes them back. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define STRANGER 54321
#define ELEMENTS 100000

static volatile long table[ELEMENTS];
static volatile int done;

static void *count(void *unused) {
  for (; !done; sched_yield())
    for (int n = 0; n < ELEMENTS; n++) table[n] += n;
  return unused;
}

/* Where the tracer's memory is mapped; NULL: nowhere. */
static long *mapped(void) {
  FILE *maps = fopen("/proc/self/maps", "r");
  char line[512];
  unsigned long start = 0, found = 0;
  while (maps && fgets(line, sizeof line, maps))
    if (strstr(line, "memfd:hither") && sscanf(line, "%lx", &start) == 1 && !found) found = start;
  if (maps) fclose(maps);
  return (long *)found;
}

static int give_up(void) { return setgid(STRANGER) || setuid(STRANGER) ? (perror("setuid"), 1) : 0; }

/* The first word says what the memory is; only tracers that start read it. */
static void attack(long *memory) {
  *memory = 0x6b72616d;
  printf("after: %s\n", mapped() ? "mapped" : "not mapped");
  fflush(stdout);
}

int main(int argc, char **argv) {
  const char *mode = argc > 1 ? argv[1] : "fork";
  pthread_t threads[2];
  long *memory = mapped(), first = memory ? *memory : 0;
  printf("before: %s\n", memory ? "mapped" : "not mapped");
  fflush(stdout);
  if (!memory) return 3;
  if (strcmp(mode, "fork") == 0) {
    if (fork() == 0) {
      if (give_up()) return 1;
      attack(memory);
      _exit(0);
    }
    wait(NULL);
    printf("parent: %s\n", *memory == first ? "unharmed" : "harmed");
  } else if (strcmp(mode, "threads") == 0) {
    for (int n = 0; n < 2; n++) pthread_create(threads + n, NULL, count, NULL);
    usleep(50000);
    if (give_up()) return 1;
    attack(memory);
    usleep(50000);
    done = 1;
    for (int n = 0; n < 2; n++) pthread_join(threads[n], NULL);
  } else if (strcmp(mode, "vfork") == 0) {
    if (vfork() == 0) {
      if (!give_up()) execvp(argv[2], argv + 2);
      _exit(127);
    }
    int status = 0;
    wait(&status);
    printf("parent: %s\n", *memory == first ? "unharmed" : "harmed");
    return WEXITSTATUS(status);
  } else if (strcmp(mode, "exec") == 0) {
    if (give_up()) return 1;
    execv("/no/such/program", argv + 2);
    execvp(argv[2], argv + 2);
    return 127;
  } else {
    if (seteuid(STRANGER) || seteuid(geteuid()) || seteuid(0) || setgid(getgid())) return 1;
    printf("after: %s\n", mapped() ? "mapped" : "not mapped");
  }
  return 0;
}
