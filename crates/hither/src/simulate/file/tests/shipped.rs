//! The shipped files.
use super::*;

#[test]
fn every_named_topology_makes_a_machine() {
    for t in named() {
        let selected = select(Some(&t.name), &Restrictions::default()).unwrap();
        let made = super::super::machine(&selected, Some(&t.name), None);
        made.unwrap_or_else(|e| panic!("{}: {e}", t.name));
    }
}
