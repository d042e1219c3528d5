//! Calls of a program that another process answers (seccomp_unotify(2)): where its threads
//! may run. The program waits for the answer, and is not traced.
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;

use super::{
    jump, ret_allow, stmt, SockFilter, ARCH_OFFSET, AUDIT_ARCH_X86_64, JMP_JEQ_K, LD_W_ABS,
};
use super::{NR_OFFSET, RET_K};
use crate::errno::check;

/// Asks about sched_getaffinity and sched_setaffinity and lets everything else pass.
#[must_use]
pub fn affinity_filter() -> Vec<SockFilter> {
    let number = |call: libc::c_long| u32::try_from(call).unwrap_or(u32::MAX);
    vec![
        stmt(LD_W_ABS, ARCH_OFFSET),
        jump(JMP_JEQ_K, AUDIT_ARCH_X86_64, 0, 3),
        stmt(LD_W_ABS, NR_OFFSET),
        jump(JMP_JEQ_K, number(libc::SYS_sched_getaffinity), 2, 0),
        jump(JMP_JEQ_K, number(libc::SYS_sched_setaffinity), 1, 0),
        ret_allow(),
        stmt(RET_K, libc::SECCOMP_RET_USER_NOTIF),
    ]
}

/// Makes `command` start under `filter` and send the seccomp notification descriptor through
/// `socket` to process `answers`. Where that is not possible, it starts without the filter.
pub fn start_with_listener(
    command: &mut Command,
    filter: Vec<SockFilter>,
    socket: UnixStream,
    answers: nix::unistd::Pid,
) {
    let prepare = move || {
        // An answer is written into the memory of the calling process, which the security
        // module yama allows only to ancestors and to the process named by PR_SET_PTRACER.
        // SAFETY: takes numbers only.
        unsafe { libc::prctl(libc::PR_SET_PTRACER, answers.as_raw(), 0, 0, 0) };
        if let Ok(asking) =
            super::install_filter_with_flags(&filter, libc::SECCOMP_FILTER_FLAG_NEW_LISTENER)
        {
            // SAFETY: the kernel has just made this descriptor for us.
            let asking = unsafe { OwnedFd::from_raw_fd(asking) };
            // Without a listener the filtered calls would fail: do not start then.
            send_descriptor(&socket, asking.as_raw_fd())?;
        }
        Ok(())
    };
    // SAFETY: between fork and exec the closure only makes system calls and allocates
    // nothing; what it drops are descriptors.
    unsafe { command.pre_exec(prepare) };
}

/// Room for a control message with one descriptor, aligned as it has to be.
#[repr(C)]
union FdControlBuffer {
    header: libc::cmsghdr,
    bytes: [u8; 64],
}

/// The parts of a message of one byte and one descriptor.
fn message_header(byte: &mut libc::iovec, control: &mut FdControlBuffer) -> libc::msghdr {
    // SAFETY: a message of zeros is one without a name, parts and control.
    let mut message: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    message.msg_iov = byte;
    message.msg_iovlen = 1;
    message.msg_control = (&raw mut *control).cast();
    // SAFETY: computes a number.
    message.msg_controllen = unsafe { libc::CMSG_SPACE(size_of::<RawFd>() as u32) } as usize;
    message
}

fn send_descriptor(socket: &UnixStream, fd: RawFd) -> io::Result<()> {
    let mut content = [0u8];
    let mut byte = libc::iovec {
        iov_base: content.as_mut_ptr().cast(),
        iov_len: 1,
    };
    let mut control = FdControlBuffer { bytes: [0; 64] };
    let message = message_header(&mut byte, &mut control);
    // SAFETY: the message has a control buffer with room for one descriptor; all that it
    // points to outlives the call.
    let sent = unsafe {
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(size_of::<RawFd>() as u32) as usize;
        libc::CMSG_DATA(header).cast::<RawFd>().write_unaligned(fd);
        libc::sendmsg(socket.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL)
    };
    match sent {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// The descriptor that [`start_with_listener`] hands over; `None` when there will be none.
///
/// # Errors
/// As recvmsg(2).
pub fn receive_listener(socket: &UnixStream) -> io::Result<Option<OwnedFd>> {
    let mut content = [0u8];
    let mut byte = libc::iovec {
        iov_base: content.as_mut_ptr().cast(),
        iov_len: 1,
    };
    let mut control = FdControlBuffer { bytes: [0; 64] };
    let mut message = message_header(&mut byte, &mut control);
    // SAFETY: the message's buffers outlive the call, and the kernel writes no more than
    // their lengths.
    let got =
        unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_CMSG_CLOEXEC) };
    if got <= 0 {
        return match got {
            0 => Ok(None),
            _ => Err(io::Error::last_os_error()),
        };
    }
    // SAFETY: the kernel has filled in the control buffer; a header that is there is whole,
    // and with SCM_RIGHTS it holds a descriptor that is ours now.
    unsafe {
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        if header.is_null() || (*header).cmsg_type != libc::SCM_RIGHTS {
            return Ok(None);
        }
        let fd = libc::CMSG_DATA(header).cast::<RawFd>().read_unaligned();
        Ok(Some(OwnedFd::from_raw_fd(fd)))
    }
}

/// A call that waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeccompNotif {
    id: u64,
    /// The thread that makes it.
    pub tid: i32,
    pub number: libc::c_long,
    pub arguments: [u64; 6],
}

/// What comes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeccompNotifResp {
    /// The kernel does what was asked.
    Continue,
    /// It was done, with this result.
    Return(i64),
}

/// Takes the next call.
///
/// # Errors
/// ENOENT when the calling thread was killed before its call was received; as ioctl(2).
pub fn receive_notification(listener: BorrowedFd) -> io::Result<SeccompNotif> {
    // SAFETY: all of it are numbers, for which zero is a value; the kernel wants zeros.
    let mut call: libc::seccomp_notif = unsafe { MaybeUninit::zeroed().assume_init() };
    // SAFETY: the kernel writes one such structure to where `call` is.
    let got = unsafe {
        libc::ioctl(
            listener.as_raw_fd(),
            libc::SECCOMP_IOCTL_NOTIF_RECV,
            &raw mut call,
        )
    };
    check(got)?;
    Ok(SeccompNotif {
        id: call.id,
        tid: call.pid.cast_signed(),
        number: call.data.nr.into(),
        arguments: call.data.args,
    })
}

/// Whether the call still waits: then the thread is still the one that made it.
#[must_use]
pub fn is_id_valid(listener: BorrowedFd, call: &SeccompNotif) -> bool {
    // SAFETY: the kernel reads a number.
    let got = unsafe {
        libc::ioctl(
            listener.as_raw_fd(),
            libc::SECCOMP_IOCTL_NOTIF_ID_VALID,
            &raw const call.id,
        )
    };
    got == 0
}

/// Answers a call; one that was given up needs none.
pub fn send_response(listener: BorrowedFd, call: &SeccompNotif, answer: SeccompNotifResp) {
    let (value, flags) = match answer {
        SeccompNotifResp::Continue => (0, libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32),
        SeccompNotifResp::Return(value) => (value, 0),
    };
    let mut response = libc::seccomp_notif_resp {
        id: call.id,
        val: value,
        error: 0,
        flags,
    };
    // SAFETY: the kernel reads one such structure.
    unsafe {
        libc::ioctl(
            listener.as_raw_fd(),
            libc::SECCOMP_IOCTL_NOTIF_SEND,
            &raw mut response,
        )
    };
}
