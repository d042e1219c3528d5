//! Which threads take part in a run's work: the T of its metrics, and those that are mapped.
use crate::tables::{Process, Thread};

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

/// By process: whether it takes part in the work of an MPI job, as a rank or what a rank has started. The
/// others launch and watch it: whether they are traced must not matter. Without ranks, all do.
pub(crate) fn working_processes(processes: &[Process]) -> Vec<bool> {
    let no_ranks = processes.iter().all(|p| p.rank.is_none());
    let mut works: Vec<bool> = Vec::with_capacity(processes.len());
    for process in processes {
        let parent = process.parent.and_then(|p| works.get(p.at()).copied());
        works.push(no_ranks || process.rank.is_some() || parent.unwrap_or(false));
    }
    works
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ProcessIx;

    #[test]
    fn who_launches_ranks_does_not_work() {
        let check = |processes: &[(Option<u32>, Option<u32>)], want: &[bool]| {
            let process = |&(rank, parent): &(_, Option<u32>)| Process {
                rank,
                parent: parent.map(ProcessIx),
                ..Process::default()
            };
            let processes: Vec<Process> = processes.iter().map(process).collect();
            assert_eq!(working_processes(&processes), want);
        };
        let launcher = (None, None);
        let child = |parent| (None, Some(parent));
        check(
            &[
                launcher,
                child(0),
                (Some(0), Some(1)),
                child(2),
                (Some(1), Some(0)),
            ],
            &[false, false, true, true, true],
        );
        check(&[launcher, child(0)], &[true, true]);
        check(&[(Some(0), Some(7)), child(9)], &[true, false]);
    }

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
