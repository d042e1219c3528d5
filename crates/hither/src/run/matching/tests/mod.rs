//! What a program does, and what is to be bound for it, worked by hand. Pages are numbered
//! by address / 4096; node n of the placement is the kernel's node 10 + n.
mod forks;
mod memory;
mod names;
mod nearest;
mod phases;
mod processes;
mod properties;
mod runs;
mod shared;
mod threads;

use super::ProfileGuide;
use crate::follow::proc_maps::{MappedFile, MemoryMapping};
use crate::run::guide::{ExecImage, PageBind, PlacementGuide};
use hither_profile::{
    is_in_memory, MachineIdentity, NodeIx, PageRun, PlacedPhase, Placement, ProcessIdentity,
    ProcessIx, PuIx, RegionIdentity, RegionKind, RegionPlacement, ThreadIdentity, ThreadIx,
    ThreadPlace,
};
use hither_sys::{Pid, Tid};
use nix::libc::{MAP_ANONYMOUS, MAP_PRIVATE, MAP_SHARED, PROT_READ, PROT_WRITE};

/// The pid of the first program.
pub const FIRST: Pid = 100;
const PAGE: u64 = 4096;

/// First page, pages, node: as in a placement, and as asked for.
pub type PageTriple = (u64, u64, u32);

/// A placement in the making.
#[derive(Clone, Default)]
pub struct TestPlacement(pub Placement);

impl TestPlacement {
    pub fn new() -> TestPlacement {
        let machine = MachineIdentity {
            units: 64,
            nodes: vec![10, 11, 12, 13],
            ..MachineIdentity::default()
        };
        TestPlacement(Placement {
            machine,
            page_bytes: PAGE,
            phases: vec![PlacedPhase::default()],
            ..Placement::default()
        })
    }

    /// One process `/bin/app` with one thread, on unit 0.
    pub fn app() -> TestPlacement {
        let mut placed = TestPlacement::new();
        placed.process("/bin/app", None, None);
        placed
    }

    /// A process and its first thread.
    pub fn process(&mut self, path: &str, parent: Option<u32>, rank: Option<u32>) -> u32 {
        self.0.processes.push(ProcessIdentity {
            executable: path.into(),
            parent: parent.map(ProcessIx),
            rank,
        });
        let process = self.0.processes.len() as u32 - 1;
        self.thread(process, None);
        process
    }

    /// A thread, on the unit of its number.
    pub fn thread(&mut self, process: u32, creator: Option<u32>) -> u32 {
        let thread = self.0.threads.len() as u32;
        let creator = creator.map(ThreadIx);
        let of_same = |t: &&ThreadIdentity| t.process.0 == process && t.creator == creator;
        let order = self.0.threads.iter().filter(of_same).count() as u32;
        self.0.threads.push(ThreadIdentity {
            process: ProcessIx(process),
            creator,
            order,
            ..ThreadIdentity::default()
        });
        let place = ThreadPlace(ThreadIx(thread), PuIx(thread), thread, NodeIx(0));
        self.0.phases[0].threads.push(place);
        thread
    }

    pub fn region(&mut self, region: RegionIdentity, runs: &[PageTriple]) -> u32 {
        self.0.regions.push(region);
        let region = self.0.regions.len() as u32 - 1;
        self.places(0, region, runs);
        region
    }

    pub fn places(&mut self, phase: usize, region: u32, runs: &[PageTriple]) {
        let run = |r: &PageTriple| PageRun(r.0, r.1, NodeIx(r.2));
        let runs: Vec<PageRun> = runs.iter().map(run).collect();
        if !runs.is_empty() {
            let phases = &mut self.0.phases;
            phases[phase].pages.push(RegionPlacement { region, runs });
        }
    }

    pub fn recogniser(self) -> ProfileGuide {
        ProfileGuide::new(self.0)
    }
}

/// A region of process 0.
pub fn region(kind: RegionKind, thread: Option<u32>, ordinal: u32, pages: u64) -> RegionIdentity {
    RegionIdentity {
        kind,
        thread: thread.map(ThreadIx),
        ordinal,
        size: pages * PAGE,
        ..RegionIdentity::default()
    }
}

/// The `ordinal`-th mapping of `pages` pages by `thread` of process 0.
pub fn mmap(thread: u32, pages: u64, ordinal: u32) -> RegionIdentity {
    region(RegionKind::Mmap, Some(thread), ordinal, pages)
}

pub fn file(path: &str, offset: u64) -> Option<MappedFile> {
    Some(MappedFile {
        path: path.into(),
        in_memory: is_in_memory(path),
        dev: 1,
        ino: path.bytes().map(u64::from).sum(),
        offset: offset * PAGE,
    })
}

/// A private mapping, readable and writable.
pub fn private(page: u64, pages: u64) -> MemoryMapping {
    MemoryMapping {
        address: page * PAGE,
        length: pages * PAGE,
        prot: PROT_READ | PROT_WRITE,
        flags: MAP_PRIVATE | MAP_ANONYMOUS,
        file: None,
    }
}

/// Memory that processes share, of a file or nameless.
pub fn shared(page: u64, pages: u64, path: &str) -> MemoryMapping {
    let anonymous = if path.is_empty() { MAP_ANONYMOUS } else { 0 };
    MemoryMapping {
        flags: MAP_SHARED | anonymous,
        file: file(path, 0).filter(|_| !path.is_empty()),
        ..private(page, pages)
    }
}

/// A part of a file, mapped privately.
pub fn segment(page: u64, pages: u64, path: &str, offset: u64, prot: i32) -> MemoryMapping {
    MemoryMapping {
        prot,
        flags: MAP_PRIVATE,
        file: file(path, offset),
        ..private(page, pages)
    }
}

pub fn image(path: &str) -> ExecImage {
    ExecImage {
        executable: path.into(),
        ..ExecImage::default()
    }
}

/// What is asked for, in pages and the placement's nodes.
pub fn pages(binds: &[PageBind]) -> Vec<PageTriple> {
    let run = |b: &PageBind| (b.start / PAGE, b.length / PAGE, b.node.0 - 10);
    binds.iter().map(run).collect()
}

/// What a program does.
#[derive(Clone, Debug)]
pub enum ProgramEvent {
    Start(&'static str),
    Thread(Tid, Tid, u64),
    Map(Tid, MemoryMapping),
    /// First page, pages.
    Unmap(Tid, u64, u64),
    Remap(Tid, (u64, u64), (u64, u64)),
    /// The page at which the heap ends.
    Brk(Tid, u64),
    Fork(Tid, Pid),
}

pub fn apply(r: &mut ProfileGuide, event: &ProgramEvent) -> Vec<PageTriple> {
    let bytes = |(page, count): (u64, u64)| (page * PAGE, count * PAGE);
    let binds = match event.clone() {
        ProgramEvent::Start(path) => r.program_started(FIRST, &image(path)).binds,
        ProgramEvent::Thread(creator, tid, stack) => {
            r.thread_created(creator, tid, stack * PAGE).binds
        }
        ProgramEvent::Map(tid, mapping) => r.mapped(tid, &mapping),
        ProgramEvent::Unmap(tid, page, count) => r.unmapped(tid, page * PAGE, count * PAGE),
        ProgramEvent::Remap(tid, old, new) => r.remapped(tid, bytes(old), bytes(new)),
        ProgramEvent::Brk(tid, end) => r.heap_moved(tid, end * PAGE),
        ProgramEvent::Fork(creator, pid) => r.process_forked(creator, pid, false).binds,
    };
    pages(&binds)
}

/// Runs through events, each with what is to be bound for it.
#[track_caller]
pub fn check(placed: TestPlacement, events: &[(ProgramEvent, &[PageTriple])]) -> ProfileGuide {
    let mut recogniser = placed.recogniser();
    for (at, (event, expected)) in events.iter().enumerate() {
        let asked = apply(&mut recogniser, event);
        assert_eq!(asked, *expected, "event {at}: {event:?}");
    }
    recogniser
}

/// Names of what was found in the first process, with what differs from the profile.
pub fn found(recogniser: &ProfileGuide, pid: Pid) -> Vec<(String, bool, Vec<PageTriple>)> {
    let found = recogniser.recognised_regions(pid).into_iter();
    found
        .map(|f| (f.name, f.nearest, pages(&f.binds)))
        .collect()
}
