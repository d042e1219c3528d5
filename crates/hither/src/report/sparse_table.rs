//! Packing big tables for the page: sparse cells, LEB128, raw deflate, base64; and merging
//! columns by their largest cell where a table is too big.
use super::packed_grid::PackedGrid;
use base64::{engine::general_purpose::STANDARD, Engine};
use hither_profile::varint::put_varint;
use std::cmp::Ordering;

/// 1 is fast, 9 small. Of 12 MB of counts 4 makes 1 % more than 9, in half the time.
const DEFLATE: u8 = 4;

/// A row and its count, whose halves are apart so that the two fit into twelve bytes: there are millions.
#[derive(Clone, Copy, Debug)]
struct SparseCell {
    row: u32,
    count: [u32; 2],
}

impl SparseCell {
    fn new(row: u32, count: u64) -> Self {
        let count = [count as u32, (count >> 32) as u32];
        SparseCell { row, count }
    }

    fn count(self) -> u64 {
        let [low, high] = self.count;
        u64::from(high) << 32 | u64::from(low)
    }
}

/// A sparse table being filled, column by column.
#[derive(Clone, Debug, Default)]
pub struct SparseTable {
    rows: u32,
    /// Cells of column c are `cells[starts[c]..starts[c + 1]]`, rows ascending.
    starts: Vec<u32>,
    cells: Vec<SparseCell>,
    /// Columns that one stands for, and how many were pushed.
    merged: u32,
    pushed: u32,
}

impl SparseTable {
    #[must_use]
    pub fn new(rows: u32) -> Self {
        SparseTable {
            rows,
            starts: vec![0],
            cells: Vec::new(),
            merged: 1,
            pushed: 0,
        }
    }

    /// Appends a column, to the last one where that stands for several and has fewer. Rows ascend; cells
    /// of 0 are left out.
    pub fn push(&mut self, cells: impl IntoIterator<Item = (u32, u64)>) {
        let cells = cells.into_iter().filter(|c| c.1 > 0);
        let from = self.cells.len();
        self.cells
            .extend(cells.map(|(row, count)| SparseCell::new(row, count)));
        if !self.pushed.is_multiple_of(self.merged) {
            self.starts.pop();
            let last = self.starts.last().map_or(0, |&start| start as usize);
            let right = self.cells.split_off(from);
            let left = self.cells.split_off(last);
            merge_max(&left, &right, &mut self.cells);
        }
        self.starts.push(self.cells.len() as u32);
        self.pushed += 1;
    }

    #[must_use]
    pub fn columns(&self) -> usize {
        self.starts.len() - 1
    }

    /// Cells that are not 0.
    #[must_use]
    pub fn cells(&self) -> usize {
        self.cells.len()
    }

    fn column(&self, at: usize) -> &[SparseCell] {
        &self.cells[self.starts[at] as usize..self.starts[at + 1] as usize]
    }

    /// Two columns become one that keeps each row's larger cell.
    #[must_use]
    pub fn merge_columns(&self) -> SparseTable {
        let mut out = SparseTable::new(self.rows);
        (out.merged, out.pushed) = (self.merged * 2, self.pushed);
        for at in (0..self.columns()).step_by(2) {
            let right = if at + 1 < self.columns() {
                self.column(at + 1)
            } else {
                &[]
            };
            merge_max(self.column(at), right, &mut out.cells);
            out.starts.push(out.cells.len() as u32);
        }
        out
    }

    /// The table as the page has it; `exact` keeps counts to the last digit.
    #[must_use]
    pub fn pack(&self, exact: bool) -> PackedGrid {
        let max = self.cells.iter().map(|c| c.count()).max().unwrap_or(0);
        let step = if exact { 0.0 } else { log_step(max) };
        let mut bytes = Vec::with_capacity(self.cells.len() * 2 + self.starts.len());
        for column in self.starts.windows(2) {
            put_varint(&mut bytes, (column[1] - column[0]).into());
        }
        for at in 0..self.columns() {
            let mut before = 0;
            for cell in self.column(at) {
                put_varint(&mut bytes, u64::from(cell.row - before));
                before = cell.row;
            }
        }
        for count in self.cells.iter().map(|c| c.count()) {
            if step > 0.0 {
                bytes.push(log_code(count, step));
            } else {
                put_varint(&mut bytes, count);
            }
        }
        PackedGrid {
            columns: self.columns() as u32,
            rows: self.rows,
            cells: self.cells.len() as u32,
            merged: self.merged,
            step,
            max,
            data: deflate_base64(&bytes),
        }
    }
}

fn merge_max(mut left: &[SparseCell], mut right: &[SparseCell], out: &mut Vec<SparseCell>) {
    while let ([a, more_left @ ..], [b, more_right @ ..]) = (left, right) {
        if a.row <= b.row {
            left = more_left;
        }
        if b.row <= a.row {
            right = more_right;
        }
        out.push(match a.row.cmp(&b.row) {
            Ordering::Less => *a,
            Ordering::Greater => *b,
            Ordering::Equal => SparseCell::new(a.row, a.count().max(b.count())),
        });
    }
    out.extend_from_slice(left);
    out.extend_from_slice(right);
}

/// So that the largest count has the largest code. A lone 1 needs no step, but 0 would say
/// that the counts are exact.
fn log_step(max: u64) -> f64 {
    (max.max(2) as f64).ln() / 255.0
}

fn log_code(count: u64, step: f64) -> u8 {
    ((count as f64).ln() / step).round().clamp(0.0, 255.0) as u8
}

/// Raw deflate, then base64.
fn deflate_base64(bytes: &[u8]) -> String {
    STANDARD.encode(miniz_oxide::deflate::compress_to_vec(bytes, DEFLATE))
}
