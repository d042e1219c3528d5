//! What is kept of a run that is observed while it goes: a [`Profile`] as `hither trace`
//! writes one, but of page faults instead of accesses, and every placement with its time.
//!
//! ```text
//!  threads, processes --> lives ---.
//!  page faults ---------> pages ----+--> build --> Profile
//!  sharing events ------> slices --'
//!  mappings ------------> areas --'
//! ```
//! Memory is bounded: of pages by [`MAX_PAGES`], of what happened over time by merging
//! slices. What found no room is counted, and told as a limit of the profile.
mod build;
mod mapped_areas;
mod slice_recorder;
mod task_history;

#[cfg(test)]
mod tests;

use foldhash::{HashMap, HashMapExt};
use hither_model::locality::is_remote;
use hither_profile::{Nanos, NodeIx, ProcessIx, SliceIx, ThreadIx, PAGE_SIZE};
use hither_sys::faults::PageFault;

use super::address_spaces::AddressSpaces;
use super::analysis::{MemoryObject, ObjectPage, SharerId};
use hither_sys::{Node, Pid, Tid};
use mapped_areas::MappedAreas;
use slice_recorder::SliceRecorder;
use task_history::TaskHistory;

/// Pages that are counted separately: 8 GiB of them.
const MAX_PAGES: usize = 2 << 20;
/// Moves of pages that are kept.
const MAX_MOVES: usize = 1 << 20;

/// Where the pages of an object are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ObjectOrigin {
    /// Numbered by their addresses in this process.
    Private(ProcessIx),
    /// Numbered by their offsets in this file (device and inode).
    Shared((u64, u64)),
}

/// A page that was touched.
#[derive(Clone, Copy, Debug)]
struct TouchedPage {
    page: ObjectPage,
    first: ThreadIx,
    slice: SliceIx,
    /// Where it lies, as far as is known.
    home: NodeIx,
}

/// Everything that is kept.
#[derive(Debug)]
pub struct ProfileBuilder {
    tasks: TaskHistory,
    areas: MappedAreas,
    slices: SliceRecorder,
    spaces: HashMap<MemoryObject, ObjectOrigin>,
    numbers: HashMap<ObjectPage, u32>,
    pages: Vec<TouchedPage>,
    /// The thread that a sharer stands for.
    sharers: Vec<Option<ThreadIx>>,
    thread_moves: Vec<(Nanos, ThreadIx, u32, Node)>,
    page_moves: Vec<(Nanos, u32, Node)>,
    /// Faults on pages, and moves of pages, that found no room.
    lost_faults: u64,
    lost_moves: u64,
    remote_faults: RemoteFaultCounts,
}

/// Faults on pages that were known, and those of them from a node where the page is not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemoteFaultCounts {
    pub known: u64,
    pub remote: u64,
}

impl ProfileBuilder {
    /// Bytes of the pages that faulted.
    #[must_use]
    pub fn memory_seen(&self) -> u64 {
        self.pages.len() as u64 * PAGE_SIZE
    }

    /// A run that begins at `zero`, by the clock of the observer.
    #[must_use]
    pub fn new(zero: Nanos) -> ProfileBuilder {
        ProfileBuilder {
            tasks: TaskHistory::new(zero),
            areas: MappedAreas::default(),
            slices: SliceRecorder::default(),
            spaces: HashMap::new(),
            numbers: HashMap::new(),
            pages: Vec::new(),
            sharers: Vec::new(),
            thread_moves: Vec::new(),
            page_moves: Vec::new(),
            lost_faults: 0,
            lost_moves: 0,
            remote_faults: RemoteFaultCounts::default(),
        }
    }

    /// A thread or process was made. The first thread of the role that it takes in its process.
    pub fn started(&mut self, at: Nanos, made: (Pid, Tid), by: (Pid, Tid)) -> Option<ThreadIx> {
        self.tasks.started(at, made, by)
    }

    /// The process runs another program.
    pub fn execed(&mut self, at: Nanos, pid: Pid) {
        self.tasks.execed(at, pid);
    }

    /// A thread has a name now, with zeros behind it.
    pub fn named(&mut self, tid: Tid, name: [u8; 16]) {
        let name: Vec<u8> = name.into_iter().take_while(|b| *b != 0).collect();
        self.tasks.named(tid, &String::from_utf8_lossy(&name));
    }

    pub fn ended(&mut self, at: Nanos, tid: Tid) {
        self.tasks.ended(at, tid);
    }

    /// A thread that ended, or is taken for ended, was ours, not the program's.
    pub fn disown(&mut self, tid: Tid) {
        self.tasks.mark_own_thread(tid);
    }

    /// A page fault of a thread, on a processor of `node`.
    pub fn access(
        &mut self,
        at: Nanos,
        fault: &PageFault,
        who: SharerId,
        page: ObjectPage,
        node: NodeIx,
    ) {
        let Some(thread) = self.tasks.find_or_add_thread(at, fault.pid, fault.tid) else {
            self.lost_faults += 1;
            return;
        };
        if who.at() >= self.sharers.len() {
            self.sharers.resize(who.at() + 1, None);
        }
        self.sharers[who.at()] = Some(thread);
        let slice = self
            .slices
            .at(self.tasks.since_start(at), self.tasks.live_threads());
        let number = match self.numbers.get(&page) {
            Some(&number) => {
                self.remote_faults.known += 1;
                let home = self.pages[number as usize].home;
                self.remote_faults.remote += u64::from(is_remote(node, home));
                number
            }
            None if self.pages.len() < MAX_PAGES => {
                let number = self.pages.len() as u32;
                self.numbers.insert(page, number);
                self.pages.push(TouchedPage {
                    page,
                    first: thread,
                    slice,
                    home: node,
                });
                number
            }
            None => {
                self.lost_faults += 1;
                return;
            }
        };
        self.slices.access(thread, number);
        self.tasks.count_fault(thread);
    }

    /// Whose pages these are, at the first fault on any of them.
    pub fn belongs(&mut self, fault: &PageFault, page: ObjectPage, memory: &AddressSpaces) {
        if self.spaces.contains_key(&page.object) {
            return;
        }
        let space = match memory.file_of(page.object) {
            Some(file) => ObjectOrigin::Shared(file),
            None => match self.tasks.process(fault.pid) {
                Some(process) => ObjectOrigin::Private(process),
                None => return,
            },
        };
        self.spaces.insert(page.object, space);
    }

    /// Two threads were seen to share.
    pub fn shared(&mut self, a: SharerId, b: SharerId) {
        let thread = |sharer: SharerId| self.sharers.get(sharer.at()).copied().flatten();
        if let (Some(a), Some(b)) = (thread(a), thread(b)) {
            self.slices.shared(a, b);
        }
    }

    /// Takes in the mappings of a process, if they were read again.
    pub fn mapped(&mut self, pid: Pid, memory: &AddressSpaces) {
        if let Some(process) = self.tasks.process(pid) {
            self.areas
                .update_mappings(process, memory.read_at(pid), memory.mappings(pid));
        }
    }

    pub fn thread_pinned(&mut self, at: Nanos, tid: Tid, cpu: u32, node: Node) {
        if let Some(thread) = self.tasks.find_thread(tid) {
            let at = self.tasks.since_start(at);
            self.thread_moves.push((at, thread, cpu, node));
        }
    }

    /// A page lies on a node now.
    pub fn moved(&mut self, at: Nanos, page: ObjectPage, home: NodeIx, node: Node) {
        let Some(&number) = self.numbers.get(&page) else {
            return;
        };
        self.pages[number as usize].home = home;
        if self.page_moves.len() < MAX_MOVES {
            self.page_moves
                .push((self.tasks.since_start(at), number, node));
        } else {
            self.lost_moves += 1;
        }
    }

    /// The name of a thread that lives.
    #[must_use]
    pub fn name(&self, tid: Tid) -> &str {
        let thread = self.tasks.find_thread(tid);
        thread.map_or("", |t| self.tasks.threads[t.at()].name.as_str())
    }

    #[must_use]
    pub fn remote_faults(&self) -> RemoteFaultCounts {
        self.remote_faults
    }
}
