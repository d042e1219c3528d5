//! Functions that are called like allocators: those that hand a block on leave its name to their caller, those
//! that keep it do not.
use super::allocations::{calls, frames, show, stacks};
use super::{line_of, Workshop};
use crate::trace::symbolizer::Symbolizer;
use crate::trace::symbols::ProgramSymbols;

const C: &str = r#"
#include <stdlib.h>
struct state { float *x; int *y; };
int *table;
__attribute__((noinline)) void keep(void *p) { __asm__ volatile("" : : "r"(p) : "memory"); }
void malloc_state(struct state *s, int n) {
  s->x = malloc(n);                      // 1
  keep(s->x);
  s->y = malloc(n);                      // 2
  keep(s->y);
  table = malloc(n);                     // 3
  keep(table);
}
__attribute__((noinline)) char *aligned_malloc(int n) {
  char *whole = malloc(n + 64);
  keep(whole);
  return whole + 64;
}
int main(int c, char **v) {
  struct state state;
  malloc_state(&state, c);
  char *mine = aligned_malloc(c);        // 4
  keep(mine);
  return v == 0;
}
"#;

#[test]
fn what_is_called_like_an_allocator_may_keep_the_block() {
    let shop = Workshop::new();
    for options in [
        &["-g", "-O0"][..],
        &["-g", "-O2", "-fno-optimize-sibling-calls"],
    ] {
        let program = shop.build("w.c", C, options);
        let all = calls(&shop, &program);
        let mut symbols = ProgramSymbols::new();
        let mut found: Vec<String> = Vec::new();
        for stack in stacks(&all, "malloc", 2) {
            found.push(show(&symbols.allocation_name(&frames(&program, &stack))));
        }
        let line = |mark: u32| line_of(C, &format!("// {mark}"));
        let mut expected = vec![
            format!("state.x | float | {} | malloc_state", line(1)),
            format!("state.y | int | {} | malloc_state", line(2)),
            format!("table | int | {} | malloc_state", line(3)),
            format!("mine | char | {} | main", line(4)),
        ];
        found.sort();
        found.dedup();
        expected.sort();
        assert_eq!(found, expected, "{options:?}");
    }
}
