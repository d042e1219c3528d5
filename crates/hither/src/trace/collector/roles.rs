//! Which threads follow one another in the same role, by how the tracer saw them created.
use super::thread_rows::{ThreadNumbers, ThreadRow, ThreadRows};
use hither_profile::{RoleFinder, ThreadIx};

/// The first thread of the role of each, `None` where it is the first itself. Threads that nobody is
/// known to have created are no others' successors.
pub fn roles(rows: &ThreadRows, numbers: &ThreadNumbers) -> Vec<Option<ThreadIx>> {
    let threads: Vec<&ThreadRow> = numbers.keys.iter().map(|&key| rows.row(key)).collect();
    let mut finder = RoleFinder::default();
    let mut roles: Vec<ThreadIx> = Vec::with_capacity(threads.len());
    for (thread, at) in threads.iter().zip((0..).map(ThreadIx)) {
        let creator = numbers.of_serial(thread.creator);
        let role = match creator.and_then(|c| roles.get(c.at())) {
            Some(&parent) => {
                let family = (parent, thread.created_at, thread.start_routine);
                let is_gone = |other: ThreadIx| is_gone_before(threads[other.at()], thread.serial);
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

/// Whether it had ended, and whoever waits for it knew, when that with this serial was created. A
/// thread for which nobody waits is gone when it ends.
fn is_gone_before(thread: &ThreadRow, serial: u32) -> bool {
    thread.ended != 0 && thread.ended.max(thread.joined) <= serial
}
