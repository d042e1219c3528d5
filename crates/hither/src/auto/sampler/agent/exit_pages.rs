//! Pages that the kernel itself needs when a thread ends: it clears the word that who joins the
//! thread waits for, and marks the locks that the thread still holds (robust_list in
//! set_robust_list(2)). It does not wait for a page then, so none of these may be away.
//!
//! Threads mostly have stacks that no page is taken of, and seldom end with locks held. So
//! what pages hold is looked at only in processes that have other stacks, or such locks, or
//! threads that ended before anything was known of them. What was found is kept: stacks and
//! locks are used again, and hold nothing to be known by for a moment.
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, IoSliceMut};
use std::os::unix::fs::FileExt;

use nix::sys::uio::{process_vm_readv, RemoteIoVec};

use super::PAGE;
use hither_sys::Pid;

/// Ranges that are read at once (IOV_MAX).
const IOV_MAX: usize = 1024;
/// Bytes of a list's head: where the first lock is, an offset, the lock in the making.
const ROBUST_LIST_HEAD_SIZE: usize = 24;
/// Bytes of a lock (pthread_mutex_t).
const PTHREAD_MUTEX_SIZE: usize = 40;
/// From the link in a lock back to its word, as each thread of the GNU C library says it.
const FUTEX_OFFSET: u64 = (-32i64).cast_unsigned();
/// What a lock's kind has if its owner's end is told.
const PTHREAD_MUTEX_ROBUST_NORMAL_NP: u32 = 16;
/// All that a kind may have.
const MUTEX_KIND_MASK: u32 = 0xff;

#[derive(Debug)]
pub struct ExitPages {
    pid: Pid,
    memory: File,
    stacks: bool,
    locks: bool,
    /// Pages that are never to be taken.
    pages: HashSet<u64>,
}

impl ExitPages {
    /// # Errors
    /// When the process is gone.
    pub fn new(pid: Pid) -> io::Result<ExitPages> {
        Ok(ExitPages {
            pid,
            // To read through this does not wait for pages that are away.
            memory: File::open(format!("/proc/{pid}/mem"))?,
            stacks: false,
            locks: false,
            pages: HashSet::new(),
        })
    }

    /// Threads may have stacks where pages are taken.
    pub fn beware_of_stacks(&mut self) {
        self.stacks = true;
    }

    /// Looks whether threads hold locks, by their lists.
    pub fn scan_locks(&mut self, lists: &[u64]) {
        self.locks |= are_held(self.pid, lists);
    }

    /// Forgets pages that are not in memory any more that pages are taken of.
    pub fn retain_open(&mut self, is_open: impl Fn(u64) -> bool) {
        self.pages.retain(|&page| is_open(page));
    }

    /// Whether a page may be taken.
    pub fn may_take(&mut self, page: u64) -> bool {
        if !self.stacks && !self.locks {
            return true;
        }
        if self.pages.contains(&page) {
            return false;
        }
        let mut bytes = [0; PAGE as usize + 2 * PTHREAD_MUTEX_SIZE];
        let own = PTHREAD_MUTEX_SIZE..PTHREAD_MUTEX_SIZE + PAGE as usize;
        if self
            .memory
            .read_exact_at(&mut bytes[own.clone()], page)
            .is_err()
        {
            return false;
        }
        let mut needed = holds_thread(&bytes[own]);
        if self.locks && !needed {
            // Locks may reach into it and out of it; what cannot be read holds none.
            let (before, after) = (
                page.wrapping_sub(PTHREAD_MUTEX_SIZE as u64),
                page.wrapping_add(PAGE),
            );
            let _ = self
                .memory
                .read_exact_at(&mut bytes[..PTHREAD_MUTEX_SIZE], before);
            let behind = PTHREAD_MUTEX_SIZE + PAGE as usize;
            let _ = self.memory.read_exact_at(&mut bytes[behind..], after);
            needed = holds_lock(&bytes);
        }
        if needed {
            self.pages.insert(page);
        }
        !needed
    }
}

fn read_u64(bytes: &[u8], at: usize) -> u64 {
    let found = bytes.get(at..).and_then(|b| b.first_chunk::<8>());
    u64::from_le_bytes(found.copied().unwrap_or_default())
}

fn read_u32(bytes: &[u8], at: usize) -> u32 {
    let found = bytes.get(at..).and_then(|b| b.first_chunk::<4>());
    u32::from_le_bytes(found.copied().unwrap_or_default())
}

/// Whether it can be an address of a program.
fn is_address(word: u64) -> bool {
    (PAGE..1 << 47).contains(&word)
}

/// Whether part of a page (64 bytes at a time) is where the GNU C library keeps a thread: the
/// word that is cleared at its end is followed, in the same 64 bytes, by the head of its list
/// of locks and the offset that is the same for all.
fn holds_thread(page: &[u8]) -> bool {
    let mut lines = page.chunks_exact(64);
    lines.any(|line| read_u64(line, 40) == FUTEX_OFFSET && is_address(read_u64(line, 32)))
}

/// Whether there is a lock, held or not, whose owner's end is told.
fn holds_lock(bytes: &[u8]) -> bool {
    let mut starts = (0..bytes.len() - PTHREAD_MUTEX_SIZE)
        .step_by(8)
        .map(|at| &bytes[at..at + PTHREAD_MUTEX_SIZE]);
    starts.any(|lock| {
        let kind = read_u32(lock, 16);
        let is_robust = kind & PTHREAD_MUTEX_ROBUST_NORMAL_NP != 0 && kind & !MUTEX_KIND_MASK == 0;
        let owner = read_u32(lock, 0) & 0x3fff_ffff;
        // Nobody's, or of who holds it, in whose list it is.
        let (next, before) = (read_u64(lock, 32), read_u64(lock, 24));
        let is_held = owner != 0 && is_address(next) && is_address(before);
        let is_free = owner == 0 && next == 0 && before == 0;
        is_robust && read_u32(lock, 8) == owner && (is_held || is_free)
    })
}

/// Whether threads hold locks, or perhaps do.
fn are_held(pid: Pid, lists: &[u64]) -> bool {
    let mut words = vec![0u8; ROBUST_LIST_HEAD_SIZE * IOV_MAX.min(lists.len())];
    lists.chunks(IOV_MAX).any(|some| {
        let bytes = ROBUST_LIST_HEAD_SIZE * some.len();
        let remote = |&list: &u64| RemoteIoVec {
            base: usize::try_from(list).unwrap_or(0),
            len: ROBUST_LIST_HEAD_SIZE,
        };
        let remote: Vec<RemoteIoVec> = some.iter().map(remote).collect();
        let mut local = [IoSliceMut::new(&mut words[..bytes])];
        let read = process_vm_readv(nix::unistd::Pid::from_raw(pid), &mut local, &remote);
        let read = read.unwrap_or(0);
        // An empty list leads back to itself. One that cannot be read is of a thread that
        // ended.
        let heads = words[..read].chunks_exact(ROBUST_LIST_HEAD_SIZE).zip(some);
        let mut held =
            heads.map(|(head, &list)| read_u64(head, 0) != list || read_u64(head, 16) != 0);
        held.any(|held| held)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(words: &[(usize, u64)], length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        for &(at, word) in words {
            bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    #[test]
    fn threads_are_known_by_the_heads_of_their_lists() {
        let own = nix::unistd::gettid().as_raw();
        let list = hither_sys::inject::robust_list_address(own)
            .expect("a thread")
            .expect("a list");
        let page = list / PAGE * PAGE;
        let mut needed = ExitPages::new(std::process::id().cast_signed()).expect("memory");
        assert!(needed.may_take(page), "nobody looks");
        needed.beware_of_stacks();
        assert!(!needed.may_take(page));
        assert!(needed.pages.contains(&page));
        needed.retain_open(|_| false);
        assert!(needed.pages.is_empty());
        // Not there at all.
        assert!(!needed.may_take(PAGE));
        let other = vec![7u8; 4 * PAGE as usize];
        assert!(needed.may_take((other.as_ptr().addr() as u64).next_multiple_of(PAGE)));
    }

    #[test]
    fn only_heads_of_lists_are_taken_for_such() {
        let check = |words: &[(usize, u64)], expected: bool| {
            assert_eq!(holds_thread(&bytes(words, 4096)), expected, "{words:?}");
        };
        check(
            &[(64 + 32, 0x7f00_0000_1060), (64 + 40, FUTEX_OFFSET)],
            true,
        );
        // Numbers.
        check(&[(64 + 32, FUTEX_OFFSET), (64 + 40, FUTEX_OFFSET)], false);
        check(&[(64 + 32, 3), (64 + 40, FUTEX_OFFSET)], false);
        check(
            &[(64 + 24, 0x7f00_0000_1060), (64 + 32, FUTEX_OFFSET)],
            false,
        );
        check(&[], false);
    }

    #[test]
    fn locks_are_known_by_their_kind() {
        let check = |words: &[(usize, u64)], expected: bool| {
            assert_eq!(holds_lock(&bytes(words, 512)), expected, "{words:?}");
        };
        let (tid, link) = (4711, 0x7f00_0000_1060);
        let held = |kind| {
            [
                (80, tid),
                (88, 1 << 32 | tid),
                (96, kind),
                (104, link),
                (112, link),
            ]
        };
        check(&held(16), true);
        check(&held(17), true);
        // Not such a one; and with somebody waiting.
        check(&held(1), false);
        let waited = [held(16), [(80, tid | 1 << 31); 5]].concat();
        check(&waited, true);
        check(&[(96, 16)], true);
        check(&[(96, 16), (104, 5)], false);
        check(&[(96, 16 << 32)], false);
        check(&[(96, 1 << 16 | 16)], false);
        check(&[], false);
    }

    #[test]
    fn lists_that_lead_back_to_themselves_are_empty() {
        let own = std::process::id().cast_signed();
        let check = |head: [u64; 3], expected: bool| {
            let mut head = head
                .map(|_| 0)
                .into_iter()
                .zip(head)
                .map(|(_, w)| w)
                .collect::<Vec<_>>();
            let at = head.as_ptr().addr() as u64;
            if head[0] == u64::MAX {
                head[0] = at;
            }
            assert_eq!(are_held(own, &[at]), expected, "{head:?}");
        };
        check([u64::MAX, FUTEX_OFFSET, 0], false);
        check([u64::MAX, FUTEX_OFFSET, 4096], true);
        check([4096, FUTEX_OFFSET, 0], true);
        assert!(!are_held(own, &[]));
        assert!(!are_held(own, &[PAGE]));
    }
}
