//! Which threads follow one another in the same role, by how the tracer saw them created.
use hither_profile::{RoleFinder, ThreadIx};
use hither_sys::wire::SegmentThread;
use hither_sys::Segment;

/// By slot below `next`, from 1: the first thread of its role, `None` where it is the first itself.
/// Threads that nobody is known to have created are no others' successors.
pub fn roles(segment: &Segment, next: u32) -> Vec<Option<ThreadIx>> {
    let threads: Vec<SegmentThread> = (1..next).map(|slot| segment.thread(slot)).collect();
    let mut finder = RoleFinder::default();
    let mut roles: Vec<ThreadIx> = Vec::with_capacity(threads.len());
    for (thread, at) in threads.iter().zip((0..).map(ThreadIx)) {
        let creator = thread.creator.checked_sub(1).map(ThreadIx);
        let role = match creator.and_then(|c| roles.get(c.at())) {
            Some(&parent) => {
                let family = (parent, thread.created_at, thread.start_routine);
                let is_gone = |other: ThreadIx| is_gone_before(&threads[other.at()], at.0 + 1);
                finder.role_of(family, at, is_gone)
            }
            None => at,
        };
        roles.push(role);
    }
    let numbered = roles.into_iter().zip((0..).map(ThreadIx));
    numbered
        .map(|(role, at)| (role != at).then_some(role))
        .collect()
}

/// Whether it had ended, and whoever waits for it knew, when the thread in `slot` was created. A
/// thread for which nobody waits is gone when it ends.
fn is_gone_before(thread: &SegmentThread, slot: u32) -> bool {
    thread.ended != 0 && thread.ended.max(thread.joined) <= slot
}
