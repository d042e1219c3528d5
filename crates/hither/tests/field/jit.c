/* jit: writes code into a page that it has executed from, as compilers at run time do, with every register in
 * use. Says whether the new code runs and the registers are what they were. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { REGISTERS = 12, ROUNDS = 100 };

/* write_code(where, value, data, out): puts the value into the code between two accesses to `data`, then stores what
 * the registers have then into `out`. */
void write_code(uint8_t *where, uint64_t value, uint64_t *data, uint64_t *out);
/* clang-format off */
__asm__(".text\n"
        "write_code:\n"
        "  push %rbx\n  push %rbp\n  push %r12\n  push %r13\n  push %r14\n  push %r15\n"
        "  mov %rsi, %rax\n  mov %rcx, %rbx\n"
        "  mov $2, %ecx\n  mov $4, %esi\n  mov $5, %ebp\n  mov $6, %r8d\n  mov $7, %r9d\n  mov $8, %r10d\n"
        "  mov $9, %r11d\n  mov $10, %r12d\n  mov $11, %r13d\n  mov $12, %r14d\n  mov $13, %r15d\n"
        "  jmp 1f\n"
        "1: add %rcx, (%rdx)\n"
        "  mov %al, (%rdi)\n"
        "  add (%rdx), %rax\n"
        "  mov %rax, (%rbx)\n  mov %rcx, 8(%rbx)\n  mov %rsi, 16(%rbx)\n  mov %rbp, 24(%rbx)\n"
        "  mov %r8, 32(%rbx)\n  mov %r9, 40(%rbx)\n  mov %r10, 48(%rbx)\n  mov %r11, 56(%rbx)\n"
        "  mov %r12, 64(%rbx)\n  mov %r13, 72(%rbx)\n  mov %r14, 80(%rbx)\n  mov %r15, 88(%rbx)\n"
        "  pop %r15\n  pop %r14\n  pop %r13\n  pop %r12\n  pop %rbp\n  pop %rbx\n"
        "  ret\n");
/* clang-format on */

int main(void) {
  /* mov eax, 0; ret */
  static const uint8_t start[] = {0xb8, 0, 0, 0, 0, 0xc3};
  uint8_t *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (code == MAP_FAILED) return 1;
  memcpy(code, start, sizeof start);
  int (*run)(void) = (int (*)(void))(void *)code;
  int stale = run(), changed = 0;
  for (int i = 1; i <= ROUNDS; i++) {
    uint64_t data = 1000, out[REGISTERS];
    write_code(code + 1, (uint64_t)i, &data, out);
    const uint64_t expected[REGISTERS] = {(uint64_t)i + 1002, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13};
    changed += memcmp(out, expected, sizeof out) != 0;
    stale += run() != i;
  }
  printf("stale code: %d, changed registers: %d\n", stale, changed);
  return 0;
}
