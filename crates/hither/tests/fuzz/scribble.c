/* Counts in two threads while a third writes what it likes into the memory that the tracer shares
   with hither.
   scribble SEED MILLISECONDS MODE, with MODE: 0 anything, 1 small numbers, 2 what is counted, only more, 3 nothing. */
#include "../../../../tracer/wire.h"
#include "draws.h"
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static volatile long table[1 << 14];
static volatile int done;

static void *count(void *first) {
  for (long n = (long)first; !done; n++) table[n % (1 << 14)] += n;
  return NULL;
}

/* The memory file that hither, which started us, has open. */
static struct hi_header *shared(void) {
  char folder[64], path[384], name[64] = "";
  snprintf(folder, sizeof folder, "/proc/%d/fd", (int)getppid());
  DIR *open_files = opendir(folder);
  struct dirent *entry;
  while (open_files && (entry = readdir(open_files))) {
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    ssize_t length = readlink(path, name, sizeof name - 1);
    if (length <= 0 || !memmem(name, (size_t)length, "memfd:hither", 12)) continue;
    int fd = open(path, O_RDWR);
    struct hi_header *h = mmap(NULL, sizeof *h, PROT_READ, MAP_SHARED, fd, 0);
    if (fd < 0 || h == MAP_FAILED || h->magic != HI_MAGIC) continue;
    return mmap(NULL, h->total_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  }
  return MAP_FAILED;
}

/* A word somewhere in the first megabyte of an area, or in the header but for where its areas lie. */
static uint64_t *place(struct hi_header *h) {
  const uint64_t areas[] = {
      h->off_threads,     h->off_processes, h->off_sites,         h->off_events,  h->off_samples, h->off_observations,
      h->off_comm,        h->off_pages,     h->off_chunks,        h->off_aliases, h->off_owners,  h->off_dirty,
      h->off_blocks,      h->off_arenas,    h->off_record_blocks, h->off_pieces,  h->off_objects, h->off_object_counts,
      h->off_object_used, h->off_ended,     h->off_free_groups};
  const uint64_t kinds = sizeof areas / sizeof *areas;
  uint64_t kind = draw() % (kinds + 4);
  if (kind >= kinds) return (uint64_t *)h + draw() % (offsetof(struct hi_header, off_threads) / 8);
  uint64_t reach = draw() % 4 ? 1 << 12 : 1 << 20;
  return (uint64_t *)((char *)h + areas[kind]) + draw() % reach / 8;
}

int main(int argc, char **argv) {
  struct arguments arguments = seeded(argc, argv);
  struct hi_header *h = shared();
  if (h == MAP_FAILED) return 3;
  pthread_t threads[2];
  for (long n = 0; n < 2; n++) pthread_create(threads + n, NULL, count, (void *)(n << 12));
  double end = now() + arguments.milliseconds;
  do {
    for (int n = 0; n < 64; n++) {
      uint64_t *at = place(h), word = draw();
      switch (arguments.mode) {
      case 0: *at = word; break;
      case 1: *at = word & 0x3f00000007ull; break;
      case 2: *at += *at ? word & 0xff : 0; break;
      default: break;
      }
    }
  } while (now() < end);
  done = 1;
  /* What it has done to its own tracer may keep it from ending. */
  _exit(0);
}
