//! Stripped programs and where their debug information is looked for.
use super::{line_of, named, Workshop};
use crate::trace::symbolizer::{SourceLine, Symbolizer};
use crate::trace::symbols::ProgramSymbols;

const C: &str = "
double grid[16];
__attribute__((noinline)) int inner(int n) { return grid[n & 15] * 3; }
static inline int middle(int n) {
  int r = inner(n) + 1; // call
  return r;
}
int main(int c, char **v) { (void)v; return middle(c); }
";

#[test]
fn split_debug_files_are_found() {
    let shop = Workshop::new();
    let text_of = |name: &str| format!("{name}.debug");
    for (id, build_id) in [("plain", "-Wl,--build-id=none"), ("ided", "-Wl,--build-id")] {
        let program = shop.build(&format!("{id}.c"), C, &["-g", build_id]);
        let out = program.to_str().expect("UTF-8");
        let debug = text_of(id);
        shop.tool("objcopy", &["--only-keep-debug", out, &debug]);
        shop.tool("strip", &[out]);
        assert!(ProgramSymbols::new()
            .static_objects(&program)
            .iter()
            .all(|o| o.name != "grid"));
        shop.tool("objcopy", &[&format!("--add-gnu-debuglink={debug}"), out]);
        let check = |place: &str| {
            let grid = named(&program, "grid");
            assert_eq!(grid.type_name, "double [16]", "{id} {place}");
            assert_eq!(grid.line, line_of(C, "double grid"), "{id} {place}");
        };
        check("beside it");
        std::fs::create_dir_all(shop.path(".debug")).expect("can create");
        let hidden = shop.path(".debug").join(&debug);
        std::fs::rename(shop.path(&debug), &hidden).expect("can move");
        check("in .debug");
        // A file of another program is not taken.
        let other = C.replace("grid[16]", "grid[32]");
        let other = shop.build("other.c", &other, &["-g", build_id]);
        shop.tool(
            "objcopy",
            &[
                "--only-keep-debug",
                other.to_str().expect("UTF-8"),
                hidden.to_str().expect("UTF-8"),
            ],
        );
        let all = ProgramSymbols::new().static_objects(&program);
        assert!(all.iter().all(|o| o.name != "grid"), "{id}: {all:?}");
    }
}

#[test]
fn a_debug_link_cannot_point_elsewhere() {
    let shop = Workshop::new();
    let program = shop.build("c.c", C, &["-g"]);
    let mut elf = super::super::elf::ElfImage::open(&program).expect("ELF");
    elf.sections.clear();
    elf.build_id = None;
    for link in ["../c.out", "/etc/passwd", "..", ".", "", "c.out"] {
        elf.debug_link = Some((link.into(), 0));
        super::super::debug_file::add_separate_debug(&program, &mut elf);
        assert!(!elf.has_dwarf(), "{link}");
    }
}

#[test]
fn lines_name_the_innermost_inlined_function() {
    let shop = Workshop::new();
    for options in [
        &["-g", "-O2"][..],
        &["-gdwarf-4", "-O2"],
        &["-g", "-O2", "-no-pie", "-gz"],
    ] {
        let program = shop.build("c.c", C, options);
        let inner = super::super::ProgramSymbols::new().function_addresses(&program, "inner")[0];
        let mut symbols = ProgramSymbols::new();
        let expected = SourceLine {
            file: shop.path("c.c").to_string_lossy().into_owned(),
            line: line_of(C, "int inner"),
            function: "inner".into(),
            ..SourceLine::default()
        };
        assert_eq!(symbols.source_line(&program, inner), Some(expected));
        let main = super::super::ProgramSymbols::new().function_addresses(&program, "main")[0];
        let lines: Vec<_> = (main..main + 24)
            .filter_map(|pc| symbols.source_line(&program, pc))
            .filter(|l| l.function == "middle")
            .map(|l| l.line)
            .collect();
        assert!(
            lines.contains(&line_of(C, "// call")),
            "{options:?}: {lines:?}"
        );
    }
}

/// `_init` has no size, and the entries of the PLT follow it in the next section.
#[test]
fn a_symbol_without_a_size_ends_with_its_section() {
    let shop = Workshop::new();
    let program = shop.build("c.c", C, &["-O1"]);
    let elf = super::super::elf::ElfImage::open(&program).expect("ELF");
    let init = elf.functions.iter().find(|f| f.raw == "_init");
    let init = init.expect("it is there");
    assert_eq!(init.size, 0);
    let name = |at| elf.function_at(at).map(|f| f.raw.as_str());
    assert_eq!(name(init.vaddr + 8), Some("_init"));
    let next = elf.code_sections.iter().find(|s| **s > init.vaddr);
    assert_eq!(name(*next.expect("the PLT")), None);
}

/// LLVM gives constants without a name one of its own where it moves code to another unit.
#[test]
fn names_that_llvm_makes_up_are_no_variables() {
    let text = r#"
__attribute__((used)) const char moved[64] __asm__("anon.0123456789abcdef0123456789abcdef.7.llvm.42");
__attribute__((used)) const char named[64] __asm__("anon.short.7");
int main(void) { return 0; }
"#;
    let shop = Workshop::new();
    let program = shop.build("c.c", text, &["-O1"]);
    let all = ProgramSymbols::new().static_objects(&program);
    let anonymous = all.iter().filter(|o| o.name.starts_with("anon."));
    let names: Vec<_> = anonymous.map(|o| o.name.as_str()).collect();
    assert_eq!(names, ["anon.short.7"]);
}

/// The loads of a vector are those of the line that adds, not of the header that wraps the instruction.
#[test]
fn vector_instructions_are_on_the_line_that_uses_them() {
    let text = "
#include <emmintrin.h>
__m128i total;
__attribute__((noinline)) void add(const __m128i *p) {
  total = _mm_add_epi8(total, _mm_loadu_si128(p)); // here
}
int main(void) { __m128i a = _mm_setzero_si128(); add(&a); return 0; }
";
    let shop = Workshop::new();
    let program = shop.build("c.c", text, &["-g", "-O2"]);
    let module = super::super::ModuleSymbols::open(&program).expect("ELF");
    let add = module.elf.functions.iter().find(|f| f.raw == "add");
    let add = add.expect("it is there");
    let mut symbols = ProgramSymbols::new();
    let lines: Vec<_> = (add.vaddr..add.vaddr + add.size)
        .filter_map(|pc| symbols.program_line(&program, pc))
        .collect();
    assert!(lines.iter().any(|l| l.callee.starts_with("_mm_")));
    for line in lines {
        assert!(line.file.ends_with("c.c"), "{line:?}");
        assert!(line.callee.is_empty() || line.line == line_of(text, "// here"));
    }
}

/// What a header does for all that use it says less than who uses it; but a header may hold the program's loops.
#[test]
fn accesses_of_a_headers_helper_are_on_the_line_that_uses_it() {
    let header = "
static inline long *element(long *all, long at) {
  return all + at;
}
static inline void add(long *to, long n) {
  __sync_fetch_and_add(to, n);
}
static inline void fill(long *all, long n) {
  for (long i = 0; i < n; i++)
    all[i] = n; // in the header
}
";
    let text = "
#include \"helpers.h\"
__attribute__((noinline)) void work(long *all, long n) {
  fill(all, n);
  for (long i = 0; i < n; i++)
    add(element(all, i), n); // here
}
int main(int c, char **v) { static long all[9]; work(all, c + (v != 0)); return 0; }
";
    let shop = Workshop::new();
    shop.write("helpers.h", header);
    let program = shop.build("c.c", text, &["-g", "-O2"]);
    let module = super::super::ModuleSymbols::open(&program).expect("ELF");
    let work = module.elf.functions.iter().find(|f| f.raw == "work");
    let work = work.expect("it is there");
    let mut symbols = ProgramSymbols::new();
    let lines: Vec<_> = (work.vaddr..work.vaddr + work.size)
        .filter_map(|pc| symbols.program_line(&program, pc))
        .collect();
    let adds = || lines.iter().filter(|l| l.callee == "add");
    assert!(adds().count() > 0, "{lines:?}");
    for line in adds() {
        assert!(line.file.ends_with("c.c"), "{line:?}");
        assert_eq!(line.line, line_of(text, "// here"));
    }
    let fill = lines
        .iter()
        .find(|l| l.line == line_of(header, "// in the header"));
    assert!(
        fill.is_some_and(|l| l.file.ends_with("helpers.h")),
        "{lines:?}"
    );
}

#[test]
fn without_debug_information_a_line_is_a_function() {
    let shop = Workshop::new();
    let program = shop.build("c.c", C, &["-O1"]);
    let inner = super::super::ProgramSymbols::new().function_addresses(&program, "inner")[0];
    let expected = SourceLine {
        function: "inner".into(),
        ..SourceLine::default()
    };
    assert_eq!(
        ProgramSymbols::new().source_line(&program, inner + 1),
        Some(expected)
    );
}

#[test]
fn what_is_not_elf_has_no_names() {
    let shop = Workshop::new();
    let text = shop.write("script", "#!/bin/sh\n");
    let fifo = shop.path("fifo");
    shop.tool("mkfifo", &[fifo.to_str().expect("UTF-8")]);
    for file in [
        text,
        fifo,
        shop.path("absent"),
        "/dev/zero".into(),
        "/".into(),
    ] {
        let mut symbols = ProgramSymbols::new();
        assert_eq!(symbols.static_objects(&file), []);
        assert_eq!(symbols.source_line(&file, 4096), None);
        let name = symbols.allocation_name(&[(file, 0x10)]);
        assert!(name.name.ends_with("+0x10"), "{}", name.name);
    }
    let none = ProgramSymbols::new().allocation_name(&[]);
    assert_eq!(none.name, "unknown site");
}

#[test]
fn symbols_can_move_to_the_collecting_thread() {
    fn check(_: impl Send) {}
    check(ProgramSymbols::new());
}
