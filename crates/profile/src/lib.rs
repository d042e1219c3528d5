//! hither's artefacts: types and file format, no system calls beyond reading and
//! writing files. Usable as a library.
#![forbid(unsafe_code)]
mod artefact;
pub mod binned;
pub mod bursts;
mod clean;
pub mod comm;
pub mod figure;
pub mod finding;
pub mod ids;
mod io;
pub mod meta;
pub mod placement;
pub mod prediction;
pub mod tables;

pub use artefact::ArtefactError;
pub use clean::{is_hidden_char, strip_control_characters};
pub use comm::CommMatrix;
pub use figure::{BetterWhen, FigureUnit, RunFigure};
pub use finding::{Finding, FindingKind, FindingLine, FindingPicture, SuggestedFix};
pub use ids::*;
pub use io::{
    check_destination, read, read_meta, write, write_with_bursts, ProfileError, WriteOutcome,
};
pub use meta::*;
pub use placement::*;
pub use prediction::*;
pub use tables::*;

/// A whole profile in memory: `profile.json` and every table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Profile {
    pub meta: ProfileMeta,
    pub threads: Vec<Thread>,
    pub slices: Vec<Slice>,
    pub comm: Vec<PairComm>,
    pub pages: Vec<PageUse>,
    pub first_touch: Vec<PageFirstTouch>,
    pub regions: Vec<Region>,
    pub objects: Vec<Object>,
    pub object_ranges: Vec<ObjectRange>,
    pub members: Vec<ObjectMember>,
    pub sites: Vec<SourceSite>,
    pub lines: Vec<LineUse>,
    pub thread_moves: Vec<ThreadMove>,
    pub page_moves: Vec<PageMove>,
}

impl Profile {
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
