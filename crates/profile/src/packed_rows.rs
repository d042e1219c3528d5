//! Rows of numbers, packed: of a hundred million the whole list would take more memory than there is.
//! Each number is kept as its difference to that of the row before, seven bits in a byte, and those that
//! are the same not at all:
//!
//! ```text
//!   row      one byte: bit n is set where number n differs      its differences
//! ```
use crate::varint::{put_varint, take_varint, unzigzag, zigzag};
use std::fmt;
use std::marker::PhantomData;

/// A row that is a few numbers.
pub trait PackedRow: Copy + PartialEq {
    /// Its numbers; those that it has no use for are 0.
    fn to_numbers(&self) -> [u64; 8];
    /// The row of these numbers.
    fn from_numbers(numbers: &[u64; 8]) -> Self;
}

/// A list of rows, see the module.
#[derive(Clone, PartialEq)]
pub struct PackedRows<R> {
    bytes: Vec<u8>,
    count: usize,
    /// The row that is last.
    last: [u64; 8],
    row: PhantomData<R>,
}

impl<R: PackedRow> PackedRows<R> {
    /// Adds a row behind the others.
    pub fn push(&mut self, row: R) {
        let numbers = row.to_numbers();
        let flags_at = self.bytes.len();
        self.bytes.push(0);
        let mut flags = 0;
        for (bit, (number, before)) in numbers.iter().zip(self.last).enumerate() {
            if *number != before {
                flags |= 1 << bit;
                let difference = number.wrapping_sub(before) as i64;
                put_varint(&mut self.bytes, zigzag(difference));
            }
        }
        self.bytes[flags_at] = flags;
        self.last = numbers;
        self.count += 1;
    }

    /// All rows, in order.
    #[must_use]
    pub fn rows(&self) -> Unpacker<'_, R> {
        Unpacker {
            bytes: &self.bytes,
            numbers: [0; 8],
            row: PhantomData,
        }
    }

    /// How many there are.
    #[must_use]
    pub fn row_count(&self) -> usize {
        self.count
    }

    /// Whether there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Takes all rows out.
    pub fn clear(&mut self) {
        *self = PackedRows::default();
    }

    /// Changes rows, and drops those for which the answer is no.
    pub fn retain_mut(&mut self, mut keep: impl FnMut(&mut R) -> bool) {
        let changed = self
            .rows()
            .filter_map(|mut row| keep(&mut row).then_some(row));
        *self = changed.collect();
    }
}

/// Goes through rows.
#[derive(Clone, Debug)]
pub struct Unpacker<'a, R> {
    bytes: &'a [u8],
    numbers: [u64; 8],
    row: PhantomData<R>,
}

impl<R: PackedRow> Iterator for Unpacker<'_, R> {
    type Item = R;

    fn next(&mut self) -> Option<R> {
        let (&flags, mut left) = self.bytes.split_first()?;
        let mut flags = flags;
        while flags != 0 {
            let bit = flags.trailing_zeros() as usize;
            flags &= flags - 1;
            let difference = unzigzag(take_varint(&mut left)?);
            self.numbers[bit] = self.numbers[bit].wrapping_add_signed(difference);
        }
        self.bytes = left;
        Some(R::from_numbers(&self.numbers))
    }
}

impl<R> Default for PackedRows<R> {
    fn default() -> Self {
        PackedRows {
            bytes: Vec::new(),
            count: 0,
            last: [0; 8],
            row: PhantomData,
        }
    }
}

impl<R: PackedRow + fmt::Debug> fmt::Debug for PackedRows<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.rows()).finish()
    }
}

impl<R: PackedRow> From<Vec<R>> for PackedRows<R> {
    fn from(rows: Vec<R>) -> Self {
        rows.into_iter().collect()
    }
}

impl<R: PackedRow> FromIterator<R> for PackedRows<R> {
    fn from_iter<I: IntoIterator<Item = R>>(rows: I) -> Self {
        let mut packed = PackedRows::default();
        packed.extend(rows);
        packed.bytes.shrink_to_fit();
        packed
    }
}

impl<R: PackedRow> Extend<R> for PackedRows<R> {
    fn extend<I: IntoIterator<Item = R>>(&mut self, rows: I) {
        rows.into_iter().for_each(|row| self.push(row));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    impl PackedRow for [u64; 8] {
        fn to_numbers(&self) -> [u64; 8] {
            *self
        }

        fn from_numbers(numbers: &[u64; 8]) -> Self {
            *numbers
        }
    }

    proptest! {
        #[test]
        fn rows_come_out_as_they_went_in(
            rows in prop::collection::vec(prop::array::uniform8(prop_oneof![0u64..4, any::<u64>()]), 0..40),
        ) {
            let packed: PackedRows<[u64; 8]> = rows.iter().copied().collect();
            prop_assert_eq!(packed.row_count(), rows.len());
            prop_assert_eq!(packed.rows().collect::<Vec<_>>(), rows);
        }
    }

    #[test]
    fn a_row_like_the_one_before_takes_a_byte() {
        let packed: PackedRows<[u64; 8]> = [[1 << 40; 8]; 1000].into_iter().collect();
        assert_eq!(packed.bytes.len(), 1 + 8 * 6 + 999);
    }
}
