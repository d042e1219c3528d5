//! Instruction -> source line, by addr2line, inlined calls included.
use super::demangle::{demangle, truncate_utf8};
use super::dwarf::{DebugInfo, DwarfReader};
use std::panic::{catch_unwind, AssertUnwindSafe};

const MAX_INLINED: usize = 64;
const MAX_PATH: usize = 4096;

/// One function of an inlined chain at an instruction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InlineFrame {
    pub file: String,
    pub line: u32,
    pub column: u32,
    pub function: String,
}

pub struct LineTable {
    context: Option<addr2line::Context<DwarfReader>>,
}

impl LineTable {
    pub fn new(debug: &DebugInfo) -> LineTable {
        let parse = || addr2line::Context::from_arc_dwarf(debug.dwarf.clone()).ok();
        LineTable {
            context: catch_panic(parse).flatten(),
        }
    }

    /// The functions inlined at `pc`, innermost first, then the one they are in.
    pub fn frames(&self, debug: &DebugInfo, pc: u64) -> Vec<InlineFrame> {
        // addr2line recurses on nested entries: hostile nesting would end the stack.
        let units = debug.units_at(pc);
        match &self.context {
            Some(context) if units.iter().all(|u| debug.is_shallow(*u)) => {
                catch_panic(|| inline_frames(context, pc))
                    .flatten()
                    .unwrap_or_default()
            }
            _ => Vec::new(),
        }
    }
}

/// gimli and addr2line add addresses unchecked, which panics in checked builds.
pub fn catch_panic<T>(work: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(work)).ok()
}

fn inline_frames(context: &addr2line::Context<DwarfReader>, pc: u64) -> Option<Vec<InlineFrame>> {
    let mut frames = context.find_frames(pc).skip_all_loads().ok()?;
    let mut found = Vec::new();
    while let (Ok(Some(frame)), true) = (frames.next(), found.len() < MAX_INLINED) {
        let name = frame.function.as_ref().and_then(|f| f.raw_name().ok());
        let location = frame.location.as_ref();
        found.push(InlineFrame {
            file: location
                .and_then(|l| l.file)
                .map_or_else(String::new, |f| truncate_utf8(f, MAX_PATH).to_owned()),
            line: location.and_then(|l| l.line).unwrap_or(0),
            column: location.and_then(|l| l.column).unwrap_or(0),
            function: name.map_or_else(String::new, |n| demangle(&n)),
        });
    }
    Some(found)
}
