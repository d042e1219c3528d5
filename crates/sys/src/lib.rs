//! The only crate of hither with `unsafe` code: shared memory and system calls.
pub mod advise;
pub mod affinity;
pub mod bpf;
pub mod faults;
mod ids;
pub mod inject;
pub mod launch;
pub mod numa;
pub mod perf;
pub mod probe;
pub mod process;
pub mod protect;
pub mod ptrace;
pub mod record;
pub mod seccomp;
pub mod segment;
pub mod view;
pub mod wire;

pub use ids::{Cpu, Node, Pid, Tid};
pub use record::{BurstLosses, RawPiece};
pub use segment::{Segment, SegmentConfig, SegmentError};
pub use view::{EventRecord, SegmentLosses};
