//! What the program writes to the terminal while the view has it: taken in through a
//! pseudo-terminal, so that the program still writes to one, and shown afterwards.
//!
//! A small process reads it, not a thread: samplers split processes off all along, which one
//! with several threads cannot.
use std::fs::File;
use std::io::{self, IsTerminal, PipeReader, PipeWriter, Read, Seek, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;

use hither_profile::is_hidden_char;
use hither_sys::{launch, process};
use nix::fcntl::{fcntl, FcntlArg, FdFlag};
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::pty::{openpty, OpenptyResult, Winsize};
use nix::sys::signal::SigSet;
use nix::sys::termios::{tcgetattr, tcsetattr, OutputFlags, SetArg};
use nix::sys::wait::waitpid;
use nix::unistd::Pid;
use ratatui::crossterm::terminal::size;

/// Bytes at the end of which lines are shown.
const TAIL: usize = 4096;
/// Milliseconds after the end for what was written to come through.
const PATIENCE: u16 = 50;

/// The program's output.
pub struct ProgramOutput {
    /// All of it so far.
    file: File,
    reader: Pid,
    /// Closed when it is over, as when this process is killed.
    goes_on: PipeWriter,
}

impl ProgramOutput {
    /// A terminal for those of standard output and error that are one; `None` where none is.
    /// To be called while this process has one thread.
    ///
    /// # Errors
    /// When the system has no pseudo-terminals, or no room for what is written.
    pub fn new() -> io::Result<(Option<ProgramOutput>, [Option<OwnedFd>; 2])> {
        let is = [io::stdout().is_terminal(), io::stderr().is_terminal()];
        if !is.contains(&true) {
            return Ok((None, [None, None]));
        }
        let pair = terminal()?;
        let copy = |is: bool| is.then(|| pair.slave.try_clone()).transpose();
        let streams = [copy(is[0])?, copy(is[1])?];
        let (file, (over, goes_on)) = (tempfile::tempfile()?, io::pipe()?);
        let reader = process::fork_off(|| {
            let kept = [pair.master.as_raw_fd(), file.as_raw_fd(), over.as_raw_fd()];
            let _ = SigSet::all().thread_block();
            let _ = nix::sys::prctl::set_name(c"hither-output");
            match launch::release_inherited_files(&kept) {
                Ok(()) => take(&pair.master, &file, &over),
                Err(_) => return 1,
            }
            0
        })?;
        let output = ProgramOutput {
            file,
            reader,
            goes_on,
        };
        Ok((Some(output), streams))
    }

    /// The last lines so far, without what only a terminal understands.
    pub fn last_lines(&mut self) -> Vec<String> {
        let end = self.file.metadata().map_or(0, |file| file.len());
        let mut tail = vec![0; TAIL.min(usize::try_from(end).unwrap_or(TAIL))];
        let from = end - tail.len() as u64;
        match self.file.read_exact_at(&mut tail, from) {
            Ok(()) => lines(&tail),
            Err(_) => Vec::new(),
        }
    }

    /// Writes all of it to where it would have gone.
    pub fn show(mut self) {
        drop(self.goes_on);
        let _ = waitpid(self.reader, None);
        if self.file.rewind().is_err() {
            return;
        }
        // An error here cannot be shown: the terminal is gone.
        let _ = match io::stdout().is_terminal() {
            true => io::copy(&mut self.file, &mut io::stdout()),
            false => io::copy(&mut self.file, &mut io::stderr()),
        };
        let _ = io::stdout().flush();
    }
}

/// As large as the one that we have.
fn terminal() -> io::Result<OpenptyResult> {
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
    Ok(pair)
}

/// Reads until the last writer closes it, or the run is over and nothing is left.
fn take(master: &OwnedFd, mut file: &File, over: &PipeReader) {
    let Ok(mut from) = master.try_clone().map(File::from) else {
        return;
    };
    let mut bytes = vec![0; 1 << 16];
    let mut patience = PollTimeout::NONE;
    loop {
        let mut ready = [
            PollFd::new(master.as_fd(), PollFlags::POLLIN),
            PollFd::new(over.as_fd(), PollFlags::POLLIN),
        ];
        // Once the run is over only what is left is read.
        let count = 1 + usize::from(patience.is_none());
        match poll(&mut ready[..count], patience) {
            Ok(0) => return,
            Err(nix::errno::Errno::EINTR) => continue,
            Err(_) => return,
            Ok(_) => {}
        }
        if !ready[0].any().unwrap_or(false) {
            patience = PollTimeout::from(PATIENCE);
            continue;
        }
        match from.read(&mut bytes) {
            // EIO: all copies of the other end are closed.
            Ok(0) | Err(_) => return,
            // Without room for it the program goes on all the same.
            Ok(read) => drop(file.write_all(&bytes[..read])),
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
                c if is_hidden_char(c) => {}
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
