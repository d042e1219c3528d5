//! Which page faults a program in the kernel makes records of: those on pages whose hash is small
//! enough, and those on pages that have a bit in one of two bitmaps. The value of an array map, mapped
//! here as well.
//!
//! ```text
//!  0: largest upper half of a hash (u32)   8: faults left out (u64)   16: bitmap 0, bitmap 1
//! ```
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::{create_map, map_shared, BPF_F_MMAPABLE, BPF_MAP_TYPE_ARRAY, PAGE_SIZE};

/// As the hash function of Linux: 2^64 divided by the golden ratio.
pub(super) const GOLDEN_RATIO_64: u64 = 0x61C8_8646_80B5_83EB;
/// Bits of a bitmap.
pub const FILTER_BITS: usize = 1 << 20;
/// Bits of a hash below those that number a page's bit.
pub(super) const BIT_SHIFT: i32 = 20;
/// Where things are in the value.
pub(super) const SHARE_OFFSET: i16 = 0;
pub(super) const LEFT_OUT_OFFSET: i16 = 8;
pub(super) const BITMAPS_OFFSET: i16 = 16;
pub(super) const BITMAP_BYTES: i32 = (FILTER_BITS / 8) as i32;
const VALUE_BYTES: usize = BITMAPS_OFFSET as usize + 2 * BITMAP_BYTES as usize;

/// Of a page of a process, by an address on it. The programs in the kernel compute the same.
#[must_use]
pub fn page_hash(pid: i32, address: u64) -> u64 {
    let page = (address >> 12) ^ u64::from(pid.cast_unsigned()) << 40;
    page.wrapping_mul(GOLDEN_RATIO_64)
}

/// Word and bit of a hash in a bitmap of 64-bit words.
#[must_use]
pub fn filter_bit(hash: u64) -> (usize, u64) {
    let bit = (hash >> BIT_SHIFT) as usize % FILTER_BITS;
    (bit / 64, 1 << (bit % 64))
}

/// The filter of a [`super::BpfFaultMonitor`], which lets everything through at first.
#[derive(Debug)]
pub struct FaultFilter {
    at: *mut u8,
}

impl FaultFilter {
    pub(super) fn new() -> io::Result<(OwnedFd, FaultFilter)> {
        let map = create_map(BPF_MAP_TYPE_ARRAY, 4, VALUE_BYTES as u32, 1, BPF_F_MMAPABLE)?;
        let prot = libc::PROT_READ | libc::PROT_WRITE;
        let at = map_shared(&map, VALUE_BYTES.next_multiple_of(PAGE_SIZE), prot, 0)?;
        let filter = FaultFilter { at };
        filter.set_share(1.0);
        Ok((map, filter))
    }

    /// Faults on this share of all pages are told, 0 to 1, always of the same ones.
    pub fn set_share(&self, share: f64) {
        let most = (share.clamp(0.0, 1.0) * f64::from(u32::MAX)) as u32;
        // SAFETY: as for `word`; aligned to 4.
        let share = unsafe { AtomicU32::from_ptr(self.at.offset(SHARE_OFFSET.into()).cast()) };
        share.store(most, Ordering::Relaxed);
    }

    /// Faults so far of which there is no record because of the filter.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.word(LEFT_OUT_OFFSET as usize).load(Ordering::Relaxed)
    }

    /// Sets 64 bits of the first or second bitmap.
    ///
    /// # Panics
    /// When a bitmap has no such word.
    pub fn store(&self, bitmap: usize, word: usize, bits: u64) {
        assert!(bitmap < 2 && word < FILTER_BITS / 64);
        // The kernel's programs read bytes, which are those of such words on the machines that BPF
        // records are parsed on.
        let at = BITMAPS_OFFSET as usize + bitmap * BITMAP_BYTES as usize + word * 8;
        self.word(at).store(bits.to_le(), Ordering::Relaxed);
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        // SAFETY: within the mapping, which lives as long as `self`, at a multiple of 8 of a page, and only
        // ever accessed atomically.
        unsafe { AtomicU64::from_ptr(self.at.add(at).cast()) }
    }
}

impl Drop for FaultFilter {
    fn drop(&mut self) {
        // SAFETY: the mapping has this length and no reference outlives `self`.
        unsafe {
            libc::munmap(self.at.cast(), VALUE_BYTES.next_multiple_of(PAGE_SIZE));
        }
    }
}
