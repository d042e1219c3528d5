//! `--sample`: what a share of the slices says of the whole, against a full trace.
use hither_profile::Profile;

use crate::oracle::correlation;
use crate::run::run;

const LINE: &str = "stencil2d 256 12000";
const RUNS: usize = 10;

fn total(p: &Profile) -> f64 {
    p.threads.iter().map(|t| t.accesses() as f64).sum()
}

/// Totals are unbiased, so their mean over some runs is close to the truth, and each run
/// finds the pattern. Each run makes thousands of traced blocks of the same kind.
#[test]
fn a_sample_stands_for_the_whole() {
    let traced = |options: &str| run(LINE).with(options).profile();
    let whole = traced("--slice 10ms");
    let mut sum = 0.0;
    for _ in 0..RUNS {
        let p = traced("--sample=0.1");
        let skipped = p.slices.iter().filter(|s| !s.traced).count();
        assert!(
            skipped > p.slices.len() / 2,
            "{skipped} of {} slices skipped",
            p.slices.len()
        );
        assert!(p.meta.sampling_error > 0.0);
        let like = correlation(&p.matrix(), &whole.matrix());
        assert!(like >= 0.95, "correlation {like}");
        sum += total(&p) / total(&whole);
    }
    let mean = sum / RUNS as f64;
    assert!((mean - 1.0).abs() <= 0.05, "totals are {mean} of the truth");
}
