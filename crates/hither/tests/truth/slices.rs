//! What is said of each slice, and of each source line.
use std::collections::HashMap;

use hither_profile::{PairComm, Profile, Slice, SourceSite};

use crate::run::run;
use crate::view::*;

fn by_slice(p: &Profile) -> HashMap<usize, Vec<PairComm>> {
    let mut slices: HashMap<usize, Vec<PairComm>> = HashMap::new();
    for c in &p.comm {
        slices.entry(c.slice.at()).or_default().push(*c);
    }
    slices
}

/// A slice is the program's time, however slow the tracer is: by the wall clock, as the papers' tracer
/// has it, `--oracle` makes many more of the same program.
#[test]
fn slices_follow_the_program() {
    let slices = |options: &str| {
        let run = run("stencil2d 128 1000").with("--slice 2ms");
        run.with(options).profile().slices.len()
    };
    let plain = slices("--slice-clock instructions");
    assert!(plain >= 5, "{plain} slices");
    let oracle = slices("--slice-clock instructions --oracle");
    assert!(
        oracle.abs_diff(plain) <= 2 + plain / 10,
        "{oracle} slices with --oracle, {plain} without"
    );
    let wall = slices("--slice-clock wall --oracle");
    assert!(wall > 3 * plain, "{wall} slices of wall time");
}

/// While two pairs of four threads work, each row of the matrix has one cell. Let c be the
/// larger and d the smaller of the two. Scaled to 100 and 100 d/c, a row's variance is
/// x^2/4 - (x/4)^2 = 3/16 x^2, and C_H their mean, 1875 (1 + (d/c)^2) / 2; C_A is the sum of
/// all 16 cells over 16, (c + d) / 8.
#[test]
fn metrics_of_slices_with_two_pairs() {
    for options in ["--slice 10ms", "--slice 10ms --oracle"] {
        let p = run("pairs 4 4 4000 512").with(options).profile();
        assert_eq!(p.meta.comm_slices, 1);
        let slices = by_slice(&p);
        let checked = slices.iter().filter(|(slice, comm)| {
            let s = &p.slices[**slice];
            s.threads == 4 && check_two_pairs(s, comm)
        });
        let checked = checked.count();
        // The change of a phase and the start look different.
        assert!(checked >= 5, "only {checked} of {} slices", p.slices.len());
        let events = |s: &Slice| s.amount * f64::from(s.threads).powi(2) / 2.0;
        let of_slices: f64 = p.slices.iter().map(events).sum();
        let of_slices = of_slices.round() as u64;
        assert_within(of_slices, p.matrix().total(), 1e-6, "events of all slices");
    }
}

/// False when other than two pairs were at work.
fn check_two_pairs(s: &Slice, comm: &[PairComm]) -> bool {
    let [a, b] = comm else { return false };
    if a.i.at() ^ a.j.at() != b.i.at() ^ b.j.at() {
        return false;
    }
    let c = a.events.max(b.events) as f64;
    let d = a.events.min(b.events) as f64;
    let heterogeneity = 1875.0 * (1.0 + (d / c).powi(2)) / 2.0;
    let amount = (c + d) / 8.0;
    assert!(
        (s.heterogeneity - heterogeneity).abs() < 1e-6 && (s.amount - amount).abs() < 1e-6,
        "{s:?}, expected C_H {heterogeneity} and C_A {amount} of {comm:?}"
    );
    true
}

/// The sites of an object: line of the source, reads, writes.
fn sites<'p>(p: &'p Profile, object: &str) -> Vec<&'p SourceSite> {
    let of: Vec<_> = named(p, object).iter().map(|(at, _)| *at).collect();
    let all = p.sites.iter();
    all.filter(|s| s.object.is_some_and(|o| of.contains(&o.at())))
        .collect()
}

/// The line of `file` that contains `text` is a site of the object.
#[track_caller]
fn site_at<'p>(p: &'p Profile, object: &str, file: &str, text: &str) -> &'p SourceSite {
    let (found, line) = (sites(p, object), line_of(file, text));
    let site = found.iter().find(|s| s.line == line);
    let site = site.unwrap_or_else(|| panic!("{object}: no line {line} in {found:?}"));
    assert!(site.file.ends_with(file), "{site:?}");
    assert_eq!(site.function, "body", "{site:?}");
    site
}

/// Blocks of 8 MiB do not fit in a line cache, so each of their lines is evicted each
/// round: 1.4 million times by each thread, of which one in 1024 is a sample. Their
/// error is 1.4 % where they are 5000.
#[test]
fn hot_lines_are_those_of_the_source() {
    let (n, rounds, pages) = (4, 10, 2048);
    let p = run(&format!("independent {n} {rounds} {pages}")).profile();
    let words = n * pages * 512;
    let adds = site_at(&p, "block", "independent.c", "block[k] += 1");
    assert_within(adds.reads, words * rounds, 0.1, "reads where it adds");
    assert_within(adds.writes, words * rounds, 0.1, "writes where it adds");
    let sets = site_at(&p, "block", "independent.c", "block[k] = me");
    assert_eq!(sets.reads, 0);
    assert_within(sets.writes, words, 0.3, "writes where it sets");
    assert_eq!(sites(&p, "block").len(), 2);
}

/// Lines of the source that share an object, one writes and one reads.
#[test]
fn lines_that_communicate() {
    let p = run("ring 4 12000 512").profile();
    let writes = site_at(&p, "box", "ring.c", "box[me][k] = round + k");
    assert!(writes.writes > 0 && writes.reads == 0, "{writes:?}");
    let reads = site_at(&p, "box", "ring.c", "sum += box[before][k]");
    assert!(reads.reads > 0 && reads.writes == 0, "{reads:?}");
    assert_eq!(sites(&p, "box").len(), 2);
}
