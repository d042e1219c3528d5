//! The page's data about data structures.
use super::packed_grid::PackedGrid;
use hither_profile::ObjectKind;
use serde::Serialize;

#[derive(Clone, Debug, Default, Serialize)]
pub struct StructuresPanel {
    /// By the larger of their shares of accesses and of fetches.
    pub rows: Vec<StructureRow>,
    /// Rows from here on have less than 0.01 % of either.
    pub folded_from: usize,
    /// Those not listed: how many, their bytes and accesses.
    pub rest: UnlistedStructures,
    /// Accesses of all threads.
    pub accesses: u64,
}

#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct UnlistedStructures {
    pub structures: usize,
    pub size: u64,
    pub accesses: u64,
}

#[derive(Clone, Debug, Serialize)]
pub struct StructureRow {
    /// Its numbers in the profile, as findings name it: several of what is the same in several processes, or of
    /// the stacks of many threads. The one with most traffic first.
    pub objects: Vec<u32>,
    pub name: String,
    pub type_name: String,
    pub kind: ObjectKind,
    pub processes: Vec<u32>,
    pub size: u64,
    /// Its size, and in what blocks.
    pub blocks: String,
    pub site: Option<DeclarationSite>,
    pub reads: u64,
    pub writes: u64,
    /// Of the accesses of the run.
    pub share: f64,
    pub fetches: u64,
    /// Of the fetches of the run; `None` where they were not counted.
    pub fetch_share: Option<f64>,
    /// Counted from samples.
    pub estimated: bool,
    /// E_app over its pages, and Acc_app of first touch.
    pub exclusivity: Option<f64>,
    pub accuracy: Option<f64>,
    pub lines: Vec<SourceLineRow>,
    /// The line that touched most of its pages first.
    pub first_touch: Option<FirstTouchRow>,
    /// `None` when folded, or none of its pages was used.
    pub map: Option<StructurePageMap>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct DeclarationSite {
    pub file: String,
    pub line: u32,
    pub function: String,
}

/// A line that touched pages of a structure first.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FirstTouchRow {
    pub site: DeclarationSite,
    pub pages: u64,
    pub thread: u32,
    /// The calls that led there, innermost first; empty where unknown.
    pub path: Vec<String>,
    pub in_parallel: Option<bool>,
}

/// A source line that uses a structure.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SourceLineRow {
    pub site: DeclarationSite,
    pub reads: u64,
    pub writes: u64,
    pub fetches: u64,
}

/// The pages of a structure, in order.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct StructurePageMap {
    /// Pages drawn.
    pub pages: usize,
    /// Unused pages that are left out, since they are many.
    pub unused: u64,
    /// Column = page, row = thread: accesses.
    pub density: PackedGrid,
    /// Column = page, row = thread: 1 where it touched the page first.
    pub first_touch: PackedGrid,
    /// Thread, reads, writes on these pages; threads with neither are left out.
    pub threads: Vec<(u32, u64, u64)>,
}
