//! The communication matrix and the two metrics that are stored per slice.
use std::collections::HashMap;

/// Communication events between threads: symmetric, zero diagonal. Most pairs of many threads never
/// communicate, so only cells that are not zero take memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CommMatrix {
    /// Of each thread its partners in order, and the events with each.
    rows: Vec<Vec<(u32, u64)>>,
}

impl CommMatrix {
    /// An empty matrix of `threads` x `threads` cells.
    #[must_use]
    pub fn new(threads: usize) -> Self {
        CommMatrix {
            rows: vec![Vec::new(); threads],
        }
    }

    /// Number of threads T.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.rows.len()
    }

    /// Events between `i` and `j`.
    ///
    /// # Panics
    /// If `i` is not below [`CommMatrix::threads`].
    #[must_use]
    pub fn get(&self, i: usize, j: usize) -> u64 {
        let row = &self.rows[i];
        let at = row.binary_search_by_key(&j, |cell| cell.0 as usize);
        at.map_or(0, |at| row[at].1)
    }

    /// Adds events to both cells of the pair; a pair of a thread with itself is ignored.
    ///
    /// # Panics
    /// If either is not below [`CommMatrix::threads`].
    pub fn add(&mut self, i: usize, j: usize, events: u64) {
        if i != j && events > 0 {
            self.add_to_cell(i, j, events);
            self.add_to_cell(j, i, events);
        }
    }

    fn add_to_cell(&mut self, i: usize, j: usize, events: u64) {
        let row = &mut self.rows[i];
        match row.binary_search_by_key(&j, |cell| cell.0 as usize) {
            Ok(at) => row[at].1 += events,
            Err(at) => row.insert(at, (j as u32, events)),
        }
    }

    /// The matrix of those threads alone for which `chosen` is true, in order.
    #[must_use]
    pub fn among(&self, chosen: &[bool]) -> CommMatrix {
        let is_chosen = |t: usize| chosen.get(t).copied().unwrap_or(false);
        let mut numbers = vec![0; self.threads()];
        let mut kept = 0;
        for (t, number) in numbers.iter_mut().enumerate() {
            *number = kept;
            kept += u32::from(is_chosen(t));
        }
        let row = |t: usize| {
            let cells = self.rows[t].iter();
            let cells = cells.filter(|&&(j, _)| is_chosen(j as usize));
            cells
                .map(|&(j, events)| (numbers[j as usize], events))
                .collect()
        };
        let rows = (0..self.threads()).filter(|&t| is_chosen(t)).map(row);
        CommMatrix {
            rows: rows.collect(),
        }
    }

    /// The cells of row `i` that are not zero: partners in order, and the events with each.
    #[must_use]
    pub fn row(&self, i: usize) -> &[(u32, u64)] {
        &self.rows[i]
    }

    /// Events of a thread with all others.
    #[must_use]
    pub fn row_sum(&self, i: usize) -> u64 {
        self.rows[i].iter().map(|cell| cell.1).sum()
    }

    /// The pairs i < j that communicate, in order, with their events.
    pub fn pairs(&self) -> impl Iterator<Item = (u32, u32, u64)> + '_ {
        (0..).zip(&self.rows).flat_map(|(i, row)| {
            let above = row.iter().filter(move |cell| cell.0 > i);
            above.map(move |&(j, events)| (i, j, events))
        })
    }

    /// Largest cell.
    #[must_use]
    pub fn max(&self) -> u64 {
        self.cells().max().unwrap_or(0)
    }

    /// Sum over pairs i < j: each event once.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.cells().sum::<u64>() / 2
    }

    /// C_A (OPT eq. 3): mean events per cell over T² cells; 0 for T = 0.
    #[must_use]
    pub fn amount(&self) -> f64 {
        let t = self.threads() as f64;
        if t == 0.0 {
            return 0.0;
        }
        2.0 * self.total() as f64 / (t * t)
    }

    /// C_H (OPT eq. 1 and 2): mean over rows of the variance of the row, after scaling
    /// the largest cell to 100. 0 (all alike) to 2500; 0 when nothing communicates.
    #[must_use]
    pub fn heterogeneity(&self) -> f64 {
        let max = self.max();
        if max == 0 {
            return 0.0;
        }
        self.mean_row_variance(100.0 / max as f64)
    }

    /// Unnormalised heterogeneity (kMAF eq. 1): as [`CommMatrix::heterogeneity`] without scaling.
    #[must_use]
    pub fn raw_heterogeneity(&self) -> f64 {
        self.mean_row_variance(1.0)
    }

    /// Cells that are not zero, each pair twice.
    fn cells(&self) -> impl Iterator<Item = u64> + '_ {
        self.rows.iter().flatten().map(|cell| cell.1)
    }

    fn mean_row_variance(&self, scale: f64) -> f64 {
        let t = self.threads() as f64;
        let squares = |i: usize| {
            let mean = self.row_sum(i) as f64 * scale / t;
            let row = self.row(i);
            let off = row.iter().map(|&(_, c)| (mean - c as f64 * scale).powi(2));
            off.sum::<f64>() + (t - row.len() as f64) * mean * mean
        };
        if t == 0.0 {
            return 0.0;
        }
        (0..self.threads()).map(squares).sum::<f64>() / (t * t)
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
