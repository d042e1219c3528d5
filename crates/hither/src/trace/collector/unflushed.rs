//! What a thread that could not flush itself still had in its line caches.
//!
//! An entry's accesses owe communication as `struct hi_side` in wire.h says. Of n
//! accesses the first owes one event to x and one to y; every later one owes one event
//! to the thread that was last seen joining the line: x until access s1, then z1, and after s2
//! z2.
use hither_sys::{wire, Segment};

/// Calls `owe(thread, sixths)` for what `accesses` to one line owe to others.
pub fn credit_sharers(accesses: u64, side: &wire::SideRecord, mut owe: impl FnMut(u32, u64)) {
    if accesses == 0 {
        return;
    }
    let [x, y, z1, z2] = [side.x, side.y, side.z1, side.z2].map(u32::from);
    let unit = wire::COMM_UNIT;
    let mut pay = |to: u32, sixths: u64| {
        if to != 0 {
            owe(to, sixths);
        }
    };
    pay(x, unit);
    pay(y, unit);
    let p1 = if z1 == 0 {
        accesses
    } else {
        u64::from(side.s1).clamp(1, accesses)
    };
    let p2 = if z1 == 0 || z2 == 0 {
        accesses
    } else {
        u64::from(side.s2).clamp(p1, accesses)
    };
    pay(x, unit * (p1 - 1));
    pay(z1, unit * (p2 - p1));
    pay(z2, unit * (accesses - p2));
}

/// How many of the accesses were made while another thread used the line as well.
pub fn shared_accesses(accesses: u64, side: &wire::SideRecord) -> u64 {
    if side.x != 0 {
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

/// Everything left in the caches of a thread that still owns its arena.
pub fn for_each_unflushed(
    segment: &Segment,
    thread: &wire::SegmentThread,
    mut each: impl FnMut(UnflushedEntry),
) {
    if thread.owns_arena != 1 {
        return;
    }
    segment.for_each_unflushed_entry(thread, |entry, side| {
        each(UnflushedEntry {
            page: side.page(),
            line: entry.tag & wire::TAG_LINE,
            exact: entry.tag & wire::EXACT != 0,
            reads: entry.reads.into(),
            writes: entry.writes.into(),
            side,
        });
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn check(accesses: u64, f: [u16; 4], s: [u32; 2], expected: &[(u32, u64)]) {
        let side = wire::SideRecord {
            x: f[0],
            y: f[1],
            z1: f[2],
            z2: f[3],
            s1: s[0],
            s2: s[1],
            ..wire::SideRecord::default()
        };
        let mut owed = BTreeMap::new();
        credit_sharers(accesses, &side, |to, sixths| {
            *owed.entry(to).or_insert(0) += sixths
        });
        owed.retain(|_, sixths| *sixths > 0);
        assert_eq!(
            owed,
            expected.iter().copied().collect(),
            "{accesses} {f:?} {s:?}"
        );
    }

    #[test]
    fn shared_counts_from_the_first_joiner_on() {
        let side = |x, z1, s1| wire::SideRecord {
            x,
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
    fn credit_follows_the_side_record() {
        check(0, [1, 2, 0, 0], [0, 0], &[]);
        check(5, [0, 0, 0, 0], [0, 0], &[]);
        check(1, [1, 2, 0, 0], [0, 0], &[(1, 6), (2, 6)]);
        check(10, [1, 2, 0, 0], [0, 0], &[(1, 60), (2, 6)]);
        check(10, [1, 0, 3, 0], [4, 0], &[(1, 24), (3, 36)]);
        check(10, [0, 0, 3, 0], [4, 0], &[(3, 36)]);
        check(10, [3, 0, 3, 0], [4, 0], &[(3, 60)]);
        check(
            10,
            [1, 2, 3, 4],
            [4, 7],
            &[(1, 24), (2, 6), (3, 18), (4, 18)],
        );
        check(10, [1, 0, 3, 1], [4, 7], &[(1, 24 + 18), (3, 18)]);
        check(10, [0, 0, 0, 4], [4, 7], &[]);
        check(3, [1, 0, 3, 4], [900, 0], &[(1, 18)]);
    }
}
