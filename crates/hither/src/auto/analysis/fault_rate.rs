//! How many more page faults to cause (SPCD III.B.2): every 10 ms as many as keep them at a
//! chosen share of all faults, within a budget of the target's processor time.
//!
//! A program that has touched all its memory faults no more, and a share of nothing would
//! be nothing: then some pages are taken all the same, in proportion to the threads. kMAF ages
//! its matrix every 100 ms, so that about as many events as threads must come in that time
//! for what is in it to be more than chance. Where fewer than every other fault tells of one,
//! as in a grid of which only borders are shared, more pages are taken.
//!
//! Waking up costs as well. Where a look every 10 ms would use up the budget, there are
//! fewer, and more pages each time; but not while threads follow one another in their roles, for a
//! thread that is seen late is put in its place late: then half of the budget is for looks.
use hither_profile::Nanos;
use std::ops::RangeInclusive;

/// Time between two decisions.
pub const TICK: Nanos = 10_000_000;

/// Longest time between two decisions.
pub const REST: Nanos = 200_000_000;

/// What the user asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SamplingLimits {
    /// Share of all faults, in per cent, that sampling is to cause.
    pub share: f64,
    /// Processor time for sampling, in per cent of the target's.
    pub budget: f64,
    /// Pages each 10 ms at least, as far as the budget allows: this many, or half as many as
    /// there are threads.
    pub least: u32,
    /// Pages each time at most.
    pub most: u32,
    /// Time between two decisions at least.
    pub interval: Nanos,
}

impl Default for SamplingLimits {
    fn default() -> SamplingLimits {
        SamplingLimits {
            share: 10.0,
            budget: 2.0,
            least: 4,
            most: 1024,
            interval: TICK,
        }
    }
}

/// Where things stand, all since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ControllerInput {
    /// The time.
    pub at: Nanos,
    /// Threads that live.
    pub threads: usize,
    /// Processing units that they may use.
    pub units: usize,
    /// Threads that wait for one, in the mean of the last second; `None`: not known.
    pub waiting: Option<f64>,
    /// Faults that sampling did not cause.
    pub natural: u64,
    /// Faults that we caused.
    pub extra: u64,
    /// Sharing events that faults told of.
    pub events: u64,
    /// Processor time of the target.
    pub target: Nanos,
    /// Processor time that we took, and that the target lost by us.
    pub spent: Nanos,
}

/// Decides how many pages to take.
#[derive(Clone, Debug)]
pub struct FaultRateController {
    limits: SamplingLimits,
    before: ControllerInput,
    /// Nanoseconds that may be spent now; below 0 what was spent too much.
    credit: f64,
    /// What comes into it, in nanoseconds per nanosecond.
    income: f64,
    /// Threads that run at a time, in the mean.
    running: f64,
    /// What goes out of it from one decision to the next.
    outgo: f64,
    /// Of a page.
    price: Nanos,
    /// Faults that we caused lately, and events.
    lately: (u64, u64),
    /// Records that were looked at many at a time, and how long that took.
    looked: (u64, Nanos),
    /// Nanoseconds that may be spent on faults that repeat what is known.
    for_repeats: f64,
    /// Nanoseconds that may be spent on looks alone, while threads take over roles: until then.
    for_looks: f64,
    roles_until: Nanos,
}

/// What is not spent within this time of the target is not kept for later: rest is no
/// reason for a burst.
const KEPT: Nanos = 1_000_000_000;
/// Faults for an event, as a rule.
const TELLING: u64 = 2;
/// Faults from which on it is known how many tell of events, and after which those before
/// count for less.
const KNOWN: u64 = 256;
/// Records that are taken in at least of all, as one of so many, whatever it costs, and before
/// the first is left out.
const RECORDS_KEPT: f64 = 1.0 / 64.0;
const FIRST_RECORDS: u64 = 4096;
/// Share of the budget that faults may use at most that repeat what is known.
const MOST_FOR_REPEATS: f64 = 0.5;
/// Share of the budget that is for looks alone while threads take over roles; what a look costs; and how long after
/// the last one it is to be expected that others do.
const LOOKS_SHARE: f64 = 0.5;
const WAKING: f64 = 100_000.0;
const ROLES_KEPT: Nanos = 1_000_000_000;
/// Records at a time from which on what they took is theirs, and not that of waking up; what one takes
/// until that is known, and may take at all; and records after which those before count for less.
const MANY_RECORDS: u64 = 256;
const FIRST_LOOK: Nanos = 2000;
const LOOK: RangeInclusive<Nanos> = 300..=5000;
const LOOKS_KEPT: u64 = 1 << 16;
/// Pages that a decision waits for: to wake up costs about as much as some pages do.
const WORTH_WAKING: Nanos = 16;
/// Share of the units from which on all are busy.
const ALL_BUSY: f64 = 0.9;
/// Factor by which more pages are taken at most where few faults give an event.
const MOST_TIMES: u64 = 8;
/// Threads that the least number of pages grows with, at most.
const MOST_THREADS: usize = 256;

impl FaultRateController {
    #[must_use]
    pub fn new(limits: SamplingLimits) -> FaultRateController {
        FaultRateController {
            limits,
            before: ControllerInput::default(),
            credit: 0.0,
            income: 0.0,
            running: 0.0,
            outgo: 0.0,
            price: 0,
            lately: (0, 0),
            looked: (0, 0),
            for_repeats: KEPT as f64 * limits.budget / 100.0,
            for_looks: 0.0,
            roles_until: 0,
        }
    }

    /// Threads took over the roles of others, and were seen only now.
    pub fn roles_returned(&mut self) {
        self.roles_until = self.before.at + ROLES_KEPT;
    }

    /// Pages to take now, each of which costs `price` nanoseconds.
    pub fn pages_to_take(&mut self, now: ControllerInput, price: Nanos) -> u32 {
        let rate = self.limits.budget / 100.0;
        let ran = now.target.saturating_sub(self.before.target);
        let spent = now.spent.saturating_sub(self.before.spent);
        let passed = now.at.saturating_sub(self.before.at).max(1);
        let times = self.fault_multiplier(now);
        self.before = now;
        let income = ran as f64 * rate;
        self.income += (income / passed as f64 - self.income) / 4.0;
        self.running += (ran as f64 / passed as f64 - self.running) / 4.0;
        self.credit = (self.credit + income - spent as f64).min(KEPT as f64 * rate);
        let repeats = self.for_repeats + income * MOST_FOR_REPEATS;
        self.for_repeats = repeats.min(KEPT as f64 * rate);
        let looks = self.for_looks + income * LOOKS_SHARE - WAKING;
        self.for_looks = looks.clamp(-WAKING, KEPT as f64 * rate);
        self.outgo += (spent as f64 - self.outgo) / 4.0;
        self.price = price;
        let affordable = self.affordable(price);
        let share = self.limits.share.clamp(0.0, 99.0);
        let goal = (now.natural as f64 * share / (100.0 - share)) as u64;
        let due = goal.saturating_sub(now.extra);
        let threads = now.threads.min(MOST_THREADS) as u64;
        let ticks = (passed + TICK / 2) / TICK;
        let least =
            u64::from(self.limits.least).max(threads / 2) * times * ticks.clamp(1, REST / TICK);
        let wanted = due.max(least);
        let wanted = wanted.min(affordable).min(u64::from(self.limits.most));
        u32::try_from(wanted).unwrap_or(u32::MAX)
    }

    /// Processor time of the target at the last decision.
    #[must_use]
    pub fn target(&self) -> Nanos {
        self.before.target
    }

    /// So many records were looked at in this time.
    pub fn looked_at(&mut self, records: u64, took: Nanos) {
        if records < MANY_RECORDS {
            return;
        }
        let (all, time) = &mut self.looked;
        (*all, *time) = (*all + records, *time + took);
        if *all >= LOOKS_KEPT {
            (*all, *time) = (*all / 2, *time / 2);
        }
    }

    /// Faults that sampling did not cause, on pages that had been accessed before, have cost so much.
    pub fn repeats_cost(&mut self, cost: Nanos) {
        // Far enough below what `share_of_records` adds that the share stays at its least.
        let least = -2.0 * KEPT as f64 * self.limits.budget / 100.0;
        self.for_repeats = (self.for_repeats - cost as f64).max(least);
    }

    /// What it costs to look at one.
    fn look_price(&self) -> Nanos {
        let (all, time) = self.looked;
        let each = time.checked_div(all).unwrap_or(FIRST_LOOK);
        each.clamp(*LOOK.start(), *LOOK.end())
    }

    /// The share of `count` page faults, after `before` others, that are to be looked at: programs
    /// that touch gigabytes at once would use up the budget of a minute, and of most pages later
    /// faults tell more than the first. Programs that give memory back and take it again, as by
    /// `free` and `malloc` in a loop, fault on the same pages for ever, which tells nothing new: at
    /// most half of the budget goes into that.
    #[must_use]
    pub fn share_of_records(&self, count: u64, before: u64) -> f64 {
        let price = self.look_price();
        let may = self.credit.min(self.for_repeats) + KEPT as f64 * self.limits.budget / 100.0;
        let may = may / price as f64;
        let may = may.max(FIRST_RECORDS.saturating_sub(before) as f64);
        (may / count.max(1) as f64).clamp(RECORDS_KEPT, 1.0)
    }

    /// What a fault costs that takes `cost` of processor time and stops its thread for `delay`, all in
    /// nanoseconds. While one thread stands still the others of a parallel program soon wait for it, at a barrier or for
    /// a flag, and most of them by spinning. Only where a thread waits for a unit does it take the place
    /// of that one.
    #[must_use]
    pub fn price(&self, cost: Nanos, delay: Nanos) -> Nanos {
        let replaced = match self.before.waiting {
            Some(waiting) => waiting.clamp(0.0, 1.0),
            None => f64::from(u8::from(self.are_more_than_units())),
        };
        let lost = (delay as f64 * self.running.max(1.0)).max(cost as f64);
        (replaced * cost as f64 + (1.0 - replaced) * lost) as Nanos
    }

    /// Whether all units are busy and there are more threads.
    fn are_more_than_units(&self) -> bool {
        let units = self.before.units;
        self.before.threads > units && self.running > ALL_BUSY * units as f64
    }

    /// How many times `price` nanoseconds may be spent now.
    #[must_use]
    pub fn affordable(&self, price: Nanos) -> u64 {
        (self.credit / price.max(1) as f64).max(0.0) as u64
    }

    /// How many times more faults than as a rule it takes until one tells of an event.
    fn fault_multiplier(&mut self, now: ControllerInput) -> u64 {
        let (faults, events) = &mut self.lately;
        *faults += now.extra.saturating_sub(self.before.extra);
        *events += now.events.saturating_sub(self.before.events);
        if *faults < KNOWN {
            return 1;
        }
        let times = *faults / (TELLING * *events).max(1);
        if *faults >= 2 * KNOWN {
            (*faults, *events) = (*faults / 2, *events / 2);
        }
        times.clamp(1, MOST_TIMES)
    }

    /// How long until a look is paid for that sees who takes over a role, whatever else was spent.
    fn look_for_roles(&self) -> f64 {
        let debt = KEPT as f64 * self.limits.budget / 100.0;
        if self.before.at >= self.roles_until || self.credit < -debt {
            return f64::INFINITY;
        }
        (WAKING - self.for_looks).max(0.0) / (self.income * LOOKS_SHARE).max(f64::MIN_POSITIVE)
    }

    /// How long until the next decision: until what it will cost is there again.
    #[must_use]
    pub fn next_wait(&self) -> Nanos {
        let next = self.outgo.max((WORTH_WAKING * self.price) as f64);
        let lacking = (next - self.credit).max(0.0);
        let wait = lacking / self.income.max(f64::MIN_POSITIVE);
        let wait = wait.min(self.look_for_roles()).min(REST as f64);
        (wait as Nanos).max(self.limits.interval)
    }
}
