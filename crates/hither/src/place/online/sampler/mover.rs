//! Pages of private memory are taken away by a thread of ours inside the program (the
//! agent, `tracer/agent`) and put back when they are touched (UFFDIO_MOVE, Linux 6.8): the
//! fault tells who touched what, reads as well as writes.
//!
//! ```text
//!  this file --pipe: open, take, close--> agent --UFFDIO_MOVE--> stash
//!      ^------- pipe: counts, closed -------'  ^--- fault --- the program's threads
//! ```
//! The agent decides nothing: which memory is fit for it is decided here, from the
//! kernel's own account of it, and the agent lets go of what the program changes. Where we
//! are not sure, the process is left alone: a page that is lost cannot be mended.
mod agent;
mod host;
mod inject;
mod orders;
mod regions;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::io;
use std::time::{Duration, Instant};

use hither_profile::Nanos;

use super::{Kind, Sampler, View};
use crate::place::run::guide::{Pid, Tid};
use crate::place::run::task;
use host::{Host, Unfit};
use inject::Injection;

/// Bytes of a page of this processor.
const PAGE: u64 = 4096;
/// What a fault costs the program besides the agent's own time: it is stopped, waits, and
/// is woken.
const FAULT: Nanos = 3000;
/// What taking a page and putting it back costs the agent, until it was measured.
const FIRST: Nanos = 4000;
/// Between two looks at processes that have no agent.
const PAUSE: Duration = Duration::from_millis(100);
/// So often a process is looked at that is perhaps not fit.
const TRIES: u32 = 10;

/// Where a process stands.
#[derive(Debug)]
enum Standing {
    Injecting(Injection),
    With(Box<Host>),
    /// Looked at again then; so often it has been in vain.
    Alone(Instant, u32),
    Refused(String),
}

#[derive(Debug)]
pub struct Mover {
    processes: HashMap<Pid, Standing>,
    looked: Option<Instant>,
    random: u64,
    /// Agents that are gone, all together.
    past: orders::Counts,
    notes: HashSet<String>,
    price: Nanos,
}

impl Mover {
    pub fn new() -> Result<Mover, String> {
        agent::is_possible()?;
        Ok(Mover {
            processes: HashMap::new(),
            looked: None,
            random: 0x9E37_79B9_7F4A_7C15,
            past: orders::Counts::default(),
            notes: HashSet::new(),
            price: FIRST + FAULT,
        })
    }

    /// Takes in who came and who went, and begins what is due.
    fn look(&mut self, view: &View) {
        if self.looked.is_some_and(|at| at.elapsed() < PAUSE) {
            return;
        }
        self.looked = Some(Instant::now());
        let live: HashSet<Pid> = view.roster.live().map(|(_, thread)| thread.pid).collect();
        self.processes.retain(|pid, _| live.contains(pid));
        let busy = |s: &Standing| matches!(s, Standing::Injecting(_));
        let mut busy = self.processes.values().any(busy);
        for pid in live {
            let tries = match self.processes.get(&pid) {
                None => Some(0),
                Some(Standing::Alone(until, tries)) => (*until <= Instant::now()).then_some(*tries),
                Some(_) => None,
            };
            let Some(tries) = tries else { continue };
            // One process at a time is stopped.
            if busy || task::threads(pid).len() < 2 {
                continue;
            }
            let standing = match host::is_fit(pid) {
                Ok(()) => match Injection::begin(pid) {
                    Ok(injection) => {
                        busy = true;
                        Standing::Injecting(injection)
                    }
                    Err(error) => Standing::Refused(error.to_string()),
                },
                Err(Unfit::Perhaps(_)) if tries < TRIES => {
                    Standing::Alone(Instant::now() + PAUSE, tries + 1)
                }
                Err(Unfit::Now(reason) | Unfit::Perhaps(reason)) => Standing::Refused(reason),
            };
            self.stand(pid, standing);
        }
    }

    fn stand(&mut self, pid: Pid, standing: Standing) {
        if let Standing::Refused(reason) = &standing {
            self.notes
                .insert(format!("sampler move left process {pid} alone: {reason}"));
        }
        self.processes.insert(pid, standing);
    }

    /// What has become of injections and agents.
    fn advance(&mut self, view: &View) {
        let mut news = Vec::new();
        for (&pid, standing) in &mut self.processes {
            match standing {
                Standing::Injecting(injection) => match injection.outcome() {
                    None => {}
                    Some(Ok(tid)) => match Host::meet(pid, tid) {
                        Ok(host) => news.push((pid, Standing::With(Box::new(host)))),
                        Err(_) => news.push((pid, later())),
                    },
                    Some(Err(reason)) => news.push((pid, Standing::Refused(reason))),
                },
                Standing::With(host) => {
                    let Err(_) = host.listen(view) else { continue };
                    let counts = host.counts();
                    self.past.taken += counts.taken;
                    self.past.time += counts.time;
                    news.push((pid, later()));
                }
                _ => {}
            }
        }
        for (pid, standing) in news {
            self.stand(pid, standing);
        }
    }

    fn hosts(&self) -> impl Iterator<Item = &Host> {
        self.processes
            .values()
            .filter_map(|standing| match standing {
                Standing::With(host) => Some(&**host),
                _ => None,
            })
    }

    fn taken_in_all(&self) -> u64 {
        let taken = self.hosts().map(|host| host.counts().taken);
        self.past.taken + taken.sum::<u64>()
    }

    fn weigh(&mut self) {
        let time = self.hosts().map(|host| host.counts().time);
        let (taken, time) = (self.taken_in_all(), self.past.time + time.sum::<u64>());
        if taken > 100 {
            self.price = time / taken + FAULT;
        }
    }
}

/// The agent was there and is not: the process ended, or runs another program.
fn later() -> Standing {
    Standing::Alone(Instant::now() + Duration::from_secs(1), 0)
}

impl Sampler for Mover {
    fn name(&self) -> &'static str {
        "move"
    }

    fn price(&self) -> Nanos {
        self.price
    }

    fn reaches(&self) -> &'static [Kind] {
        &[Kind::Private]
    }

    fn taken(&self) -> u64 {
        self.taken_in_all()
    }

    fn take(&mut self, wanted: u32, view: &View) -> io::Result<()> {
        self.look(view);
        self.advance(view);
        self.weigh();
        let total: u64 = self.hosts().map(Host::pages).sum();
        if wanted == 0 || total == 0 {
            return Ok(());
        }
        for standing in self.processes.values_mut() {
            if let Standing::With(host) = standing {
                // Every page is as likely as every other.
                let share = u64::from(wanted) * host.pages() / total;
                host.take(
                    u32::try_from(share.max(1)).unwrap_or(u32::MAX),
                    view.picks,
                    &mut self.random,
                );
            }
        }
        Ok(())
    }

    fn owns(&self, tid: Tid) -> bool {
        self.hosts().any(|host| host.agent() == tid)
    }

    fn note(&self) -> Option<String> {
        let mut notes: Vec<&str> = self.notes.iter().map(String::as_str).collect();
        notes.sort_unstable();
        (!notes.is_empty()).then(|| notes.join("; "))
    }
}
