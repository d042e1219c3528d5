//! What comes back of commands, however they end.
use super::*;
use hither_guest::{GuestError, UnfinishedRun};
use std::time::Duration;

#[test]
fn bytes_statuses_and_files_come_back_for_each_command() {
    let Some(guest) = or_skip() else { return };
    let guest = guest.text("/script", "#!/bin/sh\nprintf \"$1\"\n");
    let outputs = run_all(
        &guest,
        &[
            r"printf 'a\0b\r\n\377'; echo to stderr >&2",
            "kill -SEGV $$",
            "exit 7",
            "sleep 1000 & /script kept > /tmp/kept; mkdir /out/d; seq 100000 > /out/d/numbers",
            "cat /tmp/kept; ls /out; echo mine > /out/d; echo again > /dev/stderr",
            "seq 100000; id -u; su user -c 'id -u'",
        ],
    );
    let statuses: Vec<i32> = outputs.iter().map(|o| o.status).collect();
    assert_eq!(statuses, [0, 128 + 11, 7, 0, 0, 0]);
    assert_eq!(outputs[0].stdout, b"a\0b\r\n\xff");
    assert_eq!(outputs[0].stderr, b"to stderr\n");
    assert_eq!(outputs[1], with_status(128 + 11));
    assert_eq!(outputs[2], with_status(7));
    let numbers = (1..=100_000).map(|n| format!("{n}\n")).collect::<String>();
    assert_eq!(outputs[3].files.len(), 1);
    assert!(outputs[3].files["d/numbers"] == numbers.as_bytes());
    assert_eq!(outputs[4].text(), "kept");
    assert_eq!(outputs[4].errors(), "again\n");
    assert_eq!(outputs[4].files["d"], b"mine\n");
    assert!(outputs[5].text() == numbers + "0\n1000\n");
}

fn with_status(status: i32) -> CommandOutput {
    CommandOutput {
        status,
        ..CommandOutput::default()
    }
}

fn unfinished(guest: &Guest, commands: &[&str]) -> Box<UnfinishedRun> {
    match guest.run_all(commands) {
        Err(GuestError::Unfinished(how)) => how,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_guest_that_takes_too_long_is_killed_and_what_it_printed_is_told() {
    let Some(guest) = or_skip() else { return };
    let commands = [
        "echo first",
        "echo second; echo complaint >&2; echo dying > /dev/console; sleep 1000",
        "echo third",
    ];
    let within = |seconds| {
        let guest = guest.clone().timeout(Duration::from_secs(seconds));
        (unfinished(&guest, &commands), seconds)
    };
    // A busy host may take as long as the first limit to boot.
    let (mut how, mut seconds) = within(20);
    if how.last.stderr.is_empty() {
        (how, seconds) = within(90);
    }
    assert_eq!(how.done.len(), 1);
    assert_eq!(how.done[0].text(), "first\n");
    let message = how.to_string();
    let limit = format!("killed because it took more than {seconds} s");
    for part in [
        &limit,
        "in command 2 of 3",
        "stdout ended in:\nsecond\n",
        "stderr ended in:\ncomplaint\n",
        "console ended in:\n",
        "dying",
    ] {
        assert!(message.contains(part), "{part:?} in {message}");
    }
}

#[test]
fn a_guest_that_panics_says_so() {
    let Some(guest) = or_skip() else { return };
    let how = unfinished(&guest, &["echo c > /proc/sysrq-trigger"]);
    let message = how.to_string();
    assert!(message.contains("before its commands did"), "{message}");
    assert!(message.contains("Kernel panic"), "{message}");
}
