/* memory.c: what a program may rely on in the system calls that change its memory. */
#include "notice.h"
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/ipc.h>
#include <sys/prctl.h>
#include <sys/shm.h>

static void show(const char *what, const void *got) {
  printf("%s: %s %d\n", what, got == MAP_FAILED ? "failed" : "mapped", got == MAP_FAILED ? errno : 0);
}

static void show_errors(void) {
  int anonymous_private = MAP_PRIVATE | MAP_ANONYMOUS;
  show("nothing", mmap(NULL, 0, PROT_READ, anonymous_private, -1, 0));
  show("too much", mmap(NULL, (size_t)1 << 60, PROT_READ, anonymous_private, -1, 0));
  show("no file", mmap(NULL, MIB, PROT_READ, MAP_PRIVATE, 999, 0));
  show("neither", mmap(NULL, MIB, PROT_READ, MAP_ANONYMOUS, -1, 0));
  show("odd offset", mmap(NULL, MIB, PROT_READ, MAP_PRIVATE, 0, 5));
  show("remap of nothing", mremap((void *)(16 * PAGE), PAGE, MIB, MREMAP_MAYMOVE));
  if (munmap((void *)5, PAGE) != 0) printf("unmap odd %d\n", errno);
  if (shmat(-1, NULL, 0) == (void *)-1) printf("attach %d\n", errno);
}

static void show_shared(void) {
  int id = shmget(IPC_PRIVATE, 2 * MIB, IPC_CREAT | 0600);
  char *segment = shmat(id, NULL, 0), *again = shmat(id, NULL, 0);
  shmctl(id, IPC_RMID, NULL);
  segment[MIB] = 7;
  int seen = again[MIB], one_gone = shmdt(segment), all_gone = shmdt(again);
  printf("segment %d %d %d\n", seen, one_gone, all_gone);
  int fd = memfd_create("shared", 0);
  if (ftruncate(fd, 2 * MIB) != 0) abort();
  char *whole = mmap(NULL, 2 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  char *half = mmap(NULL, MIB, PROT_READ, MAP_SHARED, fd, MIB);
  whole[MIB + 3] = 9;
  printf("file %d\n", half[3]);
}

int run_mappings(void) {
  show_errors();
  show_shared();
  char *p = anonymous(4 * MIB);
  memset(p, 3, 4 * MIB);
  char *fixed = mmap(p + MIB, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  printf("fixed %d %d %d\n", fixed == p + MIB, fixed[0], p[0] + fixed[MIB]);
  errno = 0;
  show("taken", mmap(p, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0));
  char *grown = mremap(p + 2 * MIB, 2 * MIB, 8 * MIB, MREMAP_MAYMOVE);
  printf("grown %d %d\n", grown[2 * MIB - 1], grown[2 * MIB]);
  char *shrunk = mremap(grown, 8 * MIB, MIB, 0);
  printf("shrunk %d %d\n", shrunk == grown, shrunk[MIB - 1]);
  char *target = anonymous(MIB), *moved = mremap(shrunk, MIB, MIB, MREMAP_MAYMOVE | MREMAP_FIXED, target);
  printf("moved %d %d\n", moved == target, moved[PAGE]);
  char *filled = mmap(NULL, 2 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  unsigned char there[512];
  int present = 0;
  mincore(filled, 2 * MIB, there);
  for (int i = 0; i < 512; i++) present += there[i] & 1;
  printf("populated %d\n", present);
  char *start = sbrk(0), *added = sbrk(3 * MIB), *end = sbrk(0);
  printf("break %d %ld %d\n", added == start, (long)(end - start), added[2 * MIB]);
  return 0;
}

/* The registers that a system call keeps are kept when it is mmap, and so is what lies
 * below the stack pointer, which may even point nowhere. */
int run_registers(void) {
  static uint64_t kept[16], zone[16], bottom;
  uint64_t address = 0;
  __asm__ volatile("movq $0x1111, %%rbx\n movq $0x2222, %%r12\n movq $0x3333, %%r13\n movq $0x4444, %%r14\n"
                   "movq $0x5555, %%r15\n movq %%rbx, %%xmm0\n movq %%r15, %%xmm15\n"
                   "movq $0x6666, -8(%%rsp)\n movq $0x7777, -64(%%rsp)\n movq $0x8888, -128(%%rsp)\n"
                   "movl $9, %%eax\n xorl %%edi, %%edi\n movl $0x200000, %%esi\n movl $3, %%edx\n"
                   "movl $0x22, %%r10d\n movq $-1, %%r8\n xorl %%r9d, %%r9d\n stc\n syscall\n setc %%cl\n"
                   "movq %%rax, %[address]\n"
                   "movq %%rbx, 0+%[kept]\n movq %%r12, 8+%[kept]\n movq %%r13, 16+%[kept]\n movq %%r14, 24+%[kept]\n"
                   "movq %%r15, 32+%[kept]\n movq %%rdi, 40+%[kept]\n movq %%rsi, 48+%[kept]\n movq %%rdx, 56+%[kept]\n"
                   "movq %%r10, 64+%[kept]\n movq %%r8, 72+%[kept]\n movq %%r9, 80+%[kept]\n movq %%xmm0, 88+%[kept]\n"
                   "movq %%xmm15, 96+%[kept]\n movzbq %%cl, %%rcx\n movq %%rcx, 104+%[kept]\n"
                   "movq -8(%%rsp), %%rax\n movq %%rax, 0+%[zone]\n movq -64(%%rsp), %%rax\n movq %%rax, 8+%[zone]\n"
                   "movq -128(%%rsp), %%rax\n movq %%rax, 16+%[zone]\n"
                   : [address] "=m"(address), [kept] "+m"(kept), [zone] "+m"(zone)
                   :
                   : "rax", "rbx", "rcx", "rdx", "rdi", "rsi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
                     "xmm0", "xmm15", "memory", "cc");
  for (int i = 0; i < 14; i++) printf("%llx ", (unsigned long long)kept[i]);
  for (int i = 0; i < 3; i++) printf("%llx ", (unsigned long long)zone[i]);
  printf("aligned %d\n", address % PAGE == 0 && address > 0);
  *(volatile char *)address = 1;
  __asm__ volatile("movq %%rsp, %[bottom]\n movl $24, %%esp\n movl $9, %%eax\n xorl %%edi, %%edi\n"
                   "movl $0x200000, %%esi\n movl $3, %%edx\n movl $0x22, %%r10d\n movq $-1, %%r8\n xorl %%r9d, %%r9d\n"
                   "syscall\n movq %[bottom], %%rsp\n movq %%rax, %[address]\n"
                   : [bottom] "+m"(bottom), [address] "=m"(address)
                   :
                   : "rax", "rcx", "rdx", "rdi", "rsi", "r8", "r9", "r10", "r11", "memory", "cc");
  ((volatile char *)address)[MIB] = 1;
  printf("without a stack %d\n", address % PAGE == 0 && address > 0);
  return 0;
}

static void *map_on(void *rounds) {
  for (;; atomic_fetch_add((atomic_long *)rounds, 1)) {
    char *p = anonymous(MIB);
    p[PAGE] = 1;
    munmap(p, MIB);
  }
  return NULL;
}

/* Maps until somebody ends it; the file `up` says by its process id that it does. */
int run_lasting(void) {
  static atomic_long rounds;
  for (int i = 0; i < 2; i++) pthread_create(&(pthread_t){0}, NULL, map_on, &rounds);
  while (atomic_load(&rounds) < 100) usleep(1000);
  FILE *up = fopen("up.new", "w");
  fprintf(up, "%d\n", getpid());
  fclose(up);
  rename("up.new", "up");
  for (long i = 0; argument == 0 || i < argument; i++) usleep(10000);
  printf("lasted %d\n", atomic_load(&rounds) >= 100);
  return 4;
}

static volatile sig_atomic_t trapped;
static void on_trap(int signal, siginfo_t *info, void *context) {
  (void)signal, (void)context;
  trapped = info->si_syscall == SYS_getppid ? info->si_code : -1;
}

/* The program's own filter: one call refused, one made a signal. */
int run_filter(void) {
  struct sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sched_getaffinity, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EXDEV),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof rules / sizeof *rules, rules};
  struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
  sigaction(SIGSYS, &action, NULL);
  printf("no new privileges %d\n", prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
  printf("filter %d\n", prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0));
  unsigned long mask[16];
  if (syscall(SYS_sched_getaffinity, 0, sizeof mask, mask) != 0) printf("refused %d\n", errno);
  syscall(SYS_getppid);
  printf("trapped %d\n", trapped);
  anonymous(4 * MIB)[MIB] = 1;
  return 0;
}
