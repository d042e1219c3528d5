/* calm THREADS [private [PROGRAM...]]: couples of threads that share memory and have memory of
 * their own, but sleep most of the time, until standard input ends. Every count is checked in
 * the end, and a child is forked now and then. Says its process id first and "0 wrong" last.
 * private: what they share is private to the process, and no child is forked, after which
 * pages fault of themselves. PROGRAM: for each byte of standard
 * input, that is what the process goes on as, in the middle of all; `nobody`: as that user. */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 64, OWN = 8, MOST = 16 };
static int threads;
static atomic_bool over;
/* [couple][page] of both, [thread][page] of one's own. */
static atomic_long *both, *own;
static long rounds[MOST];

static atomic_long *at(atomic_long *memory, int of, int page) {
  return memory + ((size_t)of * PAGES + (size_t)page) * (PAGE / sizeof(long));
}

static void *body(void *argument) {
  int me = (int)(long)argument;
  long round = 0;
  /* Pages that are new each time: faults that nobody causes, by which others are allowed. */
  char *scratch = mmap(NULL, OWN * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (scratch == MAP_FAILED) abort();
  while (!atomic_load(&over)) {
    for (int page = 0; page < PAGES; page++) {
      atomic_fetch_add(at(both, me / 2, page), 1);
      if (page < OWN) atomic_fetch_add(at(own, me, page), 1);
    }
    if (round % 16 == 0) {
      for (int page = 0; page < OWN; page++) scratch[page * PAGE] = 1;
      madvise(scratch, OWN * PAGE, MADV_DONTNEED);
    }
    round++;
    usleep(500);
  }
  rounds[me] = round;
  return NULL;
}

int main(int argc, char **argv) {
  threads = argc > 1 ? atoi(argv[1]) : 0;
  if (threads < 2 || threads > MOST || threads % 2) return 2;
  size_t bytes = (size_t)threads * PAGES * PAGE;
  int rights = PROT_READ | PROT_WRITE;
  int kind = argc > 2 ? MAP_PRIVATE : MAP_SHARED;
  both = mmap(NULL, bytes, rights, kind | MAP_ANONYMOUS, -1, 0);
  own = mmap(NULL, bytes, rights, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (both == MAP_FAILED || own == MAP_FAILED) return 2;
  printf("%d\n", getpid());
  fflush(stdout);
  pthread_t others[MOST];
  for (long t = 0; t < threads; t++)
    if (pthread_create(&others[t], NULL, body, (void *)t)) return 2;
  struct pollfd input = {.fd = 0, .events = POLLIN};
  char byte;
  while (poll(&input, 1, 150) == 0 || (argc > 3 && read(0, &byte, 1) == 1)) {
    if (input.revents && strcmp(argv[3], "nobody") == 0) {
      if (setgid(65534) || setuid(65534)) return 3;
      input.revents = 0;
    }
    if (input.revents) {
      execvp(argv[3], argv + 3);
      return 3;
    }
    if (argc < 3 && fork() == 0) {
      usleep(400000);
      _exit(0);
    }
    while (waitpid(-1, NULL, WNOHANG) > 0) {}
  }
  atomic_store(&over, 1);
  for (int t = 0; t < threads; t++) pthread_join(others[t], NULL);
  while (waitpid(-1, NULL, 0) > 0) {}
  long wrong = 0;
  for (int t = 0; t < threads; t++)
    for (int page = 0; page < PAGES; page++) {
      wrong += *at(own, t, page) != (page < OWN ? rounds[t] : 0);
      if (t % 2 == 0) wrong += *at(both, t / 2, page) != rounds[t] + rounds[t + 1];
    }
  printf("%ld wrong\n", wrong);
  return wrong != 0;
}
