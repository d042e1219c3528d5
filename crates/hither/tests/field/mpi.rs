//! MPI programs: one profile for all ranks, whichever way round they are started.
use super::*;

const MPIRUN: [&str; 7] = [
    "mpirun",
    "--oversubscribe",
    "--mca",
    "btl_vader_single_copy_mechanism",
    "none",
    "-np",
    "4",
];
/// Each rank of hpcc executes 140 million instructions, and phases need 100 slices.
const TRACE: [&str; 8] = [
    HITHER, "trace", "-q", "--slice", "500us", "-o", "traced", "--",
];

fn mpi(place: &Place, line: &[&str]) -> Option<Output> {
    if !there("mpirun") {
        return None;
    }
    let mut command = place.command(line);
    command
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    Some(run(command))
}

/// Communication between threads of different processes, and the largest other than it.
fn between_ranks(profile: &Profile) -> u64 {
    let process = |t: hither_profile::ThreadIx| profile.threads[t.at()].process;
    let across = profile.comm.iter().filter(|c| process(c.i) != process(c.j));
    across.map(|c| c.events).sum()
}

/// What came of a program that was started by this line in a folder of its own, and its profile.
fn traced(line: &[&str], prepare: impl Fn(&Place)) -> Option<(Place, Output, Profile)> {
    let place = Place::new();
    prepare(&place);
    let output = mpi(&place, line)?;
    assert_eq!(status(&output), 0, "{line:?} {}", text(&output.stderr));
    let profiles = place.shell("ls -d *.hither");
    assert_eq!(text(&profiles.stdout), "traced.hither\n");
    let profile = place.profile();
    let working = profile.threads.iter().zip(profile.working_threads());
    let working: Vec<_> = working.filter(|(_, works)| *works).collect();
    let rank = |t: &hither_profile::Thread| profile.meta.processes[t.process.at()].rank;
    assert!(working.iter().all(|(t, _)| rank(t).is_some()), "{line:?}");
    // The ranks and the progress thread of each, and no launcher.
    assert_eq!(working.len(), 8, "{line:?}");
    Some((place, output, profile))
}

/// Processes of the profile that run `program`.
fn ranks(profile: &Profile, program: &str) -> usize {
    profile
        .meta
        .processes
        .iter()
        .filter(|p| p.executable.ends_with(program))
        .count()
}

#[test]
fn ring() {
    let program = workload("mpi_ring");
    for line in [
        [&MPIRUN[..], &TRACE, &[&program]].concat(),
        [&TRACE[..], &MPIRUN, &[&program]].concat(),
    ] {
        let Some((_, output, profile)) = traced(&line, |_| ()) else {
            return;
        };
        assert_eq!(text(&output.stdout), "mpi_ring: 4 ranks, correct\n");
        assert_eq!(ranks(&profile, "mpi_ring"), 4);
        let programs = profile.meta.processes.iter();
        let programs = programs.filter(|p| p.executable.ends_with("mpi_ring"));
        let mut numbers: Vec<_> = programs.map(|p| p.rank).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, [Some(0), Some(1), Some(2), Some(3)]);
        let events = between_ranks(&profile);
        assert!(events > 1000, "{events}");
    }
}

#[test]
fn hpcc() {
    let example = "/usr/share/doc/hpcc/examples/_hpccinf.txt";
    if !Path::new(example).exists() {
        eprintln!("skipped: hpcc is not installed");
        return;
    }
    let prepare = |place: &Place| {
        let small = format!("sed -e '6s/^1000 /160 /' -e '8s/^80/32/' {example} > hpccinf.txt");
        assert!(place.shell(&small).status.success());
    };
    let line = [&TRACE[..], &MPIRUN, &["hpcc"]].concat();
    let Some((place, _, profile)) = traced(&line, prepare) else {
        return;
    };
    let report = fs::read_to_string(place.path("hpccoutf.txt")).expect("report");
    assert!(report.contains("Success=1"), "{report}");
    assert_eq!(ranks(&profile, "hpcc"), 4);
    let events = between_ranks(&profile);
    assert!(events > 10_000, "{events}");
    let stat = place.shell(&format!("{HITHER} stat --json traced.hither"));
    let stat: serde_json::Value = serde_json::from_slice(&stat.stdout).expect("json");
    // Its benchmarks communicate in different ways, each too short a time for a stable phase.
    let slices = stat["slices"].as_array().expect("slices");
    let some = slices.iter().filter(|s| s["amount"].as_f64() > Some(0.0));
    let found = some.filter_map(|s| s["heterogeneity"].as_f64());
    let least = found.clone().fold(f64::INFINITY, f64::min);
    let most = found.fold(0.0, f64::max);
    assert!(most >= 2.0 * least, "{least} to {most}");
}
