//! The comparison itself: what is compared, in which order, and that it is repeatable.
use crate::common::{status, text, Place, HITHER};
use crate::made;

#[test]
fn placements_are_compared() {
    let place = Place::new();
    made::write(&place.path("app.hither"), 6, 4000);
    if let Ok(to) = std::env::var("KEEP_AS") {
        place.shell(&format!("cp -r app.hither {to}"));
    }
    let out = place.shell(&format!("{HITHER} sim app.hither --topology xeon-x7550x4"));
    print!("{}{}", text(&out.stdout), text(&out.stderr));
    assert_eq!(status(&out), 0);
}
