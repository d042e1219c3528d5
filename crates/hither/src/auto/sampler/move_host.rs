//! Pages of private memory are taken away by a thread of ours inside the program (the
//! agent, `tracer/agent`) and put back when they are touched (UFFDIO_MOVE, Linux 6.8): the
//! fault shows which thread accessed which page, by a read or a write.
//!
//! ```text
//!  this file --pipe: open, take, close--> agent --UFFDIO_MOVE--> stash
//!      ^------- pipe: counts, closed -------'  ^--- fault --- the program's threads
//! ```
//! The agent decides nothing: which memory is fit for it is decided here, from the
//! kernel's own account of it, and the agent lets go of what the program changes. Where we
//! are not sure, the process is left alone: a page that is lost cannot be mended.
use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::time::Instant;

use hither_model::rng::Rng;
use hither_profile::{Nanos, PAGE_SIZE};
use hither_sys::affinity::CpuMask;
use hither_sys::inject::robust_list_address;

use super::agent::agent_fitness::{self, AgentRefusal};
use super::agent::agent_hosts::{has_threads, AgentHost, AgentHosts, AgentWork, ScanThrottle};
use super::agent::connection::{self, AgentConnection};
use super::agent::exit_pages::ExitPages;
use super::agent::movable_regions::{self, SmapsEntry};
use super::agent::open_regions::{ranges_overlap, MovableRegion, OpenRegions};
use super::agent::protocol::{self, AgentOrder, AgentPurpose, AgentReport};
use super::{MemoryKind, SamplerContext};
use crate::auto::taken_pages::TakenPages;
use crate::follow::procfs;
use crate::program::clock::monotonic_ns;
use hither_sys::{Pid, Tid};

/// What a fault costs the program besides the agent's own time for it: it is stopped, waits, and
/// is woken.
const FAULT: Nanos = 3000;
/// How often, where all units are busy, some thread of the program stands still for about the time of a fault:
/// the agent takes the unit of one when it takes the page and when it puts it back, all are
/// interrupted for their TLBs, and the one that faults waits. Seen as 90 to 130 us of 30 on 16 units.
const STANDSTILLS: Nanos = 3;
/// What taking a page and putting it back costs the agent, until it was measured.
const FIRST: Nanos = 4000;
/// Pages taken after which it is: until then little is known of what the budget allows.
const MEASURED: u64 = 8;
/// Orders that are looked into and sent together: where hither waits for a processor, or is slow, the
/// first of many would have expired before the last is ready.
const AT_ONCE: usize = 16;
/// Around the lists of locks of threads nothing is taken.
const AROUND: u64 = PAGE_SIZE;

/// The sampler, or why it does not work here.
pub fn sampler() -> Result<AgentHosts<MoveHost>, String> {
    connection::is_possible()?;
    Ok(AgentHosts::new(()))
}

/// A process with an agent in it: which of its memory is open to it, and which pages it is
/// to take.
#[derive(Debug)]
pub struct MoveHost {
    pid: Pid,
    agent: AgentConnection,
    executable: u64,
    open: OpenRegions,
    /// Where each thread's list of locks is; `None`: it has none yet.
    threads: HashMap<Tid, Option<u64>>,
    /// Of the thread table, when all of these had one.
    met: Option<u64>,
    needed: ExitPages,
    looks: ScanThrottle,
    /// Bytes in huge pages, and in what may be stacks.
    huge: u64,
    perhaps_stacks: u64,
}

/// Whether there may be an agent that takes pages of the process: what could go wrong for
/// it that we cannot see to is not there.
fn is_fit(pid: Pid) -> Result<(), AgentRefusal> {
    agent_fitness::is_undisturbed(pid)?;
    let unfit = |why: &str| Err(AgentRefusal::Now(why.to_owned()));
    if !agent_fitness::may_watch_the_kernel(pid) {
        return unfit(
            "its user may not watch page faults of the kernel, and is not lent that right; --sampler write-protect can sample it",
        );
    }
    // A core file is to hold all of memory; the kernel waits for no page when it writes one.
    if agent_fitness::leaves_core(pid) {
        return unfit(
            "it would leave a core file, which would lack pages; ulimit -c 0 or --sampler write-protect lets it be sampled",
        );
    }
    for tid in procfs::thread_ids(pid) {
        if agent_fitness::is_real_time(pid, tid) {
            return unfit("it has real-time threads, which would keep the agent waiting");
        }
        if let Ok(None) = robust_list_address(tid) {
            let why = "its threads are not those of the GNU C library, so it is not known what the kernel itself writes to; --sampler write-protect can sample it";
            return Err(AgentRefusal::Perhaps(why.to_owned()));
        }
    }
    Ok(())
}

impl AgentHost for MoveHost {
    const PURPOSE: AgentPurpose = AgentPurpose::Moves;
    const SAMPLER: &'static str = "move";
    const COVERS: &'static [MemoryKind] = &[MemoryKind::Private];
    const DELAYS: u64 = STANDSTILLS;
    type Coverage = ();

    fn cost_per_fault(taken: u64, time: Nanos) -> Nanos {
        FAULT
            + match taken >= MEASURED {
                true => time / taken,
                false => FIRST,
            }
    }

    /// Private memory of a process with one thread is not shared.
    fn is_worth_it(pid: Pid, (): (), _: &SamplerContext) -> bool {
        has_threads(pid)
    }

    fn is_fit(pid: Pid) -> Result<(), AgentRefusal> {
        is_fit(pid)
    }

    fn connect(pid: Pid, tid: Tid, (): ()) -> io::Result<MoveHost> {
        let agent = AgentConnection::connect(pid, tid)?;
        // It runs where there is room, and at once.
        let _ = (0..4096).collect::<CpuMask>().set_affinity(tid);
        hither_sys::launch::request_short_slice_for(tid);
        let executable = fs::metadata(format!("/proc/{pid}/exe"));
        Ok(MoveHost {
            pid,
            agent,
            executable: executable.map_or(0, |m| m.ino()),
            open: OpenRegions::default(),
            threads: HashMap::new(),
            met: None,
            needed: ExitPages::new(pid)?,
            looks: ScanThrottle::default(),
            huge: 0,
            perhaps_stacks: 0,
        })
    }

    /// Hears what the agent has to say, and looks after its regions.
    fn look_after(&mut self, view: &SamplerContext, hosts: Option<u32>) -> io::Result<()> {
        for news in self.agent.read_reports()? {
            match news {
                AgentReport::Opened {
                    address,
                    length,
                    error,
                } => {
                    if self.open.opened(address, length, error) {
                        // Soon once more.
                        self.looks.request_scan();
                    }
                }
                AgentReport::Closed {
                    address,
                    length,
                    why,
                } => self.open.closed(address, length, why),
                AgentReport::Hello { .. } | AgentReport::Counts => {}
            }
        }
        self.meet_threads(view);
        let Some(hosts) = hosts else {
            return Ok(());
        };
        let now = Instant::now();
        if self.open.is_due(now) {
            self.looks.request_scan();
        }
        if self.looks.are_due(now, hosts) {
            self.scan_mappings()?;
            self.check_rights()?;
        }
        Ok(())
    }

    fn agent_tid(&self) -> Tid {
        self.agent.tid
    }

    fn takable_pages(&self) -> u64 {
        let sure = self.open.regions.iter().filter(|r| r.sure);
        sure.map(|r| (r.range.end - r.range.start) / PAGE_SIZE)
            .sum()
    }

    /// A thread of which nothing is known yet may have its list anywhere.
    fn may_take(&self, page: u64) -> bool {
        let mut regions = self.open.regions.iter();
        self.threads.values().all(Option::is_some)
            && regions.any(|r| r.sure && r.range.contains(&page))
    }

    fn work(&self) -> AgentWork {
        let counts = &self.agent.counts;
        AgentWork {
            pages: counts.taken,
            taking: counts.taking,
            fixed_cost: counts.time.saturating_sub(counts.taking),
        }
    }

    fn huge_bytes(&self) -> u64 {
        self.huge
    }

    fn perhaps_stack_bytes(&self) -> u64 {
        self.perhaps_stacks
    }

    fn take_pages(
        &mut self,
        wanted: u32,
        picks: &[u64],
        random: &mut Rng,
        taken_pages: &mut TakenPages,
    ) {
        let total = self.takable_pages();
        if total == 0 || self.threads.values().any(Option::is_none) {
            return;
        }
        let lists: Vec<u64> = self.threads.values().copied().flatten().collect();
        let near = |page: u64, list: u64| page + PAGE_SIZE + AROUND > list && page < list + AROUND;
        let (regions, needed) = (&self.open.regions, &mut self.needed);
        let mut picks = picks.iter().copied();
        let pages = (0..wanted.min(protocol::OUT / 2)).filter_map(|_| {
            let page = match picks.next() {
                Some(page) => page,
                None => page_of(regions, random.next_u64() % total)?,
            };
            // As of before the look: orders expire.
            let at = monotonic_ns();
            let harmless = !lists.iter().any(|&list| near(page, list)) && needed.may_take(page);
            harmless.then_some((page, AgentOrder::Take { address: page, at }))
        });
        let mut orders: Vec<AgentOrder> = Vec::new();
        for (page, order) in pages {
            taken_pages.page_taken(self.pid, page);
            orders.push(order);
            if orders.len() == AT_ONCE {
                // Whether it is gone we hear when we listen.
                let _ = self.agent.send_orders(&orders);
                orders.clear();
            }
        }
        let _ = self.agent.send_orders(&orders);
    }
}

impl MoveHost {
    /// A program that drops privileges does so in its own threads (setuid(2) in glibc) and does
    /// not know of the agent. The agent must not keep privileges that the program has dropped.
    ///
    /// # Errors
    /// When it is so.
    fn check_rights(&self) -> io::Result<()> {
        let ours = agent_fitness::credentials(self.pid, self.agent.tid);
        let has = |tid: &Tid| agent_fitness::credentials(self.pid, *tid) == ours;
        let mut threads = std::iter::once(&self.pid).chain(self.threads.keys());
        match threads.any(has) {
            true => Ok(()),
            false => Err(io::Error::other("the program has given up rights")),
        }
    }

    /// Learns where the threads' lists of locks are. The engine has just been told of all
    /// threads that were made until now.
    fn meet_threads(&mut self, view: &SamplerContext) {
        let changes = view.threads.changes();
        if self.met == Some(changes) {
            return;
        }
        let mut all: HashSet<Tid> = view.threads.threads_of(self.pid).into_iter().collect();
        all.remove(&self.agent.tid);
        self.threads.retain(|tid, _| all.contains(tid));
        for &tid in &all {
            if !matches!(self.threads.get(&tid), Some(Some(_))) {
                if let Ok(list) = robust_list_address(tid) {
                    self.threads.insert(tid, list);
                }
            }
        }
        let known = self.threads.values().filter(|list| list.is_some());
        self.met = (known.count() == all.len()).then_some(changes);
    }

    /// Looks at all mappings: what is open must still be fit, what is fit may be opened.
    fn scan_mappings(&mut self) -> io::Result<()> {
        let began = Instant::now();
        let all = movable_regions::read(self.pid);
        self.looks.scan_done(began);
        self.huge = movable_regions::huge_page_bytes(&all);
        let (fit, left) = movable_regions::movable(&all, self.executable);
        self.perhaps_stacks = left;
        let mut orders = Vec::new();
        let now = Instant::now();
        let is_there = |range: &Range<u64>| {
            let next = all.partition_point(|mapping| mapping.range.end <= range.start);
            all.get(next)
                .is_some_and(|m| ranges_overlap(&m.range, range))
        };
        self.open.forget_shunned(now, is_there);
        self.open.regions.retain_mut(|region| {
            region.sure = is_covered(&region.range, &fit);
            if !region.sure {
                orders.push(AgentOrder::Close {
                    address: region.range.start,
                    length: region.range.end - region.range.start,
                });
            }
            region.sure
        });
        for mapping in fit.iter().filter(|m| !m.is_watched()) {
            if !self.open.ask(&mapping.range) {
                continue;
            }
            orders.push(AgentOrder::Open {
                address: mapping.range.start,
                length: mapping.length(),
            });
        }
        let regions = &self.open.regions;
        self.needed
            .retain_open(|at| regions.iter().any(|r| r.range.contains(&at)));
        self.agent.send_orders(&orders)
    }
}

/// The page with this number among those that may be taken.
fn page_of(regions: &[MovableRegion], mut number: u64) -> Option<u64> {
    regions.iter().filter(|r| r.sure).find_map(|region| {
        let pages = (region.range.end - region.range.start) / PAGE_SIZE;
        let here = (number < pages).then(|| region.range.start + number * PAGE_SIZE);
        number = number.saturating_sub(pages);
        here
    })
}

/// Whether mappings that are fit and watched fill the range.
fn is_covered(range: &Range<u64>, fit: &[SmapsEntry]) -> bool {
    let mut at = range.start;
    for mapping in fit.iter().filter(|m| m.is_watched()) {
        if mapping.range.contains(&at) {
            at = mapping.range.end;
        }
    }
    at >= range.end
}
