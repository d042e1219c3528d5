use super::*;
use proptest::prelude::*;

#[test]
fn ageing_takes_a_quarter() {
    let mut matrix = SharingMatrix::default();
    for _ in 0..4 {
        matrix.share(SharerId(1), SharerId(0));
    }
    let mut check = |expected: u32| {
        assert_eq!(matrix.get(SharerId(0), SharerId(1)), expected);
        matrix.age(0.75);
    };
    // 4096 - 1024, 3072 - 768, 2304 - 576, 1728 - 432, 1296 - 324.
    [4096, 3072, 2304, 1728, 1296, 972]
        .into_iter()
        .for_each(&mut check);
    for _ in 0..40 {
        matrix.age(0.75);
    }
    // M - (M >> 2) never takes the last three away; a pair that faint does not count.
    assert_eq!(matrix.get(SharerId(0), SharerId(1)), 3);
    assert_eq!(events(&matrix), []);
    matrix.share(SharerId(1), SharerId(0));
    matrix.age(1.0);
    assert_eq!(matrix.get(SharerId(0), SharerId(1)), 1027);
    matrix.age(0.0);
    assert_eq!(matrix.get(SharerId(0), SharerId(1)), 0);
}

#[test]
fn a_matrix_grows_and_forgets() {
    let mut matrix = SharingMatrix::default();
    assert_eq!(matrix.get(SharerId(900), SharerId(3)), 0);
    matrix.share(SharerId(2), SharerId(3));
    matrix.share(SharerId(3), SharerId(40));
    matrix.share(SharerId(5), SharerId(5));
    assert_eq!(events(&matrix), [(2, 3, 1), (3, 40, 1)]);
    assert_eq!(
        (matrix.sharers(), matrix.side(), matrix.events()),
        (41, 64, 2)
    );
    matrix.clear(SharerId(40));
    matrix.clear(SharerId(1000));
    assert_eq!(events(&matrix), [(2, 3, 1)]);
}

proptest! {
    /// Whatever is shared: the matrix is symmetric and its pairs are its cells.
    #[test]
    fn matrices_are_symmetric(pairs in prop::collection::vec((0u16..40, 0u16..40), 0..60)) {
        let mut matrix = SharingMatrix::default();
        for &(a, b) in &pairs {
            matrix.share(SharerId(a), SharerId(b));
        }
        let different = pairs.iter().filter(|(a, b)| a != b).count() as u64;
        prop_assert_eq!(matrix.events(), different);
        let sum: u64 = matrix.pairs().map(|(_, _, w)| u64::from(w)).sum();
        prop_assert_eq!(sum, different * u64::from(EVENT_WEIGHT));
        for (a, b, weight) in matrix.pairs() {
            prop_assert_eq!(matrix.get(b, a), weight);
        }
    }
}
