//! `--live` in a terminal: what is drawn, what is left, what the program writes and gets.
use std::fs::File;
use std::io::Read;
use std::process::Stdio;

use nix::pty::{openpty, Winsize};

use super::common::{run, status, text, Place, HITHER};
use super::place_with_couples;

const ENTER: &str = "\x1b[?1049h";
const LEAVE: &str = "\x1b[?1049l";

/// What a terminal of 100 x 30 is sent, and the status.
fn in_terminal(place: &Place, line: &[&str], no_colour: bool) -> (String, i32) {
    let window = Winsize {
        ws_row: 30,
        ws_col: 100,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    let pair = openpty(&window, None).expect("a pseudo-terminal");
    let mut command = place.command(line);
    let copy = || Stdio::from(pair.slave.try_clone().expect("a copy"));
    command.stdout(copy()).stderr(copy());
    command
        .env("TERM", "xterm-256color")
        .env("LC_ALL", "C.UTF-8");
    if no_colour {
        command.env("NO_COLOR", "1");
    } else {
        command.env_remove("NO_COLOR");
    }
    let mut child = command.spawn().expect("hither");
    drop((command, pair.slave));
    let mut sent = Vec::new();
    let mut bytes = [0; 4096];
    let mut master = File::from(pair.master);
    // EIO when all have closed the other end.
    while let Ok(read @ 1..) = master.read(&mut bytes) {
        sent.extend_from_slice(&bytes[..read]);
    }
    let status = child.wait().expect("wait").code().expect("a status");
    (String::from_utf8_lossy(&sent).into_owned(), status)
}

/// What is drawn, a space for each movement of the cursor.
fn plain(view: &str) -> String {
    let mut parts = view.split("\x1b[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |mut words, part| {
        let (code, text) = part.split_at(
            part.find(|c: char| c.is_alphabetic())
                .map_or(0, |at| at + 1),
        );
        if code.ends_with('H') {
            words.push(' ');
        }
        words + text
    })
}

#[test]
fn the_view_is_drawn_and_left_and_output_kept() {
    let Some(place) = place_with_couples() else {
        return;
    };
    let line = "auto --live --budget 20% --sampler pageout -- sh -c";
    let script =
        "test -t 1 && test -t 2 && echo both; ./couples 4 1 2 16 shared; echo err >&2; exit 5";
    let line: Vec<&str> = [HITHER]
        .into_iter()
        .chain(line.split(' '))
        .chain([script])
        .collect();
    let (sent, status) = in_terminal(&place, &line, false);
    assert_eq!(status, 5, "{sent}");
    let (view, after) = sent.split_once(LEAVE).expect("left");
    assert_eq!(
        (sent.matches(ENTER).count(), sent.matches(LEAVE).count()),
        (1, 1)
    );
    let words = plain(view);
    for part in [
        "page faults per second",
        "pinned to",
        "who shares",
        "injecting",
        "budget used",
    ] {
        assert!(words.contains(part), "{part}: {words}");
    }
    assert!(view.contains("\x1b[38;5;"), "colours");
    // The terminal was asked nothing: the answer would come among what the user types.
    assert!(!view.contains("\x1b[6n"));
    for part in [
        "both\r\n",
        "phase 0\r\n",
        "0 wrong\r\n",
        "err\r\n",
        "hither: next: ",
    ] {
        assert!(after.contains(part), "{part}: {after:?}");
    }
    let (sent, _) = in_terminal(&place, &line, true);
    assert!(!sent.contains("\x1b[38;5;"), "{sent:?}");
}

/// A program is entered when it has threads, which may be long after the view was drawn first.
#[test]
fn programs_are_entered_while_the_view_is_shown() {
    let Some(place) = place_with_couples() else {
        return;
    };
    let tried = [HITHER, "auto", "-q", "--sampler", "move", "--", "true"];
    if status(&run(place.command(&tried))) != 0 {
        println!("skipped: the sampler move does not work here");
        return;
    }
    let line = "ulimit -c 0; exec hither auto --live --budget 50% --sampler move --no-profile --json outcome -- sh -c 'sleep 1; exec ./couples 4 1 4 16 private'";
    let line = line.replace("hither", HITHER);
    let (sent, status) = in_terminal(&place, &["sh", "-c", &line], false);
    assert_eq!(status, 0, "{sent}");
    let outcome = std::fs::read_to_string(place.path("outcome")).expect("outcome");
    let outcome: serde_json::Value = serde_json::from_str(&outcome).expect("json");
    assert!(outcome["extra"].as_u64() > Some(0), "{outcome}");
}

#[test]
fn without_a_terminal_nothing_is_started() {
    let place = Place::new();
    let output = run(place.command(&[HITHER, "auto", "--live", "--", "touch", "started"]));
    assert_eq!(status(&output), 2);
    assert!(text(&output.stderr).contains("--live draws on the terminal"));
    assert!(!place.path("started").exists());
}

#[test]
fn a_program_that_is_killed_leaves_the_terminal_as_it_was() {
    let place = Place::new();
    let line = [
        HITHER,
        "auto",
        "--live",
        "--",
        "sh",
        "-c",
        "sleep 1; kill -SEGV $$",
    ];
    let (sent, status) = in_terminal(&place, &line, false);
    assert_eq!(status, 139, "{sent}");
    assert_eq!(
        (sent.matches(ENTER).count(), sent.matches(LEAVE).count()),
        (1, 1)
    );
    assert!(sent.contains("\x1b[?25h"), "the cursor is shown");
}
