//! What is the same each time a basic block runs: its accesses, and which registers hold
//! what they read.
//!
//! A **site** is a number that differs from run to run: the address of an access, from which
//! those of others with the same registers follow; or the bytes of an access whose length
//! is only known when it happens. A **source** is where a value came from: a register as it
//! was when the block began, or what an access of the block read.
use super::framing::ByteReader;
use crate::varint::{put_varint, unzigzag, zigzag};

/// General registers of x86-64.
pub const REGISTER_COUNT: usize = 16;
/// Sites of a block.
pub const MAX_SITES: usize = 500;
/// Accesses of a block.
pub const MAX_BLOCK_ACCESSES: usize = 4000;
/// Numbers of blocks are below.
pub const MAX_BLOCKS: u32 = 1 << 20;
const MAX_INSTRUCTIONS: u64 = 1 << 16;

/// Nothing that was read.
pub const NO_SOURCE: u16 = 0;

/// The source that is a register at the block's entry.
#[must_use]
pub fn register_source(r: usize) -> u16 {
    1 + r as u16
}

/// The source that is what the k-th access of the block read.
#[must_use]
pub fn access_source(k: usize) -> u16 {
    (1 + REGISTER_COUNT + k) as u16
}

/// Up to two sources; what depends on both depends on the later.
pub type ValueSources = [u16; 2];

/// One access of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockAccess {
    /// Instructions since the block's previous access or its start, its own included.
    pub after: u32,
    /// The site that its address is computed from; `None`: `offset` is the address.
    pub site: Option<u16>,
    /// Added to the site's value, wrapping around.
    pub offset: u64,
    /// 0: as many as the site `length` says, and with 0 of them the access is not made.
    pub bytes: u32,
    /// With `bytes` = 0: the site that says how many bytes.
    pub length: u16,
    /// Whether it writes.
    pub write: bool,
    /// Of the address.
    pub sources: ValueSources,
}

/// A register that leaves the block with another source than it entered with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegisterChange {
    /// Number of the register.
    pub register: u8,
    /// What its value was computed from.
    pub sources: ValueSources,
}

/// A basic block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BasicBlock {
    /// Instructions of the block.
    pub instructions: u32,
    /// Places in the block that compute addresses.
    pub sites: u16,
    /// How many of the sites, the last ones, are lengths.
    pub lengths: u16,
    /// Site 0 lies this far from the stack pointer at the block's entry.
    pub stack: Option<i64>,
    /// What the block adds to the stack pointer.
    pub moves_stack: i64,
    /// Accesses, in the order of the program.
    pub accesses: Vec<BlockAccess>,
    /// Registers whose sources the block changes.
    pub changes: Vec<RegisterChange>,
}

const HAS_STACK: u64 = 1;

fn put_sources(out: &mut Vec<u8>, sources: ValueSources) {
    put_varint(out, sources[0].into());
    if sources[0] != NO_SOURCE {
        put_varint(out, sources[1].into());
    }
}

fn take_sources(input: &mut ByteReader, limit: u64) -> Option<ValueSources> {
    let first = input.varint_below(limit)? as u16;
    let second = match first {
        NO_SOURCE => NO_SOURCE,
        _ => input.varint_below(limit)? as u16,
    };
    Some([first, second])
}

impl BasicBlock {
    /// Appends the block as it lies in the file.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, self.instructions.into());
        put_varint(out, self.sites.into());
        put_varint(out, self.lengths.into());
        put_varint(out, if self.stack.is_some() { HAS_STACK } else { 0 });
        put_varint(out, zigzag(self.stack.unwrap_or(0)));
        put_varint(out, zigzag(self.moves_stack));
        put_varint(out, self.accesses.len() as u64);
        for a in &self.accesses {
            put_varint(out, a.after.into());
            put_varint(out, a.site.map_or(0, |s| u64::from(s) + 1));
            put_varint(out, zigzag(a.offset as i64));
            put_varint(out, u64::from(a.bytes) << 1 | u64::from(a.write));
            if a.bytes == 0 {
                put_varint(out, a.length.into());
            }
            put_sources(out, a.sources);
        }
        put_varint(out, self.changes.len() as u64);
        for change in &self.changes {
            put_varint(out, change.register.into());
            put_sources(out, change.sources);
        }
    }

    /// Reads one; `None` when it is none.
    pub(crate) fn decode(input: &mut ByteReader) -> Option<BasicBlock> {
        let instructions = input.varint_below(MAX_INSTRUCTIONS)? as u32;
        let sites = input.varint_below(MAX_SITES as u64 + 1)? as u16;
        let lengths = input.varint_below(u64::from(sites) + 1)? as u16;
        let has_stack = input.varint_below(2)? == HAS_STACK;
        let stack = unzigzag(input.varint()?);
        let moves_stack = unzigzag(input.varint()?);
        if instructions == 0 || has_stack && sites == lengths {
            return None;
        }
        let count = input.varint_below(MAX_BLOCK_ACCESSES as u64 + 1)? as usize;
        let mut block = BasicBlock {
            instructions,
            sites,
            lengths,
            stack: has_stack.then_some(stack),
            moves_stack,
            ..BasicBlock::default()
        };
        let mut left = u64::from(instructions);
        for k in 0..count {
            let access = block.decode_access(input, k, left)?;
            left -= u64::from(access.after);
            block.accesses.push(access);
        }
        let changes = input.varint_below(REGISTER_COUNT as u64 + 1)?;
        for _ in 0..changes {
            block.changes.push(RegisterChange {
                register: input.varint_below(REGISTER_COUNT as u64)? as u8,
                sources: take_sources(input, u64::from(access_source(count)))?,
            });
        }
        Some(block)
    }

    fn decode_access(&self, input: &mut ByteReader, k: usize, left: u64) -> Option<BlockAccess> {
        let addresses = u64::from(self.sites - self.lengths);
        let after = input.varint_below(left + 1)? as u32;
        let site = input.varint_below(addresses + 1)?;
        let offset = unzigzag(input.varint()?) as u64;
        let size = input.varint_below(1 << 17)? as u32;
        let bytes = size >> 1;
        let length = match bytes {
            0 => input.varint_below(self.sites.into())?,
            _ => 0,
        };
        if bytes == 0 && length < addresses {
            return None;
        }
        Some(BlockAccess {
            after,
            site: site.checked_sub(1).map(|s| s as u16),
            offset,
            bytes,
            length: length as u16,
            write: size & 1 == 1,
            sources: take_sources(input, u64::from(access_source(k)))?,
        })
    }
}
