//! Processes that run already: all their threads and children are followed, those made
//! before and after, and have in the end the masks that they had.
use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::killed::{masks, program};
use super::*;

/// Whether those threads of `calm` that share memory are on one unit each: its first thread
/// does nothing.
pub fn is_pinned(pid: i32) -> bool {
    let is_one = |mask: &&String| mask.parse::<u32>().is_ok();
    masks(pid).iter().filter(is_one).count() >= 4
}

/// What a program prints first.
fn pid_in(place: &Place, name: &str) -> i32 {
    let read = || fs::read_to_string(place.path(name)).unwrap_or_default();
    wait_for("program", || read().ends_with('\n'));
    read().trim().parse().expect("pid")
}

fn follow(place: &Place, pid: i32, more: &[&str]) -> Running {
    let pid = pid.to_string();
    let line = [&[HITHER, "auto", "--budget", "100%", "--pid", &pid], more].concat();
    Running::start(place.command(&line))
}

/// A shell that starts two programs: the second when it is told to.
fn family(place: &Place) -> Child {
    let script = "./calm 4 < a > out.a & read go; ./calm 4 < b > out.b & wait";
    let made = place.shell("mkfifo a b");
    assert!(made.status.success());
    let mut command = Command::new("sh");
    command.args(["-c", script]).current_dir(place.0.path());
    command.stdin(Stdio::piped()).spawn().expect("sh")
}

/// Holds a pipe open that the shell's program opens too.
fn open(place: &Place, name: &str) -> fs::File {
    fs::File::options()
        .write(true)
        .open(place.path(name))
        .expect("pipe")
}

#[test]
fn children_made_before_and_after_are_followed_and_freed() {
    let Some((place, _, free)) = program() else {
        return;
    };
    let mut shell = family(&place);
    let a = open(&place, "a");
    let first = pid_in(&place, "out.a");
    wait_for("threads", || masks(first).len() == 5);
    let hither = follow(&place, shell.id().cast_signed(), &[]);
    wait_for("pinned threads of the first", || is_pinned(first));
    shell
        .stdin
        .take()
        .expect("stdin")
        .write_all(b"go\n")
        .expect("go");
    let b = open(&place, "b");
    let second = pid_in(&place, "out.b");
    wait_for("pinned threads of the second", || is_pinned(second));
    // The first ends meanwhile.
    drop(a);
    wait_for("end of the first", || masks(first).is_empty());
    assert!(is_pinned(second));
    hither.signal(Signal::SIGTERM);
    let left = hither.end();
    assert_eq!(status(&left), 0, "{}", text(&left.stderr));
    assert!(masks(second).iter().all(|mask| *mask == free));
    drop(b);
    assert_eq!(shell.wait().expect("wait").code(), Some(0));
    for out in ["out.a", "out.b"] {
        let out = fs::read_to_string(place.path(out)).expect("out");
        assert!(out.ends_with("\n0 wrong\n"), "{out}");
    }
}

/// It ends with the process that was joined, whenever that is.
#[test]
fn processes_that_end_are_left() {
    let Some((place, calm, _)) = program() else {
        return;
    };
    for round in 0..20 {
        let mut command = place.command(&[&calm, "4"]);
        let mut program = command.stdin(Stdio::piped()).spawn().expect("program");
        let pid = program.id().cast_signed();
        std::thread::sleep(Duration::from_millis(5 * (round % 4)));
        let hither = follow(&place, pid, &["-q"]);
        std::thread::sleep(Duration::from_millis(7 * round));
        match round % 2 {
            0 => drop(program.stdin.take()),
            _ => program.kill().expect("kill"),
        }
        program.wait().expect("wait");
        let left = hither.end();
        let (code, message) = (status(&left), text(&left.stderr));
        let gone = code == 2 && message.contains("there is no process");
        assert!(code == 0 && message.is_empty() || gone, "{code}: {message}");
    }
}
