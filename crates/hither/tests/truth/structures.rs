//! Accesses by structure against the oracle, which looks each address up, and against the
//! source: structures that share pages, lines and, one after the other, addresses.
use hither_profile::{Object, ObjectIx, ObjectKind, Profile, RegionIx};
use std::collections::{BTreeMap, BTreeSet};

use crate::run::run;
use crate::view::*;

/// Below this share of the accesses a structure is nobody's headline.
const SMALL: f64 = 0.01;
/// What the project allows.
const OFF: f64 = 0.05;

fn accesses(o: &Object) -> u64 {
    o.reads + o.writes
}

/// Shares by name; stacks are one, as how much waiting threads do on theirs is their own.
fn shares(p: &Profile) -> BTreeMap<String, f64> {
    let total: u64 = p.threads.iter().map(|t| t.reads + t.writes).sum();
    let mut sums = BTreeMap::new();
    for o in &p.objects {
        let name = match o.kind {
            ObjectKind::Stack => "stacks".to_owned(),
            _ => o.name.clone(),
        };
        *sums.entry(name).or_default() += accesses(o) as f64 / total as f64;
    }
    sums
}

#[track_caller]
fn check_against_oracle(line: &str) {
    let fast = shares(&run(line).profile());
    let oracle = shares(&run(line).with("--oracle").profile());
    for name in fast.keys().chain(oracle.keys()) {
        let [f, o] = [&fast, &oracle].map(|s| s.get(name).copied().unwrap_or(0.0));
        let small = f.max(o) < SMALL;
        assert!(
            small || (f - o).abs() <= o * OFF,
            "{line}: {name} has {f:.4}, the oracle {o:.4}"
        );
    }
    assert!(oracle.values().sum::<f64>() > 0.95, "{line}: {oracle:?}");
}

#[test]
fn structures_count_as_the_oracle_says() {
    for line in [
        "pieces 10",
        "cpp_structs 2",
        "common 20",
        "stencil2d 128 10",
        "ondes 24 4",
        "reuse",
        "counted",
    ] {
        check_against_oracle(line);
    }
}

#[test]
fn structures_that_share_pages_and_lines_have_their_own_counts() {
    let rounds = 10;
    let p = run(&format!("pieces {rounds}")).profile();
    let counts = |name: &str| {
        let (_, object) = named(&p, name)[0];
        (object.reads, object.writes)
    };
    // 32 times two fields of each node; made once, linked in.
    let nodes = 500;
    let (reads, writes) = counts("node");
    assert_eq!(reads, rounds * 32 * 2 * nodes);
    assert!((2 * nodes..3 * nodes).contains(&writes), "{writes}");
    let (_, written) = counts("small");
    // And the allocator's own, at the head of the block.
    assert_within(written, rounds * 20_000, 0.0001, "small");
    // One object if the linker put both into the same 16 bytes.
    let near = p.objects.iter().filter(|o| o.name.contains("near_"));
    assert_eq!(near.map(|o| o.writes).sum::<u64>(), rounds * 2 * 1000);
    let (_, label) = named(&p, "label")[0];
    assert_eq!((label.count, label.size), (500, 500 * 22));
    let (_, small) = named(&p, "small")[0];
    assert_eq!((small.count, small.size), (1, 85 * 8));
}

/// memset's own code is in libc: the line that calls it is the one to change.
#[test]
fn the_line_that_touches_first_is_known() {
    let p = run("pieces 2").profile();
    let lines_of = |name: &str| {
        let (object, _) = named(&p, name)[0];
        let own = p.first_touch_lines.iter();
        let own = own.filter(move |l| l.object.at() == object);
        own.max_by_key(|l| l.pages).expect("a line")
    };
    for (name, at, pages) in [
        ("touched", "memset(touched", 250..=257),
        ("shares", "shares[i] = total", 7..=9),
    ] {
        let line = lines_of(name);
        assert_eq!(line.line, line_of("pieces.c", at), "{name}");
        assert!(line.file.ends_with("pieces.c"), "{}", line.file);
        assert_eq!((line.function.as_str(), line.thread.0), ("main", 0));
        assert!(pages.contains(&line.pages), "{name}: {} pages", line.pages);
        let called = format!("main (pieces.c:{})", line.line);
        let calls: Vec<&str> = line.path.split(';').collect();
        assert!(calls.contains(&called.as_str()), "{name}: {}", line.path);
        assert!(!line.in_parallel, "{name}");
    }
}

/// `set_plane`, called by the body of a loop that is parallel with -p; without, one thread runs the
/// same body.
#[test]
fn first_touch_knows_its_calls_and_whether_it_is_in_parallel() {
    let in_body = format!("(ondes.c:{})", line_of("ondes.c", "set_plane(z, n);"));
    for (option, in_parallel) in [("", false), ("-p ", true)] {
        let p = run(&format!("ondes {option}32 4")).profile();
        let (object, _) = named(&p, "present")[0];
        let own = p
            .first_touch_lines
            .iter()
            .filter(|l| l.object.at() == object);
        let own: Vec<_> = own.collect();
        let threads: BTreeSet<u32> = own.iter().map(|l| l.thread.0).collect();
        assert_eq!(threads.len(), if in_parallel { 4 } else { 1 }, "{own:?}");
        for line in own {
            assert_eq!(line.in_parallel, in_parallel, "{line:?}");
            let body = line.path.split(';').find(|call| call.contains("._omp_fn."));
            assert!(
                body.is_some_and(|call| call.ends_with(&in_body)),
                "{line:?}"
            );
            let main = line.path.starts_with("main (ondes.c:");
            assert_eq!(main, line.thread.0 == 0, "{line:?}");
        }
    }
}

/// One array and one counter, accessed by several lines in turn, within a slice and while the line
/// cache holds them: each line is credited with its own, and with what a library does for it.
#[test]
fn lines_are_credited_with_their_own_accesses() {
    let rounds = 1600;
    let p = run(&format!("lines {rounds}")).profile();
    let (length, counts) = (16384, 40_000);
    let site = |object: &str, text: &str| {
        let (at, _) = named(&p, object)[0];
        let line = line_of("lines.c", text);
        let own = p.sites.iter().filter(|s| s.line == line);
        let own = own.filter(|s| s.object.is_some_and(|o| o.at() == at));
        let found: Vec<_> = own.collect();
        assert_eq!(found.len(), 1, "{object}, {text}: {found:?}");
        (found[0].reads, found[0].writes, found[0].callee.as_str())
    };
    let all = rounds * length;
    let (reads, writes, callee) = site("table", "/* once */");
    assert_within(reads, all, 0.2, "read once");
    assert!(writes < all / 100 && callee.is_empty(), "{writes} {callee}");
    assert_within(site("table", "/* thrice */").0, 3 * all, 0.1, "read thrice");
    let (reads, writes, _) = site("table", "/* adds */");
    assert_within(reads, all, 0.2, "read and added to");
    assert_within(writes, all, 0.2, "added to");
    let (reads, writes, callee) = site("table", "memset((void *)table");
    assert!(reads < all / 100 && callee == "memset", "{reads} {callee}");
    assert!(
        writes < all && writes >= rounds * length * 8 / 64 / 2,
        "{writes} of memset"
    );
    // Called once, and so through the dynamic linker.
    let (reads, writes, callee) = site("large", "memmove((void *)");
    assert!(
        reads > 0 && writes > 0 && !callee.is_empty(),
        "{reads} {writes} {callee}"
    );
    // As deep in libc as its authors like.
    let sorts = site("table", "qsort((void *)table");
    assert!(!sorts.2.is_empty(), "{sorts:?}");
    // A line with very many accesses: by samples of time, of which a short run has few.
    let counter = p
        .objects
        .iter()
        .find(|o| o.name.contains("counter"))
        .expect("counter");
    let (often, seldom) = (
        site(&counter.name, "/* often */").1,
        site(&counter.name, "/* seldom */").1,
    );
    assert_within(
        often + seldom,
        rounds * (counts + counts / 3),
        0.5,
        "counts",
    );
    assert!(often > seldom, "{often} and {seldom}");
    // One probe counts what these three lines access.
    let points = rounds * 4000;
    for (text, reads, writes) in [("across", 1, 1), ("up", 0, 1), ("away", 2, 1)] {
        let found = site("points", &format!("/* {text} */"));
        assert_within(found.0, reads * points, 0.3, text);
        assert_within(found.1, writes * points, 0.3, text);
    }
}

/// A hundredth of a second: in the first slices more lines of the table are followed. Where it has
/// two slices, each follows some 16 of the 2048, up to a fifth more or fewer.
#[test]
fn lines_of_a_short_run_are_credited_too() {
    let (rounds, length) = (8, 16384);
    for attempt in 0..8 {
        let p = run(&format!("lines {rounds}")).profile();
        let (table, _) = named(&p, "table")[0];
        let reads = |text: &str| {
            let line = line_of("lines.c", text);
            let own = p.sites.iter().filter(|s| s.line == line);
            let own = own.filter(|s| s.object.is_some_and(|o| o.at() == table));
            own.map(|s| s.reads).sum::<u64>()
        };
        let (once, thrice) = (reads("/* once */"), reads("/* thrice */"));
        let what = format!("attempt {attempt}, once {once}, thrice {thrice}");
        assert_within(once, rounds * length, 0.6, &what);
        assert_within(thrice, 3 * rounds * length, 0.6, &what);
    }
}

/// A list's nodes and their labels are told apart by who called, and add up to their structures.
#[test]
fn call_paths_that_allocate_are_known() {
    let p = run("pieces 10").profile();
    for (name, made, blocks, bytes) in [
        ("node", "malloc(sizeof *node)", 500, 16),
        ("label", "strdup(", 500, 22),
    ] {
        let (at, object) = named(&p, name)[0];
        let paths = p.allocation_paths.iter().filter(|a| a.object.at() == at);
        let paths: Vec<_> = paths.collect();
        let [path] = paths.as_slice() else {
            panic!("{name}: {paths:?}")
        };
        let called = line_of("pieces.c", "= list_of(NODES)");
        let made = line_of("pieces.c", made);
        assert_eq!(
            path.path.split(';').take(2).collect::<Vec<_>>(),
            [
                format!("main (pieces.c:{called})"),
                format!("list_of (pieces.c:{made})")
            ]
        );
        assert_eq!(
            (path.count, path.smallest, path.largest),
            (blocks, bytes, bytes)
        );
        assert_eq!(
            (path.allocated, object.allocated),
            (blocks * bytes, blocks * bytes)
        );
        assert_eq!((path.reads, path.writes), (object.reads, object.writes));
    }
}

/// A return address that an earlier call left on the stack is no caller.
#[test]
fn calls_that_are_over_are_in_no_call_path() {
    for program in ["stale", "stale-frames"] {
        let p = run(program).profile();
        let (at, kept) = named(&p, "kept")[0];
        let paths = p.allocation_paths.iter().filter(|a| a.object.at() == at);
        let called = line_of("stale.c", "kept = quiet");
        let made = line_of("stale.c", "= malloc(");
        assert_eq!(
            paths.map(|a| a.path.as_str()).collect::<Vec<_>>(),
            [format!("main (stale.c:{called});quiet (stale.c:{made})")]
        );
        assert_within(kept.writes, 8192, 0.01, "kept");
        let touches = p.first_touch_lines.iter().filter(|l| l.object.at() == at);
        let (called, touched) = (
            line_of("stale.c", "+ fill("),
            line_of("stale.c", "kept)[i] ="),
        );
        let path = format!("main (stale.c:{called});fill (stale.c:{touched})");
        // The allocator touches the first page.
        let most = touches.max_by_key(|l| l.pages).map(|l| l.path.as_str());
        assert_eq!(most, Some(path.as_str()), "{program}");
    }
}

/// The callers of a program's own allocator are known, however many call paths led to it before.
#[test]
fn an_allocator_of_the_programs_own_is_told_by_its_caller() {
    let rounds = 20;
    let p = run(&format!("paths {rounds}")).profile();
    let (_, late) = named(&p, "late")[0];
    assert_eq!(
        (late.line, late.size),
        (line_of("paths.c", "*late ="), 8192)
    );
    assert_within(late.writes, rounds * 1024, 0.01, "late");
    let (_, node) = named(&p, "node")[0];
    assert_eq!((node.count, node.allocated), (1024, 1024 * 24));
}

/// Memory that a program takes by mmap is called after the variable that receives it.
#[test]
fn mappings_are_named_after_the_call_that_makes_them() {
    let rounds = 10;
    let line = format!("mapped {rounds}");
    let p = run(&line).profile();
    let words = |kib: u64| kib * 1024 / 8;
    for (name, size, count, allocated, writes) in [
        ("grid", 4096, 1, 4096, rounds * words(4096)),
        // As large as what ld.so maps for itself.
        ("small", 16, 1, 16, rounds * words(16)),
        ("chunk", 10_240, 10, 10_240, words(10_240)),
        ("turn", 256, rounds, rounds * 256, rounds * words(256)),
        ("grown", 512, 2, 576, words(512)),
        // SBCL's heap had the name of its mapping.
        ("heap", 1 << 20, 1, 1 << 20, rounds * words(256)),
    ] {
        let (_, object) = named(&p, name)[0];
        let kib = |bytes: u64| bytes / 1024;
        assert_eq!(object.kind, ObjectKind::Mmap, "{name}");
        assert_eq!(
            (kib(object.size), object.count, kib(object.allocated)),
            (size, count, allocated),
            "{name}"
        );
        assert_eq!(
            (object.type_name.as_str(), object.line),
            ("long", line_of("mapped.c", &format!("*{name} = "))),
            "{name}"
        );
        assert_within(object.writes, writes, 0.01, name);
    }
    let stack = p.objects.iter().find(|o| o.name == "stack of thread 1");
    let stack = stack.expect("the thread's stack");
    assert!(stack.writes >= rounds * words(64), "{}", stack.writes);
    check_against_oracle(&line);
}

/// A file that a process maps for itself, here in two pieces, is one structure of its name. The line
/// that reads it is known however much of it the process leaves unflushed as it ends: here all.
#[test]
fn a_mapped_file_is_a_structure() {
    let (rounds, bytes) = (10, 1 << 20);
    let folder = tempfile::tempdir().expect("tempdir");
    let path = folder.path().join("table");
    std::fs::write(&path, vec![1; bytes]).expect("write");
    let name = path.to_str().expect("a path");
    let command = format!("mapped {rounds} {name}");
    let p = run(&command).with("--slice 60s").profile();
    let (at, object) = named(&p, name)[0];
    assert_eq!((object.kind, object.size), (ObjectKind::Mmap, bytes as u64));
    assert_within(object.reads, rounds * bytes as u64 / 8, 0.01, name);
    assert_eq!(object.writes, 0);
    let ranges = p.object_ranges.iter().filter(|r| r.object.0 == at as u32);
    assert_eq!(ranges.map(|r| r.length).sum::<u64>(), bytes as u64);
    let line = p
        .sites
        .iter()
        .find(|s| s.object == Some(ObjectIx(at as u32)));
    let line = line.expect("a line that reads it");
    assert_eq!(line.line, line_of("mapped.c", "(void)part[i]"));
    check_against_oracle(&command);
}

/// A matrix of small blocks, which are not reported one by one, has pages and a first toucher too.
#[test]
fn rows_in_blocks_of_their_own_are_found_on_their_pages() {
    let p = run("rows 400").profile();
    let (at, object) = named(&p, "row[i]")[0];
    assert_eq!((object.count, object.largest), (8000, 200));
    let ranges = p.object_ranges.iter().filter(|r| r.object.0 == at as u32);
    let pages: BTreeSet<_> = ranges.map(|r| (r.region, r.offset / 4096)).collect();
    // Rows of 208 bytes, with their headers, and starts of 32. How many of the pages are known goes
    // with how many lines are evicted.
    let all = 8000 * 240 / 4096;
    assert!(pages.len() * 3 >= all, "{} of {all}", pages.len());
    let users = |page: &(RegionIx, u64)| {
        let uses = p
            .pages
            .iter()
            .filter(|u| (u.region, u64::from(u.page.0)) == *page);
        uses.fold(BTreeMap::new(), |mut sums: BTreeMap<u32, u64>, u| {
            *sums.entry(u.thread.0).or_default() += u.reads + u.writes;
            sums
        })
    };
    let own = pages.iter().map(users).filter(|users| {
        let most = users.values().max().copied().unwrap_or(0);
        most * 10 >= users.values().sum::<u64>() * 9
    });
    assert!(own.count() * 100 >= pages.len() * 95);
    let touched = p
        .first_touch_lines
        .iter()
        .filter(|l| l.object.0 == at as u32);
    let touched: u64 = touched.filter(|l| l.thread.0 == 0).map(|l| l.pages).sum();
    assert!(
        touched * 100 >= pages.len() as u64 * 95,
        "{touched} of {}",
        pages.len()
    );
    check_against_oracle("rows 400");
}

/// Small variables share pages: who uses these says nothing of who uses them.
#[test]
fn threads_of_small_variables_are_those_that_access_them() {
    let p = run("lookup 3 100000").profile();
    let users = |name: &str| {
        let (at, _) = named(&p, name)[0];
        let own = p.object_threads.iter().filter(|u| u.object.at() == at);
        own.map(|u| u.thread.0).collect::<Vec<_>>()
    };
    assert_eq!(users("table"), [0, 1, 2]);
    assert_eq!(users("ends"), [0, 1, 2]);
    assert_eq!(users("mains"), [0]);
}
