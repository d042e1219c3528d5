//! Writes a profile of so many rows of page use, for `make bench-growth`: every page of one large
//! structure is used by four threads, never equally often. The first thread of the program named, if one is, mapped it.
//!
//! ```text
//! cargo run --package hither-profile --example wide -- wide.hither 1000000
//! ```
use hither_profile::{
    Object, ObjectIx, ObjectKind, ObjectRange, PageFirstTouch, PageNo, PageUse, Process, Profile,
    ProfileMeta, Region, Slice, Thread, ThreadIx, PAGE_SIZE,
};
use std::path::PathBuf;

const THREADS: u32 = 16;
/// Of them, those that use a page.
const USERS: u32 = 4;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args_os().skip(1);
    let folder = words.next().map(PathBuf::from);
    let rows = words.next().and_then(|n| n.to_str()?.parse::<u32>().ok());
    let (Some(folder), Some(rows)) = (folder, rows) else {
        return Err("give a folder to write, and how many rows of page use".into());
    };
    let mut profile = wide(rows / USERS);
    if let Some(program) = words.next() {
        profile.regions[0].thread = Some(ThreadIx(0));
        profile.meta.processes[0].executable = program.to_string_lossy().into_owned();
    }
    hither_profile::write(&profile, &folder)?;
    Ok(())
}

/// Some number, not the same for neighbours.
fn scatter(n: u32) -> u64 {
    u64::from(n.wrapping_mul(0x9e37_79b9) >> 16)
}

fn wide(pages: u32) -> Profile {
    let mut profile = Profile {
        threads: vec![Thread::default(); THREADS as usize],
        ..Profile::default()
    };
    for page in 0..pages {
        let owner = (u64::from(page) * u64::from(THREADS) / u64::from(pages)) as u32;
        profile.first_touch.push(PageFirstTouch {
            page: PageNo(page),
            thread: ThreadIx(owner),
            ..PageFirstTouch::default()
        });
        for user in 0..USERS {
            let thread = ThreadIx(owner / USERS * USERS + user);
            let use_of_page = PageUse {
                page: PageNo(page),
                thread,
                reads: 1 + scatter(page * USERS + user) % 1000,
                writes: scatter(page ^ user) % 50,
                ..PageUse::default()
            };
            profile.threads[thread.at()].reads += use_of_page.reads;
            profile.threads[thread.at()].writes += use_of_page.writes;
            profile.pages.push(use_of_page);
        }
    }
    name(profile, u64::from(pages) * PAGE_SIZE)
}

/// What else a profile has.
fn name(mut profile: Profile, size: u64) -> Profile {
    for thread in &mut profile.threads {
        (thread.instructions, thread.end) = (4 * thread.reads, 1_000_000_000);
    }
    let accesses = profile.threads.iter().map(Thread::accesses).sum();
    profile.slices = vec![Slice {
        length: 1_000_000_000,
        threads: THREADS,
        traced: true,
        accesses,
        ..Slice::default()
    }];
    profile.regions = vec![Region {
        size,
        ..Region::default()
    }];
    profile.objects = vec![Object {
        name: "wide".to_owned(),
        kind: ObjectKind::Mmap,
        size,
        count: 1,
        reads: accesses,
        ..Object::default()
    }];
    profile.object_ranges = vec![ObjectRange {
        object: ObjectIx(0),
        length: size,
        ..ObjectRange::default()
    }];
    profile.meta = ProfileMeta {
        command: vec!["./wide".to_owned()],
        duration: 1_000_000_000,
        processes: vec![Process::default()],
        page_slices: 1,
        ..ProfileMeta::default()
    };
    profile
}
