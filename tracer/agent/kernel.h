/* kernel.h: system calls and kernel structures without a C library. Neither this file nor the
 * files that include it may need relocation, a stack protector or thread-local storage: the
 * thread-local storage is that of the agent's creator. */
#ifndef HITHER_AGENT_KERNEL_H
#define HITHER_AGENT_KERNEL_H
#include <stdint.h>
#include <stddef.h>
#include <asm/poll.h>
#include <asm/unistd.h>
#include <linux/close_range.h>
#include <linux/errno.h>
#include <linux/fcntl.h>
#include <linux/fs.h>
#include <linux/ioctl.h>
#include <linux/mman.h>
#include <linux/prctl.h>
#include <linux/time.h>
#include <linux/time_types.h>
#include <linux/userfaultfd.h>
#include "orders.h"

typedef uint64_t u64;
typedef uint32_t u32;

enum { PAGE = 4096 };

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

static inline u64 clock_ns(int which) {
  struct __kernel_timespec t = {0, 0};
  call3(__NR_clock_gettime, (u64)which, (u64)&t, 0);
  return (u64)t.tv_sec * 1000000000u + (u64)t.tv_nsec;
}

/* --- what older headers lack, under the kernel's names */

#ifndef UFFDIO_MOVE /* Linux 6.8 */
struct uffdio_move {
  u64 dst, src, len, mode;
  int64_t move;
};
#define UFFDIO_MOVE _IOWR(UFFDIO, 0x05, struct uffdio_move)
#define UFFD_FEATURE_MOVE (1u << 16)
#endif
#ifndef UFFD_FEATURE_WP_ASYNC /* Linux 6.7: the kernel itself lifts write protection at a write */
#define UFFD_FEATURE_WP_ASYNC (1u << 15)
#endif
#ifndef UFFD_FEATURE_WP_HUGETLBFS_SHMEM /* Linux 5.19 */
#define UFFD_FEATURE_WP_HUGETLBFS_SHMEM (1u << 12)
#endif
#ifndef UFFD_USER_MODE_ONLY /* Linux 5.11 */
#define UFFD_USER_MODE_ONLY 1
#endif
#ifndef PROCMAP_QUERY /* Linux 6.11: asks /proc/self/maps for one mapping */
struct procmap_query {
  u64 size, query_flags, query_addr;
  u64 vma_start, vma_end;
  u64 rest[8];
};
_Static_assert(sizeof(struct procmap_query) == 104, "layout");
#define PROCMAP_QUERY _IOWR('f', 17, struct procmap_query)
#endif

/* --- what no header that can be included here has, under the kernel's names */

enum { SIGSET_BYTES = 8 }; /* sizeof(sigset_t) in the kernel */

#endif
