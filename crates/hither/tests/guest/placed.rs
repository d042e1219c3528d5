//! The proof of `hither run`: programs are traced here, mapped and run on the machine with
//! four nodes, and watched there by `look`, which knows nothing of hither: every thread on
//! its unit, every placed page on its node, the same output as without hither.
use super::*;
use crate::look::{read, Pages, Process};
use crate::placement::{pages_of, placement, Machine, Phase};
use hither_profile::{read_placement, Placement};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");
/// Maps and runs, with a plain run before: `prove NAME PROCESS LINE...`.
const PROVE: &str = r#"#!/bin/sh
name=$1 process=$2
shift 2
"$@" > plain 2> plain.err < /dev/null
echo "status $?" > plain.status
hither map $name.hither --policy locality -o $name > map.out 2>&1 || { cat map.out; exit 9; }
cp $name.place.json /out/placement
look /out/look $process &
look=$!
until test -e /out/look; do sleep 0.05; done
hither run -q -p $name.place.json --json /out/outcome $HOW -- "$@" > placed 2> placed.err < /dev/null
echo "status $?" > placed.status
kill $look
wait $look
for what in '' .err .status; do
  cmp plain$what placed$what || { tail -c 500 placed placed.err placed.status; exit 8; }
done
cp plain.status /out/status
"#;

/// A program that is proved.
struct Subject {
    name: &'static str,
    /// As /proc calls it.
    process: &'static str,
    line: String,
    /// Of 100 pages with a policy, so many at least are where it says.
    percent: u64,
}

/// A folder of the host in which subjects are traced.
struct Workshop {
    folder: TempDir,
}

fn target() -> PathBuf {
    let target = Path::new(HITHER).ancestors().nth(2);
    target.expect("a target folder").to_path_buf()
}

impl Workshop {
    fn new() -> Workshop {
        let workshop = Workshop {
            folder: tempfile::tempdir().expect("tempdir"),
        };
        workshop.shell(&format!(
            "gcc -O2 -o look {SOURCES}/guest/look.c && gcc -O1 -pthread -o waits {SOURCES}/run/waits.c -lrt &&
             seq 40000 | sed 's/.*/& &1 &7 &3/' > numbers"
        ));
        workshop
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    #[track_caller]
    fn shell(&self, line: &str) -> String {
        let mut shell = Command::new("sh");
        shell.args(["-c", line]).current_dir(self.folder.path());
        shell
            .env("OMP_NUM_THREADS", "8")
            .env("OMPI_ALLOW_RUN_AS_ROOT", "1");
        shell.env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        let output = shell.output().expect("sh");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{line}: {errors}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// A guest in which `prove` works for the subjects, in the folder where they were traced.
    fn guest(&self, guest: Guest, subjects: &[Subject]) -> Guest {
        let mut guest = guest
            .file_at(self.path("look"), "/usr/bin/look")
            .file(self.path("numbers"))
            .file(target().join("workloads"))
            .text("/usr/bin/prove", PROVE)
            .folder(self.folder.path())
            .timeout(Duration::from_secs(600));
        for subject in subjects {
            self.shell(&format!(
                "{HITHER} trace -q -o {0} -- {1} > /dev/null; echo status $? > {0}.status; test -d {0}.hither",
                subject.name, subject.line
            ));
            guest = guest.file(self.path(&format!("{}.hither", subject.name)));
        }
        guest
    }

    fn placement(&self, output: &CommandOutput) -> Placement {
        let path = self.path("read.place.json");
        std::fs::write(&path, &output.files["placement"]).expect("write");
        read_placement(&path).expect("a placement")
    }
}

fn command(subject: &Subject) -> String {
    format!(
        "export OMP_NUM_THREADS=8 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; prove {} {} {}",
        subject.name, subject.process, subject.line
    )
}

/// What was seen of a subject, judged by its placement.
#[derive(Default)]
struct Judged {
    complaints: Vec<String>,
    /// Mappings with pages on another node than theirs.
    strays: Vec<String>,
    threads: usize,
    by_policy: Pages,
    by_page: Pages,
}

fn judge(placement: &Placement, processes: &[Process]) -> Judged {
    let mut judged = Judged::default();
    let mut before: HashMap<(String, Option<u32>), usize> = HashMap::new();
    for process in processes {
        let place = before
            .entry((process.name.clone(), process.rank))
            .or_default();
        let row = process.of(placement, *place);
        *place += 1;
        let Some(row) = row else {
            judged
                .complaints
                .push(format!("{} {} is not placed", process.name, process.pid));
            continue;
        };
        let (complaints, threads) = process.threads_on_units(placement, row);
        judged.complaints.extend(complaints);
        judged.threads += threads;
        judged.strays.extend(process.strays());
        judged.by_policy.add(process.by_policy());
        judged.by_page.add(process.by_page(placement, row));
    }
    judged
}

/// Proves the subjects in one guest, and that each had at least so many placed threads.
#[track_caller]
fn prove(workshop: &Workshop, guest: &Guest, subjects: &[Subject], threads: usize) {
    let commands: Vec<String> = subjects.iter().map(command).collect();
    let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
    let outputs = run_all(guest, &commands);
    let mut wrong = Vec::new();
    for (subject, output) in subjects.iter().zip(&outputs) {
        let name = subject.name;
        if output.status != 0 {
            wrong.push(format!(
                "{name} ends with {}: {}{}",
                output.status,
                output.text(),
                output.errors()
            ));
            continue;
        }
        let traced = std::fs::read(workshop.path(&format!("{name}.status"))).expect("read");
        if traced != output.files["status"] {
            wrong.push(format!("{name} ends otherwise than where it was traced"));
        }
        let seen = read(&String::from_utf8_lossy(&output.files["look"]));
        let judged = judge(&workshop.placement(output), &seen);
        let (policy, page) = (judged.by_policy, judged.by_page);
        println!(
            "{name}: {} threads on their units, {page:?} by page, {policy:?} by policy",
            judged.threads
        );
        for stray in &judged.strays {
            println!("  {stray}");
        }
        wrong.extend(judged.complaints.iter().map(|c| format!("{name}: {c}")));
        if judged.threads < threads {
            wrong.push(format!("{name}: only {} threads were seen", judged.threads));
        }
        if policy.there == 0 || !policy.good(subject.percent) || !page.good(99) {
            let strays = judged.strays.join("\n  ");
            wrong.push(format!(
                "{name}: pages: {policy:?} by policy, {page:?} by page\n  {strays}"
            ));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

fn workload(name: &'static str, arguments: &str) -> Subject {
    Subject {
        name,
        process: name,
        line: format!(
            "{} {arguments}",
            target().join("workloads").join(name).display()
        ),
        percent: 99,
    }
}

#[test]
fn our_programs_run_as_placed() {
    let Some(guest) = guest_with_hither() else {
        return;
    };
    let subjects = [
        workload("ondes", "32 100"),
        workload("pairs", "8 2 200"),
        workload("ring", "8 200"),
        workload("pipeline", "8 200"),
        workload("all_to_all", "8 60"),
        workload("independent", "8 4000 8"),
        workload("false_sharing", "8 4000000 padded"),
        workload("stencil2d", "256 40"),
        workload("is", "static 16 6"),
        workload("shm", "threads 8 200"),
        workload("common", "20"),
        workload("cpp_structs", "2000 100"),
        workload("many_threads", "at-once 16"),
        workload("counted", "8 20000000"),
        workload("crash", "exit 8 2"),
    ];
    let workshop = Workshop::new();
    let guest = workshop.guest(guest, &subjects);
    prove(&workshop, &guest, &subjects, 4);
}

#[test]
fn our_processes_run_as_placed() {
    let Some(guest) = guest_with_hither() else {
        return;
    };
    let subjects = [
        workload("fork_at_work", "4 2 20000"),
        workload("reuse", "200 64"),
    ];
    let workshop = Workshop::new();
    let guest = workshop.guest(guest, &subjects);
    prove(&workshop, &guest, &subjects, 1);
}

const MPIRUN: &str =
    "mpirun --oversubscribe --bind-to none --mca plm isolated --mca mpi_yield_when_idle 1 --mca btl_vader_single_copy_mechanism none -np 4";

/// Whether Debian's package of a program is there; says so where it is not.
fn foreign(name: &'static str, line: &str) -> Option<Subject> {
    there(name).then(|| Subject {
        name,
        process: name,
        line: line.to_owned(),
        percent: 99,
    })
}

#[test]
fn compressors_run_as_placed() {
    let Some(guest) = guest_with_hither() else {
        return;
    };
    let subjects = [
        foreign("pigz", "pigz -n -b 128 -p 4 -c numbers"),
        foreign("xz", "/usr/bin/xz -T4 -1 --block-size=200KiB -c numbers"),
        foreign("zstd", "zstd -q -T4 -B200KB -4 -c numbers"),
    ];
    let subjects: Vec<Subject> = subjects.into_iter().flatten().collect();
    let workshop = Workshop::new();
    // Named by path: busybox has an xz of its own.
    let guest = workshop.guest(guest, &subjects).file("/usr/bin/xz");
    prove(&workshop, &guest, &subjects, 3);
}

/// What Open MPI reads when it starts: found by name, so nothing says that it is needed.
fn with_mpi(guest: Guest) -> Guest {
    let needed = [
        "/etc/openmpi",
        "/usr/share/openmpi",
        "/usr/lib/x86_64-linux-gnu/openmpi",
        "/usr/lib/x86_64-linux-gnu/pmix2",
        "/usr/bin/orted",
    ];
    let there = needed.into_iter().filter(|path| Path::new(path).exists());
    there.fold(guest, |guest, path| guest.file(path))
}

#[test]
fn an_mpi_program_runs_as_placed() {
    let Some(guest) = guest_with_hither() else {
        return;
    };
    if !there("mpirun") {
        return;
    }
    let workshop = Workshop::new();
    let ring = target().join("workloads/mpi_ring");
    let subjects = [Subject {
        name: "mpi_ring",
        process: "mpi_ring",
        line: format!("{MPIRUN} {} 60", ring.display()),
        percent: 99,
    }];
    let guest = with_mpi(workshop.guest(guest, &subjects));
    prove(&workshop, &guest, &subjects, 4);
}

/// OPT 7.5: where the master touches all data first, a placement brings every page where
/// the repaired program, with its threads on the same units, has it.
#[test]
fn automatic_placement_agrees_with_the_repair_by_hand() {
    let Some(guest) = guest_with_hither() else {
        return;
    };
    let workshop = Workshop::new();
    let ondes = target().join("workloads/ondes").display().to_string();
    let subjects = [Subject {
        name: "ondes",
        process: "ondes",
        line: format!("{ondes} 32 60"),
        percent: 99,
    }];
    let guest = workshop.guest(guest, &subjects);
    let threads = "export OMP_NUM_THREADS=8; look /out/look ondes & look=$!; until test -e /out/look; do sleep 0.05; done; setarch -R hither run -q -p ondes.place.json";
    let end = "> /dev/null && kill $look && wait $look";
    let outputs = texts_and_looks(
        &guest,
        &[
            "export OMP_NUM_THREADS=8; hither map ondes.hither --policy locality -o ondes > /dev/null ".to_owned(),
            format!("{threads} -- {ondes} 32 60 {end}"),
            format!("{threads} --threads-only -- {ondes} -p 32 60 {end}"),
            format!("export OMP_NUM_THREADS=8; look /out/look ondes & look=$!; until test -e /out/look; do sleep 0.05; done; setarch -R {ondes} 32 60 {end}"),
        ],
    );
    let [automatic, by_hand, unfixed] = &outputs[..] else {
        panic!("{} processes", outputs.len());
    };
    // The cubes are of 64 pages each, behind a page of the allocator.
    let cubes = cubes(by_hand);
    assert!(cubes.len() >= 4 * 64, "{} pages", cubes.len());
    let same = |process: &Process| {
        cubes
            .iter()
            .filter(|page| process.nodes.get(page) == by_hand.nodes.get(page))
            .count()
    };
    println!(
        "of {} pages {} as by hand, {} without placement",
        cubes.len(),
        same(automatic),
        same(unfixed)
    );
    assert!(
        same(automatic) * 100 >= cubes.len() * 95,
        "{} of {}",
        same(automatic),
        cubes.len()
    );
    assert!(
        same(unfixed) * 2 < cubes.len(),
        "{} of {}",
        same(unfixed),
        cubes.len()
    );
}

/// The one process that was seen by each command that looked.
#[track_caller]
fn texts_and_looks(guest: &Guest, commands: &[String]) -> Vec<Process> {
    let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
    let outputs = run_all(guest, &commands);
    for (command, output) in commands.iter().zip(&outputs) {
        assert_eq!(output.status, 0, "{command}: {}", output.errors());
    }
    let looks = outputs.iter().filter_map(|output| output.files.get("look"));
    looks
        .flat_map(|look| read(&String::from_utf8_lossy(look)))
        .collect()
}

/// The pages of the cubes: pieces of memory of 64 pages and little more.
fn cubes(process: &Process) -> Vec<u64> {
    let mut pieces: Vec<Vec<u64>> = Vec::new();
    for &page in process.nodes.keys() {
        match pieces
            .last_mut()
            .filter(|piece| piece.last() == Some(&(page - 4096)))
        {
            Some(piece) => piece.push(page),
            None => pieces.push(vec![page]),
        }
    }
    pieces
        .into_iter()
        .filter(|piece| piece.len() >= 64)
        .flatten()
        .collect()
}

/// System calls that wait return what they would while their threads and an array's pages
/// really move from node to node.
#[test]
fn waiting_while_pages_move() {
    let Some(guest) = guest_with_hither() else {
        return;
    };
    let workshop = Workshop::new();
    let waits = workshop.path("waits").display().to_string();
    let (page, pages, bytes) = pages_of(&workshop.shell("nm -S waits"), "moved");
    let phase = |i: usize| Phase {
        start_ms: 50 * i as u64,
        threads: (0..40).map(|t| (t, (t + i as u32) % 8)).collect(),
        pages: vec![(page, pages, (i % 4) as u32)],
    };
    let machine = Machine {
        units: 8,
        nodes: 4,
        fingerprint: String::new(),
    };
    let phases: Vec<Phase> = (0..600).map(phase).collect();
    let restless = placement(&waits, bytes, 40, &machine, &phases);
    let guest = guest.file(&waits).text("/restless.place.json", &restless);
    let front = "hither run -q -p /restless.place.json --json /out/outcome --";
    let outputs = run_all(
        &guest,
        &[
            &format!("{waits} threads"),
            &format!("{front} {waits} threads"),
            &waits,
            &format!("{front} {waits}"),
        ],
    );
    for pair in outputs.chunks(2) {
        assert_eq!(pair[0].text(), pair[1].text());
        assert_eq!(pair[0].status, pair[1].status);
        let outcome: serde_json::Value =
            serde_json::from_slice(&pair[1].files["outcome"]).expect("json");
        let phases = outcome["phases"].as_array().expect("phases");
        let moved: u64 = phases
            .iter()
            .filter_map(|p| p["pages_moved"].as_u64())
            .sum();
        println!("{} changes of phase, {moved} pages moved", phases.len());
        assert!(phases.len() >= 2, "{} changes of phase", phases.len());
        assert!(moved >= pages, "{moved} of {pages} pages moved");
    }
}
