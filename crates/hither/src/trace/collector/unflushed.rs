//! What a thread that could not flush itself still had in its line caches.
//!
//! An entry's accesses credit communication as `struct hi_side` in wire.h says.
use super::deadline::Deadline;
use hither_profile::PAGE_SIZE;
use hither_sys::{wire, Segment};
use std::collections::HashSet;

/// Calls `credit(thread, events)` for what `accesses` to one line credit to `others`, who used it before,
/// and to those who joined it meanwhile.
pub fn credit_sharers(
    accesses: u64,
    side: &wire::SideRecord,
    others: &[u32],
    mut credit: impl FnMut(u32, u64),
) {
    for &other in others {
        credit(other, accesses);
    }
    for (joined, after) in [(side.z1, side.s1), (side.z2, side.s2)] {
        if joined != 0 {
            credit(joined.into(), accesses.saturating_sub(after.into()));
        }
    }
}

/// What was done with shared lines by threads that could not flush themselves.
#[derive(Default)]
pub struct UnflushedUses(Vec<(LineOfSlice, u32, wire::LineUseCount)>);

/// Epoch, page and offset in the page.
type LineOfSlice = (u32, u32, u32);

impl UnflushedUses {
    /// Adds an entry of a thread slot that was in the slice of `epoch`.
    pub fn add(&mut self, epoch: u32, slot: u32, left: &UnflushedEntry) {
        if left.side.others == 0 && left.side.z1 == 0 {
            return;
        }
        let before = left.continued;
        let count =
            |before: u32, more: u64| before.saturating_add(u32::try_from(more).unwrap_or(u32::MAX));
        let done = wire::LineUseCount {
            accesses: count(before.accesses, left.reads + left.writes),
            writes: count(before.writes, left.writes),
        };
        self.add_uses(epoch, slot, (left.page, left.line), done);
    }

    /// Adds a line that had left the line cache of such a thread.
    pub fn add_left(&mut self, epoch: u32, slot: u32, left: &wire::LeftLine) {
        self.add_uses(epoch, slot, (left.page, left.line()), left.uses);
    }

    fn add_uses(
        &mut self,
        epoch: u32,
        slot: u32,
        (page, line): (u32, u64),
        done: wire::LineUseCount,
    ) {
        let offset = (line % PAGE_SIZE) as u32;
        self.0.push(((epoch, page, offset), slot, done));
    }

    /// Calls `credit(thread, other, events)` for the coherence events of those that share a line: the others
    /// credited theirs when they left it.
    pub fn settle(mut self, deadline: &Deadline, mut credit: impl FnMut(u32, u32, u64)) {
        self.0.sort_unstable_by_key(|&(line, slot, _)| (line, slot));
        // A thread has a line once in its line cache, and once among those that left it. Where the entries
        // are forged it may have it more often: then every pair would be looked at.
        self.0.dedup_by(|next, kept| {
            let same = (next.0, next.1) == (kept.0, kept.1);
            if same {
                kept.2.accesses = kept.2.accesses.saturating_add(next.2.accesses);
                kept.2.writes = kept.2.writes.saturating_add(next.2.writes);
            }
            same
        });
        for users in self.0.chunk_by(|a, b| a.0 == b.0) {
            for (at, (_, a, of_a)) in users.iter().enumerate() {
                if deadline.passed() {
                    return;
                }
                for (_, b, of_b) in &users[at + 1..] {
                    credit(*a, *b, coherence_events(*of_a, *of_b));
                }
            }
        }
    }
}

/// As `hi_coherence` in credit.h.
fn coherence_events(a: wire::LineUseCount, b: wire::LineUseCount) -> u64 {
    let found_changed = a.accesses.min(b.writes);
    found_changed.max(a.writes.min(b.accesses)).into()
}

/// How many of the accesses were made while another thread used the line as well.
pub fn shared_accesses(accesses: u64, side: &wire::SideRecord) -> u64 {
    if side.others != 0 {
        accesses
    } else if side.z1 != 0 {
        accesses.saturating_sub(side.s1.into())
    } else {
        0
    }
}

/// One entry that was never flushed.
pub struct UnflushedEntry {
    pub page: u32,
    /// Address of the line.
    pub line: u64,
    /// Its accesses were counted for their structures one by one.
    pub exact: bool,
    pub reads: u64,
    pub writes: u64,
    pub side: wire::SideRecord,
    /// What the entries counted that this one continues.
    pub continued: wire::LineUseCount,
    /// Threads that used the line before, in the same slice.
    pub others: Vec<u32>,
}

impl UnflushedEntry {
    /// What it counts for the structure that it was entered for, and that structure's id.
    pub fn object_count(&self) -> Option<(u32, wire::ObjectCount)> {
        let (id, n) = (self.side.object(), self.reads + self.writes);
        let count = wire::ObjectCount {
            reads: self.reads,
            writes: self.writes,
            fetches: 0,
        };
        (id != 0 && self.page != 0 && n > 0 && !self.exact).then_some((id, count))
    }
}

/// The threads that own an arena, with their slots. Of several that claim the same one, which
/// only forgery explains, the first: thousands would have us read it thousands of times.
pub fn arena_owners(segment: &Segment) -> Vec<(u32, wire::SegmentThread)> {
    let mut claimed = HashSet::new();
    let all = (1..segment.next_thread()).map(|slot| (slot, segment.thread(slot)));
    let owners = all.filter(|(_, thread)| thread.owns_arena == 1);
    owners
        .filter(|(_, thread)| claimed.insert(thread.arena))
        .collect()
}

/// Everything left in the caches of a thread that still owns its arena, as far as there is time.
pub fn for_each_unflushed(
    segment: &Segment,
    thread: &wire::SegmentThread,
    deadline: &Deadline,
    mut each: impl FnMut(UnflushedEntry),
) {
    if thread.owns_arena != 1 || deadline.passed() {
        return;
    }
    segment.for_each_unflushed_entry(thread, |entry, side| {
        if deadline.passed() {
            return;
        }
        each(UnflushedEntry {
            page: side.page(),
            line: entry.tag & wire::TAG_LINE,
            exact: entry.tag & wire::EXACT != 0,
            reads: entry.reads.into(),
            writes: entry.writes.into(),
            continued: segment.continued_use(thread, &side),
            others: segment.others(thread, &side),
            side,
        });
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn check(accesses: u64, others: &[u32], z: [u16; 2], s: [u32; 2], expected: &[(u32, u64)]) {
        let side = wire::SideRecord {
            z1: z[0],
            z2: z[1],
            s1: s[0],
            s2: s[1],
            ..wire::SideRecord::default()
        };
        let mut credited = BTreeMap::new();
        credit_sharers(accesses, &side, others, |to, events| {
            *credited.entry(to).or_insert(0) += events
        });
        credited.retain(|_, events| *events > 0);
        let expected = expected.iter().copied().collect();
        assert_eq!(credited, expected, "{accesses} {others:?} {z:?} {s:?}");
    }

    #[test]
    fn shared_counts_from_the_first_joiner_on() {
        let side = |others, z1, s1| wire::SideRecord {
            others,
            z1,
            s1,
            ..wire::SideRecord::default()
        };
        assert_eq!(shared_accesses(10, &side(0, 0, 0)), 0);
        assert_eq!(shared_accesses(10, &side(1, 0, 0)), 10);
        assert_eq!(shared_accesses(10, &side(1, 2, 4)), 10);
        assert_eq!(shared_accesses(10, &side(0, 2, 4)), 6);
        assert_eq!(shared_accesses(10, &side(0, 2, 40)), 0);
    }

    #[test]
    fn what_is_left_of_a_line_is_settled_between_all_who_left_it() {
        let entry = |page, [reads, writes]: [u64; 2]| UnflushedEntry {
            page,
            line: 0x7f00_0000_1040,
            exact: false,
            reads,
            writes,
            side: wire::SideRecord {
                others: 9,
                ..wire::SideRecord::default()
            },
            continued: wire::LineUseCount {
                accesses: 10,
                writes: 1,
            },
            others: vec![9],
        };
        let mut uses = UnflushedUses::default();
        // 110 accesses with 1 write, 40 with 31, 60 with 1; another page; another slice.
        uses.add(5, 3, &entry(64, [100, 0]));
        uses.add(5, 1, &entry(64, [0, 30]));
        uses.add(5, 2, &entry(64, [50, 0]));
        uses.add(5, 4, &entry(65, [0, 30]));
        uses.add(6, 4, &entry(64, [0, 30]));
        // One of them used it so often more before it left the line cache; another has only such uses.
        for (slot, accesses, writes) in [(1, 20, 9), (5, 50, 0)] {
            uses.add_left(
                5,
                slot,
                &wire::LeftLine {
                    key: 0x7f00_0000_1040 << 16 | 5,
                    uses: wire::LineUseCount { accesses, writes },
                    page: 64,
                    others: [0; 2],
                },
            );
        }
        let mut credited = Vec::new();
        uses.settle(&Deadline::default(), |a, b, events| {
            credited.push((a, b, events));
        });
        let expected = [(1, 2, 40), (1, 3, 40), (1, 5, 40), (2, 3, 1), (2, 5, 1)];
        assert_eq!(credited, [&expected[..], &[(3, 5, 1)]].concat());
    }

    #[test]
    fn credit_follows_the_side_record() {
        check(0, &[1, 2], [0, 0], [0, 0], &[]);
        check(5, &[], [0, 0], [0, 0], &[]);
        check(1, &[1, 2], [0, 0], [0, 0], &[(1, 1), (2, 1)]);
        check(10, &[1], [3, 0], [4, 0], &[(1, 10), (3, 6)]);
        check(10, &[], [3, 0], [4, 0], &[(3, 6)]);
        let all = [(1, 10), (2, 10), (3, 6), (4, 3)];
        check(10, &[1, 2], [3, 4], [4, 7], &all);
        check(3, &[1], [3, 4], [900, 2], &[(1, 3), (4, 1)]);
    }
}
