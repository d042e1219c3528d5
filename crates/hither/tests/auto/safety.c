/* safety SECONDS FOLDER [threads by letter]
 *
 * Sixteen threads that know what each byte of their memory must be, and what each system
 * call on it must give. Whoever takes pages away from under them must not be noticed. Ends
 * with `0 wrong`, or says what was wrong.
 *
 * a atomics  r reads and writes  p pipes  f files  k fork  x exec  m mmap, munmap
 * v, g mremap  d madvise  l mprotect, mlock  h huge pages  t threads  s own stacks  u robust
 * z crash */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 128, WORDS = PAGE / 8, COUNTERS = 16384, MOST = 64 };
static double end;
static const char *folder;
static atomic_int wrong;
static _Atomic uint64_t *counters;
static atomic_ulong added, rounds[256];
extern char **environ;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}
static int goes_on(void) { return now() < end && atomic_load(&wrong) < 10; }
static void rest(long ms) {
  struct timespec t = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&t, 0);
}
static void complain(const char *format, ...) {
  char line[256];
  va_list list;
  va_start(list, format);
  int length = vsnprintf(line, sizeof line, format, list);
  va_end(list);
  atomic_fetch_add(&wrong, 1);
  if (write(2, line, (size_t)length) < 0) abort();
}
static uint64_t random_of(uint64_t *state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  return *state ^= *state << 17;
}

static void *map(size_t pages) {
  void *at = mmap(0, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) complain("mmap: %s\n", strerror(errno));
  return at;
}
/* Every word tells where it is, whose and which time it was written. */
static uint64_t word_of(uint64_t who, uint64_t version, uint64_t page, uint64_t word) {
  return (who << 56 | version << 32 | page << 12 | word) * 0x9E3779B97F4A7C15u;
}
static void fill_page(uint64_t *at, uint64_t who, uint64_t version, uint64_t page) {
  for (uint64_t w = 0; w < WORDS; w++) at[page * WORDS + w] = word_of(who, version, page, w);
}
static void fill(uint64_t *at, uint64_t who, uint64_t version, uint64_t pages) {
  for (uint64_t p = 0; p < pages; p++) fill_page(at, who, version, p);
}
/* `as`: the number that the first page had when it was filled. */
static void check_from(const char *what, const uint64_t *at, uint64_t who, uint64_t version, uint64_t pages,
                       uint64_t as) {
  for (uint64_t p = 0; p < pages; p++)
    for (uint64_t w = 0; w < WORDS; w++)
      if (at[p * WORDS + w] != word_of(who, version, p + as, w)) {
        complain("%s: page %d word %d at %p is %#lx\n", what, (int)p, (int)w, (const void *)(at + p * WORDS + w),
                 at[p * WORDS + w]);
        break;
      }
}
static void check(const char *what, const uint64_t *at, uint64_t who, uint64_t version, uint64_t pages) {
  check_from(what, at, who, version, pages, 0);
}
static void check_zero(const char *what, const uint64_t *at, uint64_t pages) {
  for (uint64_t i = 0; i < pages * WORDS; i++)
    if (at[i]) {
      complain("%s: page %d word %d is %#lx, not 0\n", what, (int)(i / WORDS), (int)(i % WORDS), at[i]);
      break;
    }
}

static void atomics(uint64_t who) {
  uint64_t state = who * 77 + 1, count = 0;
  while (goes_on())
    for (int i = 0; i < 2000; i++, count++) atomic_fetch_add(&counters[random_of(&state) % COUNTERS], 1);
  atomic_fetch_add(&added, count);
  atomic_fetch_add(&rounds['a'], count);
}

static void reads_and_writes(uint64_t who) {
  uint64_t *at = map(PAGES), state = who + 1, version[PAGES] = {0};
  fill(at, who, 0, PAGES);
  while (goes_on()) {
    for (int i = 0; i < 200; i++) {
      uint64_t p = random_of(&state) % PAGES;
      for (uint64_t w = 0; w < WORDS; w++)
        if (at[p * WORDS + w] != word_of(who, version[p], p, w)) {
          uint64_t got = at[p * WORDS + w], v = version[p];
          while (got && v + 1 && word_of(who, v, p, w) != got) v--;
          complain("reads: page %d at %p word %d is %#lx, of version %ld not %ld\n", (int)p, (void *)(at + p * WORDS),
                   (int)w, got, (long)v, (long)version[p]);
          break;
        }
      if (random_of(&state) % 2) fill_page(at, who, ++version[p] & 0xffffff, p);
    }
    atomic_fetch_add(&rounds['r'], 1);
    rest(1);
  }
}

static void pipes(uint64_t who) {
  uint64_t *from = map(PAGES), *to = map(PAGES), state = who + 9;
  int ends[2];
  if (pipe(ends)) return complain("pipe\n");
  fill(from, who, 0, PAGES);
  for (uint64_t version = 0; goes_on(); version++) {
    uint64_t first = random_of(&state) % (PAGES - 8), pages = 1 + random_of(&state) % 8;
    size_t bytes = pages * PAGE;
    struct iovec part = {from + first * WORDS, bytes};
    /* Given by reference every fourth time: the pipe holds on to the pages. */
    ssize_t sent = version % 4 ? write(ends[1], part.iov_base, bytes) : vmsplice(ends[1], &part, 1, 0);
    if (sent != (ssize_t)bytes) complain("pipe took %zd of %zu: %s\n", sent, bytes, strerror(errno));
    for (size_t got = 0; got < bytes;) {
      ssize_t some = read(ends[0], (char *)(to + first * WORDS) + got, bytes - got);
      if (some <= 0) return complain("pipe gave %zd: %s\n", some, strerror(errno));
      got += (size_t)some;
    }
    check_from("pipe", to + first * WORDS, who, 0, pages, first);
    atomic_fetch_add(&rounds['p'], 1);
    if (version % 16 == 0) rest(1);
  }
}

static void files(uint64_t who) {
  uint64_t *from = map(PAGES), *to = map(PAGES), state = who + 5;
  char name[512];
  snprintf(name, sizeof name, "%s/file%d", folder, (int)who);
  int file = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
  int direct = open(name, O_RDWR | O_DIRECT);
  if (file < 0) return complain("open %s\n", name);
  for (uint64_t version = 0; goes_on(); version++) {
    uint64_t first = random_of(&state) % (PAGES - 16), pages = 1 + random_of(&state) % 16;
    int fd = direct >= 0 && version % 2 ? direct : file;
    for (uint64_t p = first; p < first + pages; p++) fill_page(from, who, version & 0xffffff, p);
    if (version % 32 == 0) rest(5);
    size_t bytes = pages * PAGE;
    off_t where = (off_t)(first * PAGE);
    ssize_t put = pwrite(fd, from + first * WORDS, bytes, where);
    ssize_t got = pread(fd, to + first * WORDS, bytes, where);
    if (put != (ssize_t)bytes || got != put) complain("file: %zd %zd %s\n", put, got, strerror(errno));
    check_from("file", to + first * WORDS, who, version & 0xffffff, pages, first);
    atomic_fetch_add(&rounds['f'], 1);
  }
}

static int reap(pid_t child) {
  int status = -1;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  return status;
}

static void forks(uint64_t who) {
  uint64_t *at = map(PAGES);
  for (uint64_t version = 0; goes_on(); version++) {
    fill(at, who, version, PAGES);
    rest(20 + (long)(version % 7) * 60);
    pid_t child = fork();
    if (child == 0) {
      pid_t grandchild = version % 3 ? -1 : fork();
      check(grandchild ? "child" : "grandchild", at, who, version, PAGES);
      /* Its memory is its own. */
      fill(at, who, version + 1, PAGES);
      check("child later", at, who, version + 1, PAGES);
      if (version % 2) munmap(at, PAGES / 2 * PAGE);
      if (grandchild > 0 && reap(grandchild)) complain("grandchild\n");
      _exit(atomic_load(&wrong) ? 1 : 0);
    }
    if (child < 0) complain("fork: %s\n", strerror(errno));
    else if (reap(child)) complain("a child found something wrong\n");
    check("parent", at, who, version, PAGES);
    atomic_fetch_add(&rounds['k'], 1);
  }
}

static void execs(uint64_t who) {
  uint64_t *at = map(PAGES);
  fill(at, who, 0, PAGES);
  while (goes_on()) {
    char *words[] = {"sh", "-c", "exit 7", 0};
    pid_t child;
    if (posix_spawn(&child, "/bin/sh", 0, 0, words, environ)) return complain("posix_spawn\n");
    if (WEXITSTATUS(reap(child)) != 7) complain("spawned: not 7\n");
    child = fork();
    if (child == 0) {
      execv("/bin/sh", words);
      _exit(1);
    }
    if (WEXITSTATUS(reap(child)) != 7) complain("executed: not 7\n");
    check("exec", at, who, 0, PAGES);
    atomic_fetch_add(&rounds['x'], 1);
    rest(20);
  }
}

static void maps(uint64_t who) {
  uint64_t state = who + 3;
  for (uint64_t version = 0; goes_on(); version++) {
    uint64_t *at = map(PAGES);
    fill(at, who, version, PAGES);
    rest((long)(random_of(&state) % 600));
    check("mapped", at, who, version, PAGES);
    if (version % 3 == 0) {
      /* A hole, other memory over a part, memory where it was. */
      munmap(at + 16 * WORDS, 16 * PAGE);
      check("before the hole", at, who, version, 16);
      check_from("behind the hole", at + 32 * WORDS, who, version, PAGES - 32, 32);
      munmap(at, 16 * PAGE);
      munmap(at + 32 * WORDS, (PAGES - 32) * PAGE);
      atomic_fetch_add(&rounds['m'], 1);
      continue;
    }
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    if (version % 3 == 1) {
      if (mmap(at, PAGES * PAGE, PROT_READ | PROT_WRITE, flags, -1, 0) != at) complain("over it\n");
      check_zero("new memory", at, PAGES);
    }
    munmap(at, PAGES * PAGE);
    uint64_t *again = mmap(at, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check_zero("memory mapped again", again, PAGES);
    munmap(again, PAGES * PAGE);
    atomic_fetch_add(&rounds['m'], 1);
  }
}

static void remaps(uint64_t who) {
  uint64_t *at = map(PAGES), state = who + 13;
  for (uint64_t version = 0; goes_on(); version++) {
    fill(at, who, version, PAGES);
    rest((long)(random_of(&state) % 600));
    uint64_t *place = map(2 * PAGES);
    uint64_t *to = mremap(at, PAGES * PAGE, 2 * PAGES * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, place);
    if (to == MAP_FAILED) return complain("mremap: %s\n", strerror(errno));
    check("moved", to, who, version, PAGES);
    check_zero("grown", to + PAGES * WORDS, PAGES);
    rest((long)(random_of(&state) % 200));
    uint64_t *less = mremap(to, 2 * PAGES * PAGE, PAGES * PAGE, MREMAP_MAYMOVE);
    check("shrunk", less, who, version, PAGES);
    at = less;
    if (version % 4) continue;
    /* As realloc does. */
    uint64_t *block = malloc(PAGES * PAGE);
    fill(block, who, version, PAGES);
    rest(300);
    block = realloc(block, 3 * PAGES * PAGE);
    check("reallocated", block, who, version, PAGES);
    free(block);
    atomic_fetch_add(&rounds['v'], 1);
  }
}

/* Memory that grows, in its place or in another, as arrays do. */
static void grows(uint64_t who) {
  uint64_t state = who + 17;
  for (uint64_t version = 0; goes_on(); version++) {
    uint64_t *at = map(PAGES), pages = PAGES;
    fill(at, who, version, pages);
    rest((long)(random_of(&state) % 300));
    for (uint64_t more = PAGES / 4; pages < 4 * PAGES && goes_on(); pages += more) {
      uint64_t *to = MAP_FAILED;
      /* Between two system calls of who takes pages it may be two mappings, but no longer. */
      for (int tries = 0; to == MAP_FAILED && tries < 20; tries++) {
        if (tries) rest(1);
        to = mremap(at, pages * PAGE, (pages + more) * PAGE, MREMAP_MAYMOVE);
      }
      if (to == MAP_FAILED) return complain("mremap to more: %s\n", strerror(errno));
      at = to;
      check_zero("grown", at + pages * WORDS, more);
      for (uint64_t p = pages; p < pages + more; p++) fill_page(at, who, version, p);
      rest((long)(random_of(&state) % 120));
      check("grown", at, who, version, pages + more);
    }
    munmap(at, pages * PAGE);
    atomic_fetch_add(&rounds['g'], 1);
  }
}

static void advises(uint64_t who) {
  uint64_t state = who + 21;
  for (uint64_t version = 0; goes_on(); version++) {
    uint64_t *at = map(PAGES);
    fill(at, who, version, PAGES);
    rest((long)(random_of(&state) % 600));
    madvise(at + 8 * WORDS, 24 * PAGE, MADV_DONTNEED);
    check_zero("given up", at + 8 * WORDS, 24);
    check("kept before", at, who, version, 8);
    check_from("kept behind", at + 32 * WORDS, who, version, PAGES - 32, 32);
    madvise(at + 64 * WORDS, 16 * PAGE, MADV_FREE);
    for (uint64_t p = 64; p < 80; p++) {
      uint64_t first = at[p * WORDS];
      if (first && first != word_of(who, version, p, 0)) complain("freed page %d\n", (int)p);
    }
    madvise(at + 96 * WORDS, 16 * PAGE, MADV_PAGEOUT);
    check_from("paged out", at + 96 * WORDS, who, version, 32, 96);
    munmap(at, PAGES * PAGE);
    atomic_fetch_add(&rounds['d'], 1);
  }
}

static void rights(uint64_t who) {
  uint64_t *at = map(PAGES), state = who + 31;
  for (uint64_t version = 0; goes_on(); version++) {
    fill(at, who, version, PAGES);
    rest((long)(random_of(&state) % 300));
    mprotect(at, PAGES / 2 * PAGE, PROT_READ);
    if (version % 2) mlock(at + PAGES / 4 * WORDS, PAGES / 2 * PAGE);
    check("read only", at, who, version, PAGES);
    mprotect(at, PAGES / 2 * PAGE, PROT_NONE);
    rest((long)(random_of(&state) % 400));
    mprotect(at, PAGES / 2 * PAGE, PROT_READ | PROT_WRITE);
    check("after mprotect", at, who, version, PAGES);
    munlock(at, PAGES * PAGE);
    atomic_fetch_add(&rounds['l'], 1);
  }
}

static void huge(uint64_t who) {
  size_t bytes = 8u << 20;
  char *raw = map(2 * bytes / PAGE);
  uint64_t *at = (uint64_t *)(((uintptr_t)raw + bytes - 1) & ~(bytes - 1));
  /* Of the rest, which is empty, memory of others would become a part. */
  size_t before = (size_t)((char *)at - raw);
  if (before) munmap(raw, before);
  munmap((char *)at + bytes, bytes - before);
  madvise(at, bytes, MADV_HUGEPAGE);
  for (uint64_t version = 0; goes_on(); version++) {
    fill(at, who, version, bytes / PAGE);
    rest(200);
    check("huge", at, who, version, bytes / PAGE);
    atomic_fetch_add(&rounds['h'], 1);
  }
}

static _Thread_local uint64_t mine;
static void *short_life(void *argument) {
  mine = (uint64_t)(uintptr_t)argument;
  sched_yield();
  return (void *)(uintptr_t)mine;
}
static void threads(uint64_t who) {
  for (uint64_t version = who; goes_on(); version++) {
    pthread_t thread[4];
    for (uint64_t i = 0; i < 4; i++)
      if (pthread_create(&thread[i], 0, short_life, (void *)(version + i))) return complain("thread\n");
    for (uint64_t i = 0; i < 4; i++) {
      void *got;
      pthread_join(thread[i], &got);
      if ((uint64_t)got != version + i) complain("thread gave %p\n", got);
    }
    atomic_fetch_add(&rounds['t'], 1);
    rest(5);
  }
}

/* Stacks in ordinary memory, with what the kernel writes at a thread's end. */
static void stacks(uint64_t who) {
  char *memory = map(4 * 32);
  for (uint64_t version = who; goes_on(); version++) {
    pthread_t thread[4];
    for (uint64_t i = 0; i < 4; i++) {
      pthread_attr_t how;
      pthread_attr_init(&how);
      pthread_attr_setstack(&how, memory + i * 32 * PAGE, 32 * PAGE);
      if (pthread_create(&thread[i], &how, short_life, (void *)(version + i))) return complain("stack\n");
      pthread_attr_destroy(&how);
    }
    for (uint64_t i = 0; i < 4; i++) pthread_join(thread[i], 0);
    atomic_fetch_add(&rounds['s'], 1);
    rest(3);
  }
}

static void *dies_locked(void *mutex) {
  pthread_mutex_lock(mutex);
  rest(30);
  return 0;
}
static void robust(uint64_t who) {
  pthread_mutex_t *mutex = map(PAGES);
  pthread_mutexattr_t kind;
  pthread_mutexattr_init(&kind);
  pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
  size_t step = PAGES * PAGE / sizeof *mutex / 16;
  for (size_t i = who % 2; goes_on(); i = (i + 1) % 16) {
    pthread_mutex_t *one = mutex + i * step;
    pthread_t thread;
    pthread_mutex_init(one, &kind);
    pthread_create(&thread, 0, dies_locked, one);
    pthread_join(thread, 0);
    int got = pthread_mutex_lock(one);
    if (got != EOWNERDEAD) complain("robust mutex: %d\n", got);
    else pthread_mutex_consistent(one);
    pthread_mutex_unlock(one);
    atomic_fetch_add(&rounds['u'], 1);
  }
}

static void crashes(uint64_t who) {
  rest(1500 + (long)who);
  volatile char *nothing = mmap(0, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  *nothing = 1;
}

static const struct {
  char letter;
  void (*work)(uint64_t);
} kinds[] = {{'a', atomics}, {'r', reads_and_writes}, {'p', pipes},   {'f', files},  {'k', forks}, {'x', execs},
             {'m', maps},    {'v', remaps},           {'d', advises}, {'l', rights}, {'h', huge},  {'t', threads},
             {'s', stacks},  {'u', robust},           {'g', grows},   {'z', crashes}};

struct job {
  uint64_t who;
  void (*work)(uint64_t);
};
static void *begin(void *argument) {
  struct job *job = argument;
  job->work(job->who);
  return 0;
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  const char *letters = argc > 3 ? argv[3] : "aarrpfkxmvdlhtsr";
  end = now() + atof(argv[1]);
  folder = argv[2];
  counters = map(COUNTERS * sizeof *counters / PAGE);
  pthread_t thread[MOST];
  struct job jobs[MOST];
  int count = 0;
  for (const char *l = letters; *l && count < MOST; l++)
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
      if (kinds[k].letter == *l) {
        jobs[count] = (struct job){(uint64_t)count + 1, kinds[k].work};
        if (pthread_create(&thread[count], 0, begin, &jobs[count])) return 2;
        count++;
      }
  for (int i = 0; i < count; i++) pthread_join(thread[i], 0);
  uint64_t sum = 0;
  for (size_t i = 0; i < COUNTERS; i++) sum += counters[i];
  if (sum != added) complain("atomics: %lu of %lu\n", sum, added);
  for (int l = 'a'; l <= 'z'; l++)
    if (rounds[l]) printf("%c %lu ", l, rounds[l]);
  printf("\n%d wrong\n", wrong);
  return wrong != 0;
}
