//! A target that writes anything.
use super::fake::Fake;
use super::*;
use hither_sys::wire::{SegmentHeader, SegmentThread};
use std::mem::offset_of;

impl Fake {
    /// Random words over the areas that the counters say are in use. When not `wild`, the
    /// words are small, so that they are often valid indices.
    pub fn scribble(&mut self, seed: u64, counters: &[u32; 6], wild: bool) {
        let l = *self.engine.segment.layout();
        let mut rng = hither_model::rng::Rng::new(seed);
        let mut random = move || {
            let word = rng.next_u64();
            if wild {
                word
            } else {
                word & 0x0000_003f_0000_0007
            }
        };
        let [threads, processes, pages, blocks, sites, objects] = counters.map(u64::from);
        let fields = [
            (offset_of!(SegmentHeader, next_thread), threads),
            (offset_of!(SegmentHeader, next_process), processes),
            (offset_of!(SegmentHeader, next_page), pages + 64),
            (offset_of!(SegmentHeader, next_block), blocks),
            (offset_of!(SegmentHeader, next_site), sites),
            (offset_of!(SegmentHeader, next_object), objects),
        ];
        let areas = [
            (l.threads, threads * size_of::<SegmentThread>() as u64),
            (l.processes, processes * 64),
            (l.hooks, 2048),
            (l.sites, sites * size_of::<wire::CodeSite>() as u64),
            (l.seen, threads.min(4) * u64::from(wire::OBSERVATIONS) * 16),
            (l.samples, threads.min(4) * u64::from(wire::SAMPLES) * 24),
            (l.comm, threads.min(8) * u64::from(wire::MAX_THREADS) * 16),
            (
                l.pages,
                (pages + 64) * size_of::<wire::SegmentPage>() as u64,
            ),
            (l.chunks, 4096),
            (l.aliases, 4096),
            (l.owners, blocks * 8),
            (l.dirty, blocks),
            (l.blocks, blocks * size_of::<wire::PageCountBlock>() as u64),
            (l.arenas, threads * l.arena_size),
            (l.objects, objects * size_of::<wire::TargetObject>() as u64),
            (l.object_counts, 3 * u64::from(wire::PROCESS_OBJECTS) * 16),
            (l.object_used, threads * 64),
            (l.events, 256 * 64),
        ];
        for (start, length) in areas {
            for at in (start..start + length).step_by(8) {
                self.put64(at, random());
            }
        }
        for n in 0..256 {
            let kind = random() >> 32 & 0xf;
            let head = u64::from(wire::READY) | kind << 32;
            self.put64(l.events + n * 64, head | random() & 0xffff_f000_0000_0000);
        }
        self.put64(
            offset_of!(SegmentHeader, event_head) as u64,
            if wild { random() } else { 256 },
        );
        for (field, value) in fields {
            self.put32(field as u64, value as u32);
        }
        for word in (offset_of!(SegmentHeader, off_threads)..size_of::<SegmentHeader>()).step_by(8)
        {
            self.put64(word as u64, random());
        }
    }
}
