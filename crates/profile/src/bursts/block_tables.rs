//! The blocks of a file as the decoder wants them: flat, checked once, shared by all threads.
use super::block::{BasicBlock, BlockAccess, ValueSources};

/// Where the accesses find a site's value: the sites, and one place that is always 0.
pub(super) const VALUES: usize = 512;
pub(super) const NO_SITE: u16 = (VALUES - 1) as u16;

#[derive(Clone, Copy)]
pub(super) struct FlatBlock {
    pub instructions: u32,
    /// Instructions after the last access, or all.
    pub tail: u32,
    pub first_access: u32,
    pub first_change: u32,
    pub accesses: u16,
    pub sites: u16,
    pub changes: u8,
    pub has_stack: bool,
    /// Some accesses have no length of their own.
    pub has_lengths: bool,
    pub stack: i64,
    pub moves_stack: i64,
}

#[derive(Clone, Copy)]
pub(super) struct FlatAccess {
    pub offset: u64,
    pub after: u32,
    pub bytes: u32,
    pub site: u16,
    pub length: u16,
    pub sources: ValueSources,
    pub write: bool,
}

#[derive(Clone, Copy)]
pub(super) struct FlatChange {
    pub register: u8,
    pub sources: ValueSources,
}

#[derive(Default)]
pub(super) struct BlockTables {
    /// By number in the file: position in `blocks`, `NONE` where there is none.
    of: Vec<u32>,
    pub blocks: Vec<FlatBlock>,
    pub accesses: Vec<FlatAccess>,
    pub changes: Vec<FlatChange>,
}

const NONE: u32 = u32::MAX;

impl BlockTables {
    pub fn find(&self, number: u64) -> Option<u32> {
        let at = *self.of.get(usize::try_from(number).ok()?)?;
        (at != NONE).then_some(at)
    }

    /// The first block of a number stays.
    pub fn add(&mut self, number: u32, block: &BasicBlock) {
        let number = number as usize;
        if number >= self.of.len() {
            self.of.resize(number + 1, NONE);
        }
        if self.of[number] != NONE {
            return;
        }
        self.of[number] = self.blocks.len() as u32;
        let before_last: u32 = block.accesses.iter().map(|a| a.after).sum();
        self.blocks.push(FlatBlock {
            instructions: block.instructions,
            tail: block.instructions - before_last,
            first_access: self.accesses.len() as u32,
            first_change: self.changes.len() as u32,
            accesses: block.accesses.len() as u16,
            sites: block.sites,
            changes: block.changes.len() as u8,
            has_stack: block.stack.is_some(),
            has_lengths: block.lengths > 0,
            stack: block.stack.unwrap_or(0),
            moves_stack: block.moves_stack,
        });
        self.accesses
            .extend(block.accesses.iter().map(flatten_access));
        let change = |c: &super::block::RegisterChange| FlatChange {
            register: c.register,
            sources: c.sources,
        };
        self.changes.extend(block.changes.iter().map(change));
    }
}

fn flatten_access(access: &BlockAccess) -> FlatAccess {
    FlatAccess {
        offset: access.offset,
        after: access.after,
        bytes: access.bytes,
        site: access.site.unwrap_or(NO_SITE),
        length: access.length,
        sources: access.sources,
        write: access.write,
    }
}
