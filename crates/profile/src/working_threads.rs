//! Which threads take part in a run's work: the T of its metrics, and those that are mapped.
use crate::tables::Thread;

/// Launchers, shells, progress threads of MPI and of runtimes do less than this share of what the
/// busiest thread does, by accesses and by instructions. Ours.
const LEAST_WORK: f64 = 0.001;

/// By thread: whether it works. One that computes without touching memory does, and so does one
/// that touches memory in few instructions.
#[must_use]
pub fn working_threads<'a, T>(threads: T) -> Vec<bool>
where
    T: Iterator<Item = &'a Thread> + Clone,
{
    let least = |of: fn(&Thread) -> u64| {
        let most = threads.clone().map(of).max().unwrap_or(0);
        (most as f64 * LEAST_WORK).max(1.0)
    };
    let instructions: fn(&Thread) -> u64 = |t| t.instructions;
    let accesses: fn(&Thread) -> u64 = |t| t.reads.saturating_add(t.writes);
    let (of_instructions, of_accesses) = (least(instructions), least(accesses));
    let works =
        |t: &Thread| accesses(t) as f64 >= of_accesses || instructions(t) as f64 >= of_instructions;
    threads.map(works).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(threads: &[(u64, u64)], want: &[bool]) {
        let thread = |&(instructions, reads)| Thread {
            instructions,
            reads,
            ..Thread::default()
        };
        let threads: Vec<Thread> = threads.iter().map(thread).collect();
        assert_eq!(working_threads(threads.iter()), want);
    }

    #[test]
    fn a_thread_works_by_instructions_or_by_accesses() {
        let busy = (10_000_000, 1_000_000);
        check(&[busy, (9_999, 999)], &[true, false]);
        check(&[busy, (9_999, 1_000)], &[true, true]);
        // It computes without touching memory.
        check(&[busy, (10_000, 0)], &[true, true]);
        check(&[], &[]);
    }

    /// `hither auto` counts no instructions.
    #[test]
    fn what_nobody_does_makes_nobody_work() {
        check(&[(0, 5), (0, 0)], &[true, false]);
        check(&[(7, 0), (0, 0)], &[true, false]);
        check(&[(0, 0), (0, 0)], &[false, false]);
    }
}
