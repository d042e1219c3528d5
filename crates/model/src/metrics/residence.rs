//! The node of each thread and page, by which [`crate::locality`] counts what is remote: as a
//! placement says, else threads where E_app is highest and pages where they were touched first.
use super::metrics_report::ProfileAnalysis;
use super::node_traffic::NodeTraffic;
use super::page_access::{PageAccessTable, ThreadPageAccesses};
use super::page_id::PageId;
use super::page_map::PageMap;
use hither_profile::{NodeIx, Placement, Profile};

/// Threads and pages on nodes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeResidence {
    /// NUMA nodes of the machine, N.
    pub nodes: usize,
    /// By thread.
    pub threads: Vec<NodeIx>,
    pages: PageMap<NodeIx>,
    /// Whether it is from a placement; else it is first touch with the best assignment of threads.
    pub from_placement: bool,
}

impl NodeResidence {
    /// Pages by first touch, threads at their best.
    #[must_use]
    pub fn from_first_touch(analysis: &ProfileAnalysis) -> Self {
        let threads: Vec<NodeIx> = analysis.report.threads.iter().map(|t| t.node).collect();
        NodeResidence {
            nodes: analysis.report.setup.nodes,
            pages: first_touch_nodes(analysis, &threads),
            threads,
            from_placement: false,
        }
    }

    /// As a placement has it: threads and pages where the first phase that names them puts
    /// them. Those that it leaves to the system are where first touch has them, and so are
    /// pages of regions that the profile does not have.
    #[must_use]
    pub fn from_placement(
        analysis: &ProfileAnalysis,
        profile: &Profile,
        placement: &Placement,
    ) -> Self {
        let mut threads: Vec<NodeIx> = analysis.report.threads.iter().map(|t| t.node).collect();
        // From the last phase to the first, so that the first has the last word.
        for place in placement.phases.iter().rev().flat_map(|p| &p.threads) {
            if let Some(node) = threads.get_mut(place.thread().at()) {
                *node = place.node();
            }
        }
        let touched = first_touch_nodes(analysis, &threads);
        let mut pages: Vec<_> = touched.iter().map(|(id, node)| (id, *node)).collect();
        let regions = placement.regions_in(profile);
        for places in placement.phases.iter().rev().flat_map(|p| &p.pages) {
            let Some(Some(region)) = regions.get(places.region as usize) else {
                continue;
            };
            for run in places.runs.iter().filter(|run| run.pages() > 0) {
                let last = run.first().saturating_add(run.pages() - 1);
                let page = |number| {
                    let size = analysis.report.setup.page_size;
                    PageId::of_region(*region, number).at_size(&profile.regions, size)
                };
                let held = (analysis.table).page_range(page(run.first()), page(last));
                for page in held {
                    pages.push((analysis.table.id(page), run.node()));
                }
            }
        }
        NodeResidence {
            nodes: (analysis.report.setup.nodes).max(placement.machine.nodes.len()),
            threads,
            pages: PageMap::from_pairs(pages),
            from_placement: true,
        }
    }

    /// The node of a page, where it is known.
    #[must_use]
    pub fn node_of_page(&self, id: PageId) -> Option<NodeIx> {
        self.pages.get(id).copied()
    }

    /// The node that a use of a page comes from.
    #[must_use]
    pub fn node_of_use(&self, u: &ThreadPageAccesses) -> NodeIx {
        self.threads[u.thread().at()]
    }

    /// The share of accesses that go to another node's memory, of those to pages whose place
    /// is known; `None` without any.
    #[must_use]
    pub fn remote_share(&self, table: &PageAccessTable) -> Option<f64> {
        self.traffic(table).remote_share()
    }

    /// Accesses by node of the thread and node of the page.
    #[must_use]
    pub fn traffic(&self, table: &PageAccessTable) -> NodeTraffic {
        NodeTraffic::counted(table, (self.nodes, &self.threads), |id| {
            self.node_of_page(id)
        })
    }
}

fn first_touch_nodes(analysis: &ProfileAnalysis, threads: &[NodeIx]) -> PageMap<NodeIx> {
    analysis.first_touchers.map(|t| threads[t.at()])
}
