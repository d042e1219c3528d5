/* alloc.c: reports heap blocks: address, size and callers.
 *
 * Only the outermost allocation function counts (operator new calls malloc). Blocks smaller than
 * header.alloc_min are not reported, and neither is their free: a table of reported addresses
 * keeps the cost low for programs that allocate many small blocks. */
#include "host.h"

#define TRACKED_LOG2 20
#define TRACKED (1u << TRACKED_LOG2)
#define REMOVED 1 /* a removed entry of `tracked` */
#define FRAMES 4
#define STACK_WORDS 96

/* Call instructions, by their first byte, and by the reg field of the second for CALL_INDIRECT. */
enum { CALL_NEAR = 0xe8, CALL_NEAR_BYTES = 5, CALL_INDIRECT = 0xff, CALL_INDIRECT_REG = 2, LONGEST_CALL = 7 };

static uint64_t tracked[TRACKED]; /* open addressing */
static uint32_t ntracked, tracked_lock;
static int depth_slot;

struct request {
  uint32_t which;
  uint64_t size;
  uint64_t out;
  uint64_t old;
  uint64_t frames[FRAMES];
};

static uint32_t slot_of(uint64_t address) { return (uint32_t)(address * HI_HASH_MULTIPLIER >> (64 - TRACKED_LOG2)); }

static bool track(uint64_t address) {
  hi_spin_lock(&tracked_lock);
  uint32_t i = slot_of(address);
  while (tracked[i] > REMOVED) i = (i + 1) & (TRACKED - 1);
  /* A removed entry is reused even if the table is full, since it is counted in ntracked. */
  bool room = tracked[i] == REMOVED || ntracked < TRACKED / 2;
  if (room) {
    if (tracked[i] == 0) ntracked++;
    tracked[i] = address;
  }
  hi_spin_unlock(&tracked_lock);
  return room;
}

static bool untrack(uint64_t address) {
  bool found = false;
  uint32_t i = slot_of(address);
  /* Checked first without the lock: most freed blocks were never reported. */
  if (__atomic_load_n(&tracked[i], __ATOMIC_RELAXED) == 0) return false;
  hi_spin_lock(&tracked_lock);
  for (; tracked[i] && !found; i = (i + 1) & (TRACKED - 1))
    if (tracked[i] == address) {
      tracked[i] = REMOVED;
      found = true;
    }
  hi_spin_unlock(&tracked_lock);
  return found;
}

/* Whether there is a call instruction just before `pc`. */
static bool follows_call(uint64_t pc) {
  byte code[LONGEST_CALL];
  size_t got;
  if (!modules_executable(pc - sizeof code) || !modules_executable(pc)) return false;
  if (!dr_safe_read((void *)(pc - sizeof code), sizeof code, code, &got)) return false;
  if (code[LONGEST_CALL - CALL_NEAR_BYTES] == CALL_NEAR) return true;
  for (int at = 0; at + 2 <= LONGEST_CALL; at++)
    if (code[at] == CALL_INDIRECT && ((code[at + 1] >> 3) & 7) == CALL_INDIRECT_REG) return true;
  return false;
}

/* The callers, innermost first: words on the stack that look like return addresses. */
static void find_frames(void *wrap, uint64_t frames[FRAMES]) {
  memset(frames, 0, FRAMES * sizeof frames[0]);
  frames[0] = (uint64_t)drwrap_get_retaddr(wrap);
  dr_mcontext_t *mc = drwrap_get_mcontext_ex(wrap, DR_MC_INTEGER | DR_MC_CONTROL);
  uint64_t words[STACK_WORDS];
  size_t got = 0;
  if (!dr_safe_read((void *)(mc->xsp + 8), sizeof words, words, &got)) got = 0;
  int n = 1;
  for (size_t i = 0; i < got / 8 && n < FRAMES; i++)
    if (follows_call(words[i])) frames[n++] = words[i];
}

static void report(void *dc, uint64_t address, const struct request *r) {
  if (!address || r->size < hi_run.header->alloc_min || !track(address)) return;
  uint64_t a[6] = {address, r->size};
  memcpy(a + 2, r->frames, sizeof r->frames);
  hi_emit(host_local(dc), HI_EV_ALLOC, (uint16_t)r->which, a, 6, NULL);
}

static void forget(void *dc, uint64_t address) {
  if (address && untrack(address)) hi_emit(host_local(dc), HI_EV_FREE, 0, &address, 1, NULL);
}

static uint64_t argument(void *wrap, int i) { return (uint64_t)drwrap_get_arg(wrap, i); }

static bool large(uint64_t size) { return size >= hi_run.header->alloc_min; }

static void fill_request(void *wrap, struct request *r, uint32_t which) {
  r->which = which;
  switch (which) {
  case HI_ALLOC_CALLOC: r->size = argument(wrap, 0) * argument(wrap, 1); break;
  case HI_ALLOC_REALLOC:
    r->old = argument(wrap, 0);
    r->size = argument(wrap, 1);
    break;
  case HI_ALLOC_ALIGNED: r->size = argument(wrap, 1); break;
  case HI_ALLOC_MEMALIGN_OUT:
    r->out = argument(wrap, 0);
    r->size = argument(wrap, 2);
    break;
  default: r->size = argument(wrap, 0); break;
  }
}

/* `*data` is the kind of function on entry; it becomes the request, or NULL if the result is not
 * needed. */
static void before(void *wrap, void **data) {
  void *dc = drwrap_get_drcontext(wrap);
  uint32_t which = (uint32_t)(ptr_uint_t)*data;
  ptr_uint_t depth = (ptr_uint_t)drmgr_get_tls_field(dc, depth_slot);
  drmgr_set_tls_field(dc, depth_slot, (void *)(depth + 1));
  *data = NULL;
  if (depth) return;
  struct request r = {0};
  fill_request(wrap, &r, which);
  if (!large(r.size) && !r.old) return;
  struct request *keep = dr_thread_alloc(dc, sizeof *keep);
  if (large(r.size)) find_frames(wrap, r.frames);
  *keep = r;
  *data = keep;
}

static void after(void *wrap, void *data) {
  void *dc = wrap ? drwrap_get_drcontext(wrap) : dr_get_current_drcontext();
  ptr_uint_t depth = (ptr_uint_t)drmgr_get_tls_field(dc, depth_slot);
  if (depth) drmgr_set_tls_field(dc, depth_slot, (void *)(depth - 1));
  if (!data) return;
  struct request *r = data;
  uint64_t address = 0;
  if (wrap) {
    address = (uint64_t)drwrap_get_retval(wrap);
    if (r->which == HI_ALLOC_MEMALIGN_OUT) {
      size_t got;
      if (address != 0 || !dr_safe_read((void *)r->out, sizeof address, &address, &got)) address = 0;
    }
    /* A failed realloc leaves the old block alone. */
    if (r->old && (address || r->size == 0)) forget(dc, r->old);
    report(dc, address, r);
  }
  dr_thread_free(dc, r, sizeof *r);
}

static void before_free(void *wrap, void **data) {
  (void)data;
  forget(drwrap_get_drcontext(wrap), argument(wrap, 0));
}

static const struct {
  const char *name;
  uint32_t which;
} allocators[] = {
    {"malloc", HI_ALLOC_MALLOC},
    {"calloc", HI_ALLOC_CALLOC},
    {"realloc", HI_ALLOC_REALLOC},
    {"aligned_alloc", HI_ALLOC_ALIGNED},
    {"memalign", HI_ALLOC_ALIGNED},
    {"posix_memalign", HI_ALLOC_MEMALIGN_OUT},
    {"_Znwm", HI_ALLOC_NEW},
    {"_Znam", HI_ALLOC_NEW},
    {"_ZnwmSt11align_val_t", HI_ALLOC_NEW},
    {"_ZnamSt11align_val_t", HI_ALLOC_NEW},
    {"_ZnwmRKSt9nothrow_t", HI_ALLOC_NEW},
    {"_ZnamRKSt9nothrow_t", HI_ALLOC_NEW},
    {"free", HI_ALLOC_FREE},
};

void alloc_wrap_hook(app_pc function, uint32_t which) {
  if (which == HI_ALLOC_FREE) drwrap_wrap(function, before_free, NULL);
  else drwrap_wrap_ex(function, before, after, (void *)(ptr_uint_t)which, DRWRAP_UNWIND_ON_EXCEPTION);
}

/* In the child of a fork: the thread that may have held the lock does not exist here. */
void alloc_forget_lock(void) { hi_spin_unlock(&tracked_lock); }

void alloc_init(void) { depth_slot = drmgr_register_tls_field(); }

void alloc_wrap(const module_data_t *m) {
  /* ld.so has allocators of its own for use before those of libc; their blocks are never freed. */
  const char *name = dr_module_preferred_name(m);
  if (name && strncmp(name, "ld-linux", 8) == 0) return;
  for (size_t i = 0; i < sizeof allocators / sizeof allocators[0]; i++) {
    app_pc function = (app_pc)dr_get_proc_address(m->handle, allocators[i].name);
    if (function) alloc_wrap_hook(function, allocators[i].which);
  }
}
