//! The loop of the follower: waits for what the program's threads do, has the guide
//! decide, acts, and lets them go on.
//!
//! Threads come and go at any moment, so ESRCH is no error anywhere: a thread that was
//! killed tells so by its last event.
use std::collections::{HashMap, VecDeque};
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::time::{Duration, Instant};

use hither_profile::RunEnd;
use hither_sys::affinity::Mask;
use hither_sys::ptrace::{self, Event, Until};

use super::follower::{self, Job, Report};
use super::guide::{Guide, Image, Pid, Seat, Tid};
use super::outcome::Outcome;
use super::threads::Threads;
use super::Progress;

/// What a thread was doing when it was last let go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    Exec { former: Tid },
}

pub struct Engine<'a> {
    guide: &'a mut (dyn Guide + 'static),
    progress: Option<&'a mut (dyn Progress + 'static)>,
    job: Rest,
    threads: Threads,
    /// What threads are in the middle of, by thread.
    doing: HashMap<Tid, Doing>,
    /// New threads whose creator has not told of them yet.
    unborn: HashMap<Tid, (Event, Instant)>,
    /// Events got while waiting for others.
    queue: VecDeque<(Tid, Event)>,
    main: Pid,
    main_stopped: bool,
    began: Instant,
    outcome: Outcome,
}

/// What is left of the [`Job`].
struct Rest {
    front: Pid,
    sink: Option<std::io::PipeWriter>,
    /// The child says here whether the kernel took the filter.
    gate: Option<UnixStream>,
    strict: bool,
}

impl<'a> Engine<'a> {
    /// `pid` is attached to and waits to be let through.
    pub fn new(job: Job<'a>, pid: Pid) -> Self {
        let mut threads = Threads::default();
        let mask = Mask::of(pid).unwrap_or_default();
        threads.add(pid, pid, Rc::new(mask), false);
        Engine {
            guide: job.guide,
            progress: job.progress,
            job: Rest {
                front: job.front,
                sink: Some(job.sink),
                gate: Some(job.gate),
                strict: job.strict,
            },
            threads,
            doing: HashMap::new(),
            unborn: HashMap::new(),
            queue: VecDeque::new(),
            main: pid,
            main_stopped: false,
            began: Instant::now(),
            outcome: Outcome::default(),
        }
    }

    /// Follows to the end of the last process.
    pub fn run(mut self) {
        while let Some((tid, event)) = self.next() {
            self.outcome.cost.stops += 1;
            match self.handle(tid, event) {
                Ok(()) => {}
                Err(error) if is_gone(&error) => {}
                Err(error) => {
                    self.note(format!(
                        "a stop of the program could not be handled ({error})"
                    ));
                    let _ = ptrace::resume(tid, Until::Event, 0);
                }
            }
        }
        self.report();
    }

    fn next(&mut self) -> Option<(Tid, Event)> {
        if let Some(event) = self.queue.pop_front() {
            return Some(event);
        }
        ptrace::wait(None, true).ok().flatten()
    }

    fn handle(&mut self, tid: Tid, event: Event) -> io::Result<()> {
        if !self.threads.live.contains_key(&tid)
            && matches!(event, Event::Trap | Event::GroupStop(_))
        {
            self.unborn.insert(tid, (event, Instant::now()));
            return Ok(());
        }
        match event {
            Event::Exited(_) | Event::Killed(_) => self.gone(tid, event),
            Event::Signal(signal) => ptrace::resume(tid, Until::Event, signal)?,
            Event::GroupStop(_) => {
                self.main_stopped |= tid == self.main;
                ptrace::listen(tid)?;
            }
            Event::Trap => {
                if tid == self.main && std::mem::take(&mut self.main_stopped) {
                    // Whoever continued the program need not know of the front.
                    let _ = hither_sys::process::send(self.job.front, nix::libc::SIGCONT);
                }
                ptrace::resume(tid, Until::Event, 0)?;
            }
            Event::Syscall => self.after_call(tid)?,
            Event::Created => self.created(tid)?,
            Event::Exec => self.exec(tid)?,
            Event::Exit => self.ending(tid)?,
            Event::Seccomp => ptrace::resume(tid, Until::Event, 0)?,
        }
        Ok(())
    }

    fn after_call(&mut self, tid: Tid) -> io::Result<()> {
        match self.doing.remove(&tid) {
            Some(Doing::Exec { former }) => self.image(tid, former),
            None => ptrace::resume(tid, Until::Event, 0),
        }
    }

    fn note(&mut self, note: String) {
        if !self.outcome.notes.contains(&note) {
            self.outcome.notes.push(note);
        }
    }

    /// `creator` made a thread or a process and waits, and so does that.
    fn created(&mut self, creator: Tid) -> io::Result<()> {
        let new = ptrace::message(creator)?;
        if self.threads.live.contains_key(&new) {
            return ptrace::resume(creator, Until::Event, 0);
        }
        let event = match self.unborn.remove(&new) {
            Some((event, _)) => Some(event),
            None => ptrace::wait(Some(new), true)
                .ok()
                .flatten()
                .map(|(_, event)| event),
        };
        if let Some(event) = event {
            self.adopt(creator, new);
            self.queue.push_front((new, event));
        }
        ptrace::resume(creator, Until::Event, 0)
    }

    /// Takes in `new`, which stands before its first instruction.
    fn adopt(&mut self, creator: Tid, new: Tid) {
        let Some(parent) = self.threads.live.get(&creator).cloned() else {
            return;
        };
        let is_thread = ptrace::is_thread_of(new, parent.pid);
        let pid = if is_thread { parent.pid } else { new };
        self.threads.add(new, pid, parent.natural, parent.pinned);
        let seat = if is_thread {
            let stack_pointer = ptrace::registers(new).map_or(0, |r| r.rsp);
            self.guide.thread(creator, new, stack_pointer)
        } else {
            self.guide.forked(creator, new, false)
        };
        self.seat(new, &seat);
    }

    /// Does what the guide asks for a thread that stands still.
    fn seat(&mut self, tid: Tid, seat: &Seat) {
        if let Err(note) = self.threads.seat(tid, seat) {
            self.note(note);
        }
    }

    fn exec(&mut self, tid: Tid) -> io::Result<()> {
        let former = ptrace::message(tid)?;
        for other in self.threads.of(tid) {
            if other != former {
                self.forget(other);
            }
        }
        if former != tid {
            self.threads.rename(former, tid);
        }
        self.doing.insert(tid, Doing::Exec { former });
        ptrace::resume(tid, Until::Syscall, 0)
    }

    /// A new program is there and has run nothing yet.
    fn image(&mut self, pid: Pid, former: Tid) -> io::Result<()> {
        let image = Image::default();
        let seat = if let Some(gate) = self.job.gate.take() {
            self.check_filter(gate);
            self.guide.started(pid, &image)
        } else {
            self.guide.execed(pid, former, &image)
        };
        self.seat(pid, &seat);
        ptrace::resume(pid, Until::Event, 0)
    }

    /// What the child wrote before it became the program.
    fn check_filter(&mut self, mut gate: UnixStream) {
        let mut error = [0; 4];
        if gate.read_exact(&mut error).is_err() || error != [0; 4] {
            let error = io::Error::from_raw_os_error(i32::from_ne_bytes(error));
            self.note(format!("this system does not let hither see system calls (seccomp: {error}): no pages were placed"));
        }
    }

    /// A thread is at its end, and still there.
    fn ending(&mut self, tid: Tid) -> io::Result<()> {
        self.threads.look(tid);
        self.forget(tid);
        ptrace::resume(tid, Until::Event, 0)
    }

    fn forget(&mut self, tid: Tid) {
        self.doing.remove(&tid);
        if self.threads.live.contains_key(&tid) {
            self.guide.ended(tid);
            self.threads.remove(tid);
        }
    }

    /// A thread is no more.
    fn gone(&mut self, tid: Tid, event: Event) {
        self.forget(tid);
        self.unborn.remove(&tid);
        if tid != self.main {
            return;
        }
        self.outcome.end = match event {
            Event::Killed(signal) => RunEnd::Signaled { signal },
            Event::Exited(status) => RunEnd::Exited { status },
            _ => RunEnd::Interrupted,
        };
        self.outcome.duration = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        if !self.threads.live.is_empty() {
            self.report();
        }
    }

    /// Tells the front how things are, once.
    fn report(&mut self) {
        let Some(sink) = self.job.sink.take() else {
            return;
        };
        for tid in self.threads.live.keys().copied().collect::<Vec<_>>() {
            self.threads.look(tid);
        }
        let mut outcome = self.outcome.clone();
        outcome.threads.clone_from(&self.threads.outcome);
        outcome.notes.extend(self.guide.notes());
        follower::tell(sink, Report::Over(Box::new(outcome)));
    }
}

/// The thread was killed meanwhile.
fn is_gone(error: &io::Error) -> bool {
    error.raw_os_error() == Some(nix::libc::ESRCH)
}
