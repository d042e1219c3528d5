//! The profile of the run so far, written by a copy of the process.
use super::super::checkpoints::Checkpoints;
use super::*;
use hither_profile::{read, Profile, RunEnd};
use std::time::Instant;

const BASE: u64 = 0x7f00_0000_0000;

struct CompletedHere;

impl CheckpointCompletion for CompletedHere {
    fn profile(&self, build: ProfileBuild) -> Result<Profile> {
        let mut profile = build(&mut Names);
        profile.meta.working_directory = "completed".into();
        Ok(profile)
    }
}

/// Two threads, pages that both have counted on, and communication of a slice that is over.
fn run_so_far() -> Fake {
    let mut f = Fake::with_thread();
    f.map(1, 1, BASE, MIB);
    f.thread(2, 1, 1);
    f.page(64, BASE, 1, 1);
    f.page(65, BASE + 4096, 1, 2);
    f.count(1, 1, 64, 5, 6);
    f.count(2, 2, 65, 7, 0);
    f.credit(1, 2, 0, 70);
    f.engine.end_slice();
    f
}

fn keep(f: Fake, folder: &Path) -> Fake {
    let mut checkpoints = Checkpoints::new(Some(CheckpointPlan {
        folder: folder.to_owned(),
        completion: Box::new(CompletedHere),
    }));
    assert!(checkpoints.keep_up().is_none(), "not yet due");
    checkpoints.next = Instant::now();
    if let Some(copy) = checkpoints.keep_up() {
        copy.write(f.engine);
    }
    while checkpoints.is_writing() {
        std::thread::sleep(Duration::from_millis(1));
        assert!(checkpoints.keep_up().is_none(), "one at a time");
    }
    assert!(checkpoints.kept);
    f
}

fn counted(p: &Profile) -> (Vec<[u64; 2]>, Vec<u64>, u64) {
    let threads = p.threads.iter().map(|t| [t.reads, t.writes]);
    let pages = p.pages.rows().map(|row| row.reads + row.writes);
    let events = p.comm.iter().map(|c| c.events).sum();
    (threads.collect(), pages.collect(), events)
}

#[test]
fn a_checkpoint_is_what_was_counted_and_the_run_goes_on() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("p.hither");
    let mut f = keep(run_so_far(), &folder);
    let part = read(&folder).unwrap();
    let so_far = (vec![[5, 6], [7, 0]], vec![11, 7], 70);
    assert_eq!(counted(&part), so_far);
    assert_eq!(part.meta.end, RunEnd::Interrupted);
    assert_eq!(part.meta.working_directory, "completed");
    let last = part.meta.limits.last().unwrap();
    assert!(last.starts_with("The profile is cut off 0 s "), "{last}");
    // What is counted from now on is added to what the copy has read.
    f.map(1, 1, BASE + MIB, MIB);
    f.page(66, BASE + MIB, 1, 1);
    f.count(1, 1, 64, 15, 6);
    f.count(3, 1, 66, 0, 1);
    f.credit(1, 2, 0, 20);
    let all = f.finish(&mut Names);
    assert_eq!(counted(&all), (vec![[15, 7], [7, 0]], vec![21, 7, 1], 90));
    assert_eq!(all.meta.limits, Vec::<String>::new());
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1);
}

#[test]
fn a_checkpoint_that_is_not_finished_is_removed() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("p.hither");
    let mut checkpoints = Checkpoints::new(Some(CheckpointPlan {
        folder: folder.clone(),
        completion: Box::new(CompletedHere),
    }));
    checkpoints.next = Instant::now();
    // Not dropped in the copy, which hangs: that would remove its folder.
    let copy = checkpoints.keep_up();
    if copy.is_some() {
        hither_sys::process::end_copy(|| {
            std::thread::sleep(Duration::from_secs(60));
            1
        });
    }
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1);
    checkpoints.stop();
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
}
