//! Processes that a sampler has put, or is about to put, an agent into.
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Debug;
use std::io;
use std::time::{Duration, Instant};

use hither_profile::Nanos;
use nix::libc;

use super::agent_fitness::AgentRefusal;
use super::inject::AgentInjection;
use super::protocol::AgentPurpose;
use crate::auto::sampler::{FaultSampler, MemoryKind, SamplerContext};
use crate::auto::taken_pages::TakenPages;
use crate::follow::procfs;
use hither_model::rng::Rng;
use hither_sys::{Pid, Tid};

/// Between two looks at processes that have no agent.
const PAUSE: Duration = Duration::from_millis(100);
/// Attempts at a process that is perhaps not fit.
const TRIES: u32 = 10;

/// Time between two scans of all mappings of a process: this many times what the scans of all
/// processes take, and no less than [`AT_LEAST`].
const REST: u32 = 500;
const AT_LEAST: Duration = Duration::from_millis(100);
/// Bytes of what may be stacks, and is left alone, that somebody may miss: stacks are small.
const WORTH_TELLING: u64 = 32 << 20;

/// Nanoseconds that a fault may cost: a second. The program can write its agent's reports itself.
const HIGHEST_COST: Nanos = 1_000_000_000;

/// What an agent did since it began.
#[derive(Clone, Copy, Debug, Default)]
pub struct AgentWork {
    /// Pages taken.
    pub pages: u64,
    /// Processor time in which they were taken and put back, where that is known.
    pub taking: Nanos,
    /// Processor time for all else, which is spent however few pages are taken: it looks after
    /// the regions, and answers for first touches and changes of mappings in them.
    pub fixed_cost: Nanos,
}

impl AgentWork {
    fn plus(self, more: AgentWork) -> AgentWork {
        AgentWork {
            pages: self.pages.saturating_add(more.pages),
            taking: self.taking.saturating_add(more.taking),
            fixed_cost: self.fixed_cost.saturating_add(more.fixed_cost),
        }
    }
}

/// A process that was entered.
pub trait AgentHost: Sized {
    const PURPOSE: AgentPurpose;
    /// As `--sampler` takes it.
    const SAMPLER: &'static str;
    /// What is seen well enough with it.
    const COVERS: &'static [MemoryKind];
    /// By how many times its cost a fault delays the program.
    const DELAYS: u64 = 1;
    /// For the user, once pages were taken.
    const REMARK: Option<&'static str> = None;
    /// What is to be seen of it.
    type Coverage: Copy + Default + Debug;
    /// What a fault costs the program, after so many pages were taken in this time.
    fn cost_per_fault(taken: u64, time: Nanos) -> Nanos;
    /// Whether there is anything of that to see in it.
    fn is_worth_it(pid: Pid, coverage: Self::Coverage, view: &SamplerContext) -> bool;
    /// Whether it may be entered.
    ///
    /// # Errors
    /// Why not.
    fn is_fit(pid: Pid) -> Result<(), AgentRefusal>;
    /// Meets an agent that has just begun.
    ///
    /// # Errors
    /// When it is gone already.
    fn connect(pid: Pid, agent: Tid, coverage: Self::Coverage) -> io::Result<Self>;
    /// Looks after it, one of `hosts`; scans its mappings only while pages may be taken.
    ///
    /// # Errors
    /// When the process ended, or runs another program.
    fn look_after(&mut self, view: &SamplerContext, hosts: Option<u32>) -> io::Result<()>;
    /// The thread that was put into it.
    fn agent_tid(&self) -> Tid;
    /// Pages that may be taken.
    fn takable_pages(&self) -> u64;
    /// Whether this one is among them.
    fn may_take(&self, page: u64) -> bool;
    /// What its agent did so far.
    fn work(&self) -> AgentWork;
    /// Bytes in huge pages, which are left alone.
    fn huge_bytes(&self) -> u64;
    /// Bytes in what may be stacks of threads, where these are left alone.
    fn perhaps_stack_bytes(&self) -> u64 {
        0
    }
    /// Takes `wanted` pages: first `picks`, which may be taken, then others at random. Not called where
    /// there are none.
    fn take_pages(
        &mut self,
        wanted: u32,
        picks: &[u64],
        random: &mut Rng,
        taken_pages: &mut TakenPages,
    );
}

/// When all mappings of a process were looked at, which costs much in a large one.
#[derive(Debug, Default)]
pub struct ScanThrottle {
    /// When the last scan ended, and what it took; `None`: the next one is due.
    last: Option<(Instant, Duration)>,
}

impl ScanThrottle {
    /// Whether the next scan is due, with this many processes to scan.
    pub fn are_due(&self, now: Instant, hosts: u32) -> bool {
        self.last.is_none_or(|(at, took)| {
            let rest = took.saturating_mul(REST.saturating_mul(hosts));
            now.saturating_duration_since(at) >= AT_LEAST.max(rest)
        })
    }

    /// One that began then is over.
    pub fn scan_done(&mut self, began: Instant) {
        self.last = Some((Instant::now(), began.elapsed()));
    }

    /// One more is due.
    pub fn request_scan(&mut self) {
        self.last = None;
    }
}

/// Where a process stands.
#[derive(Debug)]
enum AgentState<H> {
    /// Failed attempts before this one.
    Injecting(AgentInjection, u32),
    With(Box<H>),
    /// When to try again; failed attempts so far.
    Alone(Instant, u32),
    Refused(String),
}

#[derive(Debug)]
pub struct AgentHosts<H: AgentHost> {
    coverage: H::Coverage,
    processes: HashMap<Pid, AgentState<H>>,
    looked: Option<Instant>,
    random: Rng,
    /// Agents that were connected since the last [`FaultSampler::new_own_threads`].
    met: Vec<(Pid, Tid)>,
    /// Of those that are gone, all together.
    past: AgentWork,
    /// Most bytes in huge pages at a time, and in what may be stacks.
    huge: u64,
    perhaps_stacks: u64,
    /// Why processes were left alone, with the first of them and how many there are.
    refused: BTreeMap<String, (Pid, usize)>,
}

impl<H: AgentHost> AgentHosts<H> {
    pub fn new(coverage: H::Coverage) -> AgentHosts<H> {
        AgentHosts {
            coverage,
            huge: 0,
            perhaps_stacks: 0,
            processes: HashMap::new(),
            looked: None,
            random: Rng::new(0),
            met: Vec::new(),
            past: AgentWork::default(),
            refused: BTreeMap::new(),
        }
    }

    /// Takes in processes that came and went, and begins what is due.
    fn inject_agents(&mut self, view: &SamplerContext) {
        if self.looked.is_some_and(|at| at.elapsed() < PAUSE) {
            return;
        }
        self.looked = Some(Instant::now());
        let live: HashSet<Pid> = view.threads.live().map(|(_, thread)| thread.pid).collect();
        let past = &mut self.past;
        self.processes.retain(|pid, state| {
            let stays = live.contains(pid);
            if let (false, AgentState::With(host)) = (stays, state) {
                *past = past.plus(host.work());
            }
            stays
        });
        let busy = |s: &AgentState<H>| matches!(s, AgentState::Injecting(..));
        let mut busy = self.processes.values().any(busy);
        for pid in live {
            let tries = match self.processes.get(&pid) {
                None => Some(0),
                Some(AgentState::Alone(until, tries)) => {
                    (*until <= Instant::now()).then_some(*tries)
                }
                Some(_) => None,
            };
            let Some(tries) = tries else { continue };
            // One process at a time is stopped; and none that only has the id of one.
            if busy || !H::is_worth_it(pid, self.coverage, view) || !view.threads.is_known(pid) {
                continue;
            }
            let state = match H::is_fit(pid) {
                Ok(()) => match AgentInjection::begin(pid, H::PURPOSE) {
                    Ok(injection) => {
                        busy = true;
                        AgentState::Injecting(injection, tries)
                    }
                    Err(error) => AgentState::Refused(error.to_string()),
                },
                Err(AgentRefusal::Perhaps(_)) if tries < TRIES => {
                    AgentState::Alone(Instant::now() + PAUSE, tries + 1)
                }
                Err(AgentRefusal::Now(reason) | AgentRefusal::Perhaps(reason)) => {
                    AgentState::Refused(reason)
                }
            };
            self.set_state(pid, state);
        }
    }

    fn set_state(&mut self, pid: Pid, state: AgentState<H>) {
        if let AgentState::Refused(reason) = &state {
            // A process that has ended needs no note.
            if procfs::thread_count(pid).is_some() {
                let told = self.refused.entry(reason.clone()).or_insert((pid, 0));
                told.1 += 1;
            }
        }
        self.processes.insert(pid, state);
    }

    /// What has become of injections and agents. `busy`: pages will be taken.
    fn advance(&mut self, view: &SamplerContext, busy: bool) {
        let mut news = Vec::new();
        let hosts = u32::try_from(self.hosts().count()).unwrap_or(u32::MAX);
        let hosts = busy.then_some(hosts);
        for (&pid, state) in &mut self.processes {
            match state {
                AgentState::Injecting(injection, tries) => match injection.outcome() {
                    None => {}
                    Some(Ok(tid)) => {
                        self.met.push((pid, tid));
                        news.push((pid, connect_host(pid, tid, self.coverage)));
                    }
                    // It may be stopped for a while.
                    Some(Err(AgentRefusal::Perhaps(_))) if *tries < TRIES => {
                        news.push((pid, retry_later(*tries + 1)));
                    }
                    Some(Err(AgentRefusal::Now(reason) | AgentRefusal::Perhaps(reason))) => {
                        news.push((pid, AgentState::Refused(reason)));
                    }
                },
                AgentState::With(host) => {
                    let Err(_) = host.look_after(view, hosts) else {
                        continue;
                    };
                    self.past = self.past.plus(host.work());
                    news.push((pid, retry_later(0)));
                }
                _ => {}
            }
        }
        for (pid, state) in news {
            self.set_state(pid, state);
        }
    }

    fn hosts(&self) -> impl Iterator<Item = &H> {
        self.processes.values().filter_map(|state| match state {
            AgentState::With(host) => Some(&**host),
            _ => None,
        })
    }

    /// Of all agents, those that are gone too.
    fn work(&self) -> AgentWork {
        self.hosts()
            .map(AgentHost::work)
            .fold(self.past, AgentWork::plus)
    }

    /// Has pages taken: every page is as likely as every other.
    fn take(&mut self, wanted: u32, picks: &[(Pid, u64)], taken: &mut TakenPages) {
        let total: u64 = self.hosts().map(AgentHost::takable_pages).sum();
        if wanted == 0 || total == 0 {
            return;
        }
        for (pid, state) in &mut self.processes {
            if let AgentState::With(host) = state {
                let pages = host.takable_pages();
                if pages == 0 {
                    continue;
                }
                // What is left over by dividing falls to one by chance.
                let shares = u64::from(wanted) * pages;
                let more = self.random.next_u64() % total < shares % total;
                let share = u32::try_from(shares / total + u64::from(more));
                let share = share.unwrap_or(u32::MAX);
                let own = picks.iter().filter(|at| at.0 == *pid).map(|at| at.1);
                let own: Vec<u64> = own.filter(|page| host.may_take(*page)).collect();
                host.take_pages(share, &own, &mut self.random, taken);
            }
        }
    }
}

impl<H: AgentHost> FaultSampler for AgentHosts<H> {
    fn name(&self) -> &'static str {
        H::SAMPLER
    }

    fn cost_per_fault(&self) -> Nanos {
        let work = self.work();
        H::cost_per_fault(work.pages, work.taking).min(HIGHEST_COST)
    }

    fn fixed_cost(&self) -> Nanos {
        self.work().fixed_cost
    }

    fn delay_per_fault(&self) -> Nanos {
        H::DELAYS * self.cost_per_fault()
    }

    fn covers(&self) -> &'static [MemoryKind] {
        H::COVERS
    }

    fn may_take(&self, at: (Pid, u64), _: &SamplerContext) -> bool {
        match self.processes.get(&at.0) {
            Some(AgentState::With(host)) => host.may_take(at.1),
            _ => false,
        }
    }

    fn pages_taken(&self) -> u64 {
        self.work().pages
    }

    fn take_pages(
        &mut self,
        wanted: u32,
        view: &SamplerContext,
        taken: &mut TakenPages,
    ) -> io::Result<()> {
        self.inject_agents(view);
        self.advance(view, wanted > 0);
        self.huge = self.huge.max(self.hosts().map(AgentHost::huge_bytes).sum());
        let stacks = self.hosts().map(AgentHost::perhaps_stack_bytes).sum();
        self.perhaps_stacks = self.perhaps_stacks.max(stacks);
        self.take(wanted, view.picks, taken);
        Ok(())
    }

    fn is_own_thread(&self, tid: Tid) -> bool {
        self.hosts().any(|host| host.agent_tid() == tid)
    }

    fn new_own_threads(&mut self) -> Vec<(Pid, Tid)> {
        std::mem::take(&mut self.met)
    }

    fn note(&self) -> Option<String> {
        let name = H::SAMPLER;
        let note = |(reason, (first, count)): (&String, &(Pid, usize))| match count {
            1 => format!("sampler {name} left process {first} alone: {reason}"),
            _ => format!("sampler {name} left {count} processes alone: {reason}"),
        };
        let remark = H::REMARK.filter(|_| self.pages_taken() > 0);
        let mut notes: Vec<String> = remark.map(str::to_owned).into_iter().collect();
        notes.extend(self.refused.iter().map(note));
        if self.huge > 0 {
            let mebibytes = self.huge >> 20;
            notes.push(format!("sampler {name} left {mebibytes} MiB alone that are in huge pages, which it would split; numa-balancing sees them"));
        }
        if self.perhaps_stacks >= WORTH_TELLING {
            let mebibytes = self.perhaps_stacks >> 20;
            notes.push(format!("sampler {name} left {mebibytes} MiB alone that may be stacks of threads, since huge pages are forbidden there (MADV_NOHUGEPAGE); --sampler write-protect sees who writes to them"));
        }
        (!notes.is_empty()).then(|| notes.join("; "))
    }
}

/// Whether a process has several threads. Their list is not read: it may be long, and it is looked at
/// ten times a second.
pub fn has_threads(pid: Pid) -> bool {
    procfs::thread_count(pid).is_some_and(|threads| threads > 1)
}

fn connect_host<H: AgentHost>(pid: Pid, agent: Tid, coverage: H::Coverage) -> AgentState<H> {
    match H::connect(pid, agent, coverage) {
        Ok(host) => AgentState::With(Box::new(host)),
        Err(error) if is_gone(&error) => retry_later(0),
        Err(error) => AgentState::Refused(error.to_string()),
    }
}

/// There is no agent, or no more: the process ended, runs another program, or is busy.
fn retry_later<H>(tries: u32) -> AgentState<H> {
    AgentState::Alone(Instant::now() + Duration::from_secs(1), tries)
}

fn is_gone(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ESRCH))
        || error.kind() == io::ErrorKind::UnexpectedEof
        || error.kind() == io::ErrorKind::BrokenPipe
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auto::sampler::move_host::MoveHost;

    #[test]
    fn a_process_of_one_thread_is_known() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .expect("sleep");
        let pid = child.id().cast_signed();
        assert!(!has_threads(pid));
        let (sender, waiter) = std::sync::mpsc::channel::<()>();
        let other = std::thread::spawn(move || waiter.recv());
        assert!(has_threads(std::process::id().cast_signed()));
        drop(sender);
        let _ = other.join();
        child.kill().expect("it lives");
        child.wait().expect("it ended");
        assert!(!has_threads(pid));
    }

    /// A scan of all mappings, when the last one took that many milliseconds and ended so long ago, of two processes.
    #[test]
    fn scans_that_take_long_are_rare_unless_there_is_news() {
        let ms = Duration::from_millis;
        let check = |took, passed, expected| {
            let ended = Instant::now();
            let mut throttle = ScanThrottle {
                last: Some((ended, ms(took))),
            };
            let due = throttle.are_due(ended + ms(passed), 2);
            assert_eq!(due, expected, "{took} {passed}");
            throttle.request_scan();
            assert!(throttle.are_due(ended, 2));
        };
        assert!(ScanThrottle::default().are_due(Instant::now(), 2));
        check(0, 99, false);
        check(0, 100, true);
        check(1, 999, false);
        check(1, 1000, true);
    }

    #[test]
    fn a_fault_costs_a_second_at_most_whatever_the_program_reports() {
        let mut hosts = AgentHosts::<MoveHost>::new(());
        hosts.past = AgentWork {
            pages: 1 << 20,
            taking: Nanos::MAX,
            fixed_cost: Nanos::MAX,
        };
        assert_eq!(hosts.cost_per_fault(), HIGHEST_COST);
        assert_eq!(hosts.delay_per_fault(), MoveHost::DELAYS * HIGHEST_COST);
    }
}
