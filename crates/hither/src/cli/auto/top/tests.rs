use super::*;
use crate::auto::event_log::IntervalEvent;
use crate::auto::outcome::AutoOverhead;
use hither_sys::{Cpu, Node};
use ratatui::backend::TestBackend;
use ratatui::Terminal;

fn state(threads: usize) -> TopState {
    let mut state = TopState {
        command: "./couples 4\x1b[2J".to_owned(),
        mechanism: "kmaf",
        written: Some(vec!["first".to_owned(), "second".to_owned()]),
        ..TopState::default()
    };
    let tid = |n: usize| 100 + n as i32;
    let line = IntervalEvent {
        at: 12_300,
        faults: 50,
        extra: 20,
        lost: 3,
        known: 20,
        remote: 5,
        pairs: (0..threads / 2)
            .map(|n| (tid(2 * n), tid(2 * n + 1), 8.0))
            .collect(),
        threads: (0..threads)
            .map(|n| ThreadSnapshot {
                pid: 100,
                tid: tid(n),
                name: format!("worker{n}"),
                cpu: Some(Cpu(n as u32)),
                node: Some(Node(n as u32 / 4)),
                assigned_cpu: (n % 2 == 0).then_some(Cpu(n as u32)),
                chose_itself: n == 3,
            })
            .collect(),
        all_threads_moved: 8,
        all_pages_moved: 1234,
        cost: AutoOverhead {
            cpu: 15_000_000,
            injecting: 6_000_000,
            mapping: 1_000_000,
            faulting: 3_000_000,
            target: 1_000_000_000,
            ..AutoOverhead::default()
        },
        budget: 2.0,
        ..IntervalEvent::default()
    };
    for _ in 0..20 {
        state.add(&line);
    }
    state
}

fn picture(state: &TopState, width: u16, height: u16, colour: bool, unicode: bool) -> Vec<String> {
    let style = TerminalStyle {
        width: usize::from(width),
        height: usize::from(height),
        colour,
        unicode,
    };
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("terminal");
    let frame = terminal
        .draw(|frame| draw(frame, state, style))
        .expect("picture");
    let cells = frame.buffer.content().chunks(usize::from(width));
    let coloured = frame
        .buffer
        .content()
        .iter()
        .any(|cell| cell.fg != Color::Reset);
    assert_eq!(coloured, colour);
    cells
        .map(|row| row.iter().map(ratatui::buffer::Cell::symbol).collect())
        .collect()
}

#[track_caller]
fn holds(picture: &[String], what: &str) {
    assert!(
        picture.iter().any(|line| line.contains(what)),
        "{what}:\n{}",
        picture.join("\n")
    );
}

#[test]
fn everything_is_in_a_small_window() {
    let picture = picture(&state(4), 80, 24, true, true);
    for what in [
        "hither auto: ./couples 4",
        "12.3 s, kmaf, 4 threads",
        "natural        300",
        "caused         200",
        "lost            60 in all",
        "worker0",
        "by itself",
        "who shares ",
        "  \u{2588}\u{2588}",
        "injecting   0.600 %",
        "resolving   0.300 %",
        "migrating   0.000 %",
        "budget used      1.80 % of 2 %",
        "threads moved    8",
        "pages moved      1.23 k",
        "remote, about    25 %",
        "second",
    ] {
        holds(&picture, what);
    }
    assert!(!picture.concat().contains('\x1b'));
}

#[test]
fn a_large_matrix_is_reduced() {
    let picture = picture(&state(256), 100, 30, false, true);
    holds(&picture, "threads a cell");
    holds(&picture, "more)");
}

#[test]
fn without_unicode_there_is_none() {
    let picture = picture(&state(8), 90, 26, false, false).concat();
    assert!(picture.is_ascii(), "{picture}");
    assert!(picture.contains("##"));
}

#[test]
fn no_window_is_too_small() {
    for (width, height) in [(1, 1), (20, 5), (40, 12), (300, 100)] {
        let style = TerminalStyle {
            width: 80,
            height: 24,
            colour: true,
            unicode: true,
        };
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("terminal");
        for state in [TopState::default(), state(64)] {
            terminal
                .draw(|frame| draw(frame, &state, style))
                .expect("picture");
        }
    }
}

/// Panics while the view is shown, where the variable is set: in a process of its own, in a
/// terminal.
#[test]
fn a_panic_gives_the_terminal_back() {
    use crate::cli::auto::top::screen::TopScreen;
    use nix::pty::openpty;
    use nix::sys::termios::{tcgetattr, LocalFlags};
    use std::io::Read;

    const PANICS: &str = "HITHER_TEST_PANICS";
    if std::env::var_os(PANICS).is_some() {
        let _screen = TopScreen::enter().expect("a screen");
        panic!("on purpose");
    }
    let pair = openpty(None, None).expect("a pseudo-terminal");
    let slave = || pair.slave.try_clone().expect("a copy");
    let echoes = || tcgetattr(&pair.slave).map(|now| now.local_flags.contains(LocalFlags::ECHO));
    assert_eq!(echoes(), Ok(true));
    let module = module_path!().split_once("::").expect("a module").1;
    let test = format!("{module}::a_panic_gives_the_terminal_back");
    let this = std::env::current_exe().expect("this program");
    let mut command = std::process::Command::new(this);
    command
        .args([test.as_str(), "--exact", "--nocapture"])
        .env(PANICS, "1");
    command.stdout(std::process::Stdio::null()).stderr(slave());
    let mut child = command.spawn().expect("this program");
    drop(command);
    assert_eq!(child.wait().expect("wait").code(), Some(101));
    assert_eq!(echoes(), Ok(true));
    drop(pair.slave);
    let (mut sent, mut bytes) = (Vec::new(), [0; 4096]);
    let mut master = std::fs::File::from(pair.master);
    while let Ok(read @ 1..) = master.read(&mut bytes) {
        sent.extend_from_slice(&bytes[..read]);
    }
    let sent = String::from_utf8_lossy(&sent);
    let at = |what: &str| {
        sent.find(what)
            .unwrap_or_else(|| panic!("{what:?}: {sent:?}"))
    };
    let order = ["\x1b[?1049h", "\x1b[?1049l", "on purpose"].map(at);
    assert!(order.is_sorted(), "{sent:?}");
}
