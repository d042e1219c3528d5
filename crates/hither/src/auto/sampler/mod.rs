//! Causing page faults on purpose, since a page faults once and then no more. One file each,
//! and a line in [`SAMPLERS`], safest first.
mod agent;
mod move_host;
mod numa_balancing;
mod pageout;
mod write_protect;

use std::io;

use hither_profile::Nanos;

use super::address_spaces::AddressSpaces;
use super::sysctls::SysctlOverrides;
use super::taken_pages::TakenPages;
use super::thread_table::ThreadTable;
use crate::follow::proc_maps::MemoryMapping;
use hither_sys::{Pid, Tid};

/// What a sampler may know.
pub struct SamplerContext<'a> {
    /// Pages (process, address) that had better be taken than others, each once and in no
    /// order, at most as many as are wanted; the rest is for chance. A page that came back
    /// without a fault (the kernel maps sixteen of shared memory at once) is picked no more,
    /// and found again by chance only.
    pub picks: &'a [(Pid, u64)],
    pub address_spaces: &'a AddressSpaces,
    pub threads: &'a ThreadTable,
    /// Faults since the start that samplers caused.
    pub extra: u64,
}

impl<'a> SamplerContext<'a> {
    /// What may be sampled, by process: of a process with one thread nothing but what other
    /// processes have mapped too (kMAF 3.1.2): no communication goes through the rest.
    pub fn mappings(&self) -> impl Iterator<Item = (Pid, &'a MemoryMapping)> {
        let (memory, threads) = (self.address_spaces, self.threads);
        memory.processes().flat_map(move |pid| {
            let one = threads.thread_count(pid) < 2;
            let all = memory.mappings(pid).iter();
            let some = all.filter(move |m| !one || memory.is_shared(m));
            some.map(move |mapping| (pid, mapping))
        })
    }
}

/// A way to cause page faults without changing what the program sees in its memory.
pub trait FaultSampler {
    /// As `--sampler` takes it.
    fn name(&self) -> &'static str;
    /// Nanoseconds of processor time that a fault costs the program, with what it takes to
    /// cause it.
    fn cost_per_fault(&self) -> Nanos;
    /// Nanoseconds that the thread that faults stands still for it.
    fn delay_per_fault(&self) -> Nanos {
        self.cost_per_fault()
    }
    /// Processor time so far that the program lost by it however few faults are caused.
    fn fixed_cost(&self) -> Nanos {
        0
    }
    /// What is seen well enough with it, so that nothing less safe is needed for that.
    fn covers(&self) -> &'static [MemoryKind];
    /// Sees to it that about `wanted` more pages fault, and tells `taken` which. Called every 10 ms,
    /// with 0 too.
    ///
    /// # Errors
    /// When it cannot, and will not be able to later.
    fn take_pages(
        &mut self,
        wanted: u32,
        view: &SamplerContext,
        taken: &mut TakenPages,
    ) -> io::Result<()>;
    /// Whether this page of a process may be taken now.
    fn may_take(&self, at: (Pid, u64), view: &SamplerContext) -> bool;
    /// Pages that it took away so far, at most.
    fn pages_taken(&self) -> u64;
    /// Whether this is a thread of ours inside the program, whose faults are not the program's.
    fn is_own_thread(&self, _tid: Tid) -> bool {
        false
    }
    /// Threads of ours that came into the program since the last call: until then they were
    /// taken for the program's.
    fn new_own_threads(&mut self) -> Vec<(Pid, Tid)> {
        Vec::new()
    }
    /// A remark for the user about what it can and cannot do here.
    fn note(&self) -> Option<String> {
        None
    }
}

/// Memory that a sampler reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryKind {
    Private,
    Shared,
}

/// What the user allows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SamplerChoice {
    /// This one only.
    pub only: Option<String>,
    /// Settings of the whole system may be changed for the run.
    pub allow_sysctl: bool,
}

/// Makes a sampler that is to reach this memory, of processes that `move` leaves alone too where
/// that is said, or says why it does not work here.
type MakeSampler =
    fn(Option<&SysctlOverrides>, &[MemoryKind], bool) -> Result<Box<dyn FaultSampler>, String>;

/// All of them, safest first, as `--sampler` takes them.
pub const SAMPLERS: &[(&str, MakeSampler)] = &[
    ("numa-balancing", |sysctls, _, _| {
        Ok(Box::new(numa_balancing::NumaBalancingSampler::new(
            sysctls,
        )?))
    }),
    ("move", |_, _, _| Ok(Box::new(move_host::sampler()?))),
    ("pageout", |_, _, _| {
        Ok(Box::new(pageout::PageoutSampler::new()?))
    }),
    ("write-protect", |_, kinds, beside_move| {
        let sampler = write_protect::sampler(kinds, beside_move)?;
        Ok(Box::new(sampler))
    }),
];

/// Samplers to use, safest first, each only for what the safer ones do not reach; and a
/// sentence for each that does not work here.
#[must_use]
pub fn choose_samplers(
    choice: &SamplerChoice,
    sysctls: Option<&SysctlOverrides>,
) -> (Vec<Box<dyn FaultSampler>>, Vec<String>) {
    let mut works: Vec<Box<dyn FaultSampler>> = Vec::new();
    let mut reasons = Vec::new();
    for &(name, make) in SAMPLERS {
        if choice.only.as_deref().is_some_and(|only| only != name) {
            continue;
        }
        let reached = |kind: &MemoryKind| works.iter().any(|s| s.covers().contains(kind));
        let mut unreached = [MemoryKind::Private, MemoryKind::Shared].to_vec();
        unreached.retain(|kind| !reached(kind));
        // Others' programs have fewer rights than `move` takes.
        let beside_move = name == "write-protect" && works.iter().any(|s| s.name() == "move");
        if unreached.is_empty() && !beside_move {
            continue;
        }
        match make(sysctls, &unreached, beside_move) {
            Ok(sampler)
                if choice.only.is_none() && !beside_move && adds_nothing(&*sampler, &works) => {}
            Ok(sampler) => works.push(sampler),
            Err(reason) => reasons.push(format!("{name}: {reason}")),
        }
    }
    (works, reasons)
}

/// How many of the faults on known pages samplers have caused: no more than the pages that
/// they took, for programs give pages back and touch them again.
#[must_use]
pub fn faults_caused(samplers: &[Box<dyn FaultSampler>], known: u64) -> u64 {
    let taken: u64 = samplers.iter().map(|sampler| sampler.pages_taken()).sum();
    taken.min(known)
}

/// Keeps the kernel from moving pages as we do: a remark for the user where that cannot be.
#[must_use]
pub fn disable_kernel_migration(
    samplers: &[Box<dyn FaultSampler>],
    sysctls: Option<&SysctlOverrides>,
) -> Option<String> {
    let needed = samplers.iter().any(|s| s.name() == "numa-balancing");
    (!needed).then(|| numa_balancing::hold_off(sysctls))?
}

/// Whether the kernel takes pages of all programs, by itself or for a sampler.
#[must_use]
pub fn kernel_takes_pages() -> bool {
    numa_balancing::is_active()
}

/// Whether safer ones reach all that it does.
fn adds_nothing(sampler: &dyn FaultSampler, safer: &[Box<dyn FaultSampler>]) -> bool {
    let reached = |kind| safer.iter().any(|s| s.covers().contains(kind));
    !sampler.covers().is_empty() && sampler.covers().iter().all(reached)
}
