//! The communication graph as the search uses it: signed weights, scaled down so that no
//! sum of weight times distance leaves an i64, and parts of it cut out or contracted.
use crate::map::CommGraph;

/// One direction of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CsrEdge {
    pub to: u32,
    pub weight: i64,
}

/// A symmetric weighted graph; rows one after the other.
#[derive(Clone, Debug, Default)]
pub struct CsrGraph {
    pub start: Vec<u32>,
    pub link: Vec<CsrEdge>,
}

/// Sums of weight times distance stay below this.
const LIMIT: u128 = 1 << 60;

impl CsrGraph {
    /// Weights lose the low bits that sums up to `far` times their total have no room for.
    #[must_use]
    pub fn new(comm: &CommGraph, far: u32) -> CsrGraph {
        let total: u128 = comm.pairs().map(|(_, _, w)| u128::from(w)).sum();
        let mut shift = 0;
        while (2 * total * u128::from(far.max(1))) >> shift >= LIMIT {
            shift += 1;
        }
        let mut links = CsrGraph {
            start: Vec::with_capacity(comm.threads() + 1),
            link: Vec::with_capacity(comm.edge_entries()),
        };
        links.start.push(0);
        for i in 0..comm.threads() {
            let row = comm.neighbours(i).map(|(to, w)| CsrEdge {
                to: to as u32,
                weight: (w >> shift) as i64,
            });
            links.link.extend(row.filter(|l| l.weight > 0));
            links.start.push(links.link.len() as u32);
        }
        links
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.start.len().saturating_sub(1)
    }

    #[must_use]
    pub fn neighbours(&self, vertex: usize) -> &[CsrEdge] {
        &self.link[self.start[vertex] as usize..self.start[vertex + 1] as usize]
    }

    /// The part between `members`, numbered by their position there. `place` is scratch, one
    /// per vertex of the whole, all `u32::MAX`, and is so again afterwards.
    #[must_use]
    pub fn induced_subgraph(&self, members: &[u32], place: &mut [u32]) -> CsrGraph {
        for (at, &member) in members.iter().enumerate() {
            place[member as usize] = at as u32;
        }
        let mut part = CsrGraph {
            start: Vec::with_capacity(members.len() + 1),
            link: Vec::new(),
        };
        part.start.push(0);
        for &member in members {
            for l in self.neighbours(member as usize) {
                let to = place[l.to as usize];
                if to != u32::MAX {
                    part.link.push(CsrEdge { to, ..*l });
                }
            }
            part.start.push(part.link.len() as u32);
        }
        for &member in members {
            place[member as usize] = u32::MAX;
        }
        part
    }

    /// One vertex for each group; links inside a group vanish, parallel ones add up.
    #[must_use]
    pub fn contract_groups(&self, group: &[u32], groups: usize) -> CsrGraph {
        let (first, order) = members_by_group(group, groups);
        let mut coarse = CsrGraph {
            start: Vec::with_capacity(groups + 1),
            link: Vec::with_capacity(self.link.len()),
        };
        coarse.start.push(0);
        let mut seen = vec![u32::MAX; groups];
        for g in 0..groups {
            let begin = coarse.link.len();
            for &v in &order[first[g] as usize..first[g + 1] as usize] {
                for l in self.neighbours(v as usize) {
                    let to = group[l.to as usize];
                    if to as usize == g {
                        continue;
                    }
                    let at = seen[to as usize];
                    if at != u32::MAX && at as usize >= begin {
                        coarse.link[at as usize].weight += l.weight;
                    } else {
                        seen[to as usize] = coarse.link.len() as u32;
                        coarse.link.push(CsrEdge { to, ..*l });
                    }
                }
            }
            coarse.start.push(coarse.link.len() as u32);
        }
        coarse
    }
}

/// Members of each group, in order: where each group starts, and all members.
#[must_use]
pub fn members_by_group(group: &[u32], groups: usize) -> (Vec<u32>, Vec<u32>) {
    let mut first = vec![0u32; groups + 1];
    for &g in group {
        first[g as usize + 1] += 1;
    }
    for g in 0..groups {
        first[g + 1] += first[g];
    }
    let mut next = first.clone();
    let mut order = vec![0u32; group.len()];
    for (v, &g) in group.iter().enumerate() {
        order[next[g as usize] as usize] = v as u32;
        next[g as usize] += 1;
    }
    (first, order)
}
