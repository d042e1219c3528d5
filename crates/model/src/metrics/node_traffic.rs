//! Traffic by the node that makes it and the node whose memory serves it.
use super::page_access::PageAccessTable;
use super::page_id::PageId;
use crate::locality::AccessLocality;
use hither_profile::NodeIx;

/// Accesses by the node they come from and the node whose memory serves them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeTraffic {
    nodes: usize,
    cells: Vec<u64>,
}

impl NodeTraffic {
    /// Of a table, with the node of each thread and page; pages of an unknown place are left out.
    #[must_use]
    pub fn counted(
        table: &PageAccessTable,
        (nodes, threads): (usize, &[NodeIx]),
        place: impl Fn(PageId) -> Option<NodeIx>,
    ) -> Self {
        let mut traffic = NodeTraffic {
            nodes,
            cells: vec![0; nodes * nodes],
        };
        for page in 0..table.len() {
            let Some(home) = place(table.id(page)) else {
                continue;
            };
            for u in table.uses(page) {
                let cell = &mut traffic.cells[threads[u.thread().at()].at() * nodes + home.at()];
                *cell = cell.saturating_add(u.accesses());
            }
        }
        traffic
    }

    /// All nodes.
    pub fn nodes(&self) -> impl Iterator<Item = NodeIx> {
        (0..self.nodes as u32).map(NodeIx)
    }

    /// Accesses from threads on node `from` to pages on node `to`.
    #[must_use]
    pub fn between(&self, from: NodeIx, to: NodeIx) -> u64 {
        self.cells[from.at() * self.nodes + to.at()]
    }

    /// All accesses.
    #[must_use]
    pub fn total_accesses(&self) -> u64 {
        self.cells.iter().fold(0, |sum, &c| sum.saturating_add(c))
    }

    /// Accesses by threads of a node, to any memory.
    #[must_use]
    pub fn made_by(&self, by: NodeIx) -> u64 {
        let row = &self.cells[by.at() * self.nodes..][..self.nodes];
        row.iter().fold(0, |sum, &c| sum.saturating_add(c))
    }

    /// Accesses that the memory of a node serves, from any node.
    #[must_use]
    pub fn served_by(&self, by: NodeIx) -> u64 {
        let from = self.nodes().map(|n| self.between(n, by));
        from.fold(0, u64::saturating_add)
    }

    /// The share of accesses to another node's memory; `None` without accesses.
    #[must_use]
    pub fn remote_share(&self) -> Option<f64> {
        let mut sum = AccessLocality::default();
        for (from, to) in self
            .nodes()
            .flat_map(|from| self.nodes().map(move |to| (from, to)))
        {
            sum.count(from, to, self.between(from, to));
        }
        sum.remote_share()
    }
}
