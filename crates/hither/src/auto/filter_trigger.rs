//! When records of faults are to be left out in the kernel: once those that nobody looks at, which
//! the program pays for all the same, take much of the budget.
use hither_profile::Nanos;

/// Intervals from one look to the next.
const INTERVALS: u32 = 3;
/// Of the budget.
const MOST: f64 = 0.25;

#[derive(Debug, Default)]
pub struct FilterTrigger {
    intervals: u32,
    /// At the last look.
    cost: Nanos,
    target: Nanos,
    was_due: bool,
}

impl FilterTrigger {
    /// At the end of an interval: with what records have cost that nobody looked at, and the
    /// program's processor time, both since the start, and the budget in per cent. True once only.
    pub fn is_due(&mut self, cost: Nanos, target: Nanos, budget: f64) -> bool {
        self.intervals += 1;
        if self.intervals < INTERVALS {
            return false;
        }
        self.intervals = 0;
        let cost = cost.saturating_sub(std::mem::replace(&mut self.cost, cost));
        let passed = target.saturating_sub(std::mem::replace(&mut self.target, target));
        let due = cost as f64 > MOST * budget / 100.0 * passed as f64;
        due && !std::mem::replace(&mut self.was_due, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of intervals that cost so much, in each of which the program ran for 100 ms with a budget
    /// of 2 ms.
    fn due(costs: &[Nanos]) -> Vec<usize> {
        let mut trigger = FilterTrigger::default();
        let (mut all, mut target) = (0, 0);
        let is_due = |&at: &usize| {
            all += costs[at];
            target += 100_000_000;
            trigger.is_due(all, target, 2.0)
        };
        (0..costs.len()).filter(is_due).collect()
    }

    #[test]
    fn it_is_due_when_records_took_a_quarter_of_the_budget() {
        assert!(due(&[500_000; 40]).is_empty());
        assert_eq!(due(&[510_000; 40]), [2]);
        let late = [[0; 20], [600_000; 20]].concat();
        assert_eq!(due(&late), [23]);
    }
}
