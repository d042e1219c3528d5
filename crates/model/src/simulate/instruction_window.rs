//! A core's window over the instruction stream.
//!
//! Instruction i enters no earlier than instruction i - window has left; `width` enter and leave
//! in a cycle, one each `step` = 1 / width, and they leave in order. Instructions that access no
//! memory never delay others. An access issues when it has entered and what its address depends on
//! is there; a read leaves when its data are there, a write when it has issued. This is the
//! interval view of an out-of-order core: Eyerman, Eeckhout, Karkhanis, Smith, "A mechanistic
//! performance model for superscalar out-of-order processors" (2009).

/// Accesses of a thread that are kept; a power of two. A dependence on an older one causes no
/// delay, and a window with more accesses than these counts as shorter.
const REMEMBERED: usize = 512;
/// Accesses that are compared at once; as many leave at a time, mostly.
const AT_ONCE: usize = 4;
/// Cycles: far more than sums of [`REMEMBERED`] times are rounded by, whatever the time.
const ROUNDING: f64 = 1.0;

#[derive(Clone, Copy, Default)]
struct IssuedAccess {
    /// Number of the instruction.
    instruction: u64,
    /// When its data were there, and when it left.
    done: f64,
    left: f64,
}

/// What a thread has of its core.
#[derive(Clone, Copy, Default)]
pub struct CoreShare {
    /// Cycles per instruction.
    pub step: f64,
    /// Instructions of the window, and the cycles that as many take.
    pub window: u64,
    pub room: f64,
}

impl CoreShare {
    /// What each of some threads has of a core that enters `width` instructions a cycle into a window of so many.
    pub fn of_core(width: f64, window: u32, threads: u32) -> Self {
        let step = f64::from(threads) / width;
        let window = (window / threads).max(1);
        CoreShare {
            step,
            window: u64::from(window),
            room: f64::from(window) * step,
        }
    }
}

/// The accesses of a thread that are in its window.
pub struct InstructionWindow {
    past: Box<[IssuedAccess; REMEMBERED]>,
    /// Accesses so far, and those known to have left when one entered, not always the last.
    accesses: usize,
    gone: usize,
    /// The core's part that this thread has, and the first access that has had it since.
    share: CoreShare,
    shared_from: usize,
    /// Instructions so far.
    instructions: u64,
    /// The last access: when it entered, and when it left.
    entered: f64,
    left: f64,
}

impl InstructionWindow {
    pub fn new() -> Self {
        InstructionWindow {
            past: Box::new([IssuedAccess::default(); REMEMBERED]),
            accesses: 0,
            gone: 0,
            share: CoreShare::default(),
            shared_from: 0,
            instructions: 0,
            entered: 0.0,
            left: 0.0,
        }
    }

    /// Nothing enters before `now`.
    pub fn restart(&mut self, now: f64) {
        self.entered = self.entered.max(now);
        self.left = self.left.max(now);
    }

    /// The next access, `after` instructions later: it enters, and this is when it may issue.
    #[inline]
    pub fn enter(&mut self, after: u32, depends: u32, share: &CoreShare) -> f64 {
        if share.step != self.share.step {
            self.divide_anew(share);
        }
        self.instructions += u64::from(after);
        let mut at = self.entered + f64::from(after) * share.step;
        let first = self.instructions.saturating_sub(share.window);
        if !self.has_room(first) {
            at = later(at, self.room_from(first));
        }
        self.entered = at;
        let depends = depends as usize;
        if depends == 0 || depends > self.accesses || depends >= REMEMBERED {
            return at;
        }
        later(at, self.past[(self.accesses - depends) % REMEMBERED].done)
    }

    /// Whether the window surely is no limit for an access for which all up to the instruction `first` are to have left.
    ///
    /// An access leaves a step for each instruction after the one before, or later; so the last of those up to `first` left
    /// at least a window's steps before one that enters now could leave right after the last.
    #[inline]
    fn has_room(&self, first: u64) -> bool {
        (self.left - self.share.room + ROUNDING <= self.entered)
            & (self.gone > self.shared_from)
            & (self.accesses - self.gone < REMEMBERED - 1)
            & (first > 0)
    }

    /// When there is room for an access for which all up to the instruction `first` are to have left.
    fn room_from(&mut self, first: u64) -> f64 {
        let oldest = self.accesses.saturating_sub(REMEMBERED - 1);
        self.gone = self.last_to_leave(self.gone.max(oldest), first);
        if self.gone == 0 {
            return 0.0;
        }
        let last = &self.past[(self.gone - 1) % REMEMBERED];
        let behind = first.saturating_sub(last.instruction).cast_signed() as f64;
        last.left + behind * self.share.step
    }

    /// The thread has another part of its core from now on.
    #[cold]
    fn divide_anew(&mut self, share: &CoreShare) {
        // Those that left by the window that was stay so.
        let first = self.instructions.saturating_sub(self.share.window);
        self.gone = self.last_to_leave(self.gone, first);
        self.share = *share;
        self.shared_from = self.accesses;
    }

    /// How many accesses, of which `gone` are known, are to have left before one enters with the
    /// instruction that `first` makes room for.
    #[inline]
    fn last_to_leave(&self, mut gone: usize, first: u64) -> usize {
        // How many it is hard to foresee, for the host as well: some are compared at once, without
        // a branch for each. Instructions are in order, so those that have left come first.
        loop {
            let left: [bool; AT_ONCE] = std::array::from_fn(|n| {
                let access = &self.past[(gone + n) % REMEMBERED];
                (gone + n < self.accesses) & (access.instruction <= first)
            });
            let more: usize = left.into_iter().map(usize::from).sum();
            gone += more;
            if more < AT_ONCE {
                return gone;
            }
        }
    }

    /// The access that entered last issued at `issued` and has its data at `done`.
    #[inline]
    pub fn retire(&mut self, after: u32, step: f64, issued: f64, done: f64, write: bool) {
        if step != self.share.step {
            // It was another one for this access only.
            self.shared_from = self.accesses + 1;
        }
        let ready = if write { issued } else { done };
        self.left = later(self.left + f64::from(after) * step, ready);
        self.past[self.accesses % REMEMBERED] = IssuedAccess {
            instruction: self.instructions,
            done: ready,
            left: self.left,
        };
        self.accesses += 1;
    }

    /// When all so far have left.
    pub fn last_retired(&self) -> f64 {
        self.left
    }
}

/// The later of two times. `f64::max` takes longer, since it has to know numbers from others.
#[inline]
pub fn later(a: f64, b: f64) -> f64 {
    if b > a {
        b
    } else {
        a
    }
}

/// The outstanding misses of a core.
pub struct MshrSlots {
    /// When each of them ends, for as many as there may be.
    over: Vec<f64>,
    /// The one that ends first, and when.
    first: usize,
    free: f64,
}

impl MshrSlots {
    pub fn new(most: u32) -> Self {
        MshrSlots {
            over: vec![0.0; most as usize],
            first: 0,
            free: 0.0,
        }
    }

    /// When another can begin.
    #[inline]
    pub fn free_from(&self) -> f64 {
        self.free
    }

    /// A miss begins that is over at `done`.
    pub fn allocate(&mut self, done: f64) {
        self.over[self.first] = done;
        self.free = done;
        for (n, &over) in self.over.iter().enumerate() {
            if over < self.free {
                (self.first, self.free) = (n, over);
            }
        }
    }
}
