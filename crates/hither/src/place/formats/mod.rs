//! A placement for other tools: one file per format, one line in [`ALL`].
use hither_profile::Placement;

mod text;

/// What other tools read instead of a placement.
pub trait Format: Sync {
    /// As `--format` takes it.
    fn name(&self) -> &'static str;
    /// One line: what it is for, and how to use it.
    fn about(&self) -> &'static str;
    /// The whole file.
    ///
    /// # Errors
    /// A sentence that says what in the placement the format cannot express.
    fn write(&self, placement: &Placement) -> Result<String, String>;
}

/// Every format, in the order in which `hither map --list` shows them.
pub const ALL: &[&dyn Format] = &[&text::Text];
