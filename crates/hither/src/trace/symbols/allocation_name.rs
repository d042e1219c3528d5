//! The name of a heap block, from the stack that allocated it.
//!
//! The block belongs to the innermost frame of the program's own code, and is called
//! after the variable that receives it there. A function that only hands the block on
//! (`return malloc(n)`, or `p = malloc(n); ... return p;`) leaves the naming to its
//! caller: `A = matrix_new(n)` makes the blocks `A` and `A[0]`, not `p` and `p[0]`.
use super::demangle::{is_rust_library, short_arguments};
use super::dwarf::DebugInfo;
use super::line_table::{catch_panic, InlineFrame};
use super::lvalue::{parse_lvalue, AllocationReceiver, Lvalue};
use super::{frame_filter, scope, FunctionSymbol, ProgramSymbols};
use crate::trace::symbolizer::AllocationName;
use hither_profile::Object;
use std::path::{Path, PathBuf};

const MAX_FRAMES: usize = 64;

/// A call in the program's own code.
pub(super) struct ProgramFrame {
    pub file: PathBuf,
    pub pc: u64,
    pub frame: InlineFrame,
}

impl ProgramSymbols {
    pub(super) fn name_allocation(&mut self, frames: &[(PathBuf, u64)]) -> AllocationName {
        let own = self.program_frames(frames);
        // OpenMP's runtime keeps its blocks, also those of the threads that it has made for it, and its calls
        // have the lines of neighbours.
        let mut inner = frames.iter().take_while(|f| frame_filter::is_runtime(&f.0));
        if let Some((runtime, _)) = inner.find(|f| is_openmp(&f.0)) {
            return blocks_of(runtime);
        }
        let extension = self.extension_frames(frames, &own);
        if !extension.is_empty() {
            return self.name_in_extension(extension);
        }
        for (index, at) in own.iter().enumerate() {
            match self.receiver(at) {
                AllocationReceiver::Returned => {}
                AllocationReceiver::Unknown => return name_after_line(at),
                AllocationReceiver::Variables(all) if self.is_result_code(at, &all) => {
                    return name_after_line(at);
                }
                AllocationReceiver::Variables(all) => {
                    let name = self.name_after_lvalue(at, &all);
                    return match all.as_slice() {
                        [one] => self.name_of_owner(&own[index..], one, name),
                        _ => name,
                    };
                }
            }
        }
        match own.first() {
            Some(at) => name_after_line(at),
            None => self.name_by_offset(frames),
        }
    }

    /// The calls within an extension that an interpreter called, where they have no lines: those of the interpreter,
    /// which come next, are the same for all extensions.
    fn extension_frames<'a>(
        &self,
        frames: &'a [(PathBuf, u64)],
        own: &[ProgramFrame],
    ) -> &'a [(PathBuf, u64)] {
        let interpreted = |file: &Path| frame_filter::is_interpreter(file);
        let end = frames.iter().position(|(file, _)| interpreted(file));
        let before = &frames[..end.unwrap_or(0)];
        let has_lines = own.first().is_some_and(|at| !interpreted(&at.file));
        let inside = before.iter().any(|(f, _)| !frame_filter::is_runtime(f));
        if inside && !has_lines {
            before
        } else {
            &[]
        }
    }

    /// After the innermost function that has a symbol; else after the one that the interpreter called, for within an
    /// extension all that it allocates comes from one place.
    fn name_in_extension(&mut self, frames: &[(PathBuf, u64)]) -> AllocationName {
        let name = self.name_by_offset(frames);
        let inner = frames.iter().find(|(f, _)| !frame_filter::is_runtime(f));
        let outer = inner.and_then(|(file, _)| frames.iter().rfind(|(f, _)| f == file));
        match outer {
            Some((file, pc)) if name.function.is_empty() && name.line == 0 => AllocationName {
                name: frame_filter::offset_label(file, *pc, None),
                ..name
            },
            _ => name,
        }
    }

    /// The name as callers have it, where they call the variable something else.
    fn name_of_owner(
        &mut self,
        frames: &[ProgramFrame],
        receiver: &Lvalue,
        name: AllocationName,
    ) -> AllocationName {
        if let Some(handed) = self.name_in_callers(frames, receiver, &name) {
            return handed;
        }
        if let Some(argument) = self.argument_behind(frames, receiver) {
            return AllocationName {
                name: argument,
                ..name
            };
        }
        match self.container(frames, receiver) {
            Some((whole, at)) => AllocationName {
                name: whole,
                type_name: name.type_name,
                ..name_after_line(&frames[at])
            },
            None => name,
        }
    }

    pub(super) fn receiver(&mut self, at: &ProgramFrame) -> AllocationReceiver {
        let InlineFrame {
            file, line, column, ..
        } = &at.frame;
        self.sources.receiver(file, *line, *column)
    }

    fn program_frames(&mut self, frames: &[(PathBuf, u64)]) -> Vec<ProgramFrame> {
        let mut found = Vec::new();
        for (file, pc) in frames.iter().take(MAX_FRAMES) {
            if frame_filter::is_system(file) {
                continue;
            }
            let Some(module) = self.module(file) else {
                continue;
            };
            for frame in module.frames(*pc) {
                let wraps = frame_filter::is_wrapper(&frame.function);
                let (own, file, pc) = (frame_filter::has_own_line(&frame), file.clone(), *pc);
                let at = ProgramFrame { file, pc, frame };
                if own && (!wraps || self.stores_block(&at)) {
                    found.push(at);
                }
            }
            if found.len() > MAX_FRAMES {
                break;
            }
        }
        found
    }

    /// Whether a function leaves the block in what outlives it, as `malloc_buffers(s)` does that fills
    /// `s->x`: it may be called like a wrapper, but hands nothing on.
    fn stores_block(&mut self, at: &ProgramFrame) -> bool {
        let AllocationReceiver::Variables(all) = self.receiver(at) else {
            return false;
        };
        let mut outlives = |to: &Lvalue| {
            let read = |d: &DebugInfo| catch_panic(|| scope::is_local(d, at.pc, &to.root));
            let local = self.debug(&at.file).and_then(read);
            !to.steps.is_empty() || local == Some(false)
        };
        all.iter().all(&mut outlives)
    }

    pub(super) fn debug(&mut self, file: &Path) -> Option<&DebugInfo> {
        self.module(file)?.debug.as_ref()
    }

    /// Whether the one variable that receives something on this line cannot hold a block.
    fn is_result_code(&mut self, at: &ProgramFrame, all: &[Lvalue]) -> bool {
        let [one] = all else { return false };
        let read = |d: &DebugInfo| catch_panic(|| scope::is_plain_number(d, at.pc, one));
        self.debug(&at.file).and_then(read).unwrap_or(false)
    }

    fn type_of(&mut self, at: &ProgramFrame, lvalue: &Lvalue) -> String {
        let read = |d: &DebugInfo| catch_panic(|| scope::type_of(d, at.pc, lvalue)).flatten();
        self.debug(&at.file).and_then(read).unwrap_or_default()
    }

    fn name_after_lvalue(&mut self, at: &ProgramFrame, all: &[Lvalue]) -> AllocationName {
        let mut name = name_after_line(at);
        if let [one] = all {
            name.name = one.text.clone();
            name.type_name = self.type_of(at, one);
            return name;
        }
        let calls = self
            .calls
            .entry((name.file.clone(), name.line))
            .or_default();
        let turn = calls.iter().position(|c| *c == at.pc).unwrap_or_else(|| {
            calls.push(at.pc);
            calls.len() - 1
        });
        match all.get(turn) {
            Some(lvalue) => {
                name.name = lvalue.text.clone();
                name.type_name = self.type_of(at, lvalue);
            }
            // More calls than variables: inlined or unrolled, no telling.
            None => {
                let texts: Vec<&str> = all.iter().map(|l| l.text.as_str()).collect();
                name.name = texts.join(", ");
            }
        }
        name
    }

    /// The name in the callers, where the receiving variable is a local that is returned.
    fn name_in_callers(
        &mut self,
        frames: &[ProgramFrame],
        receiver: &Lvalue,
        name: &AllocationName,
    ) -> Option<AllocationName> {
        let (mut part, mut found) = (receiver.clone(), None);
        for pair in frames.windows(2) {
            let [at, caller] = pair else { break };
            if !self.is_returned(at, &part.root) {
                break;
            }
            let AllocationReceiver::Variables(outer) = self.receiver(caller) else {
                break;
            };
            let [outer] = outer.as_slice() else { break };
            let mut handed = name_after_line(caller);
            handed.name = part.text.replacen(&part.root, &outer.text, 1);
            handed.type_name = name.type_name.clone();
            if handed.type_name.is_empty() && part.steps.is_empty() {
                handed.type_name = self.type_of(caller, outer);
            }
            let whole = parse_lvalue(&handed.name);
            found = Some(handed);
            let Some(whole) = whole else { break };
            part = whole;
        }
        found
    }

    /// Whether `variable` is a local of the function, which returns it.
    fn is_returned(&mut self, at: &ProgramFrame, variable: &str) -> bool {
        let InlineFrame { file, line, .. } = &at.frame;
        if !self.sources.returns(file, *line, variable) {
            return false;
        }
        let read = |d: &DebugInfo| catch_panic(|| scope::is_local(d, at.pc, variable));
        self.debug(&at.file).and_then(read).unwrap_or(false)
    }

    /// No frame of the program's own has a line: the best address there is.
    fn name_by_offset(&mut self, frames: &[(PathBuf, u64)]) -> AllocationName {
        let mut best: Option<(u32, &PathBuf, u64, Option<FunctionSymbol>)> = None;
        for (file, pc) in frames.iter().take(MAX_FRAMES) {
            let symbol = self.module(file).and_then(|m| m.function_symbol(*pc));
            let wraps = symbol.as_ref().is_some_and(|s| {
                frame_filter::is_named_allocator(&s.name) || is_rust_library(&s.name)
            });
            let rank = match (frame_filter::is_runtime(file), wraps) {
                (false, false) => 0,
                (false, true) => 1,
                _ => 2,
            };
            if best.as_ref().is_none_or(|b| rank < b.0) {
                best = Some((rank, file, *pc, symbol));
            }
        }
        let Some((_, file, pc, symbol)) = best else {
            return AllocationName {
                name: "unknown site".into(),
                ..AllocationName::default()
            };
        };
        if frame_filter::is_runtime(file) {
            return blocks_of(file);
        }
        // A wrapper with a line is better than an address.
        let frame = self
            .module(file)
            .and_then(|m| m.frames(pc).into_iter().next());
        if let Some(frame) = frame.filter(|f| f.line > 0) {
            let file = file.clone();
            return name_after_line(&ProgramFrame { file, pc, frame });
        }
        AllocationName {
            name: frame_filter::offset_label(file, pc, symbol.as_ref()),
            function: short_arguments(&symbol.unwrap_or_default().name),
            ..AllocationName::default()
        }
    }
}

fn is_openmp(file: &Path) -> bool {
    frame_filter::name_begins_with(file, &["libgomp", "libomp", "libiomp"])
}

/// Of a library that keeps them: no line of the program says how they lie.
fn blocks_of(library: &Path) -> AllocationName {
    let name = library.file_name().unwrap_or_default().to_string_lossy();
    AllocationName {
        name: format!("{}{name}", Object::BLOCKS_OF),
        ..AllocationName::default()
    }
}

/// Called after its line, for want of a variable.
fn name_after_line(at: &ProgramFrame) -> AllocationName {
    AllocationName {
        name: frame_filter::line_label(&at.frame),
        type_name: String::new(),
        file: at.frame.file.clone(),
        line: at.frame.line,
        function: at.frame.function.clone(),
    }
}
