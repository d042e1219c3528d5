//! What is kept of a run: a profile that other commands read, whatever ends the run.
use hither_profile::{read, Profile, RunEnd};
use nix::sys::signal::Signal;

use super::common::{run, status, text, wait_for, Place, Running, HITHER};
use super::place_with_couples;

fn profile(place: &Place, name: &str) -> Profile {
    read(&place.path(name)).expect("a profile")
}

fn hither(place: &Place, line: &str) -> std::process::Output {
    let line: Vec<&str> = [HITHER].into_iter().chain(line.split(' ')).collect();
    run(place.command(&line))
}

#[test]
fn a_run_becomes_a_profile_that_others_read() {
    let Some(place) = place_with_couples() else {
        return;
    };
    let line =
        "auto --budget 20% --sampler pageout --export-json outcome -- ./couples 8 1 3 16 shared";
    let output = hither(&place, line);
    let err = text(&output.stderr);
    assert_eq!(status(&output), 0, "{err}");
    assert!(
        err.ends_with("hither: next: hither report --text couples.auto.hither\n"),
        "{err}"
    );
    let profile = profile(&place, "couples.auto.hither");
    let outcome = std::fs::read_to_string(place.path("outcome")).expect("outcome");
    let outcome: serde_json::Value = serde_json::from_str(&outcome).expect("json");
    let online = profile.meta.online.as_ref().expect("sampled");
    assert_eq!(outcome["faults"], online.faults);
    assert_eq!(outcome["threads_moved"], profile.thread_moves.len());
    assert_eq!(profile.meta.end, RunEnd::Exited { status: 0 });
    assert_eq!(profile.threads.len(), 8, "{:?}", profile.threads);
    assert!(profile.threads.iter().all(|t| t.name == "couples"));
    assert_eq!(profile.matrix().total(), outcome["events"]);
    // What the report calls accesses are faults, each of them once.
    let counted: u64 = profile.pages.iter().map(|p| p.reads).sum();
    let seen: u64 = profile.threads.iter().map(|t| t.accesses()).sum();
    assert_eq!(counted, seen);
    let slices: u64 = profile.slices.iter().map(|s| s.accesses).sum();
    assert_eq!(slices, seen);
    // The couples: each of the eight threads shares most with its partner.
    let matrix = profile.matrix();
    for worker in 0..8usize {
        let partner = worker ^ 1;
        assert_eq!(
            matrix.get(worker, partner),
            matrix
                .row(worker)
                .iter()
                .map(|cell| cell.1)
                .max()
                .expect("cells")
        );
    }
    for (line, part) in [
        ("stat couples.auto.hither", "observed while it ran"),
        ("report --text couples.auto.hither", "Sampled while it ran"),
        ("report couples.auto.hither", "page: couples.auto.html"),
        ("map couples.auto.hither", "couples.auto.place.json written"),
        ("check couples.auto.hither --max-remote 100%", ""),
        (
            "run -p couples.auto.place.json -- ./couples 8 1 1 16 shared",
            "0 wrong",
        ),
    ] {
        let line: Vec<&str> = [HITHER].into_iter().chain(line.split(' ')).collect();
        let output = run(place.command(&line));
        let said = text(&output.stdout) + &text(&output.stderr);
        assert_eq!(status(&output), 0, "{line:?}: {said}");
        assert!(said.contains(part), "{line:?}: {said}");
    }
}

#[test]
fn whatever_ends_a_run_what_was_seen_is_kept() {
    let place = Place::new();
    let check = |line: &[&str], expected: i32, end: RunEnd| {
        let line: Vec<&str> = [HITHER, "auto", "-q", "-o", "kept", "--"]
            .iter()
            .chain(line)
            .copied()
            .collect();
        assert_eq!(status(&run(place.command(&line))), expected);
        let profile = profile(&place, "kept.hither");
        assert_eq!(profile.meta.end, end);
        assert!(profile.threads.iter().any(|t| t.accesses() > 0));
    };
    check(&["sh", "-c", "exit 3"], 3, RunEnd::Exited { status: 3 });
    check(
        &["sh", "-c", "kill -SEGV $$"],
        139,
        RunEnd::Signaled { signal: 11 },
    );
    // The program is told, as without hither, and what it does about it decides.
    let running = Running::start(place.command(&[
        HITHER,
        "auto",
        "-o",
        "term",
        "--",
        "sh",
        "-c",
        "touch up; exec sleep 30",
    ]));
    wait_for("program", || place.path("up").exists());
    running.signal(Signal::SIGTERM);
    assert_eq!(status(&running.end()), 143);
    assert_eq!(
        profile(&place, "term.hither").meta.end,
        RunEnd::Signaled { signal: 15 }
    );
    // One that runs already goes on.
    let sleeper = Running::start(place.command(&["sh", "-c", "while :; do sleep 0.05; done"]));
    let pid = sleeper.child.id().to_string();
    let running = Running::start(place.command(&[HITHER, "auto", "-o", "joined", "--pid", &pid]));
    wait_for("hither", || {
        std::fs::read_dir(format!("/proc/{}/fd", running.child.id()))
            .is_ok_and(|all| all.count() > 6)
    });
    std::thread::sleep(std::time::Duration::from_millis(500));
    running.signal(Signal::SIGINT);
    assert_eq!(status(&running.end()), 0);
    let joined = profile(&place, "joined.hither");
    assert_eq!(joined.meta.end, RunEnd::Interrupted);
    assert_eq!(joined.meta.command[..2], ["sh", "-c"]);
    sleeper.signal(Signal::SIGKILL);
    sleeper.end();
}

#[test]
fn nothing_else_is_replaced_and_nothing_kept_where_nothing_can() {
    let place = Place::new();
    place.shell("mkdir mine.hither; touch mine.hither/notes");
    let output = hither(&place, "auto -o mine -- touch started");
    assert_eq!(status(&output), 2);
    assert!(
        text(&output.stderr).contains("mine.hither"),
        "{}",
        text(&output.stderr)
    );
    assert!(!place.path("started").exists());
    let output = hither(&place, "auto --no-profile -- true");
    assert_eq!(status(&output), 0);
    assert!(!place.path("true.auto.hither").exists());
    // Nobody asked for one: the program runs all the same.
    let output = place.shell(&format!("cd /proc && {HITHER} auto -- sh -c 'exit 4'"));
    assert_eq!(status(&output), 4, "{}", text(&output.stderr));
    assert!(
        text(&output.stderr).contains("no profile"),
        "{}",
        text(&output.stderr)
    );
    let output = place.shell(&format!("cd /proc && {HITHER} auto -o x -- true"));
    assert_eq!(status(&output), 2);
}

#[test]
fn what_can_be_a_file_goes_to_standard_output_and_a_profile_does_not() {
    let place = Place::new();
    let output = hither(&place, "auto -o - -- touch started");
    let message = text(&output.stderr);
    assert_eq!(status(&output), 2, "{message}");
    assert!(
        message.contains("cannot go to standard output"),
        "{message}"
    );
    let output = hither(&place, "auto -q --no-profile --export-json - -- echo hi");
    let printed = text(&output.stdout);
    let outcome = printed.strip_prefix("hi\n").expect(&printed);
    let outcome: serde_json::Value = serde_json::from_str(outcome).expect("json");
    assert!(outcome["faults"].is_u64(), "{outcome}");
    let output = hither(&place, "auto -q --no-profile --json-lines - -- sleep 0.5");
    for line in text(&output.stdout).lines() {
        let line: serde_json::Value = serde_json::from_str(line).expect("json");
        assert!(line["at"].is_u64(), "{line}");
    }
    assert_eq!(place.shell("ls").stdout, b"");
}

/// The last lines named the profile after the program as it is.
#[test]
fn what_a_program_is_called_steers_no_terminal() {
    let place = Place::new();
    let name = "a\u{1b}[31m\n\u{202e}b";
    std::fs::copy("/bin/true", place.path(name)).expect("a copy");
    let program = format!("./{name}");
    for verb in [&["auto", "-v"][..], &["run", "-v", "--policy", "compact"]] {
        let line = [&[HITHER], verb, &["--", &program]].concat();
        let output = run(place.command(&line));
        let said = text(&output.stderr);
        assert_eq!(status(&output), 0, "{said}");
        let harmful = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!said.contains(harmful), "{said:?}");
        assert!(said.contains("a?[31m??b"), "{said}");
        assert!(said.lines().all(|l| l.starts_with("hither: ")), "{said}");
    }
}
