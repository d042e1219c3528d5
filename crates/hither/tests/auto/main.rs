//! `hither auto` on this machine: programs that must not notice, couples of threads that are
//! found and followed, and what is left when hither is killed. Shared memory is sampled from
//! outside, which needs root and no swap space; where that is not so, each test says so.
#[path = "../common/mod.rs"]
#[allow(dead_code)] // Other tests use more of it.
mod common;

mod foreign;
mod hidden;
mod joined;
mod killed;
mod patterns;
mod reached;
mod record;
mod refused;
mod roles;
mod safety;
mod stopped;
mod top;

use std::fs;

use common::{check_refusal, run, status, text, wait_for, Place, Running, HITHER, NOBODY};
use nix::fcntl::{Flock, FlockArg};
use nix::sys::signal::Signal;

use killed::masks;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/auto/couples.c");

/// Settings of the whole system are changed by one test at a time: the others, and those of
/// another checkout, wait until the file is closed.
fn settings_turn() -> Flock<fs::File> {
    let path = std::env::temp_dir().join("hither-test-settings.lock");
    let mut options = fs::File::options();
    options.write(true).create(true).truncate(false);
    let file = options.open(path).expect("lock file");
    let turn = Flock::lock(file, FlockArg::LockExclusive).expect("lock");
    // Of hithers that are ending yet.
    let state = || fs::metadata("/run/hither-sysctl.json").map_or(0, |state| state.len());
    wait_for("settings as they are without us", || state() == 0);
    turn
}

/// A folder with the program in it; `None` where shared memory cannot be sampled.
fn place_with_couples() -> Option<Place> {
    let place = Place::new();
    let built = place.shell(&format!("gcc -O1 -pthread -o couples {SOURCE}"));
    assert!(built.status.success(), "{}", text(&built.stderr));
    let tried = place.command(&[HITHER, "auto", "-q", "--sampler", "pageout", "--", "true"]);
    let tried = run(tried);
    if !tried.status.success() {
        println!("skipped: {}", text(&tried.stderr));
        return None;
    }
    Some(place)
}

/// The lines of the journal.
fn journal(place: &Place) -> Vec<serde_json::Value> {
    let lines = fs::read_to_string(place.path("lines")).expect("lines");
    let line = |line| serde_json::from_str(line).expect("json");
    lines.lines().map(line).collect()
}

/// Of the last matrix before `ms` in which all of `couples` live: the share of events that are not
/// between them, and those that are, by couple. Threads are numbered in order of their ids.
fn matrix_before(place: &Place, ms: u64, couples: &[(usize, usize)]) -> (f64, Vec<f64>) {
    let lines = journal(place);
    let before = lines
        .iter()
        .rev()
        .filter(|line| line["at"].as_u64() < Some(ms));
    let matrix = |line: &serde_json::Value| -> (Vec<(u64, u64, f64)>, Vec<u64>) {
        let pairs: Vec<(u64, u64, f64)> =
            serde_json::from_value(line["pairs"].clone()).expect("pairs");
        let mut tids: Vec<u64> = pairs.iter().flat_map(|p| [p.0, p.1]).collect();
        tids.sort_unstable();
        tids.dedup();
        (pairs, tids)
    };
    let mut matrices = before.map(matrix);
    let (pairs, tids) = matrices
        .find(|(_, tids)| tids.len() >= 2 * couples.len())
        .expect("a matrix of all couples");
    let at = |tid| tids.iter().position(|t| *t == tid).expect("known");
    let of = |couple: &(usize, usize)| {
        let found = pairs.iter().find(|p| (at(p.0), at(p.1)) == *couple);
        found.map_or(0.0, |p| p.2)
    };
    let between: Vec<f64> = couples.iter().map(of).collect();
    let all: f64 = pairs.iter().map(|p| p.2).sum();
    (1.0 - between.iter().sum::<f64>() / all, between)
}

#[test]
fn couples_are_found_in_each_phase() {
    let Some(place) = place_with_couples() else {
        return;
    };
    let line =
        "auto -v --budget 100% --sampler pageout --json-lines lines -- ./couples 8 2 8 16 shared";
    let line: Vec<&str> = [HITHER].into_iter().chain(line.split(' ')).collect();
    let output = run(place.command(&line));
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(status(&output), 0, "{err}");
    assert!(out.ends_with("0 wrong\n"), "{out}");
    let near: Vec<_> = (0..4).map(|i| (2 * i, 2 * i + 1)).collect();
    let far: Vec<_> = (0..4).map(|i| (i, i + 4)).collect();
    for (ms, couples) in [(7900, near), (15_900, far)] {
        let (astray, between) = matrix_before(&place, ms, &couples);
        println!(
            "before {ms} ms: {between:?}, {:.1} % astray",
            100.0 * astray
        );
        assert!(between.iter().all(|&events| events > 0.0), "{between:?}");
        assert!(astray <= 0.1, "{astray}");
    }
    // What the program asked the kernel: every thread was on one unit in both phases.
    let threads: Vec<&str> = out.lines().filter(|l| l.starts_with("thread")).collect();
    assert_eq!(threads.len(), 16, "{out}");
    for thread in threads {
        assert_eq!(thread.split(' ').count(), 5, "{thread}");
    }
}

#[test]
fn programs_do_not_notice() {
    let place = Place::new();
    let lines = [
        "echo out; echo err >&2; exit 7",
        "kill -9 $$",
        "kill -TERM $$",
        "seq 100000 | sort -rn | tail -n 3; (exit 3) & wait $!",
        "sleep 0.3 & cat /proc/self/status | grep -E 'Cpus_allowed_list|SigBlk|SigIgn|TracerPid'; wait",
    ];
    for line in lines {
        let alone = place.shell(line);
        let followed = run(place.command(&[HITHER, "auto", "-q", "--", "sh", "-c", line]));
        assert_eq!(status(&alone), status(&followed), "{line}");
        assert_eq!(text(&alone.stdout), text(&followed.stdout), "{line}");
        assert_eq!(text(&alone.stderr), text(&followed.stderr), "{line}");
    }
}

#[test]
fn mistakes_are_told() {
    let place = Place::new();
    let check = |line: &str, expected: i32, what: &str| {
        let line: Vec<&str> = [HITHER, "auto"]
            .into_iter()
            .chain(line.split(' '))
            .collect();
        let output = run(place.command(&line));
        assert_eq!(status(&output), expected, "{line:?}");
        let err = text(&output.stderr);
        assert!(err.contains(what), "{err}");
    };
    check("--budget 300 -- true", 2, "between 0% and 100%");
    check("-q", 2, "--pid");
    check("--pid 1 -- true", 2, "cannot be used with");
    check("--pid 999999999", 2, "there is no process 999999999");
    check("-- no-such-program", 127, "no such program");
    check("--sampler magic -- true", 2, "numa-balancing");
    check(
        "--policy os+random -- true",
        2,
        "there is no policy \"os+random\"",
    );
    check(
        "--policy matching --data-only -- true",
        2,
        "cannot be used with",
    );
    check(
        "--parameter sharers=3 -- true",
        2,
        "--mechanism adaptive has no parameter \"sharers\"",
    );
    let kmaf = "--mechanism kmaf --parameter";
    check(&format!("{kmaf} sharers=9 -- true"), 2, "from 2 to 8");
    check(&format!("{kmaf} sharers -- true"), 2, "NAME=VALUE");
}

/// Of two mechanisms: what is set is kept, and shown.
#[test]
fn what_is_set_of_a_mechanism_is_kept() {
    let place = Place::new();
    let check = |options: &str, line: &str, policy: &str, set: &[(&str, f64)]| {
        let line_of = format!("auto -v -o p --json out.json {options} -- true");
        let words: Vec<&str> = [HITHER].into_iter().chain(line_of.split(' ')).collect();
        let output = run(place.command(&words));
        let err = text(&output.stderr);
        if status(&output) == 2 && err.contains("cannot be observed") {
            println!("skipped: {err}");
            return;
        }
        assert_eq!(status(&output), 0, "{err}");
        assert!(err.contains(line), "{err}");
        let profile = hither_profile::read(&place.path("p.hither")).expect("a profile");
        let online = profile.meta.online.expect("online");
        let json = fs::read_to_string(place.path("out.json")).expect("json");
        let json: serde_json::Value = serde_json::from_str(&json).expect("json");
        assert_eq!(
            (online.policy.as_str(), &json["policy"]),
            (policy, &policy.into())
        );
        for (name, value) in set {
            assert_eq!(online.parameters.get(*name), Some(value), "{name}");
            assert_eq!(json["parameters"][name], *value, "{name}");
        }
    };
    check(
        "--mechanism kmaf --policy matching --parameter sharers=4 --parameter ageing=0.6",
        "mechanism: kmaf, ageing=0.6, caused-share=10,",
        "matching",
        &[("sharers", 4.0), ("ageing", 0.6), ("sub-block", 1024.0)],
    );
    check(
        "--mechanism spcd --parameter window=50",
        "window=50; policy: matching",
        "matching",
        &[("window", 50.0), ("granularity", 4096.0)],
    );
}

/// It has touched all of its memory before, so that no fault of its own tells of any.
#[test]
fn a_process_that_runs_already_is_joined_and_left() {
    let Some(place) = place_with_couples() else {
        return;
    };
    let couples = Running::start(place.command(&["./couples", "4", "1", "1000", "16", "shared"]));
    let pid = i32::try_from(couples.child.id()).expect("pid");
    wait_for("threads", || masks(pid).len() == 4);
    std::thread::sleep(std::time::Duration::from_millis(500));
    let before = masks(pid);
    let id = pid.to_string();
    let line = [HITHER, "auto", "--budget", "20%", "--pid", &id];
    let hither = Running::start(place.command(&line));
    if before[0].parse::<u32>().is_err() {
        wait_for("pinned threads", || {
            masks(pid).iter().all(|mask| mask.parse::<u32>().is_ok())
        });
    }
    hither.signal(Signal::SIGINT);
    let left = hither.end();
    assert_eq!(status(&left), 0, "{}", text(&left.stderr));
    assert_eq!(masks(pid), before);
    couples.signal(Signal::SIGUSR1);
    assert!(text(&couples.end().stdout).ends_with("0 wrong\n"));
}
