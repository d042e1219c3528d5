//! Which page an address is, the same for all threads that can access it: private memory belongs to a process
//! as long as it runs one program; memory that is mapped shared is the same object wherever
//! it is mapped (kMAF keys its table by physical addresses for that, section 3.1.1).
use hither_profile::PAGE_SIZE;
use std::collections::HashSet;
use std::time::{Duration, Instant};

use foldhash::HashMap;
use nix::libc;

use super::analysis::{MemoryObject, ObjectPage};
use crate::follow::cpu_time::thread_time;
use crate::follow::proc_maps;
use crate::follow::proc_maps::MemoryMapping;
use hither_sys::Pid;

/// Between two looks at the mappings of a process, when an address is in none that is known
/// and when all is well.
const SOON: Duration = Duration::from_millis(100);
const LATER: Duration = Duration::from_secs(1);
/// And this many times what the last look took, which is much where there are thousands of mappings.
const REST: u32 = 100;

/// The address spaces of all processes.
#[derive(Debug, Default)]
pub struct AddressSpaces {
    spaces: HashMap<Pid, AddressSpace>,
    /// By device and inode.
    shared: HashMap<(u64, u64), MemoryObject>,
    next: u32,
    gone: Vec<MemoryObject>,
    /// In how many processes each of them is mapped.
    users: HashMap<(u64, u64), usize>,
}

#[derive(Debug)]
struct AddressSpace {
    private: MemoryObject,
    mappings: Vec<MemoryMapping>,
    /// When they were read, and the processor time that it took.
    read: Instant,
    took: Duration,
    /// An address was in none of them.
    grown: bool,
}

impl AddressSpace {
    /// Whether it is to be read again, `after` that time at the soonest.
    fn is_due(&self, now: Instant, after: Duration) -> bool {
        now.saturating_duration_since(self.read) >= after.max(self.took * REST)
    }

    fn mapping(&self, address: u64) -> Option<&MemoryMapping> {
        let next = self.mappings.partition_point(|m| m.address <= address);
        let mapping = self.mappings.get(next.checked_sub(1)?)?;
        (address - mapping.address < mapping.length).then_some(mapping)
    }
}

impl AddressSpaces {
    /// The page at an address of a process; `None` for code, which all threads read
    /// without communicating.
    pub fn page_at(&mut self, pid: Pid, address: u64) -> Option<ObjectPage> {
        self.refresh_if_due(pid, address);
        let space = self.spaces.get(&pid)?;
        let mapping = space.mapping(address);
        if mapping.is_some_and(|m| m.prot & libc::PROT_EXEC != 0) {
            return None;
        }
        let private = ObjectPage {
            object: space.private,
            number: address / PAGE_SIZE,
        };
        let Some((mapping, key)) = mapping.and_then(|m| Some((m, shared_key(m)?))) else {
            return Some(private);
        };
        let offset = mapping.file.as_ref().map_or(0, |file| file.offset);
        let number = (offset + address - mapping.address) / PAGE_SIZE;
        let object = match self.shared.get(&key) {
            Some(&object) => object,
            None => {
                let object = self.new_object();
                self.shared.insert(key, object);
                object
            }
        };
        Some(ObjectPage { object, number })
    }

    /// What is mapped in a process, in order of addresses, as far as is known.
    #[must_use]
    pub fn mappings(&self, pid: Pid) -> &[MemoryMapping] {
        self.spaces.get(&pid).map_or(&[], |space| &space.mappings)
    }

    /// When that was read.
    #[must_use]
    pub fn read_at(&self, pid: Pid) -> Option<Instant> {
        self.spaces.get(&pid).map(|space| space.read)
    }

    /// Device and inode of what is mapped shared; `None` of private memory.
    #[must_use]
    pub fn file_of(&self, object: MemoryObject) -> Option<(u64, u64)> {
        let found = self.shared.iter().find(|(_, &known)| known == object);
        found.map(|(&file, _)| file)
    }

    /// Where a page is mapped: a process, and its address there.
    #[must_use]
    pub fn address_of(&self, page: ObjectPage) -> Option<(Pid, u64)> {
        let Some(file) = self.file_of(page.object) else {
            let mut spaces = self.spaces.iter();
            let (&pid, _) = spaces.find(|(_, space)| space.private == page.object)?;
            return Some((pid, page.number * PAGE_SIZE));
        };
        let address = |mapping: &MemoryMapping| {
            let offset = mapping.file.as_ref().map_or(0, |file| file.offset);
            let at = (page.number * PAGE_SIZE).checked_sub(offset)?;
            let is_here = shared_key(mapping) == Some(file) && at < mapping.length;
            is_here.then_some(mapping.address + at)
        };
        self.spaces.iter().find_map(|(&pid, space)| {
            let found = space.mappings.iter().find_map(address);
            found.map(|at| (pid, at))
        })
    }

    /// Processes that were seen and live.
    pub fn processes(&self) -> impl Iterator<Item = Pid> + '_ {
        self.spaces.keys().copied()
    }

    /// The process ended, or runs another program: its private memory is no more.
    pub fn remove_process(&mut self, pid: Pid) {
        if let Some(space) = self.spaces.remove(&pid) {
            self.gone.push(space.private);
            self.count_users(&space.mappings, |users| users.saturating_sub(1));
        }
    }

    /// Whether other processes that were seen have mapped the same memory.
    #[must_use]
    pub fn is_shared(&self, mapping: &MemoryMapping) -> bool {
        shared_key(mapping).is_some_and(|key| self.users.get(&key).is_some_and(|&users| users > 1))
    }

    /// Whether an object is the private memory of a process.
    pub fn is_private(&self, pid: Pid, object: MemoryObject) -> bool {
        self.spaces
            .get(&pid)
            .is_some_and(|space| space.private == object)
    }

    /// Objects that are gone since the last call.
    pub fn take_gone(&mut self) -> Vec<MemoryObject> {
        std::mem::take(&mut self.gone)
    }

    fn new_object(&mut self) -> MemoryObject {
        self.next += 1;
        MemoryObject(self.next)
    }

    /// Takes in a process that runs already: if it has touched all of its memory, no fault
    /// would tell of it, and nothing could be sampled.
    pub fn add_running(&mut self, pid: Pid) {
        if !self.spaces.contains_key(&pid) {
            let private = self.new_object();
            self.read(pid, private);
        }
    }

    /// Reads the mappings of processes that have new ones: of memory that is touched once and
    /// sampled never no further fault would remind us.
    pub fn refresh(&mut self) {
        let now = Instant::now();
        let due = |space: &AddressSpace| space.grown && space.is_due(now, SOON);
        let due = self.spaces.iter().filter(|(_, space)| due(space));
        let due: Vec<(Pid, MemoryObject)> = due.map(|(&pid, space)| (pid, space.private)).collect();
        for (pid, private) in due {
            self.read(pid, private);
        }
    }

    /// Reads the mappings of a process when that is due.
    fn refresh_if_due(&mut self, pid: Pid, address: u64) {
        let private = match self.spaces.get_mut(&pid) {
            None => self.new_object(),
            Some(space) => {
                let known = space.mapping(address).is_some();
                space.grown |= !known;
                if !space.is_due(Instant::now(), if known { LATER } else { SOON }) {
                    return;
                }
                space.private
            }
        };
        self.read(pid, private);
    }

    fn read(&mut self, pid: Pid, private: MemoryObject) {
        let began = thread_time();
        let mappings = proc_maps::read_mappings(pid);
        self.count_users(&mappings, |users| users + 1);
        let space = AddressSpace {
            private,
            mappings,
            read: Instant::now(),
            took: Duration::from_nanos(thread_time().saturating_sub(began)),
            grown: false,
        };
        if let Some(before) = self.spaces.insert(pid, space) {
            self.count_users(&before.mappings, |users| users.saturating_sub(1));
        }
    }

    /// Counts a process that has mapped these, or has them no more.
    fn count_users(&mut self, mappings: &[MemoryMapping], change: impl Fn(usize) -> usize) {
        let keys: HashSet<(u64, u64)> = mappings.iter().filter_map(shared_key).collect();
        for key in keys {
            let users = change(self.users.get(&key).copied().unwrap_or(0));
            match users {
                0 => self.users.remove(&key),
                users => self.users.insert(key, users),
            };
        }
    }
}

/// The device and inode of memory that is mapped shared; `None` of private memory.
fn shared_key(mapping: &MemoryMapping) -> Option<(u64, u64)> {
    let file = mapping.file.as_ref()?;
    let shared = mapping.flags & libc::MAP_SHARED != 0 && file.ino != 0;
    shared.then_some((file.dev, file.ino))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::follow::proc_maps::MappedFile;

    fn own() -> Pid {
        nix::unistd::getpid().as_raw()
    }

    #[test]
    fn what_was_mapped_since_is_read_without_another_fault() {
        let mut memory = AddressSpaces::default();
        let known = [0u8; 1];
        let began = Instant::now();
        memory.page_at(own(), known.as_ptr().addr() as u64);
        // Large enough for a mapping of its own.
        let data = vec![0u8; 64 << 20];
        let at = data.as_ptr().addr() as u64;
        memory.page_at(own(), at);
        let has = |memory: &AddressSpaces| memory.spaces[&own()].mapping(at).is_some();
        memory.refresh();
        let early = has(&memory);
        // Later, on a busy machine, it may be read.
        if began.elapsed() < SOON {
            assert!(!early, "not so soon");
        }
        std::thread::sleep(SOON.max(memory.spaces[&own()].took * REST));
        memory.refresh();
        assert!(has(&memory));
    }

    /// Reading thousands of mappings every second took more than the whole budget.
    #[test]
    fn what_takes_long_to_read_is_read_less_often() {
        let read = Instant::now();
        let ms = Duration::from_millis;
        let due = |took, passed, after| {
            let space = AddressSpace {
                private: MemoryObject(0),
                mappings: Vec::new(),
                read,
                took: ms(took),
                grown: true,
            };
            space.is_due(read + ms(passed), after)
        };
        assert_eq!([99, 100].map(|passed| due(1, passed, SOON)), [false, true]);
        assert_eq!(
            [999, 1000].map(|passed| due(1, passed, LATER)),
            [false, true]
        );
        assert_eq!(
            [2999, 3000].map(|passed| due(30, passed, LATER)),
            [false, true]
        );
        assert_eq!(
            [2999, 3000].map(|passed| due(30, passed, SOON)),
            [false, true]
        );
    }

    #[test]
    fn private_memory_is_known_by_its_address() {
        let mut memory = AddressSpaces::default();
        let data = vec![1u8; 3 << 12];
        let at = data.as_ptr().addr() as u64;
        let first = memory.page_at(own(), at).expect("a page");
        let next = memory.page_at(own(), at + PAGE_SIZE).expect("a page");
        assert_eq!((first.object, first.number + 1), (next.object, next.number));
        // Another process, or another program in the same one, has other memory.
        memory.remove_process(own());
        assert_ne!(
            memory.page_at(own(), at).expect("a page").object,
            first.object
        );
        assert_eq!(memory.take_gone(), [first.object]);
        // Code has no page.
        let code = own as fn() -> Pid as usize as u64;
        assert_eq!(memory.page_at(own(), code), None);
    }

    #[test]
    fn memory_is_shared_while_several_processes_map_it() {
        let mapping = |ino, flags| MemoryMapping {
            flags,
            file: Some(MappedFile {
                ino,
                ..MappedFile::default()
            }),
            ..MemoryMapping::default()
        };
        let (shared, other) = (mapping(7, libc::MAP_SHARED), mapping(8, libc::MAP_SHARED));
        let private = mapping(7, libc::MAP_PRIVATE);
        let mut memory = AddressSpaces::default();
        let check = |memory: &AddressSpaces, expected: [bool; 3]| {
            let found = [&shared, &other, &private].map(|m| memory.is_shared(m));
            assert_eq!(found, expected);
        };
        let join = |memory: &mut AddressSpaces, pid, mappings: &[&MemoryMapping]| {
            let mappings: Vec<MemoryMapping> = mappings.iter().copied().cloned().collect();
            memory.count_users(&mappings, |users| users + 1);
            let space = AddressSpace {
                private: MemoryObject(pid as u32),
                mappings,
                read: Instant::now(),
                took: Duration::ZERO,
                grown: false,
            };
            memory.spaces.insert(pid, space);
        };
        // Twice in the same process is one user.
        join(&mut memory, 1, &[&shared, &shared, &other, &private]);
        check(&memory, [false; 3]);
        join(&mut memory, 2, &[&shared]);
        check(&memory, [true, false, false]);
        memory.remove_process(2);
        check(&memory, [false; 3]);
        memory.remove_process(1);
        assert!(memory.users.is_empty());
    }
}
