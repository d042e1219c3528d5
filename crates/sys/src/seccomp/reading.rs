//! The filter of a process that may read files and nothing else.
use super::{
    argument_offset, jump, load_call_number, ret_allow, stmt, SockFilter, JMP_JEQ_K, JMP_JSET_K,
    LD_W_ABS, RET_K,
};

/// What reading files takes, in a program with one thread: memory, its own signals, the clock, and
/// writing to what is open.
const ALLOWED: [libc::c_long; 51] = [
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_pread64,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_recvfrom,
    libc::SYS_sendto,
    libc::SYS_poll,
    libc::SYS_ppoll,
    libc::SYS_close,
    libc::SYS_lseek,
    libc::SYS_dup,
    libc::SYS_fcntl,
    libc::SYS_stat,
    libc::SYS_fstat,
    libc::SYS_lstat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_access,
    libc::SYS_faccessat,
    libc::SYS_readlink,
    libc::SYS_readlinkat,
    libc::SYS_getdents64,
    libc::SYS_getcwd,
    libc::SYS_fadvise64,
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_futex,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_clock_gettime,
    libc::SYS_gettimeofday,
    libc::SYS_getrandom,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_restart_syscall,
    libc::SYS_membarrier,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// Flags of open(2) by which a file could be changed or made. O_TMPFILE without the bit that it
/// shares with O_DIRECTORY.
const CHANGING: u32 = (libc::O_WRONLY
    | libc::O_RDWR
    | libc::O_CREAT
    | libc::O_TRUNC
    | libc::O_APPEND
    | (libc::O_TMPFILE & !libc::O_DIRECTORY))
    .unsigned_abs();

/// Builds the filter: all other calls fail with EPERM, and what opens a file can only read it.
#[must_use]
pub fn build_reading_filter() -> Vec<SockFilter> {
    let refuse = || stmt(RET_K, libc::SECCOMP_RET_ERRNO | libc::EPERM.unsigned_abs());
    let number = |of: libc::c_long| u32::try_from(of).unwrap_or(u32::MAX);
    let mut program = load_call_number(refuse());
    for call in ALLOWED {
        program.extend([jump(JMP_JEQ_K, number(call), 0, 1), ret_allow()]);
    }
    for (call, flags) in [(libc::SYS_open, 1), (libc::SYS_openat, 2)] {
        program.extend([
            jump(JMP_JEQ_K, number(call), 0, 4),
            stmt(LD_W_ABS, argument_offset(flags)),
            jump(JMP_JSET_K, CHANGING, 1, 0),
            ret_allow(),
            refuse(),
        ]);
    }
    program.push(refuse());
    program
}
