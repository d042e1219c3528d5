//! Executions of blocks -> the code of pieces: what `tracer/core/burst_record_lean.c` does in the
//! target, for streams that come from elsewhere. `decode.rs` explains the code.
use super::block::BasicBlock;
use super::decode::{SitePredictor, MAX_LOCALS, MAX_LOCAL_SITES};
use super::framing::{pack_delta, FRESH, MAX_EXECUTIONS, MAX_REACH};
use crate::varint::put_varint;
use std::collections::HashMap;

/// Accesses after which a piece ends.
const PIECE_ACCESSES: u32 = 4096;
const NONE: u32 = u32::MAX;
/// Differences that do not fit the code; no two addresses are so far apart.
const TOO_FAR: u64 = 1 << 61;

/// The code of one piece.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PieceCode {
    /// The code.
    pub bytes: Vec<u8>,
    /// Accesses in it.
    pub accesses: u32,
    /// Instructions in it.
    pub instructions: u32,
    /// [`FRESH`] or 0.
    pub flags: u32,
}

struct EncoderBlock {
    number: u32,
    next: u32,
    first_site: usize,
}

/// Encodes what one thread does.
pub struct PieceEncoder {
    locals: Vec<EncoderBlock>,
    sites: Vec<SitePredictor>,
    local_of: HashMap<u32, u32>,
    last: u32,
    stack: u64,
    /// Blocks just as predicted, not told yet; and all of the piece.
    run: u64,
    executions: u32,
    /// Bytes of accesses with a length.
    reach: u64,
    code: PieceCode,
}

impl Default for PieceEncoder {
    fn default() -> Self {
        PieceEncoder {
            locals: Vec::new(),
            sites: Vec::new(),
            local_of: HashMap::new(),
            last: NONE,
            stack: 0,
            run: 0,
            executions: 0,
            reach: 0,
            code: PieceCode {
                flags: FRESH,
                ..PieceCode::default()
            },
        }
    }
}

impl PieceEncoder {
    /// Appends one execution of `block`, whose number in the file is `number`, with the
    /// values of its sites, of which the lengths sum up to [`MAX_REACH`] at most. Gives the
    /// piece before it when that was full.
    pub fn push_execution(
        &mut self,
        number: u32,
        block: &BasicBlock,
        values: &[u64],
    ) -> Option<PieceCode> {
        let accesses = count_accesses(block, values);
        let first = values.len().saturating_sub(block.lengths.into());
        let reach = values[first..].iter();
        let reach = reach.fold(0u64, |sum, bytes| sum.saturating_add(*bytes));
        let full = self.executions >= MAX_EXECUTIONS
            || self.executions > 0 && self.reach.saturating_add(reach) > MAX_REACH
            || self.code.accesses > 0 && self.code.accesses + accesses > PIECE_ACCESSES;
        let before = if full { self.finish() } else { None };
        let fits =
            self.locals.len() < MAX_LOCALS && self.sites.len() + values.len() <= MAX_LOCAL_SITES;
        let before = match fits {
            true => before,
            false => {
                let piece = self.finish();
                *self = PieceEncoder::default();
                before.or(piece)
            }
        };
        self.encode_execution(number, block, values);
        self.executions += 1;
        self.reach += reach;
        self.code.accesses += accesses;
        self.code.instructions += block.instructions;
        before
    }

    /// The piece so far; `None` when nothing ran since the last.
    pub fn finish(&mut self) -> Option<PieceCode> {
        if self.executions == 0 {
            return None;
        }
        if self.run > 0 {
            self.put_tag(0);
        }
        self.executions = 0;
        self.reach = 0;
        Some(std::mem::take(&mut self.code))
    }

    fn encode_execution(&mut self, number: u32, block: &BasicBlock, values: &[u64]) {
        let known = self.local_of.get(&number).copied();
        let next = known.unwrap_or_else(|| self.add_block(number, values.len()));
        let before = self.locals.get_mut(self.last as usize);
        let other = match before {
            Some(local) => std::mem::replace(&mut local.next, next) != next,
            None => true,
        };
        let (mask, deltas) = self.deltas(next, block, values);
        self.last = next;
        if !other && deltas.is_empty() {
            self.run += 1;
            return;
        }
        let short =
            mask.iter().skip(1).all(|&byte| byte == 0) && mask.first().is_none_or(|&b| b < 16);
        let what = mask.first().copied().unwrap_or(0) << 1 & 30 | u8::from(other);
        if short && what != 31 {
            self.put_tag(what);
        } else {
            self.put_tag(31);
            self.code.bytes.push(u8::from(other));
        }
        if other {
            put_varint(&mut self.code.bytes, next.into());
            if known.is_none() {
                put_varint(&mut self.code.bytes, number.into());
            }
        }
        if !short || what == 31 {
            self.code.bytes.extend(mask);
        }
        for delta in deltas {
            put_varint(&mut self.code.bytes, pack_delta(delta));
        }
    }

    fn add_block(&mut self, number: u32, sites: usize) -> u32 {
        let next = self.locals.len() as u32;
        self.local_of.insert(number, next);
        self.locals.push(EncoderBlock {
            number,
            next: NONE,
            first_site: self.sites.len(),
        });
        let total = self.sites.len() + sites;
        self.sites.resize(total, SitePredictor::default());
        next
    }

    /// A bit for each site that is not as predicted, and how far off these are.
    fn deltas(&mut self, local: u32, block: &BasicBlock, values: &[u64]) -> (Vec<u8>, Vec<i64>) {
        let local = &self.locals[local as usize];
        debug_assert_eq!(self.local_of.get(&local.number).map(|_| ()), Some(()));
        let mut mask = vec![0; values.len().div_ceil(8)];
        let mut deltas = Vec::new();
        for (n, &value) in values.iter().enumerate() {
            let site = &mut self.sites[local.first_site + n];
            let predicted = match block.stack.filter(|_| n == 0) {
                Some(offset) => self.stack.wrapping_add_signed(offset),
                None => site.predicted(),
            };
            let delta = value.wrapping_sub(predicted);
            let far = delta.wrapping_add(TOO_FAR) > 2 * TOO_FAR;
            let value = if far { predicted } else { value };
            if value != predicted {
                mask[n / 8] |= 1 << (n % 8);
                deltas.push(delta as i64);
            }
            site.update(value);
            if let Some(offset) = block.stack.filter(|_| n == 0) {
                self.stack = value.wrapping_add_signed(offset.wrapping_neg());
            }
        }
        self.stack = self.stack.wrapping_add_signed(block.moves_stack);
        (mask, deltas)
    }

    /// Tells of the run so far and what comes after it.
    fn put_tag(&mut self, what: u8) {
        let bytes = &mut self.code.bytes;
        bytes.push(what << 3 | self.run.min(7) as u8);
        if self.run >= 7 {
            put_varint(bytes, self.run - 7);
        }
        self.run = 0;
    }
}

/// Accesses that one execution makes.
fn count_accesses(block: &BasicBlock, values: &[u64]) -> u32 {
    let zero = |length: u16| values.get(length as usize) == Some(&0);
    let accesses = block.accesses.iter();
    accesses.filter(|a| a.bytes != 0 || !zero(a.length)).count() as u32
}
