//! What a placement asks to be followed by, and a program that is really counted.
use super::phase;
use crate::run::progress::follow;
use hither_profile::Placement;

#[test]
fn a_single_phase_is_not_followed() {
    let mut placement = Placement::default();
    assert!(follow(&placement, false).is_none());
    placement.phases = vec![phase(0, [0; 4])];
    assert!(follow(&placement, false).is_none());
}

#[test]
fn without_barriers_the_user_hears_that_it_goes_by_time() {
    let placement = Placement {
        phases: vec![phase(0, [0; 4]), phase(1, [0; 4])],
        ..Placement::default()
    };
    let mut progress = follow(&placement, false).expect("phases");
    assert!(!progress.wants_mappings());
    progress.program_started(1).expect("started");
    progress.active_phases(2_000_000_000);
    assert!(progress.is_over());
    assert_eq!(
        progress.note().as_deref(),
        Some("Phases went by time, as in the traced run, which was slower: changes come late or never: the traced run passed no barrier.")
    );
}

#[test]
fn intervals_are_those_that_map_was_given() {
    let mut placement = Placement::default();
    let given = |p: &Placement| p.policy.phase_intervals().map(|given| given.pages);
    assert_eq!(given(&placement), Ok(10_000_000_000));
    let options = &mut placement.policy.options;
    options.insert("page-interval".to_owned(), "250000000ns".to_owned());
    assert_eq!(given(&placement), Ok(250_000_000));
    let options = &mut placement.policy.options;
    options.insert("page-interval".to_owned(), "a while".to_owned());
    assert!(given(&placement).is_err());
}
