//! The part of the segment that records accesses: windows, described blocks, pieces.
use crate::segment::Segment;
use crate::wire::{self, SegmentHeader};
use std::mem::offset_of;

/// What recording had to leave out, as counted in the header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BurstLosses {
    pub blocks: u32,
    pub pieces: u32,
}

/// A piece as the target left it: `code` is `head.length` bytes, if that is possible.
#[derive(Clone, Debug, Default)]
pub struct RawPiece {
    pub head: wire::SegmentPiece,
    pub code: Vec<u8>,
}

/// Bytes that describe a block, at most.
const MAX_BLOCK_DESCRIPTION: u32 = 256 << 10;

fn header_field(offset: usize) -> u64 {
    offset as u64
}

impl Segment {
    /// Opens a window: threads that notice record `ns` of their processor time, 0: all.
    pub fn open_window(&self, window: u32, ns: u64) {
        self.store_u64(header_field(offset_of!(SegmentHeader, record_ns)), ns);
        self.store_u32(
            header_field(offset_of!(SegmentHeader, record_window)),
            window,
        );
        self.store_u32(header_field(offset_of!(SegmentHeader, record_open)), 1);
    }

    /// Ends it: threads that still record stop soon.
    pub fn close_window(&self) {
        self.store_u32(header_field(offset_of!(SegmentHeader, record_open)), 0);
    }

    #[must_use]
    pub fn lost_records(&self) -> BurstLosses {
        BurstLosses {
            blocks: self.load_u32(header_field(offset_of!(SegmentHeader, lost_record_blocks))),
            pieces: self.load_u32(header_field(offset_of!(SegmentHeader, lost_pieces))),
        }
    }

    /// One past the last described block, never above the limit.
    #[must_use]
    pub fn next_record_block(&self) -> u32 {
        self.load_u32(header_field(offset_of!(SegmentHeader, next_record_block)))
            .min(wire::RECORD_BLOCKS)
    }

    /// Appends a block's description; false while it is not complete, or when it cannot be
    /// one.
    pub fn append_record_block(&self, block: u32, to: &mut Vec<u8>) -> bool {
        let size = size_of::<wire::RecordedBlock>() as u64;
        let at = self.layout().record_blocks + u64::from(block) * size;
        let ready = header_field(offset_of!(wire::RecordedBlock, ready));
        if block >= wire::RECORD_BLOCKS || self.load_u32(at + ready) != 1 {
            return false;
        }
        let b: wire::RecordedBlock = self.read(at);
        let end = b.offset.saturating_add(b.length.into());
        if end > wire::RECORD_BYTES.into() || b.length > MAX_BLOCK_DESCRIPTION {
            return false;
        }
        let from = self.layout().record_bytes + b.offset;
        self.append_bytes(from, b.length as usize, to);
        true
    }

    /// Gives back the pieces that were being filled by processes of which `gone` says that they
    /// write no more.
    pub fn free_pieces(&self, gone: impl Fn(u32) -> bool) {
        for word in 0..wire::PIECES / 64 {
            let bits_at = header_field(offset_of!(SegmentHeader, piece_busy)) + u64::from(word) * 8;
            let busy = self.load_u64(bits_at);
            for bit in (0..64).filter(|bit| busy >> bit & 1 == 1) {
                let number = u64::from(word * 64 + bit);
                let at = self.layout().pieces + number * u64::from(wire::PIECE_BYTES);
                let filling = self.load_u32(at) == wire::PIECE_FILLING;
                let process = header_field(offset_of!(wire::SegmentPiece, process));
                if filling && gone(self.load_u32(at + process)) {
                    self.store_u32(at, 0);
                    self.clear_bits(bits_at, 1 << bit);
                }
            }
        }
    }

    /// Takes a whole piece, from number `from` on, out of the segment; its number too.
    pub fn take_piece(&self, from: u32) -> Option<(u32, RawPiece)> {
        for word in from / 64..wire::PIECES / 64 {
            let bits_at = header_field(offset_of!(SegmentHeader, piece_busy)) + u64::from(word) * 8;
            let mut bits = self.load_u64(bits_at);
            if word == from / 64 {
                bits &= !0 << (from % 64);
            }
            while bits != 0 {
                let bit = bits.trailing_zeros();
                bits &= bits - 1;
                let number = word * 64 + bit;
                let at = self.layout().pieces + u64::from(number) * u64::from(wire::PIECE_BYTES);
                if self.load_u32(at) != wire::PIECE_WHOLE {
                    continue;
                }
                let head: wire::SegmentPiece = self.read(at);
                let most = wire::PIECE_BYTES - wire::PIECE_HEAD;
                let mut code = Vec::new();
                let length = head.length.min(most) as usize;
                self.append_bytes(at + u64::from(wire::PIECE_HEAD), length, &mut code);
                self.store_u32(at, 0);
                self.clear_bits(bits_at, 1 << bit);
                return Some((number, RawPiece { head, code }));
            }
        }
        None
    }
}
