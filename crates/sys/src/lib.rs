//! The only crate of hither with `unsafe` code: shared memory and system calls.
pub mod affinity;
pub mod bpf;
pub mod burst_segment;
pub mod faults;
pub mod file_rights;
pub mod freed_memory;
mod ids;
pub mod inject;
pub mod launch;
pub mod madvise;
pub mod numa;
pub mod page_groups;
pub mod perf;
pub mod probe;
pub mod process;
pub mod ptrace;
pub mod seccomp;
pub mod segment;
pub mod segment_layout;
pub mod segment_view;
pub mod target_memory;
pub mod userfaultfd;
pub mod wire;

pub use burst_segment::{BurstLosses, RawPiece};
pub use ids::{Cpu, Node, Pid, Tid};
pub use segment::{Segment, SegmentConfig, SegmentError};
pub use segment_view::{EventRecord, SegmentLosses};
