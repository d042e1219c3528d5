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
    at_least(threads, LEAST_WORK)
}

/// By thread: whether it does such a part of what the busiest one does, by accesses or by instructions.
fn at_least<'a, T>(threads: T, part: f64) -> Vec<bool>
where
    T: Iterator<Item = &'a Thread> + Clone,
{
    let least = |of: fn(&Thread) -> u64| {
        let most = threads.clone().map(of).max().unwrap_or(0);
        (most as f64 * part).max(1.0)
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

/// Of what the busiest thread does, the part below which processes that start others do not work. Ours: a shell
/// takes some million instructions to start, which is more than a thousandth of a short run.
const LEAST_OF_STARTERS: f64 = 0.01;
/// The same of those that became another program by exec, and so are gone when that runs.
const LEAST_OF_REPLACED: f64 = 0.1;

/// By process: whether it only starts others, as a shell, `time` or `env` does. One of its descendants' threads does a
/// hundredth of what the busiest one does, and none of its own does as much, or a tenth where it became another program.
pub(crate) fn starting_processes(processes: &[Process], threads: &[Thread]) -> Vec<bool> {
    let with_a_thread_of = |part: f64| {
        let mut of_process = vec![false; processes.len()];
        let of_thread = at_least(threads.iter(), part).into_iter().zip(threads);
        for (_, thread) in of_thread.filter(|(does_it, _)| *does_it) {
            if let Some(does_it) = of_process.get_mut(thread.process.at()) {
                *does_it = true;
            }
        }
        of_process
    };
    let (does_some, does_much) = (
        with_a_thread_of(LEAST_OF_STARTERS),
        with_a_thread_of(LEAST_OF_REPLACED),
    );
    let (mut starts, mut replaced) = (vec![false; processes.len()], vec![false; processes.len()]);
    // Processes come after those that started them.
    for at in (0..processes.len()).rev() {
        let parent = processes[at].parent.map(|parent| parent.at());
        if let Some(parent) = parent.filter(|parent| *parent < at) {
            starts[parent] |= starts[at] || does_some[at];
            replaced[parent] |= processes[parent].pid == processes[at].pid;
        }
    }
    let works = |at: usize| match replaced[at] {
        true => does_much[at],
        false => does_some[at],
    };
    (0..processes.len())
        .map(|at| starts[at] && !works(at))
        .collect()
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

    #[test]
    fn who_starts_others_and_waits_does_not_work() {
        // The process that started each, and what its thread does.
        let check = |processes: &[(Option<u32>, u64)], want: &[bool]| {
            let process = |(pid, &(parent, _)): (i32, &(Option<u32>, u64))| Process {
                pid,
                parent: parent.map(ProcessIx),
                ..Process::default()
            };
            let thread = |(process, &(_, reads)): (u32, &(_, u64))| Thread {
                process: ProcessIx(process),
                instructions: 3 * reads,
                reads,
                ..Thread::default()
            };
            let profile = crate::Profile {
                threads: (0..).zip(processes).map(thread).collect(),
                meta: crate::ProfileMeta {
                    processes: (1..).zip(processes).map(process).collect(),
                    ..crate::ProfileMeta::default()
                },
                ..crate::Profile::default()
            };
            assert_eq!(profile.working_threads(), want, "{processes:?}");
            profile
        };
        check(&[(None, 9), (Some(0), 1000)], &[false, true]);
        let mut env = check(&[(None, 10), (Some(0), 1000)], &[true, true]);
        env.meta.processes[1].pid = env.meta.processes[0].pid;
        assert_eq!(env.working_threads(), [false, true]);
        env.threads[0].reads = 100;
        assert_eq!(env.working_threads(), [true, true]);
        // A shell in a shell. What the inner one started besides works, as it would without them.
        check(
            &[(None, 5), (Some(0), 5), (Some(1), 1000), (Some(1), 5)],
            &[false, false, true, true],
        );
        // The parent does the work.
        check(&[(None, 1000), (Some(0), 5)], &[true, true]);
        // Files from elsewhere may say what they like.
        check(&[(Some(1), 1000), (Some(7), 5)], &[true, true]);
        check(&[(Some(0), 5), (Some(7), 1000)], &[true, true]);
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
