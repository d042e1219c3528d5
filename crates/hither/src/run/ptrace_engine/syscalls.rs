//! The system calls that the filter stops at: what changes the program's mappings, what
//! asks or says where its threads may run, what we must know before we call on its behalf.
use std::io;

use hither_sys::affinity::CpuMask;
use hither_sys::ptrace::{self, Registers, ResumeMode};
use nix::errno::Errno;
use nix::libc;

use super::pending::PendingSyscall;
use super::PtraceEngine;
use crate::follow::affinity_reply;
use crate::follow::proc_maps::{whole_pages, MappedFile, MemoryMapping};
use crate::run::exec_image;
use crate::run::guide::PageBind;
use hither_sys::Tid;

/// CLONE_UNTRACED.
const CLONE_UNTRACED: u64 = libc::CLONE_UNTRACED.unsigned_abs() as u64;

/// A number of a system call that has an error for us.
fn is_error(registers: &Registers) -> bool {
    (-4095..0).contains(&registers.rax.cast_signed())
}

/// The low half of a register, as an int argument is read.
fn int_argument(register: u64) -> i32 {
    u32::try_from(register & 0xffff_ffff)
        .unwrap_or(0)
        .cast_signed()
}

impl PtraceEngine<'_> {
    /// A thread is about to make a call of interest.
    pub(super) fn syscall_entry(&mut self, tid: Tid) -> io::Result<()> {
        let registers = ptrace::registers(tid)?;
        let pid = self.threads.live.get(&tid).map_or(tid, |t| t.pid);
        let target = |id: u64| {
            if int_argument(id) == 0 {
                tid
            } else {
                int_argument(id)
            }
        };
        let call = match registers.orig_rax.cast_signed() {
            libc::SYS_mmap => PendingSyscall::Map {
                file: (int_argument(registers.r10) & libc::MAP_ANONYMOUS == 0)
                    .then(|| {
                        exec_image::open_file(pid, tid, int_argument(registers.r8), registers.r9)
                    })
                    .flatten(),
            },
            libc::SYS_munmap => PendingSyscall::Unmap {
                address: registers.rdi,
                length: whole_pages(registers.rsi),
            },
            libc::SYS_mremap => PendingSyscall::Remap,
            libc::SYS_brk => PendingSyscall::Brk,
            libc::SYS_shmat => PendingSyscall::Attach,
            libc::SYS_shmdt => match exec_image::attached_segment(pid, registers.rdi) {
                Some(MemoryMapping {
                    address, length, ..
                }) => PendingSyscall::Unmap { address, length },
                None => return ptrace::resume(tid, ResumeMode::Cont, 0),
            },
            libc::SYS_sched_setaffinity => PendingSyscall::SetAffinity(target(registers.rdi)),
            libc::SYS_sched_getaffinity => {
                return self.answer_affinity(tid, target(registers.rdi), registers);
            }
            libc::SYS_clone => {
                // Under the filter, an untraced thread would have no tracer to answer its calls.
                let followed = Registers {
                    rdi: registers.rdi & !CLONE_UNTRACED,
                    ..registers
                };
                ptrace::set_registers(tid, &followed)?;
                return ptrace::resume(tid, ResumeMode::Cont, 0);
            }
            other => {
                self.note_syscall(tid, other);
                return ptrace::resume(tid, ResumeMode::Cont, 0);
            }
        };
        self.pending.insert(tid, call);
        ptrace::resume(tid, ResumeMode::Syscall, 0)
    }

    /// Calls that succeed or fail without us, but have consequences.
    fn note_syscall(&mut self, tid: Tid, number: i64) {
        let Some(thread) = self.threads.live.get(&tid) else {
            return;
        };
        if number == libc::SYS_ptrace {
            self.note("the program tried to follow processes itself, as strace and gdb do, which fails for those that hither follows; start hither under it instead of it under hither".to_string());
        } else if let Some(process) = self.processes.get_mut(&thread.pid) {
            process.filters_syscalls = true;
        }
    }

    /// Tells a thread the mask that `target` would have without us: a runtime that counts
    /// its processing units is not to find one.
    fn answer_affinity(&mut self, tid: Tid, target: Tid, registers: Registers) -> io::Result<()> {
        let thread = self.threads.live.get(&target).filter(|t| t.pinned);
        let Some(thread) = thread else {
            return ptrace::resume(tid, ResumeMode::Cont, 0);
        };
        let length = usize::try_from(registers.rsi & 0xffff_ffff).unwrap_or(0);
        let answer = match affinity_reply::bytes(target, length, &thread.original_mask) {
            Ok(bytes) => match affinity_reply::write(tid, registers.rdx, &bytes) {
                Ok(length) => length,
                Err(Errno::EPERM) => return ptrace::resume(tid, ResumeMode::Cont, 0),
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
        ptrace::resume(tid, ResumeMode::Cont, 0)
    }

    /// The call is done and the thread stands right behind it.
    pub(super) fn syscall_exit(&mut self, tid: Tid) -> io::Result<()> {
        match self.pending.remove(&tid) {
            Some(PendingSyscall::Exec { former }) => self.exec_finished(tid, former)?,
            Some(call) => {
                let mut registers = ptrace::registers(tid)?;
                if matches!(call, PendingSyscall::Remap) && is_error(&registers) {
                    registers = self.redo_mremap(tid, registers)?;
                }
                if !is_error(&registers) {
                    self.syscall_succeeded(tid, call, &registers)?;
                }
            }
            None => {}
        }
        ptrace::resume(tid, ResumeMode::Cont, 0)
    }

    fn syscall_succeeded(
        &mut self,
        tid: Tid,
        call: PendingSyscall,
        registers: &Registers,
    ) -> io::Result<()> {
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
            PendingSyscall::Brk => (self.guide.heap_moved(tid, result), false),
            PendingSyscall::Attach => {
                let pid = self.threads.live.get(&tid).map_or(tid, |t| t.pid);
                let mapping = exec_image::attached_segment(pid, result);
                let binds = mapping.map(|m| self.guide.mapped(tid, &m));
                (binds.unwrap_or_default(), true)
            }
            // It has no answer of its own: the image is all there is.
            PendingSyscall::Exec { .. } => return Ok(()),
            PendingSyscall::SetAffinity(target) => {
                self.affinity_set_by_program(target);
                (Vec::new(), false)
            }
        };
        self.bind_pages(tid, &binds, touched, false)
    }

    fn mapped(
        &mut self,
        tid: Tid,
        file: Option<MappedFile>,
        registers: &Registers,
    ) -> (Vec<PageBind>, bool) {
        let mapping = MemoryMapping {
            address: registers.rax,
            length: whole_pages(registers.rsi),
            prot: int_argument(registers.rdx),
            flags: int_argument(registers.r10),
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
    fn affinity_set_by_program(&mut self, tid: Tid) {
        let Ok(mask) = CpuMask::of_thread(tid) else {
            return;
        };
        let free = mask == self.allowed;
        self.threads.note_own_mask(tid, mask, !free);
        if let (true, Err(note)) = (free, self.threads.apply_mask(tid)) {
            self.note(note);
        }
    }
}
