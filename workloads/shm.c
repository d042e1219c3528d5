/* shm threads|fork|posix|memfd|sysv [WORKERS=4 [ROUNDS=20000 [WORDS=512 [OWN=0]]]]
 *
 * The ring of ring.c through a shared segment: every round, worker i writes WORDS words
 * of page i of `segment` and reads those of page i-1. The workers are threads of one
 * process, forked processes with an inherited anonymous shared mapping or System V
 * segment, or forked processes that each map a POSIX shared memory object, or one made
 * by memfd_create, at an address of their own. Then each writes a word of every line of
 * OWN pages of its own.
 *
 * Expected, with N = WORKERS, the same in all cases (worker i is thread i of the
 * run; the parent is worker 0):
 *   segment: N pages, page i first touched by worker i, which writes ROUNDS*WORDS;
 *        worker i+1 mod N reads as many, nobody else touches it
 *   matrix: M[i][i+1 mod N] = 2*ROUNDS*WORDS less at most one round per slice (twice
 *        that for N = 2); 0 elsewhere
 *   processes: 1, or N */
#define _GNU_SOURCE
#include "team.h"
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

static cell *segment;
static int workers, filled[TEAM_MAX], emptied[TEAM_MAX];
static long rounds, words, own, wrong[TEAM_MAX];

static void body(int me) {
  int n = workers, next = (me + 1) % n, before = (me + n - 1) % n;
  int full_here = filled[me], full_next = filled[next];
  int empty_here = emptied[me], empty_before = emptied[before];
  long turns = rounds, count = words, sum = 0;
  cell *mine = segment + me * PAGE_CELLS, *theirs = segment + before * PAGE_CELLS;
  for (long round = 0; round < turns; round++) {
    for (long k = 0; k < count; k++) mine[k] = round + k;
    give(full_next, 1);
    take(full_here);
    for (long k = 0; k < count; k++) sum += theirs[k];
    give(empty_before, 1);
    take(empty_here);
  }
  cell *last = malloc((size_t)own * PAGE);
  if (!last) perror("malloc"), exit(2);
  for (long k = 0; k < own * PAGE_CELLS; k += 64 / (long)sizeof *last) last[k] = k;
  wrong[me] = sum != turns * (turns - 1) / 2 * count + count * (count - 1) / 2 * turns;
}

/* `object` is the descriptor of the shared memory, -1 for an anonymous mapping. */
static cell *map_segment(int object) {
  int flags = object < 0 ? MAP_SHARED | MAP_ANONYMOUS : MAP_SHARED;
  void *at = mmap(NULL, (size_t)workers * PAGE, PROT_READ | PROT_WRITE, flags, object, 0);
  if (at == MAP_FAILED) perror("mmap"), exit(2);
  return at;
}

static long run_processes(int object) {
  long bad = 0;
  for (int i = 1; i < workers; i++) {
    pid_t child = fork();
    if (child < 0) perror("fork"), exit(2);
    if (child > 0) continue;
    if (object >= 0) {
      /* i pages in the way: every process has the object at another address */
      mmap(NULL, (size_t)i * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      segment = map_segment(object);
    }
    body(i);
    _exit(wrong[i] != 0);
  }
  if (object >= 0) segment = map_segment(object);
  body(0);
  for (int i = 1; i < workers; i++) {
    int status = 1;
    wait(&status);
    bad += status != 0;
  }
  return bad + wrong[0];
}

int main(int argc, char **argv) {
  const char *how = argc > 1 ? argv[1] : "";
  workers = (int)number(argc, argv, 2, 4, 2, TEAM_MAX);
  rounds = number(argc, argv, 3, 20000, 1, 1000000000);
  words = number(argc, argv, 4, PAGE_CELLS, 1, PAGE_CELLS);
  own = number(argc, argv, 5, 0, 0, 1000000);
  for (int i = 0; i < workers; i++) filled[i] = new_baton(), emptied[i] = new_baton();
  long bad = 0;
  if (strcmp(how, "threads") == 0) {
    segment = map_segment(-1);
    run_team(workers, body);
    for (int i = 0; i < workers; i++) bad += wrong[i];
  } else if (strcmp(how, "fork") == 0) {
    segment = map_segment(-1);
    bad = run_processes(-1);
  } else if (strcmp(how, "posix") == 0) {
    char name[32];
    snprintf(name, sizeof name, "/shm-workload-%d", (int)getpid());
    int object = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (object < 0 || ftruncate(object, (off_t)workers * PAGE) != 0) return perror(name), 2;
    shm_unlink(name);
    bad = run_processes(object);
  } else if (strcmp(how, "memfd") == 0) {
    int object = memfd_create("shm-workload", 0);
    if (object < 0 || ftruncate(object, (off_t)workers * PAGE) != 0) return perror("memfd_create"), 2;
    bad = run_processes(object);
  } else if (strcmp(how, "sysv") == 0) {
    int id = shmget(IPC_PRIVATE, (size_t)workers * PAGE, IPC_CREAT | 0600);
    segment = shmat(id, NULL, 0);
    if (segment == (void *)-1 || shmctl(id, IPC_RMID, NULL) != 0) return perror("shmat"), 2;
    bad = run_processes(-1);
  } else {
    return fprintf(stderr, "shm: the first argument is threads, fork, posix, memfd or sysv\n"), 2;
  }
  printf("shm: %s, %d workers, %s\n", how, workers, bad ? "WRONG" : "correct");
  return bad != 0;
}
