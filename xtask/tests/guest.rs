//! `cargo xtask guest` as a user has it, and that it leaves no QEMU behind.
use std::fs;
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

fn xtask(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command.arg("guest").args(arguments);
    command
}

fn output(arguments: &[&str]) -> Output {
    xtask(arguments).output().unwrap()
}

#[test]
fn a_command_line_runs_in_the_same_folder_and_its_result_comes_back() {
    if hither_guest::or_skip().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("program");
    fs::copy("/usr/bin/env", &program).unwrap();
    let run = xtask(&["--nodes", "2", "--out", "results", "--"])
        .arg("./program echo one; numactl -H | head -n 1; echo two >&2; echo 3 > /out/3; exit 9")
        .current_dir(folder.path())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&run.stdout);
    assert_eq!(text, "one\navailable: 2 nodes (0-1)\n");
    assert_eq!(run.stderr, b"two\n");
    assert_eq!(run.status.code(), Some(9));
    let file = fs::read(folder.path().join("results/3"));
    assert_eq!(file.unwrap(), b"3\n");
}

/// By the wall clock it would take an hour, and be killed.
#[test]
fn a_machine_with_its_own_clock_does_not_wait() {
    if hither_guest::or_skip().is_none() {
        return;
    }
    let run = output(&[
        "--own-clock",
        "--nodes",
        "1",
        "--cpus",
        "1",
        "sleep 3600; echo slept",
    ]);
    let said = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(0), "{said}");
    assert_eq!(run.stdout, b"slept\n");
}

#[test]
fn bad_options_end_with_status_2_and_name_the_option() {
    for (arguments, word) in [
        (&["--nodes", "x", "true"][..], "--nodes"),
        (&["--distances", "10,y", "true"], "--distances"),
        (&["--cpus", "9", "true"], "9 cpus"),
        (&["--kernel", "5.10", "true"], "6.12"),
        (&[], "COMMAND"),
    ] {
        let run = output(arguments);
        let said = String::from_utf8_lossy(&run.stderr);
        assert_eq!(run.status.code(), Some(2), "{arguments:?} {said}");
        assert!(said.contains(word), "{said}");
    }
}

#[test]
fn qemu_dies_with_the_process_that_started_it() {
    if hither_guest::or_skip().is_none() {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let mut child = xtask(&["--", "sleep 1000"])
        .env("TMPDIR", scratch.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let children = format!("/proc/{0}/task/{0}/children", child.id());
    let qemu = wait_for(|| {
        let pids = fs::read_to_string(&children).ok()?;
        let mut pids = pids.split_whitespace();
        pids.find(|pid| name(pid).is_some_and(|n| n.starts_with("qemu")))
            .map(str::to_string)
    });
    child.kill().unwrap();
    child.wait().unwrap();
    wait_for(|| (name(&qemu).is_none_or(|n| !n.starts_with("qemu"))).then_some(()));
}

/// What a process that lives is called.
fn name(pid: &str) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let value = |key: &str| status.lines().find_map(|l| l.strip_prefix(key));
    let dead = value("State:")?.trim().starts_with('Z');
    (!dead).then_some(value("Name:")?.trim().to_string())
}

fn wait_for<T>(mut what: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(60) {
        if let Some(found) = what() {
            return found;
        }
        sleep(Duration::from_millis(20));
    }
    panic!("waited a minute in vain");
}
