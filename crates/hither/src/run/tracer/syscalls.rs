//! The system calls that the filter stops at: what changes the program's mappings, what
//! asks or says where its threads may run, what we must know before we call on its behalf.
use std::io;

use hither_sys::affinity::Mask;
use hither_sys::ptrace::{self, Registers, Until};
use nix::errno::Errno;
use nix::libc;

use super::pending::PendingSyscall;
use super::Engine;
use crate::follow::affinity_reply;
use crate::follow::proc_maps::{whole_pages, MappedFile, Mapping};
use crate::run::exec_image;
use crate::run::guide::Bind;
use hither_sys::Tid;

/// CLONE_UNTRACED.
const UNTRACED: u64 = libc::CLONE_UNTRACED.unsigned_abs() as u64;

/// A number of a system call that has an error for us.
fn failed(registers: &Registers) -> bool {
    (-4095..0).contains(&registers.rax.cast_signed())
}

/// The low half of a register, as an int argument is read.
fn int(register: u64) -> i32 {
    u32::try_from(register & 0xffff_ffff)
        .unwrap_or(0)
        .cast_signed()
}

impl Engine<'_> {
    /// A thread is about to make a call of interest.
    pub(super) fn before_call(&mut self, tid: Tid) -> io::Result<()> {
        let registers = ptrace::registers(tid)?;
        let pid = self.threads.live.get(&tid).map_or(tid, |t| t.pid);
        let target = |id: u64| if int(id) == 0 { tid } else { int(id) };
        let call = match registers.orig_rax.cast_signed() {
            libc::SYS_mmap => PendingSyscall::Map {
                file: (int(registers.r10) & libc::MAP_ANONYMOUS == 0)
                    .then(|| exec_image::file(pid, tid, int(registers.r8), registers.r9))
                    .flatten(),
            },
            libc::SYS_munmap => PendingSyscall::Unmap {
                address: registers.rdi,
                length: whole_pages(registers.rsi),
            },
            libc::SYS_mremap => PendingSyscall::Remap,
            libc::SYS_brk => PendingSyscall::Brk,
            libc::SYS_shmat => PendingSyscall::Attach,
            libc::SYS_shmdt => match exec_image::attached(pid, registers.rdi) {
                Some(Mapping {
                    address, length, ..
                }) => PendingSyscall::Unmap { address, length },
                None => return ptrace::resume(tid, Until::Event, 0),
            },
            libc::SYS_sched_setaffinity => PendingSyscall::SetAffinity(target(registers.rdi)),
            libc::SYS_sched_getaffinity => {
                return self.answer_affinity(tid, target(registers.rdi), registers);
            }
            libc::SYS_clone => {
                // It would be under the filter with nobody to answer.
                let followed = Registers {
                    rdi: registers.rdi & !UNTRACED,
                    ..registers
                };
                ptrace::set_registers(tid, &followed)?;
                return ptrace::resume(tid, Until::Event, 0);
            }
            other => {
                self.remark(tid, other);
                return ptrace::resume(tid, Until::Event, 0);
            }
        };
        self.doing.insert(tid, call);
        ptrace::resume(tid, Until::Syscall, 0)
    }

    /// Calls that succeed or fail without us, but have consequences.
    fn remark(&mut self, tid: Tid, number: i64) {
        let Some(thread) = self.threads.live.get(&tid) else {
            return;
        };
        if number == libc::SYS_ptrace {
            self.note("the program tried to follow processes itself, as strace and gdb do, which fails for those that hither follows; start hither under it instead of it under hither".to_string());
        } else if let Some(process) = self.processes.get_mut(&thread.pid) {
            process.shut_in = true;
        }
    }

    /// Tells a thread the mask that `target` would have without us: a runtime that counts
    /// its processing units is not to find one.
    fn answer_affinity(&mut self, tid: Tid, target: Tid, registers: Registers) -> io::Result<()> {
        let thread = self.threads.live.get(&target).filter(|t| t.pinned);
        let Some(thread) = thread else {
            return ptrace::resume(tid, Until::Event, 0);
        };
        let length = usize::try_from(registers.rsi & 0xffff_ffff).unwrap_or(0);
        let answer = match affinity_reply::bytes(target, length, &thread.natural) {
            Ok(bytes) => match affinity_reply::write(tid, registers.rdx, &bytes) {
                Ok(length) => length,
                Err(Errno::EPERM) => return ptrace::resume(tid, Until::Event, 0),
                Err(_) => -i64::from(libc::EFAULT),
            },
            Err(error) => -i64::from(error.raw_os_error().unwrap_or(libc::EINVAL)),
        };
        let skipped = Registers {
            orig_rax: u64::MAX,
            rax: answer.cast_unsigned(),
            ..registers
        };
        ptrace::set_registers(tid, &skipped)?;
        ptrace::resume(tid, Until::Event, 0)
    }

    /// The call is done and the thread stands right behind it.
    pub(super) fn after_call(&mut self, tid: Tid) -> io::Result<()> {
        match self.doing.remove(&tid) {
            Some(PendingSyscall::Exec { former }) => self.image(tid, former)?,
            Some(call) => {
                let mut registers = ptrace::registers(tid)?;
                if matches!(call, PendingSyscall::Remap) && failed(&registers) {
                    registers = self.mend_mremap(tid, registers)?;
                }
                if !failed(&registers) {
                    self.called(tid, call, &registers)?;
                }
            }
            None => {}
        }
        ptrace::resume(tid, Until::Event, 0)
    }

    fn called(&mut self, tid: Tid, call: PendingSyscall, registers: &Registers) -> io::Result<()> {
        let result = registers.rax;
        self.outcome.cost.mappings += u64::from(!matches!(call, PendingSyscall::SetAffinity(_)));
        let (binds, touched) = match call {
            PendingSyscall::Map { file } => self.mapped(tid, file, registers),
            PendingSyscall::Unmap { address, length } => {
                (self.guide.unmapped(tid, address, length), true)
            }
            PendingSyscall::Remap => {
                let old = (registers.rdi, whole_pages(registers.rsi));
                let new = (result, whole_pages(registers.rdx));
                (self.guide.remapped(tid, old, new), true)
            }
            PendingSyscall::Brk => (self.guide.brk(tid, result), false),
            PendingSyscall::Attach => {
                let pid = self.threads.live.get(&tid).map_or(tid, |t| t.pid);
                let mapping = exec_image::attached(pid, result);
                let binds = mapping.map(|m| self.guide.mapped(tid, &m));
                (binds.unwrap_or_default(), true)
            }
            // It has no answer of its own: the image is all there is.
            PendingSyscall::Exec { .. } => return Ok(()),
            PendingSyscall::SetAffinity(target) => {
                self.chosen(target);
                (Vec::new(), false)
            }
        };
        self.bind(tid, &binds, touched, false)
    }

    fn mapped(
        &mut self,
        tid: Tid,
        file: Option<MappedFile>,
        registers: &Registers,
    ) -> (Vec<Bind>, bool) {
        let mapping = Mapping {
            address: registers.rax,
            length: whole_pages(registers.rsi),
            prot: int(registers.rdx),
            flags: int(registers.r10),
            file,
        };
        let populated = mapping.flags & (libc::MAP_POPULATE | libc::MAP_LOCKED) != 0;
        // The page cache may hold pages of files already.
        let touched = populated || mapping.file.is_some();
        self.ticks
            .mapped(self.threads.live.get(&tid).map_or(tid, |t| t.pid), &mapping);
        (self.guide.mapped(tid, &mapping), touched)
    }

    /// Thread `tid` has a mask of the program's own choice. Whatever was allowed from the
    /// start is no choice: so libraries put back what they changed for a moment.
    fn chosen(&mut self, tid: Tid) {
        let Ok(mask) = Mask::of(tid) else {
            return;
        };
        let free = mask == self.allowed;
        self.threads.chose(tid, mask, !free);
        if let (true, Err(note)) = (free, self.threads.settle(tid)) {
            self.note(note);
        }
    }
}
