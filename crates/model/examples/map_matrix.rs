//! Maps a communication matrix onto a machine:
//!
//! ```text
//! cargo run --package hither-model --example map_matrix -- "pack:2 l3:2 core:4 pu:1"
//! ```
use hither_model::map::threads::locality::LocalityPolicy;
use hither_model::map::threads::ThreadPolicy;
use hither_model::map::{CommGraph, PuDistances, ThreadProblem};
use hither_model::topology::{select_machine, MachineRestrictions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let machine = std::env::args().nth(1);
    let machine = machine.as_deref().unwrap_or("pack:2 l3:2 core:4 pu:1");
    let tree = select_machine(Some(machine), &MachineRestrictions::default())?.tree;

    // Eight threads; thread t shares most with thread t xor 4.
    let threads = 8;
    let pairs = (0..threads).flat_map(|i| (i + 1..threads).map(move |j| (i, j)));
    let events = |i: u32, j: u32| if i ^ j == 4 { 1000 } else { 1 };
    let comm = CommGraph::new(threads as usize, pairs.map(|(i, j)| (i, j, events(i, j))));

    let cost = PuDistances::from_hops(&tree);
    let problem = ThreadProblem {
        tree: &tree,
        cost: &cost,
        comm: &comm,
        load: &vec![1; threads as usize],
        capacity: (threads as usize).div_ceil(tree.units.len()) as u32,
        siblings: false,
        current: None,
        seed: 0,
    };
    let units = LocalityPolicy { fast: false }.place(&problem)?;
    for (thread, unit) in units.iter().enumerate() {
        let pu = tree.units[*unit as usize];
        println!("thread {thread}: PU {} (OS index {})", pu.pu, pu.os);
    }
    println!("objective: {} events x hops", problem.objective(&units));
    Ok(())
}
