//! What is the same in every run, and what is known to the instruction.
use std::collections::BTreeMap;

use hither_profile::{Object, PageNo, Profile, RegionKind};

use crate::run::{places_in_code, run};
use crate::threads::CREATION;
use crate::view::*;

#[test]
fn instructions() {
    let (n, loops) = (4, 1_000_000);
    let p = run(&format!("counted {n} {loops}")).profile();
    for (i, t) in p.threads.iter().enumerate() {
        let expected = 8 * loops * (i as u64 + 1);
        // ld.so and libc's start come on top of thread 0's.
        let extra = if i == 0 { 300_000 } else { 20_000 };
        assert!(
            t.instructions >= expected,
            "thread {i}: {} of {expected}",
            t.instructions
        );
        assert_within(
            t.instructions - extra.min(t.instructions - expected),
            expected,
            0.001,
            "instructions",
        );
    }
    let own = |page: u64| {
        let all = loops * (page + 1);
        // Thread 0 checks the others' in the end.
        if page == 0 {
            vec![(0, (all + 1, all))]
        } else {
            vec![(0, (1, 0)), (page as usize, (all, all))]
        }
    };
    check_pages(&p, "tally", own, n);
}

/// What is saved of the registers' state is what the program chooses, not all that the processor has.
#[test]
fn register_state() {
    let rounds = 1000;
    let p = run(&format!("registers {rounds}")).profile();
    let (avx, compacts) = (
        is_x86_feature_detected!("avx"),
        is_x86_feature_detected!("xsavec"),
    );
    let lines = [8, 9, if avx && compacts { 13 } else { 9 }];
    let expected = |page: u64| match lines.get(page as usize) {
        Some(lines) => vec![(0, (lines * rounds, lines * rounds))],
        None => vec![(0, (0, 1))],
    };
    check_pages(&p, "saved", expected, 4);
}

/// CP2K aborted with NaN for an energy, by OpenBLAS's scatters: of a base in rax, beside live flags, whose first element
/// the mask does not choose. The program ends with 1 where an element is wrong.
#[test]
fn gathers_count_the_elements_that_their_masks_choose() {
    let rounds = 200;
    let line = format!("gathers {rounds}");
    let avx2 = u64::from(is_x86_feature_detected!("avx2"));
    let avx512 = is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vl");
    let avx512 = u64::from(avx512);
    for options in ["", "--oracle", "--full"] {
        let run = match options {
            "" => run(&line),
            options => run(&line).with(options),
        };
        let p = run.profile();
        // Without AVX-512 nothing touches the grid.
        let counts = |name| {
            let object = p.objects.iter().find(|o| o.name == name);
            object.map_or((0, 0), |o| (o.reads, o.writes))
        };
        let reads = rounds * (26 * avx2 + 17 * avx512);
        assert_eq!(counts("table"), (reads, 16), "{options}");
        let (looked, written) = (rounds * 80 * avx512, rounds * (80 + 21) * avx512);
        assert_eq!(counts("grid"), (looked, written), "{options}");
    }
}

/// A command that a script runs again and again takes room for its code once.
#[test]
fn commands_that_run_the_same_code_share_its_places() {
    let commands = |n| places_in_code(&"/bin/true; ".repeat(n));
    let (few, many) = (commands(2), commands(30));
    assert!(few > 1000 && many < few + few / 4, "{few} {many}");
}

#[test]
fn forks_leave_the_parents_threads_alone() {
    let (n, children, rounds) = (4, 20, 20_000);
    let p = run(&format!("fork_at_work {n} {children} {rounds}")).profile();
    assert_eq!(p.meta.processes.len(), 1 + children);
    assert_eq!(p.threads.len(), n + children);
    let all = 512 * rounds;
    let users = |page: u64| match page {
        0 => vec![],
        page => vec![(page as usize, (all, all))],
    };
    check_pages(&p, "work", users, n as u64);
    let mine = pages(&p, "mine");
    assert_eq!(mine.len(), children);
    for users in mine.values() {
        assert_eq!(users.values().copied().collect::<Vec<_>>(), [(512, 512)]);
    }
    check_matrix(&p.matrix(), |_, _| (0, CREATION));
    for u in p.pages.iter() {
        let region = &p.regions[u.region.at()];
        let process = p.threads[u.thread.at()].process;
        let shared = region.kind == RegionKind::Shared;
        assert!(shared || region.process == process, "{u:?} in {region:?}");
    }
    // What a child does to a variable is that variable's, and of nothing else in the file.
    let constant = |o: &&Object| o.name.starts_with(Object::CONSTANTS_OF) && o.process.at() > 0;
    for constants in p.objects.iter().filter(constant) {
        assert_eq!(constants.writes, 0, "{constants:?}");
    }
}

/// Counts of all pages of the run by what stays the same from run to run: but for stacks,
/// whose start within a page the kernel draws. The loader's pages count together: in one run of
/// several a read of it is on another of them, we do not know why.
fn all_pages(p: &Profile) -> BTreeMap<String, Counts> {
    let mut all = BTreeMap::new();
    for u in p.pages.iter() {
        let r = &p.regions[u.region.at()];
        if r.kind == RegionKind::Stack {
            continue;
        }
        let region = format!(
            "{} {:?} {} {} {}",
            r.file, r.kind, r.size, r.ordinal, r.file_offset
        );
        let loader = r.file.contains("/ld-linux");
        let page = if loader { PageNo(0) } else { u.page };
        let key = format!("{region}: page {page} by {}", u.thread);
        let sum: &mut Counts = all.entry(key).or_default();
        *sum = (sum.0 + u.reads, sum.1 + u.writes);
    }
    all
}

fn check_same<K: Ord + std::fmt::Debug, V: PartialEq + std::fmt::Debug>(
    line: &str,
    a: &BTreeMap<K, V>,
    b: &BTreeMap<K, V>,
) {
    let all = a.keys().chain(b.keys());
    let differ: Vec<_> = all
        .filter(|k| a.get(k) != b.get(k))
        .take(5)
        .map(|k| (k, a.get(k), b.get(k)))
        .collect();
    assert!(differ.is_empty(), "{line}: {differ:?}");
}

#[test]
fn three_runs_count_the_same() {
    // With one thread everything, libraries and heap included. This is also the test that
    // found thread-local accesses counted at an address made of another probe's register.
    let line = "independent 1 50 64";
    let runs = [(); 3].map(|()| all_pages(&run(line).profile()));
    check_same(line, &runs[0], &runs[1]);
    check_same(line, &runs[0], &runs[2]);
    // With several the program's own data: who is the first to call a library's function,
    // and has it bound, is open.
    for (line, names) in [
        ("ring 4 500 512", vec!["box"]),
        ("is static 14 3", vec!["key_buff1", "key_buff2"]),
        ("ondes 16 10", vec!["past", "present", "speed"]),
    ] {
        let runs = [(); 3].map(|()| run(line).profile());
        for name in names {
            let pages = runs.each_ref().map(|p| pages(p, name));
            check_same(line, &pages[0], &pages[1]);
            check_same(line, &pages[0], &pages[2]);
        }
    }
}

/// What is mapped where something else was unmapped in the same slice is counted apart: its
/// lines were still in the line cache under the old page.
#[test]
fn addresses_used_again() {
    let (rounds, pages) = (20, 16);
    let p = run(&format!("reuse {rounds} {pages}")).profile();
    let size = pages as u64 * 4096;
    let mut written: BTreeMap<_, u64> = BTreeMap::new();
    for u in p.pages.iter() {
        let r = &p.regions[u.region.at()];
        if r.kind == RegionKind::Mmap && r.size == size && r.file.is_empty() {
            *written.entry((r.ordinal, u.page)).or_default() += u.writes;
        }
    }
    assert_eq!(written.len(), rounds * pages, "{written:?}");
    assert!(written.values().all(|w| *w == 512), "{written:?}");
}

/// What is mapped and unmapped without end takes page ids of memory that has gone, and regions of
/// mappings that have ended: nothing is lost or counted twice.
#[test]
fn page_ids_used_again() {
    let (rounds, pages) = (1500, 100);
    let p = run(&format!("reuse {rounds} {pages}")).profile();
    let size = pages * 4096;
    let mut written: BTreeMap<_, u64> = BTreeMap::new();
    for u in p.pages.iter() {
        let r = &p.regions[u.region.at()];
        if r.kind == RegionKind::Mmap && r.size == size && r.file.is_empty() {
            *written.entry((r.ordinal, u.page)).or_default() += u.writes;
        }
    }
    assert_eq!(written.values().sum::<u64>(), 512 * rounds * pages);
    assert!(written.values().all(|w| w % 512 == 0), "{written:?}");
    // It takes more than 256 MiB that have ended.
    let apart = (256 << 20) / size + 1;
    assert_eq!(written.len() as u64, apart * pages);
    let said = format!("{} mappings count together", rounds - apart);
    let limits = &p.meta.limits;
    assert!(limits.iter().any(|l| l.starts_with(&said)), "{limits:?}");
}
