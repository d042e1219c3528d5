//! System calls that tell their caller when its thread was stopped for a moment.
use std::io;

use hither_sys::ptrace::{self, Registers};
use hither_sys::{Pid, Tid};
use nix::libc;

/// The one number that libc does not have.
const SYS_IO_PGETEVENTS: i64 = 333;

/// System calls that say EINTR to their caller when stopped for a moment (signal(7)), and
/// those that do so with a timeout on their socket.
const EINTR_CALLS: [i64; 18] = [
    libc::SYS_epoll_wait,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_io_getevents,
    SYS_IO_PGETEVENTS,
    libc::SYS_io_uring_enter,
    libc::SYS_msgrcv,
    libc::SYS_msgsnd,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_connect,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
];

/// A thread that we interrupted is not to know of it: where its system call says so, it
/// calls again.
///
/// # Errors
/// ESRCH when it is gone.
pub fn restart_syscall(tid: Tid) -> io::Result<()> {
    let registers = ptrace::registers(tid)?;
    let number = registers.orig_rax.cast_signed();
    if registers.rax.cast_signed() == -i64::from(libc::EINTR) && EINTR_CALLS.contains(&number) {
        let again = Registers {
            rip: registers.rip - 2,
            rax: registers.orig_rax,
            orig_rax: u64::MAX,
            ..registers
        };
        ptrace::set_registers(tid, &again)?;
    }
    Ok(())
}

/// How much a thread would mind: 0 when it runs or sleeps in a call that goes on by itself.
#[must_use]
pub fn interruption_cost(pid: Pid, tid: Tid) -> u8 {
    let call = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/syscall"));
    let call = call.unwrap_or_default();
    let number = call.split(' ').next().and_then(|n| n.parse().ok());
    match number {
        _ if call.is_empty() => 1,
        Some(number) if EINTR_CALLS.contains(&number) => 2,
        _ => 0,
    }
}
