//! The encoder in the target and the one here make the same code.
use super::*;
use hither_profile::bursts::PieceCode;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use tempfile::TempDir;

/// The tracer's encoder as a program of its own.
fn program() -> PathBuf {
    static BUILT: OnceLock<TempDir> = OnceLock::new();
    let folder = BUILT.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let tracer = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tracer");
        let mut cc = Command::new("cc");
        cc.args(["-std=gnu11", "-O1", "-I"]).arg(&tracer);
        cc.arg("-I").arg(tracer.join("core"));
        cc.arg("-o").arg(folder.path().join("encode"));
        cc.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bursts/encode.c"));
        cc.arg(tracer.join("core/burst_record_lean.c"));
        assert!(cc.status().expect("cc").success());
        folder
    });
    folder.path().join("encode")
}

/// A block whose sites have an access each.
fn block(addresses: u16, lengths: u16, stack: Option<i64>, moves_stack: i64) -> BasicBlock {
    let fixed = (0..addresses).map(|site| BlockAccess {
        after: 1,
        site: Some(site),
        bytes: 8,
        ..BlockAccess::default()
    });
    let ranges = (0..lengths).map(|n| BlockAccess {
        after: 1,
        length: addresses + n,
        ..BlockAccess::default()
    });
    BasicBlock {
        instructions: u32::from(addresses + lengths) + 1,
        sites: addresses + lengths,
        lengths,
        stack,
        moves_stack,
        accesses: fixed.chain(ranges).collect(),
        ..BasicBlock::default()
    }
}

/// Executions: the block, from 1, and the values of its sites. Mostly they go on as before.
fn executions(blocks: &[BasicBlock], seed: u64, count: usize) -> Vec<(u32, Vec<u64>)> {
    let mut state = seed;
    let mut random = move |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let mut values: Vec<Vec<u64>> = blocks.iter().map(|b| vec![0; b.sites.into()]).collect();
    let (mut at, mut found) = (0, Vec::new());
    for _ in 0..count {
        at = match random(10) {
            0 => random(blocks.len() as u64) as usize,
            _ => (at + 1) % blocks.len(),
        };
        let addresses = blocks[at].sites - blocks[at].lengths;
        for (site, value) in (0u16..).zip(&mut values[at]) {
            *value = match random(200) {
                0 if site < addresses => random(u64::MAX),
                1 if site < addresses => value.wrapping_sub(random(1000)),
                0 => 0,
                1 => random(1 << 26),
                _ if site < addresses => value.wrapping_add(8),
                _ => *value,
            };
        }
        found.push((at as u32 + 1, values[at].clone()));
    }
    found
}

fn by_tracer(blocks: &[BasicBlock], executions: &[(u32, Vec<u64>)]) -> Vec<PieceCode> {
    let mut words = vec![blocks.len() as u64];
    for b in blocks {
        words.extend([b.sites, b.lengths, b.accesses.len() as u16].map(u64::from));
        words.extend([b.instructions.into(), u64::from(b.stack.is_some())]);
        words.extend([b.stack.unwrap_or(0) as u64, b.moves_stack as u64]);
    }
    for (block, values) in executions {
        words.push((*block).into());
        words.extend(values);
    }
    let mut input = tempfile::tempfile().unwrap();
    let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
    input.write_all(&bytes).unwrap();
    std::io::Seek::rewind(&mut input).unwrap();
    let out = Command::new(program()).stdin(Stdio::from(input)).output();
    let out = out.unwrap();
    assert!(out.status.success(), "{:?}", out.status);
    let (mut codes, mut rest) = (Vec::new(), &out.stdout[..]);
    while !rest.is_empty() {
        let word = |n: usize| u64::from_le_bytes(rest[n * 8..n * 8 + 8].try_into().unwrap());
        let end = 32 + word(3) as usize;
        codes.push(PieceCode {
            bytes: rest[32..end].to_vec(),
            accesses: word(0) as u32,
            instructions: word(1) as u32,
            flags: word(2) as u32,
        });
        rest = &rest[end..];
    }
    codes
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn both_encoders_agree(seed in 1u64.., sizes in prop::collection::vec((0u16..12, 0u16..3, -64i64..64), 1..6)) {
        let blocks: Vec<BasicBlock> = sizes
            .iter()
            .map(|(addresses, lengths, moves)| {
                let stack = (*addresses > 4).then_some(moves * 8 - 16);
                block(*addresses, *lengths, stack, *moves)
            })
            .collect();
        let executions = executions(&blocks, seed, 5000);
        let mut encoder = PieceEncoder::default();
        let mut codes: Vec<PieceCode> = executions
            .iter()
            .filter_map(|(n, values)| encoder.push_execution(*n, &blocks[*n as usize - 1], values))
            .collect();
        codes.extend(encoder.finish());
        prop_assert_eq!(by_tracer(&blocks, &executions), codes);
    }
}
