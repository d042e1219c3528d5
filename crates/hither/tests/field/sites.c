/* sites: allocates small blocks at 33,000 places, more than structures are told apart, and then writes every word of
 * a large one. */
#include <stdio.h>
#include <stdlib.h>

#define WORDS 100000

void allocate_everywhere(void);
__asm__(".text\n"
        "allocate_everywhere:\n"
        "  sub $8, %rsp\n"
        ".rept 33000\n"
        "  mov $24, %edi\n"
        "  call malloc@plt\n"
        "  mov %rax, %rdi\n"
        "  call free@plt\n"
        ".endr\n"
        "  add $8, %rsp\n"
        "  ret\n");

int main(void) {
  allocate_everywhere();
  volatile long *block = malloc(WORDS * sizeof *block);
  if (!block) return 2;
  for (long i = 0; i < WORDS; i++) block[i] = i;
  return printf("sites: %ld\n", block[WORDS - 1]) < 0;
}
