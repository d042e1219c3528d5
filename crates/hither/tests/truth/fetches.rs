//! How often threads bring lines into a private cache, against arithmetic.
use crate::run::run;
use crate::view::named;
use hither_profile::Profile;

const SWEEPS: u64 = 10;
const ROUNDS: u64 = 50;

fn fetches(profile: &Profile, name: &str) -> u64 {
    named(profile, name).iter().map(|(_, o)| o.fetches).sum()
}

#[track_caller]
fn check(profile: &Profile, name: &str, expected: u64, off: f64) {
    let found = fetches(profile, name);
    let far = (found as f64 - expected as f64).abs() > off * expected as f64;
    assert!(!far, "{name}: {found} fetches, expected {expected}");
}

#[test]
fn fetches_are_what_a_private_cache_misses() {
    let profile = run(&format!("fetches {SWEEPS} {ROUNDS}")).profile();
    check(&profile, "swept", 65_536 * SWEEPS, 0.02);
    check(&profile, "kept", 4096, 0.1);
    check(&profile, "passed", 1024 * (ROUNDS + 1), 0.15);
    let flag = named(&profile, "flag")[0].1;
    assert!(flag.reads > 100_000, "{} reads", flag.reads);
    assert!(flag.fetches < 500, "{} fetches", flag.fetches);
    let of_pages: u64 = profile.pages.iter().map(|p| p.fetches).sum();
    let of_objects: u64 = profile.objects.iter().map(|o| o.fetches).sum();
    assert!(
        of_pages.abs_diff(of_objects) <= of_pages / 100,
        "{of_pages} {of_objects}"
    );
}

#[test]
fn a_larger_cache_keeps_what_is_swept() {
    let profile = run(&format!("fetches {SWEEPS} 1"))
        .with("--cache 8M")
        .profile();
    check(&profile, "swept", 65_536, 0.02);
}

#[test]
fn the_oracle_has_no_fetches() {
    let profile = run("fetches 1 1").with("--oracle").profile();
    assert!(!profile.meta.has_fetches());
    assert_eq!(fetches(&profile, "swept"), 0);
}
