//! Whether pages belong to a node each, or one node makes most accesses to them because it makes most
//! accesses to anything: a thread that works for idle ones is no reason to place pages.
//!
//! With MemAcc\[p\]\[n\] of OPT eq. 5, a\[p\] its sum over n, b(p) the node that uses page p most and W\[n\] the
//! share of node n in all accesses of the run, E_app (OPT eq. 6) is held against the value that it has where
//! every node makes its share of the accesses to every page:
//!
//! ```text
//!   E_work = sum over p of a[p] x W[b(p)] / sum over p of a[p]
//!   beyond = (E_app - E_work) / (1 - E_work)
//! ```
//! Where nodes work alike, E_work is 1/N.
use super::exclusivity::accesses_per_node;
use super::page_access::PageAccessTable;
use super::thresholds::{ACC_RIGHT, E_HIGH, LEAST_ABOVE_WORK};
use hither_profile::NodeIx;

/// How exclusive pages are, and how exclusive the nodes' work alone makes them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PageBelonging {
    /// E_app (OPT eq. 6), 1/N to 1.
    pub app: f64,
    /// E_work.
    pub by_work: f64,
    /// E_app less what does not last (`lasting_use.rs`).
    pub lasting: f64,
}

impl PageBelonging {
    /// Of the pages at these positions; `None` when they have no access. `work` is W, `lasting` what lasts of each
    /// page's use, all of it where it is empty.
    pub fn of_pages(
        table: &PageAccessTable,
        pages: impl Iterator<Item = usize>,
        node_of: &[NodeIx],
        work: &[f64],
        lasting: &[f32],
    ) -> Option<Self> {
        let mut per_node = vec![0; work.len()];
        let (mut all, mut most, mut by_work, mut lasts) = (0.0, 0.0, 0.0, 0.0);
        for page in pages {
            accesses_per_node(table.uses(page), node_of, &mut per_node);
            let sum = per_node.iter().sum::<u64>() as f64;
            let max = per_node.iter().copied().max().unwrap_or(0);
            let best = per_node.iter().position(|&n| n == max);
            all += sum;
            most += max as f64;
            lasts += max as f64 * part_that_lasts(lasting, page);
            by_work += sum * best.map_or(0.0, |best| work[best]);
        }
        (all > 0.0).then(|| PageBelonging {
            app: most / all,
            by_work: by_work / all,
            lasting: lasts / all,
        })
    }

    /// Whether the pages belong to one node each. Where one makes nearly all accesses, they are its own.
    #[must_use]
    pub fn belongs(&self) -> bool {
        let exceeds_work = self.lasting - self.by_work >= LEAST_ABOVE_WORK * (1.0 - self.by_work);
        self.lasting >= E_HIGH && (exceeds_work || self.lasting >= ACC_RIGHT)
    }
}

/// What lasts of the use of a page by the node that uses it most, all of it where that is not known.
#[must_use]
pub fn part_that_lasts(lasting: &[f32], page: usize) -> f64 {
    lasting.get(page).map_or(1.0, |part| f64::from(*part))
}

/// W: the share of each node in the accesses of a table.
#[must_use]
pub fn work_of_nodes(table: &PageAccessTable, nodes: usize, node_of: &[NodeIx]) -> Vec<f64> {
    let mut sums = vec![0.0; nodes];
    for page in 0..table.len() {
        for u in table.uses(page) {
            sums[node_of[u.thread().at()].at()] += u.accesses() as f64;
        }
    }
    let all: f64 = sums.iter().sum();
    sums.iter().map(|n| n / all.max(1.0)).collect()
}
