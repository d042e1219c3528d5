//! The only crate of hither with `unsafe` code: shared memory and system calls.
pub mod numa;
pub mod probe;
pub mod process;
#[cfg(feature = "scotch")]
pub mod scotch;
pub mod segment;
pub mod view;
pub mod wire;

pub use segment::{Segment, SegmentConfig, SegmentError};
pub use view::{EventRecord, Lost};
