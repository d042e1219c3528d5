/* alloc.c: heap blocks, and mappings that the program makes for itself: where they lie, and which calls
 * allocated them.
 *
 * Only the outermost allocation function counts (operator new calls malloc). Blocks that the same
 * calls allocate are one object of the object map; those of header.alloc_min bytes or more are
 * also reported one by one. */
#include "../core/object_map.h"
#include "host.h"

#define FRAMES HI_FRAMES
#define STACK_WORDS 96 /* read at once, and searched where there are no unwind tables */
#define MAX_PATHS (1u << 15)
#define PATH_HEADS (1u << 12)
/* Call paths that are told apart for one return address, and as many again by the next only: of an
 * allocator of the program's own (xmalloc) that all of it calls. */
#define PATHS_OF_CALL 256
/* Where so many ids of data structures are in use, callers are told apart by two calls, and by one, so that the last
 * structures still have counts. */
#define SHORT_PATHS_FROM (HI_PROCESS_OBJECTS / 4 * 3)
#define NO_PATHS_FROM (HI_PROCESS_OBJECTS / 8 * 7)
/* The last ids are for large blocks, of which there are few and which have most of the memory: a program with very
 * many places that allocate (PyTorch, as it starts) would leave none to what it computes with. */
#define RESERVED_FOR_LARGE (HI_PROCESS_OBJECTS / 16)
#define SHORT_LARGE_PATHS_FROM (HI_PROCESS_OBJECTS - RESERVED_FOR_LARGE / 2)
#define LARGE (64u << 10)

/* A call path: return addresses, and where on the stack they were found. */
struct path {
  uint64_t frames[FRAMES];
  uint16_t at[FRAMES]; /* words above the first return address; 0: none */
  uint32_t object, next;
  bool is_short; /* only the innermost two frames, though there are more */
};
static struct path paths[MAX_PATHS];
static uint32_t npaths, heads[PATH_HEADS], paths_lock; /* numbers of paths, 0: none */
static int depth_slot;

struct request {
  uint32_t which;
  uint64_t size;
  uint64_t out;
  uint64_t old;
  uint32_t object;
};

/* A block or a mapping that is to be placed. */
struct asked {
  uint32_t kind;
  uint64_t size;
};

/* The stack above the return address of an allocation function, and the frame pointer there. */
struct stack {
  uint64_t base, fp;
  const uint64_t *words;
  size_t n; /* words that have been read */
};

static bool read_word(const void *stack, uint64_t address, uint64_t *word) {
  const struct stack *s = stack;
  uint64_t at = (address - s->base) / sizeof *word;
  if (address % sizeof *word == 0 && at < s->n) {
    *word = s->words[at];
    return true;
  }
  return dr_safe_read((void *)address, sizeof *word, word, NULL);
}

static bool matches(const struct path *path, const struct stack *s) {
  for (uint32_t i = 1; i < FRAMES && path->at[i]; i++) {
    uint64_t word;
    if (!read_word(s, s->base + (path->at[i] - 1u) * sizeof word, &word) || word != path->frames[i]) return false;
  }
  return true;
}

static uint32_t new_path(struct hi_local *t, struct path path, struct asked asked, uint32_t *head) {
  struct hi_object site = {.kind = asked.kind, .thread = t->shared->serial};
  memcpy(site.frames, path.frames, sizeof site.frames);
  path.object = hi_object_new(site, asked.size < LARGE ? RESERVED_FOR_LARGE : 0);
  hi_spin_lock(&paths_lock);
  if (npaths + 1 < MAX_PATHS) {
    path.next = *head;
    paths[++npaths] = path;
    __atomic_store_n(head, npaths, __ATOMIC_RELEASE);
  }
  hi_spin_unlock(&paths_lock);
  return path.object;
}

/* The object of what is allocated by the call that returns to `caller`, and by its callers. */
static uint32_t object_of_callers(void *dc, struct asked asked, uint64_t caller_pc, const struct stack *stack) {
  struct path path = {.frames = {caller_pc}};
  uint32_t *head = &heads[path.frames[0] * HI_HASH_MULTIPLIER >> 32 & (PATH_HEADS - 1)];
  uint32_t same = 0, caller = 0, others = 0; /* others: all paths that are not told apart */
  for (uint32_t i = __atomic_load_n(head, __ATOMIC_ACQUIRE); i; i = paths[i].next) {
    if (paths[i].frames[0] != path.frames[0]) continue;
    if (!paths[i].at[1]) others = i;
    else if (!matches(&paths[i], stack)) same++;
    else if (!paths[i].is_short) return paths[i].object;
    else caller = i;
  }
  if (caller) return paths[caller].object;
  const uint32_t ids = hi_objects.next_id;
  const bool large = asked.size >= LARGE;
  path.is_short = same >= PATHS_OF_CALL || ids > (large ? SHORT_LARGE_PATHS_FROM : SHORT_PATHS_FROM);
  if (same < 2 * PATHS_OF_CALL && (large || ids <= NO_PATHS_FROM)) {
    struct hi_frame frame = {caller_pc, stack->base, stack->fp, true};
    struct hi_stack searched = {read_word, stack, stack->base + stack->n * sizeof *stack->words};
    hi_find_callers(frame, &searched, path.is_short ? 1 : FRAMES - 1, path.frames + 1, path.at + 1);
  }
  if (!path.at[1] && others) return paths[others].object;
  return new_path(host_local(dc), path, asked, head);
}

static void report(void *dc, uint64_t address, const struct request *r) {
  if (!address || !r->object) return;
  struct hi_local *t = host_local(dc);
  uint64_t size = r->size ? r->size : 1;
  hi_forget_lines(t, address, size);
  bool tables = hi_object_place(address, size, r->object);
  hi_object_allocated(r->object, size);
  uint64_t a[] = {address, size, hi_objects.record[r->object]};
  if (size >= hi_run.header->alloc_min) hi_emit(t, HI_EV_ALLOC, (uint16_t)r->which, a, 3, NULL);
  else if (tables) hi_emit(t, HI_EV_BLOCKS, 0, a, 1, NULL);
}

static void forget(void *dc, uint64_t address) {
  if (!address) return;
  struct hi_local *t = host_local(dc);
  uint64_t size;
  uint32_t object = hi_object_remove(t, address, &size);
  if (!object) return;
  hi_object_freed(object, size);
}

static uint64_t argument(void *wrap, int i) { return (uint64_t)drwrap_get_arg(wrap, i); }

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

/* What `before` leaves of a call that counts as none. */
static struct request no_call;

/* `*data` is the kind of function on entry; it becomes the request, or NULL if the result is not
 * needed. */
static void before(void *wrap, void **data) {
  void *dc = drwrap_get_drcontext(wrap);
  uint32_t kind = (uint32_t)(ptr_uint_t)*data, which = kind & ~HI_ALLOC_OUT_OF_LINE;
  ptr_uint_t depth = (ptr_uint_t)drmgr_get_tls_field(dc, depth_slot);
  if (kind != which && argument(wrap, 0) <= HI_INLINED_MOST) {
    *data = &no_call;
    return;
  }
  drmgr_set_tls_field(dc, depth_slot, (void *)(depth + 1));
  *data = NULL;
  if (depth) return;
  struct request r = {0};
  fill_request(wrap, &r, which);
  uint64_t words[STACK_WORDS];
  size_t got = 0;
  dr_mcontext_t *mc = drwrap_get_mcontext_ex(wrap, DR_MC_INTEGER | DR_MC_CONTROL);
  if (!dr_safe_read((void *)(mc->xsp + 8), sizeof words, words, &got)) got = 0;
  struct stack stack = {mc->xsp + 8, mc->xbp, words, got / 8};
  r.object = object_of_callers(dc, (struct asked){HI_OBJECT_SITE, r.size}, (uint64_t)drwrap_get_retaddr(wrap), &stack);
  struct request *keep = dr_thread_alloc(dc, sizeof *keep);
  *keep = r;
  *data = keep;
}

static void after(void *wrap, void *data) {
  if (data == &no_call) return;
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

/* The object of the calls that led to a system call that made a mapping; HI_OBJECT_NONE if they are not
 * known. The first return address on the stack is that in the caller of mmap, or of what the program has in
 * its place. */
static uint32_t object_of_mapping(void *dc, uint64_t size) {
  dr_mcontext_t mc = {.size = sizeof mc, .flags = DR_MC_INTEGER | DR_MC_CONTROL};
  uint64_t words[STACK_WORDS];
  size_t got = 0, first = 0;
  if (!dr_get_mcontext(dc, &mc) || !dr_safe_read((void *)mc.xsp, sizeof words, words, &got)) return HI_OBJECT_NONE;
  while (first < got / 8 && !hi_follows_call(words[first])) first++;
  if (first == got / 8) return HI_OBJECT_NONE;
  size_t above = first + 1;
  struct stack stack = {mc.xsp + above * sizeof *words, mc.xbp, words + above, got / 8 - above};
  return object_of_callers(dc, (struct asked){HI_OBJECT_MAPPING, size}, words[first], &stack);
}

/* After a system call that made a mapping, of any size: what ld.so knows of libraries lies in pages of its own, and is
 * most of what a program of many libraries reads as it starts. Those that allocation functions make hold blocks. */
void alloc_mapped(void *dc, uint64_t address, uint64_t size) {
  if (drmgr_get_tls_field(dc, depth_slot)) return;
  report(dc, address, &(struct request){.size = size, .object = object_of_mapping(dc, size)});
}

/* Memory that processes share is counted by its pages, for the object map is a process' own: only the calls
 * that map it are told. */
void alloc_shared(void *dc, uint64_t address, uint64_t size) {
  uint32_t object = object_of_mapping(dc, size);
  uint64_t a[] = {address, size, hi_objects.record[object]};
  if (object) hi_emit(host_local(dc), HI_EV_ALLOC, 0, a, 3, NULL);
}

/* A mapping of the program's own has another size or place. */
void alloc_remapped(void *dc, uint64_t from, uint64_t old_size, uint64_t to, uint64_t size) {
  uint32_t object = hi_object_at(from) & (HI_PROCESS_OBJECTS - 1);
  if (!hi_object_is_mapping(object)) return;
  hi_object_clear(from, old_size);
  report(dc, to, &(struct request){.size = size, .object = object});
}

static void before_free(void *wrap, void **data) {
  (void)data;
  forget(drwrap_get_drcontext(wrap), argument(wrap, 0));
}

const struct allocation_function allocation_functions[ALLOCATION_FUNCTIONS] = {
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
void alloc_forget_lock(void) {
  hi_spin_unlock(&paths_lock);
  hi_objects_forget_lock();
}

void alloc_init(void) { depth_slot = drmgr_register_tls_field(); }

void alloc_wrap(const module_data_t *m, const struct exports *exports) {
  /* ld.so has allocators of its own for use before those of libc; their blocks are never freed. */
  const char *name = dr_module_preferred_name(m);
  if (name && strncmp(name, "ld-linux", 8) == 0) return;
  for (size_t i = 0; i < ALLOCATION_FUNCTIONS; i++) {
    app_pc function = exports_find(exports, allocation_functions[i].name);
    if (function) alloc_wrap_hook(function, allocation_functions[i].which);
  }
}
