//! A placement at work on this machine: from trace to run, threads that it does not name,
//! and programs that wait while their threads and pages move.
use super::*;
use crate::placement::{pages_of, placement, Machine, Phase};
use serde_json::Value;

/// The kernel's numbers of the units that tests may use.
fn units() -> Vec<u32> {
    let mask = nix::sched::sched_getaffinity(nix::unistd::Pid::from_raw(0)).expect("a mask");
    let allowed = |cpu: &u32| mask.is_set(*cpu as usize).unwrap_or(false);
    (0..1024).filter(allowed).collect()
}

fn machine(place: &Place) -> Machine {
    let mapped = place.shell(&format!(
        "echo '0,1\n1,0' > m.csv; {HITHER} map --matrix m.csv -o machine"
    ));
    assert!(mapped.status.success(), "{}", text(&mapped.stderr));
    let base: Value = serde_json::from_str(&place.read("machine.place.json")).expect("json");
    let number = |value: &Value| u32::try_from(value.as_u64().expect("a number")).expect("small");
    Machine {
        units: number(&base["machine"]["units"]),
        nodes: u32::try_from(base["machine"]["nodes"].as_array().expect("nodes").len())
            .expect("few"),
        fingerprint: base["machine"]["fingerprint"]
            .as_str()
            .expect("text")
            .to_owned(),
    }
}

fn outcome(place: &Place) -> Value {
    serde_json::from_str(&place.read("outcome.json")).expect("json")
}

/// The tracer, the mapping and the run of one program, as a user does it.
#[test]
fn from_trace_to_run() {
    let place = Place::new();
    let program = workload("ondes");
    let line = format!(
        "export OMP_NUM_THREADS=4; {program} 32 200 > alone &&
         {HITHER} trace -q -o traced -- {program} 32 20 > /dev/null && {HITHER} map traced.hither --force -o placed &&
         {HITHER} run -q -p placed.place.json --json outcome.json -- {program} 32 200 > followed"
    );
    let done = place.marked_shell(&line);
    assert_eq!(status(&done), 0, "{}", text(&done.stderr));
    assert!(place.read("alone").contains("energy"));
    assert_eq!(place.read("alone"), place.read("followed"));
    let placed: Value = serde_json::from_str(&place.read("placed.place.json")).expect("json");
    let outcome = outcome(&place);
    assert_eq!(outcome["method"], "ptrace");
    let threads = outcome["threads"].as_array().expect("threads");
    assert_eq!(threads.len(), 4);
    for (i, thread) in threads.iter().enumerate() {
        assert_eq!(thread["thread"], i);
        assert_eq!(
            thread["asked"], placed["phases"][0]["threads"][i][2],
            "{thread}"
        );
        assert_eq!(thread["asked"], thread["ran"], "{thread}");
    }
    place.nobody_left();
}

/// Threads that the placement does not name keep the mask that there was, and so do
/// children, whoever creates them.
#[test]
fn affinity_does_not_leak() {
    let place = Place::new();
    let program = built("notice");
    let units = units();
    let (first, last) = (units[0], units[units.len() - 1]);
    let symbols = text(&place.shell(&format!("nm -S {program}")).stdout);
    let (_, _, bytes) = pages_of(&symbols, "programs");
    let some = Phase {
        start_ms: 0,
        threads: vec![(0, last), (2, first)],
        pages: vec![],
    };
    place.write(
        "some.place.json",
        &placement(program, bytes, 4, &machine(&place), &[some]),
    );
    let alone = run(place.command(&[program, "masks"]));
    let all = text(&alone.stdout);
    let all = all
        .lines()
        .next()
        .expect("a line")
        .split(' ')
        .next_back()
        .expect("a mask");
    let followed = run(place.marked(&[
        HITHER,
        "run",
        "-q",
        "-p",
        "some.place.json",
        "--",
        program,
        "masks",
    ]));
    assert_eq!(text(&followed.stderr), "");
    assert_eq!(
        text(&followed.stdout),
        format!(
            "main {last}\nthread 1 {all}\nthread 2 {first}\nchild of thread 2 {all}\n\
             thread 3 {all}\nchild {all}\nCpus_allowed_list:\t{all}\n"
        )
    );
    place.nobody_left();
}

/// Every 40 ms another placement of every thread, and of an array's pages.
fn restless(place: &Place, nodes: &[u32], units: &[u32], machine: &Machine) -> String {
    let program = built("waits");
    let symbols = text(&place.shell(&format!("nm -S {program}")).stdout);
    let (page, pages, bytes) = pages_of(&symbols, "moved");
    let phase = |i: usize| Phase {
        start_ms: 40 * i as u64,
        threads: (0..40)
            .map(|t| (t, units[(t as usize + i) % units.len()]))
            .collect(),
        pages: vec![(page, pages, nodes[i % nodes.len()])],
    };
    let phases: Vec<Phase> = (0..200).map(phase).collect();
    placement(program, bytes, 40, machine, &phases)
}

/// System calls that wait return what they would, while threads and pages move about.
#[test]
fn waiting_while_phases_change() {
    let place = Place::new();
    let machine = machine(&place);
    place.write(
        "restless.place.json",
        &restless(&place, &[0], &units(), &machine),
    );
    for line in [&[built("waits"), "threads"][..], &[built("waits")]] {
        let alone = run(place.command(line));
        let front = [
            "run",
            "-q",
            "-p",
            "restless.place.json",
            "--json",
            "outcome.json",
            "--",
        ];
        let followed = run(place.marked(&[&[HITHER], &front[..], line].concat()));
        same(line, &alone, &followed);
        let phases = outcome(&place)["phases"].as_array().map_or(0, Vec::len);
        assert!(phases >= 2, "{line:?}: {phases} changes of phase");
        place.nobody_left();
    }
}

/// As if the files of the user were damaged or meant for somebody else.
#[test]
fn placements_that_name_nothing_of_the_program() {
    let place = Place::new();
    let machine = machine(&place);
    let nothing = Phase {
        start_ms: 0,
        threads: vec![],
        pages: vec![],
    };
    let empty = placement("", 0, 0, &machine, &[nothing]);
    place.write("empty.place.json", &empty);
    let other = Phase {
        start_ms: 0,
        threads: vec![(0, units()[0])],
        pages: vec![(0, 1, 0)],
    };
    place.write(
        "other.place.json",
        &placement("/usr/bin/other", 4096, 1, &machine, &[other]),
    );
    for name in ["empty.place.json", "other.place.json"] {
        let line = [
            HITHER,
            "run",
            "-q",
            "-p",
            name,
            "--",
            built("abuse"),
            "threads",
        ];
        let output = run(place.marked(&line));
        assert_eq!(text(&output.stderr), "", "{name}");
        assert_eq!(text(&output.stdout), "9785692\n", "{name}");
        assert_eq!(status(&output), 0, "{name}");
    }
    place.nobody_left();
}
