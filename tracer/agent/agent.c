/* agent.c: a thread that hither puts into a running program. On order it moves pages of the
 * program's private memory away, and moves each back when a thread of the program touches it:
 * the page fault shows which thread that is.
 *
 * The agent shares memory with the program and nothing else: no descriptors, no working
 * directory, no signals. When hither ends, for whatever reason, its end of the pipe is closed:
 * the agent then puts all pages back and exits.
 *
 * With the purpose HI_AGENT_LENDS the agent only creates the userfaultfd, which must be done by
 * a thread of the program, and exits when hither has a copy of it. */
#include "agent.h"

_Static_assert(HI_AGENT_FEATURES == (UFFD_FEATURE_MOVE | UFFD_FEATURE_EVENT_FORK | UFFD_FEATURE_EVENT_REMAP |
                                     UFFD_FEATURE_EVENT_REMOVE | UFFD_FEATURE_EVENT_UNMAP),
               "features");

/* struct hi_agent_begin.step */
enum {
  STEP_DESCRIPTORS = 1,
  STEP_ORDERS,
  STEP_REPORTS,
  STEP_USERFAULTFD,
  STEP_FEATURES,
  STEP_STASH,
  STEP_STASH_FORK,
  STEP_STASH_REGISTER,
};
/* What wait() returns. */
enum { PROGRAM_READY = 1, HITHER_READY = 2 };
#define PATIENCE 2000000000ull /* for hither's first order */
#define TICK 50000000ull       /* between two checks of pages and regions */
#define SOON 200000ull         /* before the next try of what the kernel refused with EAGAIN */

/* hither makes a thread of the program call clone here, and takes that thread back when the call
 * returns. The new thread, the agent, has an empty stack and continues. Its memory begins at the
 * next page boundary after the code. */
__asm__(".section .text.entry,\"ax\"\n"
        "syscall\n"
        "xor %ebp, %ebp\n"
        "and $-16, %rsp\n"
        "lea agent_memory(%rip), %rdi\n"
        "call agent_main\n"
        "hlt\n"
        ".text\n");

static void end(struct agent *a) {
  /* Unmaps the stack too, so only registers are used from here on. */
  register u64 memory __asm__("rdi") = a->memory;
  register u64 length __asm__("rsi") = a->length;
  __asm__ volatile("syscall\n"
                   "mov %[exit], %%eax\n"
                   "xor %%edi, %%edi\n"
                   "syscall\n"
                   "hlt"
                   :
                   : "a"(__NR_munmap), "r"(memory), "r"(length), [exit] "i"(__NR_exit)
                   : "rcx", "r11", "memory");
  __builtin_unreachable();
}

static void fail(struct agent *a, long error) {
  a->begin.error = (int32_t)-error;
  call3(__NR_exit, 0, 0, 0);
}

/* Ends the agent if the result is an error. */
static long step(struct agent *a, u32 step, long result) {
  if (result < 0) {
    a->begin.step = step;
    fail(a, result);
  }
  return result;
}

static int lends(const struct agent *a) { return a->begin.purpose == HI_AGENT_LENDS; }

/* With the rights of the program, to which it belongs as much as to us: hither lends it none. One that
 * handles only faults in user mode needs no privilege. */
static long userfaultfd(struct agent *a, u64 flags) {
  return call3(__NR_userfaultfd, flags | (lends(a) ? UFFD_USER_MODE_ONLY : 0), 0, 0);
}

/* Gives the agent a descriptor table of its own, without the program's descriptors. */
static void own_descriptors(struct agent *a) {
  step(a, STEP_DESCRIPTORS, call3(__NR_close_range, 0, ~0u, CLOSE_RANGE_UNSHARE));
  int pipe[2];
  const u64 flags = O_CLOEXEC | O_NONBLOCK;
  step(a, STEP_ORDERS, call3(__NR_pipe2, (u64)pipe, flags, 0));
  a->orders = pipe[0];
  step(a, STEP_REPORTS, call3(__NR_pipe2, (u64)pipe, flags, 0));
  a->reports = pipe[1];
  a->faults = (int)step(a, STEP_USERFAULTFD, userfaultfd(a, flags));
  a->mappings = (int)call3(__NR_open, (u64) "/proc/self/maps", O_RDONLY | O_CLOEXEC, 0);
}

static void enable(struct agent *a, u64 features) {
  struct uffdio_api api = {.api = UFFD_API, .features = features};
  step(a, STEP_FEATURES, call3(__NR_ioctl, (u64)a->faults, UFFDIO_API, (u64)&api));
}

static void own_stash(struct agent *a) {
  const u64 length = (u64)HI_AGENT_OUT * PAGE;
  const u64 flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  a->stash = (u64)step(a, STEP_STASH, call6(__NR_mmap, 0, length, PROT_READ | PROT_WRITE, flags, ~0ull, 0));
  step(a, STEP_STASH_FORK, call3(__NR_madvise, a->stash, length, MADV_DONTFORK));
  /* Fails on kernels without transparent huge pages. */
  call3(__NR_madvise, a->stash, length, MADV_NOHUGEPAGE);
  step(a, STEP_STASH_REGISTER, regions_register(a, a->stash, length));
}

static void begin(struct agent *a) {
  a->begin.tid = (u32)call3(__NR_gettid, 0, 0, 0);
  own_descriptors(a);
  if (lends(a)) {
    enable(a, UFFD_FEATURE_WP_ASYNC | UFFD_FEATURE_WP_HUGETLBFS_SHMEM | UFFD_FEATURE_PAGEFAULT_FLAG_WP);
  } else {
    enable(a, HI_AGENT_FEATURES);
    own_stash(a);
  }
  char name[16] = {'h', 'i', 't', 'h', 'e', 'r', '-', 'a', 'g', 'e', 'n', 't', 0};
  call3(__NR_prctl, PR_SET_NAME, (u64)name, 0);
  a->now = clock_ns(CLOCK_MONOTONIC);
  orders_report(a, HI_REPORT_HELLO, 0, HI_AGENT_MAGIC, HI_AGENT_VERSION);
  __atomic_store_n(&a->begin.ready, 1, __ATOMIC_RELEASE);
}

/* The longest time to wait for events and orders. */
static u64 pause(const struct agent *a, int more) {
  if (more || a->obeyed != a->given) return 0;
  if (a->waiting || a->due) return SOON;
  if (a->away || a->leaving || !a->going || a->regions) return TICK;
  return ~0ull;
}

/* Waits for messages from the kernel (PROGRAM_READY) or orders (HITHER_READY). */
static u32 wait(struct agent *a, u64 pause) {
  struct pollfd at[] = {{a->faults, POLLIN, 0}, {a->leaving ? -1 : a->orders, POLLIN, 0}};
  struct __kernel_timespec time = {(int64_t)(pause / 1000000000u), (int64_t)(pause % 1000000000u)};
  call6(__NR_ppoll, (u64)at, 2, pause == ~0ull ? 0 : (u64)&time, 0, SIGSET_BYTES, 0);
  return (at[0].revents ? PROGRAM_READY : 0) | (at[1].revents ? HITHER_READY : 0);
}

/* The periodic checks. */
static void check(struct agent *a) {
  a->now = clock_ns(CLOCK_MONOTONIC);
  if (a->now - a->last_check < TICK) return;
  a->last_check = a->now;
  pages_check(a);
  regions_check(a);
  if (a->now - a->last_report > 2 * TICK && a->regions) orders_report(a, HI_REPORT_COUNTS, 0, 0, 0);
}

static void leave(struct agent *a) {
  const u64 length = (u64)HI_AGENT_OUT * PAGE;
  if (a->stash) {
    regions_unregister(a, a->stash, length);
    call3(__NR_munmap, a->stash, length, 0);
  }
  call3(__NR_close_range, 0, ~0u, 0);
  end(a);
}

__attribute__((used, noreturn)) void agent_main(struct agent *a) {
  a->memory = (u64)a;
  a->length = HI_AGENT_DATA + HI_AGENT_STACK;
  begin(a);
  const u64 began = a->now;
  for (int more = 0;;) {
    u32 ready = wait(a, pause(a, more));
    more = more || ready & PROGRAM_READY ? events_read(a) : 0;
    if (a->waiting || a->due) events_retry(a);
    check(a);
    if (!a->leaving && (ready & HITHER_READY || a->obeyed != a->given)) orders_obey(a);
    if (!a->going && a->now - began > PATIENCE) a->leaving = 1;
    if (!a->leaving) continue;
    a->obeyed = a->given = 0;
    regions_close(a, 0, ~0ull, HI_CLOSED_ORDERED);
    pages_mark_due(a, 0, ~0ull);
    events_retry(a);
    a->last_check = 0;
    if (!a->away && !a->waiting && !a->regions && !more) break;
  }
  leave(a);
  __builtin_unreachable();
}
