//! The communication matrix and the two metrics that are stored per slice.
use std::collections::HashMap;

/// Communication events between threads, symmetric, zero diagonal, dense.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CommMatrix {
    threads: usize,
    cells: Vec<u64>,
}

impl CommMatrix {
    /// An empty matrix of `threads` x `threads` cells.
    #[must_use]
    pub fn new(threads: usize) -> Self {
        CommMatrix {
            threads,
            cells: vec![0; threads * threads],
        }
    }

    /// Number of threads T.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Events between `i` and `j`.
    ///
    /// # Panics
    /// If either is not below [`CommMatrix::threads`].
    #[must_use]
    pub fn get(&self, i: usize, j: usize) -> u64 {
        self.cells[i * self.threads + j]
    }

    /// Adds events to both cells of the pair; a pair of a thread with itself is ignored.
    pub fn add(&mut self, i: usize, j: usize, events: u64) {
        if i != j {
            self.cells[i * self.threads + j] += events;
            self.cells[j * self.threads + i] += events;
        }
    }

    /// The matrix of those threads alone for which `chosen` is true, in order.
    #[must_use]
    pub fn among(&self, chosen: &[bool]) -> CommMatrix {
        let kept = (0..self.threads).filter(|&t| chosen.get(t).copied().unwrap_or(false));
        let kept: Vec<usize> = kept.collect();
        let rows = kept.iter().map(|&i| self.row(i));
        CommMatrix {
            threads: kept.len(),
            cells: rows.flat_map(|row| kept.iter().map(|&j| row[j])).collect(),
        }
    }

    /// Row `i`, T cells.
    #[must_use]
    pub fn row(&self, i: usize) -> &[u64] {
        &self.cells[i * self.threads..(i + 1) * self.threads]
    }

    /// Largest cell.
    #[must_use]
    pub fn max(&self) -> u64 {
        self.cells.iter().copied().max().unwrap_or(0)
    }

    /// Sum over pairs i < j: each event once.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.cells.iter().sum::<u64>() / 2
    }

    /// C_A (OPT eq. 3): mean events per cell over T² cells; 0 for T = 0.
    #[must_use]
    pub fn amount(&self) -> f64 {
        if self.threads == 0 {
            return 0.0;
        }
        self.cells.iter().map(|&c| c as f64).sum::<f64>() / (self.threads * self.threads) as f64
    }

    /// C_H (OPT eq. 1 and 2): mean over rows of the variance of the row, after scaling
    /// the largest cell to 100. 0 (all alike) to 2500; 0 when nothing communicates.
    #[must_use]
    pub fn heterogeneity(&self) -> f64 {
        let max = self.max();
        if max == 0 {
            return 0.0;
        }
        let scale = 100.0 / max as f64;
        self.mean_row_variance(scale)
    }

    /// Unnormalised heterogeneity (kMAF eq. 1): as [`CommMatrix::heterogeneity`] without scaling.
    #[must_use]
    pub fn raw_heterogeneity(&self) -> f64 {
        self.mean_row_variance(1.0)
    }

    fn mean_row_variance(&self, scale: f64) -> f64 {
        let t = self.threads as f64;
        let mut sum = 0.0;
        for i in 0..self.threads {
            let row = self.row(i);
            let mean = row.iter().map(|&c| c as f64 * scale).sum::<f64>() / t;
            sum += row
                .iter()
                .map(|&c| (mean - c as f64 * scale).powi(2))
                .sum::<f64>();
        }
        if self.threads == 0 {
            0.0
        } else {
            sum / (t * t)
        }
    }
}

/// C_A and C_H (OPT eq. 1-3) of `threads` threads, as [`CommMatrix`] gives them, from the
/// pairs alone, each once with its events: a row's variance is E\[x^2\] - E\[x\]^2, and a slice
/// has few non-zero pairs among many.
#[must_use]
pub fn amount_and_heterogeneity(threads: u32, pairs: &[(u32, u32, u64)]) -> (f64, f64) {
    let mut sums: HashMap<u32, (f64, f64)> = HashMap::new();
    let max = pairs.iter().map(|pair| pair.2).max().unwrap_or(0);
    if max == 0 {
        return (0.0, 0.0);
    }
    for &(i, j, events) in pairs {
        let scaled = events as f64 * 100.0 / max as f64;
        for thread in [i, j] {
            let sum = sums.entry(thread).or_default();
            sum.0 += scaled;
            sum.1 += scaled * scaled;
        }
    }
    let t = f64::from(threads).max(sums.len() as f64);
    let variances: f64 = sums.values().map(|(s, q)| q / t - (s / t).powi(2)).sum();
    let total: f64 = pairs.iter().map(|pair| pair.2 as f64).sum();
    (2.0 * total / (t * t), (variances / t).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chosen_threads_keep_what_they_share() {
        let mut matrix = CommMatrix::new(4);
        for (i, j, events) in [(0, 1, 5), (1, 3, 7), (2, 3, 9)] {
            matrix.add(i, j, events);
        }
        let among = matrix.among(&[false, true, true, true]);
        let cells = [(0, 1), (0, 2), (1, 2), (2, 2)].map(|(i, j)| among.get(i, j));
        assert_eq!((among.threads(), cells), (3, [0, 7, 9, 0]));
    }

    #[test]
    fn pairs_give_what_the_matrix_gives() {
        let pairs = [(0, 1, 5), (0, 2, 7), (1, 3, 100), (2, 3, 1)];
        let mut matrix = CommMatrix::new(6);
        for (i, j, events) in pairs {
            matrix.add(i as usize, j as usize, events);
        }
        let (amount, heterogeneity) = amount_and_heterogeneity(6, &pairs);
        assert!((amount - matrix.amount()).abs() < 1e-9);
        assert!((heterogeneity - matrix.heterogeneity()).abs() < 1e-9);
        assert_eq!(amount_and_heterogeneity(0, &[]), (0.0, 0.0));
    }
}
