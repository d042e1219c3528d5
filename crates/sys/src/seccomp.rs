//! The filter that stops a program at the few system calls that somebody wants to see,
//! and at no others (seccomp(2), classic BPF).
//!
//! Every path loads the architecture and the number first and nothing else for calls that
//! pass, so the kernel can keep a bitmap of those and never runs the filter for them.
pub mod notify;

use std::io;

/// An instruction: operation, jumps, operand.
pub type Instruction = libc::sock_filter;

/// Which calls stop the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Calls that change mappings of at least so many bytes; `None`: none.
    pub mappings: Option<u64>,
    /// Mappings of code from files, whatever `mappings` says.
    pub code: bool,
    /// sched_getaffinity and sched_setaffinity.
    pub affinity: bool,
}

// struct seccomp_data
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const AUDIT_ARCH_X86_64: u32 = 0xc000_003e;
/// Lower half of an argument; the upper one follows.
const fn argument(n: u32) -> u32 {
    16 + 8 * n
}

const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const AT_LEAST: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
const ANY_BIT: u16 = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

fn plain(code: u16, k: u32) -> Instruction {
    Instruction {
        code,
        jt: 0,
        jf: 0,
        k,
    }
}

fn jump(code: u16, k: u32, yes: u8, no: u8) -> Instruction {
    Instruction {
        code,
        jt: yes,
        jf: no,
        k,
    }
}

fn pass() -> Instruction {
    plain(RETURN, libc::SECCOMP_RET_ALLOW)
}

fn stop() -> Instruction {
    plain(RETURN, libc::SECCOMP_RET_TRACE)
}

/// What decides about one call, given its number is right.
type Test = Vec<Instruction>;

/// Stops if argument `n`, a number of bytes, is at least `least`. Falls through if not.
fn stops_if_long(n: u32, least: u32) -> Test {
    vec![
        plain(LOAD, argument(n) + 4),
        jump(EQUAL, 0, 1, 0),
        stop(),
        plain(LOAD, argument(n)),
        jump(AT_LEAST, least, 0, 1),
        stop(),
    ]
}

/// Stops if argument `n` is `value`. Falls through if not.
fn stops_if_equal(n: u32, value: u32) -> Test {
    vec![plain(LOAD, argument(n)), jump(EQUAL, value, 0, 1), stop()]
}

const ANONYMOUS: u32 = libc::MAP_ANONYMOUS.unsigned_abs();
const FIXED: u32 = libc::MAP_FIXED.unsigned_abs();
const EXEC: u32 = libc::PROT_EXEC.unsigned_abs();

/// Stops at files, and at what replaces part of another mapping: the zeros at the end of
/// a library's data.
fn mmap(least: u32) -> Test {
    let mut mmap = stops_if_long(1, least);
    mmap.extend([
        plain(LOAD, argument(3)),
        jump(ANY_BIT, ANONYMOUS, 1, 0),
        stop(),
        jump(ANY_BIT, FIXED, 0, 1),
        stop(),
    ]);
    mmap
}

fn mmap_of_code() -> Test {
    vec![
        plain(LOAD, argument(3)),
        jump(ANY_BIT, ANONYMOUS, 3, 0),
        plain(LOAD, argument(2)),
        jump(ANY_BIT, EXEC, 0, 1),
        stop(),
    ]
}

fn mapping_calls(least: u64) -> Vec<(libc::c_long, Test)> {
    let least = u32::try_from(least).unwrap_or(u32::MAX);
    let mut mremap = stops_if_long(1, least);
    mremap.extend(stops_if_long(2, least));
    vec![
        (libc::SYS_mmap, mmap(least)),
        (libc::SYS_munmap, stops_if_long(1, least)),
        (libc::SYS_mremap, mremap),
        (libc::SYS_brk, vec![stop()]),
        (libc::SYS_shmat, vec![stop()]),
        (libc::SYS_shmdt, vec![stop()]),
    ]
}

/// Calls by which a program shuts itself in: no calls of ours on its behalf after that.
fn shutting_in() -> Vec<(libc::c_long, Test)> {
    let prctl = libc::PR_SET_SECCOMP.unsigned_abs();
    vec![
        (libc::SYS_seccomp, vec![stop()]),
        (libc::SYS_prctl, stops_if_equal(0, prctl)),
    ]
}

/// Calls by which a program follows others, which fail for those that we follow.
fn following() -> (libc::c_long, Test) {
    let mut test = stops_if_equal(0, libc::PTRACE_TRACEME);
    test.extend(stops_if_equal(0, libc::PTRACE_ATTACH));
    test.extend(stops_if_equal(0, libc::PTRACE_SEIZE));
    (libc::SYS_ptrace, test)
}

/// Processes that nobody is to follow: with the filter they could not live so.
fn untraced() -> (libc::c_long, Test) {
    let test = vec![
        plain(LOAD, argument(0)),
        jump(ANY_BIT, libc::CLONE_UNTRACED.unsigned_abs(), 0, 1),
        stop(),
    ];
    (libc::SYS_clone, test)
}

/// Builds the filter.
#[must_use]
pub fn filter(wanted: Wanted) -> Vec<Instruction> {
    let mut calls = vec![following(), untraced()];
    if wanted.affinity {
        calls.push((libc::SYS_sched_getaffinity, vec![stop()]));
        calls.push((libc::SYS_sched_setaffinity, vec![stop()]));
    }
    if let Some(least) = wanted.mappings {
        calls.extend(mapping_calls(least));
        calls.extend(shutting_in());
    } else if wanted.code {
        calls.push((libc::SYS_mmap, mmap_of_code()));
    }
    let mut program = vec![
        plain(LOAD, ARCHITECTURE),
        jump(EQUAL, AUDIT_ARCH_X86_64, 1, 0),
        pass(),
        plain(LOAD, NUMBER),
    ];
    for (number, test) in calls {
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        // Past the test and the `pass` that ends it.
        let skip = u8::try_from(test.len() + 1).unwrap_or(u8::MAX);
        program.push(jump(EQUAL, number, 0, skip));
        program.extend(test);
        program.push(pass());
    }
    program.push(pass());
    program
}

/// Puts this thread and what it becomes and creates under `filter`. Without the right to
/// do that as it is, it gives up gaining privileges by set-user-id programs first.
///
/// # Errors
/// ENOSYS, EINVAL: a kernel without seccomp; EPERM: it is forbidden here.
pub fn install(filter: &[Instruction]) -> io::Result<()> {
    install_with(filter, 0).map(drop)
}

/// The same with more flags. What the kernel returns: 0, or a descriptor.
fn install_with(filter: &[Instruction], flags: libc::c_ulong) -> io::Result<i32> {
    let program = libc::sock_fprog {
        len: u16::try_from(filter.len()).unwrap_or(u16::MAX),
        filter: filter.as_ptr().cast_mut(),
    };
    let mut privileges_given_up = false;
    loop {
        // SAFETY: the kernel copies the program, which outlives the call, and writes
        // nothing. SPEC_ALLOW: a filter that protects nobody needs none of the costly
        // mitigations that older kernels tie to seccomp.
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
