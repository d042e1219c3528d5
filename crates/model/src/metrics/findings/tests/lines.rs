//! False sharing: who is told, who is not, and what to write.
use super::Made;
use crate::metrics::findings::false_sharing::find;
use hither_profile::*;

/// A structure on one page that two threads read 1000 times each, in `file`.
fn made(type_name: &str, file: &str) -> Made {
    let mut made = Made::new(3).pages(1, 0, &[1000, 1000, 0]).named("data", 1);
    made.profile.meta.options.line = 64;
    let object = &mut made.profile.objects[0];
    object.type_name = type_name.to_owned();
    object.file = file.to_owned();
    object.kind = ObjectKind::Static;
    made
}

impl Made {
    /// What a thread does in the line at `offset`: bytes read and written, accesses, all seen.
    fn uses(mut self, offset: u64, thread: u32, reads: u64, writes: u64, accesses: u64) -> Made {
        self.profile.lines.push(LineUse {
            offset,
            thread: ThreadIx(thread),
            seen: accesses,
            read_mask: reads,
            write_mask: writes,
            accesses,
            writes: if writes == 0 { 0 } else { accesses },
            ..LineUse::default()
        });
        self.profile
            .lines
            .sort_by_key(|l| (l.region, l.offset, l.thread));
        self
    }

    fn member(mut self, name: &str, offset: u64) -> Made {
        self.profile.members.push(ObjectMember {
            name: name.to_owned(),
            type_name: "long".to_owned(),
            offset,
            size: 8,
            ..ObjectMember::default()
        });
        self
    }
}

fn packed(type_name: &str, file: &str) -> Made {
    made(type_name, file)
        .uses(64, 0, 0xff, 0xff, 900)
        .uses(64, 1, 0xff00, 0xff00, 800)
}

/// A pointer that all read, beside a word that one writes now and then: few find the line elsewhere.
#[test]
fn lines_that_are_hardly_written_are_not_falsely_shared() {
    let with = |writes| {
        let mut made = made("", "")
            .uses(64, 0, 0xff, 0xff00, 900)
            .uses(64, 1, 0xff, 0, 900);
        made.profile.lines[0].writes = writes;
        made
    };
    with(900).finds(find);
    // Older profiles do not say.
    with(0).finds(find);
    with(1).finds(find);
    let mut seldom = with(1);
    seldom.profile.threads[0].reads += 1_000_000;
    seldom.finds_nothing(find);
    let mut often = with(900);
    often.profile.threads[0].reads += 1_000_000;
    often.finds(find);
}

/// Nobody can lay out in another way what the OpenMP runtime keeps for itself.
#[test]
fn blocks_of_a_library_are_not_the_programs_to_change() {
    packed("", "").finds(find);
    let mut made = packed("", "");
    made.profile.objects[0].name = format!("{}libgomp.so.1", Object::BLOCKS_OF);
    made.finds_nothing(find);
}

#[test]
fn neighbouring_counters() {
    let found = packed("long [512]", "/src/app.c").finds(find);
    assert_eq!(
        (found.kind, found.object),
        (FindingKind::FalseSharing, Some(ObjectIx(0)))
    );
    // Twice the 800 of the one that makes fewer, of 2000.
    assert!((found.severity - 0.8).abs() < 1e-9, "{}", found.severity);
    assert_eq!(
        found.title,
        "Threads use different bytes of the same line of data"
    );
    assert!(found.evidence[0].starts_with("1 line of 64 bytes, 2 threads"));
    assert_eq!(
        found.evidence[2],
        "The line with most of them (byte 64 of data): bytes 0-7 thread 0, 8-15 thread 1."
    );
    assert_eq!(
        found.picture,
        FindingPicture::Structure {
            object: ObjectIx(0)
        }
    );
}

#[test]
fn the_same_bytes_are_true_sharing() {
    let both = |a: (u64, u64), b: (u64, u64)| {
        made("long [512]", "/src/app.c")
            .uses(64, 0, a.0, a.1, 900)
            .uses(64, 1, b.0, b.1, 900)
    };
    both((0xff, 0xff), (0xff, 0xff)).finds_nothing(find);
    both((0, 0xff), (0xff, 0)).finds_nothing(find);
    both((0xff00, 0), (0x0100, 0xff)).finds(find);
    // A producer of eight words and a consumer of two of them.
    both((0, u64::MAX), (0xffff, 0)).finds_nothing(find);
    // Nobody writes.
    both((0xff, 0), (0xff00, 0)).finds_nothing(find);
}

#[test]
fn a_line_is_judged_by_most_of_its_conflicts() {
    // Threads 0 and 1 are apart; thread 2 reads what 0 writes, with 240 accesses and with 180.
    let with = |accesses| packed("long [512]", "/src/app.c").uses(64, 2, 0xff, 0, accesses);
    let mut line = with(180);
    line.profile.lines[2].read_mask = 0xffff;
    // 800 falsely against 2 x 180 truly.
    line.finds_nothing(find);
    line.profile.lines[2].accesses = 90;
    line.finds(find);
}

#[test]
fn too_few_accesses_seen_prove_nothing() {
    let mut made = packed("long [512]", "/src/app.c");
    made.profile.lines[0].seen = 16;
    made.finds(find);
    made.profile.lines[0].seen = 15;
    made.finds_nothing(find);
}

#[test]
fn a_line_that_one_thread_has_nearly_to_itself_is_no_matter() {
    let seldom = |accesses| {
        let made = made("long [512]", "/src/app.c").uses(64, 0, 0xff, 0xff, 900);
        let mut made = made.uses(64, 1, 0xff00, 0, accesses);
        made.profile.lines[1].seen = 100;
        made.profile.threads[0].reads += 998_000;
        made
    };
    // 2 x 500 of a million.
    seldom(500).finds(find);
    seldom(499).finds_nothing(find);
}

#[test]
fn fixes_by_language() {
    let check = |type_name, file, part: &str| {
        let found = packed(type_name, file).finds(find);
        assert!(
            found.fixes[0].copy.contains(part),
            "{}",
            found.fixes[0].copy
        );
    };
    check(
        "long [512]",
        "/src/app.c",
        "struct { _Alignas(64) long value; } data[512];",
    );
    check(
        "long [512]",
        "/src/app.cpp",
        "alignas(std::hardware_destructive_interference_size) long value",
    );
    check("real(kind=8) (512)", "/src/app.f90", "data(8, n)");
    check("", "", "_Alignas(64) TYPE value");
}

#[test]
fn members_of_one_structure() {
    let made = packed("struct box", "/src/app.c")
        .member("hits", 64)
        .member("misses", 72);
    let found = made.finds(find);
    assert!(found.evidence[2].contains("0-7 thread 0 (hits), 8-15 thread 1 (misses)"));
    assert_eq!(
        found.fixes[0].copy,
        "_Alignas(64) long hits;\n_Alignas(64) long misses;"
    );
}

#[test]
fn elements_of_an_array_of_structures() {
    let made = packed("struct box [512]", "/src/app.c").member("hits", 0);
    let found = made.finds(find);
    assert_eq!(
        found.fixes[0].copy,
        "struct box { /* members */ } __attribute__((aligned(64)));"
    );
}

#[test]
fn borders_of_parts() {
    let mut made = made("double [512]", "/src/app.c");
    for line in [5, 20] {
        made = made.uses(line * 64, 0, 0, 0xffff_ffff, 400).uses(
            line * 64,
            1,
            0,
            0xffff_ffff << 32,
            400,
        );
    }
    let found = made.finds(find);
    assert!(found.evidence[0].starts_with("2 lines"));
    assert!(
        found.fixes[0].what.starts_with("Only the borders"),
        "{:?}",
        found.fixes
    );
}

#[test]
fn two_variables_in_one_line() {
    let mut made = packed("long", "/src/app.c");
    let mut other = made.profile.objects[0].clone();
    other.name = "other".to_owned();
    (other.reads, other.writes) = (0, 0);
    made.profile.objects.push(other);
    made.profile.object_ranges = vec![
        ObjectRange {
            object: ObjectIx(0),
            offset: 64,
            length: 8,
            ..ObjectRange::default()
        },
        ObjectRange {
            object: ObjectIx(1),
            offset: 72,
            length: 8,
            ..ObjectRange::default()
        },
    ];
    let found = made.finds(find);
    assert_eq!(
        found.title,
        "data and other lie in the same line and belong to different threads"
    );
    assert_eq!(found.object, Some(ObjectIx(0)));
    assert_eq!(
        found.fixes[0].copy,
        "_Alignas(64) long data;\n_Alignas(64) long other;"
    );
}

#[test]
fn memory_without_a_name() {
    let mut made = packed("long", "/src/app.c");
    made.profile.object_ranges.clear();
    made.profile.regions[0].kind = RegionKind::Brk;
    let found = made.finds(find);
    assert!(found
        .title
        .ends_with("of the heap (in no block that is known)"));
    assert!(found.fixes[0].copy.contains("aligned_alloc(64"));
    assert_eq!(
        (found.object, found.picture),
        (None, FindingPicture::Communication)
    );
}

#[test]
fn damaged_counts_do_no_harm() {
    let mut made = packed("long [512]", "/src/app.c");
    for l in &mut made.profile.lines {
        l.accesses = u64::MAX;
        l.offset = u64::MAX;
    }
    made.profile.threads[0].reads = 1 << 61;
    made.profile.meta.options.line = u32::MAX;
    made.find(find);
}

/// Blocks that lay there before have other contents: IQ-TREE's array was named with what zlib had had there.
#[test]
fn a_block_that_was_there_at_another_time_shares_no_line() {
    let mut made = packed("long", "/src/app.c");
    made.profile.objects[0].kind = ObjectKind::Heap;
    made.profile.objects[0].size = 64;
    let mut before = made.profile.objects[0].clone();
    before.name = "before".to_owned();
    (before.reads, before.writes) = (1, 1);
    made.profile.objects.push(before);
    let range = |object, offset, length| ObjectRange {
        object: ObjectIx(object),
        offset,
        length,
        ..ObjectRange::default()
    };
    made.profile.object_ranges = vec![range(0, 64, 64), range(1, 60, 40)];
    let found = made.finds(find);
    assert_eq!(
        found.title,
        "Threads use different bytes of the same line of data"
    );
    // Side by side they may both be there.
    made.profile.object_ranges = vec![range(0, 64, 8), range(1, 72, 40)];
    assert!(made.finds(find).title.starts_with("data and before lie"));
}
