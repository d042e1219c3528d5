//! The rows that threads have in the profile. A slot of the segment has one thread after another, and
//! a row is of one thread, or past [`OWN_ROWS`] of several that followed one another at the same work. Those of a
//! process that goes on in the row of another (process_rows.rs) go on in the rows of its threads.
//!
//! A row is known by its key: the first thread of a slot has the slot's number, those that come later
//! numbers from [`wire::MAX_THREADS`] on.
use super::process_rows::{self, ProcessRows};
use hither_profile::ThreadIx;
use hither_sys::{wire, Segment};
use std::collections::HashMap;

/// Threads in turn that have a row each.
pub const OWN_ROWS: usize = 8192;
/// Rows that a profile can have. The last is of all threads for which there is no other.
const MAX_ROWS: usize = 16_384;

/// Threads that can share a row: executable of the first thread of a process, else key of the creator,
/// where it created them, what they run.
type Family = (String, u32, u64, u64);

/// What is known of the threads of a row.
#[derive(Clone, Debug, Default)]
pub struct ThreadRow {
    /// How many threads it is of.
    pub threads: u32,
    /// Of the first.
    pub serial: u32,
    pub process: u32,
    /// Serial of its creator.
    pub creator: u32,
    pub created_at: u64,
    pub start_routine: u64,
    pub tid: i32,
    pub name: [u8; 16],
    pub start: u64,
    /// Of the last: when it ended, the serial that came next when it ended and when it was waited for.
    pub end: u64,
    pub ended: u32,
    pub joined: u32,
    /// Of all.
    pub instructions: u64,
    pub misses: u64,
    pub lost_samples: u64,
    /// Accesses by their instructions, in slices that were traced and in others.
    pub executed: [u64; 2],
    /// That of its thread, until that has ended and is counted.
    slot: Option<u32>,
}

#[derive(Default)]
pub struct ThreadRows {
    /// By key.
    rows: Vec<ThreadRow>,
    /// Key of the thread that is in a slot; 0: not known yet.
    in_slot: Vec<u32>,
    /// Slots that had a thread before.
    used_again: Vec<bool>,
    count: usize,
    by_serial: HashMap<u32, u32>,
    families: HashMap<Family, Vec<u32>>,
    /// By process slot: the key of its first thread.
    first_threads: HashMap<u32, u32>,
    /// By process slot.
    pub executables: HashMap<u32, String>,
    /// Rows of the processes.
    pub processes: ProcessRows,
}

impl ThreadRows {
    /// The key of the thread in a slot; 0 where there is none.
    pub fn key(&mut self, segment: &Segment, slot: u32) -> u32 {
        match self.in_slot.get(slot as usize) {
            Some(&key) if key != 0 => key,
            _ => self.enter(segment, slot),
        }
    }

    /// The same where it is known already, else 0.
    pub fn known_key(&self, slot: u32) -> u32 {
        self.in_slot.get(slot as usize).copied().unwrap_or(0)
    }

    fn enter(&mut self, segment: &Segment, slot: u32) -> u32 {
        if slot == 0 || slot >= wire::MAX_THREADS {
            return 0;
        }
        let thread = segment.thread(slot);
        let first = !self
            .used_again
            .get(slot as usize)
            .is_some_and(|&again| again);
        if thread.state == wire::THREAD_FREE {
            return if first { slot } else { 0 };
        }
        // Children of vfork, each of which executes a command, have the first thread of their process before them.
        let first_of_process = self.first_threads.get(&thread.process).copied();
        let parent = first_of_process.filter(|_| thread.creator == 0);
        let creator = self.by_serial.get(&thread.creator).copied();
        let creator = creator.or(parent).unwrap_or(0);
        let executable = self.executables.get(&thread.process);
        let executable = executable.filter(|_| creator == 0).cloned();
        let family = (
            executable.unwrap_or_default(),
            creator,
            thread.created_at,
            thread.start_routine,
        );
        self.processes.enter_unknown(thread.process);
        let process = self.processes.row_of(thread.process);
        let key = (process != thread.process)
            .then(|| self.left_row(process, &family))
            .flatten();
        let own = first.then_some(slot);
        // Such children are as many as processes are.
        let most = parent.map_or(OWN_ROWS, |_| process_rows::OWN_ROWS);
        let key = key.unwrap_or_else(|| self.row_for(segment, &family, (thread.serial, most), own));
        self.first_threads.entry(thread.process).or_insert(key);
        let row = &mut self.rows[key as usize];
        if row.threads == 0 {
            row.serial = thread.serial;
            row.process = process;
            row.creator = thread.creator;
            row.created_at = thread.created_at;
            row.start_routine = thread.start_routine;
            row.tid = thread.tid;
            row.start = thread.start_ns;
        }
        row.threads = row.threads.saturating_add(1);
        row.start = row.start.min(thread.start_ns);
        row.slot = Some(slot);
        self.by_serial.insert(thread.serial, key);
        let at = slot as usize;
        if self.in_slot.len() <= at {
            self.in_slot.resize(at + 1, 0);
        }
        self.in_slot[at] = key;
        key
    }

    /// The key of a row that a thread of an earlier process had, in whose row the process goes on.
    fn left_row(&self, process: u32, family: &Family) -> Option<u32> {
        let is_left = |key: &&u32| {
            let row = &self.rows[**key as usize];
            row.process == process && row.slot.is_none()
        };
        self.families.get(family)?.iter().find(is_left).copied()
    }

    /// The key of a new row, or of one whose last thread is gone.
    fn row_for(
        &mut self,
        segment: &Segment,
        family: &Family,
        (serial, own_rows): (u32, usize),
        own: Option<u32>,
    ) -> u32 {
        if self.count >= own_rows {
            let rows = &self.rows;
            let same = self.families.get(family).map_or(&[][..], Vec::as_slice);
            let gone = |key: &&u32| is_gone(segment, &rows[**key as usize], serial);
            if let Some(&key) = same.iter().rev().find(gone) {
                return key;
            }
            if self.count >= MAX_ROWS {
                return (self.rows.len() - 1) as u32;
            }
        }
        self.count += 1;
        let next = self.rows.len().max(wire::MAX_THREADS as usize) as u32;
        let key = own.unwrap_or(next);
        if self.rows.len() <= key as usize {
            self.rows.resize(key as usize + 1, ThreadRow::default());
        }
        self.families.entry(family.clone()).or_default().push(key);
        key
    }

    /// The thread in a slot has ended: takes over what is known of it.
    pub fn leave(&mut self, segment: &Segment, slot: u32, end: u64) {
        let key = self.known_key(slot) as usize;
        let Some(row) = self.rows.get_mut(key).filter(|_| key != 0) else {
            return;
        };
        let thread = segment.thread(slot);
        if row.threads == 1 {
            row.name = thread.name;
        }
        row.end = row.end.max(end);
        (row.ended, row.joined) = (thread.ended, thread.joined);
        let add = |sum: &mut u64, more| *sum = sum.saturating_add(more);
        add(&mut row.instructions, thread.instructions);
        add(&mut row.misses, thread.misses);
        add(&mut row.lost_samples, thread.lost_samples);
        add(&mut row.executed[0], thread.traced_accesses);
        add(&mut row.executed[1], thread.untraced_accesses);
        row.slot = None;
        self.in_slot[slot as usize] = 0;
        if self.used_again.len() <= slot as usize {
            self.used_again.resize(slot as usize + 1, false);
        }
        self.used_again[slot as usize] = true;
    }

    /// Of a key of [`ThreadNumbers`].
    pub fn row(&self, key: u32) -> &ThreadRow {
        &self.rows[key as usize]
    }

    pub fn iter(&self) -> impl Iterator<Item = &ThreadRow> {
        self.rows.iter().filter(|row| row.threads > 0)
    }

    /// Threads so far.
    pub fn thread_count(&self) -> u32 {
        self.iter()
            .map(|row| row.threads)
            .fold(0, u32::saturating_add)
    }

    /// By key: accesses by their instructions in slices that were traced, and in others.
    pub fn executed(&self, segment: &Segment) -> Vec<[u64; 2]> {
        let of = |row: &ThreadRow| {
            let live = row.slot.map(|slot| segment.thread(slot));
            let live = live.map_or([0; 2], |t| [t.traced_accesses, t.untraced_accesses]);
            [0, 1].map(|n| row.executed[n].saturating_add(live[n]))
        };
        self.rows.iter().map(of).collect()
    }

    /// Threads that have no row of their own, and the rows that are of several.
    pub fn shared(&self) -> (u64, usize) {
        let shared = || self.iter().filter(|row| row.threads > 1);
        (
            shared().map(|row| u64::from(row.threads)).sum(),
            shared().count(),
        )
    }
}

/// Whether the last thread of a row had ended, and whoever waits for it knew, when that with this serial
/// was created.
fn is_gone(segment: &Segment, row: &ThreadRow, serial: u32) -> bool {
    let [ended, joined] = match row.slot {
        Some(slot) => segment.thread_ended_and_joined(slot),
        None => [row.ended.max(1), row.joined],
    };
    ended != 0 && ended.max(joined) <= serial
}

/// The place of each thread in the profile.
#[derive(Default)]
pub struct ThreadNumbers {
    /// Keys of the rows, in order of creation.
    pub keys: Vec<u32>,
    by_key: Vec<Option<ThreadIx>>,
    by_serial: HashMap<u32, ThreadIx>,
}

impl ThreadNumbers {
    /// Of a run that has ended.
    pub fn new(rows: &ThreadRows, segment: &Segment) -> ThreadNumbers {
        let numbered = (1..).zip(rows.rows.iter().skip(1));
        let mut keys: Vec<u32> = numbered
            .filter(|(key, row)| row.threads > 0 || *key < segment.next_thread())
            .map(|(key, _)| key)
            .collect();
        let again =
            keys.last().is_some_and(|&key| key >= wire::MAX_THREADS) || rows.processes.are_shared();
        if again {
            keys.retain(|&key| rows.rows[key as usize].threads > 0);
            keys.sort_by_key(|&key| rows.rows[key as usize].serial);
        }
        let mut by_key = vec![None; rows.rows.len()];
        for (&key, ix) in keys.iter().zip((0..).map(ThreadIx)) {
            by_key[key as usize] = Some(ix);
        }
        let of = |(&serial, &key): (&u32, &u32)| Some((serial, by_key[key as usize]?));
        let by_serial = rows.by_serial.iter().filter_map(of).collect();
        ThreadNumbers {
            keys,
            by_key,
            by_serial,
        }
    }

    pub fn of_key(&self, key: u32) -> Option<ThreadIx> {
        self.by_key.get(key as usize).copied().flatten()
    }

    pub fn of_serial(&self, serial: u32) -> Option<ThreadIx> {
        self.by_serial.get(&serial).copied()
    }
}
