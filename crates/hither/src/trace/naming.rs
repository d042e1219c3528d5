//! What the collector asks of whoever reads symbols: names for addresses in files.
//! Addresses are ELF virtual addresses, that is pc minus load bias.
use std::path::{Path, PathBuf};

/// A global or static variable.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StaticObject {
    pub name: String,
    /// As in the source, or empty.
    pub type_name: String,
    pub vaddr: u64,
    pub size: u64,
    pub file: String,
    pub line: u32,
}

/// A line of source code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceLine {
    pub file: String,
    pub line: u32,
    pub function: String,
}

/// What a heap block is, told by where it was allocated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllocationName {
    /// The variable that receives it, else `file:line (function)`.
    pub name: String,
    pub type_name: String,
    pub file: String,
    pub line: u32,
    pub function: String,
}

pub trait Naming {
    /// The variables of a file that have a fixed address.
    fn statics(&mut self, file: &Path) -> Vec<StaticObject>;
    /// The source line of an instruction.
    fn line(&mut self, file: &Path, vaddr: u64) -> Option<SourceLine>;
    /// The name of a block allocated by this call stack, innermost frame first; the
    /// addresses already point into the calls.
    fn allocation(&mut self, frames: &[(PathBuf, u64)]) -> AllocationName;
}

/// Knows no symbols: objects are named by module and address.
pub struct NoNames;

impl Naming for NoNames {
    fn statics(&mut self, _: &Path) -> Vec<StaticObject> {
        Vec::new()
    }

    fn line(&mut self, _: &Path, _: u64) -> Option<SourceLine> {
        None
    }

    fn allocation(&mut self, frames: &[(PathBuf, u64)]) -> AllocationName {
        let name = frames.first().map_or_else(
            || "heap".to_owned(),
            |(file, vaddr)| {
                let file = file.file_name().unwrap_or_default().to_string_lossy();
                format!("{file}+{vaddr:#x}")
            },
        );
        AllocationName {
            name,
            ..AllocationName::default()
        }
    }
}
