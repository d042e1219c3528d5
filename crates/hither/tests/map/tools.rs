//! Each format bound to a real program by the tool it is for, and read back.
use super::*;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::Child;
use std::sync::OnceLock;

use hither_profile::{PairComm, Process, ProcessIx, Slice, Thread, ThreadIx};

/// The program that says where its threads may run, built once per run of the tests.
fn places() -> String {
    static BUILT: OnceLock<TempDir> = OnceLock::new();
    let folder = BUILT.get_or_init(|| {
        let folder = tempfile::tempdir().expect("tempdir");
        let source = format!("{SOURCES}/places.c");
        let mut gcc = Command::new("gcc");
        gcc.args(["-std=gnu11", "-O1", "-fopenmp", "-pthread", "-o", "places"]);
        let done = gcc.arg(source).current_dir(folder.path()).status();
        assert!(done.expect("gcc").success());
        folder
    });
    folder.path().join("places").to_string_lossy().into_owned()
}

/// A folder with a placement of four threads on this machine, and their PUs. Threads 0
/// and 3 talk, so that they are not simply in order.
fn placed() -> (Place, Vec<u64>) {
    let place = Place::with_matrix(CROSSED);
    let pus = place.pus(&["--matrix", "m.csv", "-o", "p"]);
    assert_eq!(pus.len(), 4);
    (place, pus)
}

/// What a shell prints, without what hither or a tool may have set before.
#[track_caller]
fn shell(place: &Place, script: &str) -> (String, String) {
    let mut command = place.command(&["sh", "-c", script]);
    for name in ["OMP_PLACES", "OMP_PROC_BIND", "OMP_NUM_THREADS"] {
        command.env_remove(name);
    }
    command
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    let output = command.output().expect("sh");
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{script}\n{out}\n{err}");
    (out, err)
}

/// Lines `thread PU` in any order against the PU of each thread.
#[track_caller]
fn check_lines(lines: &str, pus: &[u64]) {
    let mut got: Vec<&str> = lines.lines().collect();
    got.sort_unstable();
    let want: Vec<String> = pus
        .iter()
        .enumerate()
        .map(|(t, pu)| format!("{t} {pu}"))
        .collect();
    assert_eq!(got, want);
}

#[test]
fn openmp_environment() {
    let (place, pus) = placed();
    let places = places();
    let set = format!("eval \"$({HITHER} map p.place.json --format env)\"");
    let (out, _) = shell(&place, &format!("{set}; {places} omp"));
    check_lines(&out, &pus);
    // What the runtime itself says of it.
    let show = "export OMP_DISPLAY_AFFINITY=true OMP_AFFINITY_FORMAT='%n %A'";
    let (_, said) = shell(&place, &format!("{set}; {show}; {places} omp"));
    check_lines(&said, &pus);
    // The older variable of the GNU runtime alone.
    let old = "unset OMP_PLACES OMP_PROC_BIND";
    let (out, _) = shell(&place, &format!("{set}; {old}; {places} omp"));
    check_lines(&out, &pus);
}

/// A program with four threads that waits for a line.
struct Waiting(Child, BufReader<std::process::ChildStdout>);

impl Waiting {
    fn start(place: &Place) -> Waiting {
        let places = places();
        let mut command = place.command(&[&places, "wait", "4"]);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("places");
        let mut out = BufReader::new(child.stdout.take().expect("stdout"));
        let mut line = String::new();
        out.read_line(&mut line).expect("a line");
        assert_eq!(line, "ready\n");
        Waiting(child, out)
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Lets it go on; what its threads say.
    fn end(mut self) -> String {
        let mut input = self.0.stdin.take().expect("stdin");
        input.write_all(b"go\n").expect("write");
        let mut rest = String::new();
        self.1.read_to_string(&mut rest).expect("read");
        assert!(self.0.wait().expect("wait").success());
        rest
    }
}

/// Writes the script, runs it on a waiting program, and reads back with `reader`, which
/// prints a line for each thread that ends in its PU.
#[track_caller]
fn check_script(format: &str, reader: impl Fn(u32) -> String) {
    let (place, pus) = placed();
    place.map(&["p.place.json", "--format", format, "-o", "pin.sh"]);
    let waiting = Waiting::start(&place);
    let pid = waiting.pid();
    shell(&place, &format!("sh pin.sh {pid}"));
    let (read, _) = shell(&place, &reader(pid));
    let read: Vec<u64> = read.lines().map(|l| l.parse().expect(l)).collect();
    assert_eq!(read, pus, "{format}");
    check_lines(&waiting.end(), &pus);
    let refused = place.command(&["sh", "pin.sh"]).output().expect("sh");
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn taskset() {
    check_script("taskset", |pid| {
        format!("taskset -a -c -p {pid} | sed 's/.*: //'")
    });
}

#[test]
fn hwloc() {
    // A line per thread: id, cpuset, name; those of threads begin with a blank.
    check_script("hwloc-bind", |pid| {
        format!(
            "hwloc-ps --pid {pid} -t -c | grep '^ ' | while read -r tid set name; do
               hwloc-calc --physical --intersect PU \"$set\"; done"
        )
    });
}

#[test]
fn numactl() {
    let (place, mut pus) = placed();
    let (out, _) = shell(
        &place,
        &format!("$({HITHER} map p.place.json --format numactl) numactl --show"),
    );
    pus.sort_unstable();
    pus.dedup();
    let bound = out.lines().find_map(|l| l.split_once("physcpubind:"));
    let bound = bound.expect("physcpubind").1.split_whitespace();
    let bound: Vec<u64> = bound.map(|n| n.parse().expect("a number")).collect();
    assert_eq!(bound, pus, "{out}");
    assert!(out.contains("policy: local"), "{out}");
}

/// likwid-pin has no list for any four threads on two PUs, so that here two threads are
/// placed, and four by the policy whose order it knows on any machine.
#[test]
fn likwid_pin() {
    let place = Place::with_matrix(CROSSED);
    place.put("two.csv", "0,5\n5,0\n");
    for (args, threads) in [
        (&["--matrix", "two.csv"][..], "2"),
        (&["--matrix", "m.csv", "--policy", "scatter"], "4"),
    ] {
        let pus = place.pus(&[args, &["-o", "p"]].concat());
        let pinned = format!("$({HITHER} map p.place.json --format likwid-pin)");
        let (out, _) = shell(&place, &format!("{pinned} {} threads {threads}", places()));
        check_lines(&out, &pus);
        let omp = format!("OMP_NUM_THREADS={threads} {pinned} {} omp", places());
        check_lines(&shell(&place, &omp).0, &pus);
    }
}

/// Two ranks of one thread each, and their launcher, which does nothing.
fn ranks() -> Profile {
    let program = |pid: i32, executable: &str| Process {
        pid,
        executable: executable.to_owned(),
        ..Process::default()
    };
    let thread = |process: u32, reads: u64| Thread {
        process: ProcessIx(process),
        reads,
        ..Thread::default()
    };
    let mut profile = Profile {
        threads: vec![thread(0, 5), thread(1, 1_000_000), thread(2, 1_000_000)],
        comm: vec![PairComm {
            i: ThreadIx(1),
            j: ThreadIx(2),
            events: 1000,
            ..PairComm::default()
        }],
        slices: vec![Slice::default()],
        ..Profile::default()
    };
    // The second rank appeared first.
    profile.meta.processes = vec![
        program(10, "mpirun"),
        program(12, "./app"),
        program(11, "./app"),
    ];
    profile
}

/// The profile's own ranks come before the order of process ids, and a process that a rank
/// made is none.
#[test]
fn ranks_are_those_that_the_launcher_gave() {
    let mut profile = ranks();
    let processes = &mut profile.meta.processes;
    processes[1].rank = Some(0);
    processes[2].rank = Some(1);
    let made = Process {
        pid: 13,
        ..processes[2].clone()
    };
    processes.push(made);
    let thread = profile.threads[2].clone();
    profile.threads.push(Thread {
        process: ProcessIx(3),
        ..thread
    });
    let place = Place::with_profile(&profile);
    place.map(&["app.hither", "--force", "-o", "p"]);
    let text = std::fs::read_to_string(place.path("p.place.json")).expect("placement");
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let processes = json["processes"].as_array().expect("processes");
    let numbers: Vec<_> = processes.iter().map(|p| p["rank"].as_u64()).collect();
    assert_eq!(numbers, [None, Some(0), Some(1), None]);
}

#[test]
fn openmpi() {
    let place = Place::with_profile(&ranks());
    let json = place.json(&["app.hither", "--force", "-o", "p"]);
    assert_eq!(json["threads"], serde_json::json!([1, 2]));
    let pus = numbers(&json["pus"]);
    place.map(&["p.place.json", "--format", "openmpi-rankfile", "-o", "rf"]);
    let file = std::fs::read_to_string(place.path("rf")).expect("file");
    let first = file.lines().next().and_then(|l| l.strip_prefix("# "));
    let command = first.expect("how to use it").replace("FILE", "rf");
    let command = command.replacen("mpirun", "mpirun --oversubscribe --report-bindings", 1);
    let program = "sh -c 'echo \"$OMPI_COMM_WORLD_RANK $(taskset -c -p $$ | sed \"s/.*: //\")\"'";
    let (out, said) = shell(&place, &format!("{command} {program}"));
    check_lines(&out, &[pus[1], pus[0]]);
    let bound = said.lines().filter(|l| l.contains("MCW rank")).count();
    assert_eq!(bound, 2, "{said}");
}
