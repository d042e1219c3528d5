//! DRAM: per node some channels, per channel some banks with a row open each.
//!
//! Consecutive lines lie on consecutive channels; within a channel a row's lines follow one
//! another and rows go from bank to bank, the bank number mixed with the row's so that arrays of
//! a power of two in length do not meet in one bank. Rows stay open until another is wanted. A
//! line of a row that is open takes CL; where no row was open RCD + CL; where another was RP + RCD
//! + CL. Its transfer then occupies the channel. Writes occupy but are not waited for.
use super::machine::{Dram, Machine};
use super::outcome::NodeCounts;
use super::queue::Queue;

#[derive(Clone, Copy, Default)]
struct Bank {
    /// The row that is open, + 1; 0: none.
    open: u64,
    queue: Queue,
}

struct Node {
    dram: Dram,
    lines_per_row: u64,
    banks: Vec<Bank>,
    channels: Vec<Queue>,
}

pub struct Memory {
    nodes: Vec<Node>,
    timed: bool,
}

impl Memory {
    pub fn new(machine: &Machine, timed: bool) -> Self {
        let nodes = machine.nodes.iter().map(|node| {
            let dram = node.dram.clone();
            Node {
                lines_per_row: u64::from(dram.row / machine.line),
                banks: vec![Bank::default(); dram.channels as usize * dram.banks as usize],
                channels: vec![Queue::default(); dram.channels as usize],
                dram,
            }
        });
        Memory {
            nodes: nodes.collect(),
            timed,
        }
    }

    /// Reads or writes line `number` of a node from time `at` on; when it is there.
    pub fn serve(&mut self, node: usize, number: u64, at: f64, counts: &mut NodeCounts) -> f64 {
        let node = &mut self.nodes[node];
        let (channels, banks) = (u64::from(node.dram.channels), u64::from(node.dram.banks));
        let channel = number % channels;
        let rows = number / channels / node.lines_per_row;
        let bank = (rows ^ (rows / banks)) % banks;
        let row = rows / banks + 1;
        let bank = &mut node.banks[(channel * banks + bank) as usize];
        let before = std::mem::replace(&mut bank.open, row);
        let dram = &node.dram;
        let prepare = match before {
            b if b == row => 0.0,
            0 => dram.rcd,
            _ => dram.rp + dram.rcd,
        };
        counts.rows += u64::from(before != row);
        if !self.timed {
            return at;
        }
        let start = bank.queue.serve(at, prepare + dram.burst) + prepare + dram.cas;
        let moved = node.channels[channel as usize].serve(start, dram.burst);
        moved + dram.burst + dram.controller
    }
}
