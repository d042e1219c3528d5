//! Which frame of an allocation's stack is the program's own, and what the block is
//! called there.
use super::demangle::{short_arguments, unqualified};
use super::line_table::InlineFrame;
use super::FunctionSymbol;
use hither_profile::file_name;
use std::path::Path;

/// Libraries whose frames only pass a request on.
const RUNTIMES: [&str; 27] = [
    "ld-linux",
    "libc.so",
    "libc-2",
    "libpthread",
    "libstdc++",
    "libc++",
    "libgcc_s",
    "libgfortran",
    "libgomp",
    "libomp",
    "libiomp5",
    "libm.so",
    "libdl.so",
    "librt.so",
    "libquadmath",
    "libmvec",
    "libjemalloc",
    "libtcmalloc",
    "libmimalloc",
    "libtbbmalloc",
    "libdynamorio",
    "libhither",
    "libasan",
    "libtsan",
    "libmpi.so",
    "libopen-pal",
    "libopen-rte",
];

/// Where headers that allocate or compute for the program live; compilers keep those of their vector
/// instructions in folders of their own.
const LIBRARY_SOURCES: [&str; 10] = [
    "/usr/include/",
    "/lib/gcc/",
    "/lib/clang/",
    "/include/c++/",
    "/rustc/",
    "/rustlib/src/rust/library/",
    "/library/alloc/src/",
    "/library/core/src/",
    "/library/std/src/",
    "/libstdc++-v3/",
];

const HEADERS: [&str; 10] = [
    "h", "H", "hh", "hpp", "hxx", "h++", "inl", "ipp", "tcc", "tpp",
];

/// Functions that hand a block on: the caller is the one that wants it.
const WRAPPING: [&str; 8] = [
    "malloc",
    "calloc",
    "realloc",
    "memalign",
    "operator new",
    "strdup",
    "aligned_alloc",
    "pydatamem",
];

/// Whether the name of a file begins with one of these.
pub fn name_begins_with(file: &Path, beginnings: &[&str]) -> bool {
    let name = file.file_name().and_then(|n| n.to_str()).unwrap_or("");
    beginnings.iter().any(|b| name.starts_with(b))
}

pub fn is_runtime(file: &Path) -> bool {
    name_begins_with(file, &RUNTIMES)
}

/// Code of DynamoRIO or of hither in the program.
pub fn is_tracer(file: &Path) -> bool {
    name_begins_with(file, &["libdynamorio", "libhither"])
}

/// Programs and libraries that execute programs in their own language, whose calls are all made in a few places; so
/// are those of modules that call any function of any library for them.
const INTERPRETERS: [&str; 10] = [
    "_ctypes.",
    "_cffi_backend.",
    "python",
    "libpython",
    "ruby",
    "libruby",
    "perl",
    "libperl",
    "libR.so",
    "liblua",
];

pub fn is_interpreter(file: &Path) -> bool {
    name_begins_with(file, &INTERPRETERS)
}

/// A library of the system: not what the user can change.
pub fn is_system(file: &Path) -> bool {
    let name = file.file_name().and_then(|n| n.to_str()).unwrap_or("");
    let under = ["/usr/lib", "/lib"].iter().any(|d| file.starts_with(d));
    let lib = ["/usr/lib64", "/lib64", "/usr/lib32"];
    is_runtime(file) || (name.contains(".so") && (under || lib.iter().any(|d| file.starts_with(d))))
}

/// Whole names of functions that hand a block on.
const GENERIC: [&str; 6] = [
    "alloc",
    "xalloc",
    "allocate",
    "safe_alloc",
    "my_alloc",
    "mmap",
];

/// What the names of others begin with: C++'s library, and how Go's runtime asks the system.
const GENERIC_PREFIXES: [&str; 5] = [
    "std::",
    "__gnu_cxx::",
    "runtime.mmap",
    "runtime.sys",
    "runtime.(*mheap).sysAlloc",
];

pub fn is_wrapper(function: &str) -> bool {
    let lower = unqualified(function).to_ascii_lowercase();
    WRAPPING.iter().any(|w| lower.contains(w))
        || GENERIC.contains(&lower.as_str())
        || GENERIC_PREFIXES.iter().any(|p| function.starts_with(p))
}

/// Whether a function is called after allocating, as `CRYPTO_zalloc`, `apr_palloc` and `Arena::AllocateAligned` are:
/// of a library without lines, who called it says more.
pub fn is_named_allocator(function: &str) -> bool {
    let name = unqualified(function);
    let ends = |(at, _): (usize, &str)| {
        let rest = &name[at + ALLOC.len()..];
        // `allocator` and `allocation` are things that have other functions too.
        let word = rest.strip_prefix("ate").unwrap_or(rest);
        !word.starts_with(|c: char| c.is_ascii_lowercase())
    };
    let lower = name.to_ascii_lowercase();
    is_wrapper(function) || lower.match_indices(ALLOC).any(ends)
}

const ALLOC: &str = "alloc";

pub fn is_library_source(file: &str) -> bool {
    LIBRARY_SOURCES.iter().any(|d| file.contains(d))
}

/// A file whose code is compiled as a part of others.
pub fn is_header(file: &str) -> bool {
    let extension = Path::new(file).extension().and_then(|e| e.to_str());
    extension.is_some_and(|e| HEADERS.contains(&e))
}

/// Whether a frame has a line to show, of the program itself.
pub fn has_own_line(frame: &InlineFrame) -> bool {
    frame.line > 0 && !is_library_source(&frame.file)
}

/// Whether a frame is code of the program itself that does not merely hand a block on.
pub fn is_program_frame(frame: &InlineFrame) -> bool {
    has_own_line(frame) && !is_wrapper(&frame.function)
}

/// `file.c:123 (function)`.
pub fn line_label(frame: &InlineFrame) -> String {
    let file = file_name(&frame.file);
    match frame.function.as_str() {
        "" => format!("{file}:{}", frame.line),
        function => format!("{file}:{} ({function})", frame.line),
    }
}

/// `function+0x12 (libfoo.so)` where a symbol is known, else `libfoo.so+0x1234`.
pub fn offset_label(file: &Path, vaddr: u64, symbol: Option<&FunctionSymbol>) -> String {
    let module = file.file_name().map(|n| n.to_string_lossy());
    let module = module.unwrap_or_else(|| file.to_string_lossy());
    match symbol {
        Some(FunctionSymbol { name, start }) => {
            format!("{}+{:#x} ({module})", short_arguments(name), vaddr - start)
        }
        None => format!("{module}+{vaddr:#x}"),
    }
}
