//! Metrics of the communication matrix: OPT eq. 1-3, Locality and Balance eq. 1-4, kMAF eq. 1.
use super::thresholds::h_min;
use hither_profile::CommMatrix;
use serde::Serialize;

/// Metrics of one communication matrix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct CommunicationMetrics {
    /// Communication events, each counted once.
    pub events: u64,
    /// C_H (OPT eq. 2), and H_comm (Locality and Balance eq. 1), which is the same formula.
    pub heterogeneity: f64,
    /// C_H over the pairs of different threads only, see [`pair_heterogeneity`].
    pub heterogeneity_pairs: f64,
    /// What of it is left beside how much each thread shares, see [`residual_heterogeneity`].
    pub heterogeneity_residual: f64,
    /// Heterogeneity without normalisation (kMAF eq. 1).
    pub heterogeneity_raw: f64,
    /// C_A (OPT eq. 3), and A_comm (Locality and Balance eq. 3).
    pub amount: f64,
    /// C_A per second: what OPT 6.2.2 compares with A_min.
    pub amount_per_second: f64,
    /// B_comm (Locality and Balance eq. 2) in per cent.
    pub balance: f64,
    /// R_comm (Locality and Balance eq. 4).
    pub ratio: f64,
}

impl CommunicationMetrics {
    /// Whether some pairs of so many threads share so much more than others that it matters which are close: C_H,
    /// between pairs and beside how much each shares, against H_min (OPT 6.2.2).
    #[must_use]
    pub fn tells_pairs_apart(&self, threads: usize) -> bool {
        let all = [
            self.heterogeneity,
            self.heterogeneity_pairs,
            self.heterogeneity_residual,
        ];
        all.iter().all(|c_h| *c_h >= h_min(threads))
    }
}

/// The cells i < j of a matrix that are not zero: (i, j, events).
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct UpperTriangle(pub Vec<(u32, u32, u64)>);

impl UpperTriangle {
    /// The cells of a matrix that are not zero.
    #[must_use]
    pub fn from_matrix(matrix: &CommMatrix) -> Self {
        UpperTriangle(matrix.pairs().collect())
    }
}

/// All metrics of a matrix, for `seconds` of run time and `accesses` of all threads.
#[must_use]
pub fn communication_metrics(
    matrix: &CommMatrix,
    seconds: f64,
    accesses: u64,
) -> CommunicationMetrics {
    metrics_beside(matrix, &[], (seconds, accesses))
}

/// The same where pairs of threads, in order, had no time to share: they never ran at the same time.
#[must_use]
pub fn metrics_beside(
    matrix: &CommMatrix,
    apart: &[(u32, u32)],
    (seconds, accesses): (f64, u64),
) -> CommunicationMetrics {
    let amount = matrix.amount();
    let over = |a: f64, b: f64| if b > 0.0 { a / b } else { 0.0 };
    CommunicationMetrics {
        events: matrix.total(),
        heterogeneity: matrix.heterogeneity(),
        heterogeneity_pairs: pair_heterogeneity(matrix),
        heterogeneity_residual: residual_heterogeneity(matrix, apart),
        heterogeneity_raw: matrix.raw_heterogeneity(),
        amount,
        amount_per_second: over(amount, seconds),
        balance: percent_imbalance((0..matrix.threads()).map(|i| matrix.row_sum(i))),
        ratio: over(amount, accesses as f64),
    }
}

/// (max / mean - 1) * 100 %: B_comm (Locality and Balance eq. 2) of communication per
/// thread, load balance of instructions per thread. 0 when there is nothing to balance.
pub fn percent_imbalance(values: impl Iterator<Item = u64>) -> f64 {
    let (mut max, mut sum, mut count) = (0u64, 0.0, 0u64);
    for v in values {
        max = max.max(v);
        sum += v as f64;
        count += 1;
    }
    if sum == 0.0 {
        return 0.0;
    }
    // Rounding must not make a perfect balance negative.
    ((max as f64 * count as f64 / sum - 1.0) * 100.0).max(0.0)
}

/// C_H with the diagonal left out: mean over rows of the variance of the T - 1 cells j != i,
/// after scaling the largest cell to 100.
///
/// OPT's C_H includes the zero diagonal, so uniform sharing does not give 0 but 10^4 (T-1)/T^2:
/// 1875 with 4 threads, 154 with 64, above H_min. This value is 0 for them.
#[must_use]
pub fn pair_heterogeneity(matrix: &CommMatrix) -> f64 {
    let (threads, max) = (matrix.threads(), matrix.max());
    if threads < 2 || max == 0 {
        return 0.0;
    }
    let (cells, scale) = ((threads - 1) as f64, 100.0 / max as f64);
    let variance = |i: usize| {
        let mean = matrix.row_sum(i) as f64 / cells;
        let row = matrix.row(i);
        let off = row.iter().map(|&(_, cell)| (cell as f64 - mean).powi(2));
        (off.sum::<f64>() + (cells - row.len() as f64) * mean * mean) / cells
    };
    let sum: f64 = (0..threads).map(variance).sum();
    sum / threads as f64 * scale * scale
}

/// What heterogeneity is left where each thread shares with all alike, one more than the other: twice the
/// upper semivariance (ours), as it is pairs above the rest that are worth being close.
///
/// ```text
///   2 x mean over i of the mean over j != i of max(0, M[i][j] - a[i] a[j])^2 (100 / max M)^2
/// ```
/// with a such that sum over j != i of a\[i\] a\[j\] is the sum of row i (quasi-independence, Goodman, JASA
/// 1968). A master that shares with all, and threads that got more of the work, leave 0; pairs and
/// neighbours leave most of it. With fewer than four threads there is always such an a: then it is C_H
/// between pairs. Pairs that are `apart`, in order, have no cell: threads that follow others share
/// nothing with them, which is no choice of partners.
#[must_use]
pub fn residual_heterogeneity(matrix: &CommMatrix, apart: &[(u32, u32)]) -> f64 {
    if matrix.threads() < 4 || matrix.max() == 0 {
        let pairs = matrix.threads() * matrix.threads().saturating_sub(1) / 2;
        // A single pair leaves no choice.
        let none = !apart.is_empty() && pairs <= apart.len() + 1;
        return if none {
            0.0
        } else {
            pair_heterogeneity(matrix)
        };
    }
    let (threads, scale) = (matrix.threads() as f64, 100.0 / matrix.max() as f64);
    let activity = activity(matrix, apart);
    let together = |pair: &(u32, u32, u64)| apart.binary_search(&(pair.0, pair.1)).is_err();
    // Each pair is in two rows.
    let above = matrix.pairs().filter(together).map(|(i, j, events)| {
        let fitted = activity[i as usize] * activity[j as usize];
        2.0 * (events as f64 - fitted).max(0.0).powi(2)
    });
    2.0 * above.sum::<f64>() / ((threads - 1.0) * threads) * scale * scale
}

/// a of [`residual_heterogeneity`].
fn activity(matrix: &CommMatrix, apart: &[(u32, u32)]) -> Vec<f64> {
    let rows = (0..matrix.threads()).map(|i| matrix.row_sum(i) as f64);
    let mut rows: Vec<f64> = rows.collect();
    for &(i, j) in apart {
        let events = matrix.get(i as usize, j as usize) as f64;
        rows[i as usize] -= events;
        rows[j as usize] -= events;
    }
    let scale = rows.iter().sum::<f64>().max(1.0).sqrt();
    let mut a: Vec<f64> = rows.iter().map(|row| row / scale).collect();
    let mut gone = vec![0.0; a.len()];
    for _ in 0..FITTING_ROUNDS {
        let sum: f64 = a.iter().sum();
        gone.fill(0.0);
        for &(i, j) in apart {
            gone[i as usize] += a[j as usize];
            gone[j as usize] += a[i as usize];
        }
        for ((a, row), gone) in a.iter_mut().zip(&rows).zip(&gone) {
            let others = sum - *a - gone;
            // The geometric mean of the last value and the one that fits alone, lest it swings.
            *a = if others > 0.0 {
                (row * *a / others).sqrt()
            } else {
                0.0
            };
        }
    }
    a
}

/// Enough for four digits, but where one thread has all of it.
const FITTING_ROUNDS: usize = 200;
