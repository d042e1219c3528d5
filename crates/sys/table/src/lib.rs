//! Memory for tables that are read all over, hints about it, and several comparisons at once: they change how fast
//! something is and nothing else.
use std::alloc::{handle_alloc_error, Layout};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Has the processor fetch what lies at a position into its caches, if there is something.
#[inline]
pub fn prefetch<T>(from: &[T], at: usize) {
    let Some(place) = from.get(at) else { return };
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch never faults and changes nothing that a program can see; SSE, which has
    // it, is part of every x86-64.
    unsafe {
        use std::arch::x86_64::{_mm_prefetch, _MM_HINT_T0};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(place).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}

/// Which of eight numbers are `wanted`, when the bits in `ignored` are left out of account: a bit for each.
#[inline]
#[must_use]
pub fn equal_of_eight(numbers: &[u32; 8], wanted: u32, ignored: u32) -> u32 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: two halves of an array that is there are read, wherever it begins; SSE2, which has the rest, is part of every
    // x86-64.
    unsafe {
        use std::arch::x86_64::{
            _mm_and_si128, _mm_castsi128_ps, _mm_cmpeq_epi32, _mm_loadu_si128, _mm_movemask_ps,
            _mm_set1_epi32,
        };
        let wanted = _mm_set1_epi32((wanted & !ignored).cast_signed());
        let compared = _mm_set1_epi32((!ignored).cast_signed());
        let equal = |half: *const u32| {
            let numbers = _mm_and_si128(_mm_loadu_si128(half.cast()), compared);
            _mm_movemask_ps(_mm_castsi128_ps(_mm_cmpeq_epi32(numbers, wanted)))
        };
        (equal(numbers.as_ptr()) | equal(numbers.as_ptr().add(4)) << 4).cast_unsigned()
    }
    #[cfg(not(target_arch = "x86_64"))]
    numbers.iter().zip(0..).fold(0, |mask, (number, at)| {
        mask | u32::from((number ^ wanted) & !ignored == 0) << at
    })
}

/// What is copied together as a table grows: a page.
const COPIED_BYTES: usize = 4096;

/// What may lie in a [`ZeroedMapping`].
pub trait ZeroablePod: Copy + private::Sealed {}
impl ZeroablePod for u32 {}
impl ZeroablePod for u64 {}
impl ZeroablePod for [u32; 8] {}

mod private {
    /// All bits 0 are a value.
    pub trait Sealed {}
    impl Sealed for u32 {}
    impl Sealed for u64 {}
    impl Sealed for [u32; 8] {}
}

/// A slice of zeros, at first. Takes memory where it is touched only, in `large` pages where asked
/// for and the kernel has them (MADV_HUGEPAGE); begins at a page.
pub struct ZeroedMapping<T: ZeroablePod> {
    first: NonNull<T>,
    length: usize,
}

// SAFETY: it owns its memory, as a vector does, and what lies there may be sent and shared.
unsafe impl<T: ZeroablePod + Send> Send for ZeroedMapping<T> {}
// SAFETY: as above; nothing changes through a shared reference.
unsafe impl<T: ZeroablePod + Sync> Sync for ZeroedMapping<T> {}

impl<T: ZeroablePod> ZeroedMapping<T> {
    #[must_use]
    pub fn new(length: usize, large: bool) -> Self {
        let none = ZeroedMapping {
            first: NonNull::dangling(),
            length: 0,
        };
        let Ok(layout) = Layout::array::<T>(length) else {
            handle_alloc_error(Layout::new::<T>());
        };
        if layout.size() == 0 {
            return none;
        }
        // SAFETY: new memory, where the kernel likes.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                layout.size(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        let first = NonNull::new(at.cast::<T>()).filter(|_| at != libc::MAP_FAILED);
        let Some(first) = first else {
            handle_alloc_error(layout);
        };
        if large {
            // SAFETY: exactly what was mapped. Whether the kernel follows it does not matter.
            unsafe { libc::madvise(at, layout.size(), libc::MADV_HUGEPAGE) };
        }
        ZeroedMapping { first, length }
    }

    /// One of `length` that begins with what is in this. Pages that were never written are not
    /// written there either, so they cost no memory.
    #[must_use]
    pub fn grown(&self, length: usize, large: bool) -> Self
    where
        T: Default + PartialEq,
    {
        let mut grown = ZeroedMapping::new(length, large);
        let block = (COPIED_BYTES / size_of::<T>()).max(1);
        for (to, from) in grown.chunks_mut(block).zip(self.chunks(block)) {
            if from.iter().any(|element| *element != T::default()) {
                to[..from.len()].copy_from_slice(from);
            }
        }
        grown
    }
}

impl<T: ZeroablePod> Drop for ZeroedMapping<T> {
    fn drop(&mut self) {
        if self.length > 0 {
            let bytes = self.length * size_of::<T>();
            // SAFETY: exactly what was mapped, and nobody has it any more.
            unsafe { libc::munmap(self.first.as_ptr().cast(), bytes) };
        }
    }
}

impl<T: ZeroablePod> Deref for ZeroedMapping<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: so many were mapped, aligned to a page, and they are ours until dropped. They
        // are zeros at first, which `ZeroablePod` says are values.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr(), self.length) }
    }
}

impl<T: ZeroablePod> DerefMut for ZeroedMapping<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and nobody else has it.
        unsafe { std::slice::from_raw_parts_mut(self.first.as_ptr(), self.length) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_zeros_and_keeps_what_it_is_given() {
        let mut table = ZeroedMapping::<u32>::new(1 << 20, true);
        assert!(table.iter().all(|&n| n == 0));
        table.iter_mut().zip(0..).for_each(|(place, n)| *place = n);
        prefetch(&table, 7);
        prefetch(&table, usize::MAX);
        assert!(table.iter().copied().eq(0..1 << 20));
        assert_eq!(ZeroedMapping::<u64>::new(0, false).len(), 0);
    }

    #[test]
    fn equal_numbers_are_found_whatever_is_ignored() {
        let numbers = [8, 9, 17, u32::MAX, 0, 8 << 20, 15, 8];
        assert_eq!(equal_of_eight(&numbers, 8, 0), 0b1000_0001);
        assert_eq!(equal_of_eight(&numbers, 10, 7), 0b1100_0011);
        assert_eq!(equal_of_eight(&numbers, u32::MAX, 7), 0b1000);
        assert_eq!(equal_of_eight(&numbers, 0, 7), 0b1_0000);
        assert_eq!(equal_of_eight(&numbers, 24, 7), 0);
    }

    #[test]
    fn a_table_that_grew_begins_with_what_it_was() {
        let mut table = ZeroedMapping::<u64>::new(1500, false);
        (table[3], table[1499]) = (1, 2);
        let grown = table.grown(4000, false);
        assert_eq!(grown.len(), 4000);
        let written = grown.iter().enumerate().filter(|(_, n)| **n != 0);
        assert!(written.eq([(3, &1), (1499, &2)]));
    }
}
