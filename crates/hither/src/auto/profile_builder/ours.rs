//! Threads of hither's inside the program (of the samplers that enter it) are taken for the
//! program's until hither knows their ids. They are none of its profile.
use hither_profile::{Profile, ThreadIx};

/// Leaves these threads out and numbers the others anew.
pub fn leave_out(profile: &mut Profile, ours: &[ThreadIx]) {
    if ours.is_empty() {
        return;
    }
    let is_ours = |at: usize| ours.iter().any(|thread| thread.at() == at);
    let mut next = 0..;
    let count = profile.threads.len();
    let numbers = (0..count).map(|at| if is_ours(at) { None } else { next.next() });
    let numbers: Vec<Option<u32>> = numbers.collect();
    let new = |thread: ThreadIx| numbers.get(thread.at()).copied().flatten().map(ThreadIx);
    let known = |thread: &mut ThreadIx| match new(*thread) {
        Some(number) => {
            *thread = number;
            true
        }
        None => false,
    };
    let mut at = 0..count;
    profile
        .threads
        .retain(|_| at.next().is_some_and(|at| !is_ours(at)));
    for thread in &mut profile.threads {
        thread.creator = thread.creator.and_then(new);
    }
    for region in &mut profile.regions {
        region.thread = region.thread.and_then(new);
    }
    profile
        .comm
        .retain_mut(|row| known(&mut row.i) && known(&mut row.j));
    profile.pages.retain_mut(|row| known(&mut row.thread));
    profile.first_touch.retain_mut(|row| known(&mut row.thread));
    profile
        .thread_moves
        .retain_mut(|row| known(&mut row.thread));
}

#[cfg(test)]
mod tests {
    use super::*;
    use hither_profile::{Comm, FirstTouch, PageUse, Region, Thread, ThreadMove};

    #[test]
    fn the_others_have_the_numbers_that_they_would_have() {
        let thread = |tid, creator: Option<u32>| Thread {
            tid,
            creator: creator.map(ThreadIx),
            ..Thread::default()
        };
        let comm = |i, j| Comm {
            i: ThreadIx(i),
            j: ThreadIx(j),
            ..Comm::default()
        };
        let page = |thread, reads| PageUse {
            thread: ThreadIx(thread),
            reads,
            ..PageUse::default()
        };
        let first = |thread| FirstTouch {
            thread: ThreadIx(thread),
            ..FirstTouch::default()
        };
        let moved = |thread| ThreadMove {
            thread: ThreadIx(thread),
            ..ThreadMove::default()
        };
        let mut profile = Profile {
            threads: vec![
                thread(10, None),
                thread(99, Some(0)),
                thread(11, Some(0)),
                thread(12, Some(2)),
                thread(13, Some(1)),
            ],
            comm: vec![comm(0, 1), comm(0, 2), comm(2, 3)],
            pages: vec![page(0, 5), page(1, 6), page(4, 7)],
            first_touch: vec![first(1), first(3)],
            thread_moves: vec![moved(2)],
            regions: vec![Region {
                thread: Some(ThreadIx(1)),
                ..Region::default()
            }],
            ..Profile::default()
        };
        let whole = profile.clone();
        leave_out(&mut profile, &[]);
        assert_eq!(profile, whole);
        leave_out(&mut profile, &[ThreadIx(1)]);
        let expected = [
            thread(10, None),
            thread(11, Some(0)),
            thread(12, Some(1)),
            thread(13, None),
        ];
        assert_eq!(profile.threads, expected);
        assert_eq!(profile.comm, [comm(0, 1), comm(1, 2)]);
        assert_eq!(profile.pages, [page(0, 5), page(3, 7)]);
        assert_eq!(profile.first_touch, [first(2)]);
        assert_eq!(profile.thread_moves, [moved(1)]);
        assert_eq!(profile.regions[0].thread, None);
    }
}
