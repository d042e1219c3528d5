//! A thread's pieces -> its accesses.
//!
//! Reader and writer run the same predictor: after a block comes the one that came after it
//! last time, and a site's value grows by its stride, which is taken over when the same
//! difference is seen twice in a row; a site that hangs on the stack pointer follows that. The
//! code says only what was not as predicted:
//!
//! ```text
//! step   = tag (low 3 bits: blocks that were, 7: 7 + varint; high 5 bits: what was not)
//!          [varint] [block] [mask] differences
//! high 5 bits: 0 nothing follows; bit 0 another block; bits 1-4 sites 0-3; all set: a byte
//!          that is 1 for another block, later a mask with a bit for every site
//! block  = its number in the order in which this thread ran blocks first; a new one is
//!          followed by its number in the file
//! ```
use super::block::{NO_SOURCE, REGISTER_COUNT};
use super::block_tables::{BlockTables, FlatBlock, NO_SITE, VALUES};
use super::framing::{unpack_delta, ByteReader, FRESH, MAX_ACCESSES, MAX_EXECUTIONS, MAX_REACH};
use super::{BurstAccess, BurstPiece};

/// Blocks and sites that a thread's tables hold: past them it starts afresh.
pub const MAX_LOCALS: usize = 1 << 16;
/// Most sites of the blocks that a piece defines.
pub const MAX_LOCAL_SITES: usize = 1 << 18;
const ORIGINS: usize = 4096;
const NONE: u32 = u32::MAX;
const ESCAPE_TAG: u8 = 31;

#[derive(Clone, Copy)]
struct DecoderBlock {
    block: u32,
    next: u32,
    first_site: u32,
}

/// The predictor of one site.
#[derive(Clone, Copy, Default)]
pub(super) struct SitePredictor {
    pub last: u64,
    pub stride: u64,
    pub before: u64,
}

impl SitePredictor {
    #[inline(always)]
    pub fn predicted(&self) -> u64 {
        self.last.wrapping_add(self.stride)
    }

    #[inline(always)]
    pub fn update(&mut self, value: u64) {
        let step = value.wrapping_sub(self.last);
        if step == self.before {
            self.stride = step;
        }
        self.before = step;
        self.last = value;
    }
}

/// What is known of a thread between its pieces.
#[derive(Clone)]
pub(super) struct DecoderState {
    locals: Vec<DecoderBlock>,
    sites: Vec<SitePredictor>,
    last: u32,
    stack: u64,
    /// Accesses so far; those of blocks below, and the block that read it: 0 none.
    ordinal: u64,
    origins: Box<[u64; ORIGINS]>,
    values: Box<[u64; VALUES]>,
    carry: u32,
    /// Bytes that accesses with a length may still touch in this piece.
    reach: u64,
}

impl DecoderState {
    pub fn new() -> DecoderState {
        DecoderState {
            locals: Vec::new(),
            sites: Vec::new(),
            last: NONE,
            stack: 0,
            ordinal: 0,
            origins: Box::new([0; ORIGINS]),
            values: Box::new([0; VALUES]),
            carry: 0,
            reach: 0,
        }
    }

    fn reset(&mut self) {
        self.locals.clear();
        self.sites.clear();
        self.last = NONE;
        self.stack = 0;
    }

    /// Appends the accesses of a piece; `None` when the code is not that of this piece.
    pub fn decode_piece(
        &mut self,
        tables: &BlockTables,
        code: &[u8],
        (piece, flags): (&BurstPiece, u32),
        into: &mut Vec<BurstAccess>,
    ) -> Option<()> {
        if flags & FRESH != 0 {
            self.reset();
        }
        self.reach = MAX_REACH;
        into.reserve(piece.accesses.min(MAX_ACCESSES as u64) as usize);
        let mut input = ByteReader::new(code);
        let (mut executions, mut instructions) = (0u32, 0u64);
        while !input.is_empty() {
            let tag = input.byte()?;
            let mut run = u64::from(tag & 7);
            if run == 7 {
                run += input.varint_below(u64::from(MAX_EXECUTIONS))?;
            }
            executions += run as u32 + 1;
            if executions > 2 * MAX_EXECUTIONS {
                return None;
            }
            for _ in 0..run {
                instructions += self.run_predicted(tables, into)?;
            }
            if tag >> 3 != 0 {
                instructions += self.run_mispredicted(tables, tag >> 3, &mut input, into)?;
            }
        }
        let whole = into.len() as u64 == piece.accesses && instructions == piece.instructions;
        whole.then_some(())
    }

    fn predicted_block(&self) -> Option<u32> {
        self.locals.get(self.last as usize).map(|local| local.next)
    }

    /// A block that was just what was predicted.
    #[inline]
    fn run_predicted(&mut self, tables: &BlockTables, into: &mut Vec<BurstAccess>) -> Option<u64> {
        let next = self.predicted_block()?;
        let local = *self.locals.get(next as usize)?;
        let block = tables.blocks.get(local.block as usize)?;
        let first = local.first_site as usize;
        let sites = self.sites.get_mut(first..first + block.sites as usize)?;
        for (value, site) in self.values.iter_mut().zip(sites) {
            site.last = site.predicted();
            site.before = site.stride;
            *value = site.last;
        }
        if block.has_stack {
            self.values[0] = self.stack.wrapping_add_signed(block.stack);
        }
        self.last = next;
        self.emit_block(tables, block, into)
    }

    /// A block of which something has to be told.
    fn run_mispredicted(
        &mut self,
        tables: &BlockTables,
        what: u8,
        input: &mut ByteReader,
        into: &mut Vec<BurstAccess>,
    ) -> Option<u64> {
        let escaped = what == ESCAPE_TAG;
        let other = if escaped { input.byte()? } else { what & 1 } == 1;
        let next = if other {
            self.read_block_number(tables, input)?
        } else {
            self.predicted_block()?
        };
        let local = *self.locals.get(next as usize)?;
        if let Some(before) = self.locals.get_mut(self.last as usize) {
            before.next = next;
        }
        let block = tables.blocks.get(local.block as usize)?;
        let sites = block.sites as usize;
        let short = [what >> 1];
        let mask = if escaped {
            input.take(sites.div_ceil(8))?
        } else {
            &short
        };
        let first = local.first_site as usize;
        for (n, site) in self
            .sites
            .get_mut(first..first + sites)?
            .iter_mut()
            .enumerate()
        {
            let follows_stack = n == 0 && block.has_stack;
            let mut value = match follows_stack {
                true => self.stack.wrapping_add_signed(block.stack),
                false => site.predicted(),
            };
            if mask.get(n / 8).is_some_and(|byte| byte >> (n % 8) & 1 == 1) {
                value = value.wrapping_add_signed(unpack_delta(input.varint()?));
            }
            site.update(value);
            self.values[n % VALUES] = value;
        }
        self.last = next;
        self.emit_block(tables, block, into)
    }

    /// The block that the code names, entered if it is new.
    fn read_block_number(&mut self, tables: &BlockTables, input: &mut ByteReader) -> Option<u32> {
        let known = self.locals.len() as u64;
        let next = input.varint_below(known + 1)?;
        if next == known {
            let block = tables.find(input.varint()?)?;
            let sites = tables.blocks.get(block as usize)?.sites as usize;
            let first_site = self.sites.len();
            if self.locals.len() >= MAX_LOCALS || first_site + sites > MAX_LOCAL_SITES {
                return None;
            }
            self.sites
                .resize(first_site + sites, SitePredictor::default());
            self.locals.push(DecoderBlock {
                block,
                next: NONE,
                first_site: first_site as u32,
            });
        }
        Some(next as u32)
    }

    /// Makes the block's accesses from the values of its sites; its instructions.
    #[inline]
    fn emit_block(
        &mut self,
        tables: &BlockTables,
        block: &FlatBlock,
        into: &mut Vec<BurstAccess>,
    ) -> Option<u64> {
        if into.len() + block.accesses as usize > MAX_ACCESSES {
            return None;
        }
        if block.has_stack {
            let entry = self.values[0].wrapping_sub(block.stack as u64);
            self.stack = entry.wrapping_add_signed(block.moves_stack);
        } else {
            self.stack = self.stack.wrapping_add_signed(block.moves_stack);
        }
        self.values[NO_SITE as usize] = 0;
        if block.accesses == 0 {
            self.carry = self.carry.saturating_add(block.tail);
        } else if block.has_lengths {
            self.emit_conditional_accesses(tables, block, into)?;
        } else {
            self.emit_accesses(tables, block, into);
        }
        if block.changes > 0 {
            self.apply_register_changes(tables, block);
        }
        Some(block.instructions.into())
    }

    #[inline]
    fn emit_accesses(
        &mut self,
        tables: &BlockTables,
        block: &FlatBlock,
        into: &mut Vec<BurstAccess>,
    ) {
        let first = block.first_access as usize;
        let accesses = &tables.accesses[first..first + block.accesses as usize];
        let (values, origins) = (&*self.values, &mut *self.origins);
        let before = self.ordinal;
        let mut carry = self.carry;
        into.extend(accesses.iter().zip(1u64..).map(|(a, n)| {
            let ordinal = before + n;
            let depends = dependence_distance(origins, a.sources, ordinal);
            origins[(REGISTER_COUNT + n as usize) % ORIGINS] = ordinal;
            let after = a.after.saturating_add(carry);
            carry = 0;
            BurstAccess {
                address: values[a.site as usize % VALUES].wrapping_add(a.offset),
                bytes: a.bytes,
                write: a.write,
                after,
                depends,
            }
        }));
        self.ordinal = before + u64::from(block.accesses);
        self.carry = block.tail;
    }

    /// As above where an access may turn out not to have been made.
    #[cold]
    fn emit_conditional_accesses(
        &mut self,
        tables: &BlockTables,
        block: &FlatBlock,
        into: &mut Vec<BurstAccess>,
    ) -> Option<()> {
        let first = block.first_access as usize;
        let accesses = &tables.accesses[first..first + block.accesses as usize];
        for (k, a) in accesses.iter().enumerate() {
            let bytes = match a.bytes {
                0 => {
                    let bytes = self.values[a.length as usize % VALUES];
                    self.reach = self.reach.checked_sub(bytes)?;
                    bytes as u32
                }
                bytes => bytes,
            };
            self.carry = self.carry.saturating_add(a.after);
            self.origins[(1 + REGISTER_COUNT + k) % ORIGINS] = 0;
            if bytes == 0 {
                continue;
            }
            self.ordinal += 1;
            let depends = dependence_distance(&self.origins, a.sources, self.ordinal);
            self.origins[(1 + REGISTER_COUNT + k) % ORIGINS] = self.ordinal;
            into.push(BurstAccess {
                address: self.values[a.site as usize % VALUES].wrapping_add(a.offset),
                bytes,
                write: a.write,
                after: self.carry,
                depends,
            });
            self.carry = 0;
        }
        self.carry = self.carry.saturating_add(block.tail);
        Some(())
    }

    /// All registers at once: what one is given another may have lost.
    #[inline]
    fn apply_register_changes(&mut self, tables: &BlockTables, block: &FlatBlock) {
        let first = block.first_change as usize;
        let changes = &tables.changes[first..first + block.changes as usize];
        let mut new = [0; REGISTER_COUNT];
        for (new, change) in new.iter_mut().zip(changes) {
            *new = source_ordinal(&self.origins, change.sources);
        }
        for (new, change) in new.iter().zip(changes) {
            self.origins[1 + change.register as usize % REGISTER_COUNT] = *new;
        }
    }
}

const _: () = assert!(NO_SOURCE == 0, "its place in `origins` stays 0");

#[inline(always)]
fn source_ordinal(origins: &[u64; ORIGINS], sources: [u16; 2]) -> u64 {
    let [a, b] = sources.map(|source| origins[source as usize % ORIGINS]);
    a.max(b)
}

/// How many accesses ago what the address came from was read.
#[inline(always)]
fn dependence_distance(origins: &[u64; ORIGINS], sources: [u16; 2], ordinal: u64) -> u32 {
    match source_ordinal(origins, sources) {
        0 => 0,
        read => u32::try_from(ordinal - read).unwrap_or(0),
    }
}
