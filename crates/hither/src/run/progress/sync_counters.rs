//! Counts synchronisation points of running programs by breakpoints of the processor, which
//! the kernel counts without stopping anybody and passes on to threads and forks.
//!
//! Perf's uprobes would do too, for the superuser only, but each thread that inherits one
//! registers it again, which takes the kernel tens of milliseconds per thread.
//!
//! A function gets its breakpoint once it is mapped and another mapped module imports it: there
//! are too few breakpoints for all of libgomp.
use crate::follow::proc_maps::MemoryMapping;
use crate::program::sync_points::{self, SyncPoint, SyncPoints};
use crate::run::guide::ExecImage;
use hither_profile::Nanos;
use hither_sys::perf::{InheritScope, PerfCounter};
use hither_sys::Pid;
use nix::sys::mman::ProtFlags;
use std::collections::{BTreeSet, HashMap};
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::time::Instant;

/// Calls that tell what one costs, and how often they are timed: the least counts, since
/// others may have been in the way.
const CALLS: u32 = 4;
const TRIES: u32 = 8;

pub struct SyncCounters {
    inherit: InheritScope,
    wanted: [bool; 4],
    images: HashMap<Pid, LoadedImage>,
    files: HashMap<(String, bool), Option<Rc<SyncPoints>>>,
    open: [Vec<PerfCounter>; 4],
    is_on: bool,
    /// Why a kind cannot be counted.
    refused: [Option<io::Error>; 4],
}

/// What one image of a process has mapped.
#[derive(Default)]
struct LoadedImage {
    imports: BTreeSet<String>,
    /// Points that no mapped module imports so far, and their addresses.
    idle: Vec<(SyncPoint, u64)>,
}

impl SyncCounters {
    pub fn new(wanted: [bool; 4], inherit: InheritScope) -> SyncCounters {
        SyncCounters {
            inherit,
            wanted,
            images: HashMap::new(),
            files: HashMap::new(),
            open: Default::default(),
            is_on: true,
            refused: Default::default(),
        }
    }

    /// Nanoseconds that a call takes when it is counted.
    ///
    /// # Errors
    /// Where nothing can be counted.
    pub fn cost_per_call() -> io::Result<Nanos> {
        #[inline(never)]
        extern "C" fn call(n: u32) -> u32 {
            std::hint::black_box(n)
        }
        let function: extern "C" fn(u32) -> u32 = std::hint::black_box(call);
        let counter = PerfCounter::breakpoint(0, function as usize as u64, InheritScope::Threads)?;
        let time = |_: u32| {
            let start = Instant::now();
            (0..CALLS).for_each(|n| {
                function(n);
            });
            start.elapsed() / CALLS
        };
        let each = (0..TRIES).map(time).min().unwrap_or_default();
        match counter.value()? {
            0 => Err(io::Error::other("breakpoints are not hit on this machine")),
            _ => Ok(each.as_nanos() as Nanos),
        }
    }

    pub fn image(&mut self, pid: Pid, image: &ExecImage) {
        self.images.insert(pid, LoadedImage::default());
        for mapping in &image.mappings {
            let file = mapping.file.as_ref();
            let is_program = file.is_some_and(|f| f.path == image.executable);
            self.add_mapping(pid, mapping, is_program);
        }
    }

    pub fn mapped(&mut self, pid: Pid, mapping: &MemoryMapping) {
        self.add_mapping(pid, mapping, false);
    }

    fn add_mapping(&mut self, pid: Pid, mapping: &MemoryMapping, is_program: bool) {
        let executable = mapping.prot & ProtFlags::PROT_EXEC.bits() != 0;
        let Some(file) = mapping.file.as_ref().filter(|_| executable) else {
            return;
        };
        let known = self.files.entry((file.path.clone(), is_program));
        let points = known.or_insert_with(|| {
            let path = Path::new(&file.path);
            path.is_absolute()
                .then(|| sync_points::read_sync_points(path, is_program))
                .flatten()
                .map(Rc::new)
        });
        let Some(points) = points.clone() else {
            return;
        };
        let loaded = self.images.entry(pid).or_default();
        loaded.imports.extend(points.imports.iter().cloned());
        let within = |p: &&SyncPoint| {
            let inside = p.offset.checked_sub(file.offset);
            inside.is_some_and(|i| i < mapping.length) && self.wanted[p.kind]
        };
        let here = points.points.iter().filter(within);
        let here = here.map(|p| (p.clone(), mapping.address + (p.offset - file.offset)));
        loaded.idle.extend(here);
        let imports = &loaded.imports;
        let (used, idle) = std::mem::take(&mut loaded.idle)
            .into_iter()
            .partition(|(p, _)| p.own || p.names.iter().any(|n| imports.contains(n)));
        loaded.idle = idle;
        let used: Vec<(SyncPoint, u64)> = used;
        for (point, address) in used {
            self.add_breakpoint(pid, point.kind, address);
        }
    }

    /// Counts a function in all threads that a process has, and will have.
    fn add_breakpoint(&mut self, pid: Pid, kind: usize, address: u64) {
        let threads = std::fs::read_dir(format!("/proc/{pid}/task"));
        let threads = threads.into_iter().flatten().flatten();
        let tids = threads.filter_map(|t| t.file_name().to_str()?.parse().ok());
        for tid in tids {
            match PerfCounter::breakpoint(tid, address, self.inherit) {
                Ok(counter) => {
                    let _ = counter.set_enabled(self.is_on);
                    self.open[kind].push(counter);
                }
                // The thread has exited.
                Err(e) if e.raw_os_error() == Some(nix::libc::ESRCH) => {}
                Err(e) => self.refused[kind] = Some(e),
            }
        }
    }

    /// Starts or stops counting.
    pub fn enable(&mut self, on: bool) {
        self.is_on = on;
        for counter in self.open.iter().flatten() {
            // What cannot be turned off costs time, but does no harm.
            let _ = counter.set_enabled(on);
        }
    }

    /// What was counted so far of each kind.
    pub fn values(&self) -> [Option<u64>; 4] {
        std::array::from_fn(|kind| {
            if self.refused[kind].is_some() || self.open[kind].is_empty() {
                return None;
            }
            let values = self.open[kind].iter().map(PerfCounter::value);
            values.sum::<io::Result<u64>>().ok()
        })
    }

    /// Why a kind could not be counted.
    pub fn refused(&self) -> Option<(&'static str, &io::Error)> {
        let kinds = sync_points::SYNC_KINDS.iter().zip(&self.refused);
        kinds.filter_map(|(k, e)| Some((*k, e.as_ref()?))).next()
    }
}
