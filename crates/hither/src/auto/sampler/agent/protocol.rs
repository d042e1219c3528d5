//! The Rust mirror of `tracer/agent/orders.h`, which explains the fields; a test compares.
use hither_profile::{Nanos, PAGE_SIZE};

/// What the agent is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentPurpose {
    /// To move pages, as long as hither runs.
    Moves,
    /// To make a userfaultfd for hither, and leave.
    Lends,
}

pub const MAGIC: u64 = 0x0054_4e47_4148;
pub const VERSION: u64 = 4;
/// Descriptors of the agent.
pub const ORDERS: i32 = 1;
pub const REPORTS: i32 = 2;
pub const FAULTS: i32 = 4;
/// Pages away at a time.
pub const OUT: u32 = 512;
pub const REGIONS: usize = 128;
/// Bytes behind the code.
pub const DATA: u64 = 1 << 16;
pub const STACK: u64 = 1 << 15;

/// Offset in the agent's data of its purpose.
pub const PURPOSE: u64 = 16;
/// Of its userfaultfd.
pub const FEATURES: u64 = hither_sys::inject::AGENT_UFFD_FEATURES;
const MOVES: u32 = 0;
const LENDS: u32 = 1;

/// What is written there.
pub fn purpose_code(purpose: AgentPurpose) -> u32 {
    match purpose {
        AgentPurpose::Moves => MOVES,
        AgentPurpose::Lends => LENDS,
    }
}

pub const ORDER: usize = 32;
pub const REPORT: usize = 80;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentOrder {
    Go,
    Open { address: u64, length: u64 },
    Close { address: u64, length: u64 },
    Take { address: u64, at: Nanos },
}

const GO: u32 = 1;
const OPEN: u32 = 2;
const CLOSE: u32 = 3;
const TAKE: u32 = 4;

impl AgentOrder {
    #[must_use]
    pub fn encode(&self) -> [u8; ORDER] {
        let (kind, address, length, at) = match *self {
            AgentOrder::Go => (GO, MAGIC, VERSION, 0),
            AgentOrder::Open { address, length } => (OPEN, address, length, 0),
            AgentOrder::Close { address, length } => (CLOSE, address, length, 0),
            AgentOrder::Take { address, at } => (TAKE, address, PAGE_SIZE, at),
        };
        let mut bytes = [0; ORDER];
        for (at, word) in [(0, u64::from(kind)), (8, address), (16, length), (24, at)] {
            bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }
}

/// Why a region is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    Ordered,
    Removed,
    Gone,
    Filling,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentReport {
    Hello {
        magic: u64,
        version: u64,
    },
    /// `error` as errno, 0 for none.
    Opened {
        address: u64,
        length: u64,
        error: i32,
    },
    Closed {
        address: u64,
        length: u64,
        why: CloseReason,
    },
    Counts,
}

/// Since the agent's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AgentCounts {
    pub taken: u64,
    pub back: u64,
    pub unused: u64,
    pub refused: u64,
    pub natural: u64,
    /// Processor time of the agent.
    pub time: Nanos,
    /// That of it in which pages were taken and put back.
    pub taking: Nanos,
}

/// Reads a report; `None` of a kind that is not known.
#[must_use]
pub fn decode_report(bytes: &[u8; REPORT]) -> Option<(AgentReport, AgentCounts)> {
    let word = |at: usize| {
        let bytes = bytes[8 * at..8 * at + 8].try_into().unwrap_or_default();
        u64::from_le_bytes(bytes)
    };
    let error = (word(0) >> 32) as u32 as i32;
    let (address, length) = (word(1), word(2));
    let news = match word(0) as u32 {
        1 => AgentReport::Hello {
            magic: address,
            version: length,
        },
        2 => AgentReport::Opened {
            address,
            length,
            error,
        },
        3 => AgentReport::Closed {
            address,
            length,
            why: match error {
                0 => CloseReason::Ordered,
                1 => CloseReason::Removed,
                2 => CloseReason::Gone,
                _ => CloseReason::Filling,
            },
        },
        4 => AgentReport::Counts,
        _ => return None,
    };
    let counts = AgentCounts {
        taken: word(3),
        back: word(4),
        unused: word(5),
        refused: word(6),
        natural: word(7),
        time: word(8),
        taking: word(9),
    };
    Some((news, counts))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tracer/agent/orders.h");

    /// The value of a #define.
    fn defined(name: &str) -> u64 {
        let header = std::fs::read_to_string(HEADER).expect("header");
        let start = format!("#define {name} ");
        let line = header.lines().find_map(|l| l.strip_prefix(&start));
        let value = line.unwrap_or_else(|| panic!("{name} is not there"));
        let value = value.split("/*").next().expect("value").trim();
        let value = value.trim_matches(['(', ')']);
        let number = |text: &str| {
            let text = text.trim_end_matches(['u', 'l']);
            match text.strip_prefix("0x") {
                Some(hex) => u64::from_str_radix(hex, 16),
                None => text.parse(),
            }
            .expect("a number")
        };
        match value.split_once(" << ") {
            Some((one, by)) => number(one) << number(by),
            None => number(value),
        }
    }

    #[test]
    fn numbers_are_those_of_the_header() {
        let check = |name, expected: u64| assert_eq!(defined(name), expected, "{name}");
        check("HI_AGENT_MAGIC", MAGIC);
        check("HI_AGENT_VERSION", VERSION);
        check("HI_AGENT_ORDERS", ORDERS as u64);
        check("HI_AGENT_REPORTS", REPORTS as u64);
        check("HI_AGENT_FAULTS", FAULTS as u64);
        check("HI_AGENT_OUT", u64::from(OUT));
        check("HI_AGENT_REGIONS", REGIONS as u64);
        check("HI_AGENT_DATA", DATA);
        check("HI_AGENT_STACK", STACK);
        check("HI_AGENT_MOVES", u64::from(MOVES));
        check("HI_AGENT_FEATURES", FEATURES);
        check("HI_AGENT_LENDS", u64::from(LENDS));
        check("HI_ORDER_GO", u64::from(GO));
        check("HI_ORDER_OPEN", u64::from(OPEN));
        check("HI_ORDER_CLOSE", u64::from(CLOSE));
        check("HI_ORDER_TAKE", u64::from(TAKE));
        check("HI_REPORT_HELLO", 1);
        check("HI_REPORT_OPENED", 2);
        check("HI_REPORT_CLOSED", 3);
        check("HI_REPORT_COUNTS", 4);
        check("HI_CLOSED_ORDERED", 0);
        check("HI_CLOSED_REMOVED", 1);
        check("HI_CLOSED_GONE", 2);
        check("HI_CLOSED_FILLING", 3);
    }

    #[test]
    fn reports_are_read() {
        let mut bytes = [0; REPORT];
        let words = [3 | 1 << 32, 0x7000, 0x2000, 10, 9, 8, 7, 6, 5, 4u64];
        for (at, word) in words.iter().enumerate() {
            bytes[8 * at..8 * at + 8].copy_from_slice(&word.to_le_bytes());
        }
        let counts = AgentCounts {
            taken: 10,
            back: 9,
            unused: 8,
            refused: 7,
            natural: 6,
            time: 5,
            taking: 4,
        };
        let closed = AgentReport::Closed {
            address: 0x7000,
            length: 0x2000,
            why: CloseReason::Removed,
        };
        assert_eq!(decode_report(&bytes), Some((closed, counts)));
        bytes[0] = 99;
        assert_eq!(decode_report(&bytes), None);
    }
}
