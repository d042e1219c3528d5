//! What cannot be traced is refused in one clear sentence, and nothing is left behind.
use super::*;

#[track_caller]
fn check_refused(prepare: &str, line: &[&str], code: i32, part: &str) {
    let place = Place::new();
    let prepared = place.shell(prepare);
    assert!(prepared.status.success(), "{}", text(&prepared.stderr));
    let output = place.trace(line);
    let message = text(&output.stderr);
    assert_eq!(status(&output), code, "{message}");
    assert!(
        message.starts_with("hither: ") && message.contains(part),
        "{message}"
    );
    assert_eq!(message.lines().count(), 1, "{message}");
    assert!(!place.path("traced.hither").exists());
}

#[test]
fn programs() {
    check_refused("true", &["no-such-program"], 127, "no such program");
    check_refused("mkdir folder", &["./folder"], 126, "folder");
    check_refused("echo > plain", &["./plain"], 126, "not executable");
    let header = r"printf '\177ELF\1\1\1\0\0\0\0\0\0\0\0\0\2\0\3\0\1\0\0\0' > p; chmod +x p";
    check_refused(header, &["./p"], 2, "32-bit x86");
    check_refused("cp /bin/true p; chmod 4755 p", &["./p"], 2, "set-user-id");
    check_refused("cp /bin/true p; chmod 2755 p", &["./p"], 2, "set-group-id");
    check_refused(
        r"printf '\177ELF\2\1\1' > p; chmod +x p",
        &["./p"],
        126,
        "neither a program nor a script",
    );
    check_refused(
        "printf '#!/no/such\\n' > p; chmod +x p",
        &["./p"],
        127,
        "/no/such",
    );
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
