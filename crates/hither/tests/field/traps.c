/* traps: a program that stops itself by a trap between accesses, as runtimes of languages do, and whose handler
 * reads and changes its registers. Says how often they were not what they should be. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <ucontext.h>

enum { ROUNDS = 2000, REGISTERS = 7 };

static long wrong, traps;
static long words[4] = {11, 22, 33, 44};
extern const char after_trap[];

static void on_trap(int signal, siginfo_t *info, void *context) {
  static const int numbers[REGISTERS] = {REG_RAX, REG_RCX, REG_RSI, REG_R8, REG_R9, REG_R10, REG_R11};
  greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
  (void)signal, (void)info;
  traps++;
  wrong += registers[REG_RIP] != (greg_t)after_trap;
  wrong += registers[REG_RDX] != words[0];
  for (int i = 0; i < REGISTERS; i++) wrong += registers[numbers[i]] != 100 + i;
  registers[REG_R9] = 1000;
}

int main(void) {
  struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
  sigaction(SIGTRAP, &action, NULL);
  for (int round = 0; round < ROUNDS; round++) {
    long rdx, r8, r9;
    __asm__ volatile("mov $100, %%rax\n mov $101, %%rcx\n mov $102, %%rsi\n"
                     "mov $103, %%r8\n mov $104, %%r9\n mov $105, %%r10\n mov $106, %%r11\n"
                     "mov (%[words]), %%rdx\n mov %%rdx, 8(%[words])\n"
                     "int3\n"
                     ".globl after_trap\n after_trap:\n"
                     "mov 16(%[words]), %%r8\n mov %%r8, 24(%[words])\n"
                     "mov %%rdx, %[rdx]\n mov %%r8, %[r8]\n mov %%r9, %[r9]\n"
                     : [rdx] "=m"(rdx), [r8] "=m"(r8), [r9] "=m"(r9)
                     : [words] "r"(words)
                     : "rax", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory");
    wrong += rdx != words[0] || r8 != words[2] || r9 != 1000 || words[3] != words[2];
  }
  printf("%ld traps, %ld wrong\n", traps, wrong);
}
