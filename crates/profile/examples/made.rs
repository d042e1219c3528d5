//! Writes a profile of what is read from standard input, for `make bench-policies`. A line is one of
//!
//! ```text
//! slice LENGTH                     ns, the next slice of the run
//! share SLICE THREAD THREAD EVENTS
//! touch SLICE PAGE THREAD          who touched a page first
//! use SLICE PAGE THREAD READS
//! read WINDOW THREAD PAGE LINE WAITED   a recorded access; the thread's first in a window waited so many ns
//!
//! cargo run --package hither-profile --example made -- made.hither THREADS < lines
//! ```
//! Each slice's C_H and C_A are counted from what threads share in it. Recorded windows are `WINDOW_EVERY` apart.
use hither_profile::bursts::{BurstAccess, BurstPiece, NamedPages};
use hither_profile::{
    write_with_bursts, BurstWriter, CommMatrix, PageFirstTouch, PageNo, PageUse, PairComm, Process,
    Profile, Region, Slice, SliceIx, Thread, ThreadIx, PAGE_SIZE,
};
use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};

/// What each thread reads in each window, by both.
type Recorded = BTreeMap<(u32, u32), (u64, Vec<BurstAccess>)>;

const BASE: u64 = 0x7f00_0000_0000;
const LINE: u64 = 64;
const WINDOW_EVERY: u64 = 10_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args_os().skip(1);
    let folder = words.next().map(PathBuf::from);
    let threads = words.next().and_then(|n| n.to_str()?.parse::<usize>().ok());
    let (Some(folder), Some(threads)) = (folder, threads) else {
        return Err("give a folder to write, and how many threads".into());
    };
    let mut profile = Profile {
        threads: vec![Thread::default(); threads],
        ..Profile::default()
    };
    let mut recorded = Recorded::new();
    for line in std::io::stdin().lines() {
        add(&mut profile, &mut recorded, &line?)?;
    }
    finish(&mut profile);
    if recorded.is_empty() {
        hither_profile::write(&profile, &folder)?;
        return Ok(());
    }
    write_recorded(&mut profile, &recorded, &folder)
}

/// Adds what a line says.
fn add(profile: &mut Profile, recorded: &mut Recorded, line: &str) -> Result<(), Box<dyn Error>> {
    let mut words = line.split_whitespace();
    let kind = words.next();
    let numbers: Vec<u64> = words.map(str::parse).collect::<Result<_, _>>()?;
    let slice = SliceIx(numbers.first().copied().unwrap_or(0) as u32);
    match (kind, numbers.as_slice()) {
        (Some("slice"), &[length]) => profile.slices.push(Slice {
            start: profile.slices.last().map_or(0, |s| s.start + s.length),
            length,
            threads: profile.threads.len() as u32,
            traced: true,
            ..Slice::default()
        }),
        (Some("share"), &[_, i, j, events]) => profile.comm.push(PairComm {
            slice,
            i: ThreadIx(i as u32),
            j: ThreadIx(j as u32),
            events,
            ..PairComm::default()
        }),
        (Some("touch"), &[_, page, thread]) => profile.first_touch.push(PageFirstTouch {
            page: PageNo(page as u32),
            thread: ThreadIx(thread as u32),
            slice,
            ..PageFirstTouch::default()
        }),
        (Some("use"), &[_, page, thread, reads]) => {
            profile.threads[thread as usize].reads += reads;
            profile.pages.push(PageUse {
                slice,
                page: PageNo(page as u32),
                thread: ThreadIx(thread as u32),
                reads,
                ..PageUse::default()
            });
        }
        (Some("read"), &[window, thread, page, line, waited]) => {
            let reads = recorded.entry((window as u32, thread as u32));
            let (_, reads) = reads.or_insert((waited, Vec::new()));
            reads.push(BurstAccess {
                address: BASE + page * PAGE_SIZE + line * LINE,
                bytes: 8,
                write: false,
                after: 3,
                depends: 0,
            });
        }
        _ => return Err(format!("{line:?} is none of the five kinds of lines").into()),
    }
    Ok(())
}

/// Writes a profile with recorded windows.
fn write_recorded(
    profile: &mut Profile,
    recorded: &Recorded,
    to: &Path,
) -> Result<(), Box<dyn Error>> {
    profile.regions[0].address = BASE;
    let mut writer = BurstWriter::create(to)?;
    for (&(window, thread), (waited, reads)) in recorded {
        let start = u64::from(window) * WINDOW_EVERY + waited;
        let head = BurstPiece {
            thread: ThreadIx(thread),
            start,
            end: start + 1,
            waited: *waited > 0,
            ..BurstPiece::default()
        };
        writer.append_accesses(window, &head, reads);
    }
    for window in 0..=recorded
        .keys()
        .map(|(window, _)| *window)
        .max()
        .unwrap_or(0)
    {
        let names = NamedPages {
            page: BASE / PAGE_SIZE,
            pages: profile.regions[0].size / PAGE_SIZE,
            ..NamedPages::default()
        };
        writer.append_named_pages(window, &[names]);
    }
    let written = write_with_bursts(profile, to, writer)?;
    match written.missing.is_empty() {
        true => Ok(()),
        false => Err(format!("{:?} could not be written", written.missing).into()),
    }
}

/// What else a profile has.
fn finish(profile: &mut Profile) {
    let threads = profile.threads.len();
    let end = profile.slices.last().map_or(0, |s| s.start + s.length);
    for thread in &mut profile.threads {
        // Without page use all work alike.
        (thread.instructions, thread.end) = (4 * thread.reads.max(1_000_000), end);
    }
    for (at, slice) in profile.slices.iter_mut().enumerate() {
        let mut matrix = CommMatrix::new(threads);
        for c in profile.comm.iter().filter(|c| c.slice.at() == at) {
            matrix.add(c.i.at(), c.j.at(), c.events);
        }
        (slice.amount, slice.heterogeneity) = (matrix.amount(), matrix.heterogeneity());
    }
    let pages = profile.first_touch.iter().map(|t| u64::from(t.page.0) + 1);
    profile.regions = vec![Region {
        size: pages.max().unwrap_or(1) * PAGE_SIZE,
        thread: Some(ThreadIx(0)),
        ..Region::default()
    }];
    profile.meta.command = vec!["./made".to_owned()];
    profile.meta.duration = end;
    profile.meta.processes = vec![Process {
        end,
        ..Process::default()
    }];
    (profile.meta.page_slices, profile.meta.comm_slices) = (1, 1);
}
