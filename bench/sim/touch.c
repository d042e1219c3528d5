/* touch FILE LOW SPAN: makes the accesses that FILE lists, for cachegrind to see.
 *
 * FILE: 64-bit words, the address of 8 bytes, with the top bit set for a write. All addresses
 * lie in SPAN bytes from LOW on. Reading the list is an access more for each. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define WRITE (UINT64_C(1) << 63)

int main(int argc, char **argv) {
  if (argc != 4) {
    fprintf(stderr, "usage: touch FILE LOW SPAN\n");
    return 2;
  }
  int fd = open(argv[1], O_RDONLY);
  struct stat file;
  if (fd < 0 || fstat(fd, &file) != 0) {
    perror(argv[1]);
    return 2;
  }
  uint64_t low = strtoull(argv[2], NULL, 0), span = strtoull(argv[3], NULL, 0);
  size_t count = (size_t)file.st_size / sizeof(uint64_t);
  const uint64_t *list = mmap(NULL, (size_t)file.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
  char *memory = mmap(NULL, (size_t)span, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (list == MAP_FAILED || memory == MAP_FAILED) {
    perror("mmap");
    return 2;
  }
  for (size_t i = 0; i < count; i++) {
    uint64_t a = list[i];
    volatile uint64_t *word = (volatile uint64_t *)(memory + ((a & ~WRITE) - low));
    if (a & WRITE) *word = i;
    else (void)*word;
  }
  return 0;
}
