//! The shared segment of one traced run: creation, layout and access.
//!
//! The target writes here and may write anything, so nothing read is trusted: every
//! access is checked against the size of the mapping, a place outside reads as zeros,
//! and the layout used is the one computed here, never the one in the header.
use crate::segment_layout::SegmentLayout;
use crate::segment_written::WrittenPages;
use crate::wire::{self, SegmentHeader, SegmentHook, SegmentRecord};
use nix::fcntl::{fallocate, fcntl, FallocateFlags, FcntlArg, SealFlag};
use nix::sys::memfd::{memfd_create, MFdFlags};
use nix::sys::mman::{mmap, munmap, MapFlags, ProtFlags};
use std::mem::{offset_of, MaybeUninit};
use std::num::NonZeroUsize;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicU8, Ordering};

#[derive(Debug, thiserror::Error)]
pub enum SegmentError {
    #[error("cannot create the shared segment ({call}: {errno}); raise the limits on virtual memory (ulimit -v), file sizes (ulimit -f) or overcommit")]
    Create {
        call: &'static str,
        errno: nix::errno::Errno,
    },
    #[error(
        "{given} hooks asked for, but a run can have {} at most: name fewer functions",
        wire::MAX_HOOKS
    )]
    Hooks { given: usize },
    #[error("a line of {0} bytes is not possible: use a power of two from 8 to 4096")]
    Line(u32),
    #[error(
        "a line cache of 2^{0} entries is not possible: use an exponent from {min} to {max}",
        min = wire::CACHE_LOG2_MIN,
        max = wire::CACHE_LOG2_MAX
    )]
    Cache(u32),
}

/// What the collector writes into the header before the target starts.
#[derive(Clone, Debug)]
pub struct SegmentConfig {
    pub line: u32,
    pub sharers: u32,
    pub cache_log2: u32,
    pub flags: u32,
    /// Sets of the sampled part of a private cache, see [`wire::FETCH_PERIOD`].
    pub fetch_sets: u32,
    pub alloc_min: u32,
    pub slice_ns: u64,
    pub active: bool,
    pub hooks: Vec<SegmentHook>,
}

/// The collector's mapping of the segment. It lives as long as this value or a traced
/// process has it mapped; nothing of it is ever visible in a file system.
pub struct Segment {
    base: NonNull<u8>,
    file: OwnedFd,
    layout: SegmentLayout,
    written: WrittenPages,
    /// See [`Segment::detach`].
    detached: AtomicBool,
}

// SAFETY: the mapping is plain shared memory, reached only through atomics.
unsafe impl Send for Segment {}
// SAFETY: as above.
unsafe impl Sync for Segment {}

impl Segment {
    /// Creates and maps the segment and writes its header.
    ///
    /// # Errors
    /// When the kernel refuses the memory file or the mapping, or the configuration
    /// cannot be expressed.
    pub fn create(config: &SegmentConfig) -> Result<Segment, SegmentError> {
        if config.hooks.len() > wire::MAX_HOOKS as usize {
            return Err(SegmentError::Hooks {
                given: config.hooks.len(),
            });
        }
        if !config.line.is_power_of_two() || !(8..=4096).contains(&config.line) {
            return Err(SegmentError::Line(config.line));
        }
        if !(wire::CACHE_LOG2_MIN..=wire::CACHE_LOG2_MAX).contains(&config.cache_log2) {
            return Err(SegmentError::Cache(config.cache_log2));
        }
        let layout = SegmentLayout::new(
            config.line.trailing_zeros(),
            config.cache_log2,
            config.fetch_sets,
        );
        let fail = |call| move |errno| SegmentError::Create { call, errno };
        let kind = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
        let file = memfd_create(c"hither", kind).map_err(fail("memfd_create"))?;
        nix::unistd::ftruncate(&file, layout.total as i64).map_err(fail("ftruncate"))?;
        // A target that cut the file would have us killed (SIGBUS) where we read it.
        let seals = SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SEAL;
        fcntl(&file, FcntlArg::F_ADD_SEALS(seals)).map_err(fail("F_ADD_SEALS"))?;
        let length = NonZeroUsize::new(layout.total as usize).unwrap_or(NonZeroUsize::MIN);
        let flags = MapFlags::MAP_SHARED | MapFlags::MAP_NORESERVE;
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a new shared mapping at an address of the kernel's choice.
        let base = unsafe { mmap(None, length, access, flags, &file, 0) }.map_err(fail("mmap"))?;
        let segment = Segment {
            base: base.cast(),
            file,
            layout,
            written: WrittenPages::new(layout.total),
            detached: AtomicBool::new(false),
        };
        segment.write_header(config);
        Ok(segment)
    }

    fn write_header(&self, c: &SegmentConfig) {
        let l = &self.layout;
        macro_rules! put32 { ($($f:ident = $v:expr),+ $(,)?) => {$(
            self.store_u32(offset_of!(SegmentHeader, $f) as u64, $v);)+} }
        macro_rules! put64 { ($($f:ident = $v:expr),+ $(,)?) => {$(
            self.store_u64(offset_of!(SegmentHeader, $f) as u64, $v);)+} }
        put32!(
            version = wire::VERSION,
            header_size = size_of::<SegmentHeader>() as u32,
            line_log2 = c.line.trailing_zeros(),
            sharers = c.sharers,
            cache_log2 = c.cache_log2,
            flags = c.flags,
            nhooks = c.hooks.len() as u32,
            fetch_sets = c.fetch_sets,
            alloc_min = c.alloc_min,
            epoch = 1,
            active = u32::from(c.active),
            slice_traced = 1,
            collector_pid = std::process::id(),
            next_thread = 1,
            next_process = 1,
            next_page = wire::BLOCK_PAGES,
            next_block = 1,
            next_site = 1,
            next_chunk_object = 1,
            next_record_block = 1,
            next_object = 1,
            next_serial = 1,
            next_user_node = 1,
        );
        put64!(
            slice_ns = c.slice_ns,
            off_threads = l.threads,
            off_processes = l.processes,
            off_hooks = l.hooks,
            off_sites = l.sites,
            off_events = l.events,
            off_samples = l.samples,
            off_observations = l.seen,
            off_directory = l.directory,
            off_comm = l.comm,
            off_pages = l.pages,
            off_chunks = l.chunks,
            off_aliases = l.aliases,
            off_owners = l.owners,
            off_dirty = l.dirty,
            off_blocks = l.blocks,
            off_page_users = l.page_users,
            off_shadow = l.shadow,
            off_user_nodes = l.user_nodes,
            off_user_counts = l.user_counts,
            off_arenas = l.arenas,
            off_record_blocks = l.record_blocks,
            off_record_bytes = l.record_bytes,
            off_pieces = l.pieces,
            off_objects = l.objects,
            off_object_counts = l.object_counts,
            off_object_used = l.object_used,
            off_ended = l.ended,
            off_free_groups = l.free_groups,
            off_site_words = l.site_words,
            total_size = l.total,
            arena_size = l.arena_size,
            left_in_arena = l.left,
        );
        for (n, hook) in c.hooks.iter().enumerate() {
            let at = l.hooks + n as u64 * 32;
            self.store_u32(at, hook.kind);
            self.store_u32(at + 4, hook.which);
            self.store_u64(at + 8, hook.offset);
            self.store_u64(at + 16, hook.dev);
            self.store_u64(at + 24, hook.ino);
        }
        put64!(magic = wire::MAGIC);
    }

    /// The path under which a traced process opens the segment while we live.
    #[must_use]
    pub fn attach_path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd()).into()
    }

    /// In a copy of the process (fork): from now on nobody else sees what is written here. What the target
    /// writes is still seen, but for pages that were written to here.
    ///
    /// # Errors
    /// When the kernel refuses the mapping, as without overcommit; then nothing has changed.
    pub fn detach(&self) -> nix::Result<()> {
        let length = NonZeroUsize::new(self.layout.total as usize).unwrap_or(NonZeroUsize::MIN);
        let flags = MapFlags::MAP_PRIVATE | MapFlags::MAP_FIXED | MapFlags::MAP_NORESERVE;
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        let at = NonZeroUsize::new(self.base.as_ptr() as usize);
        // SAFETY: replaces our own mapping, as a whole, by one of the same file and size: every place
        // in it stays valid, and it is only reached through atomics.
        unsafe { mmap(at, length, access, flags, &self.file, 0) }?;
        self.detached.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Gives back the memory of line caches, page counts, communication and events once they
    /// have been read: tens of megabytes. What describes threads, processes, code, pages and
    /// objects stays. A process that is still alive finds zeros there, as at its start.
    pub fn discard_counters(&self) {
        let l = &self.layout;
        for (start, end) in [(l.events, l.pages), (l.owners, l.objects)] {
            // Where it fails the memory stays in use to the end of the run, as it was.
            let _ = self.make_zero(start, end - start);
        }
    }

    /// Whether any page of a range has ever been written; also where the kernel does not say.
    pub(crate) fn has_data(&self, at: u64, size: u64) -> bool {
        self.next_data(at) < at.saturating_add(size)
    }

    /// Where the first page at or behind a place is that has ever been written: there where the kernel
    /// does not say.
    fn next_data(&self, at: u64) -> u64 {
        match nix::unistd::lseek(&self.file, at as i64, nix::unistd::Whence::SeekData) {
            Ok(next) => next as u64,
            Err(nix::errno::Errno::ENXIO) => u64::MAX,
            Err(_) => at,
        }
    }

    /// Fills a part with zeros; whole pages of it take no memory then.
    pub(crate) fn make_zero(&self, start: u64, length: u64) -> nix::Result<()> {
        if self.detached.load(Ordering::Relaxed) {
            // The file is the target's.
            return Err(nix::errno::Errno::EPERM);
        }
        let mode = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
        fallocate(&self.file, mode, start as i64, length as i64)?;
        self.written.forget(start, length);
        Ok(())
    }

    /// Whether the page around a place has ever been written.
    pub(crate) fn is_written(&self, at: u64) -> bool {
        self.written_from(at) <= at
    }

    /// Where, from the page around a place on, the first byte lies that was ever written.
    pub(crate) fn written_from(&self, at: u64) -> u64 {
        self.written.written_from(at, |page| self.next_data(page))
    }

    #[must_use]
    pub fn layout(&self) -> &SegmentLayout {
        &self.layout
    }

    /// Start of an aligned value of `size` bytes, if it lies inside the mapping.
    fn in_bounds_ptr(&self, at: u64, size: u64) -> Option<*mut u8> {
        let fits = at
            .checked_add(size)
            .is_some_and(|end| end <= self.layout.total);
        // SAFETY: the sum was just checked to stay inside the mapping. The file under it keeps
        // its size: it is sealed.
        (fits && at.is_multiple_of(size)).then(|| unsafe { self.base.as_ptr().add(at as usize) })
    }

    fn atomic_u32(&self, at: u64) -> Option<&AtomicU32> {
        // SAFETY: in bounds, aligned, mapped as long as self; all accesses are atomic.
        self.in_bounds_ptr(at, 4)
            .map(|p| unsafe { AtomicU32::from_ptr(p.cast()) })
    }

    fn atomic_u64(&self, at: u64) -> Option<&AtomicU64> {
        // SAFETY: in bounds, aligned, mapped as long as self; all accesses are atomic.
        self.in_bounds_ptr(at, 8)
            .map(|p| unsafe { AtomicU64::from_ptr(p.cast()) })
    }

    /// Loads with acquire; 0 outside the segment.
    #[must_use]
    pub fn load_u32(&self, at: u64) -> u32 {
        self.atomic_u32(at).map_or(0, |a| a.load(Ordering::Acquire))
    }

    /// Loads with acquire; 0 outside the segment.
    #[must_use]
    pub fn load_u64(&self, at: u64) -> u64 {
        self.atomic_u64(at).map_or(0, |a| a.load(Ordering::Acquire))
    }

    /// Stores with release; nothing happens outside the segment.
    pub fn store_u32(&self, at: u64, value: u32) {
        if let Some(a) = self.atomic_u32(at) {
            a.store(value, Ordering::Release);
        }
    }

    /// Stores with release; nothing happens outside the segment.
    pub fn store_u64(&self, at: u64, value: u64) {
        if let Some(a) = self.atomic_u64(at) {
            a.store(value, Ordering::Release);
        }
    }

    /// Swaps with acquire and release; 0 outside the segment.
    pub fn swap_u64(&self, at: u64, value: u64) -> u64 {
        self.atomic_u64(at)
            .map_or(0, |a| a.swap(value, Ordering::AcqRel))
    }

    /// Stores `new` if the word still is `old`; nothing happens outside the segment.
    pub fn compare_exchange_u64(&self, at: u64, old: u64, new: u64) {
        if let Some(a) = self.atomic_u64(at) {
            // Another value means that the owner has moved on, which is as good.
            let _ = a.compare_exchange(old, new, Ordering::AcqRel, Ordering::Relaxed);
        }
    }

    /// Adds to a word; nothing happens outside the segment.
    pub(crate) fn add_u64(&self, at: u64, more: u64) {
        if let Some(a) = self.atomic_u64(at) {
            a.fetch_add(more, Ordering::Relaxed);
        }
    }

    /// Sets bits with release; nothing happens outside the segment.
    pub(crate) fn set_bits(&self, at: u64, bits: u64) {
        if let Some(a) = self.atomic_u64(at) {
            a.fetch_or(bits, Ordering::Release);
        }
    }

    /// Clears bits with release; nothing happens outside the segment.
    pub fn clear_bits(&self, at: u64, bits: u64) {
        if let Some(a) = self.atomic_u64(at) {
            a.fetch_and(!bits, Ordering::Release);
        }
    }

    /// Appends `length` bytes from `at` on; zeros outside the segment and where it was never written.
    /// Words are atomic.
    pub fn append_bytes(&self, at: u64, length: usize, to: &mut Vec<u8>) {
        let before = (at % 8) as usize;
        let first = at - before as u64;
        let words = (before + length).div_ceil(8) as u64;
        let start = to.len();
        to.reserve(length + 16);
        let mut written = false;
        for word in 0..words {
            let word_at = first.saturating_add(word * 8);
            if word == 0 || word_at.is_multiple_of(4096) {
                written = self.is_written(word_at);
            }
            let value = self
                .atomic_u64(word_at)
                .filter(|_| written)
                .map_or(0, |a| a.load(Ordering::Relaxed));
            to.extend_from_slice(&value.to_le_bytes());
        }
        to.drain(start..start + before);
        to.truncate(start + length);
    }

    /// Swaps one byte with acquire and release; 0 outside the segment.
    pub fn swap_u8(&self, at: u64, value: u8) -> u8 {
        // SAFETY: in bounds, mapped as long as self; all accesses are atomic.
        let cell = self
            .in_bounds_ptr(at, 1)
            .map(|p| unsafe { AtomicU8::from_ptr(p) });
        cell.map_or(0, |a| a.swap(value, Ordering::AcqRel))
    }

    /// Reads a record word by word; zeros outside the segment and where it was never written. Words are
    /// atomic, the record is not: a caller that needs it whole checks a flag in it.
    #[must_use]
    pub fn read<T: SegmentRecord>(&self, at: u64) -> T {
        let mut record = MaybeUninit::<T>::zeroed();
        let words = record.as_mut_ptr().cast::<u64>();
        let mut written = false;
        for n in 0..size_of::<T>() / 8 {
            let word_at = at.saturating_add(n as u64 * 8);
            if n == 0 || word_at.is_multiple_of(4096) {
                written = self.is_written(word_at);
            }
            let value = self
                .atomic_u64(word_at)
                .filter(|_| written)
                .map_or(0, |a| a.load(Ordering::Relaxed));
            // SAFETY: n is below the record's size in words; unaligned writes are allowed.
            unsafe { words.add(n).write_unaligned(value) };
        }
        // SAFETY: every byte is initialised, and a Record takes any bit pattern.
        unsafe { record.assume_init() }
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        // SAFETY: mapped in create with this length, and no reference outlives self.
        // Failure would leave the mapping to the end of the process: harmless.
        let _ = unsafe { munmap(self.base.cast(), self.layout.total as usize) };
    }
}

#[cfg(test)]
mod tests;
