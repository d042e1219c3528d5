//! Programs that end badly leave a complete profile that says how.
use hither_profile::RunEnd;

use crate::run::run;
use crate::threads::CREATION;
use crate::view::*;

fn check(how: &str, status: i32, end: RunEnd) {
    let (n, seconds) = (4, 0.5);
    let (p, out) = run(&format!("crash {how} {n} {seconds}")).ended();
    assert_eq!(out.status.code(), Some(status), "{how}");
    assert_eq!(p.meta.end, end, "{how}");
    assert_eq!(p.threads.len(), n, "{how}");
    let work = pages(&p, "work");
    assert_eq!(
        work.keys().copied().collect::<Vec<_>>(),
        [1, 2, 3],
        "{how}: pages of work"
    );
    for (page, users) in work {
        let thread = page as usize;
        assert_eq!(
            users.keys().copied().collect::<Vec<_>>(),
            [thread],
            "{how}, page {page}"
        );
        let (reads, writes) = users[&thread];
        // A word is read, then written: the end may fall between the two.
        assert!(
            reads.abs_diff(writes) <= 1,
            "{how}, page {page}: {reads} reads, {writes} writes"
        );
        assert!(reads > 512 * 1000, "{how}, page {page}: only {reads} reads");
        // Thread 1 looks at the time, and ends the program, after 1024 rounds of 512.
        if thread == 1 && matches!(how, "segv" | "exit-group-from-thread") {
            assert_eq!(reads % (1024 * 512), 0, "{how}");
        }
        let t = &p.threads[thread];
        assert!(
            t.accesses() >= reads + writes && t.instructions > reads,
            "{how}: {t:?}"
        );
    }
    check_matrix(&p.matrix(), |_, _| (0, CREATION));
    // At work until the last slice; on a busy machine the end itself takes a while.
    let last = p
        .slices
        .iter()
        .rposition(|s| s.accesses > 1000)
        .expect("a busy slice");
    let end = p.slices[last].start + p.slices[last].length;
    assert!(
        p.meta.duration - end.min(p.meta.duration) < 300_000_000,
        "{how}: idle since {end} ns"
    );
    assert!(
        p.meta.duration as f64 > seconds * 1e9,
        "{how}: {} ns",
        p.meta.duration
    );
}

#[test]
fn exits() {
    check("exit", 3, RunEnd::Exited { status: 3 });
    check("exit-group-from-thread", 4, RunEnd::Exited { status: 4 });
    check("main-returns", 5, RunEnd::Exited { status: 5 });
}

#[test]
fn signals() {
    for (how, signal) in [("abort", 6), ("segv", 11), ("kill", 9)] {
        check(how, 128 + signal, RunEnd::Signaled { signal });
    }
}
