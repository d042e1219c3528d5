//! Programs that are not plainly there: without shared libraries, in namespaces of their own,
//! another user's, one that becomes another; and hither without rights. The threads of each
//! are seen to share private memory, which only the inside of the program can be asked for,
//! and put on units; the program counts right and ends as it would.
use std::io::Write;
use std::path::PathBuf;
use std::process::{ChildStdin, Stdio};

use super::*;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/auto/calm.c");
const NOBODY: &str = "setpriv --reuid 65534 --regid 65534 --clear-groups";
const MORE: &str = "-v --no-profile --budget 50% --json-lines lines";
const NAMESPACES: &str = "unshare -m -p -f --mount-proc";

/// A folder with `calm` in it; `None` where one of the two does not work, which it says, or
/// threads cannot be told apart by their units.
fn place(hither: &str, wrapper: &str) -> Option<Place> {
    let place = Place::new();
    let built = place.shell(&format!(
        "gcc -O1 -pthread -o calm {SOURCE} && gcc -O1 -pthread -static -o static {SOURCE} && chmod 1777 ."
    ));
    assert!(built.status.success(), "{}", text(&built.stderr));
    let tried = place.shell(&format!("{wrapper} {hither} --no-profile -q -- true"));
    let units = masks(std::process::id().cast_signed()).remove(0);
    if tried.status.success() && units.parse::<u32>().is_err() {
        return Some(place);
    }
    println!("skipped: units {units}; {}", text(&tried.stderr));
    None
}

/// The process that runs a program and comes from another.
pub fn descendant(pid: i32, program: &str) -> Option<i32> {
    let children = format!("/proc/{pid}/task/{pid}/children");
    let children = fs::read_to_string(children).unwrap_or_default();
    let children = children.split_whitespace().filter_map(|c| c.parse().ok());
    let name = |pid: i32| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let found = |child: i32| match name(child).trim_end() == program {
        true => Some(child),
        false => descendant(child, program),
    };
    children.into_iter().find_map(found)
}

/// hither and a program under it.
struct Followed {
    hither: Running,
    lines: PathBuf,
    input: ChildStdin,
    program: i32,
}

impl Followed {
    /// Until the program named so has all its threads.
    fn start(place: &Place, line: &str, name: &str) -> Followed {
        // Such as would leave a core file are not entered; who must be one, says so.
        let line = format!("ulimit -S -c 0; exec {line}");
        let mut command = place.command(&["sh", "-c", &line]);
        command.stdin(Stdio::piped());
        let mut hither = Running::start(command);
        let input = hither.child.stdin.take().expect("stdin");
        let of = hither.child.id().cast_signed();
        let ready = || descendant(of, name).is_some_and(|pid| masks(pid).len() == 5);
        wait_for("program", ready);
        Followed {
            hither,
            lines: place.path("lines"),
            input,
            program: descendant(of, name).expect("it runs"),
        }
    }

    /// Until so many faults were caused in all, and threads are on units.
    fn seen(&self, caused: u64) {
        wait_for("faults", || self.caused() >= caused);
        wait_for("pinned threads", || joined::is_pinned(self.program));
    }

    /// By the lines of the journal, the last of which may be half there.
    fn caused(&self) -> u64 {
        let lines = fs::read_to_string(&self.lines).unwrap_or_default();
        let lines = lines.lines().map(serde_json::from_str::<serde_json::Value>);
        lines.filter_map(|line| line.ok()?["extra"].as_u64()).sum()
    }

    /// Has it end. Returns what hither said.
    fn end(self) -> String {
        drop(self.input);
        let output = self.hither.end();
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        println!("{out}{err}");
        assert_eq!(status(&output), 0);
        assert!(out.ends_with("\n0 wrong\n"));
        err
    }
}

/// Runs `wrapper hither auto OPTIONS -- PROGRAM`, and wants it to say `said`.
fn check(wrapper: &str, options: &str, program: &str, said: &str) {
    let hither = format!("{HITHER} auto {options}");
    let Some(place) = place(&hither, wrapper) else {
        return;
    };
    let line = format!("{wrapper} {hither} {MORE} -- {program} 4 private");
    let name = program.rsplit('/').next().expect("a name");
    let followed = Followed::start(&place, &line, name);
    followed.seen(200);
    let message = followed.end();
    assert!(message.contains(said), "{message}");
}

#[test]
fn programs_without_shared_libraries() {
    check("", "--sampler move", "./static", "samplers: move");
}

#[test]
fn programs_in_namespaces_of_their_own() {
    let program = format!("{NAMESPACES} ./calm");
    check("", "--sampler move", &program, "samplers: move");
}

/// What hither may be told of a program the program itself may be told: it is not lent hither's rights.
#[test]
fn programs_of_other_users() {
    let program = format!("{NOBODY} ./calm");
    check("", "", &program, "sees who writes, not who reads");
}

/// Nothing is put into them that could watch more than page faults of the program itself.
#[test]
fn programs_of_other_users_are_not_lent_the_kernels_faults() {
    let hither = format!("{HITHER} auto --sampler move");
    let Some(place) = place(&hither, "") else {
        return;
    };
    let line = format!("{hither} {MORE} -- {NOBODY} ./calm 4 private");
    let followed = Followed::start(&place, &line, "calm");
    let began = std::time::Instant::now();
    while began.elapsed().as_secs() < 2 {
        let tasks = fs::read_dir(format!("/proc/{}/task", followed.program)).expect("tasks");
        for task in tasks.flatten() {
            let files = fs::read_dir(task.path().join("fd"))
                .into_iter()
                .flatten()
                .flatten();
            let links = files.flat_map(|file| fs::read_link(file.path()));
            for link in links {
                assert!(!link.to_string_lossy().contains("userfaultfd"), "{link:?}");
            }
        }
    }
    assert_eq!(followed.caused(), 0);
    let message = followed.end();
    let said = "may not watch page faults of the kernel";
    assert!(message.contains(said), "{message}");
}

/// Whoever may do nothing else may still see who writes to the memory of their own programs.
#[test]
fn hither_without_rights() {
    let said = "sees who writes, not who reads";
    check(NOBODY, "", "./calm", said);
}

#[test]
fn hither_in_a_container() {
    let said = "sees who writes, not who reads";
    check("unshare -Urpfm --mount-proc", "", "./calm", said);
}

/// The agent goes with the program that it was in, and comes again.
#[test]
fn a_program_that_becomes_another() {
    let hither = format!("{HITHER} auto --sampler move");
    let Some(place) = place(&hither, "") else {
        return;
    };
    let programs = "./calm 4 private ./static 4 private";
    let line = format!("{hither} {MORE} -- {programs}");
    let mut followed = Followed::start(&place, &line, "calm");
    followed.seen(200);
    followed.input.write_all(b"x").expect("a byte");
    let name = format!("/proc/{}/comm", followed.program);
    wait_for("other program", || {
        fs::read_to_string(&name).is_ok_and(|name| name == "static\n")
    });
    let before = followed.caused();
    followed.seen(before + 200);
    followed.end();
}

/// The user ids of all threads of a process, ours too, each once.
fn users(pid: i32) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"));
    let status = |task: fs::DirEntry| fs::read_to_string(task.path().join("status"));
    let all = tasks.into_iter().flatten().flatten().flat_map(status);
    let user = |status: String| {
        let line = status.lines().find_map(|line| line.strip_prefix("Uid:"));
        line.map(str::to_owned)
    };
    let mut users: Vec<String> = all.filter_map(user).collect();
    users.sort_unstable();
    users.dedup();
    users
}

/// Its threads give them up together, and ours, which they know nothing of, does so too.
#[test]
fn a_program_that_gives_up_its_rights() {
    if !nix::unistd::geteuid().is_root() {
        println!("skipped: needs root, for others have no rights to give up");
        return;
    }
    let hither = format!("{HITHER} auto");
    let Some(place) = place(&hither, "") else {
        return;
    };
    let line = format!("{hither} {MORE} -- ./calm 4 private nobody");
    let mut followed = Followed::start(&place, &line, "calm");
    followed.seen(200);
    followed.input.write_all(b"x").expect("a byte");
    let nobody = "\t65534\t65534\t65534\t65534";
    wait_for("rights given up", || users(followed.program) == [nobody]);
    let before = followed.caused();
    followed.seen(before + 200);
    assert_eq!(users(followed.program), [nobody]);
    followed.end();
}

/// A core file is to hold all of memory. Where pages are only protected it does.
#[test]
fn programs_that_leave_core_files() {
    let Some(place) = place(&format!("{HITHER} auto --sampler write-protect"), "") else {
        return;
    };
    let auto = format!("{HITHER} auto --sampler write-protect {MORE} -- ./calm 4 private");
    let line = format!("ulimit -c unlimited; exec {auto}");
    let followed = Followed::start(&place, &format!("sh -c '{line}'"), "calm");
    followed.seen(200);
    assert!(!followed.end().contains("left process"));
}
