//! What a program can find out about where it runs, and hither in unusual places.
use super::*;

/// Set for the program: documented, so that no other pinner fights with hither.
const OURS: &str = "OMP_PROC_BIND=false";

fn environment(text: &str) -> Vec<&str> {
    let mut lines: Vec<_> = text.lines().filter(|line| *line != OURS).collect();
    lines.sort_unstable();
    lines
}

#[test]
fn the_environment_is_the_programs_own() {
    let place = Place::new();
    let run_env = |prefix: &[&str], line: &[&str]| {
        let mut command = place.command(&[prefix, line].concat());
        command.env_clear().envs([
            ("B", "2"),
            ("A", "1"),
            ("PATH", "/usr/bin:/bin"),
            ("LD_LIBRARY_PATH", "/nowhere"),
        ]);
        let output = run(command);
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    for line in [
        &["env"][..],
        &["env", "-u", "B", "sh", "-c", "env; exec env"],
    ] {
        let (alone, followed) = (run_env(&[], line), run_env(&RUN, line));
        assert_eq!(environment(&alone), environment(&followed));
        assert!(followed.contains(OURS), "{followed}");
    }
}

#[test]
fn a_process_sees_itself() {
    let place = Place::new();
    let program = built("abuse");
    let call = |prefix: &str, how: &str| {
        place.marked_shell(&format!(
            "trap '' USR2; {how} {prefix} {program} self 8</dev/null 5>&1"
        ))
    };
    for how in [
        "",
        "nice -n 3",
        "umask 027;",
        "ulimit -c 0; ulimit -S -s 4096;",
        "ulimit -S -f 64; ulimit -S -n 50;",
    ] {
        let alone = call("", how);
        assert!(text(&alone.stdout).lines().count() > 20, "{how}");
        same(&["self", how], &alone, &call(&RUN.join(" "), how));
    }
    check(&["bash", "-c", &format!("exec -a other {program} self")], 0);
    check(&["ls", "/proc/self/fd"], 0);
    check(&[built("notice"), "who"], 0);
    check(&["setsid", "-w", built("notice"), "who"], 0);
    place.nobody_left();
}

#[test]
fn signals_stay_ignored_or_blocked() {
    let place = Place::new();
    let program = built("abuse");
    for script in [
        "exec $0 ignored",
        "trap \"\" INT; trap - HUP; $0 ignored; exec $0 ignored",
        "exec $0 ignoring",
    ] {
        let call = |prefix: &str| {
            let line =
                format!("trap '' HUP USR2 TSTP PIPE CHLD; {prefix} sh -c '{script}' {program}");
            place.marked_shell(&line)
        };
        let alone = call("");
        assert!(text(&alone.stdout).contains(" 20 "), "{script}");
        same(&[script], &alone, &call(&RUN.join(" ")));
    }
    check(&["env", "--block-signal=USR1", program, "self"], 0);
    let limited = |prefix: &str| {
        place.marked_shell(&format!(
            "ulimit -S -f 64; {prefix} {program} files; echo $?"
        ))
    };
    // Who waits for it sees an exit status where there was a signal: what a shell says differs.
    assert_eq!(text(&limited("").stdout), "153\n");
    assert_eq!(text(&limited(&RUN.join(" ")).stdout), "153\n");
}

/// Standard streams that are closed, and a reader that goes away.
#[test]
fn unusual_streams() {
    let place = Place::new();
    for how in [
        "{} sh -c 'echo a; echo b >&2' >&-; echo $?",
        "{} sh -c 'echo a; echo b >&2' 2>&-; echo $?",
        "{} sh -c 'echo a; read x' <&-; echo $?",
        "{} sh -c 'ls /proc/self/fd' 0<&- 1>&2; echo $?",
        "({} yes; echo $? > status) | head -n 3; cat status",
        "({} sh -c 'echo a' > /dev/full); echo $?",
    ] {
        let alone = place.marked_shell(&how.replace("{}", ""));
        let followed = place.marked_shell(&how.replace("{}", &RUN.join(" ")));
        same(&[how], &alone, &followed);
    }
    place.nobody_left();
}

#[test]
fn another_user() {
    if !root() {
        return;
    }
    let place = Place::new();
    place.shell("chmod 1777 .");
    let (hither, notice) = (built("hither"), built("notice"));
    for (program, how) in [
        (&notice, "affinity"),
        (&notice, "clones"),
        (&notice, "siginfo"),
    ] {
        let line = [program, how];
        let alone = run(place.command(&[&NOBODY[..], &line].concat()));
        let run_by = [&NOBODY[..], &[hither], &RUN[1..], &line].concat();
        same(&run_by, &alone, &run(place.marked(&run_by)));
    }
    let line = [
        &NOBODY[..],
        &[hither],
        &RUN[1..],
        &["sh", "-c", "id -u; exit 3"],
    ]
    .concat();
    let output = run(place.marked(&line));
    assert_eq!(text(&output.stderr), "");
    assert_eq!(text(&output.stdout), "65534\n");
    assert_eq!(status(&output), 3);
    place.nobody_left();
}

/// One process can be followed by one only: the inner hither says so, or does without.
#[test]
fn nested() {
    let place = Place::new();
    let output = place.followed(&[&RUN[..], &["sh", "-c", "echo inside; exit 3"]].concat());
    check_refusal(&output, 2, &[]);
    place.nobody_left();
}

/// The tracer works as always under a `hither run`.
#[test]
fn tracing_while_followed() {
    let place = Place::new();
    let program = workload("pairs");
    let line = [
        HITHER, "trace", "-q", "-o", "traced", "--", &program, "4", "2", "200",
    ];
    let output = place.followed(&line);
    assert_eq!(text(&output.stderr), "");
    assert_eq!(text(&output.stdout), "pairs: correct\n");
    assert_eq!(status(&output), 0);
    let profile = hither_profile::read(&place.path("traced.hither")).expect("a profile");
    assert!(profile.threads.len() >= 4);
    place.nobody_left();
}
