//! Programs with a known pattern: what is seen while they run is what `hither trace` sees of
//! them, and where there is nothing to gain no thread is moved.
//!
//! Their arrays lie in private memory, so they need the sampler `move` (Linux 6.8).
use super::common::{run, status, text, Place, HITHER};
use hither_profile::Profile;
use std::cmp::Ordering;

const WORKLOADS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../workloads");
const THREADS: usize = 8;

/// A folder with the program in it, with no more room than its threads need: of memory that
/// is mostly empty no pages are taken.
fn built(name: &str) -> Option<Place> {
    let place = Place::new();
    let tried = run(place.command(&[HITHER, "auto", "-q", "--sampler", "move", "--", "true"]));
    if !tried.status.success() {
        println!("skipped: {}", text(&tried.stderr));
        return None;
    }
    let flags =
        "-std=gnu11 -O2 -fno-tree-vectorize -fno-tree-loop-distribute-patterns -pthread -fopenmp";
    let line = format!("gcc {flags} -DTEAM_MAX={THREADS} -o {name} {WORKLOADS}/{name}.c");
    let built = place.shell(&line);
    assert!(built.status.success(), "{}", text(&built.stderr));
    Some(place)
}

/// Runs the program under a command of hither that leaves a profile.
fn profile(place: &Place, options: &str, program: &str) -> Profile {
    // A core file would lack the pages that are taken, so none may be asked for.
    let line = format!(
        "ulimit -c 0; export OMP_NUM_THREADS={THREADS} OMP_WAIT_POLICY=passive; rm -rf p.hither; {HITHER} {options} -o p -- ./{program}"
    );
    let output = place.shell(&line);
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(status(&output), 0, "{err}");
    assert!(!out.contains("WRONG"), "{out}");
    println!("{out}{err}");
    hither_profile::read(&place.path("p.hither")).expect("a profile")
}

/// Events of all pairs i < j of the program's threads, in order of creation, which is that of
/// their ids: they may start to run in another.
fn pairs(profile: &Profile) -> Vec<f64> {
    let matrix = profile.matrix();
    let mut threads: Vec<usize> = (0..profile.threads.len()).collect();
    assert_eq!(threads.len(), THREADS, "{:?}", profile.threads);
    let tid = |t: usize| profile.threads[t].tid;
    let first = threads.iter().min_by_key(|&&t| profile.threads[t].start);
    let first = tid(*first.expect("a thread"));
    threads.sort_by_key(|&t| (tid(t) < first, tid(t)));
    let mut pairs = Vec::new();
    for i in 0..THREADS {
        for j in i + 1..THREADS {
            pairs.push(matrix.get(threads[i], threads[j]) as f64);
        }
    }
    pairs
}

/// Pearson's correlation.
fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let mean = |x: &[f64]| x.iter().sum::<f64>() / x.len() as f64;
    let (ma, mb) = (mean(a), mean(b));
    let sum = |f: &dyn Fn(f64, f64) -> f64| -> f64 {
        let pairs = a.iter().zip(b);
        pairs.map(|(&a, &b)| f(a - ma, b - mb)).sum()
    };
    sum(&|a, b| a * b) / (sum(&|a, _| a * a) * sum(&|_, b| b * b)).sqrt()
}

#[test]
fn correlation_is_pearsons() {
    let check = |a: &[f64], b: &[f64], expected: f64| {
        assert!((correlation(a, b) - expected).abs() < 1e-12);
    };
    check(&[1.0, 2.0, 3.0], &[10.0, 20.0, 30.0], 1.0);
    check(&[1.0, 2.0, 3.0], &[3.0, 2.0, 1.0], -1.0);
    check(&[0.0, 1.0, 0.0, 1.0], &[0.0, 0.0, 1.0, 1.0], 0.0);
}

const AUTO: &str = "auto -v --budget 30% --sampler move";

/// Events from which on chance no longer hides a pattern.
const ENOUGH: f64 = 1000.0;
/// Runs at least: where threads are scheduled so that one of two always comes right after the other, it is never
/// the first to touch a page that was taken, and that stays so for all of a run.
const SCHEDULES: usize = 3;
/// A machine that is busy with other things lets little be seen in a run, so there are more of
/// them; where so many tell too little, nothing was proved.
const RUNS: usize = 8;

/// Follows runs of a program until `enough` is reached by what they tell.
#[track_caller]
fn follow(place: &Place, program: &str, enough: f64, mut tells: impl FnMut(&Profile) -> f64) {
    let mut sum = 0.0;
    for _ in 0..RUNS {
        sum += tells(&profile(place, AUTO, program));
        if sum >= enough {
            return;
        }
    }
    panic!("{sum} of {enough} in {RUNS} runs");
}

/// What is seen in runs of `long` correlates with the trace of `short`.
#[track_caller]
fn check(long: &str, short: &str, expected: f64) {
    let name = long.split(' ').next().expect("a name");
    let Some(place) = built(name) else {
        return;
    };
    let traced = pairs(&profile(&place, "trace -q", short));
    let (mut seen, mut runs) = (vec![0.0; traced.len()], 0);
    follow(&place, long, ENOUGH, |profile| {
        let more = pairs(profile);
        let sums = seen.iter_mut().zip(&more);
        sums.for_each(|(sum, more)| *sum += more);
        runs += 1;
        match runs.cmp(&SCHEDULES) {
            Ordering::Less => 0.0,
            Ordering::Equal => seen.iter().sum(),
            Ordering::Greater => more.iter().sum(),
        }
    });
    let (events, r) = (seen.iter().sum::<f64>(), correlation(&seen, &traced));
    println!("{name}: r = {r:.3} of {events} events\n{seen:?}\n{traced:?}");
    partners_stand_out(&seen, &traced);
    assert!(r >= expected, "{r} of {events} events");
}

/// However often each pair of partners is seen, it is more often than any other pair.
#[track_caller]
fn partners_stand_out(seen: &[f64], traced: &[f64]) {
    let most = traced.iter().copied().fold(0.0, f64::max);
    let (partners, others): (Vec<_>, Vec<_>) =
        (seen.iter().zip(traced)).partition(|(_, traced)| **traced > most / 2.0);
    let least = partners.iter().map(|p| *p.0).fold(f64::INFINITY, f64::min);
    let astray = others.iter().map(|p| *p.0);
    assert!(least > astray.clone().fold(0.0, f64::max), "{seen:?}");
    let (astray, all) = (astray.sum::<f64>(), seen.iter().sum::<f64>());
    assert!(astray <= 0.02 * all, "{astray} of {all}");
}

#[test]
fn a_ring_is_seen_as_one() {
    check("ring 8 100000 512", "ring 8 1000 512", 0.9);
}

#[test]
fn a_pipeline_is_seen_as_one() {
    check("pipeline 8 100000 512", "pipeline 8 1000 512", 0.9);
}

#[test]
fn a_stencil_is_seen_as_one() {
    check("stencil2d 512 16000", "stencil2d 512 100", 0.9);
}

#[test]
fn where_all_talk_to_all_nobody_is_moved() {
    let Some(place) = built("all_to_all") else {
        return;
    };
    follow(&place, "all_to_all 8 40000 64", ENOUGH, |profile| {
        assert_eq!(profile.thread_moves, []);
        pairs(profile).iter().sum()
    });
}

#[test]
fn threads_that_share_nothing_are_not_moved() {
    let Some(place) = built("independent") else {
        return;
    };
    // There are no events to be seen, but faults that could tell of some.
    follow(&place, "independent 8 20000 64", ENOUGH, |profile| {
        assert_eq!(profile.thread_moves, []);
        let online = profile.meta.online.as_ref().expect("online");
        online.caused as f64
    });
}
