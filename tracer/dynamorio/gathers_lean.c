/* gathers_lean.c: counts what a gather or scatter accesses, of which gathers.c has saved the vectors. */
#include "host.h"

static bool is_chosen(const struct host_vectors *v, union host_gather form, uint32_t element) {
  if (!form.in_vector) return v->mask[0] >> element & 1;
  return form.value_bytes == 8 ? v->mask[element] >> 63 : v->mask[element / 2] >> (element % 2 ? 63 : 31) & 1;
}

/* Counts an access to a line that is in the thread's line cache, as a probe does inline. */
static bool count_hit(struct hi_local *t, uint64_t address, union host_gather form) {
  uint64_t line = hi_line_of(address);
  struct hi_entry *e = (struct hi_entry *)*t->base_slot + hi_index(t, line);
  if (e->tag != line || hi_line_of(address + form.value_bytes - 1) != line) return false;
  *(form.writes ? &e->writes : &e->reads) += 1;
  return true;
}

void gathers_count(struct hi_local *t, uint64_t base, uint32_t word, int displacement, uint32_t site) {
  const struct host_vectors *v = (const void *)((const char *)t + HOST_VECTORS);
  union host_gather form = {.word = word};
  for (uint32_t i = 0; i < form.elements; i++) {
    if (!is_chosen(v, form, i)) continue;
    int64_t at = form.index_is_64 ? (int64_t)v->index[i] : (int32_t)(v->index[i / 2] >> i % 2 * 32);
    uint64_t address = base + (uint64_t)(at * form.scale + displacement);
    if (!count_hit(t, address, form)) hi_range(t, address, form.value_bytes, form.writes, site);
  }
}
