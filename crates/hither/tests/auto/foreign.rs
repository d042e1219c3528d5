//! Programs from Debian, with each sampler that works here: what they write and how they end
//! is what it would be.
use super::*;
use std::fmt::Write;

/// Several threads that work on a few megabytes.
const PROGRAMS: [&str; 4] = [
    "pigz -n -p4 -c numbers",
    "xz -T4 -0 --block-size=1MiB -c numbers",
    "zstd -q -T4 -6 -B1M -c numbers",
    "sort --parallel=4 -k2n numbers absent",
];

fn place() -> Place {
    let place = Place::new();
    let mut lines = String::new();
    for i in 0..1_200_000_u64 {
        writeln!(lines, "{i} {}", i * i % 9973).expect("written");
    }
    fs::write(place.path("numbers"), lines).expect("numbers");
    place
}

/// `causes`: whether these programs have memory that the sampler takes, if that is certain.
fn check(sampler: &[&str], causes: Option<bool>) {
    let place = place();
    let front = [HITHER, "auto", "-q", "--budget", "50%", "--sampler"];
    let front = [&front[..], sampler, &["--json", "outcome", "--"]].concat();
    let tried = run(place.command(&[&front[..], &["true"]].concat()));
    if !tried.status.success() {
        println!("skipped: {}", text(&tried.stderr));
        return;
    }
    let mut caused = 0;
    for program in PROGRAMS {
        let program: Vec<&str> = program.split(' ').collect();
        let alone = run(place.command(&program));
        let followed = run(place.command(&[&front[..], &program].concat()));
        assert_eq!(status(&followed), status(&alone), "{program:?}");
        assert!(followed.stdout == alone.stdout, "{program:?}");
        assert_eq!(text(&followed.stderr), text(&alone.stderr), "{program:?}");
        let outcome = fs::read(place.path("outcome")).expect("outcome");
        let outcome: serde_json::Value = serde_json::from_slice(&outcome).expect("json");
        caused += outcome["extra"].as_u64().expect("a number");
    }
    println!("{sampler:?}: {caused} faults caused");
    assert_eq!(caused > 0, causes.unwrap_or(caused > 0));
}

#[test]
fn with_move() {
    check(&["move"], Some(true));
}

#[test]
fn with_write_protect() {
    check(&["write-protect"], Some(true));
}

/// None of them shares memory with others.
#[test]
fn with_pageout() {
    check(&["pageout"], Some(false));
}

/// The kernel leaves memory alone while it is new, and these programs end soon.
#[test]
fn with_numa_balancing() {
    let _turn = settings_turn();
    check(&["numa-balancing", "--allow-sysctl"], None);
}
