//! What cannot be followed is refused in one clear sentence, and not started.
use super::common::REFUSED;
use super::*;

#[track_caller]
fn check_refused(prepare: &str, line: &[&str], code: i32, part: &str) {
    let place = Place::new();
    let prepared = place.shell(prepare);
    assert!(prepared.status.success(), "{}", text(&prepared.stderr));
    let output = place.followed(line);
    check_refusal(&output, code, &[part]);
    place.nobody_left();
}

#[test]
fn programs() {
    for (prepare, program, code, part) in REFUSED {
        check_refused(prepare, &[program], code, part);
    }
    // It has a valid header, but the kernel does not take it.
    let broken = "head -c 4096 /bin/true > p; chmod +x p";
    let place = Place::new();
    assert!(place.shell(broken).status.success());
    let output = place.followed(&["./p"]);
    assert!(status(&output) > 0, "{}", text(&output.stderr));
    place.nobody_left();
}

/// Whoever traces it gets in hither's way: said, and the program is not started.
#[test]
fn what_is_traced_already() {
    if !there("strace") {
        return;
    }
    let place = Place::new();
    let line = [
        &["strace", "-f", "-o", "/dev/null"],
        &RUN[..],
        &["touch", "started"],
    ]
    .concat();
    let output = run(place.marked(&line));
    check_refusal(&output, 2, &["strace"]);
    assert!(!place.path("started").exists());
    place.nobody_left();
}

/// Where ptrace is forbidden, or filters are, threads are pinned from outside.
#[test]
fn where_following_is_forbidden() {
    for strict in [&[][..], &["-s"]] {
        let place = Place::new();
        let deny = built("deny");
        let quiet = [&[deny], strict, &RUN, &[built("abuse"), "spin"]].concat();
        let output = run(place.marked(&quiet));
        assert_eq!(text(&output.stdout), "spinning\n");
        assert_eq!(status(&output), 7, "{}", text(&output.stderr));
        place.nobody_left();
        let loud = [
            HITHER,
            "run",
            "--policy",
            "compact",
            "--export-json",
            "o.json",
            "--",
        ];
        let line = [&[deny], strict, &loud, &[built("abuse"), "spin"]].concat();
        let output = run(place.marked(&line));
        let message = text(&output.stderr);
        assert_eq!(status(&output), 7, "{message}");
        assert!(
            message.contains("forbid") || message.contains("not permitted"),
            "{message}"
        );
        assert!(
            place.read("o.json").contains("polling"),
            "{}",
            place.read("o.json")
        );
        place.nobody_left();
    }
}

/// Insisting on it where it is forbidden starts nothing.
#[test]
fn where_following_is_forbidden_and_asked_for() {
    let place = Place::new();
    let run_so = [
        "run", "-q", "--method", "ptrace", "--policy", "compact", "--",
    ];
    let line = [&[built("deny"), HITHER], &run_so[..], &["touch", "started"]].concat();
    let output = run(place.marked(&line));
    check_refusal(&output, 2, &[]);
    assert!(!place.path("started").exists());
    place.nobody_left();
}

/// Polled, a program runs as it would, only its own view of its units may differ.
#[test]
fn polling_goes_unnoticed() {
    let polled = [
        HITHER, "run", "-q", "--method", "polling", "--policy", "compact", "--",
    ];
    for line in [
        &[built("notice"), "fatal"][..],
        &[built("notice"), "siginfo"],
        &[built("notice"), "sigwait"],
        &[built("notice"), "stops"],
        &[built("notice"), "who"],
        &[built("notice"), "clones"],
        &[built("notice"), "headless"],
        &[built("notice"), "traces"],
        &[built("notice"), "joins", "20"],
        &[built("notice"), "bomb"],
        &[built("notice"), "storm", "20"],
        &[built("notice"), "mappings"],
        &[built("abuse-static"), "exec"],
        &[built("waits"), "threads"],
    ] {
        let place = Place::new();
        let alone = run(place.command(line));
        let followed = run(place.marked(&[&polled[..], line].concat()));
        same(line, &alone, &followed);
        place.nobody_left();
    }
}
