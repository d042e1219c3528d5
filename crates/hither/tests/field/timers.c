/* timers: a program that sets its timer again before it has run out. Says how long it had left each time. */
#include <limits.h>
#include <stdio.h>
#include <sys/time.h>
#include <unistd.h>

int main(void) {
  const struct itimerval some = {.it_value = {1000, 500000}};
  struct itimerval left;
  printf("%d", alarm(INT_MAX));
  printf(" %d", alarm(1000) > INT_MAX - 100);
  printf(" %d", (alarm(7000) + 50) / 100);
  setitimer(ITIMER_REAL, &some, &left);
  printf(" %ld", (left.it_value.tv_sec + 50) / 100);
  getitimer(ITIMER_REAL, &left);
  printf(" %ld", (left.it_value.tv_sec + 50) / 100);
  printf(" %d", (alarm(0) + 50) / 100);
  printf(" %u\n", alarm(0));
}
