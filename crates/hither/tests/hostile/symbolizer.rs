//! The process that reads what others made: ELF, DWARF, source.
use super::*;

/// Lines for the shell: waits for the symbolizer process of hither, process `$hither`, and leaves its id in
/// `$symbols`, once it waits for its first question: before, it has not said yet that it gave up its rights.
const FIND: &str = "symbols=; for n in $(seq 500); do \
    for child in $(cat /proc/$hither/task/*/children); do \
      read name < /proc/$child/comm; [ \"$name\" = hither-symbols ] && \
      [ $(grep -c '^State:.S\\|^Seccomp:.2' /proc/$child/status) = 2 ] && symbols=$child; done; \
    [ -n \"$symbols\" ] && break; sleep 0.02; done; [ -n \"$symbols\" ] || exit 99";

/// Numbers of a line of /proc/PID/status as the shell printed it.
fn line<'a>(status: &'a str, name: &str) -> Vec<&'a str> {
    let found = status.lines().find_map(|line| line.strip_prefix(name));
    found.map_or_else(Vec::new, |line| line.split_whitespace().collect())
}

#[test]
fn it_may_read_files_and_do_nothing_else() {
    let place = Place::new();
    let seen = place.shell(&format!(
        "{HITHER} trace -q -o p -- sleep 3 & hither=$!; {FIND}; cat /proc/$symbols/status; wait $hither"
    ));
    let (shown, told) = (text(&seen.stdout), text(&seen.stderr));
    assert_eq!(status(&seen), 0, "{told}");
    assert_eq!(line(&shown, "Seccomp:"), ["2"], "{shown}");
    assert_eq!(line(&shown, "NoNewPrivs:"), ["1"], "{shown}");
    let is_root = nix::unistd::geteuid().is_root();
    // CAP_DAC_READ_SEARCH alone, as nobody.
    let rights = if is_root {
        "0000000000000004"
    } else {
        "0000000000000000"
    };
    assert_eq!(line(&shown, "CapEff:"), [rights], "{shown}");
    assert_eq!(line(&shown, "Uid:")[0] == "65534", is_root, "{shown}");
}

#[test]
fn for_a_process_of_another_user_it_is_that_user() {
    if place_of_two().is_none() {
        return;
    }
    let place = Place::new();
    let seen = place.shell(&format!(
        "setpriv --reuid {STRANGER} --regid {STRANGER} --clear-groups sleep 60 & program=$!; sleep 0.3; \
         {HITHER} auto -q -o p --pid $program --yes & hither=$!; {FIND}; \
         cat /proc/$symbols/status; kill $program; wait"
    ));
    let shown = text(&seen.stdout);
    let stranger = STRANGER.to_string();
    assert_eq!(line(&shown, "Uid:"), [stranger.as_str(); 4], "{shown}");
    assert_eq!(line(&shown, "CapEff:"), ["0000000000000000"], "{shown}");
    assert_eq!(line(&shown, "Seccomp:"), ["2"], "{shown}");
}

/// As where its parser falls over a damaged file, or memory runs out.
#[test]
fn where_it_is_killed_only_names_are_missing() {
    let place = Place::new();
    fs::write(
        place.path("go.c"),
        "double table[1 << 16];\nint main(void) {\n  \
        for (int i = 0; i < 1 << 22; i++) table[i & 0xffff] += i;\n  return 7;\n}\n",
    )
    .expect("write");
    let built = place.shell("gcc -g -O1 -o go go.c");
    assert!(built.status.success(), "{}", text(&built.stderr));
    let lacks = "Names and source lines are missing";
    for killed in [false, true] {
        let kill = if killed {
            "kill -KILL $symbols"
        } else {
            "true"
        };
        let seen = place.shell(&format!(
            "{HITHER} trace -o p -- sh -c 'sleep 1; ./go' & hither=$!; {FIND}; {kill}; wait $hither"
        ));
        let told = text(&seen.stderr);
        assert_eq!(status(&seen), 7, "{told}");
        assert_eq!(told.contains(lacks), killed, "{told}");
        let profile = hither_profile::read(&place.path("p.hither")).expect("a profile");
        let accesses: u64 = profile.threads.iter().map(|t| t.reads + t.writes).sum();
        assert!(accesses > 1 << 22, "{accesses}");
        let is_named = profile.objects.iter().any(|o| o.name == "table");
        assert_eq!(is_named, !killed, "{:?}", profile.meta.limits);
        let limits = profile.meta.limits.iter();
        assert_eq!(
            limits.filter(|l| l.starts_with(lacks)).count(),
            usize::from(killed)
        );
    }
}

/// Where names take long, an interrupt gives the profile without them. The first two seconds after the program
/// interrupts are its own.
#[test]
fn an_interrupt_leaves_names_out_and_keeps_the_profile() {
    let place = Place::new();
    let seen = place.shell(&format!(
        "{HITHER} trace -o p -- sleep 1 & hither=$!; {FIND}; kill -STOP $symbols; \
         sleep 8; kill -TERM $hither; wait $hither"
    ));
    let told = text(&seen.stderr);
    assert_eq!(status(&seen), 0, "{told}");
    assert!(told.contains("leaving names out"), "{told}");
    let profile = hither_profile::read(&place.path("p.hither")).expect("a profile");
    let accesses: u64 = profile.threads.iter().map(|t| t.reads + t.writes).sum();
    assert!(accesses > 1000, "{accesses}: {told}");
    let limits = &profile.meta.limits;
    assert!(
        limits
            .iter()
            .any(|l| l.starts_with("Names and source lines are missing")),
        "{limits:?}"
    );
}
