//! Data policies: one file each, one line in [`ALL`].
use crate::topology::Tree;
use hither_profile::NodeIx;

/// Accesses of one page (4 KiB or 2 MiB).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageAccesses {
    /// Thread and its reads plus writes, by thread.
    pub by_thread: Vec<(u32, u64)>,
    pub first_touch: u32,
}

/// Pages to be placed, given where the threads run.
pub struct DataProblem<'a> {
    pub tree: &'a Tree,
    /// The unit of each thread.
    pub threads: &'a [u32],
    pub pages: &'a [PageAccesses],
    pub page_bytes: u64,
    /// Bytes that each node of the tree can take.
    pub capacity: &'a [u64],
}

/// A way of placing pages.
pub trait DataPolicy: Sync {
    /// As `--data` takes it.
    fn name(&self) -> &'static str;
    /// One line: what it does, and whose it is.
    fn about(&self) -> &'static str;
    /// A node for every page, none above its capacity.
    ///
    /// # Errors
    /// A sentence that says why it cannot place these pages, and what can.
    fn place(&self, problem: &DataProblem) -> Result<Vec<NodeIx>, String>;
}

/// Every policy, in the order in which `hither map --list` shows them.
pub const ALL: &[&dyn DataPolicy] = &[];
