//! DRAM: per node some channels, per channel some banks with a row open each.
//!
//! Consecutive lines lie on consecutive channels; within a channel a row's lines follow one
//! another and rows go from bank to bank, the bank number mixed with the row's so that arrays of
//! a power of two in length do not meet in one bank. Rows stay open until another is wanted. A
//! line of a row that is open takes CL; where no row was open RCD + CL; where another was RP + RCD
//! + CL. Its transfer then occupies the channel. Writes occupy but are not waited for.
use super::busy_intervals::BusyIntervals;
use super::counts::NodeCounts;
use super::simulated_machine::{DramParameters, SimulatedMachine};

#[derive(Clone, Copy, Default)]
struct DramBank {
    /// The row that is open, + 1; 0: none.
    open: u64,
    queue: BusyIntervals,
}

/// Division by a number that stays: most are powers of two, and a shift then takes less.
#[derive(Clone, Copy)]
struct FastDivisor {
    by: u64,
    /// Where it is a power of two.
    bits: Option<u32>,
}

impl FastDivisor {
    fn new(by: u32) -> Self {
        FastDivisor {
            by: u64::from(by),
            bits: by.is_power_of_two().then(|| by.trailing_zeros()),
        }
    }

    /// Quotient and remainder.
    #[inline]
    fn divide(self, n: u64) -> (u64, u64) {
        match self.bits {
            Some(bits) => (n >> bits, n & (self.by - 1)),
            None => (n / self.by, n % self.by),
        }
    }
}

struct NodeMemory {
    dram: DramParameters,
    lines_per_row: FastDivisor,
    /// Their numbers; banks of a channel.
    by_channel: FastDivisor,
    by_bank: FastDivisor,
    banks: Vec<DramBank>,
    channels: Vec<BusyIntervals>,
}

pub struct MemorySystem {
    nodes: Vec<NodeMemory>,
    pub timed: bool,
}

impl MemorySystem {
    pub fn new(machine: &SimulatedMachine, timed: bool) -> Self {
        let nodes = machine.nodes.iter().map(|node| {
            let dram = node.dram.clone();
            NodeMemory {
                lines_per_row: FastDivisor::new(dram.row / machine.line),
                by_channel: FastDivisor::new(dram.channels),
                by_bank: FastDivisor::new(dram.banks),
                banks: vec![DramBank::default(); dram.channels as usize * dram.banks as usize],
                channels: vec![BusyIntervals::default(); dram.channels as usize],
                dram,
            }
        });
        MemorySystem {
            nodes: nodes.collect(),
            timed,
        }
    }

    /// Reads or writes line `number` of a node from time `at` on; when it is there.
    pub fn access_line(
        &mut self,
        node: usize,
        number: u64,
        at: f64,
        counts: &mut NodeCounts,
    ) -> f64 {
        let node = &mut self.nodes[node];
        let (line, channel) = node.by_channel.divide(number);
        let (rows, _) = node.lines_per_row.divide(line);
        let (row, _) = node.by_bank.divide(rows);
        let (_, bank) = node.by_bank.divide(rows ^ row);
        let row = row + 1;
        let bank = &mut node.banks[(channel * node.by_bank.by + bank) as usize];
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
        let start = bank.queue.reserve(at, prepare + dram.burst) + prepare + dram.cas;
        let moved = node.channels[channel as usize].reserve(start, dram.burst);
        moved + dram.burst + dram.controller
    }
}
