/* look OUT NAME...: watches the processes of these names until SIGTERM, from outside and
 * without hither, and then writes what it saw to OUT:
 *   P pid rank name          a process; the rank is that of its MPI environment, or -1
 *   T tid name allowed cpus samples      a thread: its mask, and every unit it was seen on
 *   M line                   of /proc/PID/maps
 *   N line                   of /proc/PID/numa_maps
 *   R address pages node     memory of the process, page by page
 * The last three are of the moment at which the process had most memory. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PROCESSES 64
#define THREADS 1024
#define PAGE 4096ul
/* Looks at memory take at most this part of the time. */
#define SHARE 0.25
#define LARGEST (64ul << 20)
#define TEXT (1 << 20)

struct thread {
  int tid, samples;
  uint64_t cpus;
  char name[32], allowed[64];
};

struct process {
  int pid, rank, threads;
  double next_look;
  long pages;
  char name[32], *maps, *numa, *runs;
  struct thread thread[THREADS];
};

static struct process *processes[PROCESSES];
static int count;
static volatile sig_atomic_t over;

static void on_term(int signal) { over = signal; }

static int slurp(const char *path, char *text, size_t size) {
  FILE *file = fopen(path, "r");
  size_t n = file ? fread(text, 1, size - 1, file) : 0;
  text[n] = 0;
  if (file) fclose(file);
  return n > 0;
}

/* The rank of a process; -1: of none, -2: its exec is not over, as far as that goes. */
static int rank_of(int pid) {
  static char text[TEXT];
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/environ", pid);
  FILE *file = fopen(path, "r");
  size_t n = file ? fread(text, 1, sizeof text - 1, file) : 0;
  if (file) fclose(file);
  text[n] = 0;
  if (n == 0) return -2;
  for (char *word = text; word < text + n; word += strlen(word) + 1)
    if (strncmp(word, "OMPI_COMM_WORLD_LOCAL_RANK=", 27) == 0) return atoi(word + 27);
  return -1;
}

static struct process *process_of(int pid, const char *name) {
  for (int i = 0; i < count; i++)
    if (processes[i]->pid == pid) return processes[i];
  int rank = rank_of(pid);
  if (count == PROCESSES || rank == -2) return NULL;
  struct process *new = calloc(1, sizeof *new);
  new->pid = pid;
  new->rank = rank;
  snprintf(new->name, sizeof new->name, "%s", name);
  return processes[count++] = new;
}

static struct thread *thread_of(struct process *p, int tid) {
  for (int i = 0; i < p->threads; i++)
    if (p->thread[i].tid == tid) return &p->thread[i];
  if (p->threads == THREADS) return NULL;
  p->thread[p->threads].tid = tid;
  return &p->thread[p->threads++];
}

/* The mask of a thread that has begun, read into `mask`. One that is being born has the mask
 * of its creator until whoever follows it has stopped it once, which is a voluntary switch,
 * and let it go. */
static int begun(const char *status, char *mask) {
  static char text[4096];
  if (!slurp(status, text, sizeof text)) return 0;
  char *state = strstr(text, "State:\t"), *allowed = strstr(text, "Cpus_allowed_list:\t");
  if (!state || !allowed || strchr("tTXZ", state[7])) return 0;
  char *switches = strstr(allowed, "\nvoluntary_ctxt_switches:\t");
  return switches && atol(switches + 26) > 0 && sscanf(allowed + 19, "%63s", mask) == 1;
}

/* Samples count from when the mask became what it is. Read twice: a stop may fall into the
 * first reading, but one that began in it is over if the second finds none. */
static void look_at_thread(struct process *p, int tid) {
  char path[96], text[4096], mask[64];
  snprintf(path, sizeof path, "/proc/%d/task/%d/status", p->pid, tid);
  if (!begun(path, mask) || !begun(path, mask)) return;
  snprintf(path, sizeof path, "/proc/%d/task/%d/stat", p->pid, tid);
  if (!slurp(path, text, sizeof text)) return;
  char *end = strrchr(text, ')');
  if (!end || strchr("tTXZ", end[2])) return;
  *end = 0;
  char *field = end + 2;
  int cpu;
  for (int i = 3; i < 39 && field; i++) field = strchr(field + 1, ' ');
  struct thread *t = field && sscanf(field, "%d", &cpu) == 1 ? thread_of(p, tid) : NULL;
  if (!t) return;
  if (strcmp(t->allowed, mask) != 0) t->cpus = 0, t->samples = 0;
  memcpy(t->allowed, mask, sizeof mask);
  snprintf(t->name, sizeof t->name, "%s", strchr(text, '(') + 1);
  t->cpus |= 1ull << (cpu & 63);
  t->samples++;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Bits of /proc/PID/pagemap: has memory, is of a file or shared, is mapped here alone. */
#define PRESENT (1ul << 63)
#define SHARED (1ul << 61)
#define EXCLUSIVE (1ul << 56)

/* The addresses of the pages of [start, end) that have memory of their own: how many. What
 * was inherited by fork and not written since is the parent's. */
static unsigned long present(int pid, unsigned long start, unsigned long end, void **pages) {
  static uint64_t entries[LARGEST / PAGE];
  unsigned long n = (end - start) / PAGE, found = 0;
  char path[64];
  if (n > LARGEST / PAGE) return 0;
  snprintf(path, sizeof path, "/proc/%d/pagemap", pid);
  int fd = open(path, O_RDONLY);
  ssize_t got = fd < 0 ? -1 : pread(fd, entries, n * 8, (off_t)(start / PAGE * 8));
  if (fd >= 0) close(fd);
  for (unsigned long i = 0; (ssize_t)(i * 8) < got; i++)
    if (entries[i] & PRESENT && entries[i] & (SHARED | EXCLUSIVE)) pages[found++] = (void *)(start + i * PAGE);
  return found;
}

/* The nodes of the pages of [start, end), behind `out`; how many pages there are. */
static long nodes_of(int pid, unsigned long start, unsigned long end, FILE *out) {
  static void *pages[LARGEST / PAGE];
  static int status[LARGEST / PAGE];
  unsigned long n = present(pid, start, end, pages), first = 0;
  if (n == 0 || syscall(SYS_move_pages, pid, n, pages, NULL, status, 0) != 0) return 0;
  for (unsigned long i = 0; i < n; i++) {
    if (i + 1 < n && status[i + 1] == status[i] && (char *)pages[i + 1] == (char *)pages[i] + PAGE) continue;
    if (status[i] >= 0) fprintf(out, "R %lx %lu %d\n", (unsigned long)pages[first], i + 1 - first, status[i]);
    first = i + 1;
  }
  return (long)n;
}

static void look_at_memory(struct process *p) {
  static char maps[TEXT], numa[TEXT];
  char path[64], *runs = NULL;
  size_t size;
  snprintf(path, sizeof path, "/proc/%d/maps", p->pid);
  if (!slurp(path, maps, sizeof maps)) return;
  snprintf(path, sizeof path, "/proc/%d/numa_maps", p->pid);
  if (!slurp(path, numa, sizeof numa)) return;
  FILE *out = open_memstream(&runs, &size);
  long there = 0;
  for (char *line = maps; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
    unsigned long start, end;
    char rights[8];
    if (sscanf(line, "%lx-%lx %7s", &start, &end, rights) == 3 && rights[1] == 'w')
      there += nodes_of(p->pid, start, end, out);
  }
  fclose(out);
  if (there < p->pages) {
    free(runs);
    return;
  }
  free(p->maps), free(p->numa), free(p->runs);
  p->pages = there;
  p->maps = strdup(maps);
  p->numa = strdup(numa);
  p->runs = runs;
}

static void look_at_process(int pid, char **names) {
  char path[64], name[32];
  snprintf(path, sizeof path, "/proc/%d/comm", pid);
  if (!slurp(path, name, sizeof name)) return;
  name[strcspn(name, "\n")] = 0;
  while (*names && strcmp(*names, name) != 0) names++;
  struct process *p = *names ? process_of(pid, name) : NULL;
  if (!p) return;
  snprintf(path, sizeof path, "/proc/%d/task", pid);
  DIR *tasks = opendir(path);
  for (struct dirent *task; tasks && (task = readdir(tasks));)
    if (task->d_name[0] != '.') look_at_thread(p, atoi(task->d_name));
  if (tasks) closedir(tasks);
  double start = now();
  if (start < p->next_look) return;
  look_at_memory(p);
  p->next_look = now() + (now() - start) / SHARE;
}

static void prefixed(FILE *out, const char *prefix, const char *text) {
  for (const char *line = text; line && *line;) {
    int length = (int)strcspn(line, "\n");
    fprintf(out, "%s%.*s\n", prefix, length, line);
    line += length + (line[length] == '\n');
  }
}

static void write_all(const char *path) {
  FILE *out = fopen(path, "w");
  for (int i = 0; i < count; i++) {
    struct process *p = processes[i];
    fprintf(out, "P %d %d %s\n", p->pid, p->rank, p->name);
    for (int k = 0; k < p->threads; k++) {
      struct thread *t = &p->thread[k];
      fprintf(out, "T %d %d %s %llx %s\n", t->tid, t->samples, t->allowed, (unsigned long long)t->cpus, t->name);
    }
    prefixed(out, "M ", p->maps);
    prefixed(out, "N ", p->numa);
    prefixed(out, "", p->runs);
  }
  fclose(out);
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  signal(SIGTERM, on_term);
  int self = getpid(); /* what is older is not meant */
  write_all(argv[1]);  /* says that it looks */
  while (!over) {
    DIR *all = opendir("/proc");
    for (struct dirent *entry; (entry = readdir(all));)
      if (atoi(entry->d_name) > self) look_at_process(atoi(entry->d_name), argv + 2);
    closedir(all);
    usleep(2000);
  }
  write_all(argv[1]);
  return 0;
}
