//! `hither auto` on the machine with four nodes: SPCD's producer/consumer program, couples of
//! threads that change their partners (IPDPS 2013, V.B). Where threads may run and where
//! pages are is what the kernel says at the end of each phase, read by the program itself.
//!
//! Emulated, code is tens of times slower, and so is hither's; hence the generous budget.
use super::*;
use std::process::Command;
use std::time::Duration;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/auto/couples.c");
const THREADS: usize = 16;
/// Of a phase.
const SECONDS: u64 = 8;
/// Two units to a node.
const UNITS: usize = 8;

/// What the program read in a phase.
#[derive(Default)]
struct Phase {
    /// The units that each thread may run on.
    units: Vec<Vec<u32>>,
    /// Of the couple whose first thread it is, how many pages are on each node.
    pages: Vec<(usize, Vec<u64>)>,
}

fn phases(text: &str) -> Vec<Phase> {
    let mut phases: Vec<Phase> = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let numbers = |from: usize| words[from..].iter().filter_map(|w| w.parse().ok());
        match (words[0], phases.last_mut()) {
            ("phase", _) => phases.push(Phase::default()),
            ("thread", Some(phase)) => {
                let units = numbers(4).map(|n: u64| n as u32);
                phase.units.push(units.collect());
            }
            ("pages", Some(phase)) => {
                let couple = words[1].parse().expect("a number");
                phase.pages.push((couple, numbers(2).collect()));
            }
            _ => {}
        }
    }
    phases
}

/// The partner of the first thread of a couple.
fn partner(phase: usize, first: usize) -> usize {
    first
        + if phase.is_multiple_of(2) {
            1
        } else {
            THREADS / 2
        }
}

impl Phase {
    fn node(&self, thread: usize) -> Option<usize> {
        match self.units[thread][..] {
            [unit] => Some(unit as usize / 2),
            _ => None,
        }
    }

    /// Couples that sit on one node.
    fn together(&self, phase: usize) -> usize {
        let firsts = self.pages.iter().map(|p| p.0);
        let sit = |&first: &usize| {
            self.node(first).is_some() && self.node(first) == self.node(partner(phase, first))
        };
        firsts.filter(sit).count()
    }

    /// Pages that are on the node of their couple, and all.
    fn home(&self) -> (u64, u64) {
        let (mut home, mut all) = (0, 0);
        for (first, nodes) in &self.pages {
            home += self.node(*first).map_or(0, |node| nodes[node]);
            all += nodes.iter().sum::<u64>();
        }
        (home, all)
    }
}

/// The lines of the journal.
fn journal(output: &CommandOutput) -> Vec<serde_json::Value> {
    let text = String::from_utf8_lossy(&output.files["lines"]).into_owned();
    let line = |line| serde_json::from_str(line).expect("json");
    text.lines().map(line).collect()
}

/// Of the last matrix before `ms`: the couples that were seen, and the share of weight that
/// is between others.
fn matrix(lines: &[serde_json::Value], phase: usize, ms: u64) -> (usize, f64) {
    let before = |line: &&serde_json::Value| line["at"].as_u64() < Some(ms);
    let line = lines.iter().rev().find(before).expect("a line");
    let pairs: Vec<(u64, u64, f64)> = serde_json::from_value(line["pairs"].clone()).expect("pairs");
    let mut tids: Vec<u64> = pairs.iter().flat_map(|p| [p.0, p.1]).collect();
    tids.sort_unstable();
    tids.dedup();
    let at = |tid| tids.iter().position(|t| *t == tid).expect("known");
    let is_couple = |a: usize, b: usize| {
        let near = a.is_multiple_of(2);
        b == partner(phase, a)
            && if phase.is_multiple_of(2) {
                near
            } else {
                a < THREADS / 2
            }
    };
    let of = |couple: bool| {
        let some = pairs
            .iter()
            .filter(move |p| is_couple(at(p.0), at(p.1)) == couple);
        some.map(|p| p.2).collect::<Vec<f64>>()
    };
    let (right, wrong): (Vec<f64>, Vec<f64>) = (of(true), of(false));
    let sum = |w: &[f64]| w.iter().sum::<f64>();
    (right.len(), sum(&wrong) / (sum(&right) + sum(&wrong)))
}

/// The guest with the program in it, without the kernel's own balancing.
fn guest() -> Option<(Guest, tempfile::TempDir)> {
    let guest = guest_with_hither()?;
    let folder = tempfile::tempdir().expect("tempdir");
    let couples = folder.path().join("couples");
    let mut gcc = Command::new("gcc");
    let built = gcc
        .args(["-O1", "-pthread", "-o"])
        .arg(&couples)
        .arg(SOURCE);
    assert!(built.status().expect("gcc").success());
    let guest = guest
        .file_at(&couples, "/usr/bin/couples")
        .timeout(Duration::from_secs(600));
    Some((guest.own_clock(), folder))
}

fn line(sampler: &str, options: &str, phases: usize, seconds: u64) -> String {
    // What each reaches.
    let memory = match sampler {
        "pageout" => "shared",
        _ => "private",
    };
    format!(
        "echo 0 > /proc/sys/kernel/numa_balancing; hither auto -v --budget 100% --sampler {sampler} --json-lines /out/lines {options} -- couples {THREADS} {phases} {seconds} 16 {memory} 2000"
    )
}

/// What a run printed and left.
fn ended(output: &CommandOutput, expected: usize) -> Vec<Phase> {
    let text = output.text();
    println!("{text}{}", output.errors());
    assert_eq!(output.status, 0);
    assert!(text.trim_end().ends_with("0 wrong"), "{text}");
    let phases = phases(&text);
    assert_eq!(phases.len(), expected);
    phases
}

#[test]
fn couples_sit_together_and_their_pages_follow() {
    let Some((guest, _folder)) = guest() else {
        return;
    };
    let commands = [
        line("pageout", "", 2, SECONDS),
        line("move", "", 2, SECONDS),
    ];
    let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
    run_all(&guest, &commands).iter().for_each(check_phases);
}

/// How soon they are seen with the kernel's own faults is up to the kernel.
#[test]
fn couples_sit_together_with_hinting_faults() {
    let Some((guest, _folder)) = guest() else {
        return;
    };
    let seconds = 3 * SECONDS;
    let line = line("numa-balancing", "--allow-sysctl", 1, seconds);
    for output in run_all(&guest, &[line.as_str()]) {
        check_phase(&ended(&output, 1)[0], 0, &journal(&output), seconds);
    }
}

/// In each phase couples are seen, sit together, and have their pages with them.
fn check_phases(output: &CommandOutput) {
    let phases = ended(output, 2);
    let lines = journal(output);
    for (number, phase) in phases.iter().enumerate() {
        check_phase(phase, number, &lines, SECONDS);
    }
    let change = start(&lines) + SECONDS * 1000;
    let seated = |line: &&serde_json::Value| {
        let some = line["seated"].as_array().is_some_and(|s| !s.is_empty());
        some && line["at"].as_u64() > Some(change)
    };
    let seated: Vec<u64> = lines
        .iter()
        .filter(seated)
        .filter_map(|l| l["at"].as_u64())
        .collect();
    println!("phase 1 from {change} ms; threads were moved at {seated:?}");
    assert!(seated[0] <= change + 2000, "{seated:?}");
}

/// The program started a little after hither did: when.
fn start(lines: &[serde_json::Value]) -> u64 {
    lines[0]["at"].as_u64().expect("ms")
}

fn check_phase(phase: &Phase, number: usize, lines: &[serde_json::Value], seconds: u64) {
    let begin = start(lines) + number as u64 * seconds * 1000;
    let (couples, astray) = matrix(lines, number, begin + seconds * 900);
    let (together, (home, all)) = (phase.together(number), phase.home());
    println!("phase {number}: {couples} couples seen, {:.1} % of the weight between others, {together} together, {home} of {all} pages with their couple", 100.0 * astray);
    assert_eq!(couples, THREADS / 2);
    assert!(astray <= 0.1, "{astray}");
    assert_eq!(together, THREADS / 2);
    assert!(home * 10 >= all * 9, "{home} of {all}");
}

#[test]
fn each_part_alone_does_its_part() {
    let Some((guest, _folder)) = guest() else {
        return;
    };
    let commands = [
        line("pageout", "--mechanism spcd", 1, 8),
        line("pageout", "--threads-only", 1, 8),
        line("pageout", "--data-only", 1, 8),
    ];
    let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
    let outputs = run_all(&guest, &commands);
    let moved = |output: &CommandOutput| -> u64 {
        let lines = journal(output);
        lines.iter().filter_map(|l| l["pages_moved"].as_u64()).sum()
    };
    for (output, name) in outputs.iter().zip(["spcd", "threads", "data"]) {
        let phase = &ended(output, 1)[0];
        let (together, moved) = (phase.together(0), moved(output));
        println!("{name}: {together} together, {moved} pages moved");
        if name == "data" {
            // Every thread may run where it might.
            assert!(phase.units.iter().all(|units| units.len() == UNITS));
            assert!(moved > 0);
        } else {
            assert_eq!(together, THREADS / 2);
            assert_eq!(moved, 0);
        }
    }
    // SPCD's table is as large as it ever is: 256,000 elements of 76 bytes.
    let errors = outputs[0].errors();
    assert!(errors.contains("19456000 bytes"), "{errors}");
}
