//! What no tracer can have written is refused.
use super::*;
use hither_profile::bursts::{PieceCode, MAX_REACH};

/// Frames with the right checksum and any content: no panic, and no more memory than pieces
/// may have.
#[test]
fn nonsense_under_a_right_checksum() {
    let mut random = 1u64;
    let mut next = move || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    for round in 0..200u64 {
        let dir = tempfile::tempdir().unwrap();
        written(dir.path(), |w| {
            let stream: Vec<BurstAccess> = (0..50)
                .map(|n| BurstAccess {
                    address: 4096 + n * 8,
                    bytes: 8,
                    after: 1,
                    ..BurstAccess::default()
                })
                .collect();
            w.append_accesses(1, &like(0, 1, 2), &stream);
            let junk: Vec<u8> = (0..next() % 64).map(|_| next() as u8).collect();
            if round % 2 == 0 {
                w.append_blocks([(1 + (next() % 5) as u32, junk.as_slice())].into_iter());
            } else {
                let piece = BurstPiece {
                    accesses: next() % 8192,
                    instructions: next() % 100_000,
                    ..like(0, 3, 4)
                };
                let head = PieceHeader {
                    window: 1,
                    sequence: 1,
                    piece,
                    flags: (next() % 8) as u32,
                };
                w.append_piece(&head, &junk);
            }
        });
        let bursts = BurstTrace::open(dir.path()).unwrap().expect("bursts");
        let mut decoder = bursts.decoder(0, ThreadIx(0));
        let mut into = Vec::new();
        while decoder.next(&mut into).is_some() {}
        assert!(into.capacity() <= 16384);
    }
}

/// A piece that cannot be ends the file, and is not part of what comes before.
#[test]
fn an_impossible_piece_is_left_out() {
    let one = BurstAccess {
        address: 4096,
        bytes: 1,
        after: 1,
        ..BurstAccess::default()
    };
    let dir = tempfile::tempdir().unwrap();
    written(dir.path(), |w| {
        w.append_accesses(4, &like(0, 1, 2), &[one]);
        let head = PieceHeader {
            window: 5,
            piece: like(0, 4, 3),
            ..PieceHeader::default()
        };
        w.append_piece(&head, &[]);
    });
    let bursts = BurstTrace::open(dir.path()).unwrap().expect("bursts");
    assert!(bursts.broken().is_some_and(|b| b.contains("no sense")));
    assert_eq!(bursts.windows().len(), 1);
}

/// A block that reads a range: its address, and how long it is.
fn ranges() -> BasicBlock {
    BasicBlock {
        instructions: 1,
        sites: 2,
        lengths: 1,
        accesses: vec![BlockAccess {
            after: 1,
            site: Some(0),
            length: 1,
            ..BlockAccess::default()
        }],
        ..BasicBlock::default()
    }
}

/// A recording of ranges, a piece for each code.
fn of_ranges(dir: &Path, codes: &[PieceCode]) {
    written(dir, |w| {
        let mut bytes = Vec::new();
        ranges().encode(&mut bytes);
        w.append_blocks([(1, bytes.as_slice())].into_iter());
        for (sequence, code) in (0u32..).zip(codes) {
            let piece = BurstPiece {
                accesses: code.accesses.into(),
                instructions: code.instructions.into(),
                ..like(0, 1, 2)
            };
            let head = PieceHeader {
                window: 1,
                sequence,
                piece,
                flags: code.flags,
            };
            w.append_piece(&head, &code.bytes);
        }
    });
}

/// A few bytes of code cannot stand for more work than a tracer puts into a piece.
#[test]
fn ranges_are_as_long_as_a_tracer_tells() {
    let long = MAX_REACH / 4 * 3;
    let mut encoder = PieceEncoder::default();
    let codes = [long, 0, long].map(|bytes| encoder.push_execution(1, &ranges(), &[4096, bytes]));
    let mut codes: Vec<_> = codes.into_iter().flatten().collect();
    codes.extend(encoder.finish());
    assert_eq!(codes.len(), 2, "a piece is not longer than a tracer's");
    let dir = tempfile::tempdir().unwrap();
    of_ranges(dir.path(), &codes);
    let found = accesses(&opened(dir.path()), 0, 0);
    let bytes: Vec<u64> = found.iter().map(|a| a.bytes.into()).collect();
    assert_eq!(bytes, [long, long]);

    let mut encoder = PieceEncoder::default();
    encoder.push_execution(1, &ranges(), &[4096, MAX_REACH + 1]);
    of_ranges(dir.path(), &[encoder.finish().unwrap()]);
    let bursts = opened(dir.path());
    let mut decoder = bursts.decoder(0, ThreadIx(0));
    assert_eq!(decoder.next(&mut Vec::new()), None);
    assert!(decoder.damaged());
}
