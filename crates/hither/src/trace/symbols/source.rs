//! Which variable receives a block, from the source of the allocating statement.
//!
//! A wrong file (edited since it was compiled) can give a wrong name but no more than that.
use super::elf::open_regular;
use super::source_tree::{Grammar, SourceTree};
use std::cell::OnceCell;
use std::collections::HashMap;
use std::io::Read;
use std::path::Path;

const MAX_SOURCE: u64 = 4 << 20;
const MAX_LINE: usize = 2000;
const MAX_FILES: usize = 1024;

#[derive(Clone, Debug, PartialEq)]
pub enum LvalueStep {
    Member(String),
    Index,
}

/// A variable, or a part of one, as written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lvalue {
    pub text: String,
    pub root: String,
    pub steps: Vec<LvalueStep>,
}

/// What the statement does with the block.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum AllocationReceiver {
    /// One or, in Fortran's `allocate(a, b)`, several variables, in order.
    Variables(Vec<Lvalue>),
    /// `return malloc(n)`: the caller names it.
    Returned,
    #[default]
    Unknown,
}

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

/// The expression that ends `text`: `double *g->rows[i]` gives `g->rows[i]`.
pub fn trailing_lvalue(text: &str) -> Option<Lvalue> {
    let bytes = text.trim_end().as_bytes();
    let mut start = bytes.len();
    while start > 0 {
        let c = bytes[start - 1];
        start = match c {
            b']' | b')' => matching_open(bytes, start - 1)?,
            b'>' if start > 1 && bytes[start - 2] == b'-' => start - 2,
            b'.' | b'%' => start - 1,
            b':' if start > 1 && bytes[start - 2] == b':' => start - 2,
            _ if is_word(c) => start - 1,
            _ => break,
        };
    }
    let own = std::str::from_utf8(&bytes[start..]).ok()?;
    let prefix = text[..start].trim_end();
    let mut found = parse_lvalue(own)?;
    // `*p = malloc(n)` stores behind p; `T *p = malloc(n), *q = malloc(n)` declares p and q.
    let before = prefix.trim_end_matches('*').trim_end();
    let declares = before.ends_with(|c: char| is_word(c as u8) || c == '>' || c == ',');
    if prefix.ends_with('*') && !declares {
        found.text.insert(0, '*');
        found.steps.push(LvalueStep::Index);
    }
    Some(found)
}

/// Reads `a->b[i].c`, `this->a`, `a%b(i)`, `ns::a`.
pub fn parse_lvalue(text: &str) -> Option<Lvalue> {
    let text = text.trim();
    let text = ["this->", "self."]
        .iter()
        .find_map(|p| text.strip_prefix(p))
        .unwrap_or(text);
    let bytes = text.as_bytes();
    let word_end = |from: usize| {
        let rest = &bytes[from..];
        from + rest.iter().take_while(|c| is_word(**c)).count()
    };
    let mut at = word_end(0);
    while text[at..].starts_with("::") {
        at = word_end(at + 2);
    }
    let root = text[..at].rsplit("::").next()?.to_owned();
    if root.is_empty() || root.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let mut steps = Vec::new();
    while at < bytes.len() {
        let member = match &text[at..] {
            t if t.starts_with("->") => Some(2),
            t if t.starts_with(['.', '%']) => Some(1),
            t if t.starts_with(['[', '(']) => None,
            _ => return None,
        };
        at = match member {
            Some(skip) => {
                let end = word_end(at + skip);
                steps.push(LvalueStep::Member(text[at + skip..end].to_owned()));
                end
            }
            None => {
                steps.push(LvalueStep::Index);
                matching_close(bytes, at)? + 1
            }
        };
    }
    Some(Lvalue {
        text: text.to_owned(),
        root,
        steps,
    })
}

pub fn is_word(c: u8) -> bool {
    c.is_ascii_alphanumeric() || c == b'_' || c == b'$' || c >= 0x80
}

/// Index of the bracket that opens the one at `close`.
fn matching_open(bytes: &[u8], close: usize) -> Option<usize> {
    let mut depth = 0usize;
    for at in (0..=close).rev() {
        match bytes[at] {
            b')' | b']' | b'}' => depth += 1,
            b'(' | b'[' | b'{' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// Index of the bracket that closes the one at `open`.
pub fn matching_close(bytes: &[u8], open: usize) -> Option<usize> {
    let mut depth = 0usize;
    for (at, byte) in bytes.iter().enumerate().skip(open) {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// Splits at `separator` outside brackets.
pub fn split_top(text: &str, separator: u8) -> Vec<&str> {
    let (mut depth, mut from, mut parts) = (0i32, 0, Vec::new());
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth -= 1,
            _ if byte == separator && depth == 0 => {
                parts.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[from..]);
    parts
}
