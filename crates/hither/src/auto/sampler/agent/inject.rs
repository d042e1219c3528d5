//! Puts the agent into a process: one of its threads is stopped for a moment and makes a few
//! system calls for us, the last of which makes the agent.
//!
//! A process of its own does it, which ends right after: if the tracer is killed half-way, the
//! thread goes on at the wrong place, and hither may be killed at any time.
use hither_profile::PAGE_SIZE;
use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, PipeReader, Read, Write};
use std::os::fd::AsFd;
#[cfg(not(test))]
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use hither_sys::proc_text::proc_field;
#[cfg(not(test))]
use hither_sys::process;
use hither_sys::ptrace::{ResumeMode, TraceeEvent};
use hither_sys::{inject as sys, launch, ptrace};
use nix::libc;
#[cfg(not(test))]
use nix::sys::signal::SigSet;
use nix::sys::wait::waitpid;

use super::agent_fitness::AgentRefusal;
use super::protocol;
use super::protocol::AgentPurpose;
use crate::follow::procfs;
use crate::follow::remote_syscall::{BorrowedThread, Vdso};
use hither_sys::{Pid, Tid};

/// The agent's code, which `build.rs` makes of `tracer/agent`.
const CODE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/agent.bin"));

/// For a thread to stop, and for the agent to be ready.
const PATIENCE: Duration = Duration::from_millis(300);
const PAUSE: Duration = Duration::from_micros(50);
/// What a reason begins with that may be gone in a while.
const PERHAPS: &str = "for now: ";
/// Of user code in 64 bits; the other is of 32.
const USER_CS: u64 = 0x33;

/// An injection that is under way.
#[derive(Debug)]
pub struct AgentInjection {
    result: PipeReader,
    helper: Option<nix::unistd::Pid>,
}

impl AgentInjection {
    /// Begins it.
    ///
    /// # Errors
    /// When the kernel makes no process or pipe.
    pub fn begin(pid: Pid, purpose: AgentPurpose) -> io::Result<AgentInjection> {
        let (theirs, ours) = io::pipe()?;
        let helper = split_off(pid, purpose, ours)?;
        Ok(AgentInjection {
            result: theirs,
            helper,
        })
    }

    /// The agent's thread, or why there is none; `None` while that is not known.
    pub fn outcome(&mut self) -> Option<Result<Tid, AgentRefusal>> {
        use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
        let mut ready = [PollFd::new(self.result.as_fd(), PollFlags::POLLIN)];
        if !poll(&mut ready, PollTimeout::ZERO).is_ok_and(|count| count > 0) {
            return None;
        }
        let mut line = String::new();
        let _ = self.result.read_to_string(&mut line);
        self.helper.map(|helper| waitpid(helper, None));
        Some(line.parse().map_err(|_| match line.strip_prefix(PERHAPS) {
            Some(reason) => AgentRefusal::Perhaps(reason.to_owned()),
            None if line.is_empty() => {
                AgentRefusal::Now("the process that was to do it was killed".to_owned())
            }
            None => AgentRefusal::Now(line),
        }))
    }
}

/// Has it done by a process of its own.
#[cfg(not(test))]
fn split_off(
    pid: Pid,
    purpose: AgentPurpose,
    ours: io::PipeWriter,
) -> io::Result<Option<nix::unistd::Pid>> {
    let helper = process::fork_off(|| {
        let _ = SigSet::all().thread_block();
        let _ = nix::sys::prctl::set_name(c"hither-injector");
        if launch::release_inherited_files(&[ours.as_raw_fd()]).is_ok() {
            say(pid, purpose, &ours);
        }
        0
    })?;
    Ok(Some(helper))
}

/// Tests run in threads, which cannot be split off.
#[cfg(test)]
fn split_off(
    pid: Pid,
    purpose: AgentPurpose,
    ours: io::PipeWriter,
) -> io::Result<Option<nix::unistd::Pid>> {
    std::thread::spawn(move || say(pid, purpose, &ours));
    Ok(None)
}

/// Does it and says what came of it.
fn say(pid: Pid, purpose: AgentPurpose, mut pipe: &io::PipeWriter) {
    let line = match put_into(pid, purpose) {
        Ok(tid) => tid.to_string(),
        Err(error) if is_for_now(&error) => format!("{PERHAPS}{error}"),
        Err(error) => error.to_string(),
    };
    let _ = pipe.write_all(line.as_bytes());
}

fn put_into(pid: Pid, purpose: AgentPurpose) -> io::Result<Tid> {
    launch::request_short_slice();
    let mut why = cannot();
    for tid in procfs::thread_ids(pid).into_iter().take(8) {
        match through(pid, tid, purpose) {
            Ok(memory) => return memory.wait(),
            Err(error) if is_for_now(&error) => why = error,
            Err(error) => return Err(error),
        }
    }
    Err(why)
}

fn cannot() -> io::Error {
    io::Error::new(io::ErrorKind::WouldBlock, "its threads do not stop")
}

/// Another thread may do, or this one later.
fn is_for_now(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock || error.raw_os_error() == Some(libc::ESRCH)
}

/// What the agent was given.
struct AgentSetup {
    memory: File,
    /// Of its data.
    data: u64,
    tid: Tid,
}

impl AgentSetup {
    /// Waits for the agent to have its pipes.
    fn wait(&self) -> io::Result<Tid> {
        let began = Instant::now();
        while began.elapsed() < 4 * PATIENCE {
            // struct hi_agent_begin: step, error, ready
            let mut begin = [0; 12];
            self.memory.read_exact_at(&mut begin, self.data)?;
            let word = |at: usize| {
                let bytes = begin[4 * at..4 * at + 4].try_into().unwrap_or_default();
                i32::from_le_bytes(bytes)
            };
            match (word(1), word(2)) {
                (0, 1) => return Ok(self.tid),
                (0, _) => std::thread::sleep(4 * PAUSE),
                (error, _) => {
                    let error = io::Error::from_raw_os_error(error);
                    let what = match word(0) {
                        4 => "userfaultfd is not allowed there",
                        5 => "the kernel can neither move nor protect pages as we need it",
                        _ => "it could not begin",
                    };
                    return Err(io::Error::other(format!("{what} ({error})")));
                }
            }
        }
        Err(io::Error::other("it did not begin in time"))
    }
}

/// Does it through one thread.
fn through(pid: Pid, tid: Tid, purpose: AgentPurpose) -> io::Result<AgentSetup> {
    sys::seize_thread(tid)?;
    stop(pid, tid)?;
    let entrance = entrance(pid, tid);
    if entrance.is_err() {
        sys::detach(tid, 0)?;
    }
    let (memory, syscall) = entrance?;
    let mut queue = VecDeque::new();
    let mut thread = BorrowedThread::borrow(tid, syscall, &mut queue)?;
    let made = calls(&mut thread, &memory, purpose);
    // From here on it must be let go as it was, come what may.
    let back = thread.give_back(true);
    let gone = back.and_then(|()| let_go(tid));
    let (data, agent) = made?;
    gone?;
    let agent = thread_of(pid, agent).ok_or_else(|| io::Error::other("it did not begin"))?;
    Ok(AgentSetup {
        memory,
        data,
        tid: agent,
    })
}

/// The memory of a process and the address of a `syscall` instruction in it. To be asked for
/// when one of its threads is stopped: before that it may have become another program, and
/// the thread's id another's.
fn entrance(pid: Pid, tid: Tid) -> io::Result<(File, u64)> {
    if !Path::new(&format!("/proc/{pid}/task/{tid}")).exists() {
        return Err(cannot());
    }
    let memory = open_memory(pid)?;
    let syscall = vdso(pid).zip(Vdso::read().syscall_offset());
    let syscall = syscall.ok_or_else(|| io::Error::other("it has no vdso"))?;
    Ok((memory, syscall.0 + syscall.1))
}

fn open_memory(pid: Pid) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true);
    options.open(format!("/proc/{pid}/mem"))
}

/// Where a process has its vdso, by what it was told at its start.
fn vdso(pid: Pid) -> Option<u64> {
    let told = fs::read(format!("/proc/{pid}/auxv")).ok()?;
    let (words, _) = told.as_chunks();
    let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
    let pair = words
        .chunks(2)
        .find(|pair| pair[0] == libc::AT_SYSINFO_EHDR);
    pair.and_then(|pair| pair.get(1).copied())
}

/// The thread that has this id where the process itself is: elsewhere it may have another
/// (pid_namespaces(7)).
fn thread_of(pid: Pid, inner: Tid) -> Option<Tid> {
    procfs::thread_ids(pid).into_iter().find(|&tid| {
        let status = fs::read_to_string(format!("/proc/{pid}/task/{tid}/status"));
        let status = status.unwrap_or_default();
        let innermost = proc_field(&status, "NSpid").and_then(|ids| ids.split_whitespace().last());
        // Kernels without namespaces say nothing of it.
        innermost.map_or(tid == inner, |id| id.parse() == Ok(inner))
    })
}

/// Stops a thread where it can be borrowed.
fn stop(pid: Pid, tid: Tid) -> io::Result<()> {
    let began = Instant::now();
    ptrace::interrupt(tid)?;
    while began.elapsed() < PATIENCE {
        match ptrace::wait(tid, false)? {
            None => std::thread::sleep(PAUSE),
            Some((_, TraceeEvent::Trap)) => {
                if ptrace::registers(tid)?.cs != USER_CS {
                    sys::detach(tid, 0)?;
                    return Err(io::Error::other("it is a 32-bit program"));
                }
                if !is_in_sequence(pid, tid) {
                    return Ok(());
                }
                ptrace::resume(tid, ResumeMode::Cont, 0)?;
                std::thread::sleep(PAUSE);
                ptrace::interrupt(tid)?;
            }
            Some((_, TraceeEvent::Signal(signal))) => {
                ptrace::resume(tid, ResumeMode::Cont, signal)?
            }
            // The process is stopped: no time to disturb it.
            Some((_, TraceeEvent::GroupStop(_))) => {
                ptrace::listen(tid)?;
                return Err(cannot());
            }
            Some((_, TraceeEvent::Exited(_) | TraceeEvent::Killed(_))) => return Err(cannot()),
            Some(_) => ptrace::resume(tid, ResumeMode::Cont, 0)?,
        }
    }
    Err(cannot())
}

/// Whether the thread is in a restartable sequence (rseq(2)), which the kernel would have to
/// see interrupted and, as we take the thread elsewhere, would not.
fn is_in_sequence(pid: Pid, tid: Tid) -> bool {
    let Ok(Some(at)) = sys::rseq_address(tid) else {
        return false;
    };
    // struct rseq: cpu_id_start, cpu_id, rseq_cs.
    let mut sequence = [0; 8];
    let read = open_memory(pid).and_then(|memory| memory.read_exact_at(&mut sequence, at + 8));
    read.is_err() || sequence != [0; 8]
}

/// Maps the agent's memory, writes its code and makes its thread. Returns where its data is.
fn calls(
    thread: &mut BorrowedThread,
    memory: &File,
    purpose: AgentPurpose,
) -> io::Result<(u64, Tid)> {
    let mut call = |number: libc::c_long, arguments: [u64; 6]| {
        let got = thread.make_syscall(number, arguments)?;
        match i32::try_from(-got) {
            Ok(error @ 1..4096) => Err(io::Error::from_raw_os_error(error)),
            _ => Ok(got.cast_unsigned()),
        }
    };
    let code = (CODE.len() as u64).next_multiple_of(PAGE_SIZE);
    let length = code + protocol::DATA + protocol::STACK;
    let writable = (libc::PROT_READ | libc::PROT_WRITE) as u64;
    let runnable = (libc::PROT_READ | libc::PROT_EXEC) as u64;
    let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE) as u64;
    let base = call(libc::SYS_mmap, [0, length, writable, flags, u64::MAX, 0])?;
    let mut made = || {
        memory.write_all_at(CODE, base)?;
        memory.write_all_at(
            &protocol::purpose_code(purpose).to_le_bytes(),
            base + code + protocol::PURPOSE,
        )?;
        let forked = libc::MADV_DONTFORK as u64;
        call(libc::SYS_madvise, [base, length, forked, 0, 0, 0])?;
        call(libc::SYS_mprotect, [base, code, runnable, 0, 0, 0])?;
        // No folder and no semaphores in common; a table of descriptors only until it has
        // one of its own, which it makes without a copy of this one.
        let kind = libc::CLONE_VM
            | libc::CLONE_SIGHAND
            | libc::CLONE_THREAD
            | libc::CLONE_FILES
            | libc::CLONE_UNTRACED;
        Ok((kind as u64, base + length - 64))
    };
    let made: io::Result<(u64, u64)> = made();
    let tid = made.and_then(|(kind, stack)| {
        let got = thread.call_at(base, libc::SYS_clone, [kind, stack, 0, 0, 0, 0])?;
        i32::try_from(got)
            .ok()
            .filter(|&tid| tid > 0)
            .ok_or_else(|| io::Error::from_raw_os_error(-(got as i32)))
    });
    if tid.is_err() {
        let _ = thread.make_syscall(libc::SYS_munmap, [base, length, 0, 0, 0, 0]);
    }
    Ok((base + code, tid?))
}

/// Lets a thread go that stops once more on its way out of the kernel, so that whatever
/// system call it was in starts again as it always does.
fn let_go(tid: Tid) -> io::Result<()> {
    ptrace::resume(tid, ResumeMode::Cont, 0)?;
    loop {
        match ptrace::wait(tid, true)? {
            Some((_, TraceeEvent::Trap)) => return sys::detach(tid, 0),
            Some((_, TraceeEvent::Signal(signal))) => return sys::detach(tid, signal),
            Some((_, TraceeEvent::GroupStop(_))) => return sys::detach(tid, 0),
            Some((_, TraceeEvent::Exited(_) | TraceeEvent::Killed(_))) | None => return Ok(()),
            Some(_) => ptrace::resume(tid, ResumeMode::Cont, 0)?,
        }
    }
}
