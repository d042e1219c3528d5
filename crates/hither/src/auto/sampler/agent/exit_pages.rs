//! Pages that the kernel itself accesses when a thread exits: it clears the word that
//! pthread_join waits for (set_tid_address(2)), and marks the locks that the thread still holds
//! (set_robust_list(2)). It does not wait for a page then, so none of these may be away.
//!
//! So every page is searched for thread control blocks and held robust locks before it is
//! taken, and by the agent once more right after (`tracer/agent/pages.c`): a lock may be taken
//! while the order is on its way. In a process that was seen to hold one, free robust locks
//! count too. To look only at the lists of locks of the threads, now and then, would be too
//! late: a lock whose owner exits before that look is never released. What was found is kept:
//! stacks and locks are used again, and for a moment hold nothing to recognise them by.
use hither_profile::PAGE_SIZE;
use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use hither_sys::Pid;

/// Words of a lock (pthread_mutex_t), of a page, and of a page with what is around it.
const MUTEX_WORDS: usize = 5;
const PAGE_WORDS: usize = PAGE_SIZE as usize / 8;
const AROUND_WORDS: usize = PAGE_WORDS + 2 * MUTEX_WORDS;
/// From the link in a lock back to its word, as each thread of the GNU C library says it.
const FUTEX_OFFSET: u64 = (-32i64).cast_unsigned();
/// Bit of a mutex's kind: the next owner gets EOWNERDEAD when the owner exits.
const PTHREAD_MUTEX_ROBUST_NORMAL_NP: u64 = 16;
/// All bits that a kind may have.
const MUTEX_KIND_MASK: u64 = 0xff;
/// Bits of a lock's word: the thread id of its owner.
const FUTEX_TID_MASK: u64 = 0x3fff_ffff;

#[derive(Debug)]
pub struct ExitPages {
    memory: File,
    /// A held robust lock was found.
    robust_locks: bool,
    /// Pages that are never to be taken.
    pages: HashSet<u64>,
}

impl ExitPages {
    /// # Errors
    /// When the process is gone.
    pub fn new(pid: Pid) -> io::Result<ExitPages> {
        Ok(ExitPages {
            // To read through this does not wait for pages that are away.
            memory: File::open(format!("/proc/{pid}/mem"))?,
            robust_locks: false,
            pages: HashSet::new(),
        })
    }

    /// Forgets pages that are not in memory any more that pages are taken of.
    pub fn retain_open(&mut self, is_open: impl Fn(u64) -> bool) {
        self.pages.retain(|&page| is_open(page));
    }

    /// Whether a page may be taken.
    pub fn may_take(&mut self, page: u64) -> bool {
        if self.pages.contains(&page) {
            return false;
        }
        let Some(words) = self.read(page) else {
            return false;
        };
        let mut needed = holds_thread(&words[MUTEX_WORDS..MUTEX_WORDS + PAGE_WORDS]);
        if !needed {
            let held = holds_lock(&words, is_held_lock);
            self.robust_locks |= held;
            needed = held || self.robust_locks && holds_lock(&words, is_free_lock);
        }
        if needed {
            self.pages.insert(page);
        }
        !needed
    }

    /// The words of a page and those around it that locks may reach into. What cannot be read
    /// holds none; `None` where that is the page itself.
    fn read(&self, page: u64) -> Option<[u64; AROUND_WORDS]> {
        let mut bytes = [0; 8 * AROUND_WORDS];
        let start = 8 * MUTEX_WORDS;
        let end = start + 8 * PAGE_WORDS;
        let before = page.wrapping_sub(start as u64);
        if self.memory.read_exact_at(&mut bytes, before).is_err() {
            bytes.fill(0);
            let own = self.memory.read_exact_at(&mut bytes[start..end], page);
            own.ok()?;
            let _ = self.memory.read_exact_at(&mut bytes[..start], before);
            let after = page.wrapping_add(PAGE_SIZE);
            let _ = self.memory.read_exact_at(&mut bytes[end..], after);
        }
        let mut words = [0; AROUND_WORDS];
        for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
            *word = u64::from_le_bytes(*bytes);
        }
        Some(words)
    }
}

/// Whether it can be an address of a program.
fn is_address(word: u64) -> bool {
    (PAGE_SIZE..1 << 47).contains(&word)
}

/// Whether part of a page (64 bytes at a time) is where the GNU C library keeps a thread: the
/// word that is cleared at its end is followed, in the same 64 bytes, by the head of its list
/// of locks and the offset that is the same for all.
fn holds_thread(page: &[u64]) -> bool {
    let mut lines = page.chunks_exact(8);
    lines.any(|line| line[5] == FUTEX_OFFSET && is_address(line[4]))
}

/// Whether there is a robust lock in that state.
fn holds_lock(words: &[u64], is_in_state: fn(&[u64; MUTEX_WORDS]) -> bool) -> bool {
    words.array_windows().any(|lock| {
        let kind = low(lock[2]);
        let is_robust = kind & PTHREAD_MUTEX_ROBUST_NORMAL_NP != 0 && kind <= MUTEX_KIND_MASK;
        is_robust && is_in_state(lock)
    })
}

/// The first half of a word: of those of a lock, its own word, its owner or its kind.
fn low(word: u64) -> u64 {
    word & 0xffff_ffff
}

/// Its word and its owner are the same thread, in whose list it is.
fn is_held_lock(lock: &[u64; MUTEX_WORDS]) -> bool {
    let owner = lock[0] & FUTEX_TID_MASK;
    owner != 0 && low(lock[1]) == owner && is_address(lock[3]) && is_address(lock[4])
}

/// No owner and in no list. Numbers look like that, too.
fn is_free_lock(lock: &[u64; MUTEX_WORDS]) -> bool {
    lock[0] == 0 && low(lock[1]) == 0 && lock[3] == 0 && lock[4] == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Zeros but for these words, by their offset in bytes.
    fn memory(words: &[(usize, u64)], length: usize) -> Vec<u64> {
        let mut memory = vec![0; length / 8];
        for &(at, word) in words {
            memory[at / 8] = word;
        }
        memory
    }

    #[test]
    fn threads_are_known_by_the_heads_of_their_lists() {
        let own = nix::unistd::gettid().as_raw();
        let list = hither_sys::inject::robust_list_address(own)
            .expect("a thread")
            .expect("a list");
        let page = list / PAGE_SIZE * PAGE_SIZE;
        let mut needed = ExitPages::new(std::process::id().cast_signed()).expect("memory");
        assert!(!needed.may_take(page));
        assert!(needed.pages.contains(&page));
        needed.retain_open(|_| false);
        assert!(needed.pages.is_empty());
        // Not there at all.
        assert!(!needed.may_take(PAGE_SIZE));
        let other = vec![7u8; 4 * PAGE_SIZE as usize];
        assert!(needed.may_take((other.as_ptr().addr() as u64).next_multiple_of(PAGE_SIZE)));
    }

    #[test]
    fn only_heads_of_lists_are_taken_for_such() {
        let check = |words: &[(usize, u64)], expected: bool| {
            assert_eq!(holds_thread(&memory(words, 4096)), expected, "{words:?}");
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
            let found = holds_lock(&memory(words, 512), is_held_lock);
            assert_eq!(found, expected, "{words:?}");
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
        // Not a robust mutex; and one with waiters.
        check(&held(1), false);
        let waited = [held(16), [(80, tid | 1 << 31); 5]].concat();
        check(&waited, true);
        check(&[(96, 16)], false);
        assert!(holds_lock(&memory(&[(96, 16)], 512), is_free_lock));
        assert!(!holds_lock(
            &memory(&[(96, 16), (104, 5)], 512),
            is_free_lock
        ));
        assert!(!holds_lock(&memory(&held(16), 512), is_free_lock));
        let wrong = |at: usize, word: u64| [held(16), [(at, word); 5]].concat();
        check(&wrong(96, 16 << 32), false);
        check(&wrong(96, 1 << 16 | 16), false);
        check(&wrong(104, 5), false);
        check(&wrong(88, tid + 1), false);
        check(&held(16).map(|(at, word)| (at + 512 - 120, word)), true);
        check(&[], false);
    }
}
