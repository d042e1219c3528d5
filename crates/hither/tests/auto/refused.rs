//! What does not work, for want of rights or in containers: said in a sentence, with what to
//! do, and what works anyway works.
use std::process::Stdio;
use std::time::Duration;

use super::*;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/auto/forbid.c");
const AUTO: [&str; 2] = [HITHER, "auto"];

/// A folder in which `forbid` is.
fn place() -> Place {
    let place = Place::new();
    let built = place.shell(&format!("gcc -O1 -Wall -o forbid {SOURCE} && chmod 1777 ."));
    assert!(built.status.success(), "{}", text(&built.stderr));
    place
}

fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// Runs it; its status and what it says.
fn said(place: &Place, line: &[&str]) -> (i32, String) {
    let output = run(place.command(line));
    (status(&output), text(&output.stderr))
}

/// Refused with status 2 and a sentence, and nothing was started.
#[track_caller]
fn check_refused(line: &[&str], parts: &[&str]) {
    let place = place();
    let line = [line, &["--", "touch", "started"]].concat();
    check_refusal(&run(place.command(&line)), 2, parts);
    assert!(!place.path("started").exists());
}

/// Runs to its end, and says `parts`.
#[track_caller]
fn check_runs(line: &[&str], parts: &[&str]) {
    let place = place();
    let line = [line, &["--", "sh", "-c", "exit 7"]].concat();
    let (code, message) = said(&place, &line);
    assert_eq!(code, 7, "{message}");
    for part in parts {
        assert!(message.contains(part), "{part:?} in {message}");
    }
}

fn forbid<'a>(calls: &[&'a str], line: &[&'a str]) -> Vec<&'a str> {
    [&["./forbid"], calls, &["--"], line].concat()
}

#[test]
fn without_perf_nothing_is_seen() {
    let calls = ["perf_event_open", "bpf"];
    let parts = [
        "page faults cannot be observed",
        "seccomp=unconfined",
        "hither trace",
    ];
    check_refused(&forbid(&calls, &AUTO), &parts);
}

/// Page faults that hither says that it saw.
fn faults(message: &str) -> u64 {
    let line = message
        .lines()
        .find_map(|l| l.strip_suffix(" sharing events"));
    let number = line.and_then(|line| line.split(' ').nth(1)?.parse().ok());
    number.unwrap_or(0)
}

/// Then the same is seen by BPF, where that is allowed.
#[test]
fn without_perf_but_with_bpf_all_is_seen() {
    let place = place();
    let auto = ["-v", "--", "sh", "-c", "(:); exit 7"];
    let line = [&forbid(&["perf_event_open"], &AUTO)[..], &auto].concat();
    let (code, message) = said(&place, &line);
    if code == 2 {
        println!("skipped: {message}");
        return;
    }
    assert_eq!(code, 7, "{message}");
    assert!(message.contains("observed by BPF"), "{message}");
    assert!(faults(&message) > 100, "{message}");
}

/// A program that gives memory back and takes it again: most of its faults are not looked at, and where that is
/// allowed no records are made of them.
#[test]
fn faults_that_are_not_looked_at_have_no_records() {
    if let Err(error) = hither_sys::bpf::BpfFaultMonitor::new() {
        println!("skipped: {error}");
        return;
    }
    let place = place();
    let reuse = common::workload("reuse");
    let auto = [HITHER, "auto", "-v", "--", &reuse, "40000", "40"];
    let without_perf = forbid(&["perf_event_open"], &auto);
    for (line, why) in [
        (auto.to_vec(), "so many of its own"),
        (without_perf, "perf events are forbidden"),
    ] {
        let (code, message) = said(&place, &line);
        assert_eq!(code, 0, "{message}");
        assert!(message.contains(why), "{message}");
        assert!((1000..800_000).contains(&faults(&message)), "{message}");
    }
}

/// Of a process that runs already, too, whose threads are pinned by what is seen.
#[test]
fn without_perf_but_with_bpf_processes_are_joined() {
    let Some((place, calm, _)) = killed::program() else {
        return;
    };
    let built = place.shell(&format!("gcc -O1 -o forbid {SOURCE}"));
    assert!(built.status.success(), "{}", text(&built.stderr));
    let mut command = place.command(&[&calm, "4"]);
    let mut program = command.stdin(Stdio::piped()).spawn().expect("calm");
    let pid = program.id().cast_signed();
    wait_for("threads", || masks(pid).len() == 5);
    let id = pid.to_string();
    let auto = [HITHER, "auto", "--budget", "100%", "--pid", &id];
    let mut hither = Running::start(place.command(&forbid(&["perf_event_open"], &auto)));
    let ended = |hither: &mut Running| hither.child.try_wait().expect("wait").is_some();
    while !joined::is_pinned(pid) && !ended(&mut hither) {
        std::thread::sleep(Duration::from_millis(10));
    }
    drop(program.stdin.take());
    assert!(program.wait().expect("wait").success());
    let output = hither.end();
    let message = text(&output.stderr);
    if status(&output) == 2 {
        println!("skipped: {message}");
        return;
    }
    assert!(message.contains("observed by BPF"), "{message}");
    assert!(message.contains("moving"), "{message}");
}

#[test]
fn without_samplers_first_touches_are_seen() {
    let calls = ["process_madvise", "userfaultfd", "ptrace"];
    let line = forbid(&calls, &AUTO);
    let parts = ["no sampler works here", "pageout: ", "--cap-add SYS_NICE"];
    check_runs(&line, &parts);
    let only = [&AUTO[..], &["--sampler", "pageout"]].concat();
    let parts = ["sampler pageout does not work here", "SYS_NICE"];
    check_refused(&forbid(&calls, &only), &parts);
}

/// What can be seen without moving is worth a run, too.
#[test]
fn without_the_right_to_move_it_is_said() {
    let place = place_with_couples();
    let Some(place) = place else {
        return;
    };
    let built = place.shell(&format!("gcc -O1 -o forbid {SOURCE}"));
    assert!(built.status.success(), "{}", text(&built.stderr));
    let auto = "auto --budget 50% --sampler pageout -- ./couples 4 1 3 16 shared";
    let line: Vec<&str> = [HITHER].into_iter().chain(auto.split(' ')).collect();
    let (code, message) = said(&place, &forbid(&["sched_setaffinity"], &line));
    assert_eq!(code, 0, "{message}");
    assert!(message.contains("could not be pinned"), "{message}");
}

#[test]
fn any_user_may_have_their_own_programs_observed() {
    if !is_root() {
        println!("skipped: needs root to be somebody else");
        return;
    }
    let line = [&NOBODY[..], &AUTO].concat();
    check_runs(&line, &[]);
    let line = [&NOBODY[..], &AUTO, &["--allow-sysctl"]].concat();
    check_refused(&line, &["cannot be changed safely", "be root"]);
    // Faults are seen.
    let place = place();
    let line = [&NOBODY[..], &AUTO, &["-v", "--", "true"]].concat();
    let (code, message) = said(&place, &line);
    assert_eq!(code, 0, "{message}");
    assert!(faults(&message) > 10, "{message}");
}

#[test]
fn processes_that_cannot_be_joined() {
    let place = place();
    let check = |line: &[&str], expected: &str| {
        let (code, message) = said(&place, line);
        assert_eq!(code, 2, "{message}");
        assert!(message.contains(expected), "{message}");
        assert_eq!(message.lines().count(), 1, "{message}");
    };
    check(
        &[HITHER, "auto", "--pid", "999999999"],
        "there is no process 999999999",
    );
    // A thread of this process that is not its first.
    let tid = nix::unistd::gettid().as_raw();
    if tid != std::process::id().cast_signed() {
        let own = std::process::id();
        let expected = format!("is a thread of process {own}");
        check(&[HITHER, "auto", "--pid", &tid.to_string()], &expected);
    }
    if !is_root() {
        println!("skipped: needs root to be somebody else");
        return;
    }
    if fs::read_to_string("/proc/2/comm").is_ok_and(|name| name == "kthreadd\n") {
        check(&[HITHER, "auto", "--pid", "2"], "belongs to the kernel");
    }
    let own = std::process::id().to_string();
    let line = [&NOBODY[..], &AUTO, &["--pid", &own]].concat();
    check(&line, "belongs to user 0");
    check(
        &[HITHER, "auto", "--pid", "1"],
        "process 1 is the one from which all others come: say --yes",
    );
}

/// As when a number was mistyped. Its tree is shown first.
#[test]
fn another_users_process_is_joined_where_that_is_said() {
    if !is_root() {
        println!("skipped: needs root to be somebody else");
        return;
    }
    let place = place();
    let theirs = [&NOBODY[..], &["sh", "-c", "sleep 60 & wait"]].concat();
    let theirs = Running::start(place.command(&theirs));
    let id = theirs.child.id();
    let owner = || {
        std::os::unix::fs::MetadataExt::uid(&fs::metadata(format!("/proc/{id}")).expect("alive"))
    };
    let children = || fs::read_to_string(format!("/proc/{id}/task/{id}/children")).expect("alive");
    wait_for("sleep", || owner() == 65534 && !children().is_empty());
    let child = children().trim().to_owned();
    wait_for("sleep", || {
        fs::read_to_string(format!("/proc/{child}/comm")).is_ok_and(|name| name == "sleep\n")
    });
    let id = id.to_string();
    let (code, message) = said(&place, &[HITHER, "auto", "--pid", &id]);
    assert_eq!(code, 2, "{message}");
    assert!(
        message.contains("belongs to nobody: say --yes") && message.contains("2 in all"),
        "{message}"
    );
    let hither = Running::start(place.command(&[HITHER, "auto", "--pid", &id, "--yes"]));
    std::thread::sleep(std::time::Duration::from_millis(500));
    hither.signal(Signal::SIGINT);
    let left = hither.end();
    let message = text(&left.stderr);
    theirs.signal(Signal::SIGKILL);
    let child_id = nix::unistd::Pid::from_raw(child.parse().expect("pid"));
    nix::sys::signal::kill(child_id, Signal::SIGKILL).expect("killed");
    assert_eq!(status(&left), 0, "{message}");
    let tree = format!(
        "joins 2 processes:\nhither:   {id} sh -c sleep 60 & wait\nhither:     {child} sleep 60\n"
    );
    assert!(message.contains(&tree), "{message}");
}

/// Where files of the system are not what they are elsewhere. `prepare` is done in a mount
/// namespace of its own.
#[track_caller]
fn inside(prepare: &str, line: &str) -> Option<(i32, String)> {
    let place = place();
    let tried = place.command(&["unshare", "-m", "true"]);
    if !is_root() || !run(tried).status.success() {
        println!("skipped: needs root and mount namespaces");
        return None;
    }
    let script = format!("({prepare}) >&2 || exit 99; {HITHER} auto {line}");
    let _turn = settings_turn();
    let before = fs::read_to_string("/proc/sys/kernel/numa_balancing").ok();
    let result = said(&place, &["unshare", "-m", "sh", "-c", &script]);
    let after = fs::read_to_string("/proc/sys/kernel/numa_balancing").ok();
    assert_eq!(before, after, "{result:?}");
    Some(result)
}

#[test]
fn settings_that_may_not_be_changed() {
    let line = "--allow-sysctl -- sh -c 'exit 7'";
    let prepare = "mount --bind /proc/sys /proc/sys && mount -o remount,ro,bind /proc/sys";
    if let Some((code, message)) = inside(prepare, line) {
        assert_eq!(code, 7, "{message}");
    }
    let only = "--allow-sysctl --sampler numa-balancing -- touch started";
    if let Some((code, message)) = inside(prepare, only) {
        assert_eq!(code, 2, "{message}");
        assert!(message.contains("may not be changed"), "{message}");
    }
}

#[test]
fn a_state_that_cannot_be_kept_changes_nothing() {
    let only = "--allow-sysctl --sampler numa-balancing -- touch started";
    let state = "/run/hither-sysctl.json";
    let tmpfs = "mount -t tmpfs -o size=4k none /run";
    let prepares = [
        // No room; another user's; writable by others; a link; a folder.
        (
            format!("{tmpfs} && {{ head -c 8192 /dev/zero > /run/all; true; }}"),
            "No space left",
        ),
        (
            format!("{tmpfs} && touch {state} && chown 65534 {state}"),
            "somebody else",
        ),
        (
            format!("{tmpfs} && touch {state} && chmod 666 {state}"),
            "somebody else",
        ),
        (format!("{tmpfs} && ln -s /etc/passwd {state}"), "safely"),
        (format!("{tmpfs} && mkdir {state}"), "safely"),
    ];
    for (prepare, part) in prepares {
        if let Some((code, message)) = inside(&prepare, only) {
            assert_eq!(code, 2, "{prepare}: {message}");
            assert!(message.contains(part), "{prepare}: {message}");
        }
    }
}
