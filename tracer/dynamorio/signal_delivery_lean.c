/* signal_delivery_lean.c: a signal that arrives while core runs reaches the program soon.
 *
 * DynamoRIO delivers a signal when the thread next leaves the code cache. If the signal interrupted
 * a fragment of the cache, DynamoRIO unlinks it, so that this is soon. If it interrupted a stub or
 * what the stub calls, DynamoRIO unlinks nothing, and a linked loop may never leave the cache. So
 * there is a handler in front of DynamoRIO's: for such a signal it passes on a copy of the frame
 * in which the stub has returned, and DynamoRIO unlinks the fragment that the stub will return to.
 *
 * That does not help where a signal interrupts a clean call, nor where two threads are interrupted in
 * one fragment and the first links it again before the second has left it. So as long as a signal
 * is not delivered the thread interrupts itself, after some misses, by a signal that the program does
 * not see. */
#include "host.h"
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SELF_INTERRUPT 59 /* a real-time signal that neither libraries nor virtual machines use */
#define FIRST_MISSES 64   /* until the first interrupt; each next one comes after four times as many */
#define MOST_INTERRUPTS 8 /* for one signal: the program may have blocked it */
#define FRAME_WORDS 55    /* struct rt_sigframe of the kernel on x86-64 */
#define COPY_BYTES 448    /* for a copy, aligned as the frame */
#define FRAME_CONTEXT 8   /* offsets within the frame: struct ucontext, */
#define FRAME_INFO 312    /* siginfo_t */
#define FRAME_PC 176      /* the interrupted instruction's address */

_Static_assert(FRAME_PC == FRAME_CONTEXT + __builtin_offsetof(ucontext_t, uc_mcontext.gregs[REG_RIP]), "rip in frame");
_Static_assert(FRAME_INFO + sizeof(siginfo_t) == FRAME_WORDS * sizeof(uint64_t), "size of frame");
_Static_assert(COPY_BYTES % 16 == 0 && COPY_BYTES >= FRAME_WORDS * sizeof(uint64_t), "alignment of copy");

/* DynamoRIO's handler, and ours. */
__attribute__((visibility("hidden"))) void *signal_delivery_next;
void signal_delivery_front(int signal, siginfo_t *info, void *context);
int64_t signal_delivery_arrived(int signal, siginfo_t *info, const ucontext_t *context);

/* DynamoRIO's handler takes the stack pointer for that of the frame: it must be entered as by the
 * kernel. */
#define TEXT(x) #x
#define NUMBER(x) TEXT(x)
/* clang-format off */
__asm__(".text\n"
        ".hidden signal_delivery_front\n"
        ".globl signal_delivery_front\n"
        ".type signal_delivery_front, @function\n"
        "signal_delivery_front:\n"
        "  push %rdi\n"
        "  push %rsi\n"
        "  push %rdx\n"
        "  call signal_delivery_arrived\n"
        "  pop %rdx\n"
        "  pop %rsi\n"
        "  pop %rdi\n"
        "  test %rax, %rax\n"
        "  jg 1f\n"
        "  jl 3f\n"
        "  jmp *signal_delivery_next(%rip)\n"
        "1:\n"
        "  mov %rdi, %rdx\n"
        "  mov %rsp, %rsi\n"
        "  sub $" NUMBER(COPY_BYTES) ", %rsp\n"
        "  mov %rsp, %rdi\n"
        "  mov $" NUMBER(FRAME_WORDS) ", %ecx\n"
        "  rep movsq\n"
        "  mov %rax, " NUMBER(FRAME_PC) "(%rsp)\n"
        "  lea 2f(%rip), %rax\n"
        "  mov %rax, (%rsp)\n"
        "  mov %rdx, %rdi\n"
        "  lea " NUMBER(FRAME_INFO) "(%rsp), %rsi\n"
        "  lea " NUMBER(FRAME_CONTEXT) "(%rsp), %rdx\n"
        "  jmp *signal_delivery_next(%rip)\n"
        "2:\n"
        "  add $" NUMBER(COPY_BYTES) " - 8, %rsp\n" /* DynamoRIO's handler has returned to 2 */
        "3:\n"
        "  ret\n"
        ".size signal_delivery_front, . - signal_delivery_front\n");
/* clang-format on */

/* A slot of the calling thread, by its segment register: a thread that starts or ends has slots, but may have no
 * field in drmgr's. */
static volatile uint64_t __seg_gs *own(int slot) {
  return (volatile uint64_t __seg_gs *)(uintptr_t)(host_slots + (uint)slot * sizeof(uint64_t));
}

/* Where in the code cache a stub will return to that this frame has interrupted; 0 if none was. */
static uint64_t stub_return(const ucontext_t *context) {
  uint64_t sp = (uint64_t)context->uc_mcontext.gregs[REG_RSP], top = *own(SLOT_STACK);
  if (sp <= top && sp > top - HOST_STACK_BYTES) return *(const uint64_t *)*own(SLOT_STACK_APP);
  /* its first instructions, before it switches stacks, and its last */
  if (!stub_contains((const byte *)context->uc_mcontext.gregs[REG_RIP])) return 0;
  const uint64_t *returns = (const uint64_t *)sp;
  return stub_contains((const byte *)*returns) ? returns[1] : *returns; /* a nested one */
}

/* Signals that DynamoRIO may deliver later than it receives them, as its table has it. */
static bool can_wait(int signal) {
  switch (signal) {
  case SIGABRT:
  case SIGPIPE:
  case SIGSTKFLT:
  case SIGXCPU: return false;
  default: return true;
  }
}

/* Returns the address that DynamoRIO is to take as the interrupted one, 0: the frame's own, -1: none,
 * DynamoRIO does not get the signal. */
int64_t signal_delivery_arrived(int signal, siginfo_t *info, const ucontext_t *context) {
  const bool runs = dr_get_current_drcontext() && *own(SLOT_LOCAL); /* else it starts or ends */
  const bool from_itself = runs && signal == SELF_INTERRUPT && *own(SLOT_SELF_INTERRUPTS);
  const uint64_t blocked = runs ? *own(SLOT_BLOCKED) : ~0ull;
  /* What a thread has may be gone once it ends. */
  const uint32_t index = ~blocked ? ((const struct hi_local *)*own(SLOT_LOCAL))->index : 0;
  if (!from_itself && can_wait(signal) && process_signals_hold(signal, info, blocked, index)) return -1;
  if (!runs) return 0;
  if (signal != SELF_INTERRUPT || !*own(SLOT_SELF_INTERRUPTS)) {
    *own(SLOT_UNDELIVERED) = FIRST_MISSES;
    *own(SLOT_TRIES) = 0;
  }
  return can_wait(signal) ? (int64_t)stub_return(context) : 0;
}

uint64_t host_blocked(void) { return *own(SLOT_BLOCKED); }

void host_set_blocked(uint64_t signals) { *own(SLOT_BLOCKED) = signals; }

/* At the end of a stub, while a signal is not delivered. */
void signal_delivery_remind(void) {
  if (--*own(SLOT_UNDELIVERED)) return;
  uint64_t tries = ++*own(SLOT_TRIES);
  if (tries > MOST_INTERRUPTS) return;
  *own(SLOT_UNDELIVERED) = (uint64_t)FIRST_MISSES << 2 * tries;
  ++*own(SLOT_SELF_INTERRUPTS);
  long pid, tid, failed;
  __asm__ volatile("syscall" : "=a"(pid) : "0"(SYS_getpid) : "rcx", "r11", "memory");
  __asm__ volatile("syscall" : "=a"(tid) : "0"(SYS_gettid) : "rcx", "r11", "memory");
  __asm__ volatile("syscall"
                   : "=a"(failed)
                   : "0"(SYS_tgkill), "D"(pid), "S"(tid), "d"(SELF_INTERRUPT)
                   : "rcx", "r11", "memory");
  if (failed) --*own(SLOT_SELF_INTERRUPTS);
}

static dr_signal_action_t on_signal(void *dc, dr_siginfo_t *info) {
  (void)dc;
  if (!info->blocked) *own(SLOT_UNDELIVERED) = 0;
  if (info->sig != SELF_INTERRUPT || !*own(SLOT_SELF_INTERRUPTS)) return DR_SIGNAL_DELIVER;
  --*own(SLOT_SELF_INTERRUPTS);
  return DR_SIGNAL_SUPPRESS;
}

/* Of faults, and of the signal that suspends threads, DynamoRIO must see the frame itself. */
static bool is_fault(int signal) {
  return signal == SIGSEGV || signal == SIGBUS || signal == SIGILL || signal == SIGFPE || signal == SIGTRAP ||
         signal == SIGSYS;
}

/* Puts the handler in front of DynamoRIO's, if DynamoRIO handles this signal. */
void signal_delivery_watch(int signal) {
  struct signal_action now;
  if (is_fault(signal) || !signals_action(signal, NULL, &now) || !now.handler || now.handler != signal_delivery_next)
    return;
  now.handler = (void *)signal_delivery_front;
  signals_action(signal, &now, NULL);
}

/* DynamoRIO installs its handlers after the client has started, but before the first block. */
static dr_emit_flags_t on_block(void *dc, void *tag, instrlist_t *bb, bool for_trace, bool translating) {
  static int watched;
  struct signal_action faults;
  (void)dc, (void)tag, (void)bb, (void)for_trace, (void)translating;
  if (__atomic_load_n(&watched, __ATOMIC_RELAXED) || __atomic_exchange_n(&watched, 1, __ATOMIC_RELAXED))
    return DR_EMIT_DEFAULT;
  if (!signals_action(SIGSEGV, NULL, &faults)) return DR_EMIT_DEFAULT;
  signal_delivery_next = faults.handler;
  for (int signal = 1; signal <= SIGNALS; signal++) signal_delivery_watch(signal);
  return DR_EMIT_DEFAULT;
}

void signal_delivery_init(void) {
  if (host_segment != DR_SEG_GS) dr_abort();
  drmgr_register_signal_event(on_signal);
  if (!drmgr_register_bb_app2app_event(on_block, NULL)) dr_abort();
}
