//! One run of QEMU: started, watched until the jobs are done or the time is over, and
//! killed. It dies with the thread that started it, however that ends.
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::{Guest, GuestError};

/// Software emulation without what a test machine has no use for. With one thread for all
/// virtual processors, what they say to each other takes 0.1 ms; with one each, 2 ms.
const MACHINE: &[&str] = &[
    "-accel",
    "tcg,thread=single",
    "-machine",
    "q35,hpet=off,smbus=off,sata=off,i8042=off,usb=off",
    "-cpu",
    "Nehalem,-monitor",
    "-nodefaults",
    "-no-user-config",
    "-no-reboot",
    "-display",
    "none",
    "-device",
    "virtio-serial-pci",
];
/// No waiting for devices, no calibration, no self tests; a panic ends QEMU.
/// The root is ramfs, not tmpfs: a memory policy of a private mapping of a file on tmpfs
/// holds for all processes that map it, as it does for no file on a disk.
const KERNEL: &str =
    "rootfstype=ramfs console=ttyS0 quiet panic=-1 reboot=t tsc=reliable mitigations=off nokaslr \
    audit=0 cryptomgr.notests lpj=5000000 no_timer_check random.trust_cpu=1 \
    rcupdate.rcu_expedited=1 transparent_hugepage=madvise";
const CONSOLE: &str = "console";
/// Enough for a panic with all that the kernel prints about it.
const TAIL_LINES: usize = 80;

/// What comes back through one port, and where the marks are that the guest sets in it.
pub struct MarkedStream {
    file: File,
    token: Vec<u8>,
    bytes: Vec<u8>,
    /// Up to here there is no mark but those below.
    scanned: usize,
    forwarded: usize,
    /// Start and end of each mark, and the number that it carries.
    marks: Vec<(usize, usize, i32)>,
}

impl MarkedStream {
    fn new(file: &Path, token: &str) -> Result<MarkedStream, GuestError> {
        let file = File::create_new(file)
            .and_then(|_| File::open(file))
            .map_err(|e| GuestError::io(format!("cannot write {}", file.display()), e))?;
        Ok(MarkedStream {
            file,
            token: format!("{token} ").into_bytes(),
            bytes: Vec::new(),
            scanned: 0,
            forwarded: 0,
            marks: Vec::new(),
        })
    }

    fn read(&mut self) -> Result<(), GuestError> {
        let read = self.file.read_to_end(&mut self.bytes);
        read.map_err(|e| GuestError::io("cannot read what the guest sent".into(), e))?;
        while let Some((start, end, number)) = self.next_mark() {
            self.marks.push((start, end, number));
            self.scanned = end;
        }
        Ok(())
    }

    fn next_mark(&mut self) -> Option<(usize, usize, i32)> {
        let new = &self.bytes[self.scanned..];
        let Some(at) = find_bytes(new, &self.token) else {
            let mut parts = (0..self.token.len()).rev();
            let come = parts.find(|n| new.ends_with(&self.token[..*n]));
            self.scanned += new.len() - come.unwrap_or(0);
            return None;
        };
        let number = &new[at + self.token.len()..];
        let length = find_bytes(number, b"\n")?;
        let value = std::str::from_utf8(&number[..length]).ok()?.parse().ok()?;
        let start = self.scanned + at;
        Some((start, start + self.token.len() + length + 1, value))
    }

    /// Passes on what is new and is no mark.
    fn forward(&mut self, mut to: impl Write) -> Result<(), GuestError> {
        let new = |(start, end, _): &(usize, usize, i32)| (*start, *end);
        let marks = self.marks.iter().map(new);
        for (start, end) in marks.chain([(self.scanned, self.scanned)]) {
            if end > self.forwarded {
                let written = to.write_all(&self.bytes[self.forwarded..start]);
                written.map_err(|e| GuestError::io("cannot print".into(), e))?;
                self.forwarded = end;
            }
        }
        let flushed = to.flush();
        flushed.map_err(|e| GuestError::io("cannot print".into(), e))
    }

    /// What came before each mark with the mark's number, and what came after the last.
    pub fn parts(&self) -> (Vec<(i32, &[u8])>, &[u8]) {
        let mut from = 0;
        let mut parts = Vec::new();
        for (start, end, number) in &self.marks {
            parts.push((*number, &self.bytes[from..*start]));
            from = *end;
        }
        (parts, &self.bytes[from..])
    }
}

fn find_bytes(bytes: &[u8], what: &[u8]) -> Option<usize> {
    let first = what.first()?;
    let mut from = 0;
    loop {
        let at = from + bytes[from..].iter().position(|b| b == first)?;
        if bytes[at..].starts_with(what) {
            return Some(at);
        }
        from = at + 1;
    }
}

pub struct QemuRun {
    folder: PathBuf,
    child: Child,
    pub stdout: MarkedStream,
    pub stderr: MarkedStream,
    pub files: MarkedStream,
    live: bool,
}

pub enum BootEnd {
    Done,
    TimedOut,
    Died(ExitStatus),
}

impl QemuRun {
    /// Starts QEMU, with `root` as the archive of the root folder.
    pub fn start(
        guest: &Guest,
        vmlinux: &Path,
        root: File,
        folder: &Path,
        token: &str,
    ) -> Result<QemuRun, GuestError> {
        let port = |name: &str| MarkedStream::new(&folder.join(name), token);
        let (stdout, stderr, files) = (port("stdout")?, port("stderr")?, port("files")?);
        let mut qemu = Command::new("setpriv");
        qemu.args(["--pdeathsig", "KILL", QEMU])
            .args(MACHINE)
            .args(guest.machine.arguments()?)
            .arg("-kernel")
            .arg(vmlinux)
            .args(["-initrd", "/proc/self/fd/0"])
            .args(["-append", &format!("{KERNEL} {}", guest.kernel_arguments)])
            .args(["-serial", &format!("file:{CONSOLE}")]);
        if guest.own_clock {
            qemu.args(["-icount", "shift=2,sleep=off"]);
        }
        for (at, name) in ["stdout", "stderr", "files"].iter().enumerate() {
            let (chardev, nr) = (format!("file,id={name},path={name}"), at + 1);
            qemu.args(["-chardev", &chardev]);
            qemu.args(["-device", &format!("virtserialport,chardev={name},nr={nr}")]);
        }
        let said = File::create(folder.join("qemu"))
            .map_err(|e| GuestError::io("cannot write beside the guest".into(), e))?;
        qemu.current_dir(folder)
            .stdin(root)
            .stdout(Stdio::null())
            .stderr(said);
        let child = qemu.spawn();
        let child = child.map_err(|e| GuestError::Missing(format!("cannot start setpriv: {e}")))?;
        Ok(QemuRun {
            folder: folder.to_path_buf(),
            child,
            stdout,
            stderr,
            files,
            live: guest.live,
        })
    }

    /// Waits until `jobs` jobs are done and their files are here.
    pub fn watch(&mut self, jobs: usize, limit: Duration) -> Result<BootEnd, GuestError> {
        let start = Instant::now();
        loop {
            let gone = self.child.try_wait();
            let gone = gone.map_err(|e| GuestError::io("cannot wait for QEMU".into(), e))?;
            for stream in [&mut self.stdout, &mut self.stderr, &mut self.files] {
                stream.read()?;
            }
            if self.live {
                self.stdout.forward(io::stdout())?;
                self.stderr.forward(io::stderr())?;
            }
            let marks = [&self.stdout, &self.stderr].map(|s| s.marks.len());
            if marks == [jobs; 2] && self.files.marks.len() == 1 {
                return Ok(BootEnd::Done);
            }
            if let Some(status) = gone {
                return Ok(BootEnd::Died(status));
            }
            let elapsed = start.elapsed();
            if elapsed > limit && elapsed.saturating_sub(self.starved()) > limit {
                return Ok(BootEnd::TimedOut);
            }
            sleep(Duration::from_millis(10));
        }
    }

    /// How long QEMU's thread that emulates, the one that waited most, was ready to run and had no processor: beside
    /// much other work most of the time, which says nothing of the guest.
    fn starved(&self) -> Duration {
        let threads = fs::read_dir(format!("/proc/{}/task", self.child.id()));
        let waited = threads
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|thread| {
                let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
                waited_for_processor(&text)
            });
        waited.max().unwrap_or_default()
    }

    /// The last lines on the console, and what QEMU itself complained about.
    pub fn console(&self) -> String {
        let read = |name: &str| fs::read(self.folder.join(name)).unwrap_or_default();
        let all = [read(CONSOLE), read("qemu")].concat();
        let text = String::from_utf8_lossy(&all).replace('\r', "");
        let lines: Vec<&str> = text.lines().filter(|l| !l.trim().is_empty()).collect();
        lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
    }
}

/// Of the kernel's `schedstat` of a thread: ns that it ran, ns that it was ready and did not, how often it ran.
fn waited_for_processor(schedstat: &str) -> Option<Duration> {
    let waited = schedstat.split_whitespace().nth(1)?;
    waited.parse().ok().map(Duration::from_nanos)
}

impl Drop for QemuRun {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub const QEMU: &str = "qemu-system-x86_64";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_without_a_processor_is_not_the_guests() {
        let waited = waited_for_processor("5000000000 2500000000 71\n");
        assert_eq!(waited, Some(Duration::from_millis(2500)));
        assert_eq!(waited_for_processor("5000000000"), None);
        // As this kernel writes it.
        let own = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
        assert!(waited_for_processor(&own).is_some(), "{own}");
    }

    #[test]
    fn marks_divide_a_stream_wherever_it_is_cut() {
        let whole = b"one@@T 0\n@@T 137\nthree @@ @@T@@T 2\nrest@@T";
        for cut in 0..whole.len() {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("stream");
            let mut stream = MarkedStream::new(&file, "@@T").unwrap();
            let mut writer = File::options().append(true).open(&file).unwrap();
            let mut forwarded = Vec::new();
            for part in [&whole[..cut], &whole[cut..]] {
                writer.write_all(part).unwrap();
                stream.read().unwrap();
                stream.forward(&mut forwarded).unwrap();
            }
            assert_eq!(forwarded, b"onethree @@ @@Trest", "cut at {cut}");
            let (parts, rest) = stream.parts();
            let expected: [(i32, &[u8]); 3] = [(0, b"one"), (137, b""), (2, b"three @@ @@T")];
            assert_eq!(parts, expected, "cut at {cut}");
            assert_eq!(rest, b"rest@@T");
        }
    }
}
