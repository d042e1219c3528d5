//! What a program's files say about its data: names, types and sizes of static
//! variables, source lines of instructions, names of heap blocks, addresses of functions.
//!
//!     file --elf--> symbols, sections --debug_file--> DWARF --tree, types, fortran--> statics
//!     pc   --lines--> frames --site--> own frame --source--> variable --scope--> type
//!
//! Files are untrusted: whatever they hold, the answer is at worst "not known".
mod allocation_name;
mod allocation_owner;
mod array_bounds;
mod attrs;
mod call_path;
mod debug_file;
mod demangle;
mod demangle_haskell;
mod die_tree;
mod dwarf;
mod elf;
mod fortran_common;
mod frame_filter;
mod functions;
mod line_table;
mod lvalue;
mod scope;
mod source;
mod source_fortran;
mod source_repairs;
mod source_text;
mod source_tree;
mod statics;
#[cfg(test)]
mod tests;
mod type_text;

use super::symbolizer::{
    AllocationName, SourceLine, SourceTextAnswer, SourceTextRequest, StaticObject, StructField,
    Symbolizer,
};
use dwarf::DebugInfo;
use elf::ElfImage;
use line_table::{catch_panic, InlineFrame, LineTable};
use source::SourceFiles;
pub use source_text::keep_source_text;
use statics::TypedStatic;
use std::cell::OnceCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Everything read from one file; each part when it is first asked for.
struct ModuleSymbols {
    elf: ElfImage,
    debug: Option<DebugInfo>,
    lines: LineTable,
    statics: OnceCell<Vec<TypedStatic>>,
}

impl ModuleSymbols {
    fn open(file: &Path) -> Option<ModuleSymbols> {
        catch_panic(|| {
            let mut elf = ElfImage::open(file)?;
            debug_file::add_separate_debug(file, &mut elf);
            let debug = DebugInfo::new(&elf);
            elf.sections = HashMap::new();
            Some(ModuleSymbols {
                elf,
                debug,
                lines: LineTable::default(),
                statics: OnceCell::new(),
            })
        })
        .flatten()
    }

    fn statics(&self) -> &[TypedStatic] {
        self.statics.get_or_init(|| {
            catch_panic(|| statics::read_statics(&self.elf, self.debug.as_ref()))
                .unwrap_or_else(|| statics::read_statics(&self.elf, None))
        })
    }

    fn frames(&self, pc: u64) -> Vec<InlineFrame> {
        let Some(debug) = &self.debug else {
            return Vec::new();
        };
        catch_panic(|| self.lines.frames(debug, pc)).unwrap_or_default()
    }

    fn function_symbol(&self, pc: u64) -> Option<FunctionSymbol> {
        let symbol = self.elf.function_at(pc)?;
        Some(FunctionSymbol {
            name: demangle::demangle(&symbol.raw),
            start: symbol.vaddr,
        })
    }
}

/// The function that an address is in.
#[derive(Default)]
pub struct FunctionSymbol {
    pub name: String,
    pub start: u64,
}

/// Names from files, each file read once.
#[derive(Default)]
pub struct ProgramSymbols {
    modules: HashMap<PathBuf, Option<ModuleSymbols>>,
    sources: SourceFiles,
    /// Call instructions seen per (file, line), in order: the k-th allocates the k-th
    /// variable of a Fortran `allocate(a, b)`.
    calls: HashMap<(String, u32), Vec<u64>>,
}

impl ProgramSymbols {
    pub fn new() -> ProgramSymbols {
        ProgramSymbols::default()
    }

    fn module(&mut self, file: &Path) -> Option<&ModuleSymbols> {
        if !self.modules.contains_key(file) {
            self.modules
                .insert(file.to_owned(), ModuleSymbols::open(file));
        }
        self.modules.get(file)?.as_ref()
    }

    /// The line of an access: the innermost of the program's own, but what a header does once for all that use it,
    /// such as an element of a container or an atomic addition, is done by the code around it.
    fn program_frame(&mut self, frames: &[InlineFrame]) -> Option<usize> {
        let all = 0..frames.len();
        let mut own = all.filter(|at| frame_filter::is_program_frame(&frames[*at]));
        let innermost = own.clone().next()?;
        let works = own.find(|at| {
            let InlineFrame { file, line, .. } = &frames[*at];
            let tree = |sources: &mut SourceFiles| Some(sources.tree(file)?.is_in_loop(*line));
            !frame_filter::is_header(file) || tree(&mut self.sources).unwrap_or(false)
        });
        works.or(Some(innermost))
    }
}

impl Symbolizer for ProgramSymbols {
    fn members(&mut self, file: &Path, vaddrs: &[u64]) -> Vec<Vec<StructField>> {
        let Some(module) = self.module(file) else {
            return Vec::new();
        };
        let types = module.statics().iter();
        let types: HashMap<u64, _> = types.map(|f| (f.object.vaddr, f.type_at)).collect();
        let read = |vaddr| {
            let debug = module.debug.as_ref()?;
            let type_at = types.get(vaddr).copied().flatten()?;
            catch_panic(|| statics::members(debug, type_at))
        };
        vaddrs.iter().map(|v| read(v).unwrap_or_default()).collect()
    }

    fn static_objects(&mut self, file: &Path) -> Vec<StaticObject> {
        let objects = |m: &ModuleSymbols| m.statics().iter().map(|f| f.object.clone()).collect();
        self.module(file).map(objects).unwrap_or_default()
    }

    fn program_line(&mut self, file: &Path, vaddr: u64) -> Option<SourceLine> {
        if frame_filter::is_system(file) {
            return None;
        }
        let frames = self.module(file)?.frames(vaddr);
        let at = self.program_frame(&frames)?;
        let callee = frames[..at].first().map(|inlined| inlined.function.clone());
        let own = frames.into_iter().nth(at)?;
        Some(SourceLine {
            file: own.file,
            line: own.line,
            function: own.function,
            callee: callee.unwrap_or_default(),
        })
    }

    fn source_line(&mut self, file: &Path, vaddr: u64) -> Option<SourceLine> {
        let module = self.module(file)?;
        let innermost = module.frames(vaddr).into_iter().next().unwrap_or_default();
        let function = match innermost.function.as_str() {
            "" => {
                demangle::short_arguments(&module.function_symbol(vaddr).unwrap_or_default().name)
            }
            name => name.to_owned(),
        };
        let known = innermost.line > 0 || !function.is_empty();
        known.then_some(SourceLine {
            file: innermost.file,
            line: innermost.line,
            function,
            callee: String::new(),
        })
    }

    fn allocation_name(&mut self, frames: &[(PathBuf, u64)]) -> AllocationName {
        self.name_allocation(frames)
    }

    fn call_path(&mut self, frames: &[(PathBuf, u64)]) -> Vec<SourceLine> {
        call_path::call_path(self, frames)
    }

    fn has_fixed_address(&mut self, file: &Path) -> bool {
        elf::has_fixed_address(file)
    }

    fn function_addresses(&mut self, file: &Path, name: &str) -> Vec<u64> {
        let read = |module| functions::function_addresses(module, name);
        self.module(file).map(read).unwrap_or_default()
    }

    fn similar_functions(&mut self, file: &Path, name: &str) -> Vec<String> {
        let read = |module| functions::similar_functions(module, name);
        self.module(file).map(read).unwrap_or_default()
    }

    fn source_text(&mut self, request: &SourceTextRequest) -> SourceTextAnswer {
        source_text::read_source_text(request)
    }
}
