//! `hither run` of placements by phase: where threads and pages are in each stage of a program (`phases.c`), as it
//! says itself.
use super::*;
use crate::placement::{pages_of, placement, Machine, Phase};
use hither_profile::{read_placement, Placement};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/guest");
const THREADS: usize = 4;

/// PU and node of each thread and of its block, by stage.
type Seen = Vec<[(u32, u32); THREADS]>;

fn seen(text: &str) -> Seen {
    let mut seen = Seen::new();
    for line in text.lines() {
        let words: Vec<u32> = line.split(' ').filter_map(|w| w.parse().ok()).collect();
        let [stage, thread, cpu, node] = words[..] else {
            continue;
        };
        seen.resize(seen.len().max(stage as usize + 1), Default::default());
        seen[stage as usize][thread as usize] = (cpu, node);
    }
    seen
}

/// A folder with a program of this one.
fn built(name: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("tempdir");
    let program = folder.path().join(name);
    shell(
        folder.path(),
        &format!("gcc -O1 -g -pthread -o {name} {SOURCES}/{name}.c"),
    );
    (folder, program)
}

#[track_caller]
fn shell(folder: &Path, line: &str) -> String {
    let output = Command::new("sh")
        .args(["-c", line])
        .current_dir(folder)
        .output();
    let output = output.expect("sh");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}: {errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The n-th stage of a placement, the last where there are fewer: PU of each thread.
fn units(placement: &Placement, stage: usize) -> Vec<u32> {
    let of = |phase: &hither_profile::PlacedPhase| -> Vec<u32> {
        phase.threads.iter().map(|place| place.os_index()).collect()
    };
    let mut stages: Vec<Vec<u32>> = placement.phases.iter().map(of).collect();
    stages.dedup();
    stages[stage.min(stages.len() - 1)].clone()
}

fn machine() -> Machine {
    Machine {
        units: 8,
        nodes: 4,
        fingerprint: String::new(),
    }
}

/// Stages of 0.3 s to 5 s that come back: threads and pages are where each of them wants them.
#[test]
fn stages_of_any_length_are_followed_by_time() {
    let Some(guest) = guest_with_hither() else {
        return;
    };
    let (folder, program) = built("phases");
    let line = program.display().to_string();
    let (page, pages, bytes) = pages_of(&shell(folder.path(), "nm -S phases"), "blocks");
    let machine = machine();
    // Milliseconds; 50 of rest in each round.
    let lengths = [5000, 300, 1000, 300, 5000, 600];
    let start = |stage: usize| lengths[..stage].iter().sum::<u64>();
    let phases: Vec<Phase> = (0..lengths.len())
        .map(|stage| Phase {
            start_ms: start(stage),
            threads: (0..THREADS as u32)
                .map(|t| (t, (2 * t + 3 * stage as u32) % 8))
                .collect(),
            pages: vec![(page, pages, stage as u32 % 4)],
        })
        .collect();
    let placement = placement(&line, bytes, THREADS as u32, &machine, &phases);
    let guest = guest
        .file(&program)
        .text("/p.place.json", &placement)
        .timeout(Duration::from_secs(300));
    let stages: Vec<String> = lengths
        .iter()
        .map(|ms| format!("near:{}", ms / 50))
        .collect();
    let found = texts(
        &guest,
        &[&format!(
            "hither run -q -p /p.place.json --phases-by-time -- {line} 50 {}",
            stages.join(" ")
        )],
    );
    let seen = seen(&found[0]);
    assert_eq!(seen.len(), lengths.len(), "{found:?}");
    for (stage, (phase, found)) in phases.iter().zip(&seen).enumerate() {
        let wanted: Vec<(u32, u32)> = phase
            .threads
            .iter()
            .map(|(_, cpu)| (*cpu, phase.pages[0].2))
            .collect();
        println!("stage {stage} of {} ms: {found:?}", lengths[stage]);
        assert_eq!(
            found[..],
            wanted[..],
            "stage {stage} of {} ms",
            lengths[stage]
        );
    }
}

/// From the trace to the run, on a program that is as fast as when it was traced and on one that takes twice as
/// long: barriers tell the stage, not seconds.
#[test]
fn barriers_tell_the_stage_of_a_slower_program() {
    let Some(guest) = guest_with_hither() else {
        return;
    };
    let (folder, program) = built("phases");
    let line = program.display().to_string();
    let stages = "near:300 far:150 near:300";
    shell(
        folder.path(),
        &format!("{HITHER} trace -q -o t -- {line} 10 {stages} > /dev/null"),
    );
    let guest = guest
        .file(&program)
        .file(folder.path().join("t.hither"))
        .folder(folder.path())
        .timeout(Duration::from_secs(400));
    let run = |rest: u32| {
        format!("hither run -q -p t.place.json --json /out/outcome -- {line} {rest} {stages} && cp t.place.json /out/placement")
    };
    let commands = [
        "hither map t.hither --phases --policy locality -o t".to_owned(),
        run(10),
        run(20),
    ];
    let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
    let outputs = run_all(&guest, &commands);
    for output in &outputs {
        assert_eq!(output.status, 0, "{}{}", output.text(), output.errors());
    }
    for (rest, output) in [10, 20].into_iter().zip(&outputs[1..]) {
        let file = folder.path().join("read.place.json");
        std::fs::write(&file, &output.files["placement"]).expect("write");
        let placement = read_placement(&file).expect("a placement");
        let seen = seen(&output.text());
        println!("rest {rest}: {seen:?}");
        assert_eq!(seen.len(), 3);
        for (stage, found) in seen.iter().enumerate() {
            let cpus: Vec<u32> = found.iter().map(|(cpu, _)| *cpu).collect();
            assert_eq!(cpus, units(&placement, stage), "rest {rest}, stage {stage}");
            let local = found.iter().filter(|(cpu, node)| cpu / 2 == *node);
            assert_eq!(local.count(), THREADS, "blocks of stage {stage}: {found:?}");
        }
        assert_ne!(units(&placement, 0), units(&placement, 1));
    }
}

/// The kernel does not move pages that two processes map: they were never tried again.
#[test]
fn pages_that_a_child_shared_move_once_it_has_ended() {
    let Some(guest) = guest_with_hither() else {
        return;
    };
    let (folder, program) = built("shares");
    let line = program.display().to_string();
    let (page, pages, bytes) = pages_of(&shell(folder.path(), "nm -S shares"), "moved");
    let phase = |start_ms, node| Phase {
        start_ms,
        threads: vec![(0, 0)],
        pages: vec![(page, pages, node)],
    };
    let placement = placement(&line, bytes, 1, &machine(), &[phase(0, 0), phase(1000, 2)]);
    let guest = guest.file(&program).text("/p.place.json", &placement);
    let run = format!("hither run -q -p /p.place.json --phases-by-time -- {line}");
    let found = texts(&guest, &[&run]);
    assert_eq!(found[0], "64 0\n64 2\n");
}
