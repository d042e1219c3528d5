//! `hither trace` as a launcher: messages, exit status, signals, ranks. No tracer is
//! needed: in these tests a shell script stands in for DynamoRIO and just becomes the
//! program, so what hither itself does to it shows.
#[path = "common/outcome.rs"]
#[allow(dead_code)] // Other tests use more of it.
mod outcome;

use outcome::text;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{kill, killpg, Signal};
use nix::unistd::Pid;
use tempfile::TempDir;

/// An installed hither with the stand-in, and a folder to work in.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let place = Place(tempfile::tempdir().expect("tempdir"));
        // By a process of its own: a program that this one has open for writing could
        // not be started while another test forks.
        let install = "mkdir -p bin lib/hither work && cp \"$0\" bin/hither && cd lib/hither &&
            printf '#!/bin/sh\\nexec \"$DYNAMORIO_EXE_PATH\" \"$@\"\\n' >libdynamorio.so &&
            chmod +x libdynamorio.so && printf '%s' \"$1\" >libhither_tracer.so";
        let version = format!("hither tracer, wire {};", hither_sys::wire::VERSION);
        let mut shell = Command::new("sh");
        shell.args(["-c", install, env!("CARGO_BIN_EXE_hither"), &version]);
        let done = shell.current_dir(place.0.path()).status().expect("sh");
        assert!(done.success());
        place
    }

    fn hither(&self) -> PathBuf {
        self.0.path().join("bin/hither")
    }

    fn work(&self, name: &str) -> PathBuf {
        self.0.path().join("work").join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        // What whoever started the tests ignores (nohup, a shell's `&`) is not ignored here.
        let mut command = Command::new("env");
        command
            .arg("--default-signal")
            .arg(self.hither())
            .arg("trace")
            .args(arguments)
            .current_dir(self.work(""))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("hither")
    }

    /// One of `ranks` ranks of job `job`, as Open MPI would start it.
    fn rank(&self, job: &str, ranks: u32, script: &str) -> Child {
        let ranks = ranks.to_string();
        let mut command = self.command(&["-o", "all", "--", "sh", "-c", script]);
        command
            .env("OMPI_COMM_WORLD_LOCAL_SIZE", &ranks)
            .env("OMPI_COMM_WORLD_SIZE", &ranks)
            .env("PMIX_NAMESPACE", format!("{job}-{}", std::process::id()))
            .process_group(0)
            .spawn()
            .expect("hither")
    }
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(i32::try_from(child.id()).expect("pid"))
}

/// The profile's word on how the run ended.
fn end(profile: &Path) -> String {
    let meta = fs::read_to_string(profile.join("profile.json")).expect("profile.json");
    let meta: serde_json::Value = serde_json::from_str(&meta).expect("JSON");
    meta["end"].to_string()
}

#[track_caller]
fn wait_for(what: &str, done: impl Fn() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(20), "no {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Exit status and a part of the message, which is one line.
#[track_caller]
fn check_refused(arguments: &[&str], status: i32, part: &str) {
    let place = Place::new();
    let out = place.run(arguments);
    let message = text(&out.stderr);
    assert_eq!(out.status.code(), Some(status), "{message}");
    assert!(message.contains(part), "{message}");
    if message.starts_with("hither: ") {
        assert_eq!(message.lines().count(), 1, "{message}");
    }
    let left = fs::read_dir(place.work("")).expect("work").count();
    assert_eq!(left, 0, "something was left behind");
}

#[test]
fn commands_that_cannot_be_traced() {
    check_refused(&["no-such-program"], 127, "no such program");
    check_refused(&["--", "/no/such/path", "x"], 127, "no such program");
    check_refused(&["/etc"], 126, "is a folder");
    check_refused(&["/etc/passwd"], 126, "not executable");
}

#[test]
fn usage_errors() {
    check_refused(&[], 2, "Usage: hither trace");
    check_refused(&["--no-such-option", "--", "true"], 2, "--no-such-option");
    check_refused(&["--slice", "10", "true"], 2, "10ms");
    check_refused(&["--line", "48", "true"], 2, "power of two");
    check_refused(&["--sharers", "9", "true"], 2, "1..=4");
    check_refused(&["--sharers", "3", "true"], 2, "--oracle");
    check_refused(&["--sample", "true"], 2, "--");
    check_refused(&["--sample=2", "true"], 2, "at most 1");
    check_refused(&["--sample", "--oracle", "--", "true"], 2, "--oracle");
    check_refused(&["--max-size", "1k", "true"], 2, "1M");
}

#[test]
fn output_is_checked_before_the_program_runs() {
    let run = "echo ran; echo ran >&2";
    check_refused(&["-o", "no/x", "sh", "-c", run], 2, "there is no folder no");
    let place = Place::new();
    fs::create_dir(place.work("mine.hither")).expect("mkdir");
    fs::write(place.work("mine.hither/thesis"), "x").expect("write");
    let out = place.run(&["-o", "mine", "sh", "-c", run]);
    assert_eq!(
        (out.status.code(), text(&out.stdout).as_str()),
        (Some(2), "")
    );
    assert!(
        text(&out.stderr).contains("not a profile"),
        "{}",
        text(&out.stderr)
    );
    assert!(place.work("mine.hither/thesis").exists());
}

#[test]
fn unknown_functions_are_named() {
    let hither = env!("CARGO_BIN_EXE_hither");
    check_refused(
        &["--from", "no_such_function", hither],
        2,
        "no_such_function",
    );
}

#[test]
fn a_tracer_of_another_version_runs_nothing() {
    let place = Place::new();
    let other = "hither tracer, wire 1;";
    fs::write(place.0.path().join("lib/hither/libhither_tracer.so"), other).expect("written");
    let out = place.run(&["touch", "ran"]);
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("another version"));
    assert!(!place.0.path().join("work/ran").exists());
}

#[test]
fn a_missing_tracer_names_the_fix() {
    let place = Place::new();
    fs::remove_file(place.0.path().join("lib/hither/libhither_tracer.so")).expect("rm");
    let out = place.run(&["true"]);
    assert_eq!(out.status.code(), Some(2));
    assert!(
        text(&out.stderr).contains("`make`"),
        "{}",
        text(&out.stderr)
    );
}

#[test]
fn output_and_status_are_the_programs() {
    let place = Place::new();
    let out = place.run(&["--", "sh", "-c", "echo out; echo err >&2; exit 3"]);
    assert_eq!(out.status.code(), Some(3));
    assert_eq!(text(&out.stdout), "out\n");
    let lines: Vec<_> = text(&out.stderr).lines().map(str::to_string).collect();
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert_eq!(lines[0], "err");
    assert!(lines[1].contains("exit status 3"), "{lines:?}");
    assert!(lines[1].contains("-> sh.hither ("), "{lines:?}");
    assert_eq!(lines[2], "hither: next: hither report --text sh.hither");
    // And once more over the profile that is there now.
    let out = place.run(&["-q", "sh", "-c", "echo err >&2; kill -SEGV $$"]);
    assert_eq!(out.status.code(), Some(128 + Signal::SIGSEGV as i32));
    assert_eq!(text(&out.stderr), "err\n");
    assert!(end(&place.work("sh.hither")).contains("11"));
}

/// Sets of signals in lines of /proc/PID/status, but for 32 and 33: the C library keeps
/// them for itself and sets them up when it makes a thread.
fn signals(status: &str) -> Vec<u64> {
    let set = |line: &str| u64::from_str_radix(line.split_once(":\t")?.1, 16).ok();
    let sets = status.lines().filter(|line| line.starts_with("Sig"));
    sets.map(|line| set(line).expect("a set of signals") & !(3 << 31))
        .collect()
}

#[test]
fn the_program_finds_what_hither_was_given() {
    let place = Place::new();
    let script = "grep -E 'SigBlk|SigIgn' /proc/self/status; readlink /proc/self/fd/*; pwd";
    let run = |prefix: &str, program: &[&str]| {
        let call = format!("{prefix} exec \"$@\"");
        let mut shell = Command::new("bash");
        shell.args(["-c", &call, "bash"]).args(program);
        shell.args(["sh", "-c", script]);
        let out = shell.current_dir(place.work("")).output().expect("bash");
        assert_eq!(out.status.code(), Some(0), "{prefix} {}", text(&out.stderr));
        text(&out.stdout)
    };
    let hither = place.hither();
    let hither = hither.to_str().expect("path");
    for prefix in [
        "",
        "trap '' PIPE;",
        "trap '' INT QUIT;",
        // Then no exit status can be had, unless hither sees to it.
        "trap '' CHLD;",
        "exec 8</dev/null;",
    ] {
        let native = run(prefix, &[]);
        let traced = run(prefix, &[hither, "trace", "-q", "--"]);
        assert!(native.lines().count() > 5, "{native}");
        assert_eq!(signals(&native), signals(&traced), "{prefix}");
        // Pipes and processes have numbers of their own.
        let plain = |text: &str| {
            let lines = text.lines().filter(|line| !line.starts_with("Sig"));
            lines
                .collect::<String>()
                .replace(|c: char| c.is_ascii_digit(), "")
        };
        assert_eq!(plain(&native), plain(&traced), "{prefix}");
    }
}

#[test]
fn signals_sent_to_hither_reach_the_program() {
    for (signal, name) in [
        (Signal::SIGTERM, "TERM"),
        (Signal::SIGHUP, "HUP"),
        (Signal::SIGINT, "INT"),
        (Signal::SIGUSR1, "USR1"),
    ] {
        let place = Place::new();
        let script =
            format!("trap 'echo got; exit 5' {name}; echo up; while :; do sleep 0.01; done");
        let mut child = place
            .command(&["sh", "-c", &script])
            .spawn()
            .expect("hither");
        let mut lines = BufReader::new(child.stdout.take().expect("stdout")).lines();
        assert_eq!(lines.next().expect("line").expect("read"), "up");
        kill(pid(&child), signal).expect("kill");
        assert_eq!(lines.next().expect("line").expect("read"), "got", "{name}");
        assert_eq!(child.wait().expect("wait").code(), Some(5));
        assert!(place.work("sh.hither").exists());
    }
}

#[test]
fn the_program_goes_on_without_hither() {
    let place = Place::new();
    let script = "echo up; read line; echo $line > went-on";
    let mut command = place.command(&["sh", "-c", script]);
    let mut child = command.stdin(Stdio::piped()).spawn().expect("hither");
    let mut lines = BufReader::new(child.stdout.take().expect("stdout")).lines();
    lines.next();
    let input = child.stdin.take().expect("stdin");
    child.kill().expect("kill");
    child.wait().expect("wait");
    std::io::Write::write_all(&mut { input }, b"yes\n").expect("write");
    wait_for("end of the program", || {
        fs::read_to_string(place.work("went-on")).is_ok_and(|s| s == "yes\n")
    });
    assert!(!place.work("sh.hither").exists());
}

#[test]
fn ranks_share_one_profile() {
    let place = Place::new();
    let scripts = ["exit 0", "sleep 0.3; exit 4", "kill -KILL $$"];
    let ranks = scripts.map(|script| place.rank("three", 3, script));
    let out = ranks.map(|rank| rank.wait_with_output().expect("wait"));
    // Which one leads is a matter of chance; it reports a signal as a shell does.
    let killed = &out[2].status;
    assert_eq!(out[0].status.code(), Some(0));
    assert_eq!(out[1].status.code(), Some(4));
    assert!(
        killed.signal() == Some(9) || killed.code() == Some(137),
        "{killed}"
    );
    let all: String = out.iter().map(|o| text(&o.stderr)).collect();
    assert_eq!(all.lines().count(), 2, "only one speaks: {all}");
    assert!(place.work("all.hither/profile.json").exists());
    assert_eq!(fs::read_dir(place.work("")).expect("work").count(), 1);
}

#[test]
fn the_profile_survives_a_launcher_that_kills_all_ranks() {
    let place = Place::new();
    let mut ranks = ["one", "two"]
        .map(|name| place.rank("killed", 2, &format!("touch up-{name}; exec sleep 60")));
    wait_for("start of both", || {
        ["up-one", "up-two"]
            .iter()
            .all(|up| place.work(up).exists())
    });
    for rank in &mut ranks {
        killpg(pid(rank), Signal::SIGKILL).expect("kill");
        rank.wait().expect("wait");
    }
    let profile = place.work("all.hither");
    wait_for("profile", || profile.join("profile.json").exists());
}

/// `hither doctor`'s trial run, as it reports it.
fn trial(place: &Place) -> serde_json::Value {
    let scratch = place.work("");
    let mut doctor = Command::new(place.hither());
    doctor.args(["doctor", "--json"]).env("TMPDIR", &scratch);
    let out = doctor.output().expect("doctor");
    assert_eq!(out.status.code(), Some(1), "{}", text(&out.stderr));
    let left = fs::read_dir(&scratch).expect("work").count();
    assert_eq!(left, 0, "the trial left something behind");
    let report: serde_json::Value = serde_json::from_slice(&out.stdout).expect("JSON");
    let checks = report["checks"].as_array().expect("checks");
    let trial = checks.iter().find(|c| c["name"] == "trial run");
    trial.expect("a trial run").clone()
}

/// A program that runs, but without our client in it, is not traced.
#[test]
fn doctor_does_not_take_running_for_tracing() {
    let place = Place::new();
    let got = trial(&place);
    assert_eq!(got["state"], "fails");
    assert_eq!(got["found"], "the program ran, but without the tracer");

    let broken = place.0.path().join("lib/hither/libdynamorio.so");
    fs::remove_file(&broken).expect("rm");
    fs::write(&broken, "").expect("write");
    let got = trial(&place);
    assert_eq!(got["state"], "fails");
    let found = got["found"].as_str().expect("text");
    assert!(found.contains("status: 2: cannot start /"), "{found}");
}
