//! `--sample`: what a share of the slices says of the whole, against a full trace.
use hither_profile::Profile;

use crate::oracle::correlation;
use crate::run::run;

const LINE: &str = "stencil2d 256 40000";
const RUNS: usize = 4;

fn total(p: &Profile) -> f64 {
    p.threads.iter().map(|t| t.accesses() as f64).sum()
}

/// Each run has the totals and finds the pattern, from less than two thirds of the slices.
#[test]
fn a_sample_stands_for_the_whole() {
    let traced = |options: &str| run(LINE).with(options).profile();
    let whole = traced("--slice 10ms");
    for _ in 0..RUNS {
        let p = traced("--sample=0.1");
        let skipped = p.slices.iter().filter(|s| !s.traced).count();
        assert!(
            skipped > p.slices.len() / 3,
            "{skipped} of {} slices skipped",
            p.slices.len()
        );
        assert!(p.meta.sampling_error > 0.0);
        let like = correlation(&p.matrix(), &whole.matrix());
        assert!(like >= 0.95, "correlation {like}");
        let share = total(&p) / total(&whole);
        assert!(
            (share - 1.0).abs() <= 0.05,
            "totals are {share} of the truth"
        );
    }
}

/// Of a short run all slices are traced, of a longer one more than the share asked for.
#[test]
fn a_share_of_few_slices_is_not_taken() {
    let traced = |options: &str| run("stencil2d 128 100").with(options).profile();
    // Long slices: on a busy machine the run may take seconds.
    let whole = traced("--slice 1s");
    let p = traced("--sample --slice 1s");
    assert!(p.slices.len() < 50, "{} slices", p.slices.len());
    assert!(p.slices.iter().all(|s| s.traced));
    assert_eq!(p.meta.sampling_error, 0.0);
    let share = total(&p) / total(&whole);
    assert!(
        (share - 1.0).abs() < 0.01,
        "totals are {share} of the truth"
    );
    assert_eq!(p.meta.limits, whole.meta.limits);
}
