//! The threads that live: which row of the matrix each has, where it ran last, where it was
//! put, and where it might run without us.
use std::collections::HashMap;
use std::io;

use hither_sys::affinity::Mask;
use nix::libc;

use super::analysis::Member;
use crate::place::run::guide::{Cpu, Pid, Tid};

/// A thread that lives.
#[derive(Clone, Debug)]
pub struct Thread {
    pub pid: Pid,
    pub member: Member,
    /// The unit that it faulted on last.
    pub ran: Option<Cpu>,
    /// The unit that it was put on.
    pub seat: Option<Cpu>,
    /// The mask that it would have without us.
    pub natural: Option<Mask>,
    /// It chose its units itself, which are its own affair then.
    pub chose: bool,
}

#[derive(Debug, Default)]
pub struct Roster {
    threads: HashMap<Tid, Thread>,
    by_member: Vec<Option<Tid>>,
    free: Vec<Member>,
    dead: Vec<Member>,
}

/// Members that can be told apart; one number means nobody.
const MOST: usize = u16::MAX as usize - 1;

impl Roster {
    /// Takes in a thread, whoever made it. A thread inherits its creator's mask: one that we
    /// gave is taken back, so that it may run where it would without us.
    pub fn started(&mut self, tid: Tid, pid: Pid, creator: Tid) {
        let parent = self.threads.get(&creator);
        let parent = parent.map(|t| (t.seat, t.natural.clone(), t.chose));
        let Some(thread) = self.add(tid, pid) else {
            return;
        };
        if let Some((Some(seat), Some(natural), _)) = parent {
            if Mask::of(tid).is_ok_and(|mask| mask == Mask::one(seat.0)) {
                let _ = natural.give(tid);
            }
            thread.natural = Some(natural);
        }
    }

    /// The thread with this id, taken in if need be; `None` when there are too many.
    pub fn seen(&mut self, tid: Tid, pid: Pid, ran: Cpu) -> Option<Member> {
        if !self.threads.contains_key(&tid) {
            self.add(tid, pid)?;
        }
        let thread = self.threads.get_mut(&tid)?;
        thread.ran = Some(ran);
        Some(thread.member)
    }

    fn add(&mut self, tid: Tid, pid: Pid) -> Option<&mut Thread> {
        self.ended(tid);
        let member = match self.free.pop() {
            Some(member) => member,
            None if self.by_member.len() < MOST => {
                self.by_member.push(None);
                Member(u16::try_from(self.by_member.len() - 1).ok()?)
            }
            None => return None,
        };
        self.by_member[member.at()] = Some(tid);
        let thread = Thread {
            pid,
            member,
            ran: None,
            seat: None,
            natural: None,
            chose: false,
        };
        Some(self.threads.entry(tid).insert_entry(thread).into_mut())
    }

    /// A thread is gone. Its row, to be cleared; its number is free after [`Roster::reuse`].
    pub fn ended(&mut self, tid: Tid) -> Option<Member> {
        let thread = self.threads.remove(&tid)?;
        self.by_member[thread.member.at()] = None;
        self.dead.push(thread.member);
        Some(thread.member)
    }

    /// Numbers of threads that are gone, when they are many enough to be given out again.
    pub fn reuse(&mut self) -> Vec<Member> {
        if self.dead.len() < 16 + self.threads.len() / 2 {
            return Vec::new();
        }
        self.free.extend(&self.dead);
        std::mem::take(&mut self.dead)
    }

    /// What a thread has now is what it would have without us.
    pub fn keep_mask(&mut self, tid: Tid) {
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.natural = Mask::of(tid).ok();
        }
    }

    /// The process of a thread that was put on a unit, and the units it might run on.
    #[must_use]
    pub fn pinned(&self, tid: Tid) -> Option<(Pid, Vec<u32>)> {
        let thread = self.threads.get(&tid)?;
        Some((thread.pid, thread.natural.as_ref()?.cpus().collect()))
    }

    #[must_use]
    pub fn by_member(&self, member: Member) -> Option<(Tid, &Thread)> {
        let tid = (*self.by_member.get(member.at())?)?;
        Some((tid, self.threads.get(&tid)?))
    }

    /// All that live, by thread id.
    pub fn live(&self) -> impl Iterator<Item = (Tid, &Thread)> {
        self.threads.iter().map(|(&tid, thread)| (tid, thread))
    }

    /// Threads of a process.
    #[must_use]
    pub fn of(&self, pid: Pid) -> Vec<Tid> {
        let of = self.live().filter(|(_, thread)| thread.pid == pid);
        of.map(|(tid, _)| tid).collect()
    }

    /// Puts a thread on a unit, if it may run there and has not chosen its units itself.
    /// Whether it is there now and was not before.
    ///
    /// # Errors
    /// As sched_setaffinity(2), but for a thread that is gone.
    pub fn seat(&mut self, tid: Tid, cpu: Cpu, ours: &Mask) -> io::Result<bool> {
        let Some(thread) = self.threads.get_mut(&tid) else {
            return Ok(false);
        };
        if thread.chose || thread.seat == Some(cpu) {
            return Ok(false);
        }
        let now = match Mask::of(tid) {
            Err(e) if e.raw_os_error() == Some(libc::ESRCH) => return Ok(false),
            now => now?,
        };
        // It has what it was given, or what everybody starts with.
        let given = match thread.seat {
            Some(seat) => now == Mask::one(seat.0),
            None => thread.natural.as_ref().unwrap_or(ours) == &now,
        };
        if !given || !now.has(cpu.0) && thread.seat.is_none() {
            thread.chose = true;
            return Ok(false);
        }
        if thread.seat.is_none() {
            thread.natural = Some(now);
        }
        match Mask::one(cpu.0).give(tid) {
            Ok(()) => thread.seat = Some(cpu),
            Err(e) if e.raw_os_error() == Some(libc::ESRCH) => return Ok(false),
            Err(e) => return Err(e),
        }
        Ok(true)
    }

    /// Lets a process run where it would without us: it runs another program now.
    pub fn unseat(&mut self, pid: Pid) {
        for thread in self.threads.iter_mut().filter(|(_, t)| t.pid == pid) {
            let (&tid, thread) = thread;
            if let (Some(seat), Some(natural)) = (thread.seat.take(), &thread.natural) {
                if Mask::of(tid).is_ok_and(|mask| mask == Mask::one(seat.0)) {
                    let _ = natural.give(tid);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_given_out_again_when_many_are_free() {
        let mut roster = Roster::default();
        for tid in 1..=40 {
            let member = roster.seen(tid, 1, Cpu(0));
            assert_eq!(member, Some(Member(tid as u16 - 1)));
        }
        for tid in 1..=20 {
            assert_eq!(roster.ended(tid), Some(Member(tid as u16 - 1)));
        }
        assert_eq!(roster.ended(7), None);
        assert_eq!(roster.reuse(), []);
        // Not one of those yet.
        assert_eq!(roster.seen(50, 1, Cpu(0)), Some(Member(40)));
        (21..=30).for_each(|tid| {
            roster.ended(tid);
        });
        assert_eq!(roster.reuse().len(), 30);
        assert!(roster.seen(51, 1, Cpu(0)).expect("a number") < Member(30));
        assert_eq!(roster.by_member(Member(40)).map(|t| t.0), Some(50));
    }

    #[test]
    fn a_thread_goes_where_it_is_put_and_back() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .expect("sleep");
        let tid = i32::try_from(child.id()).expect("pid");
        let ours = Mask::of(0).expect("mask");
        let cpus: Vec<u32> = ours.cpus().collect();
        let (first, last) = (Cpu(cpus[0]), Cpu(cpus[cpus.len() - 1]));
        let mut roster = Roster::default();
        roster.seen(tid, tid, first);
        assert!(roster.seat(tid, last, &ours).expect("seat"));
        assert_eq!(Mask::of(tid).expect("mask"), Mask::one(last.0));
        assert!(!roster.seat(tid, last, &ours).expect("there already"));
        roster.unseat(tid);
        assert_eq!(Mask::of(tid).expect("mask"), ours);
        // What it chose itself is left alone.
        assert!(roster.seat(tid, last, &ours).expect("seat"));
        if cpus.len() > 1 {
            Mask::one(first.0).give(tid).expect("its own choice");
            assert!(!roster.seat(tid, first, &ours).expect("chose"));
            assert!(roster.by_member(Member(0)).is_some_and(|(_, t)| t.chose));
        }
        child.kill().expect("kill");
        child.wait().expect("wait");
        assert!(!roster.seat(tid, first, &ours).expect("gone"));
    }
}
