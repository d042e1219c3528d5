/* shared_lean.c: the list of mappings that other processes may share, and the update of the
 * page map when memory is unmapped.
 *
 * The list is short (a few dozen) and changes rarely: readers scan it under a sequence count,
 * and writers, which are in system calls, take a spin lock. */
#include "state.h"

#define MAX_SHARED 1024
static struct hi_shared_map maps[MAX_SHARED];
static uint32_t nmaps, sequence, writer;

static void begin_write(void) {
  hi_spin_lock(&writer);
  __atomic_add_fetch(&sequence, 1, __ATOMIC_SEQ_CST);
}

static void end_write(void) {
  __atomic_add_fetch(&sequence, 1, __ATOMIC_SEQ_CST);
  hi_spin_unlock(&writer);
}

static void push(struct hi_shared_map map) {
  if (nmaps < MAX_SHARED) maps[nmaps++] = map;
}

/* Cuts [page, page + pages) out of every mapping. */
static void cut(uint64_t page, uint64_t pages) {
  uint64_t end = page + pages;
  for (uint32_t i = 0; i < nmaps;) {
    struct hi_shared_map m = maps[i];
    uint64_t m_end = m.page + m.pages;
    if (m_end <= page || m.page >= end) {
      i++;
      continue;
    }
    maps[i] = maps[--nmaps];
    if (m.page < page) push((struct hi_shared_map){m.page, page - m.page, m.dev, m.ino, m.first});
    if (m_end > end) push((struct hi_shared_map){end, m_end - end, m.dev, m.ino, m.first + (end - m.page)});
  }
}

void hi_shared_add(struct hi_shared_map map) {
  begin_write();
  cut(map.page, map.pages);
  push(map);
  end_write();
}

void hi_shared_remove(uint64_t page, uint64_t pages) {
  begin_write();
  cut(page, pages);
  end_write();
}

bool hi_shared_find(uint64_t page, struct hi_shared_map *out) {
  for (;;) {
    uint32_t before = __atomic_load_n(&sequence, __ATOMIC_ACQUIRE);
    if (before & 1) {
      __builtin_ia32_pause();
      continue;
    }
    bool found = false;
    uint32_t n = nmaps < MAX_SHARED ? nmaps : MAX_SHARED;
    for (uint32_t i = 0; i < n && !found; i++)
      if (page - maps[i].page < maps[i].pages) {
        *out = maps[i];
        found = true;
      }
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    if (__atomic_load_n(&sequence, __ATOMIC_RELAXED) == before) return found;
  }
}

/* Ends the page ids of memory that is being unmapped, so that the next mapping there gets others. Lines in the caches of other threads are counted for the old page until the slice
 * ends. */
void hi_unmap_pages(struct hi_local *t, uint64_t address, uint64_t length) {
  uint64_t page = (address & HI_ADDRESS_MASK) >> HI_PAGE_SHIFT;
  uint64_t pages = (length + HI_PAGE_BYTES - 1) >> HI_PAGE_SHIFT;
  if (page + pages > HI_ADDRESS_MASK >> HI_PAGE_SHIFT) return;
  hi_shared_remove(page, pages);
  const uint64_t end = page + pages;
  while ((page = hi_next_mapped(page, end)) < end)
    for (const uint64_t stop = hi_extent_end(page, end); page < stop; page++) {
      if (!hi_run.pagemap[page]) continue;
      hi_forget_page(t, page);
      uint32_t id = __atomic_exchange_n(&hi_run.pagemap[page], 0, __ATOMIC_RELAXED);
      if (id) hi_end_page(hi_page_id(id));
    }
}

/* The pages keep their ids, and so their counts, at a new address, where nothing is mapped any more. */
void hi_move_pages(struct hi_local *t, uint64_t from, uint64_t to, uint64_t pages) {
  const uint64_t end = from + pages;
  for (uint64_t page = from; (page = hi_next_mapped(page, end)) < end;)
    for (const uint64_t stop = hi_extent_end(page, end); page < stop; page++) {
      uint32_t id = hi_run.pagemap[page];
      if (!id) continue;
      hi_forget_page(t, page);
      hi_mark_mapped(to + (page - from));
      hi_run.pagemap[to + (page - from)] = id;
      hi_run.pagemap[page] = 0;
    }
}
