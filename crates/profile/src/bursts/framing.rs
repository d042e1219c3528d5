//! How numbers and frames lie in `bursts.bin`: little-endian, variable-length integers of
//! seven bits a byte, frames with a checksum each so that a file that broke off is read up to
//! its last whole frame.
//!
//! ```text
//! magic (8) version (4) | frame | frame | ...
//! frame = kind (1) length (4) checksum of kind, length and payload (4) payload
//! ```

use crate::varint::{unzigzag, zigzag};

pub(crate) const BURSTS_FILE: &str = "bursts.bin";
pub(crate) const MAGIC: [u8; 8] = *b"hiburst\n";
pub(crate) const VERSION: u32 = 1;
pub(crate) const FRAME_HEAD: usize = 9;
/// Longest payload.
pub(crate) const MAX_PAYLOAD: usize = 16 << 20;

pub(crate) const BLOCKS: u8 = 1;
pub(crate) const PIECE: u8 = 2;
pub(crate) const PLACES: u8 = 3;
/// Nothing follows: the file is whole.
pub(crate) const END: u8 = 4;

/// Bytes before the code in a frame of a piece.
pub(crate) const PIECE_HEAD: usize = 48;
/// The thread waited in the kernel before it.
pub const WAITED: u32 = 1;
/// The decoder forgets all it has learnt of the thread.
pub const FRESH: u32 = 2;
/// The thread's recording ends here because there was no room.
pub const CUT: u32 = 4;

/// Limits of one piece: what a reader is ready to make of it.
pub const MAX_ACCESSES: usize = 8192;
/// Most executions of blocks in a piece.
pub const MAX_EXECUTIONS: u32 = 1 << 16;
/// Bytes of its accesses that have a length of their own: what is beyond is not recorded.
pub const MAX_REACH: u64 = 1 << 30;
/// Limits of a file.
pub const MAX_WINDOWS: usize = 1 << 20;
/// Runs of pages with a name, of all windows.
pub const MAX_PLACES: usize = 4 << 20;

/// The distance from what was predicted; multiples of eight, the commonest, in fewer bits.
/// Its magnitude is below 2^61.
pub(crate) fn pack_delta(delta: i64) -> u64 {
    if delta & 7 == 0 {
        zigzag(delta >> 3) << 1
    } else {
        zigzag(delta) << 1 | 1
    }
}

pub(crate) fn unpack_delta(code: u64) -> i64 {
    if code & 1 == 0 {
        unzigzag(code >> 1) << 3
    } else {
        unzigzag(code >> 1)
    }
}

/// Bytes being read; every question answers `None` past the end.
#[derive(Clone, Copy)]
pub(crate) struct ByteReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> ByteReader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        ByteReader { bytes, at: 0 }
    }

    pub fn is_empty(&self) -> bool {
        self.at >= self.bytes.len()
    }

    #[inline(always)]
    pub fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    #[inline(always)]
    pub fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    pub fn varint_below(&mut self, limit: u64) -> Option<u64> {
        self.varint().filter(|&value| value < limit)
    }

    pub fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(length)?;
        let part = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(part)
    }

    pub fn u32(&mut self) -> Option<u32> {
        let bytes = self.take(4)?.try_into().ok()?;
        Some(u32::from_le_bytes(bytes))
    }

    pub fn u64(&mut self) -> Option<u64> {
        let bytes = self.take(8)?.try_into().ok()?;
        Some(u64::from_le_bytes(bytes))
    }
}

const CRC: [[u32; 256]; 8] = crc_tables();

/// CRC-32 as in IEEE 802.3, eight bytes a step (Intel's "slicing by 8").
const fn crc_tables() -> [[u32; 256]; 8] {
    let mut tables = [[0u32; 256]; 8];
    let mut n = 0;
    while n < 256 {
        let mut value = n as u32;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 {
                value >> 1 ^ 0xedb8_8320
            } else {
                value >> 1
            };
            bit += 1;
        }
        tables[0][n] = value;
        n += 1;
    }
    let mut n = 0;
    while n < 256 {
        let mut table = 1;
        while table < 8 {
            let before = tables[table - 1][n];
            tables[table][n] = before >> 8 ^ tables[0][(before & 0xff) as usize];
            table += 1;
        }
        n += 1;
    }
    tables
}

/// Checksum of several parts, one after the other.
pub(crate) fn checksum(parts: &[&[u8]]) -> u32 {
    let mut sum = !0u32;
    for part in parts {
        let mut eights = part.chunks_exact(8);
        for eight in &mut eights {
            let low = u32::from_le_bytes([eight[0], eight[1], eight[2], eight[3]]) ^ sum;
            sum = CRC[7][(low & 0xff) as usize]
                ^ CRC[6][(low >> 8 & 0xff) as usize]
                ^ CRC[5][(low >> 16 & 0xff) as usize]
                ^ CRC[4][(low >> 24) as usize]
                ^ CRC[3][eight[4] as usize]
                ^ CRC[2][eight[5] as usize]
                ^ CRC[1][eight[6] as usize]
                ^ CRC[0][eight[7] as usize];
        }
        for &byte in eights.remainder() {
            sum = sum >> 8 ^ CRC[0][((sum ^ u32::from(byte)) & 0xff) as usize];
        }
    }
    !sum
}

/// Kind, length and checksum of a frame.
pub(crate) fn frame_head(kind: u8, payload: &[&[u8]]) -> [u8; FRAME_HEAD] {
    let length: usize = payload.iter().map(|part| part.len()).sum();
    let mut head = [0; FRAME_HEAD];
    head[0] = kind;
    head[1..5].copy_from_slice(&(length as u32).to_le_bytes());
    let start = [head[0], head[1], head[2], head[3], head[4]];
    let mut parts: Vec<&[u8]> = vec![&start];
    parts.extend_from_slice(payload);
    head[5..9].copy_from_slice(&checksum(&parts).to_le_bytes());
    head
}
