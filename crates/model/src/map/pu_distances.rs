//! What an event between two units costs: the distance d of the objective
//! sum over i<j of M\[i\]\[j\] * d(pu_i, pu_j).
use crate::topology::{TopologyLevel, TopologyTree};

/// Distances between the units of a tree: one per vertex, for the pairs whose lowest common
/// vertex it is, or, between nodes, a matrix where one was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PuDistances {
    by_vertex: Vec<u32>,
    /// nodes x nodes, by position in [`TopologyTree::nodes`]; overrides vertices above nodes.
    between_nodes: Option<Vec<u32>>,
}

impl PuDistances {
    /// Hops through the tree: up from one unit to the lowest common vertex and down again,
    /// twice the height of that vertex.
    #[must_use]
    pub fn from_hops(tree: &TopologyTree) -> PuDistances {
        let mut height = vec![0u32; tree.vertices.len()];
        for (at, vertex) in tree.vertices.iter().enumerate().rev() {
            if let Some(parent) = vertex.parent {
                height[parent as usize] = height[parent as usize].max(height[at] + 1);
            }
        }
        PuDistances {
            by_vertex: height.iter().map(|h| 2 * h).collect(),
            between_nodes: None,
        }
    }

    /// `weight` of the closest level that the lowest common vertex stands for.
    #[must_use]
    pub fn from_levels(tree: &TopologyTree, weight: impl Fn(TopologyLevel) -> u32) -> PuDistances {
        let of = |levels: &[TopologyLevel]| levels.last().map_or(0, |l| weight(*l));
        PuDistances {
            by_vertex: tree.vertices.iter().map(|v| of(&v.levels)).collect(),
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

    /// The cost at a vertex.
    #[must_use]
    pub fn of_vertex(&self, vertex: u32) -> u32 {
        self.by_vertex[vertex as usize]
    }

    /// The largest distance.
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
            _ => self.of_vertex(tree.lowest_common_vertex(a, b)),
        }
    }
}
