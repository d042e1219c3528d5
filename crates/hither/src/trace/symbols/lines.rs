//! Instruction -> source line, by addr2line, inlined calls included.
use super::demangle::{clip, pretty};
use super::dwarf::{Debug, Slice};
use std::panic::{catch_unwind, AssertUnwindSafe};

const MAX_INLINED: usize = 64;
const MAX_PATH: usize = 4096;

/// One function of an inlined chain at an instruction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Frame {
    pub file: String,
    pub line: u32,
    pub column: u32,
    pub function: String,
}

pub struct Lines {
    context: Option<addr2line::Context<Slice>>,
}

impl Lines {
    pub fn new(debug: &Debug) -> Lines {
        let parse = || addr2line::Context::from_arc_dwarf(debug.dwarf.clone()).ok();
        Lines {
            context: guarded(parse).flatten(),
        }
    }

    /// The functions inlined at `pc`, innermost first, then the one they are in.
    pub fn frames(&self, debug: &Debug, pc: u64) -> Vec<Frame> {
        // addr2line recurses on nested entries: hostile nesting would end the stack.
        let units = debug.units_at(pc);
        match &self.context {
            Some(context) if units.iter().all(|u| debug.is_shallow(*u)) => {
                guarded(|| walk(context, pc)).flatten().unwrap_or_default()
            }
            _ => Vec::new(),
        }
    }
}

/// gimli and addr2line add addresses unchecked, which panics in checked builds.
pub fn guarded<T>(work: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(work)).ok()
}

fn walk(context: &addr2line::Context<Slice>, pc: u64) -> Option<Vec<Frame>> {
    let mut frames = context.find_frames(pc).skip_all_loads().ok()?;
    let mut found = Vec::new();
    while let (Ok(Some(frame)), true) = (frames.next(), found.len() < MAX_INLINED) {
        let name = frame.function.as_ref().and_then(|f| f.raw_name().ok());
        let location = frame.location.as_ref();
        found.push(Frame {
            file: location
                .and_then(|l| l.file)
                .map_or_else(String::new, |f| clip(f, MAX_PATH).to_owned()),
            line: location.and_then(|l| l.line).unwrap_or(0),
            column: location.and_then(|l| l.column).unwrap_or(0),
            function: name.map_or_else(String::new, |n| pretty(&n)),
        });
    }
    Some(found)
}
