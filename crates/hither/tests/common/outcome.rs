//! What a command that ended has said.
use std::process::Output;

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The exit status as a shell shows it.
pub fn status(output: &Output) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    let signal = output.status.signal().map(|signal| 128 + signal);
    output.status.code().or(signal).expect("a status")
}

/// hither has refused with this status, in one line that has all `parts`.
#[track_caller]
pub fn check_refusal(output: &Output, code: i32, parts: &[&str]) {
    let message = text(&output.stderr);
    assert_eq!(status(output), code, "{message}");
    assert!(message.starts_with("hither: "), "{message}");
    assert_eq!(message.lines().count(), 1, "{message}");
    for part in parts {
        assert!(message.contains(part), "{part:?} in {message}");
    }
}
