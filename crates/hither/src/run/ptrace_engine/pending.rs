//! What a thread is in the middle of.
use crate::follow::proc_maps::MappedFile;
use hither_sys::Tid;

/// A system call that is being made, with what is needed once it is done.
#[derive(Clone, Debug)]
pub enum PendingSyscall {
    Exec {
        former: Tid,
    },
    Map {
        file: Option<MappedFile>,
    },
    Unmap {
        address: u64,
        length: u64,
    },
    Remap,
    Brk,
    Attach,
    /// sched_setaffinity of this thread.
    SetAffinity(Tid),
}
