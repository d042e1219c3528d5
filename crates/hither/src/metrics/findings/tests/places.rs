//! Where pages lie, who communicates and when.
use super::Made;
use crate::metrics::findings::fits_in_caches;
use hither_profile::*;

/// Equation 7 of OPT: data that is larger than the caches together does not fit.
#[test]
fn what_is_as_large_as_the_caches_fits() {
    let mut made = Made::new(2).pages(10, 0, &[1, 1]);
    made.cache_bytes = 10 * PAGE_SIZE;
    let found = made.finds(fits_in_caches::find);
    assert_eq!(found.kind, FindingKind::FitsInCaches);
    made.cache_bytes -= 1;
    made.finds_nothing(fits_in_caches::find);
    // Unknown caches.
    made.cache_bytes = 0;
    made.finds_nothing(fits_in_caches::find);
}
