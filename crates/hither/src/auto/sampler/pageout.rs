//! Shared memory is taken out of page tables by the advice that it is not needed for now
//! (MADV_PAGEOUT), from outside. It is there again at the next access, by a minor fault, as
//! long as there is no swap space that the kernel could write it to: with swap, this sampler
//! stays away. A page that several processes have mapped at the time is left alone by the
//! kernel, and so are those that it has not listed yet.
use std::collections::hash_map::{Entry, HashMap};
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use hither_model::rng::Rng;
use hither_profile::{Nanos, PAGE_SIZE};
use hither_sys::proc_text::has_swap;
use hither_sys::{madvise, numa, process};
use nix::libc;

use super::agent::movable_regions::is_memory;
use super::{FaultSampler, MemoryKind, SamplerContext};
use crate::auto::taken_pages::TakenPages;
use crate::follow::proc_maps::MemoryMapping;
use hither_sys::Pid;

/// The advice takes 0.6 to 0.9 us, the fault that follows 0.5 to 1.
const FAULT_COST: Nanos = 2000;
/// Between two times that pages are listed, which bothers all processors.
const LISTED: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub struct PageoutSampler {
    processes: HashMap<Pid, OwnedFd>,
    random: Rng,
    taken: u64,
    listed: Option<Instant>,
}

impl PageoutSampler {
    pub fn new() -> Result<PageoutSampler, String> {
        let swaps = fs::read_to_string("/proc/swaps").unwrap_or_default();
        if has_swap(&swaps) {
            return Err("there is swap space, to which shared memory would be written".to_owned());
        }
        match madvise::can_page_out() {
            Ok(()) => Ok(PageoutSampler {
                processes: HashMap::new(),
                random: Rng::new(0),
                taken: 0,
                listed: None,
            }),
            Err(e) if e.raw_os_error() == Some(libc::ENOSYS) => {
                Err("this kernel has no process_madvise (Linux 5.10)".to_owned())
            }
            Err(e) => Err(format!(
                "other processes may not be advised (process_madvise: {e}); be root, or in docker add --cap-add SYS_NICE"
            )),
        }
    }

    /// A random sample of pages, each once.
    fn sample_pages(&mut self, wanted: u64, mappings: &[(Pid, &MemoryMapping)]) -> Vec<(Pid, u64)> {
        let total: u64 = mappings.iter().map(|(_, m)| m.length / PAGE_SIZE).sum();
        let mut pages: Vec<(Pid, u64)> = (0..wanted.min(total))
            .filter_map(|_| {
                let mut at = self.random.next_u64() % total;
                mappings.iter().find_map(|(pid, mapping)| {
                    let pages = mapping.length / PAGE_SIZE;
                    let here = (at < pages).then_some((*pid, mapping.address + at * PAGE_SIZE));
                    at = at.saturating_sub(pages);
                    here
                })
            })
            .collect();
        pages.sort_unstable();
        pages.dedup();
        pages
    }
}

impl FaultSampler for PageoutSampler {
    fn name(&self) -> &'static str {
        "pageout"
    }

    fn cost_per_fault(&self) -> Nanos {
        FAULT_COST
    }

    fn covers(&self) -> &'static [MemoryKind] {
        &[MemoryKind::Shared]
    }

    fn may_take(&self, (pid, at): (Pid, u64), view: &SamplerContext) -> bool {
        let mappings = view.address_spaces.mappings(pid);
        let next = mappings.partition_point(|m| m.address <= at);
        let mapping = mappings[..next].last();
        mapping.is_some_and(|m| at - m.address < m.length && is_shared_memory(m))
    }

    fn pages_taken(&self) -> u64 {
        self.taken
    }

    fn take_pages(
        &mut self,
        wanted: u32,
        view: &SamplerContext,
        taken_pages: &mut TakenPages,
    ) -> io::Result<()> {
        if wanted == 0 {
            return Ok(());
        }
        let all = view.mappings().filter(|(_, m)| is_shared_memory(m));
        let all: Vec<(Pid, &MemoryMapping)> = all.collect();
        if all.is_empty() {
            return Ok(());
        }
        let can = |at: &&(Pid, u64)| {
            let mut on = all.iter();
            on.any(|(pid, m)| *pid == at.0 && at.1.wrapping_sub(m.address) < m.length)
        };
        let mut pages: Vec<(Pid, u64)> = view.picks.iter().filter(can).copied().collect();
        pages.extend(self.sample_pages(u64::from(wanted) - pages.len() as u64, &all));
        pages.sort_unstable();
        pages.dedup();
        if self.listed.is_none_or(|at| at.elapsed() >= LISTED) && !pages.is_empty() {
            self.listed = Some(Instant::now());
            // Without it some pages are never seen.
            let _ = numa::drain_lru_lists();
        }
        let (mut taken, mut refused) = (false, None);
        for of in pages.chunk_by(|a, b| a.0 == b.0) {
            let pid = of[0].0;
            let process = match self.processes.entry(pid) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => match process::pidfd(nix::unistd::Pid::from_raw(pid)) {
                    Ok(fd) if view.threads.is_known(pid) => new.insert(fd),
                    _ => continue,
                },
            };
            let process = process.as_fd();
            let ranges: Vec<(u64, u64)> = of.iter().map(|&(_, at)| (at, PAGE_SIZE)).collect();
            for some in ranges.chunks(madvise::MAX_RANGES) {
                match madvise::page_out(process, some) {
                    Ok(bytes) => {
                        taken = true;
                        for &(address, _) in some {
                            taken_pages.page_taken(pid, address);
                        }
                        self.taken += bytes / PAGE_SIZE;
                    }
                    // It ended, or has changed its mappings or locked them.
                    Err(error) => {
                        self.processes.remove(&pid);
                        if error.raw_os_error() == Some(libc::EPERM) {
                            refused = Some(error);
                        }
                        break;
                    }
                }
            }
        }
        match refused {
            Some(error) if !taken => Err(error),
            _ => Ok(()),
        }
    }
}

/// Memory without a file behind it that its pages could be written to and dropped for.
fn is_shared_memory(mapping: &MemoryMapping) -> bool {
    let writable = mapping.prot & libc::PROT_WRITE != 0;
    let shared = mapping.flags & libc::MAP_SHARED != 0;
    let path = mapping.file.as_ref().map_or("", |file| &file.path);
    writable && shared && is_memory(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::follow::proc_maps::MappedFile;

    fn mapping(path: &str, address: u64, pages: u64, flags: i32) -> MemoryMapping {
        MemoryMapping {
            address,
            length: pages * PAGE_SIZE,
            prot: libc::PROT_READ | libc::PROT_WRITE,
            flags,
            file: Some(MappedFile {
                path: path.to_owned(),
                ..MappedFile::default()
            }),
        }
    }

    #[test]
    fn only_memory_without_a_file_is_taken() {
        let check = |path, flags, expected| {
            assert_eq!(is_shared_memory(&mapping(path, 0, 1, flags)), expected);
        };
        check("/dev/zero (deleted)", libc::MAP_SHARED, true);
        check("/SYSV00000000 (deleted)", libc::MAP_SHARED, true);
        check("/memfd:pool (deleted)", libc::MAP_SHARED, true);
        check("/dev/shm/ring", libc::MAP_SHARED, true);
        check("/dev/shm/ring", libc::MAP_PRIVATE, false);
        check("/home/me/data", libc::MAP_SHARED, false);
    }

    #[test]
    fn samples_lie_in_the_mappings_and_reach_all_of_them() {
        let mut sampler = PageoutSampler {
            processes: HashMap::new(),
            random: Rng::new(1),
            taken: 0,
            listed: None,
        };
        let (a, b) = (
            mapping("/memfd:a", 0x1000, 3, libc::MAP_SHARED),
            mapping("/memfd:b", 0x9000, 2, libc::MAP_SHARED),
        );
        let all = [(1, &a), (2, &b)];
        let mut seen: Vec<(Pid, u64)> = (0..100)
            .flat_map(|_| sampler.sample_pages(4, &all))
            .collect();
        seen.sort_unstable();
        seen.dedup();
        let expected = [
            (1, 0x1000),
            (1, 0x2000),
            (1, 0x3000),
            (2, 0x9000),
            (2, 0xa000),
        ];
        assert_eq!(seen, expected);
        assert_eq!(sampler.sample_pages(4, &[]), []);
    }
}
