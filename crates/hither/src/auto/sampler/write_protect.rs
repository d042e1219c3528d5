//! Pages are protected against writing, and the kernel lifts that at the next write: no thread
//! waits, nothing is copied, and the kernel lifts all when hither ends. Reads are not seen,
//! hence the last resort: but any user may do it to their own programs.
//!
//! The userfaultfd that it takes can be made from inside only: an agent makes it, as that of
//! the sampler `move` does, and leaves when hither has a copy.
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

use hither_model::rng::Rng;
use hither_profile::{Nanos, PAGE_SIZE};
use hither_sys::{inject, probe, userfaultfd};
use nix::libc;

use super::agent::agent_fitness;
use super::agent::agent_fitness::AgentRefusal;
use super::agent::agent_hosts::{has_threads, AgentHost, AgentHosts, AgentWork, ScanThrottle};
use super::agent::connection::{can_enter, AgentConnection};
use super::agent::movable_regions;
use super::agent::protocol::AgentPurpose;
use super::{MemoryKind, SamplerContext};
use crate::auto::taken_pages::TakenPages;
use hither_sys::{Pid, Tid};

/// Protecting a page takes 0.3 to 0.4 us, the fault that follows 0.6 to 1.2.
const FAULT_COST: Nanos = 1500;
/// Pages at a time: the budget is kept over longer times than that.
const MAX_BATCH: u32 = 256;

/// The sampler for memory of these kinds, or why it does not work here; private memory of processes only
/// that may not be entered by `move`, if that is used as well.
pub fn sampler(
    kinds: &[MemoryKind],
    beside_move: bool,
) -> Result<AgentHosts<WriteProtectHost>, String> {
    is_possible()?;
    let has = |kind| kinds.contains(&kind);
    Ok(AgentHosts::new(ProtectCoverage {
        private: has(MemoryKind::Private) || beside_move,
        shared: has(MemoryKind::Shared),
        beside_move,
    }))
}

/// Whether this kernel and this user can protect pages.
fn is_possible() -> Result<(), String> {
    let features = probe::userfaultfd(true).map_err(|e| {
        format!(
            "userfaultfd is not allowed here ({e}); in docker: --security-opt seccomp=unconfined"
        )
    })?;
    if features & probe::UFFD_FEATURE_WP_ASYNC == 0 || inject::supports_pidfd_thread().is_err() {
        return Err("the kernel cannot protect pages of others (Linux 6.9)".to_owned());
    }
    can_enter()
}

/// What memory it is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProtectCoverage {
    private: bool,
    shared: bool,
    /// Not the private memory of processes that the sampler `move` enters.
    beside_move: bool,
}

impl ProtectCoverage {
    fn private_of(self, pid: Pid) -> bool {
        let moves = || self.beside_move && agent_fitness::may_watch_the_kernel(pid);
        self.private && has_threads(pid) && !moves()
    }
}

/// A process whose pages can be protected.
#[derive(Debug)]
pub struct WriteProtectHost {
    pid: Pid,
    coverage: ProtectCoverage,
    /// Was there.
    agent: Tid,
    faults: OwnedFd,
    regions: Vec<Range<u64>>,
    taken: u64,
    huge: u64,
    looks: ScanThrottle,
}

impl AgentHost for WriteProtectHost {
    const PURPOSE: AgentPurpose = AgentPurpose::Lends;
    const SAMPLER: &'static str = "write-protect";
    const COVERS: &'static [MemoryKind] = &[MemoryKind::Private, MemoryKind::Shared];
    const REMARK: Option<&'static str> =
        Some("sampler write-protect sees who writes, not who reads");
    type Coverage = ProtectCoverage;

    fn cost_per_fault(_: u64, _: Nanos) -> Nanos {
        FAULT_COST
    }

    fn is_worth_it(pid: Pid, coverage: ProtectCoverage, view: &SamplerContext) -> bool {
        let shared = |m| view.address_spaces.is_shared(m);
        coverage.private_of(pid)
            || coverage.shared && view.address_spaces.mappings(pid).iter().any(shared)
    }

    fn is_fit(pid: Pid) -> Result<(), AgentRefusal> {
        agent_fitness::is_undisturbed(pid)
    }

    fn connect(pid: Pid, agent: Tid, coverage: ProtectCoverage) -> io::Result<WriteProtectHost> {
        Ok(WriteProtectHost {
            pid,
            coverage,
            agent,
            faults: AgentConnection::connect(pid, agent)?.lend_userfaultfd()?,
            regions: Vec::new(),
            taken: 0,
            huge: 0,
            looks: ScanThrottle::default(),
        })
    }

    fn look_after(&mut self, _: &SamplerContext, hosts: Option<u32>) -> io::Result<()> {
        let began = Instant::now();
        if !hosts.is_some_and(|hosts| self.looks.are_due(began, hosts)) {
            return Ok(());
        }
        let all = movable_regions::read(self.pid);
        self.huge = movable_regions::huge_page_bytes(&all);
        let private = self.coverage.private_of(self.pid);
        let fit = all
            .iter()
            .filter(|m| m.is_protectable(private, self.coverage.shared));
        self.regions.clear();
        for mapping in fit {
            let range = &mapping.range;
            // At every scan: a new mapping at the same place is not registered.
            match userfaultfd::register_range(self.faults.as_fd(), (range.start, mapping.length()))
            {
                Ok(()) => self.regions.push(range.clone()),
                Err(error) if is_gone(&error) => return Err(error),
                Err(_) => {}
            }
        }
        self.looks.scan_done(began);
        Ok(())
    }

    fn agent_tid(&self) -> Tid {
        self.agent
    }

    fn takable_pages(&self) -> u64 {
        let bytes = self.regions.iter().map(|range| range.end - range.start);
        bytes.sum::<u64>() / PAGE_SIZE
    }

    fn may_take(&self, page: u64) -> bool {
        self.regions.iter().any(|range| range.contains(&page))
    }

    fn work(&self) -> AgentWork {
        AgentWork {
            pages: self.taken,
            ..AgentWork::default()
        }
    }

    fn huge_bytes(&self) -> u64 {
        self.huge
    }

    fn take_pages(
        &mut self,
        wanted: u32,
        picks: &[u64],
        random: &mut Rng,
        taken_pages: &mut TakenPages,
    ) {
        let total = self.takable_pages();
        let mut picks = picks.iter().copied();
        let mut taken = 0;
        for _ in 0..wanted.min(MAX_BATCH) {
            let page = picks
                .next()
                .or_else(|| self.nth_page(random.next_u64() % total));
            let Some(page) = page else { break };
            if userfaultfd::write_protect(self.faults.as_fd(), (page, PAGE_SIZE)).is_ok() {
                taken += 1;
                taken_pages.page_taken(self.pid, page);
            }
        }
        self.taken += taken;
    }
}

impl WriteProtectHost {
    /// The page with this number among all.
    fn nth_page(&self, mut number: u64) -> Option<u64> {
        self.regions.iter().find_map(|range| {
            let pages = (range.end - range.start) / PAGE_SIZE;
            let here = (number < pages).then(|| range.start + number * PAGE_SIZE);
            number = number.saturating_sub(pages);
            here
        })
    }
}

/// The process ended, or runs another program.
fn is_gone(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ESRCH)
}
