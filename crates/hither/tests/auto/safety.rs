//! A program that knows what each byte of its memory must be and what each system call on it
//! must give, while pages are taken from under it; and programs that crash.
use super::*;

const SAFETY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/auto/safety.c");

fn place() -> Place {
    let place = Place::new();
    let built = place.shell(&format!("gcc -O1 -pthread -o safety {SAFETY}"));
    assert!(built.status.success(), "{}", text(&built.stderr));
    place
}

/// Whether the sampler works here; if not, says so.
fn works(place: &Place, sampler: &str) -> bool {
    let tried = run(place.command(&[HITHER, "auto", "-q", "--sampler", sampler, "--", "true"]));
    if !tried.status.success() {
        println!("skipped: {}", text(&tried.stderr));
    }
    tried.status.success()
}

fn check(sampler: &str) {
    let place = place();
    if !works(&place, sampler) {
        return;
    }
    let line = [
        HITHER,
        "auto",
        "-v",
        "--budget",
        "100%",
        "--sampler",
        sampler,
    ];
    let line = [&line[..], &["--", "./safety", "6", "."]].concat();
    let output = run(place.command(&line));
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    println!("{out}{err}");
    assert_eq!(status(&output), 0);
    assert!(out.ends_with("\n0 wrong\n"));
}

#[test]
fn memory_is_what_it_must_be_with_move() {
    check("move");
}

#[test]
fn memory_is_what_it_must_be_with_pageout() {
    check("pageout");
}

#[test]
fn memory_is_what_it_must_be_with_write_protect() {
    check("write-protect");
}

/// Crashes with pages away, if they may be: where it would leave a core file, they may not.
#[test]
fn a_program_that_crashes_crashes_as_it_would() {
    let place = place();
    if !works(&place, "move") {
        return;
    }
    for (limit, left_alone) in [("0", false), ("unlimited", true)] {
        let followed = format!("{HITHER} auto --budget 50% --sampler move -- ./safety 9 . aarrz");
        let line = format!("ulimit -c {limit} && exec {followed}");
        let crashed = run(place.command(&["sh", "-c", &line]));
        assert_eq!(status(&crashed), 128 + 11, "{}", text(&crashed.stderr));
        let told = text(&crashed.stderr).contains("core file");
        assert_eq!(told, left_alone, "{}", text(&crashed.stderr));
    }
}
