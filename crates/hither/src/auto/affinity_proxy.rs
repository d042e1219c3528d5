//! A small process that answers the program when it asks where it may run: a runtime that
//! counts its processing units is not to find the one on which we have put a thread.
//!
//! ```text
//!  program --sched_getaffinity--> kernel --notify--> proxy: the mask without us
//!  hither  --pipe: pinned threads---------------------^
//! ```
//! It is a process of its own since the program waits for its answers: they must come though
//! hither is stopped or killed. It ends when the last process that may ask has ended. Where
//! it may not write into the program's memory (yama), or a thread has a mask that is not
//! ours, the kernel answers. What is in /proc/PID/status stays the truth.
use std::collections::{HashMap, HashSet};
use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use hither_sys::affinity::CpuMask;
use hither_sys::proc_text::proc_field;
use hither_sys::seccomp::notify::{self, SeccompNotif, SeccompNotifResp};
use hither_sys::{launch, process};
use nix::libc;
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::sys::signal::SigSet;

use super::pinned_threads::PinnedThread;
use crate::follow::affinity_reply::{self, HeldMemory};
use hither_sys::Tid;

/// This hither has put a filter on the program that it started.
static FILTERS: AtomicBool = AtomicBool::new(false);

/// Whether a process, by its /proc/PID/status, is under no filter of system calls but ours,
/// which lets all calls pass.
#[must_use]
pub fn is_unfiltered(status: &str) -> bool {
    let own = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    match filter_count(status) {
        0 => true,
        1 => FILTERS.load(Ordering::Relaxed) && filter_count(&own) == 0,
        _ => false,
    }
}

/// Filters of a process, at least one where the kernel does not count them.
fn filter_count(status: &str) -> u32 {
    match proc_field(status, "Seccomp") {
        None | Some("0") => 0,
        _ => {
            let count = proc_field(status, "Seccomp_filters").and_then(|n| n.parse().ok());
            count.unwrap_or(u32::MAX)
        }
    }
}

/// The way to tell it.
#[derive(Debug)]
pub struct AffinityProxy(PipeWriter);

impl AffinityProxy {
    /// Splits it off and has the program of `command` ask it. To be called while this
    /// process has one thread.
    ///
    /// # Errors
    /// When the kernel makes no process or pipe.
    pub fn new(command: &mut Command) -> Result<AffinityProxy> {
        let (theirs, ours) = std::io::pipe().context("cannot make a pipe")?;
        let (listens, asks) = UnixStream::pair().context("cannot make a pair of sockets")?;
        let pid = process::fork_off(|| {
            let kept = [theirs.as_raw_fd(), listens.as_raw_fd()];
            let _ = SigSet::all().thread_block();
            let _ = nix::sys::prctl::set_name(c"hither-answers");
            if launch::release_inherited_files(&kept).is_err() {
                return 1;
            }
            if let Ok(Some(listener)) = notify::receive_listener(&listens) {
                drop(listens);
                answer_queries(&listener, theirs);
            }
            0
        });
        let pid = pid.context("cannot split off the process that answers the program")?;
        FILTERS.store(true, Ordering::Relaxed);
        notify::start_with_listener(command, notify::affinity_filter(), asks, pid);
        Ok(AffinityProxy(ours))
    }

    /// Tells it of a thread that is about to be put on a unit.
    pub fn announce(&mut self, pinned: &PinnedThread) {
        if let Ok(mut line) = serde_json::to_vec(pinned) {
            line.push(b'\n');
            // Without it the program gets the kernel's own answer.
            let _ = self.0.write_all(&line);
        }
    }
}

/// Whether a thread means by an id whom we mean (pid_namespaces(7)).
fn has_our_ids(tid: Tid) -> bool {
    let of = |who: &str| std::fs::read_link(format!("/proc/{who}/ns/pid")).ok();
    let own = of("self");
    own.is_some() && of(&tid.to_string()) == own
}

/// What it knows.
#[derive(Default)]
struct AffinityProxyState {
    put: HashMap<Tid, (u32, CpuMask)>,
    /// Units that any thread was put on.
    units: HashSet<u32>,
    /// The program has set masks itself: one unit may be its own choice.
    chooses: bool,
    /// As the program started.
    natural: CpuMask,
}

/// Answers until no process under the filter is left.
fn answer_queries(listener: &OwnedFd, pipe: PipeReader) {
    let mut known = AffinityProxyState {
        natural: CpuMask::of_thread(0).unwrap_or_default(),
        ..AffinityProxyState::default()
    };
    let mut pipe = Some(BufReader::new(pipe));
    loop {
        let mut ready = vec![PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
        if let Some(pipe) = &pipe {
            ready.push(PollFd::new(pipe.get_ref().as_fd(), PollFlags::POLLIN));
        }
        if poll(&mut ready, PollTimeout::NONE).is_err() {
            continue;
        }
        let events = |at: usize| ready.get(at).and_then(PollFd::revents);
        let (asked, told) = (events(0).unwrap_or(PollFlags::empty()), events(1));
        if told.is_some_and(|events| !events.is_empty()) && !known.read_announcements(&mut pipe) {
            // Hither has ended, and whatever it did is undone.
            pipe = None;
            known.put.clear();
            known.units.clear();
        }
        if asked.contains(PollFlags::POLLIN) {
            if let Ok(call) = notify::receive_notification(listener.as_fd()) {
                let answer = known
                    .answer(listener, &call, &mut pipe)
                    .unwrap_or(SeccompNotifResp::Continue);
                notify::send_response(listener.as_fd(), &call, answer);
            }
        } else if asked.intersects(PollFlags::POLLHUP | PollFlags::POLLERR) {
            return;
        }
    }
}

impl AffinityProxyState {
    /// Reads what there is to hear. Whether there will be more.
    fn read_announcements(&mut self, pipe: &mut Option<BufReader<PipeReader>>) -> bool {
        let Some(pipe) = pipe else {
            return false;
        };
        loop {
            let mut line = String::new();
            if pipe.read_line(&mut line).unwrap_or(0) == 0 {
                return false;
            }
            if let Ok(pinned) = serde_json::from_str::<PinnedThread>(&line) {
                self.units.insert(pinned.cpu);
                let natural = pinned
                    .natural
                    .iter()
                    .flat_map(|&(first, last)| first..=last);
                let natural = natural.collect();
                self.put.insert(pinned.tid, (pinned.cpu, natural));
            }
            if pipe.buffer().is_empty() {
                return true;
            }
        }
    }

    fn answer(
        &mut self,
        listener: &OwnedFd,
        call: &SeccompNotif,
        pipe: &mut Option<BufReader<PipeReader>>,
    ) -> Option<SeccompNotifResp> {
        let target = i32::try_from(call.arguments[0] & 0xffff_ffff).ok()?;
        if target != 0 && !has_our_ids(call.tid) {
            return None;
        }
        let target = if target == 0 { call.tid } else { target };
        if call.number == libc::SYS_sched_setaffinity {
            self.chooses = true;
            self.put.remove(&target);
            return None;
        }
        // In this order: hither announces a pin before it sets it, so the mask read here is
        // either the one before, or its pin is in the pipe by now.
        let now = CpuMask::of_thread(target).ok()?;
        self.catch_up(pipe);
        let natural = self.original_mask(target, &now).unwrap_or(&now);
        let length = usize::try_from(call.arguments[1] & 0xffff_ffff).ok()?;
        let bytes = affinity_reply::bytes(target, length, natural).ok()?;
        // In this order: the memory is that of the caller if that still waits now, whatever the process
        // becomes afterwards.
        let memory = HeldMemory::of(call.tid).ok()?;
        if !notify::is_id_valid(listener.as_fd(), call) {
            return None;
        }
        let written = memory.write(call.arguments[2], &bytes);
        written.ok().map(SeccompNotifResp::Return)
    }

    /// Hears what was told until now.
    fn catch_up(&mut self, pipe: &mut Option<BufReader<PipeReader>>) {
        let Some(open) = pipe else { return };
        let mut ready = [PollFd::new(open.get_ref().as_fd(), PollFlags::POLLIN)];
        let is_told = poll(&mut ready, PollTimeout::ZERO).is_ok_and(|ready| ready > 0);
        // That nothing more will come the next poll tells.
        if is_told {
            self.read_announcements(pipe);
        }
    }

    /// The mask that a thread would have without us; `None` where it has that.
    fn original_mask(&self, tid: Tid, now: &CpuMask) -> Option<&CpuMask> {
        let mut units = now.cpus();
        let (Some(unit), None) = (units.next(), units.next()) else {
            return None;
        };
        match self.put.get(&tid) {
            Some((put, natural)) if *put == unit => Some(natural),
            // A child that has its parent's mask still.
            _ if self.units.contains(&unit) && !self.chooses => Some(&self.natural),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_counted() {
        let check = |status: &str, expected| assert_eq!(filter_count(status), expected, "{status}");
        check("Seccomp:\t0\nSeccomp_filters:\t0\n", 0);
        check("Seccomp:\t2\nSeccomp_filters:\t3\n", 3);
        check("Seccomp:\t2\n", u32::MAX);
        check("", 0);
    }

    #[test]
    fn ids_are_ours_in_our_namespace() {
        assert!(has_our_ids(nix::unistd::gettid().as_raw()));
        assert!(!has_our_ids(i32::MAX - 1));
    }

    #[test]
    fn only_masks_of_ours_are_hidden() {
        let (tid, unit) = (4711, 5);
        let now = CpuMask::single(unit);
        let mut known = AffinityProxyState {
            natural: CpuMask::from_iter([1, 2, 3]),
            ..AffinityProxyState::default()
        };
        // Its own choice, as far as we know.
        assert_eq!(known.original_mask(tid, &now), None);
        known.units.insert(unit);
        assert_eq!(known.original_mask(tid, &now), Some(&known.natural));
        known.chooses = true;
        assert_eq!(known.original_mask(tid, &now), None);
        known.put.insert(tid, (unit, CpuMask::from_iter([7, 8])));
        assert_eq!(
            known.original_mask(tid, &now),
            Some(&CpuMask::from_iter([7, 8]))
        );
        known
            .put
            .insert(tid, (unit + 1, CpuMask::from_iter([7, 8])));
        assert_eq!(known.original_mask(tid, &now), None);
    }
}
