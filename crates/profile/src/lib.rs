//! hither's artefacts: what one stage hands to the next, as types and as files. No system calls
//! beyond reading and writing files.
//!
//! A [`Profile`] is what was measured of one run: `profile.json` and a Parquet table for each of
//! its fields ([`tables`]), in a folder that `hither trace` or `hither auto` wrote. A [`Placement`]
//! says which thread goes to which processing unit and which page to which node; a [`Prediction`],
//! what placements would do. The accesses that `hither trace --bursts` records are in [`bursts`].
//!
//! Rows refer to each other by position: [`ThreadIx`] 3 is the fourth row of the threads. A page
//! is named by its region and its number there, which stays valid from run to run.
//!
//! ```no_run
//! let profile = hither_profile::read("app.hither".as_ref())?;
//! let matrix = profile.matrix();
//! println!("threads 0 and 1 share {} events", matrix.get(0, 1));
//! # Ok::<(), hither_profile::ProfileError>(())
//! ```
//! `examples/sharing.rs` prints the pairs of threads that share most. Reading never panics, whatever the
//! files hold: a profile is valid, or there is an error that names the file and the column.
#![forbid(unsafe_code)]
#![deny(missing_docs)]
mod artefact;
pub mod binned;
pub mod bursts;
mod clean;
pub mod comm;
pub mod error;
mod figure;
mod files;
pub mod finding;
pub mod ids;
mod io;
pub mod meta;
mod packed_rows;
mod page_merging;
mod page_rows;
pub mod placement;
pub mod prediction;
mod redact;
pub mod tables;
mod thread_roles;
pub mod varint;
mod working_threads;

pub use artefact::ArtefactError;
pub use clean::{file_name, is_hidden_char, shell_line, shell_quote, strip_control_characters};
pub use comm::CommMatrix;
pub use error::ProfileError;
pub use figure::{BetterWhen, FigureUnit, RunFigure};
pub use files::{check_output_path, open_regular_file, output_folder, parent_of, OutputPlace};
pub use finding::{Finding, FindingKind, FindingLine, FindingPicture, SuggestedFix, TrafficUnit};
pub use ids::*;
pub use io::{
    check_destination, is_decoding, read, read_meta, write, write_after_checkpoint,
    write_with_bursts, BurstWriter, CheckpointFolder, PieceHeader, WriteOutcome,
};
pub use meta::*;
pub use packed_rows::{PackedRow, PackedRows, Unpacker};
pub use page_merging::PageBudget;
pub use page_rows::{PageRow, PageRows, RowPages};
pub use placement::*;
pub use prediction::*;
pub use redact::REDACTED;
pub use tables::*;
pub use thread_roles::RoleFinder;
pub use working_threads::working_threads;
use working_threads::{starting_processes, working_processes};

/// A whole profile in memory: `profile.json` and every table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Profile {
    /// What was run, where and how.
    pub meta: ProfileMeta,
    /// Threads, in order of creation.
    pub threads: Vec<Thread>,
    /// Slices of time.
    pub slices: Vec<Slice>,
    /// Communication by slice and pair of threads.
    pub comm: Vec<PairComm>,
    /// Accesses by page, thread and page slice.
    pub pages: PageRows<PageUse>,
    /// Which thread touched each page first.
    pub first_touch: PageRows<PageFirstTouch>,
    /// Regions of the address spaces.
    pub regions: Vec<Region>,
    /// Data structures.
    pub objects: Vec<Object>,
    /// Where in the regions the data structures lie.
    pub object_ranges: Vec<ObjectRange>,
    /// Fields of the data structures.
    pub members: Vec<ObjectMember>,
    /// Accesses by source line, from samples.
    pub sites: Vec<SourceSite>,
    /// Which source lines touched the pages of data structures first.
    pub first_touch_lines: Vec<FirstTouchLine>,
    /// Which threads access the data structures; in older profiles and those of `hither auto`, empty.
    pub object_threads: Vec<ObjectThread>,
    /// Call paths that allocate heap blocks.
    pub allocation_paths: Vec<AllocationPath>,
    /// Lines of the program's source that a report may quote.
    pub source_text: Vec<SourceText>,
    /// Lines that several threads use, at least one of them writing.
    pub lines: Vec<LineUse>,
    /// Moves of threads by `hither auto`.
    pub thread_moves: Vec<ThreadMove>,
    /// Moves of pages by `hither auto`.
    pub page_moves: Vec<PageMove>,
    /// By thread of the run, the row of its role, where [`Profile::by_roles`] has merged threads;
    /// empty where each has a row of its own, and not part of the files.
    pub roles: Vec<ThreadIx>,
}

impl Profile {
    /// Nanoseconds of the run in which accesses counted: all of it, but with `--from` or
    /// `--until`, where it is a slice at least.
    #[must_use]
    pub fn counted_time(&self) -> Nanos {
        let paused = self.slices.iter().map(|s| s.paused);
        let paused = paused.fold(0, u64::saturating_add);
        let counted = self.meta.duration.saturating_sub(paused);
        match paused {
            0 => counted,
            _ => counted.max(self.meta.options.slice),
        }
    }

    /// By thread: whether it takes part in the run's work, see [`working_threads`]; not those of processes that
    /// only start others, and of an MPI job those of the ranks.
    #[must_use]
    pub fn working_threads(&self) -> Vec<bool> {
        let mut working = working_threads(self.threads.iter());
        let processes = working_processes(&self.meta.processes);
        let starters = starting_processes(&self.meta.processes, &self.threads);
        for (works, thread) in working.iter_mut().zip(&self.threads) {
            let at = thread.process.at();
            *works &= processes.get(at) != Some(&false) && starters.get(at) != Some(&true);
        }
        working
    }

    /// The communication matrix of the whole run.
    #[must_use]
    pub fn matrix(&self) -> CommMatrix {
        let mut m = CommMatrix::new(self.threads.len());
        for c in &self.comm {
            m.add(c.i.at(), c.j.at(), c.events);
        }
        m
    }
}
