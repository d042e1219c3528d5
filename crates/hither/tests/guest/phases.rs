//! `hither run` of placements by phase: where threads and pages are in each stage of a program (`phases.c`), as it
//! says itself.
use super::*;
use crate::placement::{pages_of, placement, Machine, Phase};
use serde_json::{json, Value};
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

fn machine() -> Machine {
    Machine {
        units: 8,
        nodes: 4,
        fingerprint: String::new(),
    }
}

/// Stages of 0.3 s to 5 s that come back: threads and pages are where each of them wants them, also where the
/// program takes twice as long as when it was traced, as barriers tell the stage.
#[test]
fn stages_of_any_length_are_followed() {
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
    // The first comes back as the fifth, the second as the sixth.
    let kind = |stage: usize| stage as u32 % 4;
    let phases: Vec<Phase> = (0..lengths.len())
        .map(|stage| Phase {
            start_ms: start(stage),
            threads: (0..THREADS as u32)
                .map(|t| (t, (2 * t + 3 * kind(stage)) % 8))
                .collect(),
            pages: vec![(page, pages, kind(stage))],
        })
        .collect();
    let placement = placement(&line, bytes, THREADS as u32, &machine, &phases);
    let mut placement: Value = serde_json::from_str(&placement).expect("JSON");
    for stage in 0..lengths.len() {
        // Two barriers of four threads in each round.
        let barriers = start(stage) / 50 * 2 * THREADS as u64;
        placement["phases"][stage]["sync"] = json!([barriers, 0, 0, 0]);
    }
    let guest = guest
        .own_clock()
        .file(&program)
        .text("/p.place.json", &placement.to_string())
        .timeout(Duration::from_secs(300));
    let stages: Vec<String> = lengths
        .iter()
        .map(|ms| format!("near:{}", ms / 50))
        .collect();
    let run = |rest| {
        format!(
            "hither run -q -p /p.place.json -- {line} {rest} {}",
            stages.join(" ")
        )
    };
    let runs = [50, 100].map(run);
    let runs: Vec<&str> = runs.iter().map(String::as_str).collect();
    for (run, found) in runs.iter().zip(texts(&guest, &runs)) {
        let seen = seen(&found);
        assert_eq!(seen.len(), lengths.len(), "{found}");
        for (stage, (phase, found)) in phases.iter().zip(&seen).enumerate() {
            let threads = phase.threads.iter();
            let wanted: Vec<(u32, u32)> = threads.map(|t| (t.1, phase.pages[0].2)).collect();
            println!("stage {stage} of {} ms: {found:?}", lengths[stage]);
            assert_eq!(found[..], wanted[..], "{run}: stage {stage}");
        }
    }
}

/// From the trace over `map --phases` to the run, also of a program that is twice as slow as when it was traced: in each stage
/// partners are on one node with their blocks, and the two pairs are on different ones.
#[test]
fn traced_phases_are_placed_and_followed() {
    let Some(guest) = guest_with_hither() else {
        return;
    };
    let (folder, program) = built("phases");
    let line = program.display();
    let stages = "near:60 far:40 near:60";
    shell(
        folder.path(),
        &format!("{HITHER} trace -q -o t -- {line} 50 {stages}"),
    );
    let guest = guest
        .own_clock()
        .file(&program)
        .file(folder.path().join("t.hither"))
        .folder(folder.path())
        .timeout(Duration::from_secs(300));
    let map = "hither map t.hither --phases -o p > /dev/null && cat p.place.json";
    let run = |rest| format!("hither run -q -p p.place.json -- {line} {rest} {stages}");
    let commands = [map.to_owned(), run(50), run(100)];
    let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
    let found = texts(&guest, &commands);
    let placement: Value = serde_json::from_str(&found[0]).expect("JSON");
    let starts = placement["phases"].as_array().expect("phases").iter();
    let starts: Vec<&Value> = starts.map(|phase| &phase["sync"][0]).collect();
    for (run, found) in commands.iter().zip(&found).skip(1) {
        for (stage, seen) in seen(found).iter().enumerate() {
            println!("stage {stage}: {seen:?}, phases begin after {starts:?} barriers");
            let node = |thread: usize| seen[thread].0 / 2;
            let partner = |thread: usize| thread ^ (1 + stage % 2);
            for (thread, (_, block)) in seen.iter().enumerate() {
                let why = format!("{run}: stage {stage}, thread {thread}: {found}");
                assert_eq!(node(thread), node(partner(thread)), "{why}");
                assert_eq!(node(thread), *block, "{why}");
            }
            assert_ne!(node(0), node(3), "{run}: stage {stage}: {found}");
        }
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
    let guest = guest
        .own_clock()
        .file(&program)
        .text("/p.place.json", &placement);
    let run = format!("hither run -q -p /p.place.json --phases-by-time -- {line}");
    let found = texts(&guest, &[&run]);
    assert_eq!(found[0], "64 0\n64 2\n");
}
