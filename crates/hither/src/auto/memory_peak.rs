//! How much memory the processes had at most. The pages that faulted do not tell: one fault brings all of a huge
//! page, and many pages of a file.
use std::time::{Duration, Instant};

use crate::follow::procfs;
use hither_sys::Pid;

/// Between two looks, for each process: some 20 us are spent on one.
const PAUSE: Duration = Duration::from_millis(20);

#[derive(Debug, Default)]
pub struct MemoryPeak {
    pub bytes: u64,
    next: Option<Instant>,
}

impl MemoryPeak {
    /// Looks at all processes, if it is time. What several may share counts once, as much as one of them has.
    pub fn look(&mut self, processes: impl Iterator<Item = Pid>) {
        if self.next.is_some_and(|next| Instant::now() < next) {
            return;
        }
        let (mut own, mut shared, mut looks) = (0, 0, 0);
        for memory in processes.filter_map(procfs::resident_memory) {
            own += memory.own;
            shared = memory.shared.max(shared);
            looks += 1;
        }
        self.bytes = self.bytes.max(own + shared);
        self.next = Some(Instant::now() + PAUSE * looks);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_is_given_back_has_been_used() {
        let mut peak = MemoryPeak::default();
        let own = std::process::id().cast_signed();
        peak.look([own].into_iter());
        let before = peak.bytes;
        assert!(before > 0);
        let memory = vec![1_u8; 64 << 20];
        assert_eq!(memory.iter().map(|&b| u64::from(b)).sum::<u64>(), 64 << 20);
        std::thread::sleep(PAUSE * 2);
        peak.look([own, own].into_iter());
        drop(memory);
        let with = peak.bytes;
        // Twice its own, once what it may share.
        assert!(with >= before + (128 << 20), "{before} {with}");
        std::thread::sleep(PAUSE * 4);
        peak.look([own].into_iter());
        assert_eq!(peak.bytes, with);
    }
}
