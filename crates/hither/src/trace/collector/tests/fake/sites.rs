//! What the threads of the fake say of the code that they run.
use super::Fake;
use hither_sys::wire::{self, SegmentThread};
use std::mem::offset_of;

impl Fake {
    fn site_at(&self, site: u32) -> u64 {
        let sites = self.engine.segment.layout().sites;
        sites + u64::from(site) * size_of::<wire::CodeSite>() as u64
    }

    pub fn site(&mut self, site: u32, pc: u64) {
        let at = self.site_at(site);
        self.put64(at, pc);
        self.put32(at + 8, 1);
        self.put32(at + 12, self.generation);
    }

    /// The site is in a library, which the program called from there.
    pub fn site_called_from(&mut self, site: u32, returns_to: u64) {
        let at = self.site_at(site);
        self.put64(at + offset_of!(wire::CodeSite, caller) as u64, returns_to);
    }

    pub fn sample(
        &mut self,
        thread: u32,
        (address, object): (u64, u16),
        site: u32,
        reads: u32,
        after: i16,
    ) {
        let ring = self.engine.segment.layout().samples
            + u64::from(thread) * u64::from(wire::SAMPLES) * 24;
        let at = ring + self.samples * 24;
        self.put_sample(at, (address, object), site, reads, after);
        self.samples += 1;
        self.put64(
            self.thread_at(thread) + offset_of!(SegmentThread, sample_head) as u64,
            self.samples,
        );
    }

    /// What a thread has summed of samples and not put into its ring yet.
    pub fn sample_sum(&mut self, thread: u32, nth: u64, address: u64, site: u32, reads: u32) {
        let rings = u64::from(wire::MAX_THREADS * wire::SAMPLES);
        let before = u64::from(thread) * u64::from(wire::SAMPLE_SUMS) + nth;
        let at = self.engine.segment.layout().samples + (rings + before) * 24;
        self.put_sample(at, (address, 0), site, reads, 0);
    }

    fn put_sample(
        &mut self,
        at: u64,
        (address, object): (u64, u16),
        site: u32,
        reads: u32,
        after: i16,
    ) {
        self.put64(at, address);
        self.put32(at + 8, site);
        self.put32(at + 12, reads);
        self.put32(
            at + 20,
            u32::from(after.cast_unsigned()) | u32::from(object) << 16,
        );
    }

    /// The bytes that a site's accesses touch.
    pub fn site_touches(&mut self, site: u32, span: u32, reads: [u64; 2], writes: [u64; 2]) {
        let at = self.site_at(site);
        self.put32(at + offset_of!(wire::CodeSite, span) as u64, span);
        for (n, word) in reads.into_iter().chain(writes).enumerate() {
            let first = offset_of!(wire::CodeSite, reads) as u64;
            self.put64(at + first + n as u64 * 8, word);
        }
    }
}
