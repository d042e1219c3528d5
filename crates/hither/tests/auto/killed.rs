//! hither killed with SIGKILL, at random moments, and its restore helper too: the program goes on
//! and ends as it would, and nothing that hither changed stays changed.
use std::fs;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use nix::sys::resource::{getrlimit, setrlimit, Resource};
use nix::sys::signal::kill;
use nix::unistd::Pid;

use super::*;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/auto/calm.c");
const SWITCH: &str = "/proc/sys/kernel/numa_balancing";
const RATES: &str = "/sys/kernel/debug/sched/numa_balancing";
/// The variable by which what a test started is found.
const MARK: &str = "HITHER_TEST_AUTO";
const KILLS: usize = 200;
/// Killed side by side.
const WORKERS: usize = 5;
/// The latest moment to be killed: the first mapping comes in the first half of it.
const LATEST: Duration = Duration::from_millis(1500);

/// Settings that hither changes.
fn settings() -> Vec<(String, String)> {
    let rates = fs::read_dir(RATES).into_iter().flatten().flatten();
    let paths = rates.map(|entry| entry.path().to_string_lossy().into_owned());
    let paths = paths.chain([SWITCH.to_owned()]);
    let value = |path: String| Some((fs::read_to_string(&path).ok()?, path));
    let mut all: Vec<_> = paths.filter_map(value).map(|(v, p)| (p, v)).collect();
    all.sort();
    all
}

/// The lists of units of all threads of a process but ours.
pub fn masks(pid: i32) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"));
    let status = |task: fs::DirEntry| fs::read_to_string(task.path().join("status")).ok();
    let mask = |status: String| {
        let field = |name| status.lines().find_map(|line| line.strip_prefix(name));
        let ours = field("Name:")?.trim().starts_with("hither-");
        (!ours).then_some(field("Cpus_allowed_list:")?.trim().to_owned())
    };
    let tasks = tasks.into_iter().flatten().flatten();
    tasks.filter_map(status).filter_map(mask).collect()
}

/// Processes that a mark is on, hither and its restore helper among them.
fn marked(mark: &str) -> Vec<i32> {
    let word = format!("{MARK}={mark}");
    let all = fs::read_dir("/proc").expect("proc").flatten();
    let pids = all.filter_map(|process| process.file_name().to_str()?.parse().ok());
    let is_marked = |pid: &i32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment
            .split(|&byte| byte == 0)
            .any(|w| w == word.as_bytes())
    };
    pids.filter(is_marked).collect()
}

/// As [`wait_for`], for what takes long to ask: so many processes are looked at each time that
/// five waiting for them would keep the machine busy.
fn wait_idly(what: &str, done: impl Fn() -> bool) {
    wait_for(what, || {
        std::thread::sleep(Duration::from_millis(40));
        done()
    });
}

fn name(pid: i32) -> String {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    name.trim_end().to_owned()
}

fn is_stopped(pid: i32) -> bool {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"));
    tasks.into_iter().flatten().flatten().any(|task| {
        let stat = fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        let state = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
        state.starts_with(['T', 't'])
    })
}

/// A program under hither, until one of the two is gone.
struct Victim {
    hither: Child,
    /// While it is open, the program runs.
    input: Option<ChildStdin>,
    /// The program where hither joins it, not starts it.
    program: Option<Child>,
    mark: String,
    place: Place,
}

impl Victim {
    fn start(calm: &str, joins: bool, more: &[&str]) -> Victim {
        let place = Place::new();
        let mark = place.0.path().display().to_string();
        let mut append = fs::OpenOptions::new();
        append.append(true).create(true);
        let file = |name| append.open(place.path(name)).expect("file");
        let command = |line: &[&str]| {
            let mut command = Command::new(line[0]);
            command
                .args(&line[1..])
                .env(MARK, &mark)
                .stdin(Stdio::piped());
            command.stdout(file("out")).stderr(file("err"));
            command.current_dir(place.0.path());
            command
        };
        let auto = [HITHER, "auto", "-q", "--allow-sysctl", "--budget", "100%"];
        let auto = [&auto[..], more].concat();
        let (mut hither, program) = if joins {
            let program = command(&[calm, "4"]).spawn().expect("program");
            let pid = program.id().to_string();
            let mut line = command(&[&auto[..], &["--pid", &pid]].concat());
            line.stdout(Stdio::null()).stdin(Stdio::null());
            (line.spawn().expect("hither"), Some(program))
        } else {
            let line = command(&[&auto[..], &["--", calm, "4"]].concat()).spawn();
            (line.expect("hither"), None)
        };
        let (input, program) = match program {
            Some(mut program) => (program.stdin.take(), Some(program)),
            None => (hither.stdin.take(), None),
        };
        Victim {
            hither,
            input,
            program,
            mark,
            place,
        }
    }

    /// The program and its children.
    fn programs(&self) -> Vec<i32> {
        let mut all = marked(&self.mark);
        all.retain(|&pid| name(pid) == "calm");
        all
    }

    /// Whether a thread of ours is in it.
    fn is_entered(&self) -> bool {
        let task = |pid| fs::read_dir(format!("/proc/{pid}/task"));
        let names = |pid| task(pid).into_iter().flatten().flatten();
        let name = |task: fs::DirEntry| fs::read_to_string(task.path().join("comm"));
        let is_ours = |name: &String| name.starts_with("hither");
        let mut programs = self.programs().into_iter();
        programs.any(|pid| names(pid).flat_map(name).any(|name| is_ours(&name)))
    }

    fn is_pinned(&self) -> bool {
        let is_one = |mask: &String| mask.parse::<u32>().is_ok();
        self.programs()
            .iter()
            .any(|&pid| masks(pid).iter().any(is_one))
    }

    /// After hither was killed: only the program is left, free, and ends as it would; and while
    /// it runs, who answers it when it asks where it may run.
    fn check(mut self, free: &str) {
        self.hither.wait().expect("wait");
        let all_free = || {
            let mut left = marked(&self.mark).into_iter();
            let is_free = |pid| masks(pid).iter().all(|mask| mask == free);
            left.all(|pid| match name(pid).as_str() {
                "calm" => is_free(pid),
                other => other == "hither-answers",
            })
        };
        wait_idly("freedom", all_free);
        // Who held it may be about to end: then it has no memory any more and is not seen above,
        // but holds it still.
        let is_any_stopped = || self.programs().iter().any(|&pid| is_stopped(pid));
        wait_idly("program that is not stopped", || !is_any_stopped());
        self.input = None;
        if let Some(program) = &mut self.program {
            assert_eq!(program.wait().expect("wait").code(), Some(0));
        }
        wait_idly("end", || marked(&self.mark).is_empty());
        let out = fs::read_to_string(self.place.path("out")).expect("out");
        let err = fs::read_to_string(self.place.path("err")).expect("err");
        // Killed before it had started the program, hither leaves none.
        let well = out.ends_with("\n0 wrong\n") || out.is_empty() && self.program.is_none();
        // The program may have ended before hither came to join it.
        let late = self.program.is_some() && err.contains("there is no process");
        assert!(well && (err.is_empty() || late), "{out:?} {err:?}");
    }
}

/// The program, and the mask that everybody starts with; `None` where nothing is sampled or
/// there is nowhere to be moved.
pub fn program() -> Option<(Place, String, String)> {
    let place = place_with_couples()?;
    // Programs that would leave a core file are not entered.
    let (_, most) = getrlimit(Resource::RLIMIT_CORE).expect("limit");
    setrlimit(Resource::RLIMIT_CORE, 0, most).expect("limit");
    let built = place.shell(&format!("gcc -O1 -pthread -o calm {SOURCE}"));
    assert!(built.status.success(), "{}", text(&built.stderr));
    let free = masks(std::process::id().cast_signed()).remove(0);
    if free.parse::<u32>().is_ok() {
        println!("skipped: one processing unit only");
        return None;
    }
    let calm = place.path("calm").to_string_lossy().into_owned();
    Some((place, calm, free))
}

/// Numbers below 1 that look random (Weyl's sequence with the golden ratio).
fn moments(of: usize) -> impl Iterator<Item = f64> {
    let mut at = 0.137 * of as f64;
    std::iter::repeat_with(move || {
        at = (at + 0.618_033_988_749_895).fract();
        at
    })
}

#[test]
fn whenever_it_is_killed_nothing_stays_changed() {
    let Some((place, calm, free)) = program() else {
        return;
    };
    let _turn = settings_turn();
    let before = settings();
    let tried = ["auto", "-q", "--sampler", "move", "--", "true"];
    let mut command = Command::new(HITHER);
    let tried = command
        .args(tried)
        .current_dir(place.0.path())
        .stderr(Stdio::null())
        .status();
    let inside = tried.expect("hither").success();
    let (pinned, entered) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let started = Instant::now();
    let work = |worker: usize| {
        for (round, moment) in moments(worker).take(KILLS / WORKERS).enumerate() {
            // Some are killed when their threads are pinned, however long that takes on a busy
            // machine; of the others a third has nothing but a thread of ours inside.
            let waits = round % 10 == 0;
            let more: &[&str] = if round % 3 == 2 && inside && !waits {
                &["--sampler", "move"]
            } else {
                &[]
            };
            let mut victim = Victim::start(&calm, round % 2 == 1, more);
            // Half of them while hither starts.
            let span = if round % 4 < 2 { LATEST } else { LATEST / 8 };
            std::thread::sleep(span.mul_f64(moment));
            if waits {
                wait_idly("pinned threads", || victim.is_pinned());
            }
            if round % 5 == 4 {
                // While it ends.
                victim.input = None;
                std::thread::sleep(Duration::from_millis(20).mul_f64(moment));
            } else if round % 4 < 2 {
                pinned.fetch_add(usize::from(victim.is_pinned()), Relaxed);
                entered.fetch_add(usize::from(victim.is_entered()), Relaxed);
            }
            victim.hither.kill().expect("kill");
            victim.check(&free);
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS).map(|w| scope.spawn(move || work(w))).collect();
        for worker in workers {
            worker.join().expect("worker");
        }
    });
    wait_idly("settings as they were", || settings() == before);
    let (pinned, entered) = (pinned.into_inner(), entered.into_inner());
    println!(
        "{KILLS} kills in {:?}, {pinned} of pinned programs, {entered} of entered ones",
        started.elapsed()
    );
    assert!(pinned >= KILLS / 50, "{pinned}");
    assert!(!inside || entered >= KILLS / 50, "{entered}");
}

/// Then hither undoes itself what there is; and if both are killed, the next hither undoes
/// what can be undone by then.
#[test]
fn killed_restore_helpers_are_replaced() {
    let Some((_place, calm, free)) = program() else {
        return;
    };
    let _turn = settings_turn();
    let before = settings();
    for both in [false, true] {
        let mut victim = Victim::start(&calm, !both, &[]);
        wait_idly("pinned threads", || victim.is_pinned());
        let off = (SWITCH.to_owned(), "0\n".to_owned());
        // The switch is off at times, when nothing more is wanted.
        let changed = || settings() != before || !before.contains(&off);
        wait_for("changed settings", changed);
        let helper = marked(&victim.mark).into_iter();
        let helper: Vec<i32> = helper
            .filter(|&pid| name(pid) == "hither-restore")
            .collect();
        assert_eq!(helper.len(), 1);
        send(helper[0], Signal::SIGKILL);
        let hither = victim.hither.id().cast_signed();
        if !both {
            send(hither, Signal::SIGINT);
            victim.check(&free);
            assert_eq!(settings(), before);
            continue;
        }
        send(hither, Signal::SIGKILL);
        victim.hither.wait().expect("wait");
        victim.input = None;
        wait_idly("end", || marked(&victim.mark).is_empty());
        // Another test's hither may have been the next.
        let next = [HITHER, "auto", "-q", "--", "true"];
        assert!(run(victim.place.command(&next)).status.success());
        assert_eq!(settings(), before);
    }
}

fn send(pid: i32, signal: Signal) {
    kill(Pid::from_raw(pid), signal).expect("kill");
}
