/* Uses memory in threads while the first waits for the agent that hither puts into it, and then writes what it
   likes into what the two say to each other: the agent's memory, its reports, its orders.
   mailbox SEED MILLISECONDS MODE, with MODE: 0 the agent's memory, 1 any reports, 2 likely reports, 3 orders. */
#include "../../../../tracer/agent/orders.h"
#include "draws.h"
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define BYTES (8l << 20)

static volatile long *table;
static volatile int done;

static void *use(void *first) {
  for (long n = (long)first; !done; n += 512) table[n % (BYTES / 8)] += n;
  return NULL;
}

/* The agent's thread; NULL: there is none yet. */
static const char *agent(void) {
  static char found[32];
  DIR *tasks = opendir("/proc/self/task");
  struct dirent *entry;
  char path[300], name[32];
  *found = 0;
  while (tasks && (entry = readdir(tasks))) {
    snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
    FILE *comm = fopen(path, "r");
    if (comm && fgets(name, sizeof name, comm) && strcmp(name, "hither-agent\n") == 0)
      snprintf(found, sizeof found, "%.31s", entry->d_name);
    if (comm) fclose(comm);
  }
  if (tasks) closedir(tasks);
  return *found ? found : NULL;
}

/* The agent's data: what can be written behind code that is of no file. */
static uint64_t *memory(void) {
  FILE *maps = fopen("/proc/self/maps", "r");
  unsigned long start, end, code = 0, inode, found = 0;
  char line[512], rights[8];
  while (maps && fgets(line, sizeof line, maps)) {
    if (sscanf(line, "%lx-%lx %7s %*s %*s %lu", &start, &end, rights, &inode) != 4) continue;
    if (code == start && rights[1] == 'w' && inode == 0) found = start;
    code = rights[2] == 'x' && inode == 0 && !strchr(line, '[') ? end : 0;
  }
  if (maps) fclose(maps);
  return (uint64_t *)found;
}

static void report(int pipe, int likely) {
  uint64_t words[9];
  for (int n = 0; n < 9; n++) words[n] = draw() % 3 ? draw() : draw() % 8;
  if (likely) {
    words[0] = 1 + draw() % 4 + ((draw() % 5) << 32);
    words[1] = (uint64_t)table + (draw() % (BYTES / 4096)) * 4096;
    words[2] = draw() % 2 ? (uint64_t)BYTES : 4096 * (draw() % 64);
  }
  if (write(pipe, words, draw() % 8 ? sizeof words : draw() % sizeof words) < 0) usleep(100);
}

int main(int argc, char **argv) {
  struct arguments arguments = seeded(argc, argv);
  double end = now() + arguments.milliseconds + 1000;
  int mode = arguments.mode;
  pthread_t threads[2];
  table = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  for (long n = 0; n < 2; n++) pthread_create(threads + n, NULL, use, (void *)(n << 9));
  const char *thread = NULL;
  while (!thread && now() < end) thread = (usleep(1000), agent());
  if (!thread) _exit(3);
  usleep(draw() % 2 ? 0 : 100000);
  char path[80];
  /* Its table of descriptors: orders 0 and 1, reports 2 and 3. */
  snprintf(path, sizeof path, "/proc/self/task/%s/fd/%d", thread, mode == 3 ? 0 : 3);
  int pipe = mode ? open(path, mode == 3 ? O_RDONLY | O_NONBLOCK : O_WRONLY | O_NONBLOCK) : -1;
  uint64_t *data = mode ? NULL : memory();
  for (end = now() + arguments.milliseconds; now() < end;) {
    char order[4096];
    if (mode == 3 && read(pipe, order, draw() % sizeof order) < 0) usleep(100);
    if (mode == 1 || mode == 2) report(pipe, mode == 2);
    if (data) data[draw() % (HI_AGENT_DATA / 8)] = draw() % 2 ? draw() : draw() % 8;
  }
  _exit(0);
}
