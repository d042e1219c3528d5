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

/// Without lines, a block is named after who called what is called an allocator.
#[test]
fn allocators_of_libraries_without_lines_hand_on() {
    let text = r#"
#include <stdlib.h>
void *volatile kept;
__attribute__((noinline)) void *CRYPTO_zalloc(int n) { kept = calloc(1, n); return kept; }
__attribute__((noinline)) void *arenaAllocate(int n) { kept = CRYPTO_zalloc(n); return kept; }
__attribute__((noinline)) void *session_new(int n) { kept = arenaAllocate(n); return kept; }
int main(int c, char **v) { return !session_new(c); }
"#;
    let shop = Workshop::new();
    let program = shop.build("c.c", text, &["-O1"]);
    let all = calls(&shop, &program);
    let call = |inside: &str| all.iter().find(|c| c.1 == inside).expect("a call").0;
    let stack = ["CRYPTO_zalloc", "arenaAllocate", "session_new", "main"];
    let stack = stack.map(|f| (program.clone(), call(f)));
    let found = ProgramSymbols::new().allocation_name(&stack);
    assert_eq!(found.function, "session_new");
}

#[test]
fn what_is_called_after_allocating_is_an_allocator() {
    let check = |function, expected| {
        let found = crate::trace::symbols::frame_filter::is_named_allocator(function);
        assert_eq!(found, expected, "{function}");
    };
    let allocators = [
        "g_malloc0",
        "CRYPTO_zalloc",
        "zalloc",
        "apr_palloc",
        "g_slice_alloc",
        "rocksdb::Arena::AllocateAligned(unsigned long)",
        "caml_alloc_shr",
    ];
    allocators.into_iter().for_each(|f| check(f, true));
    for other in [
        "allocator_new",
        "allocation_size",
        "allocated",
        "session_new",
        "alloca_test",
    ] {
        check(other, false);
    }
}
