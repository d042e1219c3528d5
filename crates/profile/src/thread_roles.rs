//! Roles: threads that follow one another at the same work, seen as one.
//!
//! A program that makes its workers anew in every iteration has hundreds of threads, but runs a few
//! of them at a time, and each generation does what the one before did. Threads have the same role
//! if they are created by threads of the same role, at the same place of the program and to run
//! the same routine (a family, below), and each when the one before it was gone:
//!
//! ```text
//!  created by main at line 12:  1 2 3 4   5 6 7 8   9 10 11 12
//!                       roles:  a b c d   a b c d   a b  c  d
//! ```
//! A thread takes the first role of its family whose last thread is gone: it was waited for, or it
//! ended and nobody waits for it. Where there is none it begins a role.
use crate::comm::amount_and_heterogeneity;
use crate::ids::{SliceIx, ThreadIx};
use crate::tables::{PairComm, Slice, Thread};
use crate::Profile;
use std::collections::HashMap;
use std::hash::Hash;
use std::ops::Range;

/// Events of pairs of roles.
type RolePairs = Vec<(u32, u32, u64)>;

/// Finds the roles of threads as they are created.
#[derive(Clone, Debug)]
pub struct RoleFinder<F> {
    /// The first and the last thread of each role, by family.
    roles: HashMap<F, Vec<(ThreadIx, ThreadIx)>>,
}

impl<F> Default for RoleFinder<F> {
    fn default() -> Self {
        RoleFinder {
            roles: HashMap::new(),
        }
    }
}

impl<F: Eq + Hash> RoleFinder<F> {
    /// The first thread of the role that a new thread takes: itself where it begins one.
    /// `is_gone`: whether a thread can have been followed by this one.
    pub fn role_of(
        &mut self,
        family: F,
        thread: ThreadIx,
        is_gone: impl Fn(ThreadIx) -> bool,
    ) -> ThreadIx {
        let roles = self.roles.entry(family).or_default();
        if let Some((role, last)) = roles.iter_mut().find(|(_, last)| is_gone(*last)) {
            *last = thread;
            return *role;
        }
        roles.push((thread, thread));
        thread
    }
}

impl Profile {
    /// The profile with a row for each role in place of its threads, in all tables; as it is where no
    /// thread follows another. [`Profile::roles`] says which row is a thread's.
    /// Amount and heterogeneity of slices are recomputed for the roles that have a thread in them.
    #[must_use]
    pub fn by_roles(mut self) -> Profile {
        let (roles, count) = number_roles(&self.threads);
        if count == self.threads.len() {
            return self;
        }
        let before = self.events_of_bins();
        let alive = roles_alive(&self.slices, &self.threads, &roles, count);
        self.comm = pairs_of_roles(&self.comm, &roles, |a, b| {
            let [a, b] = [a, b].map(|t| &self.threads[t.at()]);
            a.start < b.end && b.start < a.end
        });
        self.roles = roles;
        self.merge_threads(count);
        self.recount_slices(&alive, before);
        self.merge_uses();
        self
    }

    /// What was merged, for people.
    #[must_use]
    pub fn roles_sentence(&self) -> Option<String> {
        let (all, roles) = (self.roles.len(), self.threads.len());
        (all > roles).then(|| format!("{all} threads in {roles} roles: threads that follow one another at the same work are seen as one."))
    }

    fn merge_threads(&mut self, count: usize) {
        let mut rows: Vec<Option<Thread>> = vec![None; count];
        for (thread, role) in self.threads.drain(..).zip(&self.roles) {
            let row = rows[role.at()].get_or_insert_with(|| Thread {
                creator: thread.creator.map(|c| self.roles[c.at()]),
                instructions: 0,
                reads: 0,
                writes: 0,
                role: None,
                ..thread.clone()
            });
            row.start = row.start.min(thread.start);
            row.end = row.end.max(thread.end);
            row.instructions += thread.instructions;
            row.reads += thread.reads;
            row.writes += thread.writes;
        }
        self.threads = rows.into_iter().flatten().collect();
    }

    /// Events by group of slices for which pairs are kept together.
    fn events_of_bins(&self) -> HashMap<u32, u64> {
        let factor = self.meta.comm_slices.max(1);
        let mut events = HashMap::new();
        for pair in &self.comm {
            *events.entry(pair.slice.0 / factor).or_default() += pair.events;
        }
        events
    }

    /// The metrics of slices follow the pairs, of which there were `before` between threads. Where pairs
    /// are kept for several slices together, these have the heterogeneity of them all.
    fn recount_slices(&mut self, alive: &[u32], before: HashMap<u32, u64>) {
        let factor = self.meta.comm_slices.max(1);
        let bin_of = |slice: SliceIx| slice.0 / factor;
        let before = before.into_iter().map(|(bin, n)| (bin, (n, Vec::new())));
        let mut of_bin: HashMap<u32, (u64, RolePairs)> = before.collect();
        for pair in &self.comm {
            let bin = of_bin.entry(bin_of(pair.slice)).or_default();
            bin.1.push((pair.i.0, pair.j.0, pair.events));
        }
        let none = (0, Vec::new());
        for (at, (slice, &alive)) in (0..).map(SliceIx).zip(self.slices.iter_mut().zip(alive)) {
            let (before, pairs) = of_bin.get(&bin_of(at)).unwrap_or(&none);
            recount_slice(slice, alive, *before, pairs);
        }
    }

    fn merge_uses(&mut self) {
        let roles = &self.roles;
        let role = |thread: &mut ThreadIx| *thread = roles[thread.at()];
        self.pages.change_threads(|thread| roles[thread.at()]);
        self.lines.iter_mut().for_each(|u| role(&mut u.thread));
        merge_rows(
            &mut self.lines,
            |u| (u.region, u.offset, u.thread),
            |to, u| {
                to.seen += u.seen;
                to.read_mask |= u.read_mask;
                to.write_mask |= u.write_mask;
                to.accesses += u.accesses;
                to.writes += u.writes;
            },
        );
        let lines = &mut self.first_touch_lines;
        lines.iter_mut().for_each(|l| role(&mut l.thread));
        merge_rows(
            lines,
            |l| {
                let place = (l.file.clone(), l.line, l.function.clone(), l.path.clone());
                (l.object, l.thread, place, l.in_parallel)
            },
            |to, l| to.pages += l.pages,
        );
        let users = &mut self.object_threads;
        users.iter_mut().for_each(|u| role(&mut u.thread));
        merge_rows(users, |u| *u, |_, _| ());
        self.first_touch.retain_mut(|touch| {
            role(&mut touch.thread);
            true
        });
        let regions = self.regions.iter_mut().filter_map(|r| r.thread.as_mut());
        let objects = self.objects.iter_mut().filter_map(|o| o.owner.as_mut());
        let moves = self.thread_moves.iter_mut().map(|m| &mut m.thread);
        regions.chain(objects).chain(moves).for_each(role);
    }
}

/// The communication of roles. An access counts with each thread of a role that has used the line since
/// the slice began, and should with the role once; see [`events_of_roles`]. What threads share with those
/// that had ended before they began is left out, unless it is all that two roles share in a slice.
fn pairs_of_roles(
    pairs: &[PairComm],
    roles: &[ThreadIx],
    together: impl Fn(ThreadIx, ThreadIx) -> bool,
) -> Vec<PairComm> {
    let mut rows: Vec<(PairComm, [ThreadIx; 2])> = Vec::with_capacity(pairs.len());
    for pair in pairs {
        let mut threads = [pair.i, pair.j];
        threads.sort_by_key(|t| roles[t.at()]);
        let [i, j] = threads.map(|t| roles[t.at()]);
        if i != j {
            rows.push((PairComm { i, j, ..*pair }, threads));
        }
    }
    let key = |p: &PairComm| (p.slice, p.i, p.j);
    rows.sort_by_key(|(pair, _)| key(pair));
    let same = rows.chunk_by(|(a, _), (b, _)| key(a) == key(b));
    let merged = same.map(|all| {
        let lived = all.iter().filter(|(_, [a, b])| together(*a, *b));
        let lived: Vec<_> = lived.copied().collect();
        let rows = if lived.is_empty() { all } else { &lived };
        PairComm {
            events: events_of_roles(rows, |pair| pair.events),
            coherence: events_of_roles(rows, |pair| pair.coherence),
            ..rows[0].0
        }
    });
    merged.collect()
}

/// Events of two roles in a slice from those of their threads, an estimate. Where both have had several
/// threads, of what a thread shares with those of the other role the most counts: that of its partner.
/// It can be asked of either role, and the larger answer is taken. A single thread may also serve those
/// of the other role one by one: what it shares with each of them at least counts for each.
fn events_of_roles(rows: &[(PairComm, [ThreadIx; 2])], events: fn(&PairComm) -> u64) -> u64 {
    let most_of = |side: usize| {
        let mut most: HashMap<ThreadIx, u64> = HashMap::new();
        for (pair, threads) in rows {
            let known = most.entry(threads[side]).or_default();
            *known = (*known).max(events(pair));
        }
        most
    };
    let (one, other) = (most_of(0), most_of(1));
    if one.len().min(other.len()) == 1 {
        let all = || rows.iter().map(|(pair, _)| events(pair));
        let (least, most) = (all().min().unwrap_or(0), all().max().unwrap_or(0));
        return most + least * (rows.len() as u64 - 1);
    }
    one.into_values()
        .sum::<u64>()
        .max(other.into_values().sum())
}

/// Adds up the rows that have the same key; they are in its order then.
fn merge_rows<T, K: Ord>(rows: &mut Vec<T>, key: impl Fn(&T) -> K, add: impl Fn(&mut T, &T)) {
    rows.sort_by_cached_key(&key);
    rows.dedup_by(|row, before| {
        let same = key(row) == key(before);
        if same {
            add(before, row);
        }
        same
    });
}

/// The row of each thread's role, in order of appearance, and how many rows there are.
fn number_roles(threads: &[Thread]) -> (Vec<ThreadIx>, usize) {
    let mut roles: Vec<ThreadIx> = Vec::with_capacity(threads.len());
    let mut count = 0;
    for thread in threads {
        let first = thread.role.and_then(|role| roles.get(role.at()).copied());
        roles.push(first.unwrap_or(ThreadIx(count)));
        count += u32::from(first.is_none());
    }
    (roles, count as usize)
}

/// By slice: the roles that have a thread in it.
fn roles_alive(slices: &[Slice], threads: &[Thread], roles: &[ThreadIx], count: usize) -> Vec<u32> {
    let mut of_role: Vec<Vec<Range<usize>>> = vec![Vec::new(); count];
    for (thread, role) in threads.iter().zip(roles) {
        let first = slices.partition_point(|s| s.start + s.length <= thread.start);
        let end = slices.partition_point(|s| s.start < thread.end);
        of_role[role.at()].push(first..end.max(first));
    }
    let mut change = vec![0i64; slices.len() + 1];
    for mut ranges in of_role {
        ranges.sort_by_key(|r| r.start);
        let mut counted = 0;
        for range in ranges {
            let start = range.start.max(counted);
            if start < range.end {
                change[start] += 1;
                change[range.end] -= 1;
                counted = range.end;
            }
        }
    }
    let mut alive = 0;
    let changes = change.iter().take(slices.len());
    changes
        .map(|change| {
            alive += change;
            alive as u32
        })
        .collect()
}

/// C_A and C_H of a slice for `alive` roles: of its events, those are left that are between roles,
/// in its share of the `before` that there were between threads.
fn recount_slice(slice: &mut Slice, alive: u32, before: u64, pairs: &[(u32, u32, u64)]) {
    let cells = |threads: u32| f64::from(threads) * f64::from(threads);
    let events = slice.amount * cells(slice.threads);
    // Where the last counts of threads that had ended went, see `slices.rs` of the collector.
    slice.threads = match alive {
        0 => slice.threads.min(pairs.len() as u32),
        _ => alive,
    };
    let left: f64 = pairs.iter().map(|pair| pair.2 as f64).sum();
    slice.heterogeneity = match slice.amount > 0.0 {
        true => amount_and_heterogeneity(slice.threads, pairs).1,
        false => 0.0,
    };
    slice.amount = match before > 0 && slice.threads > 0 {
        true => events * left / before as f64 / cells(slice.threads),
        false => 0.0,
    };
}

#[cfg(test)]
#[path = "thread_roles/tests.rs"]
mod tests;
