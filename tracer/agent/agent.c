/* agent.c: a thread that hither puts into a running program. On order it takes pages of the
 * program's private memory away, and puts each back when somebody touches it: so a page
 * fault tells who that is.
 *
 * It shares memory with the program and nothing else: no descriptors, no working directory,
 * no signals. When hither ends, however it ends, its pipe hangs up: then all pages go back
 * and the thread leaves.
 *
 * Where it lends it does nothing of that: it makes the userfaultfd, which can be made from
 * inside only, and leaves when hither has it. */
#include "agent.h"

_Static_assert(HI_AGENT_FEATURES == (FEATURE_MOVE | UFFD_FEATURE_EVENT_FORK | UFFD_FEATURE_EVENT_REMAP |
                                     UFFD_FEATURE_EVENT_REMOVE | UFFD_FEATURE_EVENT_UNMAP),
               "features");

enum { POLLIN = 1, POLLHUP = 16 };
#define PATIENCE 2000000000ull /* for hither's first order */
#define TICK 50000000ull       /* between two looks at what is away */
#define SOON 200000ull         /* until the kernel lets us, perhaps */

/* The creator calls clone here and never comes back from it; the thread that it makes has an
 * empty stack and goes on. Its memory begins at the next whole page behind the code. */
__asm__(".section .text.entry,\"ax\"\n"
        "syscall\n"
        "xor %ebp, %ebp\n"
        "and $-16, %rsp\n"
        "lea agent_memory(%rip), %rdi\n"
        "call agent_main\n"
        "hlt\n"
        ".text\n");

static void end(struct agent *a) {
  /* The stack goes too, hence nothing but registers. */
  register u64 memory __asm__("rdi") = a->memory;
  register u64 length __asm__("rsi") = a->length;
  __asm__ volatile("syscall\n"
                   "mov $60, %%eax\n"
                   "xor %%edi, %%edi\n"
                   "syscall\n"
                   "hlt"
                   :
                   : "a"(__NR_munmap), "r"(memory), "r"(length)
                   : "rcx", "r11", "memory");
  __builtin_unreachable();
}

static void fail(struct agent *a, long error) {
  a->begin.error = (int32_t)-error;
  call3(__NR_exit, 0, 0, 0);
}

static long step(struct agent *a, u32 step, long result) {
  if (result < 0) {
    a->begin.step = step;
    fail(a, result);
  }
  return result;
}

static int lends(const struct agent *a) { return a->begin.purpose == HI_AGENT_LENDS; }

/* The device, by which a userfaultfd can be had by who may not ask the kernel for one: hither
 * sends it, opened. The socket that hither sends it by takes the userfaultfd's number. */
static int ask_for_device(struct agent *a) {
  int pair[2];
  step(a, 4, call6(__NR_socketpair, 1 /* AF_UNIX */, 1 | 02000000 /* SOCK_STREAM, CLOEXEC */, 0, (u64)pair, 0, 0));
  __atomic_store_n(&a->begin.asks, HI_AGENT_ASKS_DEVICE, __ATOMIC_RELEASE);
  const struct timespec64 patience = {1, 0};
  step(a, 4, call6(__NR_setsockopt, (u64)pair[1], 1 /* SOL_SOCKET */, 20 /* SO_RCVTIMEO */, (u64)&patience, 16, 0));
  char byte;
  struct part part = {&byte, 1};
  struct control control = {.descriptor = -1};
  struct parcel parcel = {.parts = &part, .part_count = 1, .control = &control, .control_length = sizeof control};
  step(a, 4, call3(__NR_recvmsg, (u64)pair[1], (u64)&parcel, 0x40000000 /* MSG_CMSG_CLOEXEC */));
  call3(__NR_close, (u64)pair[0], 0, 0);
  call3(__NR_close, (u64)pair[1], 0, 0);
  if (parcel.control_length < 20) step(a, 4, -EPERM);
  return control.descriptor;
}

static long userfaultfd(struct agent *a, u64 flags) {
  /* Anybody may have one that only protects. */
  const u64 mode = lends(a) ? USER_FAULTS_ONLY : 0;
  long got = call3(__NR_userfaultfd, flags | mode, 0, 0);
  if (got != -EPERM || lends(a)) return got;
  int device = ask_for_device(a);
  got = call3(__NR_ioctl, (u64)device, IOCTL_NEW, flags);
  call3(__NR_close, (u64)device, 0, 0);
  return got;
}

/* From here on the thread has descriptors of its own; the program's were never copied. */
static void own_descriptors(struct agent *a) {
  step(a, 1, call3(__NR_close_range, 0, ~0u, 2 /* CLOSE_RANGE_UNSHARE */));
  int pipe[2];
  const u64 flags = 02000000 | 04000; /* O_CLOEXEC | O_NONBLOCK */
  step(a, 2, call3(__NR_pipe2, (u64)pipe, flags, 0));
  a->orders = pipe[0];
  step(a, 3, call3(__NR_pipe2, (u64)pipe, flags, 0));
  a->reports = pipe[1];
  a->faults = (int)step(a, 4, userfaultfd(a, flags));
  a->mappings = (int)call3(__NR_open, (u64) "/proc/self/maps", 02000000, 0);
}

static void enable(struct agent *a, u64 features) {
  struct uffdio_api api = {.api = UFFD_API, .features = features};
  long got = call3(__NR_ioctl, (u64)a->faults, UFFDIO_API, (u64)&api);
  if (got != -EPERM || lends(a)) {
    step(a, 5, got);
    return;
  }
  /* To be told of children takes rights. */
  a->begin.step = 5;
  __atomic_store_n(&a->begin.asks, HI_AGENT_ASKS_FEATURES, __ATOMIC_RELEASE);
  const u64 began = clock_ns(MONOTONIC);
  while (__atomic_load_n(&a->begin.granted, __ATOMIC_ACQUIRE) != HI_AGENT_ASKS_FEATURES) {
    if (clock_ns(MONOTONIC) - began > PATIENCE) step(a, 5, got);
    struct timespec64 soon = {0, (int64_t)SOON};
    call6(__NR_ppoll, 0, 0, (u64)&soon, 0, 8, 0);
  }
}

static void own_stash(struct agent *a) {
  const u64 length = (u64)HI_AGENT_OUT * PAGE;
  a->stash =
      (u64)step(a, 6, call6(__NR_mmap, 0, length, 3 /* read, write */, 0x4022 /* private, no reserve */, ~0ull, 0));
  step(a, 7, call3(__NR_madvise, a->stash, length, 10 /* MADV_DONTFORK */));
  /* Not where huge pages are unknown. */
  call3(__NR_madvise, a->stash, length, 15 /* MADV_NOHUGEPAGE */);
  step(a, 8, regions_register(a, a->stash, length));
}

static void begin(struct agent *a) {
  a->begin.tid = (u32)call3(__NR_gettid, 0, 0, 0);
  own_descriptors(a);
  if (lends(a)) {
    enable(a, FEATURE_PROTECT_ASYNC | FEATURE_PROTECT_SHARED | UFFD_FEATURE_PAGEFAULT_FLAG_WP);
  } else {
    enable(a, HI_AGENT_FEATURES);
    own_stash(a);
  }
  char name[16] = {'h', 'i', 't', 'h', 'e', 'r', '-', 'a', 'g', 'e', 'n', 't', 0};
  call3(__NR_prctl, 15 /* PR_SET_NAME */, (u64)name, 0);
  a->now = clock_ns(MONOTONIC);
  orders_tell(a, HI_REPORT_HELLO, 0, HI_AGENT_MAGIC, HI_AGENT_VERSION);
  __atomic_store_n(&a->begin.ready, 1, __ATOMIC_RELEASE);
}

/* Until when there is nothing to do if nothing comes. */
static u64 pause(const struct agent *a, int more) {
  if (more || a->obeyed != a->given) return 0;
  if (a->waiting || a->due) return SOON;
  if (a->away || a->leaving || !a->going || a->regions) return TICK;
  return ~0ull;
}

/* Waits. Bit 0: the program did something; bit 1: hither did. */
static u32 wait(struct agent *a, u64 pause) {
  struct {
    int fd;
    short events, got;
  } at[2] = {{a->faults, POLLIN, 0}, {a->leaving ? -1 : a->orders, POLLIN, 0}};
  struct timespec64 time = {(int64_t)(pause / 1000000000u), (int64_t)(pause % 1000000000u)};
  call6(__NR_ppoll, (u64)at, 2, pause == ~0ull ? 0 : (u64)&time, 0, 8, 0);
  return (at[0].got ? 1 : 0) | (at[1].got ? 2 : 0);
}

static void look(struct agent *a) {
  a->now = clock_ns(MONOTONIC);
  if (a->now - a->looked < TICK) return;
  a->looked = a->now;
  pages_look(a);
  regions_look(a);
  if (a->now - a->told > 2 * TICK && a->regions) orders_tell(a, HI_REPORT_COUNTS, 0, 0, 0);
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
    more = more || ready & 1 ? events_take_in(a) : 0;
    if (a->waiting || a->due) events_retry(a);
    look(a);
    if (!a->leaving && (ready & 2 || a->obeyed != a->given)) orders_obey(a);
    if (!a->going && a->now - began > PATIENCE) a->leaving = 1;
    if (!a->leaving) continue;
    a->obeyed = a->given = 0;
    regions_close(a, 0, ~0ull, HI_CLOSED_ORDERED);
    pages_mark_due(a, 0, ~0ull);
    events_retry(a);
    a->looked = 0;
    if (!a->away && !a->waiting && !a->regions && !more) break;
  }
  leave(a);
  __builtin_unreachable();
}
