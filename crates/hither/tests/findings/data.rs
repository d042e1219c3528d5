//! Findings about who uses which pages of a structure.
use crate::run::traced;

#[test]
fn a_workload_can_be_traced_and_judged() {
    let is = traced("is static 12 2");
    assert!(is.profile.threads.len() >= 4);
    is.findings();
}
