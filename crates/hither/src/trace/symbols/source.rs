//! Which variable receives a block, from the source of the allocating statement.
//!
//! A wrong file (edited since it was compiled) can give a wrong name but no more than that.
use super::elf::open_regular;
use super::lvalue::AllocationReceiver;
use super::source_tree::{Grammar, SourceTree};
use std::cell::OnceCell;
use std::collections::HashMap;
use std::io::Read;
use std::path::Path;

const MAX_SOURCE: u64 = 4 << 20;
const MAX_LINE: usize = 2000;
const MAX_FILES: usize = 1024;
/// Extensions of files that no grammar is there for.
const OTHER_LANGUAGES: [&str; 12] = [
    "go", "s", "S", "asm", "d", "zig", "nim", "swift", "pas", "adb", "java", "pyx",
];

/// A file, read once; its syntax tree is made when it is asked for.
#[derive(Default)]
struct SourceFile {
    lines: Vec<String>,
    tree: OnceCell<Option<SourceTree>>,
}

impl SourceFile {
    fn tree(&self, file: &str) -> Option<&SourceTree> {
        let grammar = match extension(file) {
            Some("rs") => Grammar::Rust,
            Some("c") => Grammar::C,
            Some(other) if OTHER_LANGUAGES.contains(&other) => return None,
            // C++ has many, and none.
            _ => Grammar::Cpp,
        };
        let parse = || SourceTree::parse(self.lines.join("\n"), grammar);
        self.tree.get_or_init(parse).as_ref()
    }
}

/// Source files, read once.
#[derive(Default)]
pub struct SourceFiles {
    files: HashMap<String, SourceFile>,
}

impl SourceFiles {
    fn file(&mut self, file: &str) -> &SourceFile {
        if self.files.len() >= MAX_FILES && !self.files.contains_key(file) {
            self.files.clear();
        }
        self.files
            .entry(file.to_owned())
            .or_insert_with(|| SourceFile {
                lines: read_source_lines(Path::new(file)).unwrap_or_default(),
                tree: OnceCell::new(),
            })
    }

    pub fn receiver(&mut self, file: &str, line: u32, column: u32) -> AllocationReceiver {
        let source = self.file(file);
        let at = (line as usize).checked_sub(1);
        let Some(at) = at.filter(|at| *at < source.lines.len()) else {
            return AllocationReceiver::Unknown;
        };
        if extension(file).is_some_and(is_fortran) {
            return super::source_fortran::receiver(&source.lines, at);
        }
        let tree = source.tree(file);
        tree.map_or(AllocationReceiver::Unknown, |t| t.receiver(line, column))
    }

    /// The syntax tree of a file in C, C++ or Rust.
    pub fn tree(&mut self, file: &str) -> Option<&SourceTree> {
        let other = extension(file).is_none_or(|e| !is_fortran(e));
        other.then(|| self.file(file).tree(file))?
    }

    /// Whether the rest of the function at `line` returns `variable`.
    pub fn returns(&mut self, file: &str, line: u32, variable: &str) -> bool {
        const MAX_REST: usize = 200;
        let rest = self
            .file(file)
            .lines
            .iter()
            .skip(line as usize)
            .take(MAX_REST);
        rest.take_while(|l| !l.starts_with('}')).any(|l| {
            let statement = l.rsplit_once("return ").map_or("", |(_, value)| value);
            let value = statement.split(';').next().unwrap_or("");
            value.trim_matches([' ', '(', ')']) == variable
        })
    }
}

fn extension(file: &str) -> Option<&str> {
    Path::new(file).extension()?.to_str()
}

fn is_fortran(extension: &str) -> bool {
    let lower = extension.to_ascii_lowercase();
    matches!(
        lower.as_str(),
        "f" | "for" | "ftn" | "fpp" | "f77" | "f90" | "f95" | "f03" | "f08"
    )
}

fn read_source_lines(path: &Path) -> Option<Vec<String>> {
    let (file, _) = open_regular(path, MAX_SOURCE).ok()?;
    let mut bytes = Vec::new();
    file.take(MAX_SOURCE).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let clipped = |l: &str| super::demangle::truncate_utf8(l, MAX_LINE).to_owned();
    Some(text.lines().map(clipped).collect())
}
