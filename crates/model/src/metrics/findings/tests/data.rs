//! Who uses which pages of a structure.
use super::Made;
use crate::metrics::findings::{
    concentrated, first_touch, large_pages, read_mostly, shared_by_all,
};
use hither_profile::*;

/// Reads of a page by one of four threads.
pub(super) fn by(thread: usize, reads: u64) -> [u64; 4] {
    let mut of = [0; 4];
    of[thread] = reads;
    of
}

/// Four threads on a node each; `grid`: for each a block of 16 pages that it alone reads,
/// touched first by whom `toucher` says.
pub(super) fn blocks(toucher: fn(u32) -> u32) -> Made {
    let made = (0..4).fold(Made::new(4), |made, t| {
        made.pages(16, toucher(t), &by(t as usize, 100))
    });
    made.named("grid", 64)
}

/// 64 pages that all use alike, touched first by whom `toucher` says.
pub(super) fn shared(toucher: fn(u32) -> u32, reads: u64, writes: u64) -> Made {
    let made = (0..4).fold(Made::new(4), |made, t| {
        made.used(16, toucher(t), &[reads; 4], &[writes; 4])
    });
    made.named("grid", 64)
}

pub(super) fn close(a: f64, b: f64) {
    assert!((a - b).abs() < 1e-9, "{a} is not {b}");
}

/// Each page has one user: E_app 1. A quarter of the accesses is thread 0's own: 1 - 0.25
/// could be gained.
#[test]
fn thread_0_touches_all_blocks_first() {
    let found = blocks(|_| 0).finds(first_touch::find);
    close(found.severity, 0.75);
    assert_eq!(
        found.title,
        "One thread touches all of grid first, others make 75 % of the accesses"
    );
    assert!(found.evidence[0].starts_with("Thread 0 (t0) touches 64 of 64 pages"));
    assert!(found.evidence[2].contains("25 %") && found.evidence[2].contains("100 %"));
    assert!(found.fixes[1]
        .copy
        .contains("hither run -p app.place.json -- ./app 12"));
    blocks(|t| t).finds_nothing(first_touch::find);
}

/// What runs in parallel already is not said to be made parallel.
#[test]
fn the_first_touch_is_in_a_parallel_region() {
    let check = |path: &str, in_parallel: bool, evidence: &str, fix: &str| {
        let mut made = blocks(|_| 0);
        made.profile.slices[0].sync[2] = 1;
        made.profile.first_touch_lines = vec![FirstTouchLine {
            file: "/src/app.c".to_owned(),
            line: 7,
            function: "fill".to_owned(),
            path: path.to_owned(),
            in_parallel,
            pages: 64,
            ..FirstTouchLine::default()
        }];
        let found = made.finds(first_touch::find);
        assert_eq!(found.evidence.last().map(String::as_str), Some(evidence));
        assert!(found.fixes[0].what.starts_with(fix), "{found:?}");
        assert_eq!(found.fixes[0].copy.is_empty(), in_parallel);
    };
    let path = "main (app.c:20);fill (app.c:7)";
    check(
        path,
        false,
        "The first touch is at app.c:7, in fill, outside of any parallel region: that is the \
         line to change. It was called from main (app.c:20).",
        "Initialise it in parallel",
    );
    check(
        path,
        true,
        "The first touch is at app.c:7, in fill, inside a parallel region: that is the line to \
         change. It was called from main (app.c:20).",
        "The loop that touches it first runs in parallel already, but deals it out otherwise",
    );
    check(
        "",
        false,
        "The first touch is at app.c:7, in fill: that is the line to change.",
        "Initialise it in parallel",
    );
}

/// No initialisation of the program's decides where a file's pages lie, nor does a policy of the mapping.
#[test]
fn mapped_files_are_repaired_in_the_page_cache() {
    let as_file = |made: Made, kind, file: &str| {
        let mut made = made;
        made.profile.regions[0].kind = kind;
        made.profile.regions[0].file = file.to_owned();
        let found = made.finds(first_touch::find);
        let placed = found.evidence[0].contains("Linux puts");
        assert_ne!(placed, found.fixes[0].what.contains("page cache"));
        found.fixes
    };
    for kind in [RegionKind::Mmap, RegionKind::Shared] {
        let fixes = as_file(blocks(|_| 0), kind, "/data/a table");
        assert!(fixes[0].what.contains("page cache"), "{fixes:?}");
        assert_eq!(fixes[0].copy, "dd if='/data/a table' iflag=nocache count=0");
        assert_eq!(fixes.len(), 1);
        let fixes = as_file(shared(|_| 0, 10, 10), kind, "/data/table");
        assert!(fixes[0].copy.contains("\nnumactl --interleave=all -- "));
    }
    // As in a redacted profile.
    let fixes = as_file(blocks(|_| 0), RegionKind::Mmap, "table");
    assert!(fixes[0].what.contains("page cache"), "{fixes:?}");
    for (kind, file) in [
        (RegionKind::Mmap, "/dev/zero"),
        (RegionKind::Shared, "/dev/shm/table"),
        (RegionKind::Shared, "/memfd:table (deleted)"),
        (RegionKind::Mmap, ""),
        (RegionKind::Brk, "/data/table"),
    ] {
        let fixes = as_file(blocks(|_| 0), kind, file);
        assert!(!fixes[0].what.contains("page cache"), "{fixes:?}");
    }
}

#[test]
fn one_thread_is_the_first_on_three_quarters_of_the_pages() {
    let made = |first: u32| {
        let made = Made::new(4).pages(first, 0, &[1, 100]);
        made.pages(64 - first, 1, &[1, 100]).named("grid", 64)
    };
    made(48).finds(first_touch::find);
    made(47).finds_nothing(first_touch::find);
}

/// Of 100 pages that thread 0 touches first, some belong to thread 1. The rest of the run is
/// touched wrongly, so that first touch is not right as a whole.
#[test]
fn first_touch_costs_a_tenth_of_the_accesses() {
    let made = |wrong: u32| {
        let made = Made::new(4).pages(64, 0, &by(2, 100));
        let made = made.pages(100 - wrong, 0, &by(0, 100));
        made.pages(wrong, 0, &by(1, 100)).named("grid", 100)
    };
    made(11).finds(first_touch::find);
    made(9).finds_nothing(first_touch::find);
}

/// The verdict says that nothing is to be gained where first touch is right for 90 %.
#[test]
fn first_touch_is_right_for_nearly_all_of_the_run() {
    let made = |right: u32| {
        let made = Made::new(4).pages(right, 0, &by(0, 100));
        made.pages(20, 0, &by(1, 100)).named("grid", 20)
    };
    made(179).finds(first_touch::find);
    made(180).finds_nothing(first_touch::find);
}

/// One structure among much that all use alike: its own code can be mended, but `hither map` would leave the run
/// as it is.
#[test]
fn hither_is_not_proposed_where_nothing_is_gained() {
    let made = |alike: u32| {
        let made = Made::new(4).pages(4, 0, &by(0, 100));
        let made = made.pages(alike, 0, &[25; 4]);
        made.pages(30, 0, &by(1, 100)).named("grid", 30)
    };
    for (alike, fixes) in [(0, 2), (100, 1)] {
        let verdict = made(alike).analysis().report.verdict;
        assert_eq!(verdict.may_gain(), fixes == 2, "{verdict:?}");
        let found = made(alike).finds(first_touch::find);
        assert_eq!(found.fixes.len(), fixes, "{found:?}");
    }
}

/// All use all pages alike: no place is right, but one memory of four serves everything.
#[test]
fn one_memory_serves_what_all_use() {
    let found = shared(|_| 0, 10, 10).finds(first_touch::find);
    close(found.severity, 0.75);
    assert!(found.evidence[1].contains("serves 100 % of its accesses; an even part would be 25 %"));
    assert!(found.fixes[0].copy.contains("--structure grid=interleave"));
    shared(|t| t, 10, 10).finds_nothing(first_touch::find);
}

#[test]
fn where_pages_lie_does_not_matter() {
    let bad = || shared(|_| 0, 10, 10);
    bad().on(1).finds_nothing(first_touch::find);
    bad().on(1).finds_nothing(shared_by_all::find);
    let mut cached = bad();
    cached.cache_bytes = 1 << 30;
    cached.finds_nothing(first_touch::find);
    cached.finds_nothing(shared_by_all::find);
    let mut stack = bad();
    stack.profile.objects[0].kind = ObjectKind::Stack;
    stack.finds_nothing(first_touch::find);
    stack.finds_nothing(shared_by_all::find);
    // 15 pages.
    let small = Made::new(4).used(15, 0, &[10; 4], &[10; 4]);
    small.named("grid", 15).finds_nothing(shared_by_all::find);
    // Below one in a hundred of the accesses.
    let unimportant = |others: u64| {
        let made = Made::new(4).pages(10, 1, &by(1, others));
        made.pages(16, 0, &by(2, 10)).named("grid", 16)
    };
    unimportant(100).finds(first_touch::find);
    unimportant(1600).finds_nothing(first_touch::find);
}

/// E_app 0.25 on four nodes: 75 % are remote wherever the pages lie.
#[test]
fn all_threads_share_what_they_write() {
    let found = shared(|t| t, 10, 10).finds(shared_by_all::find);
    close(found.severity, 0.75);
    assert_eq!(
        found.title,
        "All 4 threads share grid: wherever its pages lie, 75 % of its accesses are remote"
    );
    blocks(|t| t).finds_nothing(shared_by_all::find);
}

/// One way or the other, but not both: up to a tenth of writes is mostly read.
#[test]
fn shared_by_all_or_read_mostly() {
    let written = shared(|t| t, 8, 1);
    written.finds(shared_by_all::find);
    written.finds_nothing(read_mostly::find);
    let read = shared(|t| t, 9, 1);
    read.finds_nothing(shared_by_all::find);
    let found = read.finds(read_mostly::find);
    close(found.severity, 0.75);
    assert!(
        found.title.contains("75 % remote accesses"),
        "{}",
        found.title
    );
}

/// 1024 writes by each of four threads are one for each byte of a page.
#[test]
fn what_is_written_again_and_again_is_no_table() {
    let filled = shared(|t| t, 100_000, 1024);
    filled.finds(read_mostly::find);
    filled.finds_nothing(shared_by_all::find);
    let renewed = shared(|t| t, 100_000, 1025);
    renewed.finds_nothing(read_mostly::find);
    renewed.finds(shared_by_all::find);
}

/// Alike on four nodes: E_page up to 0.25 + 0.75 / 4 = 0.4375.
#[test]
fn nodes_use_pages_about_alike() {
    let made = |most: u64| {
        let made = Made::new(4).used(64, 0, &[], &[most, 19, 19, 19]);
        made.named("grid", 64)
    };
    made(43).finds(shared_by_all::find);
    made(46).finds_nothing(shared_by_all::find);
}

/// Two threads on a node, so that E_app stays low: 6 of 8 are nearly all, 5 are not.
#[test]
fn nearly_all_threads_share() {
    let made = |users: usize| {
        let mut writes = [0; 8];
        writes[..users].fill(10);
        let made = Made::new(8).on(4).used(64, 0, &[], &writes);
        made.pages(1, 0, &[1000; 8])
            .pages(63, 0, &[])
            .named("rest", 0)
    };
    // The structure is what was used first.
    let named = |users| {
        let mut made = made(users).named("grid", 128);
        made.profile.object_ranges[1].offset = 0;
        made.profile.object_ranges[1].length = 64 * PAGE_SIZE;
        made
    };
    named(6).finds(shared_by_all::find);
    named(5).finds_nothing(shared_by_all::find);
}

/// Half of the accesses go to shared pages.
#[test]
fn most_accesses_go_to_shared_pages() {
    let made = |pages: u32| {
        let made = Made::new(4).used(pages, 0, &[], &[25; 4]);
        let made = made.used(100 - pages, 0, &[], &by(1, 100));
        made.named("grid", 100)
    };
    made(50).finds(shared_by_all::find);
    made(49).finds_nothing(shared_by_all::find);
}

/// The caches of a node, a quarter of all, hold 64 pages.
#[test]
fn what_a_nodes_caches_hold_needs_no_copy() {
    let made = |pages: u32| {
        let made = Made::new(4).pages(1000, 0, &by(0, 1));
        let mut made = made.pages(pages, 0, &[10; 4]).named("grid", pages);
        made.cache_bytes = 4 * 64 * PAGE_SIZE;
        made
    };
    let found = made(65).finds(read_mostly::find);
    assert!(found.evidence[2].contains("260 KiB large, more than the 256 KiB"));
    made(64).finds_nothing(read_mostly::find);
}

/// 128 pages, the 32 in the middle hot: all threads use all alike.
fn bell(cold: u64, hot: u64) -> Made {
    let made = Made::new(4)
        .pages(48, 0, &[cold; 4])
        .pages(32, 0, &[hot; 4]);
    made.pages(48, 0, &[cold; 4]).named("grid", 128)
}

/// 32 x 3 of 32 x 3 + 96: half of the accesses to a quarter of the pages, 0.25 in excess.
#[test]
fn the_middle_is_hot() {
    let found = bell(100, 300).finds(concentrated::find);
    close(found.severity, 0.25);
    assert_eq!(
        found.title,
        "50 % of the accesses to grid go to 25 % of its pages, in its middle"
    );
    assert!(
        found.evidence[0].contains("from page 49 to 78"),
        "{found:?}"
    );
    bell(100, 295).finds_nothing(concentrated::find);
}

/// Hot pages that belong to somebody do no harm unless one thread has more than its part, 1.5
/// times an even one: here 1600 of 3200 + 96 * `cold`.
#[test]
fn hot_pages_of_each_thread_do_no_harm() {
    let made = |of_1: u32, cold: u64| {
        let made = Made::new(4).pages(48, 0, &by(0, cold));
        let made = made
            .pages(of_1, 1, &by(1, 100))
            .pages(32 - of_1, 2, &by(2, 100));
        made.pages(48, 3, &by(3, cold)).named("grid", 128)
    };
    let found = made(16, 10).finds(concentrated::find);
    assert!(
        found.evidence[1].starts_with("Of 4 threads thread 1 (t1) makes 38 %"),
        "{found:?}"
    );
    made(16, 12).finds_nothing(concentrated::find);
    // About all are one thread's.
    made(28, 10).finds_nothing(concentrated::find);
    // The same for all.
    let alike = (0..4).fold(Made::new(4), |made, t| {
        let made = made.pages(12, t, &by(t as usize, 1));
        made.pages(8, t, &by(t as usize, 100))
    });
    alike.named("grid", 80).finds_nothing(concentrated::find);
}

#[test]
fn few_hot_pages_stay_in_the_caches() {
    let made = |hot: u32| {
        let made = Made::new(4).pages(64, 0, &[1; 4]).pages(hot, 0, &[1000; 4]);
        made.named("grid", 64 + hot)
    };
    made(16).finds(concentrated::find);
    made(15).finds_nothing(concentrated::find);
}

/// Every fourth page: of one block, or of one of many blocks.
#[test]
fn hot_pages_here_and_there() {
    let mut made = (0..32).fold(Made::new(4), |made, _| {
        made.pages(3, 0, &[1; 4]).pages(1, 0, &[100; 4])
    });
    made = made.named("grid", 128);
    let found = made.finds(concentrated::find);
    assert!(found.evidence[0].contains("here and there"), "{found:?}");
    made.profile.objects[0].count = 4;
    made.finds_nothing(concentrated::find);
}

/// 32 MiB on four nodes, `mixed` of 16 blocks of 512 pages with a page for each thread in
/// turn, the others a thread's whole. The first 16 * 0.75 / 16 of the accesses are lost with
/// pages of 2 MiB, an eighth counts as the borders'.
fn dealt(mixed: u32) -> Made {
    let made = (0..16).fold(Made::new(4), |made, block| {
        if block >= mixed {
            let t = block % 4;
            return made.pages(512, t, &by(t as usize, 10));
        }
        (0..512).fold(made, |made, page| {
            made.pages(1, page % 4, &by(page as usize % 4, 10))
        })
    });
    made.named("grid", 16 * 512)
}

#[test]
fn large_pages_mix_what_threads_use_apart() {
    let found = dealt(16).finds(large_pages::find);
    close(found.severity, 0.75);
    assert!(found
        .title
        .starts_with("Pages of 2 MiB would make 75 % of the accesses to grid"));
    dealt(0).finds_nothing(large_pages::find);
    // 0.75 * 5 / 16 = 0.234, 0.75 * 4 / 16 = 0.1875; it takes 0.125 + 0.1.
    dealt(5).finds(large_pages::find);
    dealt(4).finds_nothing(large_pages::find);
}

/// Twelve structures, eight findings, the last of which speaks for the rest.
#[test]
fn many_alike_are_summed_up() {
    let run = Made::new(4).pages(1, 0, &by(0, 1));
    let made = (0..12).fold(run, |made, n| {
        let made = made.pages(16, 0, &by(1, 100 + n));
        made.named(&format!("a{n}"), 16)
    });
    let found = made.find(first_touch::find);
    assert_eq!(found.len(), 8);
    assert_eq!(found[0].object, Some(ObjectIx(11)));
    let last = found[7].evidence.last().expect("evidence");
    assert!(last.contains("4 more structures"), "{last}");
    // All are of one file: the repair is said once.
    assert_eq!(found[1].fixes[0].what, "As for a11, in the same place.");
    assert!(found[1].fixes[0].copy.starts_with("memset(&a10["));
}

/// Names that are no words of a language or shell, and a Fortran program.
#[test]
fn code_to_copy_is_in_the_words_of_the_program() {
    let mut made = blocks(|_| 0);
    made.profile.slices[0].sync[2] = 7;
    let copy = |made: &Made| made.finds(first_touch::find).fixes[0].copy.clone();
    let c = copy(&made);
    assert!(
        c.starts_with("// grid, allocated at app.c:12\n#pragma omp parallel for"),
        "{c}"
    );
    assert!(c.ends_with("grid[i] = 0;"), "{c}");
    made.profile.objects[0].file = "/src/fields.F90".to_owned();
    let fortran = copy(&made);
    assert!(
        fortran.contains("!$omp parallel do schedule(static)\ndo i = 1, n\n  grid(i) = 0"),
        "{fortran}"
    );
    made.profile.objects[0].file = "/src/a\n#b.c".to_owned();
    made.profile.objects[0].name = "x'; reboot".to_owned();
    let odd = copy(&made);
    assert!(
        odd.starts_with("// data, allocated at a?#b.c:12\n#pragma"),
        "{odd}"
    );
    let mut shared = shared(|_| 0, 10, 10);
    shared.profile.objects[0].name = "x'; reboot".to_owned();
    let line = &shared.finds(first_touch::find).fixes[0].copy;
    assert!(
        line.contains(r"--structure 'x'\''; reboot'=interleave"),
        "{line}"
    );
}

/// Most of what uses the grid has no line, a library without debug information: a copy in libc, which has
/// one, is not where it is used most.
#[test]
fn a_line_that_hardly_uses_a_structure_is_not_named() {
    let lines = |copied: u64| {
        let mut made = blocks(|_| 0);
        let site = |line, reads| SourceSite {
            object: Some(ObjectIx(0)),
            file: "memmove.S".to_owned(),
            line,
            reads,
            ..SourceSite::default()
        };
        made.profile.sites = vec![site(0, 1000), site(664, copied)];
        made.finds(first_touch::find).lines.len()
    };
    assert_eq!((lines(99), lines(100)), (0, 1));
}
