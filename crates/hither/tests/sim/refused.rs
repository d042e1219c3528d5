//! Bad input: one sentence that names what is wrong and the fix, exit status 2, nothing written.
use crate::common::{status, text, Place, HITHER};
use crate::made;

fn check(place: &Place, line: &str, parts: &[&str]) {
    let out = place.shell(&format!("hither() {{ {HITHER} \"$@\"; }}; {line}"));
    let message = text(&out.stderr);
    assert_eq!(status(&out), 2, "{line}: {message}");
    for part in parts {
        assert!(message.contains(part), "{line}: no {part:?} in {message}");
    }
    assert!(!message.contains("panicked"), "{message}");
}

#[test]
fn what_cannot_be_simulated_says_why() {
    let place = Place::new();
    made::write(&place.path("app.hither"), 3, 200);
    hither_profile::write(&made::profile(), &place.path("plain.hither")).expect("a profile");
    check(
        &place,
        "hither sim plain.hither",
        &["has no bursts", "hither trace --bursts -- ./app 'a b'"],
    );
    check(
        &place,
        "hither map plain.hither --policy best",
        &["has no bursts", "--bursts"],
    );
    check(
        &place,
        "hither sim none.hither",
        &["none.hither", "does not exist"],
    );
    check(
        &place,
        "hither sim app.hither --policy fastest",
        &["no policy", "locality", "os"],
    );
    check(
        &place,
        "hither sim app.hither --policy os+near",
        &["no data policy", "most-access"],
    );
    check(
        &place,
        "hither sim app.hither --topology nowhere",
        &["nowhere"],
    );
    check(&place, "hither sim app.hither --by colour", &["level"]);
    check(&place, "hither sim app.hither --accesses 0", &["8M"]);
    check(
        &place,
        "hither sim app.hither -o none/x",
        &["no folder none"],
    );
    check(
        &place,
        "echo {} > x.sim.json; hither sim app.hither -o x",
        &["x.sim.json", "not a prediction"],
    );
    check(
        &place,
        "hither sim app.hither --machine none.toml",
        &["none.toml"],
    );
    check(
        &place,
        "echo '[core]' > bad.toml; hither sim app.hither --machine bad.toml",
        &["bad.toml", "line"],
    );
    check(
        &place,
        "hither sim app.hither --topology xeon-x7550x4,grace --machine bad.toml",
        &["one machine"],
    );
    check(
        &place,
        "echo {} > p.json; hither report app.hither --prediction p.json",
        &["not a prediction"],
    );
}

#[test]
fn placements_for_something_else_are_refused() {
    let place = Place::new();
    made::write(&place.path("app.hither"), 3, 200);
    let map = "hither map app.hither --topology xeon-x7550x4 --policy compact -o p";
    check(
        &place,
        &format!("{map} > /dev/null; hither sim app.hither --topology grace -p p.place.json"),
        &["xeon-x7550x4", "64 PUs", "72 PUs"],
    );
    check(&place, "sed 's/\"creator\":0,\"order\":6/\"creator\":0,\"order\":9/; /\"order\":5/d' p.place.json > q.place.json; hither sim app.hither --topology xeon-x7550x4 -p q.place.json", &["q.place.json"]);
    check(
        &place,
        "hither sim app.hither --topology xeon-x7550x4 -p none.place.json",
        &["none.place.json", "does not exist"],
    );
}

#[test]
fn a_truncated_file_is_used_up_to_the_break() {
    let place = Place::new();
    made::write(&place.path("app.hither"), 6, 1000);
    let path = place.path("app.hither/bursts.bin");
    let bytes = std::fs::read(&path).expect("bursts");
    std::fs::write(&path, &bytes[..bytes.len() / 2]).expect("write");
    let out = place.shell(&format!(
        "{HITHER} sim app.hither --topology xeon-x7550x4 --policy os,compact --seeds 1"
    ));
    assert_eq!(status(&out), 0, "{}", text(&out.stderr));
    let out = text(&out.stdout);
    assert!(
        out.contains("is damaged") && out.contains("Verdict:"),
        "{out}"
    );
    std::fs::write(&path, &bytes[..40]).expect("write");
    check(
        &place,
        "hither sim app.hither",
        &["bursts.bin", "record the program again"],
    );
    std::fs::write(&path, b"something else").expect("write");
    check(&place, "hither sim app.hither", &["bursts"]);
}
