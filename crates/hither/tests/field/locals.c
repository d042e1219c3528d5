/* More thread-local variables than are told apart: 260 of one file, each larger than the one before, and one in
 * each library that is loaded with the program (LIBRARY). Two threads write 1000 words of each. */
enum { WRITES = 1000 };

#ifdef LIBRARY
static __thread volatile long of_a_library;

static void touch(void) {
  for (int k = 0; k < WRITES; k++) of_a_library = k;
}

void add(void (*)(void)) __attribute__((weak));

__attribute__((constructor)) static void begin(void) {
  if (add) add(touch);
}
#else
#include <pthread.h>

#define FOR_5(DO, n) DO(n##0) DO(n##1) DO(n##2) DO(n##3) DO(n##4)
#define FOR_10(DO, n) FOR_5(DO, n) DO(n##5) DO(n##6) DO(n##7) DO(n##8) DO(n##9)
#define FROM_100(DO) FOR_10(DO, 10) FOR_10(DO, 11) FOR_10(DO, 12) FOR_10(DO, 13) FOR_10(DO, 14)
#define FROM_150(DO) FOR_10(DO, 15) FOR_10(DO, 16) FOR_10(DO, 17) FOR_10(DO, 18) FOR_10(DO, 19)
#define FROM_200(DO) FOR_10(DO, 20) FOR_10(DO, 21) FOR_10(DO, 22) FOR_10(DO, 23) FOR_10(DO, 24)
#define FROM_250(DO) FOR_10(DO, 25) FOR_10(DO, 26) FOR_10(DO, 27) FOR_10(DO, 28) FOR_10(DO, 29)
#define FROM_300(DO) FOR_10(DO, 30) FOR_10(DO, 31) FOR_10(DO, 32) FOR_10(DO, 33) FOR_10(DO, 34)
#define FOR_ALL(DO) FROM_100(DO) FROM_150(DO) FROM_200(DO) FROM_250(DO) FROM_300(DO) FOR_10(DO, 35)
#define DECLARE(n) static __thread volatile long v##n[n];
#define TOUCH(n)                                                                                                       \
  for (int k = 0; k < WRITES; k++) v##n[0] = k;

FOR_ALL(DECLARE)

static void (*touches[1024])(void);
static int ntouches;

void add(void (*touch)(void)) { touches[ntouches++] = touch; }

static void *body(void *unused) {
  FOR_ALL(TOUCH)
  for (int i = 0; i < ntouches; i++) touches[i]();
  return unused;
}

int main(void) {
  pthread_t threads[2];
  for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, body, NULL);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  return 0;
}
#endif
