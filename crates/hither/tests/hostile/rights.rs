//! Programs that give up rights while they are traced.
use super::*;
use std::process::Output;

const TOLD: &str = "A process gave up rights";

/// The program that gives them up, where root may test that.
fn place_of_drops() -> Option<Place> {
    let place = place_of_two()?;
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/hostile/drops.c");
    let built = place.shell(&format!("gcc -O1 -g -pthread -o drops {source}"));
    assert!(built.status.success(), "{}", text(&built.stderr));
    Some(place)
}

/// Traces a line of words; its exit status is 0, its output as expected, and hither says that it was
/// not traced to its end.
fn check(place: &Place, options: &str, line: &str, expected: &str) -> Output {
    let traced = place.shell(&format!("{HITHER} trace {options} -o p -- {line}"));
    let shown = text(&traced.stderr);
    assert_eq!(text(&traced.stdout), expected, "{line} {options}: {shown}");
    assert_eq!(status(&traced), 0, "{line} {options}: {shown}");
    assert!(shown.contains(TOLD), "{line} {options}: {shown}");
    let profile = hither_profile::read(&place.path("p.hither")).expect("a profile");
    let told = profile
        .meta
        .limits
        .iter()
        .any(|limit| limit.starts_with(TOLD));
    assert!(told, "{:?}", profile.meta.limits);
    fs::remove_dir_all(place.path("p.hither")).expect("remove");
    traced
}

/// The tracer in its parent, which is root's, would otherwise add to words at addresses of its choice.
#[test]
fn a_child_that_gives_up_rights_does_not_reach_its_parents_tracer() {
    let Some(place) = place_of_drops() else {
        return;
    };
    let expected = "before: mapped\nafter: not mapped\nparent: unharmed\n";
    for options in ["", "--sample 0.3", "--bursts", "--oracle"] {
        check(&place, options, "./drops fork", expected);
    }
}

#[test]
fn threads_of_a_process_that_gives_up_rights_run_on() {
    let Some(place) = place_of_drops() else {
        return;
    };
    for options in ["", "--sample 0.3", "--bursts", "--oracle"] {
        check(
            &place,
            options,
            "./drops threads",
            "before: mapped\nafter: not mapped\n",
        );
    }
}

/// What it executes finds what it would find without hither.
#[test]
fn what_such_a_process_executes_runs_as_without_hither() {
    let Some(place) = place_of_drops() else {
        return;
    };
    // Of the signals that are ignored the first 32: the C library uses the next two.
    let look = "id -u; grep -E 'SigBlk|NoNewPrivs' /proc/self/status; sed -n 's/SigIgn.*\\(........\\)$/\\1/p' /proc/self/status; \
        ls /proc/self/fd; env; grep -c dynamorio /proc/self/maps; exit 0";
    fs::write(place.path("look"), look).expect("write");
    set_mode(&place.path("look"), 0o644);
    for launcher in [
        "setpriv --reuid 65534 --regid 65534 --clear-groups",
        "setpriv --bounding-set -sys_ptrace",
        "unshare -U",
    ] {
        let line = format!("trap '' USR1; exec {launcher} sh look");
        fs::write(place.path("launch"), &line).expect("write");
        let alone = place.shell("sh launch");
        if !alone.status.success() {
            println!("skipped: {launcher}: {}", text(&alone.stderr));
            continue;
        }
        check(&place, "", "sh launch", &text(&alone.stdout));
    }
    let expected = format!("before: mapped\n{STRANGER}\n");
    check(&place, "", "./drops exec id -u", &expected);
}

#[test]
fn a_process_that_can_take_its_rights_back_stays_traced() {
    let Some(place) = place_of_drops() else {
        return;
    };
    let traced = place.shell(&format!("{HITHER} trace -o p -- ./drops back"));
    let shown = text(&traced.stderr);
    assert_eq!(
        text(&traced.stdout),
        "before: mapped\nafter: mapped\n",
        "{shown}"
    );
    assert!(!shown.contains(TOLD), "{shown}");
}

/// Where it may not even read hither's files.
#[test]
fn children_of_vfork_execute_programs_as_another_user() {
    let Some(place) = place_of_drops() else {
        return;
    };
    let installed = Path::new(HITHER).ancestors().nth(2).expect("target");
    let library = installed.join("lib/hither");
    let made = place.shell(&format!(
        "set -e; mkdir -p closed/bin closed/lib; cp {HITHER} closed/bin; cp -r {} closed/lib; chmod 700 closed",
        library.display()
    ));
    assert_eq!(status(&made), 0, "{}", text(&made.stderr));
    let expected = format!("before: mapped\n{STRANGER}\nparent: unharmed\n");
    for hither in [HITHER, "closed/bin/hither"] {
        let traced = place.shell(&format!("{hither} trace -o p -- ./drops vfork id -u"));
        let shown = text(&traced.stderr);
        assert_eq!(text(&traced.stdout), expected, "{hither}: {shown}");
        assert_eq!(status(&traced), 0, "{hither}: {shown}");
        assert!(shown.contains(TOLD), "{hither}: {shown}");
    }
}
