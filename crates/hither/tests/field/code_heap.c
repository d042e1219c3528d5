/* code_heap: has the kernel write beside code that has been executed, as systems do that keep code and data in one
 * heap (Racket): a whole read of a file, the rest of one that begins before the page with the code, and a path. Says
 * what came of it, and whether the code beside it still runs. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 8, DATA = 3 * PAGE, CODE = 5 * PAGE, BESIDE = CODE + 1024 };

/* lea n(%rdi), %eax; ret */
static int run(uint8_t *heap, uint8_t n) {
  const uint8_t code[] = {0x8d, 0x47, n, 0xc3};
  memcpy(heap + CODE, code, sizeof code);
  return ((int (*)(int))(heap + CODE))(40);
}

static int is_file(const uint8_t *at, const uint8_t *file, ssize_t n) { return n > 0 && !memcmp(at, file, n); }

int main(void) {
  static uint8_t file[PAGES * PAGE];
  for (int i = 0; i < PAGES * PAGE; i++) file[i] = (uint8_t)(i * 7 + i / 256);
  uint8_t *heap = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  int fd = memfd_create("file", 0), ends[2];
  /* The first pages hold no code: a call that begins there is stopped on its way. */
  if (heap == MAP_FAILED || mprotect(heap, DATA, PROT_READ | PROT_WRITE) ||
      write(fd, file, sizeof file) != sizeof file || lseek(fd, 0, SEEK_SET) || pipe(ends))
    return 2;
  int first = run(heap, 1);
  ssize_t n = read(fd, heap + BESIDE, 600);
  printf("read %zd %d, code %d %d\n", n, is_file(heap + BESIDE, file, n), first, ((int (*)(int))(heap + CODE))(50));
  first = run(heap, 2);
  n = pread(fd, heap + PAGE, CODE, 0);
  printf("pread %zd %d, code before %d\n", n, is_file(heap + PAGE, file, n), first);
  first = run(heap, 3);
  lseek(fd, 100, SEEK_SET);
  n = read(fd, heap + PAGE, CODE);
  printf("read on %zd %d, at %ld, code before %d\n", n, is_file(heap + PAGE, file + 100, n),
         (long)lseek(fd, 0, SEEK_CUR), first);
  /* A pipe gives what it has and does not wait for more. */
  first = run(heap, 4);
  if (write(ends[1], file, PAGE) != PAGE) return 2;
  n = read(ends[0], heap + DATA - PAGE, 2 * PAGE);
  printf("pipe %zd %d, code %d %d\n", n, is_file(heap + DATA - PAGE, file, n), first,
         ((int (*)(int))(heap + CODE))(60));
  n = readlink("/proc/self/fd/0", (char *)heap + BESIDE, 200);
  printf("readlink %d, code %d\n", n > 0, ((int (*)(int))(heap + CODE))(70));
  void *volatile nowhere = (void *)16;
  n = read(fd, nowhere, 100);
  printf("read nowhere %zd\n", n);
  return 0;
}
