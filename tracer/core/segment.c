/* segment.c: finds the areas of the shared segment in this process. */
#include "state.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

struct hi_run hi_run;

#define HI_MAP_PAGES (1ull << 35) /* 47-bit addresses in 4 KiB pages */
#define MAPPED_BYTES ((HI_MAP_PAGES >> HI_EXTENT_SHIFT) / 8)

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
  hi_run.page_users = at(h->off_page_users);
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

/* hither looks for this in the file before it starts anything. */
#define TEXT(number) #number
#define VERSION_TEXT(number) "hither tracer, wire " TEXT(number) ";"
__attribute__((used)) static const char version_text[] = VERSION_TEXT(HI_VERSION);

static uint64_t cache_bytes(const struct hi_header *h) { return sizeof(struct hi_entry) << h->cache_log2; }

/* Whether the segment has this tracer's version and supported sizes of lines and line caches. */
static bool fits(const struct hi_header *h) {
  return h->magic == HI_MAGIC && h->version == HI_VERSION && h->header_size == sizeof *h &&
         h->line_log2 >= HI_LINE_LOG2_MIN && h->line_log2 <= HI_PAGE_SHIFT && h->cache_log2 >= HI_CACHE_LOG2_MIN &&
         h->cache_log2 <= HI_CACHE_LOG2_MAX && h->off_arenas % cache_bytes(h) == 0 &&
         h->arena_size % cache_bytes(h) == 0;
}

/* Maps the file, at a multiple of `alignment`. */
static void *map_file(int fd, uint64_t size, uint64_t alignment) {
  uint64_t room = size + alignment;
  char *all = mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (all == MAP_FAILED) return MAP_FAILED;
  char *start = (char *)hi_aligned((uint64_t)all, alignment), *end = start + size;
  if (start > all) munmap(all, (size_t)(start - all));
  munmap(end, (size_t)(all + room - end));
  void *map = mmap(start, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fd, 0);
  if (map == MAP_FAILED) munmap(start, size);
  return map;
}

/* Memory that is taken only where it is written; NULL when it is short. */
void *hi_reserve(uint64_t size) {
  void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return NULL;
  /* Huge pages would take more memory than the target itself. */
  madvise(at, size, MADV_NOHUGEPAGE);
  return at;
}

#define LOW_END (1ull << 31)

/* A line cache of so many bytes, to which all are aligned, where an instruction can name it: high up in the first 2 GiB,
 * as programs that are loaded there have their heap below. */
static struct hi_entry *empty_cache(uint64_t bytes) {
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
  for (uint64_t at = LOW_END - bytes; at >= LOW_END / 2; at -= bytes) {
    void *map = mmap((void *)at, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (map == (void *)at) return map;
    if (map != MAP_FAILED) munmap(map, bytes);
  }
  return NULL;
}

/* Maps the segment at `path` and this process' page map. False if the run is over or memory
 * is short: the program then runs untraced. */
bool hi_attach(const char *path) {
  /* Not open(): in a DynamoRIO client that is DynamoRIO's own, which creates and truncates. */
  int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return false;
  struct hi_header *h = mmap(NULL, sizeof *h, PROT_READ, MAP_SHARED, fd, 0);
  uint64_t size = 0, alignment = 0;
  if (h != MAP_FAILED) {
    if (fits(h) && !h->closed) {
      size = h->total_size;
      alignment = cache_bytes(h);
    }
    munmap(h, sizeof *h);
  }
  void *map = size ? map_file(fd, size, alignment) : MAP_FAILED;
  close(fd);
  if (map == MAP_FAILED) return false;
  hi_run.pagemap = hi_reserve(HI_MAP_PAGES * sizeof(uint32_t));
  hi_run.mapped = hi_run.pagemap ? hi_reserve(MAPPED_BYTES) : NULL;
  hi_run.substitute = hi_run.mapped ? hi_reserve(size) : NULL;
  if (!hi_run.substitute) {
    munmap(map, size);
    return false;
  }
  hi_run.nothing = empty_cache(alignment);
  hi_run.size = size;
  locate(map);
  return true;
}

/* Moves private memory to where the segment is mapped, at once: threads of this process may be at work
 * there, which then count what nobody reads. In the segment this process has ended. False if the kernel
 * refuses: it may be out of memory for mappings. */
bool hi_detach(void) {
  struct hi_header *own = hi_run.substitute;
  *own = *hi_run.header;
  own->closed = 1;
  own->active = 0;
  own->record_open = 0;
  /* A second mapping of the page with the record of this process, as it is shared memory. */
  struct hi_process *p = &hi_run.processes[hi_run.process];
  uint64_t within = (uint64_t)p % HI_PAGE_BYTES;
  char *page = mremap((char *)p - within, 0, HI_PAGE_BYTES, MREMAP_MAYMOVE);
  void *at = mremap(own, hi_run.size, hi_run.size, MREMAP_MAYMOVE | MREMAP_FIXED, hi_run.header);
  if (at == MAP_FAILED) return false;
  hi_run.process = 0;
  if (page == MAP_FAILED) return true; /* the collector notices when the process is gone */
  p = (struct hi_process *)(page + within);
  p->end_ns = hi_now();
  __atomic_store_n(&p->state, HI_PROCESS_EXITED, __ATOMIC_RELEASE);
  munmap(page, HI_PAGE_BYTES);
  return true;
}

/* In the child of a fork: its copies of the parent's pages are pages with ids of their own. */
void hi_process_wipe_map(void) {
  madvise(hi_run.pagemap, HI_MAP_PAGES * sizeof(uint32_t), MADV_DONTNEED);
  madvise(hi_run.mapped, MAPPED_BYTES, MADV_DONTNEED);
}
