//! What is said of several structures, and several times of one.
use super::Made;
use crate::metrics::findings::find_all;
use hither_profile::*;
use std::collections::HashSet;

/// Structures that all threads use alike, touched first by thread 0.
fn shared(names: &[&str]) -> Made {
    let made = |made: Made, name: &&str| made.used(64, 0, &[10; 4], &[10; 4]).named(name, 64);
    names.iter().fold(Made::new(4), made)
}

fn interleaving(names: &str) -> String {
    format!(
        "hither map app.hither{names} -o app.place.json\nhither run -p app.place.json -- ./app 12"
    )
}

/// Who deals out one structure by a command leaves the other where it is, by either of the two.
#[test]
fn one_command_deals_out_all_structures_and_is_given_once() {
    let found = shared(&["a", "b"]).find(find_all);
    let kinds = |kind| found.iter().filter(|f| f.kind == kind).count();
    assert_eq!(kinds(FindingKind::FirstTouch), 2);
    assert_eq!(kinds(FindingKind::SharedByAll), 2);
    let fixes: Vec<&SuggestedFix> = found.iter().flat_map(|f| &f.fixes).collect();
    let given: Vec<&SuggestedFix> = (fixes.iter().copied())
        .filter(|fix| fix.copy.contains("--structure"))
        .collect();
    let [given] = given[..] else {
        panic!("{found:#?}")
    };
    let both = " --structure a=interleave --structure b=interleave";
    assert_eq!(given.copy, interleaving(both));
    assert!(
        given.what.ends_with(" The command does so for b as well."),
        "{given:?}"
    );
    let copied: Vec<&String> = fixes
        .iter()
        .map(|f| &f.copy)
        .filter(|c| !c.is_empty())
        .collect();
    let once: HashSet<&String> = copied.iter().copied().collect();
    assert_eq!(once.len(), copied.len(), "{copied:#?}");
    let alone = shared(&["a"]).find(find_all);
    let alone = alone.iter().flat_map(|f| &f.fixes);
    let alone: Vec<&String> = alone
        .map(|f| &f.copy)
        .filter(|c| c.contains("--structure"))
        .collect();
    assert_eq!(alone, [&interleaving(" --structure a=interleave")]);
}

/// A finding whose repair was given before names the finding that gives it.
#[test]
fn what_is_given_before_is_referred_to() {
    let found = shared(&["a", "b"]).find(find_all);
    let kinds: Vec<FindingKind> = found.iter().map(|f| f.kind).collect();
    assert_eq!(
        kinds,
        [
            FindingKind::NodeImbalance,
            FindingKind::FirstTouch,
            FindingKind::FirstTouch,
            FindingKind::SharedByAll,
            FindingKind::SharedByAll,
        ]
    );
    let what = |finding: usize| -> Vec<&str> {
        found[finding]
            .fixes
            .iter()
            .map(|f| f.what.as_str())
            .collect()
    };
    assert_eq!(
        what(2),
        ["What is proposed with findings 1 and 2 goes for this too."]
    );
    assert!(what(3)[1].ends_with(" (see finding 2)."), "{:?}", what(3));
    for (at, finding) in found.iter().enumerate() {
        assert!(!finding.evidence.is_empty(), "{at}");
    }
}

/// The share of the run is said of a structure once.
#[test]
fn evidence_about_a_structure_is_not_repeated() {
    let made = shared(&["a"]).fetched(64, 6400);
    let share = |f: &&Finding| {
        f.evidence
            .iter()
            .any(|e| e.contains("of the run's fetches (lines"))
    };
    // The object's fetches are counted when it is named.
    let made = made.named("a", 64);
    let found = made.find(find_all);
    let about = |kind| found.iter().filter(move |f| f.kind == kind);
    assert!(about(FindingKind::SharedByAll).count() > 0, "{found:#?}");
    assert!(about(FindingKind::FirstTouch).count() > 0, "{found:#?}");
    let objects: HashSet<_> = found.iter().filter(share).map(|f| f.object).collect();
    assert_eq!(found.iter().filter(share).count(), objects.len());
    assert!(!objects.is_empty(), "{found:#?}");
}
