//! Whatever ends the program, or hither, or only some of its processes.
use super::*;
use nix::sys::signal::kill;
use nix::unistd::Pid;

/// The program at work, which maps memory all the time, and its process id.
fn at_work(place: &Place) -> (Running, Pid) {
    let program = built("notice");
    let running = Running::start(place.marked(&[&RUN[..], &[program, "lasting", "0"]].concat()));
    wait_for("start", || !place.read("up").is_empty());
    let pid = place.read("up").trim().parse().expect("a process id");
    (running, Pid::from_raw(pid))
}

/// The parent of a process, and who traces it.
fn relatives(pid: Pid) -> (Pid, Pid) {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("a process");
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        Pid::from_raw(line.expect(name).trim().parse().expect("a process id"))
    };
    (field("PPid:"), field("TracerPid:"))
}

#[test]
fn the_program_is_killed() {
    for (signal, code) in [
        (Signal::SIGKILL, 137),
        (Signal::SIGSEGV, 139),
        (Signal::SIGTERM, 143),
        (Signal::SIGABRT, 134),
    ] {
        let place = Place::new();
        let (running, pid) = at_work(&place);
        kill(pid, signal).expect("kill");
        let output = running.end();
        assert_eq!(status(&output), code);
        assert_eq!(text(&output.stdout), "");
        place.nobody_left();
    }
}

#[test]
fn signals_to_hither_reach_the_program() {
    for (signal, code) in [
        (Signal::SIGTERM, 143),
        (Signal::SIGHUP, 129),
        (Signal::SIGINT, 130),
        (Signal::SIGQUIT, 131),
        (Signal::SIGUSR1, 138),
        (Signal::SIGUSR2, 140),
    ] {
        let place = Place::new();
        let (running, _) = at_work(&place);
        running.signal(signal);
        let output = running.end();
        assert_eq!(status(&output), code, "{}", text(&output.stderr));
        place.nobody_left();
    }
}

/// The hither that the user started gone, the program goes on as it was.
#[test]
fn hither_is_killed() {
    let place = Place::new();
    let program = built("notice");
    let line = format!("{program} lasting 50 > said; echo $? > status; {program} affinity > units");
    let running = Running::start(place.marked(&[&RUN[..], &["sh", "-c", &line]].concat()));
    wait_for("start", || !place.read("up").is_empty());
    running.signal(Signal::SIGKILL);
    assert_eq!(status(&running.end()), 137);
    wait_for("end of the program", || {
        place.read("units").contains("online")
    });
    assert_eq!(place.read("said"), "lasted 1\n");
    assert_eq!(place.read("status"), "4\n");
    place.nobody_left();
}

/// With who follows it gone, the program ends too: documented, since its filtered calls
/// would all fail.
#[test]
fn the_follower_is_killed() {
    let place = Place::new();
    let (running, pid) = at_work(&place);
    let (parent, follower) = relatives(pid);
    assert_ne!(follower.as_raw(), 0, "nobody follows");
    assert_ne!(parent, follower);
    kill(follower, Signal::SIGKILL).expect("kill");
    let output = running.end();
    check_refusal(&output, 2, &[]);
    place.nobody_left();
}

#[test]
fn a_daemon_goes_on_when_hither_has_returned() {
    for program in ["notice", "notice-static"] {
        let place = Place::new();
        let output = place.followed(&[built(program), "daemon"]);
        assert_eq!(text(&output.stdout), "started\n");
        assert_eq!(status(&output), 6);
        assert!(!place.left().is_empty());
        place.write("go", "");
        wait_for("daemon", || !place.read("done").is_empty());
        assert_eq!(
            place.read("done"),
            "touched 2000 thread 0 0 mask 1 shell 4\n"
        );
        place.nobody_left();
    }
}

/// A pipe to what follows must end when the program does, daemon or not.
#[test]
fn nothing_keeps_the_users_pipes_open() {
    let place = Place::new();
    let line = format!(
        "{} {} daemon | cat; echo ended",
        RUN.join(" "),
        built("notice")
    );
    let output = place.marked_shell(&line);
    assert_eq!(text(&output.stdout), "started\nended\n");
    place.write("go", "");
    place.nobody_left();
}

/// Background jobs of a shell that has ended.
#[test]
fn children_outlive_the_first_process() {
    let place = Place::new();
    let line = format!(
        "({} threads > sums; echo done >> sums) > /dev/null 2>&1 & exit 3",
        built("abuse")
    );
    assert_eq!(status(&place.followed(&["sh", "-c", &line])), 3);
    wait_for("child", || place.read("sums").ends_with("done\n"));
    assert_eq!(place.read("sums"), "9785692\ndone\n");
    place.nobody_left();
}

/// Stopped from outside, it is seen to be stopped, and goes on when told to.
#[test]
fn the_program_alone_is_stopped() {
    let place = Place::new();
    let line = [&RUN[..], &[built("notice"), "count", "100"]].concat();
    let running = Running::start(place.marked(&line));
    wait_for("start", || !place.read("count").is_empty());
    let hither = Pid::from_raw(i32::try_from(running.child.id()).expect("pid"));
    let children = fs::read_to_string(format!("/proc/{hither}/task/{hither}/children"));
    let children = children.expect("children");
    let program = children
        .split_whitespace()
        .map(|pid| pid.parse().expect("pid"));
    let program = program.map(Pid::from_raw).find(|&pid| {
        let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        text(&command).starts_with(built("notice"))
    });
    let program = program.expect("the program is hither's child");
    kill(program, Signal::SIGSTOP).expect("kill");
    let state = |pid: Pid| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(") ").next().unwrap_or_default().chars().next()
    };
    wait_for("stop of hither", || state(hither) == Some('T'));
    kill(hither, Signal::SIGCONT).expect("kill");
    kill(program, Signal::SIGCONT).expect("kill");
    let output = running.end();
    assert_eq!(text(&output.stdout), "counted to 100\n");
    assert_eq!(status(&output), 5);
    place.nobody_left();
}
