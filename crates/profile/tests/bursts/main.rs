//! Burst traces: what is recorded comes back, and a file may break off or be anything.
mod limits;
mod tracer;

use hither_profile::bursts::{
    access_source, register_source, BasicBlock, BlockAccess, BurstAccess, BurstPiece, BurstTrace,
    NamedPages, PieceEncoder, RegisterChange, NO_SOURCE,
};
use hither_profile::*;
use hither_profile::{BurstWriter, PieceHeader};
use proptest::prelude::*;
use std::path::Path;

const PROCESS: ProcessIx = ProcessIx(0);

fn profile() -> Profile {
    Profile::default()
}

/// Writes a profile with the bursts that `record` makes.
fn written(dir: &Path, record: impl FnOnce(&mut BurstWriter)) {
    let mut writer = BurstWriter::create(dir).unwrap();
    record(&mut writer);
    assert_eq!(writer.failed(), None);
    let written = write_with_bursts(&mut profile(), dir, writer).unwrap();
    assert_eq!(written.missing, Vec::<String>::new());
}

fn opened(dir: &Path) -> BurstTrace {
    let bursts = BurstTrace::open(dir).unwrap().expect("bursts");
    assert_eq!(bursts.broken(), None);
    bursts
}

/// All accesses of a thread in a window.
fn accesses(bursts: &BurstTrace, window: usize, thread: u32) -> Vec<BurstAccess> {
    let mut decoder = bursts.decoder(window, ThreadIx(thread));
    let (mut all, mut piece) = (Vec::new(), Vec::new());
    while let Some(head) = decoder.next(&mut piece) {
        assert_eq!(head.accesses, piece.len() as u64);
        all.append(&mut piece);
    }
    assert!(!decoder.damaged());
    all
}

fn like(thread: u32, start: u64, end: u64) -> BurstPiece {
    BurstPiece {
        thread: ThreadIx(thread),
        process: PROCESS,
        start,
        end,
        ..BurstPiece::default()
    }
}

fn access() -> impl Strategy<Value = BurstAccess> {
    let address = prop_oneof![
        (0u64..64).prop_map(|n| 0x7000_0000_0000 + n * 8),
        0u64..1 << 47,
    ];
    let bytes = prop_oneof![Just(8u32), Just(4), 1u32..65];
    (address, bytes, any::<bool>(), 1u32..5, 0u32..17).prop_map(
        |(address, bytes, write, after, depends)| BurstAccess {
            address,
            bytes,
            write,
            after,
            depends,
        },
    )
}

/// As it comes back: what the first accesses depend on was not recorded.
fn seen(accesses: &[BurstAccess]) -> Vec<BurstAccess> {
    let known = |(n, a): (usize, &BurstAccess)| BurstAccess {
        depends: if a.depends as usize <= n {
            a.depends
        } else {
            0
        },
        ..*a
    };
    accesses.iter().enumerate().map(known).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn what_is_recorded_comes_back(
        first in prop::collection::vec(access(), 1..300),
        second in prop::collection::vec(access(), 1..300),
    ) {
        let dir = tempfile::tempdir().unwrap();
        written(dir.path(), |w| {
            w.append_accesses(1, &like(0, 10, 20), &first);
            w.append_accesses(1, &like(3, 11, 19), &second);
            w.append_accesses(2, &like(0, 30, 50), &second);
        });
        let bursts = opened(dir.path());
        prop_assert_eq!(bursts.windows().len(), 2);
        prop_assert_eq!(bursts.threads(0), [ThreadIx(0), ThreadIx(3)]);
        prop_assert_eq!(accesses(&bursts, 0, 0), seen(&first));
        prop_assert_eq!(accesses(&bursts, 0, 3), seen(&second));
        prop_assert_eq!(accesses(&bursts, 1, 0), seen(&second));
        prop_assert_eq!(bursts.accesses(), (first.len() + 2 * second.len()) as u64);
    }

    #[test]
    fn damaged_files_are_read_up_to_the_break(
        stream in prop::collection::vec(access(), 1..200),
        at in 0.0f64..1.0,
        byte: u8,
        cut: bool,
    ) {
        let dir = tempfile::tempdir().unwrap();
        written(dir.path(), |w| w.append_accesses(1, &like(0, 10, 20), &stream));
        let path = dir.path().join("bursts.bin");
        let mut bytes = std::fs::read(&path).unwrap();
        let at = (at * bytes.len() as f64) as usize;
        if cut {
            bytes.truncate(at);
        } else {
            bytes[at] ^= byte;
        }
        std::fs::write(&path, &bytes).unwrap();
        let Ok(Some(bursts)) = BurstTrace::open(dir.path()) else { return Ok(()) };
        prop_assert!(bursts.broken().is_some() || byte == 0 && !cut);
        for window in 0..bursts.windows().len() {
            prop_assert_eq!(accesses(&bursts, window, 0), seen(&stream));
        }
    }
}

/// `for (...) sum += b[a[i]]`, twice over, with a block between that touches nothing: the sum
/// depends on the index, the index on nothing that was read.
#[test]
fn blocks_give_dependences_and_distances() {
    let gather = BasicBlock {
        instructions: 5,
        sites: 2,
        accesses: vec![
            BlockAccess {
                after: 1,
                site: Some(0),
                bytes: 4,
                sources: [register_source(1), NO_SOURCE],
                ..BlockAccess::default()
            },
            BlockAccess {
                after: 2,
                site: Some(1),
                bytes: 8,
                sources: [access_source(0), register_source(3)],
                ..BlockAccess::default()
            },
        ],
        changes: vec![RegisterChange {
            register: 0,
            sources: [access_source(1), NO_SOURCE],
        }],
        ..BasicBlock::default()
    };
    let idle = BasicBlock {
        instructions: 3,
        ..BasicBlock::default()
    };
    // The pointer that is walked is what `gather` read last.
    let chase = BasicBlock {
        instructions: 2,
        sites: 1,
        accesses: vec![BlockAccess {
            after: 1,
            site: Some(0),
            bytes: 8,
            sources: [register_source(0), NO_SOURCE],
            ..BlockAccess::default()
        }],
        changes: vec![RegisterChange {
            register: 0,
            sources: [access_source(0), NO_SOURCE],
        }],
        ..BasicBlock::default()
    };
    let mut encoder = PieceEncoder::default();
    for n in 0..2u64 {
        assert_eq!(
            encoder.push_execution(7, &gather, &[1000 + 4 * n, 5000 * n]),
            None
        );
        encoder.push_execution(9, &idle, &[]);
        encoder.push_execution(8, &chase, &[64 * n]);
    }
    let code = encoder.finish().unwrap();
    assert_eq!((code.accesses, code.instructions), (6, 20));
    let dir = tempfile::tempdir().unwrap();
    written(dir.path(), |w| {
        let bytes = [gather, idle, chase].map(|block| {
            let mut bytes = Vec::new();
            block.encode(&mut bytes);
            bytes
        });
        w.append_blocks([7, 9, 8].into_iter().zip(bytes.iter().map(Vec::as_slice)));
        let piece = BurstPiece {
            accesses: 6,
            instructions: 20,
            ..like(0, 1, 2)
        };
        let head = PieceHeader {
            window: 1,
            piece,
            flags: code.flags,
            ..PieceHeader::default()
        };
        w.append_piece(&head, &code.bytes);
    });
    let found = accesses(&opened(dir.path()), 0, 0);
    let rows: Vec<_> = found
        .iter()
        .map(|a| (a.address, a.after, a.depends))
        .collect();
    let expected = [
        (1000, 1, 0),
        (0, 2, 1),
        (0, 2 + 3 + 1, 1),
        (1004, 1 + 1, 0),
        (5000, 2, 1),
        (64, 2 + 3 + 1, 1),
    ];
    assert_eq!(rows, expected);
}

/// A sweep and a strided walk take far less than a byte for an access.
#[test]
fn regular_streams_are_small() {
    let stream: Vec<BurstAccess> = (0..100_000u64)
        .map(|n| BurstAccess {
            address: 0x5000_0000 + n / 2 * 8 + (n % 2) * (1 << 20),
            bytes: 8,
            write: n % 2 == 1,
            after: 2,
            depends: (n % 2) as u32,
        })
        .collect();
    let dir = tempfile::tempdir().unwrap();
    written(dir.path(), |w| {
        w.append_accesses(1, &like(0, 10, 20), &stream)
    });
    let bursts = opened(dir.path());
    assert_eq!(accesses(&bursts, 0, 0), seen(&stream));
    let size = std::fs::metadata(dir.path().join("bursts.bin"))
        .unwrap()
        .len();
    assert!(size < 10_000, "{size} bytes");
}

#[test]
fn a_missing_piece_ends_its_thread() {
    let stream: Vec<BurstAccess> = (0..20_000u64)
        .map(|n| BurstAccess {
            address: n * 8,
            bytes: 8,
            after: 1,
            ..BurstAccess::default()
        })
        .collect();
    let dir = tempfile::tempdir().unwrap();
    written(dir.path(), |w| {
        let mut encoder = PieceEncoder::default();
        let block = BasicBlock {
            instructions: 1,
            sites: 1,
            accesses: vec![BlockAccess {
                after: 1,
                site: Some(0),
                bytes: 8,
                ..BlockAccess::default()
            }],
            ..BasicBlock::default()
        };
        let mut bytes = Vec::new();
        block.encode(&mut bytes);
        w.append_blocks([(3, bytes.as_slice())].into_iter());
        let codes = stream
            .iter()
            .filter_map(|a| encoder.push_execution(3, &block, &[a.address]));
        for (n, code) in (0u32..).zip(codes.collect::<Vec<_>>()) {
            let piece = BurstPiece {
                accesses: code.accesses.into(),
                instructions: code.instructions.into(),
                ..like(0, u64::from(n), u64::from(n) + 1)
            };
            let head = PieceHeader {
                window: 5,
                sequence: n,
                piece,
                flags: code.flags,
            };
            if n != 2 {
                w.append_piece(&head, &code.bytes);
            }
        }
    });
    let bursts = BurstTrace::open(dir.path()).unwrap().expect("bursts");
    assert!(bursts.broken().is_some_and(|b| b.contains("missing")));
    assert_eq!(accesses(&bursts, 0, 0), stream[..2 * 4096]);
}

/// Only a lack of room is made up for by giving up the bursts.
#[test]
fn a_table_of_too_many_rows_leaves_the_bursts() {
    let mut profile = profile();
    profile.threads = vec![Thread::default(); 20_000];
    let dir = tempfile::tempdir().unwrap();
    let mut writer = BurstWriter::create(dir.path()).unwrap();
    let one = BurstAccess {
        bytes: 1,
        after: 1,
        ..BurstAccess::default()
    };
    writer.append_accesses(1, &like(0, 1, 2), &[one]);
    let written = write_with_bursts(&mut profile, dir.path(), writer).unwrap();
    assert!(written.missing[0].contains("too many"), "{written:?}");
    assert_eq!(opened(dir.path()).accesses(), 1);
}

#[test]
fn pages_have_names() {
    let dir = tempfile::tempdir().unwrap();
    let run = |process, page, pages, region, first| NamedPages {
        process: ProcessIx(process),
        page,
        pages,
        region: RegionIx(region),
        first: PageNo(first),
    };
    written(dir.path(), |w| {
        let one = BurstAccess {
            address: 4096,
            bytes: 1,
            after: 1,
            ..BurstAccess::default()
        };
        w.append_accesses(4, &like(0, 1, 2), &[one]);
        w.append_named_pages(
            4,
            &[
                run(0, 10, 5, 1, 100),
                run(0, 15, 1, 2, 0),
                run(1, 12, 2, 1, 7),
            ],
        );
    });
    let bursts = opened(dir.path());
    let check = |process, page, expected: Option<(u32, u32)>| {
        let found = bursts.page_name(0, ProcessIx(process), page);
        let found = found.map(|(region, page)| (region.0, page.0));
        assert_eq!(found, expected, "{process} {page}");
    };
    check(0, 9, None);
    check(0, 10, Some((1, 100)));
    check(0, 14, Some((1, 104)));
    check(0, 15, Some((2, 0)));
    check(0, 16, None);
    check(1, 10, None);
    check(1, 13, Some((1, 8)));
    check(2, 13, None);
}

#[test]
fn profiles_without_bursts_have_none() {
    let dir = tempfile::tempdir().unwrap();
    write(&profile(), dir.path()).unwrap();
    assert!(BurstTrace::open(dir.path()).unwrap().is_none());
    // Bursts are part of a profile: it is replaced with them.
    written(dir.path(), |_| {});
    assert_eq!(opened(dir.path()).windows(), []);
    write(&profile(), dir.path()).unwrap();
    assert!(BurstTrace::open(dir.path()).unwrap().is_none());
}

#[test]
fn other_files_and_versions_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let check = |bytes: &[u8], expected: &str| {
        std::fs::write(dir.path().join("bursts.bin"), bytes).unwrap();
        let error = BurstTrace::open(dir.path())
            .map(drop)
            .unwrap_err()
            .to_string();
        assert!(error.contains(expected), "{error}");
    };
    check(b"", "does not hold bursts");
    check(b"PAR1 and so on", "does not hold bursts");
    check(b"hiburst\n\x09\0\0\0", "its version is 9");
}
