/* kernel.h: system calls without a library, and the memory that the agent works in. Nothing
 * here or in its users may need relocation, a stack protector or thread-local storage: the
 * thread has its creator's. */
#ifndef HITHER_AGENT_KERNEL_H
#define HITHER_AGENT_KERNEL_H
#include <stdint.h>
#include <stddef.h>
#include <asm/unistd.h>
#include <linux/errno.h>
#include <linux/ioctl.h>
#include <linux/userfaultfd.h>
#include "orders.h"

typedef uint64_t u64;
typedef uint32_t u32;

enum { PAGE = 4096 };
#define HUGE (2ull << 20)

static inline long call6(long n, u64 a, u64 b, u64 c, u64 d, u64 e, u64 f) {
  long result;
  register u64 r10 __asm__("r10") = d;
  register u64 r8 __asm__("r8") = e;
  register u64 r9 __asm__("r9") = f;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}
static inline long call3(long n, u64 a, u64 b, u64 c) { return call6(n, a, b, c, 0, 0, 0); }

struct timespec64 {
  int64_t s, ns;
};
enum { MONOTONIC = 1, THREAD_TIME = 3 };
static inline u64 clock_ns(int which) {
  struct timespec64 t = {0, 0};
  call3(__NR_clock_gettime, (u64)which, (u64)&t, 0);
  return (u64)t.s * 1000000000u + (u64)t.ns;
}

/* Linux 6.8; not in older headers. */
struct move {
  u64 to, from, length, mode;
  int64_t moved;
};
#define IOCTL_MOVE _IOWR(UFFDIO, 0x05, struct move)
#define FEATURE_MOVE (1u << 16)
/* Linux 6.7: the kernel lifts write protection itself, and nobody waits. */
#define FEATURE_PROTECT_ASYNC (1u << 15)
/* Shared memory can be protected too. */
#define FEATURE_PROTECT_SHARED (1u << 12)
#define USER_FAULTS_ONLY 1u

/* Linux 6.1; not in older headers. */
#define IOCTL_NEW _IO(UFFDIO, 0x00)

/* Linux 6.11; not in older headers: one mapping of /proc/self/maps. */
struct mapping_query {
  u64 size, flags, address;
  u64 start, end;
  u64 rest[8];
};
_Static_assert(sizeof(struct mapping_query) == 104, "layout");
#define IOCTL_MAPPING _IOWR('f', 17, struct mapping_query)

/* What recvmsg takes, with room for one descriptor. */
struct part {
  void *at;
  u64 length;
};
struct control {
  u64 length;
  int level, type, descriptor, pad;
};
struct parcel {
  void *name;
  u32 name_length;
  struct part *parts;
  u64 part_count;
  struct control *control;
  u64 control_length;
  int flags;
};

#endif
