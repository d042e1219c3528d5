use super::{line_of, named, Workshop};
use crate::trace::symbolizer::Symbolizer;
use crate::trace::symbolizer::{StaticObject, StructField};
use crate::trace::symbols::ProgramSymbols;
use std::path::Path;

const C: &str = r#"
#include <stdlib.h>
struct cell { int id; double x[3]; struct cell *next; };
typedef double row[8];
typedef struct { float re, im; } complex_t;
double grid[512][256];
static struct cell cells[64];
row matrix[16];
complex_t signal[10];
int *pointer;
const char *names[3];
void (*handler)(int);
unsigned long long total = 7;
volatile int flag;
extern int later[];
int later[5] = {1};
__thread int local;
int step(void) { static int calls; static double cache[4]; cache[calls & 3] = calls; return ++calls + (int)cache[1]; }
int main(void) { cells[step() & 3].id = step(); grid[1][1] = step(); local = flag; return (int)grid[1][1] + cells[1].id + later[0]
  + (int)signal[0].re + (int)matrix[0][0] + (pointer != 0) + (names[0] != 0) + (handler != 0) + (int)total; }
"#;

const CPP: &str = r#"
#include <vector>
namespace ns {
struct cell { long id; static int hits[4]; int step(); };
int cell::hits[4];
namespace { volatile double hidden[3]; }
static inline int next() { static int counter; return ++counter; }
int cell::step() { static long steps[2]; hidden[1] = id; return ++steps[0] + hits[1] + hidden[0]; }
enum class mode { a, b };
mode modes[7];
}
std::vector<double> table;
ns::cell cells[5];
int &reference = ns::cell::hits[2];
int main() { hits: return ns::next() + cells[0].step() + (int)ns::modes[1] + table.size() + reference; }
"#;

const FORTRAN: &str = "
module solver
  implicit none
  real(8), allocatable :: u(:,:)
  real(8) :: coef(0:9,20)
  type cell
    integer :: id
    real(8) :: x(3)
  end type
  type(cell) :: cells(5)
  character(len=12) :: title
  integer, pointer :: link(:)
contains
  subroutine step(n)
    integer, intent(in) :: n
    integer, save :: calls = 0
    calls = calls + n
    u(1,1) = calls
  end subroutine
end module
subroutine other
  real(8) a(100,100)
  integer k
  real(8) b(50)
  character(3) c
  complex(8) z(2)
  common /grid/ a, k, b, c, z
  integer loose(10)
  common loose
  a(1,1) = b(2) + k + loose(1)
end subroutine
program main
  use solver
  real(8) :: big(500,400)
  allocate(u(10,20))
  big(1,1) = 2
  call step(2)
  call other
  print *, big(1,1), coef(1,1), cells(1)%id, title, associated(link)
end program
";

const RUST: &str = "
use std::sync::atomic::{AtomicU64, Ordering};
mod deep {
    pub struct Cell { pub id: u32, pub x: [f64; 3] }
    pub static CELLS: [Cell; 2] = [const { Cell { id: 1, x: [0.5; 3] } }; 2];
}
static COUNT: AtomicU64 = AtomicU64::new(3);
thread_local! { static HITS: std::cell::Cell<[u64; 64]> = const { std::cell::Cell::new([0; 64]) }; }
static mut GRID: [[f64; 4]; 8] = [[0.0; 4]; 8];
fn main() {
    let n = COUNT.fetch_add(1, Ordering::Relaxed);
    HITS.with(|h| h.set([n; 64]));
    unsafe { GRID[n as usize % 8][1] = deep::CELLS[n as usize % 2].x[1]; }
    println!(\"{} {:?}\", deep::CELLS[n as usize % 2].id, unsafe { GRID[3][1] });
}
";

/// name, type, size, text on the line of its declaration
type Expected<'e> = (&'e str, &'e str, u64, &'e str);

fn check(program: &Path, text: &str, expected: &[Expected]) {
    for (name, type_name, size, declaration) in expected {
        let o = named(program, name);
        assert_eq!(&o.type_name, type_name, "type of {name}");
        assert_eq!(o.size, *size, "size of {name}");
        assert_eq!(o.line, line_of(text, declaration), "line of {name}");
        let stem = program.file_stem().and_then(|s| s.to_str()).expect("named");
        let file = Path::new(&o.file);
        assert_eq!(file.file_stem().and_then(|s| s.to_str()), Some(stem));
        assert!(file.is_file(), "{} is where {name} is declared", o.file);
    }
}

const C_EXPECTED: &[Expected] = &[
    ("grid", "double [512][256]", 512 * 256 * 8, "double grid"),
    ("cells", "struct cell [64]", 64 * 40, "cells[64]"),
    ("matrix", "double [16][8]", 16 * 64, "row matrix"),
    ("signal", "complex_t [10]", 80, "complex_t signal"),
    ("pointer", "int *", 8, "int *pointer"),
    ("names", "const char * [3]", 24, "*names"),
    ("handler", "void (*)()", 8, "*handler"),
    ("total", "unsigned long long", 8, "total = 7"),
    ("flag", "volatile int", 4, "int flag"),
    ("later", "int [5]", 20, "later[5]"),
    ("step::calls", "int", 4, "static int calls"),
    ("step::cache", "double [4]", 32, "cache[4]"),
    ("local", "int", 4, "__thread int local"),
];

#[test]
fn c_in_every_form_gcc_writes() {
    let shop = Workshop::new();
    for options in [
        &["-g"][..],
        &["-g", "-O2"],
        &["-gdwarf-4"],
        &["-gdwarf-4", "-fdebug-types-section"],
        &["-g", "-fdebug-types-section"],
        &["-g", "-gz"],
        &["-g", "-static"],
        &["-g", "-no-pie"],
        &["-g", "-pie", "-fPIE"],
        &["-g", "-O2", "-flto"],
        &["-g", "-Wl,--compress-debug-sections=zlib-gnu"],
    ] {
        println!("{options:?}");
        let program = shop.build("c.c", C, options);
        match options.contains(&"-flto") {
            // What only one function uses is optimised away.
            true => check(
                &program,
                C,
                &[C_EXPECTED[1], C_EXPECTED[10], C_EXPECTED[11]],
            ),
            false => check(&program, C, C_EXPECTED),
        }
        let all = ProgramSymbols::new().static_objects(&program);
        let local = all.iter().find(|o| o.name == "local");
        let place = local.map(|o| o.vaddr >= StaticObject::THREAD_LOCAL);
        assert!(options.contains(&"-flto") || place == Some(true));
        for pair in all.windows(2) {
            assert!(pair[0].vaddr + pair[0].size <= pair[1].vaddr, "{pair:?}");
        }
    }
}

#[test]
fn cpp_names_are_qualified() {
    let shop = Workshop::new();
    for options in [&["-g"][..], &["-g", "-O2"], &["-gdwarf-4", "-O2"]] {
        println!("{options:?}");
        let program = shop.build("p.cpp", CPP, options);
        let expected: &[Expected] = &[
            ("ns::cell::hits", "int [4]", 16, "int cell::hits"),
            (
                "ns::(anonymous namespace)::hidden",
                "volatile double [3]",
                24,
                "hidden[3]",
            ),
            ("ns::next::counter", "int", 4, "int counter"),
            ("ns::cell::step::steps", "long [2]", 16, "steps[2]"),
            ("ns::modes", "mode [7]", 28, "modes[7]"),
            ("table", "vector<double>", 24, "> table"),
            ("cells", "cell [5]", 40, "cells[5]"),
            ("reference", "int &", 8, "&reference"),
        ];
        let expected: Vec<Expected> = match options.contains(&"-O2") {
            // The optimiser turns the reference into what it refers to.
            true => expected[..7].to_vec(),
            false => expected.to_vec(),
        };
        check(&program, CPP, &expected);
    }
}

#[test]
fn fortran_modules_common_blocks_and_descriptors() {
    let shop = Workshop::new();
    for options in [&["-g"][..], &["-g", "-O2"], &["-gdwarf-4"]] {
        println!("{options:?}");
        let program = shop.build("f.f90", FORTRAN, options);
        let module: &[Expected] = &[
            (
                "solver::u",
                "real(8), allocatable (:,:)",
                88,
                "allocatable :: u",
            ),
            ("solver::coef", "real(8) (0:9,20)", 1600, "coef(0:9,20)"),
            ("solver::cells", "type(cell) (5)", 160, "cells(5)"),
            ("solver::title", "character(12)", 12, ":: title"),
            ("solver::link", "integer(4), pointer (:)", 64, ":: link"),
            ("big", "real(8) (500,400)", 1_600_000, "big(500,400)"),
        ];
        check(&program, FORTRAN, module);
        if !options.contains(&"-O2") {
            check(
                &program,
                FORTRAN,
                &[("solver::step::calls", "integer(4)", 4, "calls = 0")],
            );
        }
        let common: &[Expected] = &[
            ("grid::a", "real(8) (100,100)", 80_000, "a(100,100)"),
            ("grid::k", "integer(4)", 4, "integer k"),
            ("grid::b", "real(8) (50)", 400, "b(50)"),
            ("grid::c", "character(3)", 3, "character(3) c"),
            ("grid::z", "complex(8) (2)", 32, "z(2)"),
            ("blank common::loose", "integer(4) (10)", 40, "loose(10)"),
        ];
        check(&program, FORTRAN, common);
        let start = named(&program, "grid::a").vaddr;
        let offset = |name| named(&program, name).vaddr - start;
        let offsets = ["grid::k", "grid::b", "grid::c", "grid::z"].map(offset);
        assert_eq!(offsets, [80_000, 80_008, 80_408, 80_416], "{options:?}");
    }
}

#[test]
fn rust_paths() {
    let shop = Workshop::new();
    let program = shop.build("r.rs", RUST, &["-g", "--edition", "2021"]);
    let expected: &[Expected] = &[
        ("r::deep::CELLS", "[Cell; 2]", 64, "static CELLS"),
        ("r::GRID", "[[f64; 4]; 8]", 256, "GRID:"),
        ("r::COUNT", "AtomicU64", 8, "static COUNT"),
    ];
    // The type of atomics changed its name between compilers.
    check(&program, RUST, &expected[..2]);
    assert_eq!(named(&program, "r::COUNT").size, 8);
    let plain = shop.build("plain.rs", RUST, &["--edition", "2021"]);
    for (program, name) in [(&program, "r::HITS"), (&plain, "plain::HITS")] {
        let hits = named(program, name);
        // Unoptimised, the library keeps a state beside it.
        assert!((512..=520).contains(&hits.size), "{}", hits.size);
        assert!(hits.vaddr >= StaticObject::THREAD_LOCAL);
    }
}

#[test]
fn members_of_a_structure() {
    let shop = Workshop::new();
    let program = shop.build("c.c", C, &["-g"]);
    let member = |name: &str, offset, size, type_name: &str| StructField {
        name: name.into(),
        offset,
        size,
        type_name: type_name.into(),
    };
    let expected = [
        member("id", 0, 4, "int"),
        member("x", 8, 24, "double [3]"),
        member("next", 32, 8, "struct cell *"),
    ];
    let [cells, grid] = ["cells", "grid"].map(|name| named(&program, name).vaddr);
    let found = ProgramSymbols::new().members(&program, &[grid, cells, 1]);
    assert_eq!(found, [vec![], expected.to_vec(), vec![]]);
}

#[test]
fn without_debug_information_symbols_remain() {
    let shop = Workshop::new();
    let check = |source: &str, text: &str, options: &[&str], expected: &[(&str, u64)]| {
        let program = shop.build(source, text, options);
        for (name, size) in expected {
            let o = named(&program, name);
            assert_eq!((o.size, o.line, o.file.as_str()), (*size, 0, ""), "{name}");
        }
    };
    check("c.c", C, &[], &[("grid", 1 << 20), ("cells", 2560)]);
    let cpp = [
        ("ns::cell::hits", 16),
        ("ns::next::counter", 4),
        ("cells", 40),
    ];
    check("p.cpp", CPP, &[], &cpp);
    check(
        "f.f90",
        FORTRAN,
        &[],
        &[("solver::coef", 1600), ("grid_", 80_448)],
    );
}

#[test]
fn objects_never_overlap() {
    let shop = Workshop::new();
    let text = "
subroutine one
  real(8) a(100)
  integer k(200)
  common /grid/ a, k
  a(1) = k(1)
end subroutine
subroutine two
  real(8) whole(150), rest(50)
  common /grid/ whole, rest
  whole(1) = rest(1)
end subroutine
program main
  call one
  call two
end program
";
    let program = shop.build("f.f90", text, &["-g"]);
    let all = ProgramSymbols::new().static_objects(&program);
    assert!(all.iter().any(|o| o.name.starts_with("grid::")));
    for pair in all.windows(2) {
        assert!(pair[0].vaddr + pair[0].size <= pair[1].vaddr, "{pair:?}");
    }
}
