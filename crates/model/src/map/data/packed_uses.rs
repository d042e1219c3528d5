//! The uses of pages, packed: of a hundred million the whole list would take more memory than there is.
//! Each is three numbers, seven bits in a byte.
use super::PageSliceUse;
use hither_profile::varint::{put_varint, take_varint};
use hither_profile::{SliceIx, ThreadIx};

/// More accesses than any thread makes to a page in days. Counts of a damaged profile are
/// cut here, so that sums cannot overflow.
const MAX_ACCESSES: u64 = 1 << 44;

/// Uses by page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PackedUses {
    bytes: Vec<u8>,
    /// Where those of each page end; those of the next begin there.
    ends: Vec<usize>,
}

impl PackedUses {
    /// Adds a page. Uses of the same slice and thread become one; those without accesses go.
    pub fn push_page(&mut self, uses: impl IntoIterator<Item = PageSliceUse>) {
        let mut last: Option<PageSliceUse> = None;
        for u in uses.into_iter().filter(|u| u.accesses > 0) {
            match &mut last {
                Some(l) if (l.slice, l.thread) == (u.slice, u.thread) => {
                    l.accesses = l.accesses.saturating_add(u.accesses);
                }
                _ => last.replace(u).into_iter().for_each(|l| self.push(l)),
            }
        }
        last.into_iter().for_each(|l| self.push(l));
        self.ends.push(self.bytes.len());
    }

    fn push(&mut self, u: PageSliceUse) {
        let accesses = u.accesses.min(MAX_ACCESSES);
        for number in [u.slice.0.into(), u.thread.0.into(), accesses] {
            put_varint(&mut self.bytes, number);
        }
    }

    /// Those of a page.
    pub fn of_page(&self, page: usize) -> UnpackedUses<'_> {
        let start = page.checked_sub(1).map_or(0, |before| self.ends[before]);
        UnpackedUses(&self.bytes[start..self.ends[page]])
    }
}

/// Goes through the uses of a page.
#[derive(Clone, Debug)]
pub struct UnpackedUses<'a>(&'a [u8]);

impl Iterator for UnpackedUses<'_> {
    type Item = PageSliceUse;

    fn next(&mut self) -> Option<PageSliceUse> {
        Some(PageSliceUse {
            slice: SliceIx(take_varint(&mut self.0)? as u32),
            thread: ThreadIx(take_varint(&mut self.0)? as u32),
            accesses: take_varint(&mut self.0)?,
        })
    }
}
