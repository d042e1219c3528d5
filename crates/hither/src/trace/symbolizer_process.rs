//! A [`Symbolizer`] in a process of its own, which may read files and do nothing else: ELF, DWARF and
//! source are parsed there. They are as good or bad as who made the program, and hither may be root.
//!
//! ```text
//!  hither --file, address--> symbolizer process (reads as the program's user, writes nothing)
//!         <--names---------
//! ```
//! A line of JSON each way. Where the process fails, all that it would have said is not known, and
//! the profile says so.
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use hither_sys::sandbox::{self, FileRights};
use hither_sys::{launch, process};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::symbolizer::{
    AllocationName, SourceLine, SourceTextAnswer, SourceTextRequest, StaticObject, StructField,
    Symbolizer,
};
use super::symbols::ProgramSymbols;

/// Time for one answer. Debug information of a gigabyte takes some ten seconds.
const PATIENCE: Duration = Duration::from_secs(120);
/// Addresses of which the lines are asked for at once.
const LINES_AT_ONCE: usize = 4096;
/// Bytes of one answer.
const MAX_ANSWER: u64 = 1 << 30;

#[derive(Serialize, Deserialize)]
enum SymbolRequest {
    StaticObjects(PathBuf),
    Members(PathBuf, Vec<u64>),
    Lines(PathBuf, Vec<u64>),
    SourceLine(PathBuf, u64),
    ProgramLine(PathBuf, u64),
    AllocationName(Vec<(PathBuf, u64)>),
    CallPath(Vec<(PathBuf, u64)>),
    HasFixedAddress(PathBuf),
    FunctionAddresses(PathBuf, String),
    SimilarFunctions(PathBuf, String),
    SourceText(SourceTextRequest),
}

type KnownLines = HashMap<(PathBuf, u64), Option<SourceLine>>;

/// Our end. Dropping it ends the process.
pub struct SymbolizerProcess {
    connection: Option<BufReader<UnixStream>>,
    /// Answers that are asked for again and again.
    program_lines: KnownLines,
    source_lines: KnownLines,
    pid: nix::unistd::Pid,
}

impl SymbolizerProcess {
    /// Splits it off; to be called while this process has one thread. `of`: whose files it may read
    /// where hither is root; `None` for all files.
    ///
    /// # Errors
    /// When the kernel makes no process or does not let it give up its rights.
    pub fn start(of: Option<&FileRights>) -> Result<SymbolizerProcess> {
        let (ours, theirs) = UnixStream::pair().context("cannot make a socket pair")?;
        // Others than root read only what they could without it.
        let is_needed = nix::unistd::geteuid().is_root();
        let pid = process::fork_off(|| {
            let _ = nix::sys::prctl::set_name(c"hither-symbols");
            let confined = launch::release_inherited_files(&[theirs.as_raw_fd()])
                .and_then(|()| sandbox::confine_to_reading(of));
            let may_serve = confined.is_ok() || !is_needed;
            match (may_serve, writeln!(&theirs, "{may_serve}")) {
                (true, Ok(())) => serve(theirs),
                _ => 1,
            }
        });
        let pid = pid.context("cannot split off the process that reads symbols")?;
        ours.set_read_timeout(Some(PATIENCE))
            .context("cannot set up the process that reads symbols")?;
        let mut started = SymbolizerProcess {
            connection: Some(BufReader::new(ours)),
            program_lines: HashMap::new(),
            source_lines: HashMap::new(),
            pid,
        };
        match started.receive() {
            Some(true) => Ok(started),
            _ => anyhow::bail!("the process that reads symbols cannot give up its rights here; start hither as the program's user, not as root"),
        }
    }

    /// What ends it from another thread: nothing more is known then.
    ///
    /// # Errors
    /// When there is no descriptor left.
    pub fn stopper(&self) -> Result<impl FnOnce() + Send + 'static> {
        let connection = self.connection.as_ref().map(|c| c.get_ref().try_clone());
        let connection = connection.transpose().context("no file can be opened")?;
        Ok(move || {
            let _ = connection.map(|c| c.shutdown(Shutdown::Both));
        })
    }

    /// What the profile lacks for its failing.
    pub fn limit(&self) -> Option<String> {
        let failed = self.connection.is_none();
        failed.then(|| {
            "Names and source lines are missing: reading the program's files failed, took minutes or was interrupted."
                .to_owned()
        })
    }

    fn ask<T: DeserializeOwned + Default>(&mut self, request: &SymbolRequest) -> T {
        let answer = self.send(request).and_then(|()| self.receive());
        if answer.is_none() {
            self.connection = None;
        }
        answer.unwrap_or_default()
    }

    fn send(&mut self, request: &SymbolRequest) -> Option<()> {
        let mut line = serde_json::to_vec(request).ok()?;
        line.push(b'\n');
        self.connection.as_mut()?.get_mut().write_all(&line).ok()
    }

    fn receive<T: DeserializeOwned>(&mut self) -> Option<T> {
        let mut line = Vec::new();
        let mut connection = self.connection.as_mut()?.take(MAX_ANSWER);
        connection.read_until(b'\n', &mut line).ok()?;
        serde_json::from_slice(&line).ok()
    }
}

impl Drop for SymbolizerProcess {
    fn drop(&mut self) {
        self.connection = None;
        // It may be busy for long.
        let _ = process::send_signal(self.pid.as_raw(), nix::libc::SIGKILL);
        let _ = nix::sys::wait::waitpid(self.pid, None);
    }
}

impl Symbolizer for SymbolizerProcess {
    fn static_objects(&mut self, file: &Path) -> Vec<StaticObject> {
        self.ask(&SymbolRequest::StaticObjects(file.to_owned()))
    }

    fn members(&mut self, file: &Path, vaddrs: &[u64]) -> Vec<Vec<StructField>> {
        self.ask(&SymbolRequest::Members(file.to_owned(), vaddrs.to_vec()))
    }

    /// Each question by itself costs two changes of process.
    fn expect_lines(&mut self, file: &Path, vaddrs: &[u64]) {
        for part in vaddrs.chunks(LINES_AT_ONCE) {
            let lines: Vec<LinesOfCode> =
                self.ask(&SymbolRequest::Lines(file.to_owned(), part.to_vec()));
            for (&vaddr, (program, own)) in part.iter().zip(lines) {
                let place = (file.to_owned(), vaddr);
                if program.is_none() {
                    self.source_lines.insert(place.clone(), own);
                }
                self.program_lines.insert(place, program);
            }
        }
    }

    fn source_line(&mut self, file: &Path, vaddr: u64) -> Option<SourceLine> {
        let place = (file.to_owned(), vaddr);
        if let Some(known) = self.source_lines.get(&place) {
            return known.clone();
        }
        self.ask(&SymbolRequest::SourceLine(place.0, vaddr))
    }

    fn program_line(&mut self, file: &Path, vaddr: u64) -> Option<SourceLine> {
        let place = (file.to_owned(), vaddr);
        if let Some(known) = self.program_lines.get(&place) {
            return known.clone();
        }
        let line: Option<SourceLine> =
            self.ask(&SymbolRequest::ProgramLine(file.to_owned(), vaddr));
        self.program_lines.insert(place, line.clone());
        line
    }

    fn allocation_name(&mut self, frames: &[(PathBuf, u64)]) -> AllocationName {
        self.ask(&SymbolRequest::AllocationName(frames.to_vec()))
    }

    fn call_path(&mut self, frames: &[(PathBuf, u64)]) -> Vec<SourceLine> {
        self.ask(&SymbolRequest::CallPath(frames.to_vec()))
    }

    fn has_fixed_address(&mut self, file: &Path) -> bool {
        self.ask(&SymbolRequest::HasFixedAddress(file.to_owned()))
    }

    fn function_addresses(&mut self, file: &Path, name: &str) -> Vec<u64> {
        self.ask(&SymbolRequest::FunctionAddresses(
            file.to_owned(),
            name.to_owned(),
        ))
    }

    fn similar_functions(&mut self, file: &Path, name: &str) -> Vec<String> {
        self.ask(&SymbolRequest::SimilarFunctions(
            file.to_owned(),
            name.to_owned(),
        ))
    }

    fn source_text(&mut self, request: &SourceTextRequest) -> SourceTextAnswer {
        self.ask(&SymbolRequest::SourceText(request.clone()))
    }
}

/// The process: answers until hither has no more questions.
fn serve(connection: UnixStream) -> u8 {
    let mut symbols = ProgramSymbols::new();
    let mut lines = BufReader::new(connection);
    let mut line = Vec::new();
    loop {
        line.clear();
        match lines.read_until(b'\n', &mut line) {
            Ok(1..) => {}
            _ => return 0,
        }
        let Some(mut reply) = answer(&mut symbols, &line) else {
            return 1;
        };
        reply.push(b'\n');
        if lines.get_mut().write_all(&reply).is_err() {
            return 0;
        }
    }
}

fn answer(symbols: &mut ProgramSymbols, request: &[u8]) -> Option<Vec<u8>> {
    use SymbolRequest as Ask;
    let json = match serde_json::from_slice(request).ok()? {
        Ask::StaticObjects(file) => serde_json::to_vec(&symbols.static_objects(&file)),
        Ask::Members(file, vaddrs) => serde_json::to_vec(&symbols.members(&file, &vaddrs)),
        Ask::Lines(file, vaddrs) => {
            let lines = vaddrs.iter().map(|&vaddr| lines_of(symbols, &file, vaddr));
            serde_json::to_vec(&lines.collect::<Vec<_>>())
        }
        Ask::SourceLine(file, vaddr) => serde_json::to_vec(&symbols.source_line(&file, vaddr)),
        Ask::ProgramLine(file, vaddr) => serde_json::to_vec(&symbols.program_line(&file, vaddr)),
        Ask::AllocationName(frames) => serde_json::to_vec(&symbols.allocation_name(&frames)),
        Ask::CallPath(frames) => serde_json::to_vec(&symbols.call_path(&frames)),
        Ask::HasFixedAddress(file) => serde_json::to_vec(&symbols.has_fixed_address(&file)),
        Ask::FunctionAddresses(file, name) => {
            serde_json::to_vec(&symbols.function_addresses(&file, &name))
        }
        Ask::SimilarFunctions(file, name) => {
            serde_json::to_vec(&symbols.similar_functions(&file, &name))
        }
        Ask::SourceText(wanted) => serde_json::to_vec(&symbols.source_text(&wanted)),
    };
    json.ok()
}

/// The line of the program's own source, and where there is none the code's own.
type LinesOfCode = (Option<SourceLine>, Option<SourceLine>);

fn lines_of(symbols: &mut ProgramSymbols, file: &Path, vaddr: u64) -> LinesOfCode {
    match symbols.program_line(file, vaddr) {
        None => (None, symbols.source_line(file, vaddr)),
        program => (program, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask<T: DeserializeOwned>(symbols: &mut ProgramSymbols, request: &SymbolRequest) -> T {
        let request = serde_json::to_vec(request).expect("JSON");
        let reply = answer(symbols, &request).expect("an answer");
        serde_json::from_slice(&reply).expect("JSON")
    }

    #[test]
    fn lines_asked_for_at_once_are_those_asked_for_one_by_one() {
        let mut symbols = ProgramSymbols::new();
        let maps = std::fs::read_to_string("/proc/self/maps").expect("maps");
        let mut files = maps.lines().filter_map(|l| l.split_whitespace().nth(5));
        let library = files.find(|file| file.contains("libc.so")).expect("libc");
        let own = std::env::current_exe().expect("a path");
        for (file, function, is_program) in [
            (own, "ask", true),
            (PathBuf::from(library), "malloc", false),
        ] {
            let vaddrs = symbols.function_addresses(&file, function);
            assert!(!vaddrs.is_empty(), "{function}");
            let at_once = SymbolRequest::Lines(file.clone(), vaddrs.clone());
            let at_once: Vec<LinesOfCode> = ask(&mut symbols, &at_once);
            assert_eq!(at_once.len(), vaddrs.len());
            for ((program, own), vaddr) in at_once.into_iter().zip(vaddrs) {
                let by_itself = SymbolRequest::ProgramLine(file.clone(), vaddr);
                let by_itself: Option<SourceLine> = ask(&mut symbols, &by_itself);
                assert_eq!((program.is_some(), &program), (is_program, &by_itself));
                if !is_program {
                    let by_itself = SymbolRequest::SourceLine(file.clone(), vaddr);
                    let by_itself: Option<SourceLine> = ask(&mut symbols, &by_itself);
                    assert_eq!((own.is_some(), own), (true, by_itself));
                }
            }
        }
    }
}
