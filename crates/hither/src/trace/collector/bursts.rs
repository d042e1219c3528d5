//! `--bursts` and `--full`: when windows open and close, and what they hold on its way from
//! the segment to the file.
//!
//! A window closes when every thread had its share of it, or after a limit, since a thread
//! that waits never has it. The first windows follow one another faster, so that a short run
//! has some; when half of what is left of the budget is used, they become rarer.
use super::places::{Places, Snapshot};
use super::regions::Regions;
use hither_profile::bursts::{Piece, PieceHead, Writer, CUT, FRESH, MAX_ACCESSES, WAITED};
use hither_profile::{BurstInfo, BurstOptions, ProcessIx, ThreadIx};
use hither_sys::{wire, PieceRecord, Segment};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// From the start of the run to the first window, and from there to the second.
const FIRST: u64 = 20_000_000;
const SECOND: u64 = 50_000_000;
/// How many times rarer windows become.
const RARER: u64 = 4;
/// Pieces in memory at a time.
const BATCH: usize = 256;
/// Regions that disappeared before a window ended whose pages still have names.
const GONE: usize = 1024;

pub struct Recorder {
    writer: Writer,
    options: BurstOptions,
    /// Bytes of the file.
    budget: u64,
    /// Where the file will have used half of what was left.
    rarer_at: u64,
    /// To the next window, and what that may grow to.
    gap: u64,
    every: u64,
    started: u64,
    window: u32,
    open: bool,
    opened: u64,
    /// When the budget was used up.
    ended: Option<u64>,
    next_block: u32,
    incomplete: Vec<u32>,
    places: Places,
    windows: BTreeSet<u32>,
    accesses: u64,
}

impl Recorder {
    pub fn new(writer: Writer, options: BurstOptions, budget: u64, started: u64) -> Recorder {
        Recorder {
            writer,
            options,
            budget,
            rarer_at: budget / 2,
            gap: SECOND.min(options.every),
            every: options.every,
            started,
            window: 0,
            open: false,
            opened: started,
            ended: None,
            next_block: 1,
            incomplete: Vec::new(),
            places: Places::default(),
            windows: BTreeSet::new(),
            accesses: 0,
        }
    }

    fn everything(&self) -> bool {
        self.options.length == 0
    }

    /// Before the program starts.
    pub fn begin(&mut self, segment: &Segment) {
        if self.everything() {
            self.open_next(segment, self.started);
        }
    }

    fn open_next(&mut self, segment: &Segment, now: u64) {
        self.window += 1;
        self.open = true;
        self.opened = now;
        segment.open_window(self.window, self.options.length);
    }

    /// At the end of each slice.
    pub fn tick(&mut self, segment: &Segment, now: u64, running: &[u32], regions: &Regions) {
        self.drain(segment);
        self.writer.keep_alive();
        if self.ended.is_some() {
            return;
        }
        if self.writer.bytes() >= self.budget || self.writer.failed().is_some() {
            self.ended = Some(now);
            self.close(segment, regions);
        } else if self.open {
            if !self.everything() && self.is_over(segment, now, running) {
                self.close(segment, regions);
            }
        } else if now >= self.next_at() {
            if self.window > 0 {
                self.gap = self.gap.saturating_mul(2).min(self.every);
            }
            self.open_next(segment, now);
        }
    }

    fn next_at(&self) -> u64 {
        match self.window {
            0 => self.started + FIRST,
            _ => self.opened + self.gap,
        }
    }

    fn is_over(&self, segment: &Segment, now: u64, running: &[u32]) -> bool {
        let had = 2 * self.window + 1;
        let live = running.iter().map(|&slot| segment.thread(slot));
        let live = live.filter(|t| t.state == wire::THREAD_LIVE);
        let (mut threads, mut waiting) = (0u64, false);
        for thread in live {
            threads += 1;
            waiting |= thread.recorded != had;
        }
        let processors = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
        let most = self.options.length * (4 + 4 * threads / processors);
        let passed = now - self.opened;
        passed >= most || !waiting && threads > 0 && passed >= self.options.length
    }

    fn close(&mut self, segment: &Segment, regions: &Regions) {
        segment.close_window();
        if self.open {
            self.keep_places(regions);
        }
        self.open = false;
        while self.writer.bytes() >= self.rarer_at && !self.everything() && self.ended.is_none() {
            let left = self.budget - self.rarer_at;
            self.rarer_at += (left / 2).max(1);
            self.every = self.every.saturating_mul(RARER);
            self.gap = self.gap.saturating_mul(RARER);
        }
    }

    /// Fetches what is whole; true when that was much.
    pub fn drain(&mut self, segment: &Segment) -> bool {
        let (mut from, mut much) = (0, false);
        loop {
            let mut pieces = Vec::new();
            while let Some((number, piece)) = segment.take_piece(from) {
                from = number + 1;
                pieces.push(piece);
                if pieces.len() == BATCH {
                    break;
                }
            }
            let last = pieces.len() < BATCH;
            if !pieces.is_empty() {
                // Blocks are described before they run.
                self.write_blocks(segment);
            }
            for piece in pieces {
                self.write_piece(segment, &piece);
            }
            if last {
                return much;
            }
            much = true;
        }
    }

    fn write_blocks(&mut self, segment: &Segment) {
        let mut numbers = std::mem::take(&mut self.incomplete);
        let next = segment.next_record_block();
        numbers.extend(self.next_block..next.max(self.next_block));
        self.next_block = next.max(self.next_block);
        let mut blocks: Vec<(u32, Vec<u8>)> = Vec::new();
        for number in numbers {
            let mut bytes = Vec::new();
            if segment.append_record_block(number, &mut bytes) {
                blocks.push((number, bytes));
            } else {
                self.incomplete.push(number);
            }
        }
        let blocks = blocks.iter().map(|(number, bytes)| (*number, &bytes[..]));
        self.writer.blocks(blocks);
    }

    fn write_piece(&mut self, segment: &Segment, record: &PieceRecord) {
        let head = &record.head;
        let sane = (1..segment.next_thread()).contains(&head.thread)
            && (1..segment.next_process()).contains(&head.process)
            && head.accesses as usize <= MAX_ACCESSES
            && (1..=self.window).contains(&head.window);
        if !sane || self.writer.bytes() + record.code.len() as u64 >= self.budget {
            return;
        }
        let since = |clock: u64| clock.saturating_sub(self.started);
        let start = since(head.start_ns);
        let flag = |on: u32, flag: u32| if head.flags & on != 0 { flag } else { 0 };
        let piece = Piece {
            thread: ThreadIx(head.thread - 1),
            process: ProcessIx(head.process - 1),
            start,
            end: since(head.end_ns).max(start),
            waited: head.flags & wire::PIECE_WAITED != 0,
            accesses: head.accesses.into(),
            instructions: head.instructions.into(),
        };
        let flags = flag(wire::PIECE_WAITED, WAITED)
            | flag(wire::PIECE_FRESH, FRESH)
            | flag(wire::PIECE_CUT, CUT);
        let head = PieceHead {
            window: head.window,
            sequence: head.sequence,
            piece,
            flags,
        };
        self.writer.piece(&head, &record.code);
        self.windows.insert(head.window);
        self.accesses += piece.accesses;
    }

    /// The program has ended.
    pub fn finish(&mut self, segment: &Segment, regions: &Regions) {
        segment.close_window();
        if self.open {
            self.keep_places(regions);
            self.open = false;
        }
        self.drain(segment);
    }

    fn keep_places(&mut self, regions: &Regions) {
        let gone = if self.everything() { usize::MAX } else { GONE };
        let snapshot = Arc::new(regions.picture(gone));
        self.places.keep(self.window, snapshot);
    }

    /// The end of the file; `named` makes rows of a snapshot.
    pub fn complete(
        mut self,
        mut named: impl FnMut(&Snapshot) -> Vec<hither_profile::bursts::Place>,
    ) -> (Writer, BurstInfo) {
        for (window, snapshot) in self.places.of_windows() {
            if self.windows.contains(&window) {
                self.writer.places(window, &named(snapshot));
            }
        }
        let info = BurstInfo {
            windows: self.windows.len() as u64,
            accesses: self.accesses,
            bytes: self.writer.bytes(),
        };
        (self.writer, info)
    }

    /// What could not be recorded, a sentence each.
    pub fn limits(&self, segment: &Segment) -> Vec<String> {
        let lost = segment.lost_records();
        let seconds = |nanos: u64| Duration::from_nanos(nanos).as_secs_f64();
        let mut found = Vec::new();
        let mut say = |when: bool, what: String| {
            if when {
                found.push(what);
            }
        };
        let failed = self.writer.failed();
        if let Some(why) = failed {
            say(true, format!("The bursts end early, they could not be written ({why}): make room on the disk and trace again."));
        }
        if let Some(at) = self.ended.filter(|_| failed.is_none()) {
            say(true, format!("Recording of accesses ended after {:.2} s, when it had used its part of the size budget; --max-size gives more.", seconds(at - self.started)));
        }
        say(
            self.every > self.options.every && self.ended.is_none(),
            format!("Windows of --bursts became rarer, one in {:.1} s in the end, to stay within the size budget.", seconds(self.every)),
        );
        say(lost.pieces > 0, format!("{} times there was no room for what a thread did in a window: its part of it ends early.", lost.pieces));
        say(lost.blocks > 0, format!("The accesses of {} basic blocks past the tracer's limit were counted but not recorded.", lost.blocks));
        found
    }
}
