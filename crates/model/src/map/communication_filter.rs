//! When a change of the communication justifies a new mapping: the communication filter of
//! SPCD (Diener, Cruz, Navaux, IPDPS 2013, section IV.A). Each thread has one partner, the
//! thread it communicates most with. When at least two threads have changed theirs, they
//! probably began to communicate with one another, and a new mapping is due.
use super::CommGraph;

/// SPCD's threshold.
const CHANGED_PARTNERS: usize = 2;

/// Remembers the partners for which threads were last mapped.
#[derive(Clone, Debug)]
pub struct CommunicationFilter {
    threshold: usize,
    /// `None` for a thread that has not communicated yet.
    partner: Vec<Option<u32>>,
}

impl Default for CommunicationFilter {
    fn default() -> CommunicationFilter {
        CommunicationFilter::new(CHANGED_PARTNERS)
    }
}

impl CommunicationFilter {
    /// Asks for a mapping when at least `threshold` threads have a new partner.
    #[must_use]
    pub fn new(threshold: usize) -> CommunicationFilter {
        CommunicationFilter {
            threshold,
            partner: Vec::new(),
        }
    }

    /// Whether to map now. If so, later partners are compared with the current ones; if not, with
    /// those of the last mapping, so that a slow change counts as much as a sudden one.
    ///
    /// A thread keeps its partner while it communicates as much with it as with any other, and when
    /// it stops communicating. Threads may have been added; one that has ended no longer
    /// communicates.
    pub fn is_due(&mut self, comm: &CommGraph) -> bool {
        let known = comm.threads().max(self.partner.len());
        self.partner.resize(known, None);
        let now: Vec<Option<u32>> = (0..known)
            .map(|thread| main_partner(comm, thread, self.partner[thread]))
            .collect();
        let pairs = now.iter().zip(&self.partner);
        let changed = pairs.filter(|(now, before)| now != before).count();
        let due = changed > 0 && changed >= self.threshold;
        if due {
            self.partner = now;
        }
        due
    }
}

/// The thread with which a thread communicates most: `before` if it is among several, else the
/// first.
fn main_partner(comm: &CommGraph, thread: usize, before: Option<u32>) -> Option<u32> {
    if thread >= comm.threads() {
        return before;
    }
    let is_before = |j: usize| before.is_some_and(|b| b as usize == j);
    let best = comm
        .neighbours(thread)
        .max_by_key(|&(j, events)| (events, is_before(j), std::cmp::Reverse(j)));
    best.map(|(j, _)| j as u32).or(before)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Threads 2k and 2k + 1 communicate, or those half of all apart, as in the two phases of
    /// SPCD's producer/consumer program (section V.B).
    fn phase(threads: u32, far: bool, events: u64) -> CommGraph {
        let pair = |k: u32| match far {
            true => (k, k + threads / 2, events),
            false => (2 * k, 2 * k + 1, events),
        };
        CommGraph::new(threads as usize, (0..threads / 2).map(pair))
    }

    #[test]
    fn a_phase_change_is_due_once() {
        let mut filter = CommunicationFilter::default();
        let mut check = |comm: CommGraph, due| assert_eq!(filter.is_due(&comm), due);
        check(phase(8, false, 10), true);
        // The same pattern with other numbers moves nobody.
        check(phase(8, false, 10), false);
        check(phase(8, false, 1000), false);
        check(phase(8, true, 10), true);
        check(phase(8, true, 11), false);
        check(phase(8, false, 10), true);
    }

    #[test]
    fn two_threads_with_a_new_partner_are_enough_and_one_is_not() {
        // Partners are 0-1, 2-3.
        let before = [(0, 1, 10), (2, 3, 10)];
        let check = |pairs: &[(u32, u32, u64)], due| {
            let mut filter = CommunicationFilter::default();
            assert!(filter.is_due(&CommGraph::new(4, before)));
            assert_eq!(filter.is_due(&CommGraph::new(4, pairs.to_vec())), due);
        };
        // 1 turns to 2, but 2 still has 3: one thread has changed.
        check(&[(0, 1, 10), (1, 2, 11), (2, 3, 12)], false);
        // 1 and 2 turn to one another.
        check(&[(0, 1, 10), (1, 2, 11), (2, 3, 10)], true);
        // As much with another as with the partner is no change.
        check(&[(0, 1, 10), (0, 2, 10), (1, 3, 10), (2, 3, 10)], false);
        // Silence is none either.
        check(&[], false);
    }

    #[test]
    fn slow_change_adds_up() {
        let mut filter = CommunicationFilter::default();
        let mut check = |pairs: &[(u32, u32, u64)], due| {
            assert_eq!(filter.is_due(&CommGraph::new(4, pairs.to_vec())), due);
        };
        check(&[(0, 1, 10), (2, 3, 10)], true);
        check(&[(0, 1, 10), (1, 2, 11), (2, 3, 12)], false);
        // Now 2 has changed too, the second since the mapping.
        check(&[(0, 1, 10), (1, 2, 13), (2, 3, 12)], true);
    }

    #[test]
    fn threads_may_come_and_go_and_say_nothing() {
        let mut filter = CommunicationFilter::default();
        let mut check = |comm: CommGraph, due| assert_eq!(filter.is_due(&comm), due);
        check(CommGraph::new(0, []), false);
        check(CommGraph::new(4, []), false);
        check(phase(4, false, 1), true);
        check(phase(6, false, 1), true);
        check(phase(4, false, 1), false);
        check(phase(6, false, 1), false);
    }

    #[test]
    fn the_threshold_is_as_asked() {
        let check = |threshold, due| {
            let mut filter = CommunicationFilter::new(threshold);
            assert_eq!(filter.is_due(&phase(4, false, 1)), due);
            // Without any change nothing is due, whatever the threshold.
            assert!(!filter.is_due(&CommGraph::new(4, [])));
        };
        check(0, true);
        check(4, true);
        check(5, false);
    }
}
