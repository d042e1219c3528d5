//! How evenly the memories of the nodes serve the traffic (fetches, or accesses where those were not counted).
//!
//! With S\[n\] the traffic that the memory of node n serves, and the mean over the nodes that
//! make or serve any (as B_comm, Locality and Balance eq. 2, of memories in place of threads):
//!
//! ```text
//!   imbalance = max(S) / mean(S) - 1
//! ```
//! It matters when it is at least `IMBALANCE` (0.5) and at least `WORTH` (0.1) of all traffic could be
//! served elsewhere without making any of it remote: what the busiest node serves above
//! the mean, but no more than it serves for other nodes. A node that is busy with its own threads is
//! left alone: there work is uneven, not memory.
use super::node_traffic::NodeTraffic;
use hither_profile::NodeIx;

/// Half again as much as the mean. Ours: threads and pages that are spread well still differ
/// by some tens of per cent (the ends of a grid have one neighbour), and a memory that serves
/// all has N - 1 (1 with two nodes, 3 with four).
const IMBALANCE: f64 = 0.5;
/// Of all traffic. Ours: as many as are let pass as wrongly placed (1 - ACC_RIGHT).
const WORTH: f64 = 0.1;

/// One node's memory serves much more than the others', for threads of other nodes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MemoryImbalance {
    /// Its node.
    pub busiest: NodeIx,
    /// What each memory in use serves of all traffic, most first.
    pub served: Vec<(f64, NodeIx)>,
    /// The part of all traffic that the busiest serves for other nodes.
    pub foreign: f64,
    /// The part of all traffic that others could serve without making any of it remote.
    pub movable: f64,
    /// The part of all traffic that is local.
    pub local: f64,
}

impl MemoryImbalance {
    /// `None` where it does not matter.
    #[must_use]
    pub fn of(traffic: &NodeTraffic) -> Option<Self> {
        let all = traffic.total_accesses() as f64;
        let mut served: Vec<(f64, NodeIx)> = traffic
            .nodes()
            .map(|n| (traffic.served_by(n), traffic.made_by(n), n))
            .filter(|(served, made, _)| *served > 0 || *made > 0)
            .map(|(served, _, n)| (served as f64 / all, n))
            .collect();
        served.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let &(most, busiest) = served.first()?;
        let foreign = most - traffic.between(busiest, busiest) as f64 / all;
        let local = traffic.nodes().map(|n| traffic.between(n, n) as f64);
        let found = MemoryImbalance {
            busiest,
            foreign,
            movable: foreign.min(most - 1.0 / served.len() as f64),
            local: local.sum::<f64>() / all,
            served,
        };
        let matters = found.times_its_share() - 1.0 >= IMBALANCE && found.movable >= WORTH;
        matters.then_some(found)
    }

    /// What the busiest memory serves of all traffic.
    #[must_use]
    pub fn most(&self) -> f64 {
        self.served.first().map_or(0.0, |s| s.0)
    }

    /// max(S) / mean(S).
    #[must_use]
    pub fn times_its_share(&self) -> f64 {
        self.most() * self.served.len() as f64
    }

    /// Whether dealing out all pages takes more load off the busiest memory than it makes remote: by chance, what is
    /// dealt out to N nodes is local 1/N of the time.
    #[must_use]
    pub fn is_evened_by_dealing_out(&self) -> bool {
        self.movable >= self.local - 1.0 / self.served.len() as f64
    }
}
