//! mremap(2) over memory that we have bound. A mapping whose parts belong on different
//! nodes is several mappings for the kernel, which enlarges only one: it says EFAULT where
//! it would have done so without us. Then we do it, in the same steps.
use std::io;

use nix::libc;

use super::Engine;
use crate::follow::proc_maps::{self, whole_pages};
use crate::follow::remote_syscall::Borrowed;
use hither_sys::ptrace::{self, Registers};
use hither_sys::Tid;

/// What was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Wish {
    old: u64,
    old_length: u64,
    new_length: u64,
    may_move: bool,
}

/// Parts [start, length) that the range is made of; empty when there is a hole in it.
fn parts(mappings: &[(u64, u64)], wish: Wish) -> Vec<(u64, u64)> {
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

impl Engine<'_> {
    /// mremap failed in thread `tid`. Where it was our fault, does what it asked for and
    /// changes its answer; the registers as they are then.
    pub(super) fn mend_mremap(&mut self, tid: Tid, registers: Registers) -> io::Result<Registers> {
        let wish = Wish {
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
        let mappings = proc_maps::mappings(pid);
        let mappings: Vec<_> = mappings.iter().map(|m| (m.address, m.length)).collect();
        let parts = parts(&mappings, wish);
        if parts.len() < 2 {
            return Ok(registers);
        }
        let answer = match wish.may_move {
            true => self.enlarge(tid, wish, &parts)?,
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
    fn enlarge(&mut self, tid: Tid, wish: Wish, parts: &[(u64, u64)]) -> io::Result<i64> {
        let no_memory = -i64::from(libc::ENOMEM);
        let Some((vdso, syscall)) = self.lender(tid) else {
            return Ok(no_memory);
        };
        let mut thread = Borrowed::take(tid, vdso + syscall, &mut self.queue)?;
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
        let room = thread.call(libc::SYS_mmap, room)?;
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
            let moved = thread.call(
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
        let wish = Wish {
            old: old.0,
            old_length: old.1,
            new_length: 2 * old.1,
            may_move: true,
        };
        assert_eq!(parts(mappings, wish), expected);
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
