//! Writes a profile of what is read from standard input, for `make bench-policies`. A line is one of
//!
//! ```text
//! slice LENGTH                     ns, the next slice of the run
//! share SLICE THREAD THREAD EVENTS
//! touch SLICE PAGE THREAD          who touched a page first
//! use SLICE PAGE THREAD READS
//!
//! cargo run --package hither-profile --example made -- made.hither THREADS < lines
//! ```
//! Each slice's C_H and C_A are counted from what threads share in it.
use hither_profile::{
    CommMatrix, PageFirstTouch, PageNo, PageUse, PairComm, Process, Profile, Region, Slice,
    SliceIx, Thread, ThreadIx, PAGE_SIZE,
};
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
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
    for line in std::io::stdin().lines() {
        add(&mut profile, &line?)?;
    }
    finish(&mut profile);
    hither_profile::write(&profile, &folder)?;
    Ok(())
}

/// Adds what a line says.
fn add(profile: &mut Profile, line: &str) -> Result<(), Box<dyn std::error::Error>> {
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
        _ => return Err(format!("{line:?} is none of the four kinds of lines").into()),
    }
    Ok(())
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
