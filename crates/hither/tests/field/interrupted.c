/* interrupted.c: signals that arrive in loops that never leave the tracer's code cache.
 *
 *   misses      a loop in which each access misses the tracer's line cache
 *   allocates   a loop that calls malloc and free
 *   fills       a loop of string instructions
 *   end         as `misses`, without a handler, once the file `up` is there
 *   identity    two threads in one loop, while a third changes the user id: the C library sends
 *               a signal to each and waits for all. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum { LONGS = 1 << 20, STEP = 9, FILL = 4096, COUNTERS = 2, CHANGES = 5 };

static volatile long table[LONGS];
static char filled[FILL];
static volatile sig_atomic_t done;

static void on_alarm(int signal) {
  (void)signal;
  done = 1;
}

static void misses(void) {
  while (!done)
    for (int n = 0; n < LONGS && !done; n += STEP) table[n] += n;
}

static void allocates(void) {
  while (!done) {
    char *volatile block = malloc(STEP);
    free(block);
  }
}

static void fills(void) {
  while (!done) {
    char *to = filled;
    long left = FILL;
    __asm__ volatile("rep stosb" : "+D"(to), "+c"(left) : "a"(0) : "memory");
  }
}

static void *count(void *unused) {
  misses();
  return unused;
}

static int identity(void) {
  pthread_t counters[COUNTERS];
  for (int n = 0; n < COUNTERS; n++) pthread_create(&counters[n], NULL, count, NULL);
  for (int n = 0; n < CHANGES; n++) {
    usleep(10000);
    if (setuid(getuid())) return 1;
  }
  done = 1;
  for (int n = 0; n < COUNTERS; n++) pthread_join(counters[n], NULL);
  return 0;
}

int main(int argc, char **argv) {
  const char *how = argc > 1 ? argv[1] : "";
  struct itimerval once = {.it_value = {.tv_usec = 50000}};
  if (strcmp(how, "identity") == 0) return identity();
  if (strcmp(how, "end") == 0) {
    fclose(fopen("up", "w"));
    misses();
    return 1;
  }
  signal(SIGALRM, on_alarm);
  setitimer(ITIMER_REAL, &once, NULL);
  if (strcmp(how, "misses") == 0) misses();
  else if (strcmp(how, "allocates") == 0) allocates();
  else if (strcmp(how, "fills") == 0) fills();
  puts(done ? "interrupted" : "unknown loop");
  return !done;
}
