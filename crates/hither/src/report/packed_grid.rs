//! Big tables in the data of the page.
use serde::Serialize;

/// A sparse table of counts.
///
/// `data` is base64 of a raw deflate stream of: for each column the number of its cells; for
/// each cell, column by column, its row less the row of the cell before it in that column
/// (less 0 for the first); then all counts in the same order. All are LEB128, but counts
/// with `step > 0` are bytes b that stand for exp(b * step), rounded.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PackedGrid {
    pub columns: u32,
    pub rows: u32,
    pub cells: u32,
    /// Columns of the full table in each of these: the largest count of a row stands for all.
    pub merged: u32,
    /// 0 when counts are exact.
    pub step: f64,
    pub max: u64,
    pub data: String,
}
