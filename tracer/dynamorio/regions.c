/* regions.c: system calls that change the address space, create threads, rename them or
 * replace the image. */
#include "../core/object_map.h"
#include "host.h"
#include <asm/prctl.h>
#include <linux/sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOST_WITHOUT_PROMISE (4ull << 30) /* bytes; the object map has 4 for a page */
#define DEV_ANONYMOUS (~0ull)
#define DEV_SYSV (~1ull)
#define ARGS 6
#define CHILD_STACK ARGS /* kept with them: what child_stack said */
#define KEPT (ARGS + 1)
#define MAX_ERRNO 4095 /* the kernel's: results from -MAX_ERRNO to -1 are errors */

static int args_slot; /* the arguments of the system call in progress */
static uint64_t initial_break;

/* Threads about to be created: their indices follow the order of creation, not the order in which
 * the new threads start to run. Matched by the child's stack pointer. There may be thousands, as on
 * a busy machine new threads start late. */
struct pending {
  uint64_t stack;
  uint32_t index, creator; /* index 0: past the limit on threads; serial */
  struct pending *next;
};
static struct pending *pending;
static void *pending_lock;

static void add_pending(struct hi_local *t, uint64_t stack, uint32_t creator, struct hi_creation creation) {
  struct pending *p = dr_global_alloc(sizeof *p);
  *p = (struct pending){stack, hi_thread_reserve(t), creator, NULL};
  hi_thread_created(p->index, creation);
  process_signals_inherit(p->index);
  dr_mutex_lock(pending_lock);
  p->next = pending;
  pending = p;
  dr_mutex_unlock(pending_lock);
}

/* What was reserved for the thread that starts on this stack; false if nothing was. */
bool regions_take_pending(uint64_t stack, uint32_t *index, uint32_t *creator) {
  dr_mutex_lock(pending_lock);
  struct pending **at = &pending;
  while (*at && (*at)->stack != stack) at = &(*at)->next;
  struct pending *p = *at;
  if (p) *at = p->next;
  dr_mutex_unlock(pending_lock);
  if (!p) return false;
  *index = p->index;
  *creator = p->creator;
  dr_global_free(p, sizeof *p);
  return true;
}

/* In the child of a fork: neither the threads that were about to be created nor the thread that
 * may have held the lock exist here. */
void regions_forget_pending(void) {
  pending = NULL;
  pending_lock = dr_mutex_create();
}

/* Where the stack of the thread starts that the call is to create in this memory; 0 if it creates none.
 * That of vfork is one too, until it executes a program. */
static uint64_t child_stack(void *dc, int number, const uint64_t *a, bool *vforks) {
  struct clone_args args = {.flags = a[0], .stack = a[1]};
  size_t got;
  if (number == SYS_clone3) {
    size_t size = a[1] < sizeof args ? a[1] : sizeof args;
    args = (struct clone_args){0};
    if (!dr_safe_read((void *)a[0], size, &args, &got)) return 0;
  }
  if (number == SYS_vfork) args = (struct clone_args){.flags = CLONE_VM | CLONE_VFORK};
  *vforks = !(args.flags & CLONE_THREAD) && args.flags & CLONE_VFORK && args.flags & CLONE_VM;
  if (!(args.flags & CLONE_THREAD) && !*vforks) return 0;
  if (args.stack) return args.stack + args.stack_size;
  dr_mcontext_t mc = {.size = sizeof mc, .flags = DR_MC_CONTROL};
  return dr_get_mcontext(dc, &mc) ? mc.xsp : 0; /* that of the caller */
}

/* Before fork, vfork, clone or clone3. */
static void reserve_child(void *dc, struct hi_local *t, int number, uint64_t *a) {
  bool vforks = false;
  a[CHILD_STACK] = number == SYS_fork ? 0 : child_stack(dc, number, a, &vforks);
  if (!hi_run.process) return;
  if (vforks) add_pending(t, a[CHILD_STACK], 0, (struct hi_creation){0});
  else if (a[CHILD_STACK]) add_pending(t, a[CHILD_STACK], t->shared->serial, creation_in_progress(dc, t, number, a));
  else t->child_index = hi_thread_reserve(t);
}

/* The call failed. */
static void give_back_child(struct hi_local *t, const uint64_t *a) {
  uint32_t index = t->child_index, creator;
  if (!hi_run.process || (a[CHILD_STACK] && !regions_take_pending(a[CHILD_STACK], &index, &creator))) return;
  hi_thread_give_back(index);
  t->child_index = 0;
}

static bool wanted(void *dc, int number) {
  (void)dc;
  switch (number) {
  case SYS_mmap:
  case SYS_munmap:
  case SYS_mremap:
  case SYS_brk:
  case SYS_shmat:
  case SYS_shmdt:
  case SYS_prctl:
  case SYS_arch_prctl:
  case SYS_clone:
  case SYS_clone3:
  case SYS_fork:
  case SYS_vfork:
  case SYS_execve:
  case SYS_execveat: return true;
  default: return false;
  }
}

static void unmapped(struct hi_local *t, uint64_t address, uint64_t length) {
  if (length == 0 || address + length < address) return;
  hi_unmap_pages(t, address, length);
  hi_object_clear(address, length);
  hi_bump_generation();
  uint64_t a[] = {address, length};
  hi_emit(t, HI_EV_UNMAP, 0, a, 2, NULL);
}

static uint64_t sysv_length(uint64_t address) {
  dr_mem_info_t info;
  bool found = dr_query_memory_ex((byte *)address, &info) && (uint64_t)info.base_pc == address;
  return found ? info.size : 0;
}

/* The thread that an exec ends, NULL for all threads of the process. A child of vfork, which runs
 * in its parent's memory, ends only itself. */
static const struct hi_local *leaving(const struct hi_local *t) {
  return hi_run.processes[hi_run.process].pid == getpid() ? NULL : t;
}

/* There is no callback after a call that is skipped, as its result is known. */
static bool untraced_exec_failed(void *dc, const struct hi_local *t, int64_t error) {
  signals_exec_failed(dc);
  hi_threads_reopen(leaving(t));
  dr_syscall_set_result(dc, (reg_t)error);
  return false;
}

static bool before_syscall(void *dc, int number) {
  if (seccomp_refused(dc)) return true;
  struct hi_local *t = host_local(dc);
  uint64_t *a = drmgr_get_tls_field(dc, args_slot);
  int64_t error;
  thread_locals_poll(t);
  for (int i = 0; i < ARGS; i++) a[i] = dr_syscall_get_param(dc, i);
  switch (number) {
  case SYS_munmap: unmapped(t, a[0], a[1]); break;
  case SYS_shmdt: unmapped(t, a[0], sysv_length(a[0])); break;
  case SYS_mmap:
    if ((a[3] & MAP_FIXED) && !modules_contain(a[0], a[1])) unmapped(t, a[0], a[1]);
    break;
  case SYS_fork:
  case SYS_vfork:
  case SYS_clone:
  case SYS_clone3: reserve_child(dc, t, number, a); break;
  case SYS_execve:
  case SYS_execveat:
    hi_switch(t);
    hi_flush(t); /* if the call succeeds it does not return */
    hi_record_encode(t);
    hi_threads_close(leaving(t));
    if ((error = credentials_exec(dc, number, a))) return untraced_exec_failed(dc, t, error);
    exec_before(dc, number);
    break;
  default: break;
  }
  return true;
}

static void file_of(int fd, uint64_t *dev, uint64_t *ino, char *path, size_t size) {
  struct stat st;
  char link[64];
  *path = 0;
  *dev = *ino = 0;
  if (fd < 0 || fstat(fd, &st) != 0) return;
  *dev = st.st_dev;
  *ino = st.st_ino;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t n = readlink(link, path, size - 1);
  path[n > 0 ? n : 0] = 0;
}

/* Memory that the program takes for itself, and may use: not the stacks of threads, and not what it only
 * reserves. What it takes without a promise of the kernel to have it can be a heap (SBCL's has 1 GiB), or the
 * terabytes of a sanitizer's shadow, for which the object map is too large. */
static bool is_own_memory(const uint64_t *a) {
  uint64_t kinds = MAP_ANONYMOUS | MAP_PRIVATE | MAP_STACK | MAP_GROWSDOWN;
  bool too_large = a[3] & MAP_NORESERVE && a[1] > MOST_WITHOUT_PROMISE;
  return a[2] & PROT_WRITE && (a[3] & kinds) == (MAP_ANONYMOUS | MAP_PRIVATE) && !too_large;
}

static void mapped(void *dc, struct hi_local *t, const uint64_t *a, uint64_t address) {
  uint64_t length = (a[1] + HI_PAGE_BYTES - 1) & ~(HI_PAGE_BYTES - 1);
  if (modules_contain(address, length)) return;
  hi_object_clear(address, length); /* a block that was moved away by mremap */
  char path[512] = "";
  uint64_t dev = 0, ino = 0, first = a[5] >> HI_PAGE_SHIFT;
  uint16_t kind = HI_MAP_PRIVATE;
  bool anonymous = a[3] & MAP_ANONYMOUS;
  bool shared = (a[3] & MAP_TYPE) == MAP_SHARED || (a[3] & MAP_TYPE) == MAP_SHARED_VALIDATE;
  if (!anonymous) file_of((int)a[4], &dev, &ino, path, sizeof path);
  if (shared && anonymous) {
    dev = DEV_ANONYMOUS;
    ino = 1 + __atomic_fetch_add(&hi_run.header->next_chunk_object, 1, __ATOMIC_SEQ_CST);
    first = 0;
  }
  if (shared && dev) {
    kind = anonymous ? HI_MAP_SHARED_ANON : HI_MAP_SHARED_FILE;
    hi_shared_add((struct hi_shared_map){address >> HI_PAGE_SHIFT, length >> HI_PAGE_SHIFT, dev, ino, first});
  }
  hi_bump_generation();
  uint64_t e[] = {address, length, a[2], a[3], dev, ino};
  hi_emit(t, HI_EV_MAP, kind, e, 6, *path ? path : NULL);
  if (shared) alloc_shared(dc, address, length);
  else if (is_own_memory(a)) alloc_mapped(dc, address, length);
}

static void attached(void *dc, struct hi_local *t, const uint64_t *a, uint64_t address) {
  uint64_t length = sysv_length(address);
  if (!length) return;
  hi_shared_add((struct hi_shared_map){address >> HI_PAGE_SHIFT, length >> HI_PAGE_SHIFT, DEV_SYSV, a[0] + 1, 0});
  hi_bump_generation();
  uint64_t e[] = {address, length, PROT_READ | PROT_WRITE, MAP_SHARED, DEV_SYSV, a[0] + 1};
  hi_emit(t, HI_EV_MAP, HI_MAP_SYSV, e, 6, NULL);
  alloc_shared(dc, address, length);
}

/* The pages keep their ids, and so their counts, at the new address. */
static void remapped(void *dc, struct hi_local *t, const uint64_t *a, uint64_t address) {
  uint64_t from = a[0] >> HI_PAGE_SHIFT, to = address >> HI_PAGE_SHIFT;
  uint64_t old_pages = (a[1] + HI_PAGE_BYTES - 1) >> HI_PAGE_SHIFT,
           new_pages = (a[2] + HI_PAGE_BYTES - 1) >> HI_PAGE_SHIFT;
  struct hi_shared_map map;
  bool shared = hi_shared_find(from, &map);
  uint64_t keep = old_pages < new_pages ? old_pages : new_pages;
  if (from != to) {
    hi_unmap_pages(t, address, new_pages << HI_PAGE_SHIFT); /* what was mapped there */
    hi_move_pages(t, from, to, keep);
  }
  if (shared) hi_shared_remove(from, old_pages);
  if (shared) hi_shared_add((struct hi_shared_map){to, new_pages, map.dev, map.ino, map.first + (from - map.page)});
  if (old_pages > new_pages)
    hi_unmap_pages(t, (to + new_pages) << HI_PAGE_SHIFT, (old_pages - new_pages) << HI_PAGE_SHIFT);
  hi_bump_generation();
  uint64_t e[] = {a[0], old_pages << HI_PAGE_SHIFT, address, new_pages << HI_PAGE_SHIFT};
  hi_emit(t, HI_EV_REMAP, 0, e, 4, NULL);
  alloc_remapped(dc, e[0], e[1], e[2], e[3]);
}

static void broke(struct hi_local *t, uint64_t end) {
  if (!initial_break) initial_break = end;
  hi_bump_generation();
  uint64_t e[] = {initial_break, end};
  hi_emit(t, HI_EV_BRK, 0, e, 2, NULL);
}

static void after_syscall(void *dc, int number) {
  struct hi_local *t = host_local(dc);
  const uint64_t *a = drmgr_get_tls_field(dc, args_slot);
  int64_t result = (int64_t)dr_syscall_get_result(dc);
  if (number == SYS_brk) {
    broke(t, (uint64_t)result);
    return;
  }
  if (number == SYS_execve || number == SYS_execveat) {
    exec_after(dc, number);
    hi_threads_reopen(leaving(t));
  }
  bool creates = number == SYS_fork || number == SYS_vfork || number == SYS_clone || number == SYS_clone3;
  bool failed = result < 0 && result >= -MAX_ERRNO;
  if (failed && creates) give_back_child(t, a);
  if (failed) return;
  char name[16];
  switch (number) {
  case SYS_mmap: mapped(dc, t, a, (uint64_t)result); break;
  case SYS_fork:
  case SYS_vfork:
  case SYS_clone:
  case SYS_clone3: t->child_index = 0; break;
  case SYS_mremap: remapped(dc, t, a, (uint64_t)result); break;
  case SYS_shmat: attached(dc, t, a, (uint64_t)result); break;
  case SYS_arch_prctl:
    if (a[0] == ARCH_SET_FS) thread_locals_begin(t, a[1]);
    break;
  case SYS_prctl:
    if (a[0] == PR_SET_NAME && prctl(PR_GET_NAME, name) == 0) hi_thread_name(t, name);
    break;
  default: break;
  }
}

static void on_thread_init(void *dc) {
  drmgr_set_tls_field(dc, args_slot, dr_thread_alloc(dc, KEPT * sizeof(uint64_t)));
}

static void on_thread_exit(void *dc) {
  dr_thread_free(dc, drmgr_get_tls_field(dc, args_slot), KEPT * sizeof(uint64_t));
}

void regions_init(void) {
  pending_lock = dr_mutex_create();
  args_slot = drmgr_register_tls_field();
  dr_register_filter_syscall_event(wanted);
  drmgr_register_pre_syscall_event(before_syscall);
  drmgr_register_post_syscall_event(after_syscall);
  drmgr_register_thread_init_event(on_thread_init);
  drmgr_register_thread_exit_event(on_thread_exit);
}
