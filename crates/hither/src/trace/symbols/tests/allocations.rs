//! Allocation sites of compiled programs; call addresses as objdump shows them.
use super::{line_of, Workshop};
use crate::trace::symbolizer::{AllocationName, Symbolizer};
use crate::trace::symbols::functions::function_addresses;
use crate::trace::symbols::{ModuleSymbols, ProgramSymbols};
use std::path::{Path, PathBuf};

/// (address in the call, function it is in, function it calls)
pub(super) type Call = (u64, String, String);

pub(super) fn calls(shop: &Workshop, program: &Path) -> Vec<Call> {
    let listing = shop.tool(
        "objdump",
        &["-d", "--no-show-raw-insn", program.to_str().expect("UTF-8")],
    );
    let mut found: Vec<Call> = Vec::new();
    let mut function = String::new();
    let mut open = false;
    for line in listing.lines() {
        if let Some((_, name)) = line.strip_suffix(">:").and_then(|l| l.split_once('<')) {
            function = name.to_owned();
        }
        let Some((address, code)) = line.trim().split_once(':') else {
            continue;
        };
        let Ok(address) = u64::from_str_radix(address, 16) else {
            continue;
        };
        // The return address is the next instruction's.
        if let (true, Some(call)) = (open, found.last_mut()) {
            call.0 = address - 1;
        }
        open = code.trim().starts_with("call");
        if let (true, Some((_, to))) = (open, code.split_once('<')) {
            let to = to.trim_end_matches('>').trim_end_matches("@plt");
            found.push((address, function.clone(), to.to_owned()));
        } else {
            open = false;
        }
    }
    found
}

/// The calls of `callee`, in order of address.
pub(super) fn calls_of(all: &[Call], callee: &str) -> Vec<u64> {
    let own = all.iter().filter(|c| c.2 == callee);
    own.map(|c| c.0).collect()
}

/// The stacks from calls of `callee` up to main, by the static call graph.
pub(super) fn stacks(all: &[Call], callee: &str, depth: usize) -> Vec<Vec<u64>> {
    let mut found = Vec::new();
    for (at, inside, _) in all.iter().filter(|c| c.2 == callee) {
        if inside == "main" || depth == 0 {
            found.push(vec![*at]);
            continue;
        }
        for mut rest in stacks(all, inside, depth - 1) {
            rest.insert(0, *at);
            found.push(rest);
        }
    }
    found
}

pub(super) fn frames(program: &Path, stack: &[u64]) -> Vec<(PathBuf, u64)> {
    stack.iter().map(|pc| (program.to_owned(), *pc)).collect()
}

pub(super) fn show(a: &AllocationName) -> String {
    format!("{} | {} | {} | {}", a.name, a.type_name, a.line, a.function)
}

pub(super) const C: &str = r#"
#include <stdio.h>
#include <stdlib.h>
struct cell { int id; double *values; };
struct grid { int n; struct cell *cells; double **rows; };
double *global;
__attribute__((noinline)) void *xmalloc(size_t n) { void *p = malloc(n); if (!p) exit(1); return p; }
__attribute__((noinline)) double *fresh(size_t n) { return malloc(n * 8 + 1); }
__attribute__((noinline)) void keep(void *p) { __asm__ volatile("" : : "r"(p) : "memory"); }
__attribute__((noinline)) float *row_of(int n) {
  float *new = malloc(n * sizeof *new);
  keep(new);
  return (new);
}
__attribute__((noinline)) double **matrix(int n) {
  double **rows = malloc(n * sizeof *rows);
  rows[0] = malloc(n * n * sizeof **rows);
  keep(rows);
  return rows;
}
__attribute__((noinline)) double *cached(int n) {
  global = realloc(global, n); // kept
  keep(global);
  return global;
}
__attribute__((noinline)) float **rows_of(int n) {
  float **new = malloc(n * sizeof *new);
  for (int i = 0; i < n; i++) {
    new[i] = row_of(n);
    keep(new[i]);
  }
  return new;
}
int main(int c, char **v) {
  struct grid g, *pg = &g;
  double *local = malloc(c * 8);                    // 1
  keep(local);
  pg->cells = calloc(c, sizeof(struct cell));       // 2
  keep(pg->cells);
  pg->cells[0].values = (double *)malloc(c);        // 3
  keep(pg->cells[0].values);
  global =
      malloc(c);                                    // 4
  keep(global);
  int *wrapped = xmalloc(c);                        // 5
  keep(wrapped);
  double *handed = fresh(c);                        // 6
  keep(handed);
  keep(malloc(c + 3));                              // 7
  pg->rows = malloc(c * sizeof *pg->rows);          // 8
  keep(pg->rows);
  for (int i = 0; i < c; i++) { pg->rows[i] = malloc(c); keep(pg->rows[i]); } // 9
  double **A = matrix(c);                           // 10
  keep(A);
  double *use = cached(c);
  keep(use);
  double *new = malloc(c);                          // 11
  keep(new);
  for (int i = 0; i < c; i++) {
    short *twice = malloc(c);                       // 13
    keep(twice);
  }
  for (int i = 0; i < c; i++) {
    long *twice = malloc(c);                        // 14
    keep(twice);
  }
  float **weights = rows_of(c);                     // 12
  keep(weights);
  return v == 0;
}
"#;

#[test]
fn c_variables_with_types() {
    let shop = Workshop::new();
    for options in [
        &["-g", "-O0"][..],
        &["-g", "-O2", "-fno-optimize-sibling-calls"],
        &["-gdwarf-4", "-O1", "-gz", "-no-pie"],
    ] {
        let program = shop.build("c.c", C, options);
        let all = calls(&shop, &program);
        let mut symbols = ProgramSymbols::new();
        let mut found: Vec<String> = Vec::new();
        for callee in ["malloc", "calloc", "realloc"] {
            for stack in stacks(&all, callee, 2) {
                found.push(show(&symbols.allocation_name(&frames(&program, &stack))));
            }
        }
        let expected = |name: &str, type_name: &str, mark: u32| {
            let line = line_of(C, &format!("// {mark}"));
            format!("{name} | {type_name} | {line} | main")
        };
        let mut expected = vec![
            expected("local", "double", 1),
            expected("pg->cells", "struct cell", 2),
            expected("pg->cells[0].values", "double", 3),
            expected("global", "double", 4),
            expected("wrapped", "int", 5),
            expected("handed", "double", 6),
            expected(&format!("c.c:{} (main)", line_of(C, "// 7")), "", 7),
            expected("pg->rows", "double *", 8),
            expected("pg->rows[i]", "double", 9),
            expected("A", "double *", 10),
            expected("A[0]", "double", 10),
            expected("new", "double", 11),
            expected("twice", "short", 13),
            expected("twice", "long", 14),
            expected("weights", "float *", 12),
            expected("weights[i]", "float", 12),
            format!("global | double | {} | cached", line_of(C, "// kept")),
        ];
        found.sort();
        // Compilers copy code.
        found.dedup();
        expected.sort();
        assert_eq!(found, expected, "{options:?}");
    }
}

const CPP: &str = r#"
#include <memory>
#include <string>
#include <vector>
struct Grid {
  int *flags; std::vector<double> data;
  Grid(int n);
};
Grid::Grid(int n)
    : flags(new int[n]), data(n) { // 1
}
__attribute__((noinline)) void keep(void *p) { __asm__ volatile("" : : "r"(p) : "memory"); }
int main(int c, char **) {
  std::vector<double> grid(c * 100);     // 2
  keep(grid.data());
  auto *p = new float[c];                // 3
  keep(p);
  auto u = std::make_unique<long[]>(c);  // 4
  keep(u.get());
  grid.resize(c * 1000);                 // 5
  keep(grid.data());
  Grid g(c);
  keep(&g);
  return 0;
}
"#;

#[test]
fn cpp_containers_and_new() {
    let shop = Workshop::new();
    for options in [&["-g", "-O0"][..], &["-g", "-O2"]] {
        let program = shop.build("p.cpp", CPP, options);
        let all = calls(&shop, &program);
        let mut symbols = ProgramSymbols::new();
        let mut found = std::collections::BTreeSet::new();
        for callee in ["_Znwm", "_Znam"] {
            for stack in stacks(&all, callee, 9) {
                let a = symbols.allocation_name(&frames(&program, &stack));
                found.insert(format!("{} | {} | {}", a.name, a.type_name, a.line));
            }
        }
        let vector = "vector<double>";
        for (name, type_name, mark) in [
            ("flags", "int", "// 1"),
            ("data", vector, "// 1"),
            ("grid", vector, "// 2"),
            ("p", "float", "// 3"),
            ("grid", vector, "// 5"),
        ] {
            let expected = format!("{name} | {type_name} | {}", line_of(CPP, mark));
            assert!(
                found.contains(&expected),
                "{expected} is not in {found:#?} {options:?}"
            );
        }
        let unique = format!("| {}", line_of(CPP, "// 4"));
        assert!(
            found
                .iter()
                .any(|f| f.starts_with("u |") && f.ends_with(&unique)),
            "{found:#?}"
        );
    }
}

/// What receives the block is known to people by what the caller calls it.
const OWNED: &str = r#"
#include <cstdlib>
__attribute__((noinline)) void keep(void *p) { __asm__ volatile("" : : "r"(p) : "memory"); }
template <class T> struct array {
  T *start_;
  array(size_t n) { start_ = new T[n]; keep(start_); }
  array(size_t n, T v) : array(n) { start_[0] = v; }
  __attribute__((noinline)) void grow(size_t n) { start_ = new T[n + 1]; keep(start_); } // own
};
template <class T> struct graph { array<T> rows; graph(size_t n) : rows(n, T(2)) {} };
struct grid { double *data; int n; };
__attribute__((noinline)) void filled(int **out, size_t n) { *out = new int[n]; keep(*out); } // filled
__attribute__((noinline)) void passed(int **to, size_t n) { filled(to, n); keep(to); }
__attribute__((noinline)) void init(grid *g, int n) { g->data = new double[n]; keep(g->data); } // init
__attribute__((noinline)) void refer(float *&r, size_t n) { r = new float[n]; keep(r); } // refer
__attribute__((noinline)) array<char> made(size_t n) { return array<char>(n); }
int main(int c, char **) {
  array<double> ranks(c);                 // 1
  keep(&ranks);
  array<float> deltas(c, 1.5f);           // 2
  keep(&deltas);
  graph<long> web(c);                     // 3
  keep(&web);
  int *index, *other;
  filled(&index, c);
  keep(index);
  passed(&other, c);
  keep(other);
  grid world;
  init(&world, c);
  keep(&world);
  float *referred;
  refer(referred, c);
  keep(referred);
  array<char> letters = made(c);          // 4
  keep(&letters);
  letters.grow(c);                        // 5
  keep(&letters);
  return 0;
}
"#;

#[test]
fn containers_and_arguments_are_called_as_the_caller_does() {
    let shop = Workshop::new();
    for options in [&["-g", "-O0"][..], &["-g", "-O2"]] {
        let program = shop.build("o.cpp", OWNED, options);
        let all = calls(&shop, &program);
        let mut symbols = ProgramSymbols::new();
        let mut found = std::collections::BTreeSet::new();
        for stack in stacks(&all, "_Znam", 9) {
            let a = symbols.allocation_name(&frames(&program, &stack));
            found.insert(format!("{} | {} | {}", a.name, a.type_name, a.line));
        }
        let expected = [
            ("ranks.start_", "double", "// 1"),
            ("deltas.start_", "float", "// 2"),
            ("web.rows.start_", "long", "// 3"),
            ("index", "int", "// filled"),
            ("other", "int", "// filled"),
            ("world.data", "double", "// init"),
            ("referred", "float", "// refer"),
            ("letters.start_", "char", "// 4"),
            ("letters.start_", "char", "// 5"),
        ];
        let expected = expected.map(|(name, type_name, mark)| {
            format!("{name} | {type_name} | {}", line_of(OWNED, mark))
        });
        assert_eq!(found, expected.into(), "{options:?}");
    }
}

const FORTRAN: &str = "
module store
  real(8), allocatable :: shared(:)
  type box
    integer, allocatable :: items(:)
  end type
end module
program main
  use store
  real(8), allocatable :: p(:), q(:,:)
  type(box) :: b
  integer :: n
  n = command_argument_count() + 5
  allocate(p(n), q(n,6))  ! 1
  allocate(shared(n))     ! 2
  allocate(b%items(n))    ! 3
  p(1) = n; q = 2; shared = p(1); b%items = 3
  print *, p(1), q(1,1), shared(n), b%items(1)
end program
";

#[test]
fn fortran_allocate_statements() {
    let shop = Workshop::new();
    for options in [&["-g", "-O0"][..], &["-g", "-O2"]] {
        let program = shop.build("f.f90", FORTRAN, options);
        let all = calls(&shop, &program);
        let mut symbols = ProgramSymbols::new();
        let found: Vec<String> = calls_of(&all, "malloc")
            .into_iter()
            .map(|pc| symbols.allocation_name(&frames(&program, &[pc])))
            .map(|a| format!("{} | {} | {}", a.name, a.type_name, a.line))
            .collect();
        for (name, type_name, mark) in [
            ("p", "real(8), allocatable (:)", "! 1"),
            ("q", "real(8), allocatable (:,:)", "! 1"),
            ("shared", "real(8), allocatable (:)", "! 2"),
            ("b%items", "integer(4), allocatable (:)", "! 3"),
        ] {
            let expected = format!("{name} | {type_name} | {}", line_of(FORTRAN, mark));
            assert!(
                found.contains(&expected),
                "{expected} is not in {found:#?} {options:?}"
            );
        }
    }
}

const RUST: &str = "
#[inline(never)]
fn cells(n: usize) -> usize {
    let mut grid: Vec<f64> = vec![1.5; n]; // 1
    grid.resize(n * 2, 0.5);
    std::hint::black_box(&mut grid).len()
}
fn main() {
    println!(\"{}\", cells(std::env::args().count()));
}
";

#[test]
fn rust_vectors() {
    let shop = Workshop::new();
    let program = shop.build("r.rs", RUST, &["-g", "-Copt-level=2"]);
    let mut symbols = ProgramSymbols::new();
    let line = line_of(RUST, "// 1");
    let found: Vec<_> = calls(&shop, &program)
        .iter()
        .filter(|c| c.1.contains("cells"))
        .map(|c| symbols.allocation_name(&frames(&program, &[c.0])))
        .filter(|a| a.line == line)
        .map(|a| (a.name, a.type_name, a.function))
        .collect();
    assert!(!found.is_empty());
    for (name, type_name, function) in found {
        assert_eq!((name.as_str(), function.as_str()), ("grid", "r::cells"));
        assert!(type_name.starts_with("Vec<f64"), "{type_name}");
    }
}

#[test]
fn without_debug_information_the_nearest_symbol() {
    let shop = Workshop::new();
    let program = shop.build("c.c", C, &["-O2"]);
    let all = calls(&shop, &program);
    let module = ModuleSymbols::open(&program).expect("ELF");
    for stack in stacks(&all, "malloc", 2) {
        let found = ProgramSymbols::new().allocation_name(&frames(&program, &stack));
        let own = if ["fresh", "matrix", "row_of", "rows_of"].contains(&found.function.as_str()) {
            stack[0]
        } else {
            *stack.last().expect("a frame")
        };
        let start = *function_addresses(&module, &found.function)
            .first()
            .expect("a function");
        let offset = own - start;
        assert_eq!(
            found.name,
            format!("{}+{offset:#x} (c.out)", found.function)
        );
        let functions = ["main", "fresh", "matrix", "row_of", "rows_of"];
        assert!(functions.contains(&found.function.as_str()));
    }
}

/// What a library keeps for itself is nobody's variable, though a line of the program led to it.
#[test]
fn blocks_that_the_openmp_runtime_keeps_are_its_own() {
    let shop = Workshop::new();
    let program = shop.build("c.c", C, &["-g"]);
    let first = calls_of(&calls(&shop, &program), "calloc")[0];
    let runtime = PathBuf::from("/usr/lib/x86_64-linux-gnu/libgomp.so.1");
    let loader = PathBuf::from("/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2");
    let kept = [(runtime.clone(), 0x1000), (program.clone(), first)];
    let of_a_thread = [(loader, 0x2000), (runtime, 0x1000), (program, first)];
    for stack in [&kept[..], &of_a_thread[..]] {
        let found = ProgramSymbols::new().allocation_name(stack);
        assert_eq!(
            (found.name.as_str(), found.line),
            ("blocks of libgomp.so.1", 0)
        );
    }
}

/// All calls of extensions have the same lines in an interpreter, and all that one allocates comes from one place
/// in it.
#[test]
fn blocks_of_an_extension_are_named_after_what_the_interpreter_calls() {
    let shop = Workshop::new();
    let interpreter = shop.build("c.c", C, &["-g"]);
    let python = shop.path("python3.11");
    std::fs::rename(&interpreter, &python).expect("a program");
    let call = calls_of(&calls(&shop, &python), "calloc")[0];
    let frames = |of: &[(&str, u64)]| -> Vec<(PathBuf, u64)> {
        let extension = of.iter().map(|(file, pc)| (PathBuf::from(file), *pc));
        extension.chain([(python.clone(), call)]).collect()
    };
    let name = |of: &[(&str, u64)]| ProgramSymbols::new().allocation_name(&frames(of)).name;
    let (array, linear) = ("/opt/array.so", "/opt/linear.so");
    let inside = [(array, 0x10), (array, 0x20), (linear, 0x30)];
    assert_eq!(name(&inside), "array.so+0x20");
    assert_eq!(name(&inside[2..]), "linear.so+0x30");
    let libc = [("/usr/lib/x86_64-linux-gnu/libc.so.6", 0x40)];
    assert_eq!(name(&libc), name(&[]));
    assert!(!name(&[]).contains(".so"));
}

#[test]
fn a_source_that_is_gone_leaves_the_line() {
    let shop = Workshop::new();
    let program = shop.build("c.c", C, &["-g"]);
    let first = calls_of(&calls(&shop, &program), "calloc")[0];
    std::fs::remove_file(shop.path("c.c")).expect("it was there");
    let found = ProgramSymbols::new().allocation_name(&frames(&program, &[first]));
    assert_eq!(found.name, format!("c.c:{} (main)", line_of(C, "// 2")));
}
