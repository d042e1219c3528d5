//! Reading and writing of profiles: a folder with `profile.json` and one Parquet file
//! per table.
//!
//! ```text
//!   tables.rs: each table's columns, once     cell.rs: how a field looks in Parquet
//!            \                                 /
//!             encode.rs (rows -> file)   decode.rs (file -> rows, trusting nothing)
//!                 |                          |
//!    staging.rs, write.rs (folder)       read.rs (folder, cross references)
//!    checkpoint.rs (of a run that goes on)
//!    burst_writer.rs (bursts.bin as the run goes on; its code: ../bursts)
//! ```
mod burst_writer;
mod cell;
mod checkpoint;
mod columns;
mod decode;
mod disk_space;
mod encode;
mod page_headers;
mod profile_json;
mod read;
mod staging;
mod visit_tables;
mod write;

pub use burst_writer::{BurstWriter, PieceHeader};
pub use checkpoint::CheckpointFolder;
pub(crate) use disk_space::encoded_bytes;
pub use read::{is_decoding, read, read_meta};
pub use staging::check_destination;
pub use write::{write, write_after_checkpoint, write_with_bursts, WriteOutcome};
