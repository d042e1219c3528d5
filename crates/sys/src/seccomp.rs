//! The filter that stops a program at the few system calls that are followed, and at no
//! others (seccomp(2), classic BPF).
//!
//! In the filter for those that are followed every path loads the architecture and the number first and nothing else for calls that
//! pass, so the kernel can keep a bitmap of those and never runs the filter for them.
mod files;
pub mod notify;
mod reading;

use std::io;

pub use files::build_files_filter;
pub use reading::build_reading_filter;

/// An instruction: operation, jumps, operand.
pub type SockFilter = libc::sock_filter;

/// Which calls stop the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FilteredCalls {
    /// Calls that change mappings of at least this many bytes; `None`: none.
    pub mappings: Option<u64>,
    /// Mappings of code from files, whatever `mappings` says.
    pub code: bool,
    /// sched_getaffinity and sched_setaffinity.
    pub affinity: bool,
}

// struct seccomp_data
const NR_OFFSET: u32 = 0;
const ARCH_OFFSET: u32 = 4;
const AUDIT_ARCH_X86_64: u32 = 0xc000_003e;
/// Lower half of an argument; the upper one follows.
const fn argument_offset(n: u32) -> u32 {
    16 + 8 * n
}

const LD_W_ABS: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const JMP_JEQ_K: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const JMP_JGE_K: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
const JMP_JSET_K: u16 = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
const RET_K: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

fn stmt(code: u16, k: u32) -> SockFilter {
    SockFilter {
        code,
        jt: 0,
        jf: 0,
        k,
    }
}

fn jump(code: u16, k: u32, yes: u8, no: u8) -> SockFilter {
    SockFilter {
        code,
        jt: yes,
        jf: no,
        k,
    }
}

fn ret_allow() -> SockFilter {
    stmt(RET_K, libc::SECCOMP_RET_ALLOW)
}

fn ret_trace() -> SockFilter {
    stmt(RET_K, libc::SECCOMP_RET_TRACE)
}

/// What decides about one call, given its number is right.
type ArgumentCheck = Vec<SockFilter>;

/// Stops if argument `n`, a number of bytes, is at least `least`. Falls through if not.
fn stops_if_long(n: u32, least: u32) -> ArgumentCheck {
    vec![
        stmt(LD_W_ABS, argument_offset(n) + 4),
        jump(JMP_JEQ_K, 0, 1, 0),
        ret_trace(),
        stmt(LD_W_ABS, argument_offset(n)),
        jump(JMP_JGE_K, least, 0, 1),
        ret_trace(),
    ]
}

/// Stops if argument `n` is `value`. Falls through if not.
fn stops_if_equal(n: u32, value: u32) -> ArgumentCheck {
    vec![
        stmt(LD_W_ABS, argument_offset(n)),
        jump(JMP_JEQ_K, value, 0, 1),
        ret_trace(),
    ]
}

const MAP_ANONYMOUS: u32 = libc::MAP_ANONYMOUS.unsigned_abs();
const MAP_FIXED: u32 = libc::MAP_FIXED.unsigned_abs();
const PROT_EXEC: u32 = libc::PROT_EXEC.unsigned_abs();

/// Stops at files, and at what replaces part of another mapping: the zeros at the end of
/// a library's data.
fn mmap_check(least: u32) -> ArgumentCheck {
    let mut mmap = stops_if_long(1, least);
    mmap.extend([
        stmt(LD_W_ABS, argument_offset(3)),
        jump(JMP_JSET_K, MAP_ANONYMOUS, 1, 0),
        ret_trace(),
        jump(JMP_JSET_K, MAP_FIXED, 0, 1),
        ret_trace(),
    ]);
    mmap
}

fn code_mmap_check() -> ArgumentCheck {
    vec![
        stmt(LD_W_ABS, argument_offset(3)),
        jump(JMP_JSET_K, MAP_ANONYMOUS, 3, 0),
        stmt(LD_W_ABS, argument_offset(2)),
        jump(JMP_JSET_K, PROT_EXEC, 0, 1),
        ret_trace(),
    ]
}

fn mapping_calls(least: u64) -> Vec<(libc::c_long, ArgumentCheck)> {
    let least = u32::try_from(least).unwrap_or(u32::MAX);
    let mut mremap = stops_if_long(1, least);
    mremap.extend(stops_if_long(2, least));
    vec![
        (libc::SYS_mmap, mmap_check(least)),
        (libc::SYS_munmap, stops_if_long(1, least)),
        (libc::SYS_mremap, mremap),
        (libc::SYS_brk, vec![ret_trace()]),
        (libc::SYS_shmat, vec![ret_trace()]),
        (libc::SYS_shmdt, vec![ret_trace()]),
    ]
}

/// Calls by which a program shuts itself in: no calls of ours on its behalf after that.
fn sandboxing_calls() -> Vec<(libc::c_long, ArgumentCheck)> {
    let prctl = libc::PR_SET_SECCOMP.unsigned_abs();
    vec![
        (libc::SYS_seccomp, vec![ret_trace()]),
        (libc::SYS_prctl, stops_if_equal(0, prctl)),
    ]
}

/// Calls by which a program follows others, which fail for those that we follow.
fn ptrace_calls() -> (libc::c_long, ArgumentCheck) {
    let mut test = stops_if_equal(0, libc::PTRACE_TRACEME);
    test.extend(stops_if_equal(0, libc::PTRACE_ATTACH));
    test.extend(stops_if_equal(0, libc::PTRACE_SEIZE));
    (libc::SYS_ptrace, test)
}

/// clone with CLONE_UNTRACED: under the filter an untraced process could not run.
fn clone_untraced_call() -> (libc::c_long, ArgumentCheck) {
    let test = vec![
        stmt(LD_W_ABS, argument_offset(0)),
        jump(JMP_JSET_K, libc::CLONE_UNTRACED.unsigned_abs(), 0, 1),
        ret_trace(),
    ];
    (libc::SYS_clone, test)
}

/// How a filter begins: the number of the call is loaded, or `foreign` done where it is one of another
/// architecture.
fn load_call_number(foreign: SockFilter) -> Vec<SockFilter> {
    vec![
        stmt(LD_W_ABS, ARCH_OFFSET),
        jump(JMP_JEQ_K, AUDIT_ARCH_X86_64, 1, 0),
        foreign,
        stmt(LD_W_ABS, NR_OFFSET),
    ]
}

/// Builds the filter.
#[must_use]
pub fn build_filter(wanted: FilteredCalls) -> Vec<SockFilter> {
    let mut calls = vec![ptrace_calls(), clone_untraced_call()];
    if wanted.affinity {
        calls.push((libc::SYS_sched_getaffinity, vec![ret_trace()]));
        calls.push((libc::SYS_sched_setaffinity, vec![ret_trace()]));
    }
    if let Some(least) = wanted.mappings {
        calls.extend(mapping_calls(least));
        calls.extend(sandboxing_calls());
    } else if wanted.code {
        calls.push((libc::SYS_mmap, code_mmap_check()));
    }
    let mut program = load_call_number(ret_allow());
    for (number, test) in calls {
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        // Past the test and the `ret_allow` that ends it.
        let skip = u8::try_from(test.len() + 1).unwrap_or(u8::MAX);
        program.push(jump(JMP_JEQ_K, number, 0, skip));
        program.extend(test);
        program.push(ret_allow());
    }
    program.push(ret_allow());
    program
}

/// Puts this thread and what it becomes and creates under `filter`. Without the right to
/// do that as it is, it gives up gaining privileges by set-user-id programs first.
///
/// # Errors
/// ENOSYS, EINVAL: a kernel without seccomp; EPERM: it is forbidden here.
pub fn install_filter(filter: &[SockFilter]) -> io::Result<()> {
    install_filter_with_flags(filter, 0).map(drop)
}

/// The same with more flags. What the kernel returns: 0, or a descriptor.
fn install_filter_with_flags(filter: &[SockFilter], flags: libc::c_ulong) -> io::Result<i32> {
    let program = libc::sock_fprog {
        len: u16::try_from(filter.len()).unwrap_or(u16::MAX),
        filter: filter.as_ptr().cast_mut(),
    };
    let mut privileges_given_up = false;
    loop {
        // SAFETY: the kernel copies the program, which outlives the call, and writes
        // nothing. SPEC_ALLOW: the filter is no sandbox, so it needs none of the
        // costly mitigations that older kernels tie to seccomp.
        let got = unsafe {
            libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW | flags,
                &raw const program,
            )
        };
        if let Ok(got @ 0..) = i32::try_from(got) {
            return Ok(got);
        }
        let error = io::Error::last_os_error();
        if error.raw_os_error() != Some(libc::EACCES) || privileges_given_up {
            return Err(error);
        }
        privileges_given_up = true;
        nix::sys::prctl::set_no_new_privs()?;
    }
}

#[cfg(test)]
mod tests;
