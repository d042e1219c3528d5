/* segment.c: finds the areas of the shared segment in this process. */
#include "state.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

struct hi_run hi_run;

#define HI_MAP_PAGES (1ull << 35) /* 47-bit addresses in 4 KiB pages */

static void *at(uint64_t offset) { return (char *)hi_run.header + offset; }

static void locate(struct hi_header *h) {
  hi_run.header = h;
  hi_run.threads = at(h->off_threads);
  hi_run.processes = at(h->off_processes);
  hi_run.hooks = at(h->off_hooks);
  hi_run.sites = at(h->off_sites);
  hi_run.events = at(h->off_events);
  hi_run.samples = at(h->off_samples);
  hi_run.observations = at(h->off_observations);
  hi_run.directory = at(h->off_directory);
  hi_run.comm = at(h->off_comm);
  hi_run.pages = at(h->off_pages);
  hi_run.chunks = at(h->off_chunks);
  hi_run.aliases = at(h->off_aliases);
  hi_run.owners = at(h->off_owners);
  hi_run.dirty = at(h->off_dirty);
  hi_run.blocks = at(h->off_blocks);
  hi_run.shadow = at(h->off_shadow);
  hi_run.arenas = at(h->off_arenas);
  hi_run.record_blocks = at(h->off_record_blocks);
  hi_run.record_bytes = at(h->off_record_bytes);
  hi_run.pieces = at(h->off_pieces);
  hi_run.objects = at(h->off_objects);
  hi_run.object_counts = at(h->off_object_counts);
  hi_run.object_used = at(h->off_object_used);
  hi_run.ended = at(h->off_ended);
  hi_run.free_groups = at(h->off_free_groups);
  hi_run.site_words = at(h->off_site_words);
  hi_run.user_nodes = at(h->off_user_nodes);
  hi_run.user_counts = h->flags & HI_FLAG_ORACLE ? at(h->off_user_counts) : NULL;
  hi_run.line_log2 = h->line_log2;
  hi_run.index_mask = (1u << h->cache_log2) - 1;
  hi_run.fetch_sets = h->fetch_sets;
}

/* Whether the segment has this tracer's version and a supported size of line cache. */
static bool fits(const struct hi_header *h) {
  return h->magic == HI_MAGIC && h->version == HI_VERSION && h->header_size == sizeof *h &&
         h->cache_log2 >= HI_CACHE_LOG2_MIN && h->cache_log2 <= HI_CACHE_LOG2_MAX;
}

/* Maps the segment at `path` and this process' page map. False if the run is over or memory
 * is short: the program then runs untraced. */
bool hi_attach(const char *path) {
  /* Not open(): in a DynamoRIO client that is DynamoRIO's own, which creates and truncates. */
  int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return false;
  struct hi_header *h = mmap(NULL, sizeof *h, PROT_READ, MAP_SHARED, fd, 0);
  uint64_t size = 0;
  if (h != MAP_FAILED) {
    if (fits(h) && !h->closed) size = h->total_size;
    munmap(h, sizeof *h);
  }
  void *map = size ? mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0) : MAP_FAILED;
  close(fd);
  if (map == MAP_FAILED) return false;
  void *pages = mmap(NULL, HI_MAP_PAGES * sizeof(uint32_t), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED) {
    munmap(map, size);
    return false;
  }
  /* The page map is sparse: huge pages would take more memory than the target itself. */
  madvise(pages, HI_MAP_PAGES * sizeof(uint32_t), MADV_NOHUGEPAGE);
  hi_run.pagemap = pages;
  locate(map);
  return true;
}

/* In the child of a fork: its copies of the parent's pages are pages with ids of their own. */
void hi_process_wipe_map(void) { madvise(hi_run.pagemap, HI_MAP_PAGES * sizeof(uint32_t), MADV_DONTNEED); }
