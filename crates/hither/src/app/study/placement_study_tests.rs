//! A recording made by hand whose threads write in turn with their partners.
use super::*;
use crate::app::study::options::ShortStudy;
use crate::app::study::progress::Steps;
use crate::app::study::run_recording::RunRecording;
use crate::app::study::sim_machine::{models, SimMachine};
use hither_model::simulate::replay_input::cache_warming::CacheWarming;
use hither_model::simulate::replay_input::page_homes::PageHomeRule;
use hither_profile::bursts::{BurstAccess, BurstPiece, NamedPages};
use hither_profile::*;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

const THREADS: u32 = 4;
const BASE: u64 = 0x7f00_0000_0000;
const ACCESSES: u64 = 400;

/// Counts the windows that are simulated.
#[derive(Default)]
struct Counted(std::sync::Arc<AtomicU64>);

impl Steps for Counted {
    fn step(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Progress for Counted {
    fn begin(&self, _: u64, _: &'static str) -> Box<dyn Steps> {
        Box::new(Counted(self.0.clone()))
    }
}

/// Threads 0 and 1 write one page, 2 and 3 another one.
fn write_recording(dir: &Path, windows: u32) {
    let used = |thread: u32| PageUse {
        page: PageNo(thread / 2),
        thread: ThreadIx(thread),
        reads: 1000,
        writes: 1000,
        fetches: 640,
        ..PageUse::default()
    };
    let thread = |at: u32| Thread {
        tid: at as i32 + 1,
        instructions: 1_000_000,
        writes: 100_000,
        ..Thread::default()
    };
    let mut profile = Profile {
        meta: ProfileMeta {
            format: 1,
            duration: 1_000_000_000,
            processes: vec![Process::default()],
            ..ProfileMeta::default()
        },
        threads: (0..THREADS).map(thread).collect(),
        slices: vec![Slice {
            length: 1_000_000_000,
            traced: true,
            ..Slice::default()
        }],
        pages: (0..THREADS).map(used).collect::<Vec<_>>().into(),
        regions: vec![Region {
            size: 2 * PAGE_SIZE,
            address: BASE,
            ..Region::default()
        }],
        ..Profile::default()
    };
    let mut writer = BurstWriter::create(dir).expect("a place for bursts");
    for window in 0..windows {
        let start = u64::from(window) * 10_000_000;
        for thread in 0..THREADS {
            let access = |n: u64| BurstAccess {
                address: BASE + u64::from(thread / 2) * PAGE_SIZE + n % 4 * 64,
                bytes: 8,
                write: true,
                after: 3,
                depends: 0,
            };
            let head = BurstPiece {
                thread: ThreadIx(thread),
                start,
                end: start + 1_000_000,
                ..BurstPiece::default()
            };
            let all: Vec<BurstAccess> = (0..ACCESSES).map(access).collect();
            writer.append_accesses(window, &head, &all);
        }
        let named = NamedPages {
            page: BASE / PAGE_SIZE,
            pages: 2,
            ..NamedPages::default()
        };
        writer.append_named_pages(window, &[named]);
    }
    write_with_bursts(&mut profile, dir, writer).expect("a profile");
}

/// Threads on cores of packages, one after the other on each.
fn on_packages(model: &SimMachine, packages: [u32; THREADS as usize]) -> ReplayPlan {
    let mut taken = Vec::new();
    let units = packages.map(|package| {
        let mut units = (0u32..).zip(&model.machine.units);
        let free = |core: u32, taken: &[u32]| !taken.contains(&core);
        let found = units.find(|(_, unit)| unit.package == package && free(unit.core, &taken));
        let (at, unit) = found.expect("a core");
        taken.push(unit.core);
        at
    });
    ReplayPlan::from_units(units.to_vec())
}

fn candidate(name: &str, plans: Vec<ReplayPlan>) -> PlacementCandidate {
    PlacementCandidate {
        name: name.to_owned(),
        thread_policy: name.to_owned(),
        data_policy: None,
        file: None,
        plans,
        for_joint: false,
    }
}

/// Simulates candidates in so many windows: what is left of them, with windows and seconds of each, and how many windows were played.
fn simulated(
    windows: u32,
    candidates: impl Fn(&SimMachine) -> Vec<PlacementCandidate>,
) -> (Vec<(String, usize, f64)>, u64) {
    let place = tempfile::tempdir().expect("a folder");
    let dir = place.path().join("app.hither");
    write_recording(&dir, windows);
    let recording = RunRecording::open(&dir, None).expect("a recording");
    let mut all = models(vec![Some("xeon-x7550x4".to_owned())], None).expect("a machine");
    let model = all.remove(0);
    let known = (recording.profile().expect("a profile"), &recording.bursts);
    let warming = CacheWarming::of(known, &recording.space, &model.machine);
    let options = SimOptions {
        short: Some(ShortStudy {
            accesses: u64::MAX,
            piece: u64::MAX,
            seed_error: 0.0,
        }),
        ..SimOptions::default()
    };
    let played = recording.windows(None, None);
    let progress = Counted::default();
    let study = PlacementStudy {
        options: &options,
        stand: ReplaySetup {
            recording: &recording,
            windows: &played,
            model: &model,
            rule: PageHomeRule::FirstTouch,
            played: 1.0,
            left_out: 0.0,
            starts: None,
            warming: Some(&warming),
        },
        progress: &progress,
    };
    let found = study.simulate(candidates(&model), &[(0.25, false), (1.0, true)], None);
    let (results, damaged) = found.expect("results");
    assert!(!damaged);
    let of = |result: &CandidateResult| {
        let name = result.candidate.name.clone();
        (name, result.windows(), result.seconds(&model))
    };
    let steps = progress.0.load(Ordering::Relaxed);
    (results.iter().map(of).collect(), steps)
}

/// The fastest is what is so where nothing races.
#[test]
fn the_fastest_and_the_system_are_not_given_up() {
    let candidates = |model: &SimMachine| {
        let apart = |packages| on_packages(model, packages);
        vec![
            candidate("os", vec![apart([0, 1, 2, 3]), apart([2, 3, 0, 1])]),
            candidate("apart", vec![apart([1, 0, 3, 2])]),
            candidate("near", vec![apart([0, 0, 1, 1])]),
            candidate("halves", vec![apart([0, 1, 0, 1])]),
            // The same cores by another name are played once.
            candidate("as near", vec![apart([0, 0, 1, 1])]),
        ]
    };
    let names = |of: &[(String, usize, f64)]| of.iter().map(|r| r.0.clone()).collect::<Vec<_>>();
    // With few windows nothing is given up.
    let (all, steps) = simulated(11, candidates);
    assert_eq!(names(&all), ["os", "apart", "near", "halves", "as near"]);
    assert_eq!(steps, 5 * 11);
    let compared = all.iter().skip(1);
    let fastest = compared.min_by(|a, b| a.2.total_cmp(&b.2)).expect("some");
    let (left, steps) = simulated(16, candidates);
    let kept = names(&left);
    assert!(
        kept[0] == "os" && kept.contains(&fastest.0),
        "{all:?} {left:?}"
    );
    assert!(left.len() < all.len() && steps < 5 * 16, "{all:?} {left:?}");
    assert!(left.iter().all(|result| result.1 == 16), "{left:?}");
    // Nothing races where there is but one to compare with the system.
    let two = |model: &SimMachine| candidates(model).into_iter().take(2).collect();
    assert_eq!(names(&simulated(16, two).0), ["os", "apart"]);
}

#[test]
fn what_occurs_twice_is_played_once() {
    let plan = |unit| ReplayPlan::from_units(vec![unit]);
    let plans = [plan(1), plan(2), plan(1), plan(3), plan(2)];
    let (found, same) = distinct(&plans.iter().collect::<Vec<_>>(), |a, b| a == b);
    assert_eq!(found, [&plans[0], &plans[1], &plans[3]]);
    assert_eq!(same, [0, 1, 0, 2, 1]);
}
