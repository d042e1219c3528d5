/* pages_lean.c: gives every touched page a dense id, over all processes.
 *
 * A private page gets an id from the HI_BLOCK_PAGES that the touching thread reserved last:
 * pages that are touched together have neighbouring ids, in the shadow and in the page-count
 * blocks of all threads. Ids whose pages have been unmapped are used again, by the whole group, once the
 * collector has read their counts (wire.h). A shared page has the id that belongs to (object, page in it), so that
 * every process that maps the object counts the same page. */
#include "state.h"

#define SPIN_TRIES 100000
#define ALIAS_TRIES 64 /* slots that are searched for an alias */

enum { CHUNK_FREE, CHUNK_WRITING, CHUNK_VALID }; /* hi_chunk.state */

static uint32_t reserve(uint32_t pages) {
  uint32_t id = __atomic_fetch_add(&hi_run.header->next_page, pages, __ATOMIC_RELAXED);
  if (id <= HI_MAX_PAGES - pages) return id;
  __atomic_store_n(&hi_run.header->next_page, HI_MAX_PAGES, __ATOMIC_RELAXED);
  return HI_PAGE_NONE;
}

/* First id of a group that was in use before; HI_PAGE_NONE if there is none. */
static uint32_t take_free_group(void) {
  struct hi_header *h = hi_run.header;
  uint64_t head = __atomic_load_n(&h->free_head, __ATOMIC_ACQUIRE);
  while (head < __atomic_load_n(&h->free_tail, __ATOMIC_ACQUIRE)) {
    uint32_t group = __atomic_load_n(&hi_run.free_groups[head & (HI_PAGE_GROUPS - 1)], __ATOMIC_RELAXED);
    if (__atomic_compare_exchange_n(&h->free_head, &head, head + 1, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
      return group * HI_BLOCK_PAGES;
  }
  return HI_PAGE_NONE;
}

static uint32_t reserve_group(void) {
  uint32_t id = take_free_group();
  return id ? id : reserve(HI_BLOCK_PAGES);
}

/* Nothing lies on a page any more. */
void hi_end_page(uint32_t page) {
  if (hi_run.pages[page].shared) return; /* others may have it mapped, or map it again */
  __atomic_or_fetch(&hi_run.ended[page / HI_BLOCK_PAGES], 1ull << (page % HI_BLOCK_PAGES), __ATOMIC_RELEASE);
  __atomic_add_fetch(&hi_run.header->ended_pages, 1, __ATOMIC_RELAXED);
}

/* The thread ends: nobody will use what it reserved. */
void hi_end_unused_pages(struct hi_local *t) {
  for (; t->next_page < t->page_end; t->next_page++) hi_end_page(t->next_page);
}

/* Fills the record of a page; the calling thread counts as the first to touch it. */
static void describe(struct hi_local *t, uint32_t id, uint64_t page, uint64_t shared, uint32_t site) {
  struct hi_page *p = &hi_run.pages[id];
  p->va = page;
  p->process = hi_run.process;
  p->generation = __atomic_load_n(&hi_run.processes[hi_run.process].generation, __ATOMIC_SEQ_CST);
  p->first_epoch = t->epoch;
  p->shared = shared;
  p->first_site = site;
  p->first_path = hi_touch_path(t, site);
  __atomic_store_n(&p->first_thread, t->shared->serial, __ATOMIC_RELEASE);
}

static uint64_t mix(uint64_t x) {
  x *= HI_HASH_MULTIPLIER;
  return x ^ (x >> 29);
}

/* Ordinal of the chunk of a shared object, created on demand; HI_CHUNKS when the table is full. */
static uint32_t chunk_of(uint64_t dev, uint64_t ino, uint64_t chunk) {
  uint64_t hash = mix(dev * 31 + ino * 1000003 + chunk * 7);
  for (uint32_t i = 0; i < HI_CHUNKS; i++) {
    uint32_t at = (uint32_t)((hash + i) & (HI_CHUNKS - 1));
    struct hi_chunk *c = &hi_run.chunks[at];
    uint32_t state = __atomic_load_n(&c->state, __ATOMIC_ACQUIRE);
    if (state == CHUNK_FREE) {
      uint32_t expected = CHUNK_FREE;
      if (__atomic_compare_exchange_n(&c->state, &expected, CHUNK_WRITING, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        c->dev = dev;
        c->ino = ino;
        c->chunk = chunk;
        c->base_page = reserve(HI_CHUNK_PAGES);
        __atomic_store_n(&c->state, CHUNK_VALID, __ATOMIC_RELEASE);
        return at;
      }
      state = expected;
    }
    /* Writing takes nanoseconds; the limit is for a writer that was killed in between. */
    for (int spin = 0; state == CHUNK_WRITING && spin < SPIN_TRIES; spin++) {
      __builtin_ia32_pause();
      state = __atomic_load_n(&c->state, __ATOMIC_ACQUIRE);
    }
    if (state == CHUNK_VALID && c->dev == dev && c->ino == ino && c->chunk == chunk) return at;
  }
  return HI_CHUNKS;
}

/* NULL if there is no such alias and `make` is false, or no free slot. */
static struct hi_alias *alias_slot(uint64_t key, bool make) {
  uint64_t hash = mix(key);
  for (uint32_t i = 0; i < ALIAS_TRIES; i++) {
    struct hi_alias *a = &hi_run.aliases[(hash + i) & (HI_ALIASES - 1)];
    uint64_t found = __atomic_load_n(&a->key, __ATOMIC_ACQUIRE);
    if (found == key) return a;
    if (found == 0) {
      if (!make) return NULL;
      if (__atomic_compare_exchange_n(&a->key, &found, key, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) || found == key)
        return a;
    }
  }
  return NULL;
}

/* Page number at which `process` maps page 0 of the chunk, 0 if it has not touched the chunk. */
uint64_t hi_alias_of(uint32_t process, uint32_t chunk) {
  struct hi_alias *a = alias_slot(1 + ((uint64_t)process << 32 | chunk), false);
  return a ? __atomic_load_n(&a->va, __ATOMIC_RELAXED) : 0;
}

static uint32_t shared_page(struct hi_local *t, uint64_t page, uint32_t site, const struct hi_shared_map *map) {
  uint64_t in_object = map->first + (page - map->page);
  uint32_t within = (uint32_t)(in_object % HI_CHUNK_PAGES);
  uint32_t chunk = chunk_of(map->dev, map->ino, in_object / HI_CHUNK_PAGES);
  if (chunk == HI_CHUNKS || hi_run.chunks[chunk].base_page == HI_PAGE_NONE) {
    __atomic_add_fetch(&hi_run.header->lost_chunks, 1, __ATOMIC_RELAXED);
    return HI_PAGE_NONE;
  }
  uint32_t id = hi_run.chunks[chunk].base_page + within;
  struct hi_alias *alias = alias_slot(1 + ((uint64_t)hi_run.process << 32 | chunk), true);
  if (alias) __atomic_store_n(&alias->va, page - within, __ATOMIC_RELAXED);
  if (!__atomic_load_n(&hi_run.pages[id].first_thread, __ATOMIC_ACQUIRE))
    describe(t, id, page, 1 + (uint64_t)chunk * HI_CHUNK_PAGES + within, site);
  /* Other processes may have its lines at other addresses, and so sample others of them. */
  id |= HI_PAGE_SPLIT;
  hi_mark_mapped(page);
  __atomic_store_n(&hi_run.pagemap[page], id, __ATOMIC_RELEASE);
  return id;
}

/* Gives a page that this process touches for the first time its entry in the page map; HI_PAGE_NONE when ids have
 * run out. */
uint32_t hi_new_page(struct hi_local *t, uint64_t page, uint32_t site) {
  struct hi_shared_map map;
  if (hi_shared_find(page, &map)) return shared_page(t, page, site, &map);
  if (t->next_page == t->page_end) {
    t->next_page = reserve_group();
    t->page_end = t->next_page ? t->next_page + HI_BLOCK_PAGES : 0;
  }
  if (t->next_page == HI_PAGE_NONE) {
    __atomic_add_fetch(&hi_run.header->lost_pages, 1, __ATOMIC_RELAXED);
    return HI_PAGE_NONE;
  }
  uint32_t id = t->next_page, found = 0;
  hi_mark_mapped(page);
  if (!__atomic_compare_exchange_n(&hi_run.pagemap[page], &found, id, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
    return found;
  t->next_page++;
  describe(t, id, page, 0, site);
  return id;
}

/* 0 when blocks have run out. */
static uint32_t reserve_block(void) {
  uint32_t block = __atomic_fetch_add(&hi_run.header->next_block, 1, __ATOMIC_RELAXED);
  if (block < HI_MAX_BLOCKS) return block;
  __atomic_store_n(&hi_run.header->next_block, HI_MAX_BLOCKS, __ATOMIC_RELAXED);
  __atomic_add_fetch(&hi_run.header->lost_blocks, 1, __ATOMIC_RELAXED);
  return 0;
}

/* Gives the thread a count block for the page and its neighbours; returns the counts of the
 * page, NULL when blocks have run out. */
struct hi_count *hi_new_block(struct hi_local *t, uint32_t page) {
  uint32_t block = t->shared->free_block;
  if (block) {
    t->shared->free_block = hi_run.owners[block].page_block;
  } else if ((block = reserve_block()) == 0) {
    return NULL;
  }
  hi_run.owners[block].page_block = page / HI_BLOCK_PAGES;
  __atomic_store_n(&hi_run.owners[block].thread, t->index, __ATOMIC_RELEASE);
  t->directory[page / HI_BLOCK_PAGES] = block;
  return &hi_run.blocks[block].page[page % HI_BLOCK_PAGES];
}
