/* kernel_writes.c: system calls that write to memory in which the program also has code.
 *
 * DynamoRIO takes the right to write from pages whose code it has copied, so that it notices when the
 * program changes it. The kernel is not stopped there but fails: a `read` into such a page ends with EFAULT,
 * or before it with what has been read by then. Systems that keep code and data in one heap (Scheme, Lisp)
 * meet that at once. What was copied is given up, and the call is made again for the rest. */
#include "host.h"
#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The arguments of a call that say where it writes and how much at most. */
struct written {
  int number, buffer, length;
  int offset;   /* in the file, which goes on with the rest; 0 if it has none */
  bool goes_on; /* a second call gives the rest, where the file is no pipe or terminal, which could wait */
};

static const struct written calls[] = {
    {SYS_read, 1, 2, 0, true},        {SYS_pread64, 1, 2, 3, true},    {SYS_recvfrom, 1, 2, 0, false},
    {SYS_getdents64, 1, 2, 0, false}, {SYS_getrandom, 0, 1, 0, false}, {SYS_readlink, 1, 2, 0, false},
    {SYS_readlinkat, 2, 3, 0, false}, {SYS_getcwd, 0, 1, 0, false},
};

#define CALLS (sizeof calls / sizeof *calls)

static bool code_is_writable; /* whether there may be such memory at all: asking for a page takes long */
static int slot;              /* what a call that was made again had written before */

static const struct written *written_by(int number) {
  for (unsigned i = 0; i < CALLS; i++)
    if (calls[i].number == number) return &calls[i];
  return NULL;
}

static bool makes_memory(int number) {
  return number == SYS_mmap || number == SYS_mprotect || number == SYS_pkey_mprotect;
}

static bool wanted(void *dc, int number) {
  (void)dc;
  return makes_memory(number) || written_by(number);
}

/* Gives up the code of the pages from `at` on that DynamoRIO made read-only; false if there is none at `at`. */
static bool make_writable(uint64_t at, uint64_t bytes) {
  uint64_t page = at & ~(HI_PAGE_BYTES - 1), end = page;
  dr_mem_info_t info;
  while (end < at + bytes && dr_query_memory_ex((const byte *)end, &info) && info.prot & DR_MEMPROT_PRETEND_WRITE)
    end += HI_PAGE_BYTES;
  if (end == page) return false;
  /* To data, and back: code is looked for there when it executes again. */
  return dr_memory_protect((void *)page, end - page, DR_MEMPROT_READ | DR_MEMPROT_WRITE) &&
         dr_memory_protect((void *)page, end - page, DR_MEMPROT_READ | DR_MEMPROT_WRITE | DR_MEMPROT_EXEC);
}

static bool has_rest(void *dc, const struct written *call) {
  struct stat file;
  return call->goes_on && syscall(SYS_fstat, dr_syscall_get_param(dc, 0), &file) == 0 && S_ISREG(file.st_mode);
}

/* The call again, for what is left behind `got` bytes. */
static void go_on(void *dc, const struct written *call, uint64_t got) {
  drmgr_set_tls_field(dc, slot, (uint8_t *)drmgr_get_tls_field(dc, slot) + got);
  dr_syscall_set_param(dc, call->buffer, dr_syscall_get_param(dc, call->buffer) + got);
  dr_syscall_set_param(dc, call->length, dr_syscall_get_param(dc, call->length) - got);
  if (call->offset) dr_syscall_set_param(dc, call->offset, dr_syscall_get_param(dc, call->offset) + got);
  dr_syscall_set_sysnum(dc, call->number);
  dr_syscall_invoke_another(dc);
}

/* As one call: its arguments, and what it wrote in all. */
static void join(void *dc, const struct written *call, uint64_t before, int64_t got) {
  drmgr_set_tls_field(dc, slot, NULL);
  dr_syscall_set_param(dc, call->buffer, dr_syscall_get_param(dc, call->buffer) - before);
  dr_syscall_set_param(dc, call->length, dr_syscall_get_param(dc, call->length) + before);
  if (call->offset) dr_syscall_set_param(dc, call->offset, dr_syscall_get_param(dc, call->offset) - before);
  dr_syscall_set_result(dc, (reg_t)(got < 0 ? 0 : got) + before);
}

static void after_syscall(void *dc, int number) {
  const struct written *call = written_by(number);
  if (makes_memory(number)) {
    const uint64_t both = PROT_WRITE | PROT_EXEC;
    if ((dr_syscall_get_param(dc, 2) & both) == both) code_is_writable = true;
  }
  if (!call || !code_is_writable) return;
  int64_t got = (int64_t)dr_syscall_get_result(dc);
  uint64_t done = got > 0 ? (uint64_t)got : 0, at = dr_syscall_get_param(dc, call->buffer) + done;
  uint64_t length = dr_syscall_get_param(dc, call->length), before = (uint64_t)drmgr_get_tls_field(dc, slot);
  bool stuck = got == -EFAULT || (done && done < length && !(at & (HI_PAGE_BYTES - 1)) && has_rest(dc, call));
  if (stuck && make_writable(at, length - done)) go_on(dc, call, done);
  else if (before) join(dc, call, before, got);
}

void kernel_writes_init(void) {
  slot = drmgr_register_tls_field();
  dr_register_filter_syscall_event(wanted);
  drmgr_register_post_syscall_event(after_syscall);
}
