//! Whatever ends the program, or hither, or both.
use super::*;
use hither_profile::RunEnd;
use nix::sys::signal::kill;
use nix::unistd::Pid;

#[test]
fn programs_that_end_with_threads_running() {
    for how in ["spin", "work", "work"] {
        check(&[&built("abuse"), how], 1, 5);
    }
    for (how, signal) in [("abort", 6), ("kill", 9), ("term", 15)] {
        let place = Place::new();
        let traced = place.trace(&[&built("abuse"), how]);
        assert_eq!(status(&traced), 128 + signal, "{how}");
        let profile = place.profile();
        assert_eq!(profile.meta.end, RunEnd::Signaled { signal });
        assert_eq!(profile.threads.len(), 5, "{how}");
        let spinner = profile.threads.last().expect("threads");
        assert!(spinner.accesses() > 10_000, "{how}: {}", spinner.accesses());
    }
}

#[test]
fn without_hither_the_program_goes_on() {
    let place = Place::new();
    let script = format!(
        "echo $$ > pid; {} 3000; {} threads > sums; echo done >> sums",
        workload("pairs"),
        built("abuse")
    );
    let traced = Running::start(place.command(&[
        HITHER, "trace", "-q", "-o", "traced", "--", "sh", "-c", &script,
    ]));
    wait_for("start", || place.path("pid").exists());
    std::thread::sleep(Duration::from_millis(300));
    traced.signal(Signal::SIGKILL);
    traced.end();
    wait_for("end", || {
        fs::read_to_string(place.path("sums")).is_ok_and(|s| s.ends_with("done\n"))
    });
    assert_eq!(
        fs::read_to_string(place.path("sums")).expect("sums"),
        "9785692\ndone\n"
    );
    let left: Vec<_> = fs::read_dir(place.0.path())
        .expect("folder")
        .map(|e| e.expect("entry").file_name())
        .collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

/// It is read by all verbs, and says that it is not the whole run.
#[test]
fn a_hither_that_is_killed_leaves_what_it_had_written() {
    let place = Place::new();
    let program = format!("{} 2 100000000 64", workload("ring"));
    let script = format!("echo $$ > pid; exec {program}");
    let traced = Running::start(place.command(&[
        HITHER, "trace", "-q", "-o", "traced", "--", "sh", "-c", &script,
    ]));
    wait_for("checkpoint", || place.path("traced.hither").exists());
    traced.signal(Signal::SIGKILL);
    traced.end();
    let pid = fs::read_to_string(place.path("pid")).expect("pid");
    let pid = Pid::from_raw(pid.trim().parse().expect("pid"));
    kill(pid, Signal::SIGKILL).expect("the program goes on");
    let names = || fs::read_dir(place.0.path()).expect("folder").count();
    wait_for("removal of what was begun", || names() == 2);
    let profile = place.profile();
    assert_eq!(profile.meta.end, RunEnd::Interrupted);
    assert_eq!(profile.threads.len(), 3, "the shell's too");
    assert!(profile.comm.iter().map(|c| c.events).sum::<u64>() > 1000);
    let stat = place.shell(&format!("{HITHER} stat traced.hither"));
    assert_eq!(status(&stat), 0, "{}", text(&stat.stderr));
    assert!(text(&stat.stdout).contains("The profile is cut off"));
    for verb in [
        "report traced.hither",
        "map --force traced.hither",
        "check --max-remote 100% traced.hither",
    ] {
        let read = place.shell(&format!("{HITHER} {verb}"));
        assert_eq!(status(&read), 0, "{verb}: {}", text(&read.stderr));
    }
}

#[test]
fn signals_reach_the_program() {
    for (signal, code) in [
        (Signal::SIGTERM, 143),
        (Signal::SIGHUP, 129),
        (Signal::SIGINT, 130),
    ] {
        let place = Place::new();
        let program = built("abuse");
        let traced = Running::start(place.command(&[
            HITHER, "trace", "-q", "-o", "traced", "--", &program, "wait",
        ]));
        wait_for("start", || place.path("up").exists());
        traced.signal(signal);
        let output = traced.end();
        assert_eq!(status(&output), code, "{}", text(&output.stderr));
        let profile = place.profile();
        assert_eq!(
            profile.meta.end,
            RunEnd::Signaled {
                signal: signal as i32
            }
        );
        assert!(accesses(&profile) > 1000);
    }
}

/// One signal, to a loop that never leaves the code cache: most arrive while the tracer's own code runs.
#[test]
fn a_signal_reaches_a_loop_that_only_computes() {
    const OFTEN: usize = 2;
    let program = built("interrupted");
    for how in ["misses", "allocates", "fills", "identity"] {
        for options in [&[][..], &["--bursts"], &["--sample"]] {
            for _ in 0..OFTEN {
                let place = Place::new();
                let line = [&LIMITED, options, &["-o", "traced", "--", &program, how]].concat();
                let traced = run(place.command(&line));
                assert_eq!(status(&traced), 0, "{how} {options:?}");
                assert!(accesses(&place.profile()) > 1000, "{how} {options:?}");
            }
        }
    }
}

#[test]
fn a_signal_ends_a_loop_that_only_computes() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let place = Place::new();
        let program = built("interrupted");
        let line = [&LIMITED[..], &["-o", "traced", "--", &program, "end"]].concat();
        let traced = Running::start(place.command(&line));
        wait_for("start", || place.path("up").exists());
        std::thread::sleep(Duration::from_millis(100));
        traced.signal(signal);
        let output = traced.end();
        assert_eq!(status(&output), 128 + signal as i32);
        let signal = signal as i32;
        assert_eq!(place.profile().meta.end, RunEnd::Signaled { signal });
    }
}

/// The terminal sends Ctrl-C to hither and the program alike.
#[test]
fn interrupt_from_a_terminal() {
    let place = Place::new();
    let program = built("abuse");
    let keys = format!(
        "(until test -e up; do sleep 0.1; done; printf '\\003'; sleep 1) |
         script -qec '{HITHER} trace -q -o traced -- {program} wait' /dev/null; echo status $?"
    );
    let output = place.shell(&keys);
    assert!(
        text(&output.stdout).contains("status 130"),
        "{}",
        text(&output.stdout)
    );
    assert_eq!(place.profile().meta.end, RunEnd::Signaled { signal: 2 });
}

#[test]
fn a_full_disk() {
    let place = Place::new();
    let mount = place.shell("mkdir small && mount -t tmpfs -o size=40k none small");
    if !mount.status.success() {
        eprintln!("skipped: only root may mount: {}", text(&mount.stderr));
        return;
    }
    let program = workload("pairs");
    let output = run(place.command(&[HITHER, "trace", "-q", "-o", "small/traced", "--", &program]));
    let left = place.shell("ls small/traced.hither small; umount small");
    assert_eq!(status(&output), 2, "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "pairs: correct\n");
    assert!(
        text(&output.stderr).contains("make room on the disk"),
        "{}",
        text(&output.stderr)
    );
    assert!(
        text(&left.stdout).contains("profile.json"),
        "{}",
        text(&left.stdout)
    );
}

/// Of accesses that fill the disk as many give way as the tables need, and the program goes on.
#[test]
fn a_disk_full_of_bursts() {
    let place = Place::new();
    let mount = place.shell("mkdir small && mount -t tmpfs -o size=300k none small");
    if !mount.status.success() {
        eprintln!("skipped: only root may mount: {}", text(&mount.stderr));
        return;
    }
    let program = workload("stencil2d");
    let line = [HITHER, "trace", "--full", "-q", "-o", "small/traced", "--"];
    let output = run(place.command(&[&line[..], &[&program, "64", "40"]].concat()));
    let folder = place.path("small/traced.hither");
    let kept = hither_profile::read(&folder);
    let bursts = hither_profile::bursts::BurstTrace::open(&folder).map(|b| b.map(|b| b.accesses()));
    let unmounted = place.shell("umount small");
    assert_eq!(status(&unmounted), 0);
    assert_eq!(status(&output), 0, "{}", text(&output.stderr));
    let profile = kept.expect("a profile");
    assert!(accesses(&profile) > 1000);
    let limits = &profile.meta.limits;
    assert!(limits.iter().any(|l| l.contains("given up")), "{limits:?}");
    let bursts = bursts.expect("readable").expect("bursts");
    let recorded = profile.meta.bursts.as_ref().expect("bursts");
    assert_eq!(recorded.accesses, bursts);
    assert!(bursts > 1000);
}

#[test]
fn a_limit_on_file_sizes() {
    let place = Place::new();
    let traced = format!("{HITHER} trace -q -o traced --");
    let program = built("abuse");
    let limited = |prefix: &str| place.shell(&format!("ulimit -S -f 64; {prefix} {program} files"));
    let (native, traced) = (limited(""), limited(&traced));
    assert_eq!(status(&native), 153, "SIGXFSZ");
    assert_eq!(status(&traced), 153);
    assert_eq!(place.profile().meta.end, RunEnd::Signaled { signal: 25 });
}
