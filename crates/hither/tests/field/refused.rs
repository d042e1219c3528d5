//! What cannot be traced is refused in one clear sentence, and nothing is left behind.
use super::common::REFUSED;
use super::*;

#[track_caller]
fn check_refused(prepare: &str, line: &[&str], code: i32, part: &str) {
    let place = Place::new();
    let prepared = place.shell(prepare);
    assert!(prepared.status.success(), "{}", text(&prepared.stderr));
    let output = place.trace(line);
    check_refusal(&output, code, &[part]);
    assert!(!place.path("traced.hither").exists());
}

#[test]
fn programs() {
    for (prepare, program, code, part) in REFUSED {
        check_refused(prepare, &[program], code, part);
    }
}

#[test]
fn what_dynamorio_cannot_follow() {
    check_refused("cp /bin/true gdb", &["./gdb"], 2, "ptrace");
    let erlang = ["cp /bin/true beam.smp", "./beam.smp"];
    check_refused(erlang[0], &erlang[1..], 2, "hither auto -- erl");
    let launcher = built("launcher");
    let instead = format!("hither auto -- {launcher}");
    check_refused("true", &[&launcher], 2, &instead);
}

#[test]
fn nested() {
    check_nested("nested", "itself being traced");
}

#[track_caller]
fn check_nested(output: &str, part: &str) {
    let place = Place::new();
    let traced = place.trace(&[HITHER, "trace", "-o", output, "true"]);
    assert_eq!(status(&traced), 2);
    assert!(
        text(&traced.stderr).contains(part),
        "{}",
        text(&traced.stderr)
    );
    assert!(!place.path("nested.hither").exists());
    assert!(place.path("traced.hither").exists());
}

/// It once became a folder named `-.hither`.
#[test]
fn a_profile_does_not_go_to_standard_output() {
    let place = Place::new();
    let line = [HITHER, "trace", "-o", "-", "--", "touch", "started"];
    let output = run(place.command(&line));
    let message = text(&output.stderr);
    assert_eq!(status(&output), 2, "{message}");
    assert!(
        message.contains("cannot go to standard output"),
        "{message}"
    );
    assert_eq!(message.lines().count(), 1, "{message}");
    assert_eq!(place.shell("ls").stdout, b"");
}

#[test]
fn what_a_program_is_called_steers_no_terminal() {
    let place = Place::new();
    let name = "a\u{1b}[31m\n\u{202e}b";
    fs::copy("/bin/true", place.path(name)).expect("a copy");
    let program = format!("./{name}");
    let output = run(place.command(&[HITHER, "trace", "--", &program]));
    let said = text(&output.stderr);
    assert_eq!(status(&output), 0, "{said}");
    let harmful = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    assert!(!said.contains(harmful), "{said:?}");
    assert!(said.contains("a?[31m??b.hither"), "{said}");
    assert!(said.lines().all(|l| l.starts_with("hither: ")), "{said}");
}
