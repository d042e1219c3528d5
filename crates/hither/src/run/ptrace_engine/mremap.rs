//! mremap(2) over memory that we have bound. A mapping whose parts belong on different
//! nodes is several mappings for the kernel, which enlarges only one: it says EFAULT where
//! it would have done so without us. Then we do it, in the same steps.
use std::io;

use nix::libc;

use super::PtraceEngine;
use crate::follow::proc_maps::{self, whole_pages};
use crate::follow::remote_syscall::BorrowedThread;
use hither_sys::ptrace::{self, Registers};
use hither_sys::Tid;

/// What was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MremapRequest {
    old: u64,
    old_length: u64,
    new_length: u64,
    may_move: bool,
}

/// Parts [start, length) that the range is made of; empty when there is a hole in it.
fn mapped_parts(mappings: &[(u64, u64)], wish: MremapRequest) -> Vec<(u64, u64)> {
    let end = wish.old + wish.old_length;
    let mut at = wish.old;
    let mut parts = Vec::new();
    for &(start, length) in mappings {
        if start <= at && at < start + length && at < end {
            let stop = end.min(start + length);
            parts.push((at, stop - at));
            at = stop;
        }
    }
    if at == end {
        parts
    } else {
        Vec::new()
    }
}

impl PtraceEngine<'_> {
    /// mremap failed in thread `tid`. Where it was our fault, does what it asked for and
    /// changes its answer; the registers as they are then.
    pub(super) fn redo_mremap(&mut self, tid: Tid, registers: Registers) -> io::Result<Registers> {
        let wish = MremapRequest {
            old: registers.rdi,
            old_length: whole_pages(registers.rsi),
            new_length: whole_pages(registers.rdx),
            may_move: registers.r10 == u64::from(libc::MREMAP_MAYMOVE.unsigned_abs()),
        };
        let fault = registers.rax.cast_signed() == -i64::from(libc::EFAULT);
        let grows = wish.old_length > 0 && wish.new_length > wish.old_length;
        if !fault || !grows || self.outcome.cost.injected == 0 {
            return Ok(registers);
        }
        let pid = self.threads.live.get(&tid).map_or(tid, |t| t.pid);
        let mappings = proc_maps::read_mappings(pid);
        let mappings: Vec<_> = mappings.iter().map(|m| (m.address, m.length)).collect();
        let parts = mapped_parts(&mappings, wish);
        if parts.len() < 2 {
            return Ok(registers);
        }
        let answer = match wish.may_move {
            true => self.grow_by_parts(tid, wish, &parts)?,
            false => -i64::from(libc::ENOMEM),
        };
        let mended = Registers {
            rax: answer.cast_unsigned(),
            ..registers
        };
        ptrace::set_registers(tid, &mended)?;
        Ok(mended)
    }

    /// Finds room, moves part by part there, the last one with what is new.
    fn grow_by_parts(
        &mut self,
        tid: Tid,
        wish: MremapRequest,
        parts: &[(u64, u64)],
    ) -> io::Result<i64> {
        let no_memory = -i64::from(libc::ENOMEM);
        let Some((vdso, syscall)) = self.syscall_address(tid) else {
            return Ok(no_memory);
        };
        let mut thread = BorrowedThread::borrow(tid, vdso + syscall, &mut self.queue)?;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let nothing = u64::from(libc::PROT_NONE.unsigned_abs());
        let room = [
            0,
            wish.new_length,
            nothing,
            u64::from(flags.unsigned_abs()),
            u64::MAX,
            0,
        ];
        let room = thread.make_syscall(libc::SYS_mmap, room)?;
        let mut answer = room;
        let to = room.cast_unsigned();
        let flags = u64::from((libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED).unsigned_abs());
        for &(start, length) in parts.iter().filter(|_| room >= 0) {
            let offset = start - wish.old;
            let last = offset + length == wish.old_length;
            let longer = if last {
                wish.new_length - offset
            } else {
                length
            };
            let moved = thread.make_syscall(
                libc::SYS_mremap,
                [start, length, longer, flags, to + offset, 0],
            )?;
            answer = answer.min(moved);
        }
        thread.give_back(false)?;
        self.outcome.cost.injected += 1 + parts.len() as u64;
        Ok(if answer < 0 { no_memory } else { room })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(mappings: &[(u64, u64)], old: (u64, u64), expected: &[(u64, u64)]) {
        let wish = MremapRequest {
            old: old.0,
            old_length: old.1,
            new_length: 2 * old.1,
            may_move: true,
        };
        assert_eq!(mapped_parts(mappings, wish), expected);
    }

    #[test]
    fn what_a_range_is_made_of() {
        check(
            &[(0x1000, 0x1000), (0x2000, 0x2000)],
            (0x1000, 0x3000),
            &[(0x1000, 0x1000), (0x2000, 0x2000)],
        );
        check(&[(0x1000, 0x9000)], (0x2000, 0x3000), &[(0x2000, 0x3000)]);
        check(
            &[(0x1000, 0x2000), (0x3000, 0x9000)],
            (0x2000, 0x2000),
            &[(0x2000, 0x1000), (0x3000, 0x1000)],
        );
        check(&[(0x1000, 0x1000), (0x3000, 0x1000)], (0x1000, 0x3000), &[]);
        check(&[], (0x1000, 0x3000), &[]);
    }
}
