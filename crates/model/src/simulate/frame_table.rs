//! Pages: where in the simulated memory an address lies, and on which node.
//!
//! A page gets a frame when it is first touched, and lines are numbered by frame, so that a line
//! is a 32-bit number and its state is kept in plain arrays. Frames are coloured: a frame equals
//! its page modulo the number of colours, so that a line falls into the same set of every cache as
//! it does by its address.
use super::simulated_machine::SimulatedMachine;
use super::tag_array::LINE_LIMIT;
use hither_table::prefetch;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

pub(super) const PAGE: u32 = hither_profile::PAGE_SIZE as u32;
/// 2^64 divided by the golden ratio.
const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
/// Most colours that are kept apart: a level with more sets is indexed by frame.
const COLOURS: u64 = 1 << 16;
const RECENT_BITS: u32 = 15;

#[derive(Clone, Copy, Default)]
struct PageFrame {
    number: u64,
    home: u32,
    /// The window in which its home was last looked up; 0: none.
    asked: u32,
}

pub struct FrameTable {
    frames: HashMap<u64, u32, BuildHasherDefault<MultiplyHasher>>,
    /// The pages last looked up: number and frame, by a hash of the number.
    recent: Vec<(u64, u32)>,
    /// By frame.
    pages: Vec<PageFrame>,
    /// By colour: frames given out.
    next: Vec<u32>,
    lines_per_page: u32,
    line_bits: u32,
    nodes: u32,
    /// From 1.
    window: u32,
    /// Homes are those of the first toucher in each window.
    next_touch: bool,
    /// Pages that went to another node, for whoever looked them up to take into account.
    pub moved: u32,
}

impl FrameTable {
    /// For a checked machine.
    pub fn new(machine: &SimulatedMachine) -> Self {
        let lines_per_page = PAGE / machine.line;
        let mut colours = 1;
        for level in &machine.levels {
            let sets = u64::from(level.sets(machine.line));
            let needed = sets / gcd(sets, u64::from(lines_per_page));
            let both = colours / gcd(colours, needed) * needed;
            if both <= COLOURS {
                colours = both;
            }
        }
        FrameTable {
            frames: HashMap::default(),
            recent: vec![(u64::MAX, 0); 1 << RECENT_BITS],
            pages: Vec::new(),
            next: vec![0; colours as usize],
            lines_per_page,
            line_bits: machine.line.trailing_zeros(),
            nodes: machine.nodes.len() as u32,
            window: 1,
            next_touch: false,
            moved: 0,
        }
    }

    /// The number of the line of `machine.line` bytes that begins at or before `address`. A page
    /// that is new gets the home that `home` says, or else `toucher`, and one that is new in this
    /// window what `home` says if it says anything. `None`: there are more
    /// pages than can be numbered.
    #[inline(always)]
    pub fn line_of_address(
        &mut self,
        address: u64,
        toucher: u32,
        home: &dyn Fn(u64) -> Option<u32>,
    ) -> Option<u32> {
        let number = address / u64::from(PAGE);
        let (page, frame) = self.recent[recent_slot(number)];
        let frame = if page == number {
            frame
        } else {
            self.look_up(number, toucher, home)?
        };
        Some(frame * self.lines_per_page + ((address as u32 % PAGE) >> self.line_bits))
    }

    /// The same for an address whose page was looked up recently.
    #[inline]
    pub fn recent_line(&self, address: u64) -> Option<u32> {
        let number = address / u64::from(PAGE);
        let (page, frame) = self.recent[recent_slot(number)];
        let within = (address as u32 % PAGE) >> self.line_bits;
        (page == number).then(|| frame * self.lines_per_page + within)
    }

    /// Prefetches into the host's caches what [`FrameTable::recent_line`] reads for an address.
    #[inline]
    pub fn prefetch_recent(&self, address: u64) {
        prefetch(&self.recent, recent_slot(address / u64::from(PAGE)));
    }

    /// The same for what [`FrameTable::home_of_line`] reads for a line.
    #[inline]
    pub fn prefetch_frame(&self, line: u32) {
        prefetch(
            &self.pages,
            (line >> self.lines_per_page.trailing_zeros()) as usize,
        );
    }

    #[inline(never)]
    fn look_up(
        &mut self,
        number: u64,
        toucher: u32,
        home: &dyn Fn(u64) -> Option<u32>,
    ) -> Option<u32> {
        let known = self.frames.get(&number).copied();
        let frame = match known {
            Some(frame) => frame,
            None => self.allocate_frame(number)?,
        };
        let page = &mut self.pages[frame as usize];
        if page.asked != self.window {
            let stays = if page.asked == 0 { toucher } else { page.home };
            page.asked = self.window;
            let home = match self.next_touch {
                true => Some(toucher),
                false => home(number * u64::from(PAGE)).filter(|&n| n < self.nodes),
            };
            let home = home.unwrap_or(stays);
            self.moved += u32::from(stays != home && known.is_some());
            page.home = home;
        }
        self.recent[recent_slot(number)] = (number, frame);
        Some(frame)
    }

    fn allocate_frame(&mut self, number: u64) -> Option<u32> {
        let colours = self.next.len() as u32;
        let colour = (number % u64::from(colours)) as u32;
        let next = &mut self.next[colour as usize];
        // Frame 0 is left out, so that no line has the number 0.
        if colour == 0 && *next == 0 {
            *next = 1;
        }
        let frame = u64::from(*next) * u64::from(colours) + u64::from(colour);
        if (frame + 1) * u64::from(self.lines_per_page) > u64::from(LINE_LIMIT) {
            return None;
        }
        *next += 1;
        let at = frame as usize;
        if at >= self.pages.len() {
            self.pages.resize(at + 1, PageFrame::default());
        }
        self.pages[at].number = number;
        self.frames.insert(number, frame as u32);
        Some(frame as u32)
    }

    /// Homes are looked up again when pages are next touched: some are placed elsewhere now, or
    /// other memory is mapped at their addresses. Pages for which no home is given stay, but with
    /// `next_touch`: then pages move to whoever touches them next.
    pub fn refresh_homes(&mut self, next_touch: bool) {
        self.next_touch = next_touch;
        self.recent.fill((u64::MAX, 0));
        self.window += 1;
    }

    /// The node that holds a line, and the line's number in memory: by address, so that it is the
    /// same whatever the order in which pages were touched.
    pub fn home_of_line(&self, line: u32) -> (usize, u64) {
        // Lines of a page are a power of two.
        let bits = self.lines_per_page.trailing_zeros();
        let page = self.pages[(line >> bits) as usize];
        let within = line & (self.lines_per_page - 1);
        let number = (page.number << bits) + u64::from(within);
        (page.home as usize, number)
    }

    /// Lines of a page, a power of two.
    pub fn lines_per_page(&self) -> u32 {
        self.lines_per_page
    }
}

/// Where a page's number is in [`FrameTable::recent`]: areas of threads often are a power of two apart. Four pages side by side
/// are so there as well, in one line of the host's caches.
#[inline]
fn recent_slot(number: u64) -> usize {
    let group = (number / 4).wrapping_mul(MIX) >> (64 - RECENT_BITS + 2);
    (group * 4 + number % 4) as usize
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 {
        a
    } else {
        gcd(b, a % b)
    }
}

/// A hash of one number. Page numbers come from a trace, not from an adversary.
#[derive(Default)]
struct MultiplyHasher(u64);

impl Hasher for MultiplyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &b in bytes {
            self.write_u64(u64::from(b));
        }
    }

    fn write_u64(&mut self, n: u64) {
        let mixed = (self.0 ^ n).wrapping_mul(MIX);
        self.0 = mixed ^ (mixed >> 32);
    }
}
