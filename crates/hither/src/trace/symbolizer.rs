//! The names that the collector asks for: what it knows are files and ELF virtual
//! addresses; what people know are variables and source lines.
use std::path::{Path, PathBuf};

use hither_profile::{Object, ObjectKind, ProcessIx};
use serde::{Deserialize, Serialize};

/// A global, a static variable of a function, or a thread-local one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StaticObject {
    pub name: String,
    pub type_name: String,
    /// ELF virtual address: before the load address is added. Of a thread-local variable
    /// [`Self::THREAD_LOCAL`] and its place in the block of its file that each thread has.
    pub vaddr: u64,
    pub size: u64,
    /// Where it is declared; empty and 0 without debug information.
    pub file: String,
    pub line: u32,
}

impl StaticObject {
    /// Above all addresses.
    pub const THREAD_LOCAL: u64 = 1 << 62;

    /// As a structure of a process, without accesses.
    pub fn to_object(&self, process: ProcessIx) -> Object {
        Object {
            name: self.name.clone(),
            type_name: self.type_name.clone(),
            kind: match self.vaddr < Self::THREAD_LOCAL {
                true => ObjectKind::Static,
                false => ObjectKind::ThreadLocal,
            },
            size: self.size,
            count: 1,
            file: self.file.clone(),
            line: self.line,
            process,
            ..Object::default()
        }
    }
}

/// A field of a structure, or of the elements of an array of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StructField {
    pub name: String,
    pub offset: u64,
    pub size: u64,
    pub type_name: String,
}

/// Where an instruction comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SourceLine {
    pub file: String,
    pub line: u32,
    pub function: String,
    /// Function of a library that has the instruction, where the line is that of its caller.
    pub callee: String,
}

/// What a heap block is called after.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AllocationName {
    pub name: String,
    pub type_name: String,
    pub file: String,
    pub line: u32,
    pub function: String,
}

/// Which lines of source are asked for.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SourceTextRequest {
    /// Files and lines there, most accesses first.
    pub places: Vec<(String, u32)>,
    /// What was built from the source.
    pub programs: Vec<PathBuf>,
    /// Only from files that everybody may read.
    pub only_public: bool,
}

/// Lines by file and number, and what is missing of them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SourceTextAnswer {
    pub lines: Vec<(String, u32, String)>,
    pub limit: Option<String>,
}

/// Answers from the files of a program. Never fails: what is not known is empty.
pub trait Symbolizer {
    fn static_objects(&mut self, _file: &Path) -> Vec<StaticObject> {
        Vec::new()
    }

    /// For each of the variables at these addresses its fields, where it is a structure or an array of
    /// them.
    fn members(&mut self, _file: &Path, _vaddrs: &[u64]) -> Vec<Vec<StructField>> {
        Vec::new()
    }

    /// The lines of these addresses will be asked for: to find out all of them at once takes less.
    fn expect_lines(&mut self, _file: &Path, _vaddrs: &[u64]) {}

    fn source_line(&mut self, _file: &Path, _vaddr: u64) -> Option<SourceLine> {
        None
    }

    /// The line of the program's own source: of code that was inlined from a library's header,
    /// where it was; `None` in a library of the system.
    fn program_line(&mut self, _file: &Path, _vaddr: u64) -> Option<SourceLine> {
        None
    }

    /// `frames`: (module file, vaddr of the call instruction), innermost first.
    fn allocation_name(&mut self, _frames: &[(PathBuf, u64)]) -> AllocationName {
        AllocationName::default()
    }

    /// The same frames with those that were inlined, innermost first.
    fn call_path(&mut self, _frames: &[(PathBuf, u64)]) -> Vec<SourceLine> {
        Vec::new()
    }

    /// Whether it is a program that always lies at the addresses in its file.
    fn has_fixed_address(&mut self, _file: &Path) -> bool {
        false
    }

    /// Addresses of the functions called `name`, as linked, as written or the last part of it.
    fn function_addresses(&mut self, _file: &Path, _name: &str) -> Vec<u64> {
        Vec::new()
    }

    /// Names of functions that are like this one, the most alike first.
    fn similar_functions(&mut self, _file: &Path, _name: &str) -> Vec<String> {
        Vec::new()
    }

    /// Lines of source that a report quotes.
    fn source_text(&mut self, _request: &SourceTextRequest) -> SourceTextAnswer {
        SourceTextAnswer::default()
    }
}
