//! Pages that belong elsewhere from some moment on. Those that have memory are moved from
//! outside, a few at a time, while the program runs; for those that have none yet, a thread
//! is stopped for a moment to change their policy.
use std::io;

use hither_profile::PAGE_SIZE;
use hither_sys::numa;
use hither_sys::ptrace::{self, Registers, Until};
use nix::libc;

use super::engine::Engine;
use super::guide::Bind;
use hither_sys::{Pid, Tid};

/// Pages that are moved at once: some 10 ms in which no stop of the program is handled.
const BATCH: usize = 2000;

/// The one number that libc does not have.
const IO_PGETEVENTS: i64 = 333;

/// System calls that say EINTR to their caller when stopped for a moment (signal(7)), and
/// those that do so with a timeout on their socket.
const ABRUPT: [i64; 18] = [
    libc::SYS_epoll_wait,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_io_getevents,
    IO_PGETEVENTS,
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

/// Pages on their way, and how far they are.
#[derive(Debug)]
pub struct Moves {
    binds: Vec<Bind>,
    /// The first of `binds` that is not moved yet, and how many of its bytes are.
    next: usize,
    done: u64,
}

impl Moves {
    pub fn new(binds: &[Bind]) -> Self {
        Moves {
            binds: binds.to_vec(),
            next: 0,
            done: 0,
        }
    }

    /// The next pages and their nodes; none when all are moved.
    fn batch(&mut self) -> (Vec<u64>, Vec<u32>) {
        let (mut pages, mut nodes) = (Vec::new(), Vec::new());
        while let Some(bind) = self.binds.get(self.next).filter(|_| pages.len() < BATCH) {
            if self.done >= bind.length {
                (self.next, self.done) = (self.next + 1, 0);
                continue;
            }
            pages.push(bind.start + self.done);
            nodes.push(bind.node.0);
            self.done += PAGE_SIZE;
        }
        (pages, nodes)
    }
}

impl Engine<'_> {
    /// Moves the next few pages.
    pub(super) fn move_some(&mut self) {
        let Some((pid, moves)) = self.ticks.pending.front_mut() else {
            return;
        };
        let (pages, nodes) = moves.batch();
        match (
            move_pages(*pid, &pages, &nodes),
            self.outcome.phases.last_mut(),
        ) {
            (Ok(moved), Some(phase)) if !pages.is_empty() => phase.pages_moved += moved,
            // All are moved, or the process is gone.
            _ => drop(self.ticks.pending.pop_front()),
        }
    }

    /// Has the policy of pages changed by one thread of a process, the one that minds an
    /// interruption least.
    pub(super) fn interrupt_one(&mut self, pid: Pid, binds: Vec<Bind>) {
        let threads = self.threads.of(pid);
        let free = threads
            .into_iter()
            .filter(|tid| !self.doing.contains_key(tid));
        let Some(tid) = free.min_by_key(|&tid| unwilling(pid, tid)) else {
            return;
        };
        if ptrace::interrupt(tid).is_ok() {
            self.ticks.moves.entry(tid).or_default().extend(binds);
        }
    }

    /// A thread that was interrupted stands still.
    pub(super) fn change_pages(&mut self, tid: Tid) -> io::Result<()> {
        let binds = self.ticks.moves.remove(&tid).unwrap_or_default();
        hide_interruption(tid)?;
        // The pages that had memory are moved from outside.
        self.bind(tid, &binds, false, true)?;
        ptrace::resume(tid, Until::Event, 0)
    }
}

/// Moves those of the pages that have memory, but not on their node. How many are there now.
fn move_pages(pid: Pid, pages: &[u64], nodes: &[u32]) -> io::Result<u64> {
    let pid = nix::unistd::Pid::from_raw(pid);
    let now = numa::nodes_of(pid, pages)?;
    let astray = pages.iter().zip(nodes).zip(now);
    let astray = astray.filter(|((_, wanted), now)| now.is_some_and(|now| now != **wanted));
    let (pages, nodes): (Vec<u64>, Vec<u32>) = astray.map(|((p, n), _)| (*p, *n)).unzip();
    let got = numa::move_to(pid, &pages, &nodes)?;
    let there = got
        .iter()
        .zip(&nodes)
        .filter(|(got, node)| **got == Some(**node));
    Ok(there.count() as u64)
}

/// A thread that we interrupted is not to know of it: where its system call says so, it
/// calls again.
pub fn hide_interruption(tid: Tid) -> io::Result<()> {
    let registers = ptrace::registers(tid)?;
    let number = registers.orig_rax.cast_signed();
    if registers.rax.cast_signed() == -i64::from(libc::EINTR) && ABRUPT.contains(&number) {
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
fn unwilling(pid: Pid, tid: Tid) -> u8 {
    let call = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/syscall"));
    let call = call.unwrap_or_default();
    let number = call.split(' ').next().and_then(|n| n.parse().ok());
    match number {
        _ if call.is_empty() => 1,
        Some(number) if ABRUPT.contains(&number) => 2,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hither_sys::Node;

    #[test]
    fn pages_come_in_batches_and_all_of_them() {
        let bind = |start, pages, node| Bind {
            start,
            length: pages * PAGE_SIZE,
            node: Node(node),
        };
        let mut moves = Moves::new(&[
            bind(0, 1500, 1),
            bind(1 << 30, 0, 9),
            bind(1 << 40, 1500, 2),
        ]);
        let (first, nodes) = moves.batch();
        assert_eq!((first.len(), nodes[1499], nodes[1500]), (BATCH, 1, 2));
        assert_eq!(first[1500], 1 << 40);
        let (second, nodes) = moves.batch();
        assert_eq!((second.len(), nodes[0]), (1000, 2));
        assert_eq!(second[0], (1 << 40) + 500 * PAGE_SIZE);
        assert_eq!(moves.batch().0.len(), 0);
    }
}
