//! What a program's files say about its data: names, types and sizes of static
//! variables, source lines of instructions, names of heap blocks, addresses of functions.
//!
//!     file --elf--> symbols, sections --debug_file--> DWARF --tree, types, fortran--> statics
//!     pc   --lines--> frames --site--> own frame --source--> variable --scope--> type
//!
//! Files are untrusted: whatever they hold, the answer is at worst "not known".
mod allocation;
mod attrs;
mod bounds;
mod debug_file;
mod demangle;
mod dwarf;
mod elf;
mod fortran;
mod functions;
mod lines;
mod scope;
mod site;
mod source;
mod source_c;
mod source_fortran;
mod statement;
mod statics;
#[cfg(test)]
mod tests;
mod tree;
mod types;

use super::naming::{AllocationName, Member, Naming, SourceLine, StaticObject};
use dwarf::Debug;
use elf::Elf;
pub use functions::{function, similar_functions};
use lines::{guarded, Frame, Lines};
use source::Sources;
use statics::Found;
use std::cell::OnceCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Everything read from one file; each part when it is first asked for.
struct Module {
    elf: Elf,
    debug: Option<Debug>,
    lines: OnceCell<Option<Lines>>,
    statics: OnceCell<Vec<Found>>,
}

impl Module {
    fn open(file: &Path) -> Option<Module> {
        guarded(|| {
            let mut elf = Elf::open(file)?;
            debug_file::complete(file, &mut elf);
            let debug = Debug::new(&elf);
            elf.sections = HashMap::new();
            Some(Module {
                elf,
                debug,
                lines: OnceCell::new(),
                statics: OnceCell::new(),
            })
        })
        .flatten()
    }

    fn statics(&self) -> &[Found] {
        self.statics.get_or_init(|| {
            guarded(|| statics::read(&self.elf, self.debug.as_ref()))
                .unwrap_or_else(|| statics::read(&self.elf, None))
        })
    }

    fn frames(&self, pc: u64) -> Vec<Frame> {
        let Some(debug) = &self.debug else {
            return Vec::new();
        };
        let lines = self.lines.get_or_init(|| Some(Lines::new(debug)));
        let read = || lines.as_ref().map(|l| l.frames(debug, pc));
        guarded(read).flatten().unwrap_or_default()
    }

    fn symbol(&self, pc: u64) -> Option<String> {
        self.elf.function_at(pc).map(|s| demangle::pretty(&s.raw))
    }
}

/// Names from files, each file read once.
#[derive(Default)]
pub struct Symbols {
    modules: HashMap<PathBuf, Option<Module>>,
    sources: Sources,
    /// Call instructions seen per (file, line), in order: the k-th allocates the k-th
    /// variable of a Fortran `allocate(a, b)`.
    calls: HashMap<(String, u32), Vec<u64>>,
}

impl Symbols {
    pub fn new() -> Symbols {
        Symbols::default()
    }

    fn module(&mut self, file: &Path) -> Option<&Module> {
        if !self.modules.contains_key(file) {
            self.modules.insert(file.to_owned(), Module::open(file));
        }
        self.modules.get(file)?.as_ref()
    }
}

impl Naming for Symbols {
    fn members(&mut self, file: &Path, object: &StaticObject) -> Vec<Member> {
        let read = |module: &Module| {
            let found = module
                .statics()
                .iter()
                .find(|f| f.object.vaddr == object.vaddr)?;
            let debug = module.debug.as_ref()?;
            guarded(|| statics::members(debug, found.type_at?).into()).flatten()
        };
        self.module(file).and_then(read).unwrap_or_default()
    }

    fn statics(&mut self, file: &Path) -> Vec<StaticObject> {
        let objects = |m: &Module| m.statics().iter().map(|f| f.object.clone()).collect();
        self.module(file).map(objects).unwrap_or_default()
    }

    fn line(&mut self, file: &Path, vaddr: u64) -> Option<SourceLine> {
        let module = self.module(file)?;
        let innermost = module.frames(vaddr).into_iter().next().unwrap_or_default();
        let function = match innermost.function.as_str() {
            "" => module.symbol(vaddr).unwrap_or_default(),
            name => name.to_owned(),
        };
        let known = innermost.line > 0 || !function.is_empty();
        known.then_some(SourceLine {
            file: innermost.file,
            line: innermost.line,
            function,
        })
    }

    fn allocation(&mut self, frames: &[(PathBuf, u64)]) -> AllocationName {
        self.name_allocation(frames)
    }
}
