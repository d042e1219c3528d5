//! A program that counts the units it may run on is not to find the one on which its thread
//! was put, nor are its children.
use super::common::{run, status, text, HITHER};
use super::place_with_couples;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/auto/asks.c");

#[test]
fn a_program_that_counts_its_units_does_not_notice() {
    let Some(place) = place_with_couples() else {
        return;
    };
    let built = place.shell(&format!("gcc -O1 -pthread -o asks {SOURCE}"));
    assert!(built.status.success(), "{}", text(&built.stderr));
    let alone = text(&place.shell("nproc").stdout).trim().to_owned();
    let line = [
        HITHER,
        "auto",
        "--budget",
        "20%",
        "--sampler",
        "pageout",
        "--",
        "./asks",
        "4",
    ];
    let output = run(place.command(&line));
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(status(&output), 0, "{err}");
    println!("{out}{err}");
    let words: Vec<&str> = out.split_whitespace().collect();
    assert_eq!(words[..4], ["least", &alone, "most", &alone], "{out}");
    // On one unit, nothing can be put elsewhere.
    assert!(alone == "1" || words[5] != "0", "nothing was pinned: {err}");
}

#[test]
fn what_is_left_running_may_ask_and_choose() {
    let place = super::common::Place::new();
    let line = "(sleep 1; nproc > later; taskset -c 0 true && echo fine >> later) & nproc";
    let output = run(place.command(&[HITHER, "auto", "-q", "--", "sh", "-c", line]));
    assert_eq!(status(&output), 0, "{}", text(&output.stderr));
    let later = || std::fs::read_to_string(place.path("later")).unwrap_or_default();
    super::common::wait_for("what is left", || later().ends_with("fine\n"));
    assert_eq!(later(), format!("{}fine\n", text(&output.stdout)));
}
