//! Which page an address is, for all who can reach it: private memory belongs to a process
//! as long as it runs one program; memory that is mapped shared is the same object wherever
//! it is mapped (kMAF keys its table by physical addresses for that, section 3.1.1).
use std::collections::HashMap;
use std::time::{Duration, Instant};

use nix::libc;

use super::analysis::{Object, Page, PAGE};
use crate::place::run::guide::{Mapping, Pid};
use crate::place::run::image;

/// Between two looks at the mappings of a process, when an address is in none that is known
/// and when all is well.
const SOON: Duration = Duration::from_millis(100);
const LATER: Duration = Duration::from_secs(1);

/// The address spaces of all processes.
#[derive(Debug, Default)]
pub struct Memory {
    spaces: HashMap<Pid, Space>,
    /// By device and inode.
    shared: HashMap<(u64, u64), Object>,
    next: u32,
    gone: Vec<Object>,
}

#[derive(Debug)]
struct Space {
    private: Object,
    mappings: Vec<Mapping>,
    read: Instant,
}

impl Space {
    fn mapping(&self, address: u64) -> Option<&Mapping> {
        let next = self.mappings.partition_point(|m| m.address <= address);
        let mapping = self.mappings.get(next.checked_sub(1)?)?;
        (address - mapping.address < mapping.length).then_some(mapping)
    }
}

impl Memory {
    /// The page at an address of a process; `None` of code, which everybody reads and nobody
    /// communicates through.
    pub fn page(&mut self, pid: Pid, address: u64) -> Option<Page> {
        self.look(pid, address);
        let space = self.spaces.get(&pid)?;
        let mapping = space.mapping(address);
        if mapping.is_some_and(|m| m.prot & libc::PROT_EXEC != 0) {
            return None;
        }
        let private = Page {
            object: space.private,
            number: address / PAGE,
        };
        let Some((mapping, file)) = mapping.and_then(|m| Some((m, m.file.as_ref()?))) else {
            return Some(private);
        };
        if mapping.flags & libc::MAP_SHARED == 0 || file.ino == 0 {
            return Some(private);
        }
        let number = (file.offset + address - mapping.address) / PAGE;
        let object = match self.shared.get(&(file.dev, file.ino)) {
            Some(&object) => object,
            None => {
                let key = (file.dev, file.ino);
                let object = self.object();
                self.shared.insert(key, object);
                object
            }
        };
        Some(Page { object, number })
    }

    /// What is mapped in a process, in order of addresses, as far as is known.
    #[must_use]
    pub fn mappings(&self, pid: Pid) -> &[Mapping] {
        self.spaces.get(&pid).map_or(&[], |space| &space.mappings)
    }

    /// When that was read.
    #[must_use]
    pub fn read_at(&self, pid: Pid) -> Option<Instant> {
        self.spaces.get(&pid).map(|space| space.read)
    }

    /// Device and inode of what is mapped shared; `None` of private memory.
    #[must_use]
    pub fn file(&self, object: Object) -> Option<(u64, u64)> {
        let found = self.shared.iter().find(|(_, &known)| known == object);
        found.map(|(&file, _)| file)
    }

    /// Processes that were seen and live.
    pub fn processes(&self) -> impl Iterator<Item = Pid> + '_ {
        self.spaces.keys().copied()
    }

    /// The process ended, or runs another program: its private memory is no more.
    pub fn forget(&mut self, pid: Pid) {
        if let Some(space) = self.spaces.remove(&pid) {
            self.gone.push(space.private);
        }
    }

    /// Objects that are gone since the last call.
    pub fn take_gone(&mut self) -> Vec<Object> {
        std::mem::take(&mut self.gone)
    }

    fn object(&mut self) -> Object {
        self.next += 1;
        Object(self.next)
    }

    /// Reads the mappings of a process when that is due.
    fn look(&mut self, pid: Pid, address: u64) {
        let private = match self.spaces.get(&pid) {
            None => self.object(),
            Some(space) => {
                let known = space.mapping(address).is_some();
                if space.read.elapsed() < if known { LATER } else { SOON } {
                    return;
                }
                space.private
            }
        };
        let space = Space {
            private,
            mappings: image::mappings(pid),
            read: Instant::now(),
        };
        self.spaces.insert(pid, space);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> Pid {
        nix::unistd::getpid().as_raw()
    }

    #[test]
    fn private_memory_is_known_by_its_address() {
        let mut memory = Memory::default();
        let data = vec![1u8; 3 << 12];
        let at = data.as_ptr().addr() as u64;
        let first = memory.page(own(), at).expect("a page");
        let next = memory.page(own(), at + PAGE).expect("a page");
        assert_eq!((first.object, first.number + 1), (next.object, next.number));
        // Another process, or another program in the same one, has other memory.
        memory.forget(own());
        assert_ne!(memory.page(own(), at).expect("a page").object, first.object);
        assert_eq!(memory.take_gone(), [first.object]);
        // Code is nobody's.
        let code = own as fn() -> Pid as usize as u64;
        assert_eq!(memory.page(own(), code), None);
    }
}
