//! Metrics of the communication matrix: OPT eq. 1-3, Locality and Balance eq. 1-4, kMAF eq. 1.
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

/// All metrics of a matrix, for `seconds` of run time and `accesses` of all threads.
#[must_use]
pub fn communication_metrics(
    matrix: &CommMatrix,
    seconds: f64,
    accesses: u64,
) -> CommunicationMetrics {
    let amount = matrix.amount();
    let over = |a: f64, b: f64| if b > 0.0 { a / b } else { 0.0 };
    CommunicationMetrics {
        events: matrix.total(),
        heterogeneity: matrix.heterogeneity(),
        heterogeneity_pairs: pair_heterogeneity(matrix),
        heterogeneity_raw: matrix.raw_heterogeneity(),
        amount,
        amount_per_second: over(amount, seconds),
        balance: percent_imbalance((0..matrix.threads()).map(|i| matrix.row(i).iter().sum())),
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
    let cells = (threads - 1) as f64;
    let mut sum = 0.0;
    for i in 0..threads {
        let others = || {
            let row = matrix.row(i).iter().enumerate();
            row.filter(|&(j, _)| j != i)
                .map(|(_, &c)| c as f64 * 100.0 / max as f64)
        };
        let mean = others().sum::<f64>() / cells;
        sum += others().map(|c| (mean - c).powi(2)).sum::<f64>() / cells;
    }
    sum / threads as f64
}
