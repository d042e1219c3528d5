/* object_map.h: which data structure lies at an address.
 *
 * Each page has an entry: none, one object for the whole page, or a table with the object of
 * each granule of HI_GRANULE bytes. Entries lie in leaves of LEAF_PAGES pages. The map is private
 * to the process, so that a forked child takes its own copy over. Blocks of one object that follow
 * each other are told apart by a mark at their start. */
#ifndef HITHER_OBJECT_MAP_H
#define HITHER_OBJECT_MAP_H
#include "state.h"

#define HI_GRANULE_SHIFT 4 /* 16 bytes: how blocks are aligned */
#define HI_GRANULES (HI_PAGE_BYTES >> HI_GRANULE_SHIFT)
#define HI_LEAF_SHIFT 18 /* pages of a leaf, log2 */
#define HI_LEAVES (1u << (47 - HI_PAGE_SHIFT - HI_LEAF_SHIFT))
#define HI_SPLIT HI_PROCESS_OBJECTS /* flag beside an object's id, see hi_object_at */
#define HI_OBJECT_START (1u << 31)  /* of an entry: a block starts at the page's first byte */
#define HI_OBJECT_TABLE (1u << 30)  /* of an entry: the number of a table, not of an object */

struct hi_object_table {
  uint16_t object[HI_GRANULES] __attribute__((aligned(8)));
  uint64_t starts[HI_GRANULES / 64]; /* bit per granule: a block starts there */
};

struct hi_object_map {
  uint32_t *leaf[HI_LEAVES];
  struct hi_object_table *tables;
  uint32_t ntables, lock;
  uint32_t free_table;                 /* 1 + the number of the first unused one below ntables */
  bool full;                           /* an object had no room, which has been reported */
  uint32_t next_id;                    /* of this process */
  uint32_t record[HI_PROCESS_OBJECTS]; /* id -> record in the segment */
};
extern struct hi_object_map hi_objects;

/* object_map.c. Not lean. */
bool hi_objects_init(void);
void hi_objects_forget_lock(void);
uint32_t hi_object_new(struct hi_object record, uint32_t reserved);
bool hi_object_place(uint64_t address, uint64_t size, uint32_t object);
void hi_object_place_beside(uint64_t address, uint64_t size, uint32_t object);
uint32_t hi_object_remove(struct hi_local *t, uint64_t address, uint64_t *size);
void hi_object_clear(uint64_t address, uint64_t size);
void hi_object_allocated(uint32_t object, uint64_t bytes);
void hi_object_freed(uint32_t object, uint64_t bytes);
bool hi_object_is_mapping(uint32_t object);

/* The object at an address; with HI_SPLIT if another object lies on the same line, so that further
 * accesses to the line may be to that one. On a line with one object all bytes count as
 * its own, the allocator's headers between blocks included. */
static inline uint32_t hi_object_at(uint64_t address) {
  const uint32_t *leaf = hi_objects.leaf[address >> (HI_PAGE_SHIFT + HI_LEAF_SHIFT)];
  if (!leaf) return HI_OBJECT_NONE;
  uint32_t entry = leaf[(address >> HI_PAGE_SHIFT) & ((1u << HI_LEAF_SHIFT) - 1)];
  if (HI_LIKELY(!(entry & HI_OBJECT_TABLE))) return entry & (HI_PROCESS_OBJECTS - 1);
  const uint16_t *object = hi_objects.tables[entry & (HI_OBJECT_TABLE - 1)].object;
  uint32_t here = (uint32_t)(address & (HI_PAGE_BYTES - 1)) >> HI_GRANULE_SHIFT;
  uint32_t per_line = 1u << (hi_run.line_log2 > HI_GRANULE_SHIFT ? hi_run.line_log2 - HI_GRANULE_SHIFT : 0);
  uint32_t first = here & ~(per_line - 1), found = object[here];
  for (uint32_t i = first; i < first + per_line; i++) {
    if (object[i] == found || object[i] <= HI_OBJECT_FREE) continue;
    if (found > HI_OBJECT_FREE) return found | HI_SPLIT;
    found = object[i];
  }
  return found;
}

static inline void hi_count_object(struct hi_local *t, uint32_t id, struct hi_object_count more) {
  struct hi_object_count *c = &t->object_counts[id];
  if (HI_UNLIKELY(!(c->reads | c->writes)))
    t->object_used[id / HI_OBJECT_GROUP / 64] |= 1ull << (id / HI_OBJECT_GROUP % 64);
  c->reads += more.reads;
  c->writes += more.writes;
  c->fetches += more.fetches;
}
#endif
