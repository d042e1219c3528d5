//! `hither auto` on the machine with four nodes: couples of threads that change their
//! partners. What the kernel says at the end of each phase is read by the program itself.
use super::*;
use std::process::Command;
use std::time::Duration;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/auto/couples.c");
const THREADS: usize = 16;

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
            ("thread", Some(phase)) => phase
                .units
                .push(numbers(4).map(|n: u64| n as u32).collect()),
            ("pages", Some(phase)) => {
                let couple = words[1].parse().expect("a number");
                phase.pages.push((couple, numbers(2).collect()));
            }
            _ => {}
        }
    }
    phases
}

#[test]
fn couples_sit_together_and_their_pages_follow() {
    let Some(guest) = guest_with_hither() else {
        return;
    };
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
        .timeout(Duration::from_secs(300));
    // Emulated, hither's own work is tens of times as dear, and so is its budget.
    let line = format!(
        "hither auto -v --budget 30% --sampler pageout --json-lines /out/lines -- couples {THREADS} 2 10 16 shared"
    );
    let output = &run_all(&guest, &[&line])[0];
    let text = output.text();
    println!("{text}{}", output.errors());
    assert_eq!(output.status, 0);
    assert!(text.trim_end().ends_with("0 wrong"), "{text}");
    let phases = phases(&text);
    assert_eq!(phases.len(), 2);
    for (number, phase) in phases.iter().enumerate() {
        // Two units to a node.
        let node = |thread: usize| match phase.units[thread][..] {
            [unit] => Some(unit as usize / 2),
            _ => None,
        };
        let partner = |first: usize| first + if number == 0 { 1 } else { THREADS / 2 };
        let together =
            |first: &usize| node(*first).is_some() && node(*first) == node(partner(*first));
        let firsts: Vec<usize> = phase.pages.iter().map(|p| p.0).collect();
        let sit: Vec<&usize> = firsts.iter().filter(|f| together(f)).collect();
        println!(
            "phase {number}: {} of {} couples together",
            sit.len(),
            firsts.len()
        );
        assert_eq!(sit.len(), THREADS / 2);
        let (mut home, mut all) = (0, 0);
        for (first, nodes) in &phase.pages {
            home += nodes[node(*first).expect("a node")];
            all += nodes.iter().sum::<u64>();
        }
        println!("phase {number}: {home} of {all} pages with their couple");
        assert!(home * 10 >= all * 9, "{home} of {all}");
    }
}
