//! `hither run` on programs with phases: threads move at the barrier at which they should,
//! and every barrier is counted. Needs the tracer (`cargo xtask tracer`).
#[allow(dead_code)] // Other tests use more of it.
#[path = "../common/mod.rs"]
mod common;

use common::{run, status, text, Place, HITHER};
use hither_sys::perf::{InheritScope, PerfCounter};
use serde_json::{json, Value};
use std::fs;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/phases/program.c");
const ROUNDS: u64 = 40;
/// Later than any run lasts.
const NEVER: u64 = 3_600_000_000_000;

/// A folder with the program, built by `compiler` with `flags`.
fn built(compiler: &str, flags: &str) -> Place {
    let place = Place::new();
    let built = place.shell(&format!(
        "{compiler} -O1 -g -pthread {flags} -o program {SOURCE}"
    ));
    assert_eq!(status(&built), 0, "{}", text(&built.stderr));
    place
}

/// Whether barriers can be counted on this machine.
fn can_count() -> bool {
    let counter = PerfCounter::breakpoint(0, 0x1000, InheritScope::Threads);
    if let Err(error) = &counter {
        eprintln!("skipped: no breakpoints can be counted here: {error}");
    }
    counter.is_ok()
}

/// Where threads are: as many as there are PUs, in turn, `shift` further on.
fn seats(threads: &[u64], shift: u64) -> Value {
    let pus = allowed();
    let pu = |n: u64| pus[((n + shift) % pus.len() as u64) as usize];
    let seat = |(n, thread): (u64, &u64)| json!([thread, pu(n), pu(n), 0]);
    (0..).zip(threads).map(seat).collect()
}

fn allowed() -> Vec<u64> {
    (0..std::thread::available_parallelism().map_or(1, |n| n.get() as u64)).collect()
}

/// Traces the command and gives it a second phase that begins at `start` and after so many
/// synchronisation points.
fn placement(place: &Place, command: &str, start: u64, sync: [u64; 4]) {
    let traced = place.shell(&format!(
        "{HITHER} trace -q -o t -- {command} && {HITHER} map t.hither --force -o p"
    ));
    assert_eq!(status(&traced), 0, "{}", text(&traced.stderr));
    let file = place.path("p.place.json");
    let text = fs::read_to_string(&file).expect("placement");
    let mut placement: Value = serde_json::from_str(&text).expect("JSON");
    let threads = placement["phases"][0]["threads"]
        .as_array()
        .expect("threads");
    let threads: Vec<u64> = threads.iter().filter_map(|t| t[0].as_u64()).collect();
    let mut first = placement["phases"][0].clone();
    first["pages"] = json!([]);
    first["threads"] = seats(&threads, 0);
    let mut second = first.clone();
    second["threads"] = seats(&threads, 1);
    second["start"] = json!(start);
    second["sync"] = json!(sync);
    placement["phases"] = json!([first, second]);
    placement["regions"] = json!([]);
    fs::write(file, placement.to_string()).expect("write");
}

/// Runs the command as placed. What the outcome says, and what the program printed.
fn placed(place: &Place, line: &str) -> (Value, String) {
    let line = format!("{HITHER} run -p p.place.json --json o.json {line}");
    let mut command = place.command(&["sh", "-c", &line]);
    command
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    let output = run(command);
    assert_eq!(status(&output), 0, "{line}: {}", text(&output.stderr));
    let outcome = fs::read_to_string(place.path("o.json")).expect("outcome");
    (
        serde_json::from_str(&outcome).expect("JSON"),
        text(&output.stdout),
    )
}

/// The second phase is entered when the last synchronisation point is passed, and not when
/// one more is asked for.
#[track_caller]
fn check(place: &Place, command: &str, sync: [u64; 4]) {
    if !can_count() {
        return;
    }
    for (more, changes) in [(0, 1), (1, 0)] {
        let kinds = 0..sync.len();
        for kind in kinds.filter(|kind| sync[*kind] > 0 && more > 0 || more == 0 && *kind == 0) {
            let mut wanted = sync;
            wanted[kind] += more;
            placement(place, command, NEVER, wanted);
            let (outcome, _) = placed(place, &format!("-- {command}"));
            let phases = outcome["phases"].as_array().expect("phases");
            assert_eq!(phases.len(), changes, "{wanted:?}: {outcome:#}");
        }
    }
}

#[test]
fn every_barrier_of_libpthread_is_counted() {
    let place = built("gcc", "");
    check(
        &place,
        &format!("./program pthread {ROUNDS}"),
        [8 * ROUNDS, 0, 0, 0],
    );
}

#[test]
fn every_barrier_of_a_static_program_is_counted() {
    let place = built("gcc", "-static");
    check(
        &place,
        &format!("./program pthread {ROUNDS}"),
        [8 * ROUNDS, 0, 0, 0],
    );
}

#[test]
fn every_barrier_and_region_of_openmp_is_counted() {
    let place = built("gcc", "-fopenmp");
    check(
        &place,
        &format!("./program openmp {ROUNDS}"),
        [0, 4 * ROUNDS, ROUNDS, 0],
    );
}

#[test]
fn barriers_of_a_program_that_a_shell_starts_are_counted() {
    let place = built("gcc", "");
    let command = format!("sh -c './program pthread {ROUNDS}; true'");
    check(&place, &command, [8 * ROUNDS, 0, 0, 0]);
}

#[test]
fn barriers_of_ranks_are_counted() {
    if status(&Place::new().shell("command -v mpicc mpirun")) != 0 {
        eprintln!("skipped: Open MPI is not installed");
        return;
    }
    let place = built("mpicc", "-DRANKS");
    let command = format!("mpirun --oversubscribe --bind-to none -np 4 ./program mpi {ROUNDS}");
    let allowed = "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1";
    check(
        &place,
        &format!("env {allowed} {command}"),
        [0, 0, 0, 4 * ROUNDS],
    );
}

#[test]
fn the_tracer_counts_the_same() {
    for (flags, kind, expected) in [
        ("", "pthread", [8 * ROUNDS, 0, 0, 0]),
        ("-static", "pthread", [8 * ROUNDS, 0, 0, 0]),
        ("-fopenmp", "openmp", [0, 4 * ROUNDS, ROUNDS, 0]),
    ] {
        let place = built("gcc", flags);
        // Whatever of the run is traced.
        for only in ["", "--until milliseconds", "--sample 0.2"] {
            let trace = format!("{HITHER} trace -q {only} -o t -- ./program {kind} {ROUNDS} 1");
            let traced = place.shell(&format!("rm -rf t.hither; {trace}"));
            assert_eq!(status(&traced), 0, "{trace}: {}", text(&traced.stderr));
            let profile = hither_profile::read(&place.path("t.hither")).expect("profile");
            let mut sums = [0; 4];
            for slice in &profile.slices {
                sums.iter_mut().zip(slice.sync).for_each(|(s, n)| *s += n);
            }
            assert_eq!(sums, expected, "{flags} {only}");
        }
    }
}

/// From the trace to the run: each half of it has its pairs on a PU each.
#[test]
fn threads_follow_the_phases_that_were_traced() {
    if allowed().len() < 2 || !can_count() {
        eprintln!("skipped: one PU, or nothing to count with");
        return;
    }
    let place = built("gcc", "");
    let command = "./program pthread 120";
    let traced = place.shell(&format!(
        "{HITHER} trace -q --slice-clock wall -o t -- {command} && {HITHER} map t.hither --phases --rule opt --phase-window 10 --min-heterogeneity 0 --min-amount 0 --thread-interval 100ms --pus 0,1 -o p"
    ));
    assert_eq!(status(&traced), 0, "{}", text(&traced.stderr));
    let (outcome, printed) = placed(&place, &format!("-- {command}"));
    let pu = |half: u64, thread: u64| {
        let line = format!("{half} {thread} ");
        let found = printed.lines().find_map(|l| l.strip_prefix(&line));
        found.unwrap_or_else(|| panic!("{printed}")).to_owned()
    };
    for (half, pairs) in [(0, [(0, 1), (2, 3)]), (1, [(0, 2), (1, 3)])] {
        for (a, b) in pairs {
            assert_eq!(pu(half, a), pu(half, b), "{printed}{outcome:#}");
        }
        assert_ne!(pu(half, pairs[0].0), pu(half, pairs[1].0), "{printed}");
    }
}

#[test]
fn without_barriers_phases_go_by_time() {
    let place = built("gcc", "");
    placement(&place, "./program time 40", 200_000_000, [0; 4]);
    let (outcome, _) = placed(&place, "-- ./program time 40");
    let at = outcome["phases"][0]["at"].as_u64().expect("a phase");
    assert!((200_000_000..400_000_000).contains(&at), "{outcome:#}");
    let notes = outcome["notes"].to_string();
    assert!(notes.contains("went by time"), "{notes}");
}

#[test]
fn who_asks_for_time_gets_time() {
    let place = built("gcc", "");
    placement(&place, "./program pthread 40", 200_000_000, [1, 0, 0, 0]);
    let (outcome, _) = placed(&place, "--phases-by-time -- ./program pthread 40");
    let at = outcome["phases"][0]["at"].as_u64().expect("a phase");
    assert!(at >= 200_000_000, "{outcome:#}");
}
