//! A program that is stopped, goes on or is killed by others takes hither with it: its shell
//! watches hither only.
use nix::sys::signal::kill;
use nix::unistd::Pid;

use super::reached::descendant;
use super::*;

fn is_stopped(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| rest.starts_with('T'))
}

#[test]
fn hither_goes_on_with_its_program() {
    let place = Place::new();
    let command = place.command(&[HITHER, "auto", "--no-profile", "-q", "--", "sleep", "60"]);
    let running = Running::start(command);
    let hither = i32::try_from(running.child.id()).expect("pid");
    wait_for("program", || descendant(hither, "sleep").is_some());
    let program = descendant(hither, "sleep").expect("it");
    let send = |signal| kill(Pid::from_raw(program), signal).expect("signal");
    for _ in 0..2 {
        send(Signal::SIGSTOP);
        wait_for("stop", || is_stopped(hither));
        send(Signal::SIGCONT);
        wait_for("going on", || !is_stopped(hither) && !is_stopped(program));
    }
    send(Signal::SIGSTOP);
    wait_for("stop", || is_stopped(hither));
    send(Signal::SIGKILL);
    assert_eq!(status(&running.end()), 128 + 9);
}
