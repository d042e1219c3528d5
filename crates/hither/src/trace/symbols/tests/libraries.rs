//! Blocks that a library allocates when the program calls it.
use super::allocations::{calls, calls_of, Call, C};
use super::{line_of, Workshop};
use crate::trace::symbolizer::Symbolizer;
use crate::trace::symbols::ProgramSymbols;
use std::path::PathBuf;

/// ctypes makes all calls of all libraries on one line of its own.
#[test]
fn blocks_of_a_library_that_ctypes_calls_are_the_librarys() {
    let shop = Workshop::new();
    let built = shop.build("c.c", C, &["-g"]);
    let ctypes = shop.path("_ctypes.cpython-311-x86_64-linux-gnu.so");
    std::fs::rename(&built, &ctypes).expect("a file");
    let call = calls_of(&calls(&shop, &ctypes), "calloc")[0];
    let stack = [(PathBuf::from("/opt/libboost.so"), 0x10), (ctypes, call)];
    let found = ProgramSymbols::new().allocation_name(&stack);
    assert_eq!(found.name, "libboost.so+0x10");
}

/// What a library allocates is not the number by which it reports success.
#[test]
fn a_result_code_is_no_block() {
    let text = r#"
#include <stdlib.h>
struct state { void *window; };
__attribute__((noinline)) static int init(struct state *s) { return !(s->window = malloc(9)); }
int main(int c, char **v) {
  struct state s;
  int ret = init(&s); // a
  unsigned long address = (unsigned long)malloc(c); // b
  __asm__ volatile("" : : "r"(address), "r"(v), "r"(ret) : "memory");
  return ret;
}
"#;
    let shop = Workshop::new();
    let program = shop.build("c.c", text, &["-g", "-O1"]);
    let all = calls(&shop, &program);
    let name = |callee: &str| {
        let inside = |c: &&Call| c.1 == "main" && c.2.starts_with(callee);
        let pc = all.iter().find(inside).expect("a call").0;
        let stack = [
            (PathBuf::from("/usr/lib/libz.so.1"), 0x10),
            (program.clone(), pc),
        ];
        ProgramSymbols::new().allocation_name(&stack).name
    };
    assert_eq!(
        name("init"),
        format!("c.c:{} (main)", line_of(text, "// a"))
    );
    assert_eq!(name("malloc"), "address");
}
