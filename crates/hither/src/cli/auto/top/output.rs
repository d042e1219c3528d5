//! What the program writes to the terminal while the view has it: taken in through a
//! pseudo-terminal, so that the program still writes to one, and shown afterwards.
use std::fs::File;
use std::io::{self, IsTerminal, Read, Seek, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use nix::fcntl::{fcntl, FcntlArg, FdFlag};
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::pty::{openpty, Winsize};
use nix::sys::signal::SigSet;
use nix::sys::termios::{tcgetattr, tcsetattr, OutputFlags, SetArg};
use ratatui::crossterm::terminal::size;

/// Bytes at the end of which lines are shown.
const TAIL: usize = 4096;
/// Milliseconds between two looks whether it is over.
const PAUSE: u16 = 50;

/// The program's output.
pub struct Output {
    taking: Taking,
    shared: Arc<Shared>,
}

/// Nobody reads before the program was started: a thread would be in the way of a fork.
enum Taking {
    Waits(OwnedFd, File),
    Reads(Option<JoinHandle<File>>),
}

#[derive(Default)]
struct Shared {
    over: AtomicBool,
    /// The last bytes.
    tail: Mutex<Vec<u8>>,
}

impl Output {
    /// A terminal for those of standard output and error that are one; `None` where none is.
    ///
    /// # Errors
    /// When the system has no pseudo-terminals, or no room for what is written.
    pub fn new() -> io::Result<(Option<Output>, [Option<OwnedFd>; 2])> {
        let is = [io::stdout().is_terminal(), io::stderr().is_terminal()];
        if !is.contains(&true) {
            return Ok((None, [None, None]));
        }
        let (columns, rows) = size().unwrap_or((80, 24));
        let window = Winsize {
            ws_row: rows,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        let pair = openpty(&window, None)?;
        // The real terminal turns line feeds into what it needs, later.
        let mut modes = tcgetattr(pair.slave.as_fd())?;
        modes.output_flags.remove(OutputFlags::OPOST);
        tcsetattr(pair.slave.as_fd(), SetArg::TCSANOW, &modes)?;
        for fd in [&pair.master, &pair.slave] {
            fcntl(fd.as_fd(), FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))?;
        }
        let copy = |is: bool| is.then(|| pair.slave.try_clone()).transpose();
        let streams = [copy(is[0])?, copy(is[1])?];
        let output = Output {
            taking: Taking::Waits(pair.master, tempfile::tempfile()?),
            shared: Arc::default(),
        };
        Ok((Some(output), streams))
    }

    /// The last lines so far, without what only a terminal understands.
    pub fn last_lines(&mut self) -> Vec<String> {
        self.read();
        let tail = self
            .shared
            .tail
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        lines(&tail)
    }

    fn read(&mut self) {
        if let Taking::Waits(..) = self.taking {
            let waits = std::mem::replace(&mut self.taking, Taking::Reads(None));
            if let Taking::Waits(master, file) = waits {
                let shared = Arc::clone(&self.shared);
                self.taking = Taking::Reads(start(master, file, shared));
            }
        }
    }

    /// Writes all of it to where it would have gone.
    pub fn show(mut self) {
        self.read();
        self.shared.over.store(true, Ordering::Relaxed);
        let Taking::Reads(Some(thread)) = self.taking else {
            return;
        };
        let Ok(mut file) = thread.join() else {
            return;
        };
        if file.rewind().is_err() {
            return;
        }
        // Nobody can be told when the terminal is gone.
        let _ = match io::stdout().is_terminal() {
            true => io::copy(&mut file, &mut io::stdout()),
            false => io::copy(&mut file, &mut io::stderr()),
        };
        let _ = io::stdout().flush();
    }
}

fn start(master: OwnedFd, file: File, shared: Arc<Shared>) -> Option<JoinHandle<File>> {
    // Signals are for the thread that waits for them.
    let before = SigSet::all().thread_swap_mask(nix::sys::signal::SigmaskHow::SIG_SETMASK);
    let thread = std::thread::Builder::new()
        .name("hither-output".into())
        .spawn(move || take(File::from(master), file, &shared));
    if let Ok(before) = before {
        let _ = before.thread_set_mask();
    }
    thread.ok()
}

/// Reads until nobody can write any more, or it is over and nothing is left.
fn take(mut master: File, mut file: File, shared: &Shared) -> File {
    let mut bytes = vec![0; 1 << 16];
    loop {
        let over = shared.over.load(Ordering::Relaxed);
        let mut ready = [PollFd::new(master.as_fd(), PollFlags::POLLIN)];
        match poll(&mut ready, PollTimeout::from(PAUSE)) {
            Ok(0) if over => return file,
            Ok(0) | Err(nix::errno::Errno::EINTR) => continue,
            Ok(_) => {}
            Err(_) => return file,
        }
        match master.read(&mut bytes) {
            // EIO: all copies of the other end are closed.
            Ok(0) | Err(_) => return file,
            Ok(read) => {
                if file.write_all(&bytes[..read]).is_err() {
                    // No room: the program goes on, and the last lines are what is left.
                    continue;
                }
                let mut tail = shared.tail.lock().unwrap_or_else(PoisonError::into_inner);
                tail.extend_from_slice(&bytes[..read]);
                let surplus = tail.len().saturating_sub(TAIL);
                tail.drain(..surplus);
            }
        }
    }
}

/// Lines without control sequences and other characters that move the cursor.
fn lines(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    let line = |line: &str| {
        let mut shown = String::new();
        let mut rest = line.chars();
        while let Some(c) = rest.next() {
            match c {
                // CSI: up to its last byte; others are two bytes long.
                '\u{1b}' if rest.next() == Some('[') => {
                    let _ = rest.by_ref().find(|c| ('@'..='~').contains(c));
                }
                '\t' => shown.push_str("    "),
                c if c.is_control() => {}
                c => shown.push(c),
            }
        }
        shown
    };
    text.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::lines;

    #[test]
    fn what_only_terminals_understand_is_left_out() {
        let check = |text: &str, expected: &[&str]| assert_eq!(lines(text.as_bytes()), expected);
        check("one\r\ntwo\n", &["one", "two"]);
        check("\x1b[1;31mred\x1b[0m\ta\u{7}", &["red    a"]);
        check("cut \x1b[3", &["cut "]);
        check("", &[]);
    }
}
