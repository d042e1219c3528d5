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
