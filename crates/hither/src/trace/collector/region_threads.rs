//! Regions that are threads' stacks, and whose mappings are whose.
use super::memory_budget::BLOCK_BYTES;
use super::regions::{thread_ix, RegionMap};
use super::thread_locals::MOST_COPIES;
use super::thread_rows::ThreadNumbers;
use hither_profile::RegionKind;

impl RegionMap {
    /// A thread started with its stack pointer here: what it points into is its stack.
    pub fn add_thread_stack(&mut self, process: u32, thread: u32, stack_pointer: u64) {
        let Some((region, offset)) = self.locate(process, stack_pointer.saturating_sub(1)) else {
            return;
        };
        let known = &mut self.all[region as usize];
        let stack = &mut known.region;
        // Stacks grow down from the end of their mapping; Go's lie somewhere in its heap.
        if offset < stack.size / 4 * 3 {
            return;
        }
        let free = stack.kind == RegionKind::Mmap
            || stack.kind == RegionKind::Stack && stack.thread.is_none();
        if free && known.anonymous {
            stack.kind = RegionKind::Stack;
            stack.thread = thread_ix(thread);
        } else if stack.kind == RegionKind::Stack && stack.thread != thread_ix(thread) {
            known.used_again = true;
        }
    }

    /// A thread has its thread-local variables around an address.
    pub fn add_thread_locals(&mut self, process: u32, thread: u32, address: u64) {
        if let Some((region, _)) = self.locate(process, address) {
            self.thread_locals.regions.insert(thread, region);
        }
    }

    /// A thread has a copy of a structure, of which the process and record are given, at an address of a process.
    pub fn add_thread_local_copy(
        &mut self,
        structure: (u32, u32),
        (process, address): (u32, u64),
        size: u64,
    ) {
        if self.thread_locals.copies.len() == MOST_COPIES {
            return;
        }
        if let Some((region, offset)) = self.locate(process, address) {
            let copies = &mut self.thread_locals.copies;
            if copies.insert((structure, region, offset, size)) {
                self.budget.spend(BLOCK_BYTES);
            }
        }
    }

    /// The threads of the run have their numbers now.
    pub fn number_threads(&mut self, numbers: &ThreadNumbers) {
        for known in &mut self.all {
            let key = known.region.thread.map(|thread| thread.0 + 1);
            known.region.thread = key.and_then(|key| numbers.of_key(key));
        }
    }
}
