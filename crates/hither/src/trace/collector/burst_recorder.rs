//! `--bursts` and `--full`: when windows open and close, and what they hold on its way from
//! the segment to the file.
//!
//! A window closes when every thread had its share of it, or after a limit, since a thread
//! that waits never has it. The first windows follow one another faster, so that a short run
//! has some; when half of what is left of the budget is used, they become rarer.
use super::regions::RegionMap;
use super::threads::ThreadTracker;
use super::window_regions::{RegionSnapshot, WindowSnapshots};
use hither_model::units::plural;
use hither_profile::bursts::{BurstPiece, NamedPages, CUT, FRESH, MAX_PLACES, MAX_WINDOWS, WAITED};
use hither_profile::{BurstInfo, BurstOptions, ProcessIx, ThreadIx};
use hither_profile::{BurstWriter, PieceHeader};
use hither_sys::{wire, RawPiece, Segment};
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

/// From the start of the run to the first window, and from there to the second.
const FIRST_WINDOW_NS: u64 = 20_000_000;
const SECOND_WINDOW_NS: u64 = 50_000_000;
/// How many times rarer windows become.
const INTERVAL_GROWTH: u64 = 4;
/// Pieces in memory at a time.
const PIECE_BATCH: usize = 256;
/// Bytes of blocks' descriptions in memory at a time.
const BLOCK_BATCH: usize = 1 << 20;
/// Blocks that were not complete when they were looked at, as many as there may be threads.
const MAX_INCOMPLETE: usize = wire::MAX_THREADS as usize;
/// Regions that disappeared before a window ended whose pages still have names.
const MAX_GONE_REGIONS: usize = 1024;
/// Of a run of pages with a name in the file, roughly.
const NAMED_PAGES_BYTES: u64 = 16;
/// What part of the budget is kept for these with `--full`, where they come last.
const NAMES_BUDGET_DIVISOR: u64 = 8;
/// Windows that may get further names at a time: each thread is in one at most.
const MAX_LATE: usize = 64;
/// A process that said so long ago that it ends writes no more.
const EXIT_GRACE_NS: u64 = 1_000_000_000;

pub struct BurstRecorder {
    writer: BurstWriter,
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
    /// Something did not fit into the budget: nothing comes after it.
    full: bool,
    /// When that was seen.
    ended: Option<u64>,
    next_block: u32,
    incomplete: Vec<u32>,
    /// Bytes of all descriptions so far.
    described: u64,
    places: WindowSnapshots,
    /// Runs of pages in all windows that have pieces.
    rows: u64,
    windows: BTreeSet<u32>,
    /// Windows of which pieces came after they had been closed.
    late: BTreeSet<u32>,
    /// By thread: window and number of the last of its pieces that are kept. They do not come
    /// in this order.
    last: HashMap<u32, (u32, u32)>,
    accesses: u64,
    /// Windows whose pages have no names, since there are too many.
    nameless: u64,
}

impl BurstRecorder {
    pub fn new(
        writer: BurstWriter,
        options: BurstOptions,
        budget: u64,
        started: u64,
    ) -> BurstRecorder {
        BurstRecorder {
            writer,
            options,
            budget,
            rarer_at: budget / 2,
            gap: SECOND_WINDOW_NS.min(options.every),
            every: options.every,
            started,
            window: 0,
            open: false,
            opened: started,
            full: false,
            ended: None,
            next_block: 1,
            incomplete: Vec::new(),
            described: 0,
            places: WindowSnapshots::default(),
            rows: 0,
            windows: BTreeSet::new(),
            late: BTreeSet::new(),
            last: HashMap::new(),
            accesses: 0,
            nameless: 0,
        }
    }

    fn records_everything(&self) -> bool {
        self.options.length == 0
    }

    /// Before the program starts.
    pub fn begin(&mut self, segment: &Segment) {
        if self.records_everything() {
            self.open_next(segment, self.started);
        }
    }

    fn open_next(&mut self, segment: &Segment, now: u64) {
        self.window += 1;
        self.open = true;
        self.opened = now;
        segment.open_window(self.window, self.options.length);
    }

    /// Threads may be recording now.
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// At the end of each slice.
    pub fn end_slice(
        &mut self,
        segment: &Segment,
        now: u64,
        threads: &ThreadTracker,
        regions: &RegionMap,
    ) {
        self.drain(segment);
        self.add_places(regions);
        segment.free_pieces(|process| is_gone(segment, threads, process, now));
        self.writer.keep_alive();
        if self.ended.is_some() {
            return;
        }
        let full = self.full || self.bytes_used() >= self.budget || self.is_at_reader_limit();
        if full || self.writer.failed().is_some() {
            self.full = true;
            self.ended = Some(now);
            self.close_window(segment, regions);
        } else if self.open {
            if !self.records_everything() && self.window_is_over(segment, now, threads) {
                self.close_window(segment, regions);
            }
        } else if now >= self.next_window_at() {
            if self.window > 0 {
                self.gap = self.gap.saturating_mul(2).min(self.every);
            }
            self.open_next(segment, now);
        }
    }

    /// More windows or names than this a reader does not take.
    fn is_at_reader_limit(&self) -> bool {
        self.windows.len() >= MAX_WINDOWS || self.rows >= MAX_PLACES as u64
    }

    /// Bytes that the file has, and what names will take.
    fn bytes_used(&self) -> u64 {
        let places = match self.records_everything() {
            true => self.budget / NAMES_BUDGET_DIVISOR,
            false => self.rows.saturating_mul(NAMED_PAGES_BYTES),
        };
        self.writer.bytes().saturating_add(places)
    }

    /// Whether `bytes` more fit. Else recording ends.
    fn fits(&mut self, segment: &Segment, bytes: usize) -> bool {
        if !self.full && self.bytes_used().saturating_add(bytes as u64) >= self.budget {
            self.full = true;
            segment.close_window();
        }
        !self.full
    }

    fn next_window_at(&self) -> u64 {
        match self.window {
            0 => self.started + FIRST_WINDOW_NS,
            _ => self.opened.saturating_add(self.gap),
        }
    }

    fn window_is_over(&self, segment: &Segment, now: u64, threads: &ThreadTracker) -> bool {
        let had = self.window.wrapping_mul(2) | 1;
        let live = threads.running().map(|(slot, _)| segment.thread(slot));
        let live = live.filter(|t| t.state == wire::THREAD_LIVE);
        let (mut threads, mut waiting) = (0u64, false);
        for thread in live {
            threads += 1;
            waiting |= thread.recorded != had;
        }
        let processors = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
        let longest = 4 + 4 * threads / processors;
        let most = self.options.length.saturating_mul(longest);
        let passed = now.saturating_sub(self.opened);
        passed >= most || !waiting && threads > 0 && passed >= self.options.length
    }

    fn close_window(&mut self, segment: &Segment, regions: &RegionMap) {
        segment.close_window();
        if self.open {
            self.keep_places(segment, regions);
        }
        self.open = false;
        let more = !self.records_everything() && self.ended.is_none();
        while more && self.bytes_used() >= self.rarer_at && self.rarer_at < self.budget {
            let left = self.budget - self.rarer_at;
            self.rarer_at += (left / 2).max(1);
            self.every = self.every.saturating_mul(INTERVAL_GROWTH);
            self.gap = self.gap.saturating_mul(INTERVAL_GROWTH);
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
                if pieces.len() == PIECE_BATCH {
                    break;
                }
            }
            let last = pieces.len() < PIECE_BATCH;
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
        let next = segment.next_record_block().max(self.next_block);
        let before = std::mem::take(&mut self.incomplete);
        let numbers = before.into_iter().chain(self.next_block..next);
        self.next_block = next;
        let (mut batch, mut size) = (Vec::new(), 0);
        for number in numbers {
            let mut bytes = Vec::new();
            if !segment.append_record_block(number, &mut bytes) {
                self.incomplete.push(number);
                continue;
            }
            size += bytes.len();
            batch.push((number, bytes));
            if size >= BLOCK_BATCH {
                self.write_batch(segment, &batch, size);
                (batch, size) = (Vec::new(), 0);
            }
        }
        self.write_batch(segment, &batch, size);
        let forgotten = self.incomplete.len().saturating_sub(MAX_INCOMPLETE);
        self.incomplete.drain(..forgotten);
    }

    fn write_batch(&mut self, segment: &Segment, batch: &[(u32, Vec<u8>)], size: usize) {
        // Descriptions lie side by side unless the target overwrote their offsets.
        self.described += size as u64;
        let possible = self.described <= wire::RECORD_BYTES.into();
        if batch.is_empty() || !possible || !self.fits(segment, size) {
            self.full |= !possible;
            return;
        }
        let blocks = batch.iter().map(|(number, bytes)| (*number, &bytes[..]));
        self.writer.append_blocks(blocks);
    }

    fn write_piece(&mut self, segment: &Segment, record: &RawPiece) {
        let Some(mut head) = self.piece_header(segment, &record.head) else {
            return;
        };
        let mut code = &record.code[..];
        let (thread, at) = (record.head.thread, (head.window, head.sequence));
        let later = self.last.get(&thread).is_none_or(|last| at > *last);
        if later && self.full {
            return;
        }
        if later && !self.fits(segment, code.len()) {
            // In its stead a piece of nothing, which says that the thread did more.
            code = &[];
            head.flags = CUT | head.flags & FRESH;
            (head.piece.accesses, head.piece.instructions) = (0, 0);
        }
        if later {
            self.last.insert(thread, at);
        }
        self.writer.append_piece(&head, code);
        if self.writer.failed().is_some() {
            return;
        }
        if self.windows.insert(head.window) {
            self.rows += self.places.interval_count(head.window);
        }
        self.accesses += head.piece.accesses;
        let closed = !self.open || head.window < self.window;
        if closed && self.late.len() < MAX_LATE {
            self.late.insert(head.window);
        }
    }

    /// What the file says of a piece; `None` when it is none.
    fn piece_header(&self, segment: &Segment, head: &wire::SegmentPiece) -> Option<PieceHeader> {
        let since = |clock: u64| clock.saturating_sub(self.started);
        let start = since(head.start_ns);
        let flag = |on: u32, flag: u32| if head.flags & on != 0 { flag } else { 0 };
        let piece = BurstPiece {
            thread: ThreadIx(head.thread.checked_sub(1)?),
            process: ProcessIx(head.process.checked_sub(1)?),
            start,
            end: since(head.end_ns).max(start),
            waited: head.flags & wire::PIECE_WAITED != 0,
            accesses: head.accesses.into(),
            instructions: head.instructions.into(),
        };
        let sane = head.thread < segment.next_thread()
            && head.process < segment.next_process()
            && (1..=self.window).contains(&head.window)
            && piece.is_possible();
        let flags = flag(wire::PIECE_WAITED, WAITED)
            | flag(wire::PIECE_FRESH, FRESH)
            | flag(wire::PIECE_CUT, CUT);
        sane.then_some(PieceHeader {
            window: head.window,
            sequence: head.sequence,
            piece,
            flags,
        })
    }

    /// The program has ended.
    pub fn finish(&mut self, segment: &Segment, now: u64, regions: &RegionMap) {
        segment.close_window();
        self.drain(segment);
        self.add_places(regions);
        if self.full {
            self.ended.get_or_insert(now);
        }
        if self.open {
            self.keep_places(segment, regions);
            self.open = false;
        }
    }

    /// Of the processes that lived during the window.
    fn keep_places(&mut self, segment: &Segment, regions: &RegionMap) {
        let lived = |process: u32| {
            let process = segment.process(process);
            process.state == wire::PROCESS_LIVE || process.end_ns >= self.opened
        };
        let processes: Vec<u32> = regions.processes().filter(|p| lived(*p)).collect();
        let most =
            self.budget / NAMES_BUDGET_DIVISOR / NAMED_PAGES_BYTES / processes.len().max(1) as u64;
        let gone = if self.records_everything() {
            most as usize
        } else {
            MAX_GONE_REGIONS
        };
        let pictures = processes.iter().map(|p| (*p, regions.snapshot(*p, gone)));
        self.places.add_window(self.window, pictures.collect());
        if self.windows.contains(&self.window) {
            self.rows += self.places.interval_count(self.window);
        }
    }

    /// Threads that go on for a moment when a window closes may have mapped memory.
    fn add_places(&mut self, regions: &RegionMap) {
        for window in std::mem::take(&mut self.late) {
            let before = self.places.interval_count(window);
            self.places
                .extend_window(window, |p| regions.snapshot(p, 0));
            self.rows += self.places.interval_count(window) - before;
        }
    }

    /// The names of pages, behind all pieces; `named` makes rows of a snapshot.
    pub fn write_page_names(&mut self, mut named: impl FnMut(&RegionSnapshot) -> Vec<NamedPages>) {
        let mut left = MAX_PLACES;
        for (window, snapshot) in self.places.snapshots() {
            if !self.windows.contains(&window) {
                continue;
            }
            let rows = named(snapshot);
            if let Some(rest) = left.checked_sub(rows.len()) {
                left = rest;
                self.writer.append_named_pages(window, &rows);
            } else {
                self.nameless += 1;
            }
        }
    }

    /// The end of the file.
    pub fn complete(self) -> (BurstWriter, BurstInfo) {
        let info = BurstInfo {
            windows: self.windows.len() as u64,
            accesses: self.accesses,
            bytes: self.writer.bytes(),
        };
        (self.writer, info)
    }

    /// What could not be recorded, a sentence each. Once pages have their names.
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
            let why = match self.is_at_reader_limit() {
                true => "there were as many windows, or runs of pages in them, as a profile may have; record fewer windows, see --bursts",
                false => "it had used its part of the size budget; --max-size gives more",
            };
            say(
                true,
                format!(
                    "Recording of accesses ended after {:.2} s, when {why}.",
                    seconds(at - self.started)
                ),
            );
        }
        say(self.nameless > 0, format!("Of {} it is not known which memory pages belong to: there were more than {MAX_PLACES} runs of pages. Record fewer windows, see --bursts.", plural(self.nameless, "window", "windows")));
        say(
            self.every > self.options.every && self.ended.is_none(),
            format!("Windows of --bursts became rarer, one in {:.1} s in the end, to stay within the size budget.", seconds(self.every)),
        );
        say(lost.pieces > 0, format!("{} there was no room for what a thread did in a window: its part of it ends early.", plural(lost.pieces, "time", "times")));
        say(
            lost.blocks > 0,
            format!(
                "The accesses of {} past the tracer's limit were counted but not recorded.",
                plural(lost.blocks, "basic block", "basic blocks")
            ),
        );
        found
    }
}

/// Whether no thread of a process writes into the segment any more.
fn is_gone(segment: &Segment, threads: &ThreadTracker, process: u32, now: u64) -> bool {
    let said = segment.process(process);
    let ended = said.state == wire::PROCESS_EXITED || said.state == wire::PROCESS_EXECED;
    ended && now.saturating_sub(said.end_ns) > EXIT_GRACE_NS
        || threads.process_died_at(process).is_some()
}
