use super::close;
use crate::metrics::communication::{
    communication_metrics, pair_heterogeneity, percent_imbalance, residual_heterogeneity,
};
use hither_profile::CommMatrix;
use proptest::prelude::*;

fn matrix(threads: usize, cells: &[(usize, usize, u64)]) -> CommMatrix {
    let mut m = CommMatrix::new(threads);
    for &(i, j, events) in cells {
        m.add(i, j, events);
    }
    m
}

fn uniform(threads: usize) -> CommMatrix {
    let pairs = (0..threads).flat_map(|i| (i + 1..threads).map(move |j| (i, j, 7)));
    matrix(threads, &pairs.collect::<Vec<_>>())
}

/// M = 0 10 0 / 10 0 5 / 0 5 0, M_norm = 0 100 0 / 100 0 50 / 0 50 0.
/// Row 1: mean 100/3, squares 2 (100/3)^2 + (200/3)^2 = 60000/9, variance 20000/9.
/// Row 2: mean 50, squares 2500 + 2500, variance 5000/3.
/// Row 3: mean 50/3, squares 2 (50/3)^2 + (100/3)^2 = 15000/9, variance 5000/9.
/// C_H = (20000/9 + 15000/9 + 5000/9) / 3 = 40000/27.
#[test]
fn opt_1_2_heterogeneity() {
    let m = matrix(3, &[(0, 1, 10), (1, 2, 5)]);
    let c = communication_metrics(&m, 1.0, 1);
    close(c.heterogeneity, 40000.0 / 27.0);
    // kMAF 1, without scaling by 10: a hundredth of it.
    close(c.heterogeneity_raw, 400.0 / 27.0);
}

/// The same M: rows without the diagonal are (100, 0), (100, 50), (0, 50); their
/// variances 2500, 625, 625; the mean 3750/3 = 1250.
#[test]
fn heterogeneity_between_pairs() {
    close(
        pair_heterogeneity(&matrix(3, &[(0, 1, 10), (1, 2, 5)])),
        1250.0,
    );
}

/// Pairs 0-1 and 2-3 of four: a[i] a[j] is a third of 100, so each row has one cell 200/3 above it, and
/// 2 (200/3)^2 / 3 = 80000/27 is left. A master that shares with three, and threads of activities 1 2 3
/// 4, leave nothing, though pairs differ; nor does a single pair that shares less than all others leave much.
#[test]
fn what_placement_of_pairs_can_use() {
    close(
        residual_heterogeneity(&matrix(4, &[(0, 1, 10), (2, 3, 10)]), &[]),
        80_000.0 / 27.0,
    );
    let check = |cells: &[(usize, usize, u64)], most: f64| {
        let m = matrix(8, cells);
        let (residual, pairs) = (residual_heterogeneity(&m, &[]), pair_heterogeneity(&m));
        assert!(residual <= most && pairs >= 100.0, "{residual} of {pairs}");
    };
    let star: Vec<_> = (1..8).map(|j| (0, j, 10)).collect();
    check(&star, 0.2); // the fit comes closer with each round
    let pairs = (0..8usize).flat_map(|i| (i + 1..8).map(move |j| (i, j)));
    let active = pairs
        .clone()
        .map(|(i, j)| (i, j, ((i + 1) * (j + 1)) as u64));
    check(&active.collect::<Vec<_>>(), 0.01);
    let but_opposite = pairs.map(|(i, j)| (i, j, if j == i + 4 { 60 } else { 100 }));
    check(&but_opposite.collect::<Vec<_>>(), 70.0);
}

/// All alike: C_H is 10^4 (T-1)/T^2 (10^4 x 3/16 = 1875, 10^4 x 63/4096 = 153.8), although
/// there is nothing to choose; between pairs it is 0.
#[test]
fn the_diagonal_makes_uniform_look_heterogeneous() {
    let check = |threads: usize, want: f64| {
        let m = uniform(threads);
        close(m.heterogeneity(), want);
        close(pair_heterogeneity(&m), 0.0);
        close(residual_heterogeneity(&m, &[]), 0.0);
    };
    check(2, 2500.0);
    check(4, 1875.0);
    check(64, 10_000.0 * 63.0 / 4096.0);
}

/// Sum of cells 2 (10 + 5) = 30, T^2 = 9: C_A = 30/9. In 2 s: 15/9 per second.
/// 60 accesses: R_comm = (30/9) / 60 = 1/18.
#[test]
fn opt_3_amount_and_locality_balance_4_ratio() {
    let c = communication_metrics(&matrix(3, &[(0, 1, 10), (1, 2, 5)]), 2.0, 60);
    close(c.amount, 30.0 / 9.0);
    close(c.amount_per_second, 15.0 / 9.0);
    close(c.ratio, 1.0 / 18.0);
    assert_eq!(c.events, 15);
}

/// CommV = (10, 15, 5), mean 10: B_comm = (15/10 - 1) 100 % = 50 %.
#[test]
fn locality_balance_2_balance() {
    let c = communication_metrics(&matrix(3, &[(0, 1, 10), (1, 2, 5)]), 1.0, 1);
    close(c.balance, 50.0);
}

/// 1, 1, 4: mean 2, (4/2 - 1) 100 % = 100 %.
#[test]
fn load_balance() {
    let check = |values: &[u64], want: f64| close(percent_imbalance(values.iter().copied()), want);
    check(&[1, 1, 4], 100.0);
    check(&[5, 5], 0.0);
    check(&[0, 0], 0.0);
    check(&[], 0.0);
    check(&[u64::MAX, u64::MAX], 0.0);
}

#[test]
fn nothing_communicates() {
    for threads in [0, 1, 5] {
        let c = communication_metrics(&CommMatrix::new(threads), 0.0, 0);
        assert_eq!(c, Default::default());
    }
}

fn matrices() -> impl Strategy<Value = Vec<Vec<u64>>> {
    (1usize..8).prop_flat_map(|t| prop::collection::vec(prop::collection::vec(0u64..1000, t), t))
}

fn from_rows(rows: &[Vec<u64>], order: &[usize], scale: u64) -> CommMatrix {
    let mut m = CommMatrix::new(rows.len());
    for i in 0..rows.len() {
        for j in 0..i {
            m.add(order[i], order[j], rows[i][j] * scale);
        }
    }
    m
}

proptest! {
    #[test]
    fn scale_and_names_of_threads_do_not_matter(rows in matrices(), scale in 1u64..1000) {
        let same: Vec<usize> = (0..rows.len()).collect();
        let reversed: Vec<usize> = (0..rows.len()).rev().collect();
        let a = communication_metrics(&from_rows(&rows, &same, 1), 1.0, 1);
        let b = communication_metrics(&from_rows(&rows, &same, scale), 1.0, 1);
        let c = communication_metrics(&from_rows(&rows, &reversed, 1), 1.0, 1);
        close(a.heterogeneity, b.heterogeneity);
        close(a.heterogeneity_pairs, b.heterogeneity_pairs);
        close(a.balance, b.balance);
        close(a.amount * scale as f64, b.amount);
        close(a.heterogeneity, c.heterogeneity);
        close(a.heterogeneity_raw, c.heterogeneity_raw);
        close(a.balance, c.balance);
        close(a.amount, c.amount);
    }

    #[test]
    fn values_stay_in_range(rows in matrices()) {
        let same: Vec<usize> = (0..rows.len()).collect();
        let c = communication_metrics(&from_rows(&rows, &same, 1), 1.0, 1);
        let most = 2500.0 + 1e-9;
        prop_assert!((0.0..=most).contains(&c.heterogeneity));
        prop_assert!((0.0..=most).contains(&c.heterogeneity_pairs));
        prop_assert!(c.balance >= 0.0 && c.amount >= 0.0);
    }
}
