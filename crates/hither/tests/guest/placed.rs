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
echo "status $?" >> plain
hither map $name.hither -o $name > map.out 2>&1 || { cat map.out; exit 9; }
cp $name.place.json /out/placement
look /out/look $process &
look=$!
hither run -q -p $name.place.json --json /out/outcome $HOW -- "$@" > placed 2> placed.err < /dev/null
echo "status $?" >> placed
kill $look
wait $look
cmp plain placed || { tail -n 3 plain placed placed.err; exit 8; }
cmp plain.err placed.err || { tail plain.err placed.err; exit 7; }
"#;

/// A program that is proved.
struct Subject {
    name: &'static str,
    /// As /proc calls it.
    process: &'static str,
    line: String,
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
            .timeout(Duration::from_secs(900));
        for subject in subjects {
            self.shell(&format!(
                "{HITHER} trace -q -o {} -- {} > /dev/null",
                subject.name, subject.line
            ));
            guest = guest.file(self.path(&format!("{}.hither", subject.name)));
        }
        guest
    }

    fn placement(&self, output: &Output) -> Placement {
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
        let seen = read(&String::from_utf8_lossy(&output.files["look"]));
        let judged = judge(&workshop.placement(output), &seen);
        let (policy, page) = (judged.by_policy, judged.by_page);
        println!(
            "{name}: {} threads on their units, {page:?} by page, {policy:?} by policy",
            judged.threads
        );
        wrong.extend(judged.complaints.iter().map(|c| format!("{name}: {c}")));
        if judged.threads < threads {
            wrong.push(format!("{name}: only {} threads were seen", judged.threads));
        }
        if policy.there == 0 || !policy.good() || !page.good() {
            wrong.push(format!(
                "{name}: pages: {policy:?} by policy, {page:?} by page"
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
    }
}

#[test]
fn our_programs_run_as_placed() {
    let Some(guest) = guest_with_hither() else {
        return;
    };
    let subjects = [
        workload("ondes", "32 40"),
        workload("pairs", "8 2 200"),
        workload("ring", "8 200"),
        workload("pipeline", "8 200"),
        workload("all_to_all", "8 60"),
        workload("independent", "8 400 8"),
        workload("false_sharing", "8 100000 padded"),
        workload("stencil2d", "256 40"),
        workload("is", "static 16 6"),
        workload("shm", "threads 8 200"),
        workload("common", "20"),
        workload("cpp_structs", "2000 20"),
        workload("many_threads", "at-once 8"),
        workload("counted", "8 20000"),
        workload("crash", "exit 8 2"),
    ];
    let workshop = Workshop::new();
    let guest = workshop.guest(guest, &subjects);
    prove(&workshop, &guest, &subjects, 4);
}
