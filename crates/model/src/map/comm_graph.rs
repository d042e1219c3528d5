//! Communication between threads as a sparse symmetric graph.
use hither_profile::CommMatrix;

/// Communication of T threads: for each its partners in ascending order, without itself,
/// and the events with them; M\[i\]\[j\] = M\[j\]\[i\].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommGraph {
    /// Where each thread's row starts in the other two; one more than threads.
    start: Vec<usize>,
    partner: Vec<u32>,
    weight: Vec<u64>,
}

impl CommGraph {
    /// From pairs in any order; both directions of a pair and repeated pairs add up.
    /// Pairs of a thread with itself and of threads that do not exist are left out.
    #[must_use]
    pub fn new(threads: usize, pairs: impl IntoIterator<Item = (u32, u32, u64)>) -> CommGraph {
        let exists = |i: u32| (i as usize) < threads;
        let mut all: Vec<(u32, u32, u64)> = pairs
            .into_iter()
            .filter(|&(i, j, w)| i != j && w > 0 && exists(i) && exists(j))
            .flat_map(|(i, j, w)| [(i, j, w), (j, i, w)])
            .collect();
        all.sort_unstable_by_key(|&(i, j, _)| (i, j));
        all.dedup_by(|next, kept| {
            let same = (next.0, next.1) == (kept.0, kept.1);
            if same {
                kept.2 = kept.2.saturating_add(next.2);
            }
            same
        });
        let mut start = vec![0; threads + 1];
        for &(i, _, _) in &all {
            start[i as usize + 1] += 1;
        }
        for i in 0..threads {
            start[i + 1] += start[i];
        }
        CommGraph {
            start,
            partner: all.iter().map(|e| e.1).collect(),
            weight: all.iter().map(|e| e.2).collect(),
        }
    }

    /// The graph of a matrix.
    #[must_use]
    pub fn from_matrix(matrix: &CommMatrix) -> CommGraph {
        CommGraph::new(matrix.threads(), matrix.pairs())
    }

    /// Number of threads, T.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.start.len().saturating_sub(1)
    }

    /// Partners of a thread and the events with each, by partner.
    pub fn neighbours(&self, thread: usize) -> impl ExactSizeIterator<Item = (usize, u64)> + '_ {
        let at = self.start[thread]..self.start[thread + 1];
        let partners = self.partner[at.clone()].iter().map(|&j| j as usize);
        partners.zip(self.weight[at].iter().copied())
    }

    /// Pairs i < j with their events.
    pub fn pairs(&self) -> impl Iterator<Item = (usize, usize, u64)> + '_ {
        (0..self.threads()).flat_map(move |i| {
            let above = self.neighbours(i).filter(move |(j, _)| *j > i);
            above.map(move |(j, w)| (i, j, w))
        })
    }

    /// Entries that are not zero, both directions counted.
    #[must_use]
    pub fn edge_entries(&self) -> usize {
        self.partner.len()
    }
}
