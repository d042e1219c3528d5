//! Waits for the next event of any of the threads that are followed.
//!
//! Asked for any of them, the kernel looks at one after the other until it finds one with an
//! event: with thousands of threads that costs more than all that is done for the event. Asked
//! for one of them, it looks at that alone. SIGCHLD says which one to ask for; but while one is
//! pending those of others are dropped. Who stopped lately is likely to be among these; whoever
//! else is found when all are looked at, which takes a twentieth of the time at most.
use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

use hither_sys::ptrace::{self, TraceeEvent};
use hither_sys::Tid;

/// Up to so many threads a look at all costs less than to do without it.
const FEW: usize = 128;
/// How many of those that stopped lately are asked for by themselves.
const RECENT: usize = 4;
/// Between two looks at all, for each thread that there is: twenty times what a look costs.
const PAUSE: Duration = Duration::from_nanos(500);
/// As long as nothing happens, nothing is to be done.
const FOR_EVER: Duration = Duration::from_secs(1 << 30);

/// Knows whom to ask for.
pub struct TraceeWaiter {
    /// Threads that stopped lately or are told to have, the last one first.
    recent: VecDeque<Tid>,
    /// What may have happened since all were looked at, SIGCHLD is still to tell of.
    all_seen: bool,
    /// When all may be looked at again.
    next_look: Instant,
    /// Events since all were looked at.
    unlooked: usize,
}

impl TraceeWaiter {
    pub fn new() -> Self {
        TraceeWaiter {
            recent: VecDeque::new(),
            all_seen: false,
            next_look: Instant::now(),
            unlooked: 0,
        }
    }

    /// The next event, of some `followed` threads; `None`: none came in time. Shows `last`
    /// threads that have ended, as [`ptrace::wait_before_reap`] does. SIGCHLD must be held back.
    ///
    /// # Errors
    /// ECHILD when there is nobody to wait for.
    pub fn next(
        &mut self,
        followed: usize,
        timeout: Option<Duration>,
        mut last: impl FnMut(Tid),
    ) -> io::Result<Option<(Tid, TraceeEvent)>> {
        let began = Instant::now();
        loop {
            let event = if followed <= FEW {
                self.all_seen = false;
                ptrace::wait_before_reap(None, timeout.is_none(), &mut last)?
            } else {
                self.look(followed, &mut last)?
            };
            if event.is_some() {
                return Ok(event);
            }
            let left = timeout.map_or(FOR_EVER, |most| most.saturating_sub(began.elapsed()));
            let pause = match self.all_seen || followed <= FEW {
                true => left,
                false => left.min(self.next_look.saturating_duration_since(Instant::now())),
            };
            if let Some(told) = ptrace::next_sigchld(pause) {
                self.all_seen = false;
                self.put_first(told);
            } else if timeout.is_some_and(|most| began.elapsed() >= most) {
                return Ok(None);
            }
        }
    }

    /// Asks for those that it may be, and for all where that is due.
    fn look(
        &mut self,
        followed: usize,
        last: &mut impl FnMut(Tid),
    ) -> io::Result<Option<(Tid, TraceeEvent)>> {
        // Whoever stops all the time must not keep others from being seen.
        let unfair = self.unlooked > followed / 4;
        let asked = if unfair { 0 } else { self.recent.len() };
        for at in 0..asked {
            let tid = self.recent[at];
            // An error: it is no more.
            if let Ok(Some(event)) = ptrace::wait_before_reap(Some(tid), false, &mut *last) {
                self.unlooked += 1;
                self.put_first(tid);
                return Ok(Some(event));
            }
        }
        if self.all_seen || !unfair && Instant::now() < self.next_look {
            return Ok(None);
        }
        self.unlooked = 0;
        let event = ptrace::wait_before_reap(None, false, last)?;
        match event {
            Some((tid, _)) => self.put_first(tid),
            None => {
                self.all_seen = true;
                let pause = PAUSE * u32::try_from(followed).unwrap_or(u32::MAX);
                self.next_look = Instant::now() + pause;
            }
        }
        Ok(event)
    }

    fn put_first(&mut self, tid: Tid) {
        if tid > 0 {
            self.recent.retain(|&other| other != tid);
            self.recent.truncate(RECENT - 1);
            self.recent.push_front(tid);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use hither_sys::process::{end_copy, fork_copy};
    use hither_sys::ptrace::ResumeMode;
    use nix::sys::signal::{SigSet, Signal};
    use nix::sys::wait::{waitpid, WaitStatus};

    use super::*;

    /// What comes at once comes later on a busy machine.
    const AT_MOST: Duration = Duration::from_secs(60);
    /// So many threads that all are looked at once in eight minutes.
    const MANY: usize = 1_000_000_000;

    /// Does `work` with `count` processes that it follows, in a process of its own: waiting for
    /// any child must not take those of other tests.
    #[track_caller]
    fn following(count: usize, work: impl FnOnce(&[Tid], TraceeWaiter)) {
        let follow = || {
            SigSet::from(Signal::SIGCHLD).thread_block().expect("mask");
            let sleeper = |_| Command::new("sleep").arg("1000").spawn().expect("sleep");
            let children: Vec<Child> = (0..count).map(sleeper).collect();
            let of = |child: &Child| i32::try_from(child.id()).expect("a pid");
            let tids: Vec<Tid> = children.iter().map(of).collect();
            // Their programs are there by now, so that no exec comes in between.
            std::thread::sleep(Duration::from_millis(100));
            tids.iter()
                .for_each(|&tid| ptrace::seize(tid).expect("seize"));
            // They end with this process.
            work(&tids, TraceeWaiter::new());
            0
        };
        match fork_copy().expect("fork") {
            None => end_copy(follow),
            Some(copy) => assert_eq!(waitpid(copy, None), Ok(WaitStatus::Exited(copy, 0))),
        }
    }

    /// Whose event comes next.
    fn next(waiter: &mut TraceeWaiter, followed: usize) -> Option<Tid> {
        let next = waiter.next(followed, Some(AT_MOST), |_| ());
        next.expect("tracees").map(|(tid, _)| tid)
    }

    #[test]
    fn threads_that_sigchld_tells_of_are_found_without_a_look_at_all() {
        following(20, |tids, mut waiter| {
            let none = waiter.next(MANY, Some(Duration::ZERO), |_| ());
            assert_eq!(none.expect("tracees"), None);
            let looked = waiter.next_look;
            for tid in tids.iter().cycle().take(400) {
                ptrace::interrupt(*tid).expect("interrupt");
                assert_eq!(next(&mut waiter, MANY), Some(*tid));
                ptrace::resume(*tid, ResumeMode::Cont, 0).expect("resume");
            }
            assert_eq!(waiter.next_look, looked);
        });
    }

    #[test]
    fn threads_whose_sigchld_was_dropped_are_found_too() {
        following(20, |tids, mut waiter| {
            for _ in 0..3 {
                tids.iter()
                    .for_each(|&tid| ptrace::interrupt(tid).expect("interrupt"));
                // All but one signal are dropped.
                std::thread::sleep(Duration::from_millis(50));
                let mut found: Vec<Tid> = (tids.iter())
                    .filter_map(|_| next(&mut waiter, 1000))
                    .collect();
                found.sort_unstable();
                assert_eq!(found, tids);
                let none = waiter.next(1000, Some(Duration::from_millis(20)), |_| ());
                assert_eq!(none.expect("tracees"), None);
                found.iter().for_each(|&tid| {
                    ptrace::resume(tid, ResumeMode::Cont, 0).expect("resume");
                });
            }
        });
    }

    #[test]
    fn a_thread_that_stops_all_the_time_does_not_hide_others() {
        following(2, |tids, mut waiter| {
            waiter.next_look = Instant::now() + Duration::from_secs(3600);
            ptrace::interrupt(tids[1]).expect("interrupt");
            assert_eq!(ptrace::next_sigchld(AT_MOST), Some(tids[1]));
            let mut turns = 0;
            loop {
                ptrace::interrupt(tids[0]).expect("interrupt");
                let stopped = next(&mut waiter, 1000).expect("an event");
                if stopped == tids[1] {
                    break;
                }
                ptrace::resume(stopped, ResumeMode::Cont, 0).expect("resume");
                turns += 1;
                assert!(turns < 1000);
            }
            assert!(turns > 100, "{turns}");
        });
    }
}
