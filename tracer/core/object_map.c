/* object_map.c: changes of the object map: blocks that are allocated and freed, variables of
 * files that are loaded and unloaded. Called between the program's instructions, never from
 * lean code; hi_object_at reads the map without a lock. */
#include "object_map.h"

#define MAX_TABLES (1u << 22)

struct hi_object_map hi_objects;

/* False when memory is short. */
bool hi_objects_init(void) {
  hi_objects.tables = hi_reserve(MAX_TABLES * sizeof(struct hi_object_table));
  hi_objects.next_id = HI_OBJECT_FIRST;
  return hi_objects.tables != NULL;
}

/* In the child of a fork: the thread that may have held the lock does not exist here. */
void hi_objects_forget_lock(void) { hi_spin_unlock(&hi_objects.lock); }

/* Enters a new object; returns its id, HI_OBJECT_NONE when there is no room for it but for the `reserved` ids
 * that are kept for others. */
uint32_t hi_object_new(struct hi_object object, uint32_t reserved) {
  hi_spin_lock(&hi_objects.lock);
  uint32_t id = hi_objects.next_id < HI_PROCESS_OBJECTS - reserved ? hi_objects.next_id : HI_OBJECT_NONE;
  uint32_t record = id ? __atomic_fetch_add(&hi_run.header->next_object, 1, __ATOMIC_RELAXED) : 0;
  if (record >= HI_MAX_OBJECTS) {
    __atomic_store_n(&hi_run.header->next_object, HI_MAX_OBJECTS, __ATOMIC_RELAXED);
    id = HI_OBJECT_NONE;
  }
  if (id) {
    struct hi_object *to = &hi_run.objects[record];
    uint32_t kind = object.kind;
    object.kind = 0;
    object.process = hi_run.process;
    object.id = id;
    object.generation = __atomic_load_n(&hi_run.processes[hi_run.process].generation, __ATOMIC_SEQ_CST);
    *to = object;
    __atomic_store_n(&to->kind, kind, __ATOMIC_RELEASE);
    hi_objects.record[id] = record;
    hi_objects.next_id = id + 1;
  }
  bool first = !id && !hi_objects.full;
  hi_objects.full |= first;
  hi_spin_unlock(&hi_objects.lock);
  uint64_t a[] = {HI_LOST_OBJECTS};
  if (first) hi_emit(NULL, HI_EV_LOST, 0, a, 1, NULL);
  return id;
}

/* The entry of a page; NULL if its leaf does not exist and `make` is false, or memory is short. */
static uint32_t *entry_of(uint64_t page, bool make) {
  uint32_t **leaf = &hi_objects.leaf[page >> HI_LEAF_SHIFT];
  if (!*leaf && make) {
    hi_spin_lock(&hi_objects.lock);
    if (!*leaf) __atomic_store_n(leaf, hi_reserve(sizeof(uint32_t) << HI_LEAF_SHIFT), __ATOMIC_RELEASE);
    hi_spin_unlock(&hi_objects.lock);
  }
  return *leaf ? &(*leaf)[page & ((1u << HI_LEAF_SHIFT) - 1)] : NULL;
}

static struct hi_object_table *table_of(uint32_t entry) { return &hi_objects.tables[entry & (HI_OBJECT_TABLE - 1)]; }

/* Takes an unused table; NULL when they have run out. Call with the lock. */
static struct hi_object_table *take_table(void) {
  uint32_t number = hi_objects.free_table;
  if (number) {
    hi_objects.free_table = (uint32_t)hi_objects.tables[number - 1].starts[0];
    return &hi_objects.tables[number - 1];
  }
  return hi_objects.ntables < MAX_TABLES ? &hi_objects.tables[hi_objects.ntables++] : NULL;
}

static void give_table(struct hi_object_table *table) {
  table->starts[0] = hi_objects.free_table;
  hi_objects.free_table = 1 + (uint32_t)(table - hi_objects.tables);
}

/* Replaces the one object of a page by a table that is full of it, or of `none` if it has none; NULL when
 * tables have run out. */
static struct hi_object_table *split(uint32_t *entry, uint32_t none) {
  hi_spin_lock(&hi_objects.lock);
  struct hi_object_table *table = *entry & HI_OBJECT_TABLE ? NULL : take_table();
  if (table) {
    uint32_t whole = *entry & (HI_PROCESS_OBJECTS - 1);
    for (uint32_t i = 0; i < HI_GRANULES; i++) table->object[i] = (uint16_t)(whole ? whole : none);
    for (uint32_t i = 0; i < HI_GRANULES / 64; i++) table->starts[i] = 0;
    table->starts[0] = *entry & HI_OBJECT_START ? 1 : 0;
    __atomic_store_n(entry, HI_OBJECT_TABLE | (uint32_t)(table - hi_objects.tables), __ATOMIC_RELEASE);
  }
  hi_spin_unlock(&hi_objects.lock);
  return *entry & HI_OBJECT_TABLE ? table_of(*entry) : NULL;
}

static void mark_start(struct hi_object_table *table, uint32_t granule, bool start) {
  uint64_t bit = 1ull << (granule % 64);
  if (start) __atomic_or_fetch(&table->starts[granule / 64], bit, __ATOMIC_RELAXED);
  else __atomic_and_fetch(&table->starts[granule / 64], ~bit, __ATOMIC_RELAXED);
}

static bool is_start(const struct hi_object_table *table, uint32_t granule) {
  return table->starts[granule / 64] >> (granule % 64) & 1;
}

static uint32_t granule_of(uint64_t address) { return (uint32_t)(address & (HI_PAGE_BYTES - 1)) >> HI_GRANULE_SHIFT; }

/* An object lies at [address, address + size) from now on, as one block; what else lies on its pages, if that is
 * not known, is `none`. True if a page got its table by this. */
static bool place(uint64_t address, uint64_t size, uint32_t object, uint32_t none) {
  bool tables = false;
  uint64_t end = address + size;
  for (uint64_t at = address; at < end;) {
    uint64_t page = at >> HI_PAGE_SHIFT, next = (page + 1) << HI_PAGE_SHIFT;
    uint32_t *entry = entry_of(page, true);
    if (!entry) return tables;
    bool whole = at == page << HI_PAGE_SHIFT && next <= end;
    if (whole && !(*entry & HI_OBJECT_TABLE)) {
      __atomic_store_n(entry, object | (object && at == address ? HI_OBJECT_START : 0), __ATOMIC_RELAXED);
    } else {
      tables |= !(*entry & HI_OBJECT_TABLE);
      struct hi_object_table *table = split(entry, none);
      if (!table) return tables;
      uint32_t last = next <= end ? HI_GRANULES - 1 : granule_of(end - 1);
      for (uint32_t i = granule_of(at); i <= last; i++) table->object[i] = (uint16_t)object;
      if (at == address) mark_start(table, granule_of(at), object != HI_OBJECT_NONE);
    }
    at = next;
  }
  return tables;
}

/* A heap block, a mapping or a variable. Other bytes of its pages are in none that lives. */
bool hi_object_place(uint64_t address, uint64_t size, uint32_t object) {
  return place(address, size, object, HI_OBJECT_FREE);
}

/* What lies in memory of which the tracer knows nothing else: on a stack. */
void hi_object_place_beside(uint64_t address, uint64_t size, uint32_t object) {
  place(address, size, object, HI_OBJECT_NONE);
}

/* Takes the part of a block off that lies on a page from `granule` on; whether it goes on behind
 * the page. `*bytes` is how much that was. */
static bool remove_part(uint32_t *entry, uint32_t granule, bool first, uint32_t object, uint64_t *bytes) {
  *bytes = 0;
  if (!(*entry & HI_OBJECT_TABLE)) {
    if (!first && (*entry & HI_OBJECT_START || *entry != object)) return false;
    __atomic_store_n(entry, HI_OBJECT_FREE, __ATOMIC_RELAXED);
    *bytes = HI_PAGE_BYTES;
    return true;
  }
  struct hi_object_table *table = table_of(*entry);
  if (first) mark_start(table, granule, false);
  for (uint32_t i = granule; i < HI_GRANULES; i++) {
    if (is_start(table, i) || table->object[i] != object) return false;
    table->object[i] = HI_OBJECT_FREE;
    *bytes += 1u << HI_GRANULE_SHIFT;
  }
  return true;
}

/* The object of the block that starts at an address; HI_OBJECT_NONE if none does. */
static uint32_t block_at(const uint32_t *entry, uint64_t address) {
  if (!entry) return HI_OBJECT_NONE;
  if (*entry & HI_OBJECT_TABLE) {
    const struct hi_object_table *table = table_of(*entry);
    return is_start(table, granule_of(address)) ? table->object[granule_of(address)] : HI_OBJECT_NONE;
  }
  bool here = *entry & HI_OBJECT_START && !(address & (HI_PAGE_BYTES - 1));
  return here ? *entry & (HI_PROCESS_OBJECTS - 1) : HI_OBJECT_NONE;
}

/* The block at an address is freed: returns its object and size, rounded up to granules;
 * HI_OBJECT_NONE if there is none. */
uint32_t hi_object_remove(struct hi_local *t, uint64_t address, uint64_t *size) {
  uint32_t *entry = entry_of(address >> HI_PAGE_SHIFT, false);
  uint32_t object = block_at(entry, address);
  *size = 0;
  if (object == HI_OBJECT_NONE) return object;
  uint64_t bytes;
  bool more = true;
  for (uint64_t at = address; more && entry; entry = entry_of(at >> HI_PAGE_SHIFT, false)) {
    more = remove_part(entry, granule_of(at), at == address, object, &bytes);
    hi_forget_lines(t, at, bytes);
    *size += bytes;
    at = ((at >> HI_PAGE_SHIFT) + 1) << HI_PAGE_SHIFT;
  }
  return object;
}

/* Whether its blocks are whole mappings. */
bool hi_object_is_mapping(uint32_t object) {
  return object >= HI_OBJECT_FIRST && hi_run.objects[hi_objects.record[object]].kind == HI_OBJECT_MAPPING;
}

/* Nothing lies in the range any more: it was unmapped. Heap blocks are freed by themselves. */
void hi_object_clear(uint64_t address, uint64_t size) {
  uint32_t mapping = HI_OBJECT_NONE, pages = 0; /* of one object, not yet counted as freed */
  uint64_t end = (address + size + HI_PAGE_BYTES - 1) >> HI_PAGE_SHIFT;
  for (uint64_t page = address >> HI_PAGE_SHIFT; page < end && end >> HI_LEAF_SHIFT < HI_LEAVES; page++) {
    uint32_t *entry = entry_of(page, false);
    if (!entry) {
      page |= (1u << HI_LEAF_SHIFT) - 1;
      continue;
    }
    uint32_t old = __atomic_exchange_n(entry, HI_OBJECT_NONE, __ATOMIC_RELAXED);
    if (!(old & HI_OBJECT_TABLE)) {
      uint32_t object = old & (HI_PROCESS_OBJECTS - 1);
      if (object != mapping) {
        if (pages) hi_object_freed(mapping, (uint64_t)pages << HI_PAGE_SHIFT);
        mapping = hi_object_is_mapping(object) ? object : HI_OBJECT_NONE;
        pages = 0;
      }
      if (mapping) pages++;
      continue;
    }
    hi_spin_lock(&hi_objects.lock);
    give_table(table_of(old));
    hi_spin_unlock(&hi_objects.lock);
  }
  if (pages) hi_object_freed(mapping, (uint64_t)pages << HI_PAGE_SHIFT);
}

static uint64_t granules(uint64_t bytes) { return (bytes + (1u << HI_GRANULE_SHIFT) - 1) >> HI_GRANULE_SHIFT; }

/* A block of an allocation site was allocated. */
void hi_object_allocated(uint32_t object, uint64_t bytes) {
  struct hi_object *o = &hi_run.objects[hi_objects.record[object]];
  __atomic_add_fetch(&o->blocks, 1, __ATOMIC_RELAXED);
  __atomic_add_fetch(&o->bytes, bytes, __ATOMIC_RELAXED);
  __atomic_add_fetch(&o->granules, granules(bytes), __ATOMIC_RELAXED);
  uint64_t live = __atomic_add_fetch(&o->live, granules(bytes), __ATOMIC_RELAXED);
  uint64_t peak = __atomic_load_n(&o->peak, __ATOMIC_RELAXED);
  while (live > peak && (int64_t)live > 0 &&
         !__atomic_compare_exchange_n(&o->peak, &peak, live, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
  uint64_t smallest = __atomic_load_n(&o->smallest, __ATOMIC_RELAXED);
  while ((!smallest || bytes < smallest) &&
         !__atomic_compare_exchange_n(&o->smallest, &smallest, bytes, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
  uint64_t largest = __atomic_load_n(&o->largest, __ATOMIC_RELAXED);
  while (bytes > largest &&
         !__atomic_compare_exchange_n(&o->largest, &largest, bytes, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
}

/* One was freed: `bytes` as hi_object_remove gave them. */
void hi_object_freed(uint32_t object, uint64_t bytes) {
  __atomic_sub_fetch(&hi_run.objects[hi_objects.record[object]].live, granules(bytes), __ATOMIC_RELAXED);
}
