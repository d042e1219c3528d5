//! What a program can find out about where it runs.
use super::*;

#[test]
fn the_environment_is_the_programs_own() {
    let place = Place::new();
    let run_env = |prefix: &[&str]| {
        let mut command = place.command(&[prefix, &["env"]].concat());
        command.env_clear().envs([
            ("B", "2"),
            ("A", "1"),
            ("PATH", "/usr/bin:/bin"),
            ("DYNAMO", "x"),
        ]);
        let output = run(command);
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let hither = [HITHER, "trace", "-q", "-o", "traced", "--"];
    assert_eq!(run_env(&[]), run_env(&hither));
    // Also those that it starts.
    let nested = ["env", "-u", "B", "sh", "-c", "env; exec env"];
    assert_eq!(run_env(&nested), run_env(&[&hither[..], &nested].concat()));
    assert_eq!(place.profile().meta.processes.len(), 4);
}

#[test]
fn a_process_sees_itself() {
    let place = Place::new();
    let program = built("abuse");
    let call = |prefix: &str, how: &str| {
        place.shell(&format!(
            "trap '' USR2; {how} {prefix} {program} self 8</dev/null 5>&1"
        ))
    };
    for how in [
        "",
        "nice -n 3",
        "umask 027;",
        "ulimit -c 0; ulimit -S -s 4096;",
    ] {
        let native = call("", how);
        let traced = call(&format!("{HITHER} trace -q -o traced --"), how);
        assert!(text(&native.stdout).lines().count() > 20, "{how}");
        assert_eq!(text(&native.stdout), text(&traced.stdout), "{how}");
        assert_eq!(status(&traced), 0);
    }
    let renamed = format!("exec -a other {program} self");
    let two = Expected {
        processes: 2,
        threads: 2,
    };
    check_in(&place, &["bash", "-c", &renamed], &two);
    let native = place.shell("ls /proc/self/fd");
    let traced = place.shell(&format!("{HITHER} trace -q -o traced -- ls /proc/self/fd"));
    assert_eq!(text(&native.stdout), text(&traced.stdout));
}

#[test]
fn a_virtual_machine_that_a_program_starts_runs_untraced() {
    let place = Place::new();
    let launcher = built("launcher");
    let erlang = place.path("beam.smp");
    std::fs::copy("/bin/uname", &erlang).expect("a copy");
    for how in [
        format!("{launcher} a 'b c'; exit $?"),
        format!("trap '' USR2 INT; exec {launcher}"),
        format!("{} -s; exit 3", erlang.display()),
    ] {
        let line = ["sh", "-c", &how];
        let expected = Expected {
            processes: 1,
            threads: 1,
        };
        let profile = check_in(&place, &line, &expected);
        let told = profile.meta.limits.iter().any(|l| l.contains("Java"));
        assert!(told, "{:?}", profile.meta.limits);
        let mut images = profile.meta.processes.iter().map(|p| &p.executable);
        let left = ["launcher", "beam.smp"];
        assert!(images.all(|image| left.iter().all(|name| !image.ends_with(name))));
    }
}

/// Those that somebody outside ignores, and those that the programs change.
#[test]
fn signals_stay_ignored_in_what_a_program_executes() {
    let place = Place::new();
    let program = built("abuse");
    for script in [
        "exec $0 ignored",
        "trap \"\" INT; trap - HUP; $0 ignored; exec $0 ignored",
        "trap \"echo caught\" USR1; exec $0 ignored",
        "exec $0 ignoring",
    ] {
        let call = |prefix: &str| {
            let line = format!("trap '' HUP USR2 TSTP; {prefix} sh -c '{script}' {program}");
            let output = place.shell(&line);
            assert_eq!(status(&output), 0, "{line}: {}", text(&output.stderr));
            text(&output.stdout)
        };
        let native = call("");
        assert!(native.contains(" 20 "), "{script}: {native}");
        let traced = call(&format!("{HITHER} trace -q -o traced --"));
        assert_eq!(native, traced, "{script}");
        assert!(place.profile().meta.processes.len() > 1, "{script}");
    }
}

#[test]
fn programs_that_ask_for_valgrind_do_not_find_it() {
    check(&[&built("abuse"), "valgrind"], 1, 1);
}

#[test]
fn another_user() {
    let place = Place::new();
    if !nix::unistd::getuid().is_root() {
        eprintln!("skipped: only root can become somebody else");
        return;
    }
    place.shell("chmod 1777 .");
    let reachable = place.shell(&format!(
        "setpriv --reuid 65534 --regid 65534 --clear-groups test -x {HITHER}"
    ));
    if !reachable.status.success() {
        eprintln!("skipped: others may not run {HITHER}");
        return;
    }
    let traced = place.shell(&format!("setpriv --reuid 65534 --regid 65534 --clear-groups {HITHER} trace -q -o traced -- sh -c 'id -u; exit 3'"));
    assert_eq!(text(&traced.stderr), "");
    assert_eq!(
        (status(&traced), text(&traced.stdout).as_str()),
        (3, "65534\n")
    );
    assert_eq!(place.profile().meta.processes.len(), 2);
}

#[test]
fn programs_that_one_starts_run_untraced_where_asked() {
    let place = Place::new();
    let traced = |options: &str| {
        let line = format!("{HITHER} trace -q {options} -o traced -- sh -c 'uname; uname; exit 3'");
        let output = place.shell(&line);
        let said = (text(&output.stdout), status(&output));
        assert_eq!(said, ("Linux\nLinux\n".to_owned(), 3));
        let processes = place.profile().meta.processes.into_iter();
        let of_uname = processes.filter(|p| p.executable.ends_with("/uname"));
        of_uname.count()
    };
    assert_eq!(traced(""), 2);
    assert_eq!(traced("--no-follow"), 0);
}
