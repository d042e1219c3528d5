//! What a placement asks to be followed by, and a program that is really counted.
use super::phase;
use crate::run::progress::{follow, processor_time};
use hither_profile::Placement;
use std::time::Duration;

/// A look that had to wait 100 ms for a processor was followed by none for 20 s, in which phases began.
#[test]
fn waiting_for_a_processor_puts_off_no_look() {
    let wait = Duration::from_millis(100);
    let (_, spent) = processor_time(|| std::thread::sleep(wait));
    assert!(spent < 20_000_000, "{spent}");
}

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
    progress.program_started();
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
