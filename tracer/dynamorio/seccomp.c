/* seccomp.c: the program's seccomp filters, applied to its own system calls only.
 *
 * In the kernel a filter would also apply to the calls that DynamoRIO and this client make for
 * themselves, and a program that allows itself little would end at the first of them. So
 * filters are kept here, and decide before each system call of the program. An exec puts them
 * into the kernel, where they outlast it; so does a filter that another process is to answer. */
#include "host.h"
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* A filter and those installed before it; never changed or freed, as threads share them. */
struct filter {
  const struct filter *before;
  uint16_t length;
  struct sock_filter code[];
};

struct thread {
  const struct filter *filters; /* the latest; inherited from the creator */
  bool strict;                  /* SECCOMP_MODE_STRICT */
  bool refused;                 /* the system call in progress is skipped */
  siginfo_t info;               /* that it is replaced by sending; si_signo 0: none */
  uint64_t replaced[4];         /* its arguments then */
  struct thread *next;
};

static int slot;
static int process;
static struct thread inherited;
static struct thread *threads; /* all of this process */
static void *lock;

/* All, as code is built before there is a filter. They cost no more for it: DynamoRIO leaves its
 * code cache for every system call here. */
static bool wanted(void *dc, int number) {
  (void)dc;
  (void)number;
  return true;
}

/* ---- classic BPF */

static uint32_t alu(uint16_t operation, uint32_t a, uint32_t b) {
  switch (operation) {
  case BPF_ADD: return a + b;
  case BPF_SUB: return a - b;
  case BPF_MUL: return a * b;
  case BPF_DIV: return b ? a / b : 0;
  case BPF_AND: return a & b;
  case BPF_OR: return a | b;
  case BPF_XOR: return a ^ b;
  case BPF_LSH: return b < 32 ? a << b : 0;
  case BPF_RSH: return b < 32 ? a >> b : 0;
  default: return -a;
  }
}

static bool jumps(uint16_t condition, uint32_t a, uint32_t b) {
  switch (condition) {
  case BPF_JEQ: return a == b;
  case BPF_JGT: return a > b;
  case BPF_JGE: return a >= b;
  default: return (a & b) != 0;
  }
}

/* The value that the filter returns for a call. The kernel has checked that it is well formed. */
static uint32_t evaluate(const struct filter *f, const struct seccomp_data *call) {
  uint32_t a = 0, x = 0, memory[BPF_MEMWORDS] = {0};
  for (uint32_t at = 0; at < f->length; at++) {
    const struct sock_filter *i = &f->code[at];
    uint16_t code = i->code;
    uint32_t operand = BPF_SRC(code) == BPF_X ? x : i->k;
    switch (BPF_CLASS(code)) {
    case BPF_LD:
    case BPF_LDX: {
      uint32_t value = i->k;
      if (BPF_MODE(code) == BPF_ABS && i->k <= sizeof *call - sizeof value)
        memcpy(&value, (const char *)call + i->k, sizeof value);
      else if (BPF_MODE(code) == BPF_LEN) value = sizeof *call;
      else if (BPF_MODE(code) == BPF_MEM) value = memory[i->k % BPF_MEMWORDS];
      *(BPF_CLASS(code) == BPF_LD ? &a : &x) = value;
      break;
    }
    case BPF_ST: memory[i->k % BPF_MEMWORDS] = a; break;
    case BPF_STX: memory[i->k % BPF_MEMWORDS] = x; break;
    case BPF_ALU: a = alu(BPF_OP(code), a, operand); break;
    case BPF_JMP:
      if (BPF_OP(code) == BPF_JA) at += i->k;
      else at += jumps(BPF_OP(code), a, operand) ? i->jt : i->jf;
      break;
    case BPF_RET: return BPF_RVAL(code) == BPF_A ? a : i->k;
    default:
      if (BPF_MISCOP(code) == BPF_TAX) x = a;
      else a = x;
    }
  }
  return SECCOMP_RET_KILL_PROCESS;
}

/* What the filters say together: the lowest action, as a signed number, of the latest that has it. */
static uint32_t verdict(const struct thread *t, const struct seccomp_data *call) {
  uint32_t lowest = SECCOMP_RET_ALLOW;
  for (const struct filter *f = t->filters; f; f = f->before) {
    uint32_t value = evaluate(f, call);
    if ((int32_t)(value & SECCOMP_RET_ACTION_FULL) < (int32_t)(lowest & SECCOMP_RET_ACTION_FULL)) lowest = value;
  }
  return lowest;
}

/* ---- what a verdict does */

static void end_by(int signal) {
  struct {
    void *handler;
    uint64_t flags;
    void *restorer;
    uint64_t mask;
  } standard = {0};
  uint64_t set = 1ull << (signal - 1);
  syscall(SYS_rt_sigaction, signal, &standard, NULL, sizeof set);
  syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &set, NULL, sizeof set);
  syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), signal);
}

#define TRAPPED 1 /* SYS_SECCOMP of <asm/siginfo.h>, which cannot be included with <signal.h> */

/* Makes the call one that sends the signal: DynamoRIO takes SIGSYS from nowhere else. */
static void trap(void *dc, struct thread *t, const struct seccomp_data *call, uint32_t data) {
  t->info = (siginfo_t){.si_signo = SIGSYS, .si_errno = (int)data, .si_code = TRAPPED};
  t->info.si_call_addr = (void *)call->instruction_pointer;
  t->info.si_syscall = call->nr;
  t->info.si_arch = call->arch;
  t->refused = true;
  uint64_t sending[] = {(uint64_t)getpid(), (uint64_t)syscall(SYS_gettid), SIGSYS, (uint64_t)&t->info};
  for (int i = 0; i < 4; i++) {
    t->replaced[i] = call->args[i];
    dr_syscall_set_param(dc, i, sending[i]);
  }
  dr_syscall_set_sysnum(dc, SYS_rt_tgsigqueueinfo);
}

/* The program's handler finds the registers of the call that was refused. */
static void after_syscall(void *dc, int number) {
  struct thread *t = drmgr_get_tls_field(dc, slot);
  dr_mcontext_t mc = {.size = sizeof mc, .flags = DR_MC_INTEGER};
  if (number != SYS_rt_tgsigqueueinfo || t->info.si_signo == 0 || !dr_get_mcontext(dc, &mc)) return;
  mc.xax = (reg_t)t->info.si_syscall;
  mc.xdi = t->replaced[0], mc.xsi = t->replaced[1], mc.xdx = t->replaced[2], mc.r10 = t->replaced[3];
  dr_set_mcontext(dc, &mc);
  t->info.si_signo = 0;
}

static bool refuse(void *dc, struct thread *t, int64_t result) {
  dr_syscall_set_result(dc, (reg_t)result);
  t->refused = true;
  return false;
}

static bool decide(void *dc, struct thread *t, int number) {
  if (t->strict) {
    if (number == SYS_read || number == SYS_write || number == SYS_exit || number == SYS_rt_sigreturn) return true;
    end_by(SIGKILL);
  }
  dr_mcontext_t mc = {.size = sizeof mc, .flags = DR_MC_CONTROL};
  dr_get_mcontext(dc, &mc);
  struct seccomp_data call = {number, AUDIT_ARCH_X86_64, (uint64_t)mc.pc, {0}};
  for (int i = 0; i < 6; i++) call.args[i] = dr_syscall_get_param(dc, i);
  uint32_t value = verdict(t, &call), data = value & SECCOMP_RET_DATA;
  switch (value & SECCOMP_RET_ACTION_FULL) {
  case SECCOMP_RET_ALLOW:
  case SECCOMP_RET_LOG: return true;
  case SECCOMP_RET_ERRNO: return refuse(dc, t, -(int64_t)(data > 4095 ? 4095 : data));
  case SECCOMP_RET_TRACE: /* there is no tracer: the calls that one would be asked about do not exist */
  case SECCOMP_RET_USER_NOTIF: return refuse(dc, t, -ENOSYS);
  case SECCOMP_RET_TRAP: trap(dc, t, &call, data); return true;
  default: end_by(SIGSYS); return refuse(dc, t, -ENOSYS);
  }
}

/* ---- installing */

/* The kernel's own answer to a filter: 0 or an error, from a process that ends at once. It may
 * end by the filter. */
static int64_t asked_kernel(uint64_t flags, const struct sock_fprog *program) {
  int64_t child = syscall(SYS_clone, 0, 0, 0, 0, 0);
  if (child == 0) {
    prctl(PR_SET_DUMPABLE, 0);
    int64_t error = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, program) < 0 ? errno : 0;
    syscall(SYS_exit_group, error);
  }
  int status = 0;
  if (child < 0 || syscall(SYS_wait4, child, &status, __WALL, 0) != child) return 0;
  return WIFEXITED(status) ? -WEXITSTATUS(status) : 0;
}

/* All threads' filters become those of t. */
static void set_all(const struct thread *t) {
  for (struct thread *other = threads; other; other = other->next) other->filters = t->filters;
}

static int64_t install(struct thread *t, uint64_t flags, const void *at) {
  struct sock_fprog program;
  size_t got;
  int64_t error = asked_kernel(flags & ~SECCOMP_FILTER_FLAG_TSYNC, at);
  if (error || !dr_safe_read(at, sizeof program, &program, &got)) return error ? error : -EFAULT;
  size_t size = program.len * sizeof *program.filter;
  struct filter *f = dr_global_alloc(sizeof *f + size);
  if (!dr_safe_read(program.filter, size, f->code, &got)) {
    dr_global_free(f, sizeof *f + size);
    return -EFAULT;
  }
  f->length = program.len;
  f->before = t->filters;
  dr_mutex_lock(lock);
  t->filters = f;
  if (flags & SECCOMP_FILTER_FLAG_TSYNC) set_all(t);
  dr_mutex_unlock(lock);
  return 0;
}

/* Whether the call concerns filters; then it has been done here. */
static bool is_about_filters(void *dc, struct thread *t, int number) {
  enum { NEITHER, STRICT, FILTER } mode = NEITHER;
  uint64_t first = dr_syscall_get_param(dc, 0), second = dr_syscall_get_param(dc, 1), flags = 0;
  if (number == SYS_prctl && first == PR_GET_SECCOMP && t->filters) {
    refuse(dc, t, SECCOMP_MODE_FILTER);
    return true;
  }
  if (number == SYS_prctl && first == PR_SET_SECCOMP) {
    if (second == SECCOMP_MODE_STRICT) mode = STRICT;
    else if (second == SECCOMP_MODE_FILTER) mode = FILTER;
  } else if (number == SYS_seccomp && first == SECCOMP_SET_MODE_STRICT && second == 0) mode = STRICT;
  else if (number == SYS_seccomp && first == SECCOMP_SET_MODE_FILTER) mode = FILTER, flags = second;
  if (mode == NEITHER || (flags & SECCOMP_FILTER_FLAG_NEW_LISTENER)) return false;
  int64_t result = 0;
  if (mode == FILTER) result = install(t, flags, (const void *)dr_syscall_get_param(dc, 2));
  else if (t->filters) result = -EINVAL;
  else t->strict = true;
  refuse(dc, t, result);
  return true;
}

/* Those before it first, as they were installed. */
static void put_into_kernel(const struct filter *f) {
  if (!f) return;
  put_into_kernel(f->before);
  struct sock_fprog program = {f->length, (struct sock_filter *)f->code};
  syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}

static bool before_syscall(void *dc, int number) {
  struct thread *t = drmgr_get_tls_field(dc, slot);
  t->refused = false;
  if ((t->filters || t->strict) && !decide(dc, t, number)) return false;
  if (t->refused) return true;
  switch (number) {
  case SYS_prctl:
  case SYS_seccomp: return !is_about_filters(dc, t, number);
  case SYS_clone:
  case SYS_clone3:
  case SYS_vfork: inherited = *t; break;
  case SYS_execve:
    /* Not for the folders that execvp tries in vain. */
    if (access((const char *)dr_syscall_get_param(dc, 0), X_OK) == 0) put_into_kernel(t->filters);
    break;
  case SYS_execveat: put_into_kernel(t->filters); break;
  default: break;
  }
  return true;
}

bool seccomp_refused(void *dc) { return ((struct thread *)drmgr_get_tls_field(dc, slot))->refused; }

/* A vfork'ed child shares this memory, but is no thread of this process. */
static void on_thread_init(void *dc) {
  struct thread *t = dr_thread_alloc(dc, sizeof *t);
  *t = inherited;
  t->next = NULL;
  drmgr_set_tls_field(dc, slot, t);
  if (getpid() != process) return;
  dr_mutex_lock(lock);
  t->next = threads;
  threads = t;
  dr_mutex_unlock(lock);
}

static void on_thread_exit(void *dc) {
  struct thread *t = drmgr_get_tls_field(dc, slot);
  dr_mutex_lock(lock);
  for (struct thread **link = &threads; *link; link = &(*link)->next)
    if (*link == t) {
      *link = t->next;
      break;
    }
  dr_mutex_unlock(lock);
  dr_thread_free(dc, t, sizeof *t);
}

/* Only the thread that forked lives on; another may have held the lock. */
static void on_fork(void *dc) {
  process = getpid();
  lock = dr_mutex_create();
  threads = drmgr_get_tls_field(dc, slot);
  threads->next = NULL;
}

/* Before those of other files, which do nothing about a system call that is refused. */
void seccomp_init(void) {
  drmgr_priority_t first = {.struct_size = sizeof first, .name = "hither.seccomp", .priority = -1};
  process = getpid();
  lock = dr_mutex_create();
  slot = drmgr_register_tls_field();
  dr_register_filter_syscall_event(wanted);
  drmgr_register_pre_syscall_event_ex(before_syscall, &first);
  drmgr_register_post_syscall_event(after_syscall);
  drmgr_register_thread_init_event(on_thread_init);
  drmgr_register_thread_exit_event(on_thread_exit);
  dr_register_fork_init_event(on_fork);
}
