//! What an event between two units costs: the distance d of the objective
//! sum over i<j of M\[i\]\[j\] * d(pu_i, pu_j).
use crate::topology::{TopologyLevel, TopologyTree};

/// Distances between the units of a tree: one per vertex, for the pairs whose lowest common
/// vertex it is, less what each of the two lies higher than the deepest unit; or, between nodes,
/// a matrix where one was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PuDistances {
    by_vertex: Vec<u32>,
    /// By unit. Nothing but where hops are counted in a tree whose units differ in depth.
    raised: Vec<u32>,
    /// nodes x nodes, by position in [`TopologyTree::nodes`]; overrides vertices above nodes.
    between_nodes: Option<Vec<u32>>,
}

impl PuDistances {
    /// Hops through the tree: up from one unit to the lowest common vertex and down to the
    /// other.
    #[must_use]
    pub fn from_hops(tree: &TopologyTree) -> PuDistances {
        let deepest = tree.vertices.iter().map(|v| v.depth).max().unwrap_or(0);
        let units = 0..tree.units.len();
        PuDistances {
            by_vertex: tree
                .vertices
                .iter()
                .map(|v| 2 * (deepest - v.depth))
                .collect(),
            raised: units.map(|u| deepest - tree.depth_of_unit(u)).collect(),
            between_nodes: None,
        }
    }

    /// `weight` of the closest level that the lowest common vertex stands for.
    #[must_use]
    pub fn from_levels(tree: &TopologyTree, weight: impl Fn(TopologyLevel) -> u32) -> PuDistances {
        let of = |levels: &[TopologyLevel]| levels.last().map_or(0, |l| weight(*l));
        PuDistances {
            by_vertex: tree.vertices.iter().map(|v| of(&v.levels)).collect(),
            raised: vec![0; tree.units.len()],
            between_nodes: None,
        }
    }

    /// As `self` between units of one node; `matrix` (rows: nodes of the tree) otherwise.
    #[must_use]
    pub fn with_node_matrix(self, matrix: Vec<u32>) -> PuDistances {
        PuDistances {
            between_nodes: Some(matrix),
            ..self
        }
    }

    /// Whether the two units are as far from any third unit, but for those that share more with
    /// one of them. Among units alike, distance depends on the lowest common vertex alone.
    #[must_use]
    pub fn alike(&self, tree: &TopologyTree, a: usize, b: usize) -> bool {
        let same_node = tree.units[a].node == tree.units[b].node;
        self.raised[a] == self.raised[b] && (same_node || self.between_nodes.is_none())
    }

    /// No distance is larger.
    #[must_use]
    pub fn largest(&self) -> u32 {
        let nodes = self.between_nodes.iter().flatten();
        self.by_vertex
            .iter()
            .chain(nodes)
            .copied()
            .max()
            .unwrap_or(0)
    }

    /// The node matrix, if there is one.
    #[must_use]
    pub fn node_matrix(&self) -> Option<&[u32]> {
        self.between_nodes.as_deref()
    }

    /// Distance of two units; 0 of a unit to itself. Not for inner loops.
    #[must_use]
    pub fn distance(&self, tree: &TopologyTree, a: usize, b: usize) -> u32 {
        if a == b {
            return 0;
        }
        let (na, nb) = (tree.units[a].node.at(), tree.units[b].node.at());
        match &self.between_nodes {
            Some(matrix) if na != nb => matrix[na * tree.nodes.len() + nb],
            _ => {
                let common = tree.lowest_common_vertex(a, b) as usize;
                self.by_vertex[common] - self.raised[a] - self.raised[b]
            }
        }
    }
}

#[cfg(test)]
mod tests;
