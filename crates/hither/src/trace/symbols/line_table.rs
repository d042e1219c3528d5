//! Instruction -> source line, by addr2line, inlined calls included.
use super::attrs::DwarfReader;
use super::demangle::{demangle, short_arguments, truncate_utf8};
use super::dwarf::DebugInfo;
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Arc;

const MAX_INLINED: usize = 64;
const MAX_PATH: usize = 4096;
/// Units whose lines and functions are kept.
const MAX_UNITS: usize = 256;

/// One function of an inlined chain at an instruction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InlineFrame {
    pub file: String,
    pub line: u32,
    pub column: u32,
    pub function: String,
}

pub type UnitContext = Option<addr2line::Context<DwarfReader>>;

/// A context of addr2line parses all units of its file and keeps them, several times the size of
/// the file. So each unit with code that is asked about gets a context of its own.
#[derive(Default)]
pub struct LineTable {
    units: RefCell<HashMap<usize, UnitContext>>,
    /// For units that refer to others, as link-time optimisation makes them.
    whole: OnceCell<UnitContext>,
}

impl LineTable {
    /// The functions inlined at `pc`, innermost first, then the one they are in.
    pub fn frames(&self, debug: &DebugInfo, pc: u64) -> Vec<InlineFrame> {
        // addr2line recurses on nested entries: hostile nesting would end the stack.
        let units = debug.units_at(pc);
        if !units.iter().all(|u| debug.is_shallow(*u)) {
            return Vec::new();
        }
        if !units.iter().all(|u| debug.is_self_contained(*u)) {
            let whole = || catch_panic(|| new_context(debug.dwarf.clone())).flatten();
            return frames_of(self.whole.get_or_init(whole), pc);
        }
        let mut kept = self.units.borrow_mut();
        if kept.len() > MAX_UNITS {
            kept.clear();
        }
        let mut found = units.iter().map(|&unit| {
            let parse = || new_context(debug.dwarf_of_unit(unit)?.into());
            let context = kept
                .entry(unit)
                .or_insert_with(|| catch_panic(parse).flatten());
            frames_of(context, pc)
        });
        found.find(|frames| !frames.is_empty()).unwrap_or_default()
    }
}

pub fn new_context(dwarf: Arc<gimli::Dwarf<DwarfReader>>) -> UnitContext {
    addr2line::Context::from_arc_dwarf(dwarf).ok()
}

pub fn frames_of(context: &UnitContext, pc: u64) -> Vec<InlineFrame> {
    let read = || inline_frames(context.as_ref()?, pc);
    catch_panic(read).flatten().unwrap_or_default()
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
            function: name.map_or_else(String::new, |n| short_arguments(&demangle(&n))),
        });
    }
    Some(found)
}
