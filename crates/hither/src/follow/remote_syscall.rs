//! System calls made by a stopped thread of the program on our behalf: mbind acts on the
//! process that calls it and on no other.
//!
//! Nothing of ours is written into the program: the `syscall` instruction and the node
//! masks are found in the vdso, which every process has.
use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use hither_sys::ptrace::{self, Registers, ResumeMode, TraceeEvent};

use hither_sys::{Node, Tid};
use nix::sys::signal::{SigSet, Signal};

/// The code that the kernel maps into every process, as it is in this one.
pub struct Vdso {
    bytes: Vec<u8>,
    /// Offset of a `syscall` instruction.
    syscall: Option<u64>,
    /// Offsets of node masks that were looked for.
    masks: HashMap<Node, Option<u64>>,
}

const SYSCALL: [u8; 2] = [0x0f, 0x05];
/// Nodes that fit one word with the bit above them.
const NODES: u32 = 62;

impl Vdso {
    /// Reads our own.
    pub fn read() -> Self {
        let bytes = own_vdso().unwrap_or_default();
        let syscall = bytes.windows(2).position(|w| w == SYSCALL);
        Vdso {
            bytes,
            syscall: syscall.map(|at| at as u64),
            masks: HashMap::new(),
        }
    }

    pub fn syscall_offset(&self) -> Option<u64> {
        self.syscall
    }

    /// Where there is a word whose lowest bits are the mask of `node` alone, and how many
    /// of its bits mbind(2) is to read, in its way of counting.
    pub fn node_mask_offset(&mut self, node: Node) -> Option<(u64, u64)> {
        let bytes = &self.bytes;
        let found = self.masks.entry(node).or_insert_with(|| {
            let bits = (2 << node.0.min(NODES)) - 1;
            let wanted = 1 << node.0.min(NODES);
            let mut words = bytes.windows(8);
            let at = words.position(|w| {
                let word = w
                    .iter()
                    .rev()
                    .fold(0u64, |word, &b| word << 8 | u64::from(b));
                word & bits == wanted
            });
            at.filter(|_| node.0 < NODES).map(|at| at as u64)
        });
        found.map(|at| (at, u64::from(node.0) + 2))
    }
}

fn own_vdso() -> Option<Vec<u8>> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let line = maps.lines().find(|l| l.ends_with("[vdso]"))?;
    let (start, rest) = line.split_once('-')?;
    let end = u64::from_str_radix(rest.split(' ').next()?, 16).ok()?;
    let start = u64::from_str_radix(start, 16).ok()?;
    let mut bytes = vec![0; usize::try_from(end - start).ok()?];
    let memory = std::fs::File::open("/proc/self/mem").ok()?;
    memory.read_exact_at(&mut bytes, start).ok()?;
    Some(bytes)
}

/// A stopped thread that calls for us. It is to be given back, and then let go.
pub struct BorrowedThread<'q> {
    tid: Tid,
    /// Address of a `syscall` instruction in its process.
    syscall: u64,
    saved: Registers,
    signal_mask: u64,
    /// A stop for another reason arrived while it was borrowed.
    trapped: bool,
    queue: &'q mut VecDeque<(Tid, TraceeEvent)>,
}

impl<'q> BorrowedThread<'q> {
    /// Events that end the thread go to `queue`.
    ///
    /// # Errors
    /// ESRCH when it was killed, as with all that follow.
    pub fn borrow(
        tid: Tid,
        syscall: u64,
        queue: &'q mut VecDeque<(Tid, TraceeEvent)>,
    ) -> io::Result<Self> {
        let saved = ptrace::registers(tid)?;
        // A signal must not be delivered to code that is not where it seems to be.
        let signal_mask = ptrace::signal_mask(tid)?;
        ptrace::set_signal_mask(tid, u64::MAX)?;
        Ok(BorrowedThread {
            tid,
            syscall,
            saved,
            signal_mask,
            trapped: false,
            queue,
        })
    }

    /// Makes a call; the result is as in the register, negative for an error.
    pub fn make_syscall(&mut self, number: i64, arguments: [u64; 6]) -> io::Result<i64> {
        self.call_at(self.syscall, number, arguments)
    }

    /// The same with the `syscall` instruction at `rip`, behind which a thread that the call
    /// makes begins.
    pub fn call_at(&mut self, rip: u64, number: i64, arguments: [u64; 6]) -> io::Result<i64> {
        let [rdi, rsi, rdx, r10, r8, r9] = arguments;
        let registers = Registers {
            rip,
            rax: number.cast_unsigned(),
            // It is not on its way out of a call that might have to start again.
            orig_rax: u64::MAX,
            rdi,
            rsi,
            rdx,
            r10,
            r8,
            r9,
            ..self.saved
        };
        ptrace::set_registers(self.tid, &registers)?;
        self.next_syscall_stop()?;
        self.next_syscall_stop()?;
        Ok(ptrace::registers(self.tid)?.rax.cast_signed())
    }

    fn next_syscall_stop(&mut self) -> io::Result<()> {
        loop {
            ptrace::resume(self.tid, ResumeMode::Syscall, 0)?;
            match wait_for_stop(self.tid)? {
                Some((_, TraceeEvent::Syscall)) => return Ok(()),
                Some((_, TraceeEvent::Trap | TraceeEvent::GroupStop(_))) => self.trapped = true,
                Some((
                    tid,
                    event @ (TraceeEvent::Exit | TraceeEvent::Exited(_) | TraceeEvent::Killed(_)),
                )) => {
                    self.queue.push_back((tid, event));
                    return Err(io::Error::from_raw_os_error(nix::libc::ESRCH));
                }
                _ => {}
            }
        }
    }

    /// Puts the thread back to where it was. With `again`, or when another stop
    /// arrived, it stops once more as soon as it is let go, on the kernel's way out of
    /// whatever system call it was in: so the kernel restarts that as it always does.
    pub fn give_back(self, again: bool) -> io::Result<()> {
        ptrace::set_registers(self.tid, &self.saved)?;
        ptrace::set_signal_mask(self.tid, self.signal_mask)?;
        if again || self.trapped {
            ptrace::interrupt(self.tid)?;
        }
        Ok(())
    }
}

/// How long a system call of ours may take before whoever waits for hither can end it.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_micros(200);
/// Looks without a pause: most calls take some microseconds.
const LOOKS: u32 = 200;

/// The next event of a thread that makes a call for us. The program may see to it that the call does not
/// return (its memory is a file of a server of its own, say): then signals that we hold back for the
/// program end us.
fn wait_for_stop(tid: Tid) -> io::Result<Option<(Tid, TraceeEvent)>> {
    let began = Instant::now();
    for look in 0u32.. {
        if let Some(event) = ptrace::wait(tid, false)? {
            return Ok(Some(event));
        }
        if began.elapsed() > PATIENCE {
            break;
        }
        match look < LOOKS {
            true => std::thread::yield_now(),
            false => std::thread::sleep(PAUSE),
        }
    }
    let before = SigSet::thread_get_mask()?;
    ENDING.into_iter().collect::<SigSet>().thread_unblock()?;
    let event = ptrace::wait(tid, true);
    before.thread_set_mask()?;
    event
}

const ENDING: [Signal; 4] = [
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
    Signal::SIGHUP,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vdso_has_what_we_need() {
        let mut vdso = Vdso::read();
        assert!(vdso.syscall_offset().is_some());
        for node in 0..32 {
            let (at, maxnode) = vdso.node_mask_offset(Node(node)).expect("a mask");
            let at = usize::try_from(at).expect("an offset");
            let word = <[u8; 8]>::try_from(&vdso.bytes[at..at + 8]).expect("a word");
            // The kernel reads maxnode - 1 bits.
            let read = u64::from_le_bytes(word) & ((1 << (maxnode - 1)) - 1);
            assert_eq!(read, 1 << node);
        }
        assert_eq!(vdso.node_mask_offset(Node(62)), None);
        assert_eq!(vdso.node_mask_offset(Node(4000)), None);
    }
}
