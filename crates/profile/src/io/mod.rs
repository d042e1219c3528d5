//! Reading and writing of profiles: a folder with `profile.json` and one Parquet file
//! per table.
//!
//! ```text
//!   tables.rs: each table's columns, once     cell.rs: how a field looks in Parquet
//!            \                                 /
//!             encode.rs (rows -> file)   decode.rs (file -> rows, trusting nothing)
//!                 |                          |
//!             write.rs (folder)          read.rs (folder, cross references)
//! ```
mod cell;
mod columns;
mod decode;
mod disk_space;
mod encode;
mod error;
mod profile_json;
mod read;
mod write;

pub use error::ProfileError;
pub(crate) use read::open_regular_file;
pub use read::{read, read_meta};
pub(crate) use write::StagingFolder;
pub use write::{check_destination, write, write_with_bursts, WriteOutcome};
