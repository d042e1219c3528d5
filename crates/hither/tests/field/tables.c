/* tables: a program, and (with LIBRARY) a library whose tables of exported functions lie elsewhere in memory
 * than in the file, as patchelf leaves them. Where they lie in memory the file has `filler`. */
#ifdef LIBRARY
static unsigned char filler[12 << 20] = {[0 ...(12 << 20) - 1] = 0xff};

void GOMP_barrier(void) { filler[0]++; }
#else
#include <stdio.h>
enum { BARRIERS = 7 };

void GOMP_barrier(void);

int main(void) {
  for (int n = 0; n < BARRIERS; n++) GOMP_barrier();
  puts("done");
  return 0;
}
#endif
