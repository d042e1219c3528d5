/* team.h: threads that synchronise without touching memory.
 *
 * A barrier or a lock in memory is itself shared data and shows up in the matrix.
 * Here a turn is handed over by eventfd, through a bare syscall: no library call, so
 * not even the line of the procedure linkage table is shared. What a program using
 * this shares is then exactly what its source says.
 *
 * The calling thread is member 0 and takes part; members 1.. are created one after
 * the other, each once the one before runs, so member i is thread i of the run. */
#ifndef TEAM_H
#define TEAM_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#define PAGE 4096
#ifndef TEAM_MAX
#define TEAM_MAX 1024
#endif
/* Volatile, so that every element read or written in the source is one access. */
typedef volatile long cell;
#define PAGE_CELLS (PAGE / (long)sizeof(cell))

static inline long raw_syscall(long number, long a, long b, long c) {
  long result;
  __asm__ volatile("syscall" : "=a"(result) : "0"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
  return result;
}
static inline void give(int baton, uint64_t times) { raw_syscall(SYS_write, baton, (long)&times, sizeof times); }
static inline void take(int baton) {
  uint64_t one;
  while (raw_syscall(SYS_read, baton, (long)&one, sizeof one) < 0) {}
}

/* A counting semaphore; needs one descriptor. */
static inline int new_baton(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  int baton = eventfd(0, EFD_SEMAPHORE);
  if (baton < 0) {
    perror("eventfd: raise the limit of open files (ulimit -n)");
    exit(2);
  }
  return baton;
}

/* A barrier for all members. Keep a copy of it on each member's own stack. */
struct gate {
  int arrive, leave[2], members, member, round;
};
static inline struct gate new_gate(int members) {
  struct gate g = {new_baton(), {new_baton(), new_baton()}, members, 0, 0};
  return g;
}
static inline void pass(struct gate *g) {
  if (g->member == 0) {
    for (int i = 1; i < g->members; i++) take(g->arrive);
    if (g->members > 1) give(g->leave[g->round & 1], (uint64_t)g->members - 1);
  } else {
    give(g->arrive, 1);
    take(g->leave[g->round & 1]);
  }
  g->round++;
}

/* Members that work in step: none is ever more than a turn ahead of the one before it, so
 * that all of them meet in every slice, however few processors run them. */
static _Alignas(64) int turns[TEAM_MAX];
static inline void new_turns(int members) {
  for (int i = 0; i < members; i++) turns[i] = new_baton();
}
static inline void end_turn(int mine, int next) {
  give(next, 1);
  take(mine);
}

struct member {
  void (*body)(int);
  int index, started;
  pthread_t thread;
};
static inline void *member_main(void *argument) {
  struct member *m = argument;
  char name[] = {'w', (char)('0' + m->index / 100 % 10), (char)('0' + m->index / 10 % 10), (char)('0' + m->index % 10),
                 0};
  pthread_setname_np(pthread_self(), name);
  give(m->started, 1);
  m->body(m->index);
  return NULL;
}
static inline void run_team(int members, void (*body)(int)) {
  static struct member team[TEAM_MAX];
  int started = new_baton();
  for (int i = 1; i < members; i++) {
    team[i] = (struct member){body, i, started, 0};
    if (pthread_create(&team[i].thread, NULL, member_main, &team[i]) != 0) {
      fprintf(stderr, "cannot create thread %d\n", i);
      exit(2);
    }
    take(started);
  }
  body(0);
  for (int i = 1; i < members; i++) pthread_join(team[i].thread, NULL);
}

/* The i-th argument as a number between low and high, or the default. */
static inline long number(int argc, char **argv, int i, long otherwise, long low, long high) {
  long value = i < argc ? strtol(argv[i], NULL, 0) : otherwise;
  if (value < low || value > high) {
    fprintf(stderr, "%s: argument %d must be between %ld and %ld\n", argv[0], i, low, high);
    exit(2);
  }
  return value;
}
#endif
