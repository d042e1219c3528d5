//! `make bench-map`: the thread policy `locality` against libscotch, side by side in one run.
//! Prints a table: the objective relative to libscotch's (geometric mean over the patterns,
//! and the worst), and the processor time of each (geometric mean of medians).
//!
//! Arguments: names of machines and patterns to keep; `-v` prints every instance.
#![forbid(unsafe_code)]
mod machines;
mod patterns;

use hither_model::map::threads::{locality::LocalityPolicy, ThreadPolicy};
use hither_model::map::{CommGraph, PuDistances, ThreadProblem};
use machines::BenchMachine;
use nix::time::{clock_gettime, ClockId};
use patterns::CommPattern;

/// What one policy did with one instance.
struct PolicyTiming {
    objective: f64,
    milliseconds: f64,
}

fn main() {
    let words: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| a != "--bench")
        .collect();
    let verbose = words.iter().any(|w| w == "-v");
    let keep = |kind: &[&str], name: &str| {
        let mut asked = words
            .iter()
            .filter(|w| kind.contains(&w.as_str()))
            .peekable();
        asked.peek().is_none() || asked.any(|w| w == name)
    };
    let machine_names: Vec<&str> = machines::MACHINES.iter().map(|m| m.name).collect();
    let pattern_names: Vec<&str> = patterns::PATTERNS.iter().map(|p| p.name).collect();
    println!(
        "{:9} {:12} {:>9} {:>7} {:>7} {:>9} {:>7} {:>7} {:>9}",
        "cost", "threads", "scotch ms", "fast", "worst", "ms", "default", "worst", "ms"
    );
    for cost in ["hops", "latency"] {
        if !keep(&["hops", "latency"], cost) {
            continue;
        }
        let mut all = Vec::new();
        for machine in machines::MACHINES
            .iter()
            .filter(|m| keep(&machine_names, m.name))
        {
            let mut rows = Vec::new();
            for pattern in patterns::PATTERNS
                .iter()
                .filter(|p| keep(&pattern_names, p.name))
            {
                if let Some(row) = measure_instance(machine, pattern, cost) {
                    if verbose {
                        print_table(&format!(" {}", pattern.name), machine.name, &[&row]);
                    }
                    rows.push(row);
                }
            }
            print_table(cost, machine.name, &rows.iter().collect::<Vec<_>>());
            all.extend(rows);
        }
        print_table(cost, "all", &all.iter().collect::<Vec<_>>());
    }
}

/// Outcomes of libscotch, fast and default; `None` when the pattern does not go with so many
/// threads.
fn measure_instance(
    machine: &BenchMachine,
    pattern: &CommPattern,
    cost: &str,
) -> Option<[PolicyTiming; 3]> {
    let comm = pattern.graph(machine.threads, 1)?;
    let tree = machine.tree();
    let cost = match cost {
        "hops" => PuDistances::from_hops(&tree),
        _ => PuDistances::from_levels(&tree, machines::level_latency),
    };
    let problem = ThreadProblem {
        tree: &tree,
        cost: &cost,
        comm: &comm,
        load: &[],
        capacity: machine.threads.div_ceil(tree.units.len()) as u32,
        // As free as libscotch is.
        siblings: true,
        current: None,
        seed: 1,
    };
    let scotch = median_run(&hither_model::map::threads::scotch::ScotchPolicy, &problem);
    let fast = median_run(&LocalityPolicy { fast: true }, &problem);
    let default = median_run(&LocalityPolicy { fast: false }, &problem);
    Some([scotch, fast, default])
}

/// The median time of some runs: as many as take 50 ms, at least 3.
fn median_run(policy: &dyn ThreadPolicy, problem: &ThreadProblem) -> PolicyTiming {
    let mut times = Vec::new();
    let mut objective = 0;
    let begin = cpu_ms();
    while times.len() < 3 || (cpu_ms() - begin < 50.0 && times.len() < 51) {
        let start = cpu_ms();
        let units = policy.place(problem).expect("every instance can be placed");
        times.push(cpu_ms() - start);
        objective = problem.objective(&units);
    }
    times.sort_by(f64::total_cmp);
    PolicyTiming {
        objective: objective as f64,
        milliseconds: times[times.len() / 2],
    }
}

/// Processor time of this process, which a busy machine disturbs less than a clock.
fn cpu_ms() -> f64 {
    let now = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).expect("a clock");
    now.tv_sec() as f64 * 1e3 + now.tv_nsec() as f64 / 1e6
}

fn print_table(what: &str, machine: &str, rows: &[&[PolicyTiming; 3]]) {
    if rows.is_empty() {
        return;
    }
    let mean = |f: &dyn Fn(&[PolicyTiming; 3]) -> f64| {
        let logs: f64 = rows.iter().map(|r| f(r).ln()).sum();
        (logs / rows.len() as f64).exp()
    };
    let ratio = |row: &[PolicyTiming; 3], which: usize| match row[0].objective {
        0.0 => 1.0,
        scotch => (row[which].objective / scotch).max(1e-9),
    };
    let worst = |which| {
        let ratios = rows.iter().map(|r| ratio(r, which));
        ratios.fold(0.0, f64::max)
    };
    print!("{what:9} {machine:12} {:9.3}", mean(&|r| r[0].milliseconds));
    for which in [1, 2] {
        let (objective, time) = (mean(&|r| ratio(r, which)), mean(&|r| r[which].milliseconds));
        print!(" {objective:7.4} {:7.4} {time:9.3}", worst(which));
    }
    println!();
}

/// Kept here so that patterns need not know the type's constructor.
fn graph_of(threads: usize, pairs: Vec<(u32, u32, u64)>) -> CommGraph {
    CommGraph::new(threads, pairs)
}
